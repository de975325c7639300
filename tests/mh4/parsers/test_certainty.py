"""Confidence of parsers: margins, alternatives, k-best trees, unique relations and given heads."""

import re
import shutil
from collections import Counter

import numpy as np
import pytest
import torch

import mh4
from mh4.data.annotation import Annotation
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.decoders import ChartTooLargeError, get_decoder
from mh4.decoders.forest import Forest
from mh4.decoders.trees import given_heads_bonus
from mh4.parsers import chart
from mh4.parsers.answers import with_trees
from mh4.parsers.chart import ChartParser
from mh4.parsers.ensemble import EnsembleParser
from mh4.parsers.model_files import CALIBRATION
from mh4.training import calibrating
from mh4.training.calibrating import calibrate


@pytest.fixture(scope="module")
def parser(small_model):
    return ChartParser.load(small_model, device="cpu")


@pytest.fixture(scope="module")
def dev(small_treebanks):
    return list(read_conllu(small_treebanks[1], trees="required"))


def test_training_leaves_a_calibrated_model(small_model, parser):
    assert (small_model / CALIBRATION).exists()
    assert parser.calibration is not None


def test_margins_and_runners_up_are_those_of_the_decoder(parser, dev):
    plain = list(parser.parse(dev))
    sure = list(parser.parse(dev, confidence=True))
    for sentence, scores, one, other in zip(dev, parser.score(dev), plain, sure, strict=True):
        assert (one.to_bytes(), one.score, one.confidence) == (other.to_bytes(), other.score, None)
        margins = parser.decoder.margins(scores)
        for word in other:
            assert word.margin == pytest.approx(margins.values[word.id], abs=1e-3)
            assert [head for head, _ in word.alternatives] == [h for h in [margins.heads[word.id]] if h >= 0]
            assert 0 < word.confidence <= word.head_confidence <= 1
        assert 0 < other.confidence.tree < 1
        assert len(sentence) == len(other)


def test_all_alternatives_are_asked_for(parser, dev):
    (sentence,) = parser.parse(dev[:1], confidence="all")
    scores = parser.score(dev[:1])[0]
    best = parser.decoder.max_marginals(scores)
    for word in sentence:
        heads = [head for head, _ in word.alternatives]
        assert sorted([*heads, word.head]) == np.flatnonzero(best[:, word.id] > -np.inf).tolist()
        losses = [loss for _, loss in word.alternatives]
        assert losses == sorted(losses)
        np.testing.assert_allclose(losses, sentence.score - best[heads, word.id], atol=1e-3)
        assert losses[0] == word.margin


def test_given_heads_are_certain_and_the_others_are_so_given_them(parser, dev):
    sentence = next(one for one in dev if len(one) > 4)
    heads = np.full(len(sentence), -1)
    heads[:2] = sentence.heads[:2]
    given = sentence.replace(heads=heads)
    (found,) = parser.parse([given], keep_heads=True, confidence=True)
    assert [word.confidence for word in found[:2]] == [1, 1]
    assert [word.alternatives for word in found[:2]] == [[], []]
    bonus = given_heads_bonus([given.padded_heads], len(given) + 2)[0]
    margins = parser.decoder.margins(parser.score([sentence])[0], bonus)
    np.testing.assert_allclose(found.confidence.margins[2:], margins.values[3:], atol=1e-3)


def test_heads_that_no_tree_has_are_an_error_of_their_sentence(parser, dev):
    bad = dev[1].replace(heads=[2, 1, *[-1] * (len(dev[1]) - 2)])
    errors = []
    for wish in ({"confidence": True}, {"k_best": 3}):
        errors.clear()
        found = list(parser.parse([dev[0], bad, dev[2]], keep_heads=True, errors=errors.append, **wish))
        assert {one.forms for one in found} == {dev[0].forms, dev[2].forms}
        assert len(errors) == 1
        with pytest.raises(DataError, match="cycle"):
            parser.predict([bad], keep_heads=True, **wish)


def test_the_k_best_trees_are_those_of_the_decoder(parser, dev):
    for sentence, scores in zip(dev[:4], parser.score(dev[:4]), strict=True):
        trees = parser.k_best(sentence, 5)
        expected = parser.decoder.k_best(scores, 5)
        assert [tree.heads.tolist() for tree in trees] == [one.heads[1:].tolist() for one in expected]
        np.testing.assert_allclose([tree.score for tree in trees], [one.score for one in expected], rtol=1e-4)
        assert trees[0].heads.tolist() == parser(sentence).heads.tolist()
        assert [tree.comments[-2] for tree in trees] == [f"# rank = {rank}" for rank in range(1, len(trees) + 1)]
        for tree in trees:  # each tree has relations of its own
            alone = parser.predict(
                [sentence.replace(heads=tree.heads, relations=["_"] * len(sentence))], keep_heads=True
            )
            assert alone[0].relations == tree.relations
    assert len(parser.k_best(["a"], 3)) == 1


def test_the_k_best_trees_keep_given_heads(parser, dev):
    sentence = next(one for one in dev if len(one) > 4)
    best = parser(sentence).heads.tolist()
    other = next(h for h in range(1, len(sentence) + 1) if h not in (2, best[2]) and best[h] != 2)
    given = sentence.replace(heads=[-1, other, *[-1] * (len(sentence) - 2)])
    trees = parser.k_best(given, 4, keep_heads=True)
    assert len(trees) == 4
    assert {int(tree.heads[1]) for tree in trees} == {other}
    assert parser.k_best(given, 1)[0].heads.tolist() == best


def test_given_heads_stay_in_files_however_uncertain(parser, dev, tmp_path):
    given = dev[0].replace(heads=[*dev[0].heads[:2], *[-1] * (len(dev[0]) - 2)])
    parser.parse_file([given], tmp_path / "out.conllu", keep_heads=True, min_confidence=1.0)
    (written,) = read_conllu(tmp_path / "out.conllu")
    assert written.heads.tolist()[:2] == given.heads.tolist()[:2]
    assert written.relations[:2] == given.relations[:2]
    assert written.heads[2] == -1
    assert written.relations[2] == given.relations[2] == dev[0].relations[2]  # a relation given without a head
    parser.parse_file([given], tmp_path / "out.conllu", min_confidence=1.0)
    (written,) = read_conllu(tmp_path / "out.conllu")
    assert -1 in written.heads.tolist()[:2]


@pytest.mark.parametrize("likely", [0, 1, 2])
def test_among_several_trees_relations_decide_with_the_scores(likely, parser, dev, monkeypatch):
    """Log-probabilities of relations are set by hand so that one of the trees wins."""
    sentence = next(one for one in dev if len(one) > 4)
    trees = [tree.heads.tolist() for tree in parser.k_best(sentence, 3)]
    read = type(parser.relations).read

    def with_logs(self, relations, arcs, *others):
        found, n = read(self, relations, arcs, *others), len(sentence)
        return found._replace(logs=np.full(n, 0.0 if arcs.start == likely * n else -1e4))

    monkeypatch.setattr(type(parser.relations), "read", with_logs)
    (found,) = parser.parse([sentence], unique="obj", among=3)
    assert found.heads.tolist() == trees[likely]


def test_files_of_several_trees_have_unique_ids_and_count_sentences_once(parser, dev, tmp_path):
    path = tmp_path / "out.conllu"
    count = parser.parse_file([*dev[:3], dev[0]], path, k_best=3)
    written = list(read_conllu(path, trees="required"))
    assert count == (4, sum(map(len, dev[:3])) + len(dev[0]))
    assert len(written) == 12
    assert [one.sent_id for one in written[:9]] == [f"{one.sent_id}-k{rank}" for one in dev[:3] for rank in (1, 2, 3)]


def test_a_wrong_kind_of_confidence_is_an_error_beside_a_least_one(parser, tmp_path):
    with pytest.raises(ValueError, match='confidence is True, False or "all"'):
        parser.parse_file([], tmp_path / "out.conllu", confidence="most", min_confidence=0.5)


def test_files_with_confidence_differ_in_misc_and_a_comment_alone(parser, dev, tmp_path):
    plain, sure, sparse = (tmp_path / name for name in ("plain.conllu", "sure.conllu", "sparse.conllu"))
    parser.parse_file(dev, plain)
    parser.parse_file(dev, sure, confidence=True)
    text = sure.read_text(encoding="utf-8")
    assert text.count("# tree_confidence = ") == len(dev)
    text = re.sub("# tree_confidence = .*\n", "", text)
    text = re.sub(r"(?<=[\t|])(Confidence|HeadConfidence|Margin|NextHead)=[^|\n]*\|?", "", text)
    text = re.sub(r"\t$", "\t_", text, flags=re.MULTILINE)
    assert text == plain.read_text(encoding="utf-8")
    parser.parse_file(dev, sparse, min_confidence=0.5)
    for one, other in zip(read_conllu(sparse), parser.parse(dev, confidence=True), strict=True):
        assert [word.head is None for word in one] == [word.confidence < 0.5 for word in other]
        assert [word.deprel is None for word in one] == [word.confidence < 0.5 for word in other]
        assert "Confidence" not in "".join(one.misc)


def test_confidences_of_an_earlier_parse_go_with_its_tree(parser, dev, tmp_path):
    plain, sure = tmp_path / "plain.conllu", tmp_path / "sure.conllu"
    parser.parse_file(dev, plain)
    parser.parse_file(dev, sure, confidence=True)
    for again in (parser.parse(sure), parser.pipe(read_conllu(sure))):
        assert "".join(one.to_conllu() for one in again) == plain.read_text(encoding="utf-8")
    assert not any("onfidence" in one.to_conllu() for one in parser.parse(sure, k_best=2))
    (noted,) = mh4.Document(read_conllu(sure))[:1]
    assert with_trees(noted, Annotation(upos=noted.upos), 1) == [noted]  # without a new tree, the old one stays


def test_unique_relations(parser, dev):
    relation, _ = Counter(name for one in parser.parse(dev) for name in one.relations if name != "root").most_common(1)[
        0
    ]
    universal = relation.partition(":")[0]
    plain, unique = list(parser.parse(dev)), list(parser.parse(dev, unique=universal))
    assert most(plain, universal) > 1 == most(unique, universal)
    assert [one.heads.tolist() for one in plain] == [one.heads.tolist() for one in unique]
    for one, other in zip(plain, parser.parse(dev, unique=universal, among=4), strict=True):
        assert other.score <= one.score
        assert most([other], universal) <= 1
    for sentence in dev:  # without `among`, unique relations do not reorder trees
        trees = [tree.heads.tolist() for tree in parser.k_best(sentence, 3)]
        assert [tree.heads.tolist() for tree in parser.parse([sentence], k_best=3, unique=universal)] == trees


def test_a_relation_that_the_model_does_not_have_is_told_once(parser, dev, caplog):
    name = next(one for one in parser.vocabulary.relations if one not in ("root", "_")).partition(":")[0]
    parser(dev[0], unique=f"{name},ojb")
    parser(dev[1], unique=f"{name},ojb")
    assert [record.getMessage() for record in caplog.records] == ["the model has no relation ojb to keep unique"]


def most(sentences, relation):
    """Return the largest number of dependents with ``relation`` that any word has."""
    return max(
        (
            count
            for one in sentences
            for count in Counter(h for h, _, name in one.arcs() if name.partition(":")[0] == relation).values()
        ),
        default=0,
    )


def test_sentences_whose_charts_do_not_fit_have_a_tree_but_no_confidence(small_model, dev, caplog):
    parser = ChartParser.load(small_model, device="cpu")
    longest = max(dev, key=len)
    parser.decoder.memory_limit = parser.decoder.chart_bytes(len(longest)) - 1
    parser.fallback.memory_limit = parser.decoder.memory_limit
    found = list(parser.parse([longest, min(dev, key=len)], confidence=True))
    assert [word.confidence is None for word in found[0]] == [True] * len(longest)
    assert found[0].confidence.tree is None
    assert all(word.confidence for word in found[1])
    (warning,) = [message for message in caplog.messages if "would not fit" in message]
    assert longest.name in warning
    assert warning.endswith("parsed with beam:16, without confidence")
    caplog.clear()
    assert len(parser.k_best(longest, 3)) == 1
    assert caplog.messages[0].endswith("parsed with beam:16, without other trees")


@pytest.mark.parametrize(("options", "lost"), [({"confidence": True}, "confidence"), ({"k_best": 2}, "other trees")])
def test_sentences_with_room_for_the_best_tree_alone_are_named(options, lost, small_model, dev, caplog, monkeypatch):
    parser = ChartParser.load(small_model, device="cpu")

    def no_room(*_):
        raise ChartTooLargeError("no room")

    monkeypatch.setattr(Forest, "margins", property(no_room))
    monkeypatch.setattr(Forest, "k_best", no_room)
    (found,) = parser.parse([dev[1]], **options)
    assert found.heads.tolist() == parser.predict([dev[1]])[0].heads.tolist()
    assert caplog.messages == [f"{dev[1].source}: {dev[1].name}: parsed, without {lost}: no room"]


def test_sentences_that_are_parsed_in_pieces_are_not_calibrated_on(small_model, small_treebanks, tmp_path, monkeypatch):
    """They have no margins, and scores for all pairs of their words would take too much memory."""
    folder = tmp_path / "m"
    shutil.copytree(small_model, folder)
    monkeypatch.setattr("mh4.parsers.base.LONGEST", 14)
    dev = list(read_conllu(small_treebanks[1]))
    short = [sentence for sentence in dev if len(sentence) <= 14]
    assert 0 < len(short) < len(dev)
    assert calibrating.calibrate(folder, small_treebanks[1], device="cpu").calibration.words <= sum(map(len, short))


def test_models_without_calibration_say_what_to_do(small_model, small_treebanks, tmp_path):
    folder = tmp_path / "old"
    shutil.copytree(small_model, folder)
    (folder / CALIBRATION).unlink()
    parser = mh4.load(folder)
    with pytest.raises(ValueError, match=rf"{folder}: .*run mh4 calibrate {folder} DEV once"):
        parser.parse(["a"], confidence=True)
    assert len(parser.k_best(["a", "b"], 2)) == 2  # needs no calibration
    calibration, report = calibrate(folder, small_treebanks[1], device="cpu")
    assert report.heads.words == sum(map(len, read_conllu(small_treebanks[1])))
    assert mh4.load(folder).calibration == calibration == mh4.load(small_model).calibration
    assert mh4.load(folder)(["a", "b"], confidence=True)[0].confidence


def test_parsers_without_margins_say_so_in_one_line(small_model):
    beam = ChartParser.load(small_model, device="cpu", search="beam:4")
    ensemble = EnsembleParser([ChartParser.load(small_model, device="cpu")])
    for parser in (beam, ensemble):
        for wish in ({"confidence": True}, {"k_best": 2}):
            with pytest.raises(ValueError, match="exact decoder") as caught:
                parser.parse([["a"]], **wish)
            assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="need a single model with a network"):
        ensemble.parse([["a"]], unique="nsubj")
    with pytest.raises(ValueError, match=r"write parser\.k_best"):
        beam(["a"], k_best=2)


@pytest.mark.parametrize("name", ["mst", "eisner", "mh3", "1ec"])
def test_every_decoder_tells(name, small_model, dev, monkeypatch):
    parser = ChartParser.load(small_model, device="cpu")
    rng = np.random.default_rng(1)
    decoder = get_decoder(name)
    scores = rng.normal(size=(len(dev[:3]), len(decoder.channels), 20, 20)).astype(np.float32)
    parser.decoder, parser.fallback = decoder, chart.Fallback(decoder)
    sentences = [Sentence.from_words(["w"] * n) for n in (1, 4, 7)]
    host = type("Scores", (), {"tensors": lambda self: [torch.from_numpy(scores)]})()
    found = parser.find_heads(host, sentences, chart.Request(confidence=True))
    for b, (one, sentence) in enumerate(zip(found, sentences, strict=True)):
        size = len(sentence) + 2
        expected = decoder.margins(scores[b, :, :size, :size])
        np.testing.assert_array_equal(one.trees[0].heads, expected.derivation.heads)
        np.testing.assert_allclose(one.margins.values, expected.values, atol=1e-5)
