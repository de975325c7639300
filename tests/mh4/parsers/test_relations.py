"""Relations: the best one of each arc, and the best joint choice under limits, checked by enumeration."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from small import small_config, small_greedy_config, train

from mh4.data.conllu import read_conllu
from mh4.data.sentence import Sentence
from mh4.parsers.config import PerceptronConfig, TransitionConfig
from mh4.parsers.perceptron.vocabulary import PerceptronVocabulary
from mh4.parsers.registry import load
from mh4.parsers.relation_places import RelationPlaces
from mh4.parsers.relations import NO_LIMIT, RelationReader, given_relations, limit_relations
from mh4.parsers.request import Request
from mh4.parsers.vocabulary import Vocabulary

NAMES = ("nsubj", "nsubj:pass", "obj", "x", "y", "root")
UNIQUE = ("nsubj", "obj")
UD = RelationPlaces.of_ud(NAMES)
GROUPS = np.array([0, 0, 1, NO_LIMIT, NO_LIMIT, NO_LIMIT])


def limited(names):
    return [name.partition(":")[0] for name in names if name.partition(":")[0] in UNIQUE]


def keeps(heads, names):
    return all(
        max(Counter(limited(n for n, own in zip(names, heads[1:], strict=True) if own == h)).values(), default=0) < 2
        for h in set(heads[1:])
    )


@pytest.mark.parametrize("seed", range(60))
def test_relations_are_the_best_that_keep_the_limits(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    heads = np.array([-1, 0, *[int(rng.integers(1, 3)) if d > 2 else 1 for d in range(2, n + 1)]], np.int32)
    logs = rng.normal(size=(n, len(NAMES))).astype(np.float32)
    logs[:, :3] += 1.5
    if seed % 3 == 0:
        logs = np.round(logs)  # makes ties
    logs[0, :5] = logs[1:, 5] = -np.inf
    best = logs.argmax(1)
    changed = best.copy()
    limit_relations(heads, changed, logs, GROUPS, UNIQUE, [None] * n)
    total = logs[np.arange(n), changed].sum()
    possible = (
        sum(logs[d, r] for d, r in enumerate(choice))
        for choice in product(*(np.flatnonzero(np.isfinite(row)) for row in logs))
        if keeps(heads, [NAMES[r] for r in choice])
    )
    assert keeps(heads, [NAMES[r] for r in changed])
    assert total == pytest.approx(max(possible), abs=1e-5)
    if keeps(heads, [NAMES[r] for r in best]):
        assert (changed == best).all()


def test_given_relations_stay_and_take_their_place():
    heads = np.array([-1, 0, 1, 1, 1])
    logs = np.log(np.array([[0, 0, 0, 0, 0, 1.0], *[[0.5, 0.1, 0.25, 0.1, 0.05, 0]] * 3]) + 1e-30)
    best = logs.argmax(1)
    limit_relations(heads, best, logs, GROUPS, UNIQUE, [None, "nsubj", None, None])
    assert sorted(NAMES[r] for r in best[2:]) == ["obj", "x"]
    best = logs.argmax(1)
    limit_relations(heads, best, logs, GROUPS, UNIQUE, ["root", "nsubj", "nsubj", None])  # given: not changed
    assert NAMES[best[3]] == "obj"


def test_several_words_below_the_root_keep_their_relation():
    logs = np.log(np.array([[0.5, 0.1, 0.2, 0.1, 0.05, 0.05]] * 2))
    best = logs.argmax(1)
    limit_relations(np.array([-1, 0, 0]), best, logs, GROUPS, UNIQUE, [None, None])
    assert [NAMES[r] for r in best] == ["nsubj", "nsubj"]


def relations_of(reader, scores, heads, sentence, request):
    """Return the relations that a reader chooses for the arcs of a tree."""
    chosen = reader.choose(scores, torch.from_numpy(heads[1:]), request)
    tree = slice(0, len(sentence))
    return reader.read(reader.settled(chosen, heads[1:], [[tree]], [sentence], request), tree, sentence, request)


def test_a_reader_chooses_and_weighs():
    reader = RelationReader(NAMES, UD)
    scores = torch.tensor([[9.0, 0, 0, 0, 0, 1], [2.0, 0, 1, 0, 0, 9], [2.0, 0, 1.5, 0, 0, 0]])
    heads = np.array([-1, 0, 1, 1])
    sentence = Sentence.from_words(["a", "b", "c"])
    found = {}
    for request in (Request(), Request(confidence=True), Request(unique=UNIQUE)):
        found[request] = relations_of(reader, scores, heads, sentence, request)
    plain, weighed, unique = found.values()
    assert plain.names == weighed.names == ("root", "nsubj", "nsubj")
    assert unique.names == ("root", "nsubj", "obj")
    assert not plain.logs.any()
    np.testing.assert_allclose(weighed.logs, scores[:, :5].log_softmax(1).numpy().max(1) * [0, 1, 1], atol=1e-6)
    given = sentence.replace(heads=[-1, 1, -1], relations=["_", "y", "_"])
    request = Request(keep_heads=True, confidence=True)
    kept = relations_of(reader, scores, heads, given, request)
    assert kept.names == ("root", "y", "nsubj")
    assert kept.given.tolist() == [False, True, False]
    assert kept.logs[1] == kept.best_logs[1] == 0 > max(kept.logs[2], kept.best_logs[2])
    chosen = reader.choose(scores, torch.from_numpy(heads[1:]), request)
    settled = reader.settled(chosen, heads[1:], [[slice(0, 3)]], [given], request)
    assert [NAMES[r] for r in settled.best] == list(kept.names)
    given = sentence.replace(heads=[0, -1, -1], relations=["x", "_", "_"])  # also the relation of the root's dependent
    kept = relations_of(reader, scores, heads, given, request)
    assert kept.names == ("x", "nsubj", "nsubj")


@pytest.mark.parametrize("seed", range(20))
def test_limits_on_relations_that_cannot_be_there(seed):
    """``root`` scores −inf below words, whatever its index is."""
    rng = np.random.default_rng(seed)
    heads = np.array([-1, 0, 1, 1, 1, 2, 2])
    reader = RelationReader(NAMES, UD)
    scores = torch.from_numpy(rng.normal(size=(6, len(NAMES))).astype(np.float32))
    scores[:, 2] += 3
    request = Request(unique=("root", "obj"))
    names = relations_of(reader, scores, heads, Sentence.from_words(list("abcdef")), request).names
    assert names[0] == "root"
    assert "root" not in names[1:]
    assert [names[d - 1] for d in (2, 3, 4)].count("obj") < 2
    assert [names[d - 1] for d in (5, 6)].count("obj") < 2


def test_given_subtypes_count_as_the_whole():
    reader = RelationReader(NAMES, UD)
    heads = np.array([-1, 0, 1, 1])
    scores = torch.tensor([[0.0] * 6, [0.0] * 6, [9.0, 0, 3, 0, 0, 0]])
    given = Sentence.from_words(list("abc")).replace(heads=[-1, 1, -1], relations=["_", "nsubj:pass", "_"])
    request = Request(keep_heads=True, unique=("nsubj",))
    assert relations_of(reader, scores, heads, given, request).names == ("root", "nsubj:pass", "obj")


def test_predicted_subtypes_count_as_the_whole():
    heads = np.array([-1, 0, 1, 1])
    scores = torch.tensor([[0.0] * 6, [9.0, 0, 0, 0, 0, 0], [0, 9.0, 3, 0, 0, 0]])
    found = relations_of(
        RelationReader(NAMES, UD), scores, heads, Sentence.from_words(list("abc")), Request(unique=("nsubj",))
    )
    assert found.names == ("root", "nsubj", "obj")


def test_relations_that_training_has_in_one_place_stay_there():
    names = ("a", "SENT", "FRAG", "b")
    tree = Sentence.from_words(list("wxyz"))
    treebank = [
        tree.replace(heads=[0, 1, 0, -1], relations=["SENT", "a", "b", "FRAG"]),  # FRAG has no head
        tree.replace(heads=[0, 1, 1, 1], relations=["FRAG", "b", "_", "_"]),
    ]
    places = RelationPlaces.from_sentences(treebank)
    assert places == ({"SENT", "FRAG"}, {"a"})
    scores = torch.tensor([[5.0, 4, 3, 2], [1.0, 4, 3, 2]])
    chosen = RelationReader(names, places).choose(scores, torch.tensor([0, 1]), Request())
    assert [names[r] for r in chosen.best] == ["SENT", "b"]
    with pytest.raises(ValueError, match="no relation is left for several words"):
        RelationReader(names, places).check_limits(("a", "b"))
    nowhere = RelationPlaces(frozenset(names), frozenset(names))
    assert nowhere.allowed(names).all()


def test_older_models_keep_the_rule_of_ud():
    for names in (NAMES, ("nsubj", "obj"), ("root",)):
        vocabulary = Vocabulary(names, (), ())
        allowed = vocabulary.places.allowed(names)
        with_root = "root" in names and len(names) > 1
        assert bool(vocabulary.places.only_words) == with_root
        assert allowed[1].tolist() == [not with_root or name == "root" for name in names]
        assert allowed[0].tolist() == [not with_root or name != "root" for name in names]
    vocabulary = PerceptronVocabulary((), (), ("nsubj", "root"), "root", True, True, "upos")
    assert vocabulary.places == UD._replace(only_words=frozenset({"nsubj"}))
    assert replace(vocabulary, root_only=False).places == (frozenset(), frozenset())


@pytest.mark.parametrize("kind", ["chart", "greedy", "perceptron", "ensemble"])
def test_every_kind_of_parser_keeps_relations_in_their_places(kind, odd_roots):
    """Only root arcs are SENT or FRAG in training, but the scores of a barely trained model are arbitrary."""
    folders, sentences = odd_roots
    parser = load(*folders.values()) if kind == "ensemble" else load(folders[kind])
    found = parser.predict([Sentence.from_words(s.forms).replace(upos=s.upos) for s in sentences])
    for one in found:
        for head, name in zip(one.heads, one.relations, strict=True):
            assert (head == 0) == (name in ("SENT", "FRAG"))


@pytest.fixture(scope="module")
def odd_roots(small_treebanks, tmp_path_factory):
    """Folders of barely trained models by kind, and sentences."""
    folder = tmp_path_factory.mktemp("odd-roots")
    for path in small_treebanks:
        lines = path.read_text(encoding="utf-8").replace("\t0\troot\t", "\t0\tSENT\t")
        (folder / path.name).write_text(lines.replace("\t0\tSENT\t", "\t0\tFRAG\t", 3), encoding="utf-8")
    paths = [folder / path.name for path in small_treebanks]
    config = small_config("mst", max_steps=1, evaluation_steps=1)
    train(*paths, folder / "chart", config, device="cpu")
    greedy = small_greedy_config(TransitionConfig(system="arc-hybrid"), max_steps=1, evaluation_steps=1)
    train(*paths, folder / "greedy", greedy, device="cpu")
    train(*paths, folder / "perceptron", PerceptronConfig(iterations=1))
    return {name: folder / name for name in ("chart", "greedy", "perceptron")}, list(read_conllu(paths[1]))


def test_relations_given_with_their_heads_stay():
    sentence = Sentence.from_words(list("abcd")).replace(heads=[0, -1, 1, 1], relations=["top", "given", "_", "given"])
    assert given_relations(sentence).tolist() == [True, False, False, True]


def test_impossible_limits_are_errors():
    with pytest.raises(ValueError, match="the model has none of the relations expl"):
        RelationReader(NAMES, UD).check_limits(("expl",))
    with pytest.raises(ValueError, match="no relation is left for several words"):
        RelationReader(("nsubj", "root"), UD).check_limits(("nsubj",))
    RelationReader(NAMES, UD).check_limits(("nsubj", "expl"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k_best": 0}, "k_best must be at least 1"),
        ({"among": 3}, "unique="),
        ({"confidence": True, "k_best": 2}, "not both"),
        ({"confidence": True, "unique": "obj", "among": 2}, "not both"),
        ({"confidence": "no"}, 'confidence is True, False or "all"'),
        ({"unique": "nsubj:pass"}, "without subtypes"),
        ({"unique": "nsubj,"}, "without subtypes"),
    ],
)
def test_options_that_do_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        Request(**options)


def test_trees_are_needed():
    with pytest.raises(ValueError, match="need trees: predict heads"):
        Request(predict="upos", confidence=True)


def test_options_come_back():
    for options in ({"confidence": "all"}, {"unique": "nsubj,obj", "among": 4, "k_best": 2}, {"confidence": True}):
        request = Request(**options)
        assert Request(**request.options) == request
