"""Relations: the best of each arc, and the best together under limits, against enumeration."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch

from mh4.data.sentence import Sentence
from mh4.parsers.relations import NO_LIMIT, RelationReader, given_relations, limit_relations
from mh4.parsers.request import Request

NAMES = ("nsubj", "nsubj:pass", "obj", "x", "y", "root")
UNIQUE = ("nsubj", "obj")
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
        logs = np.round(logs)  # ties
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
    limit_relations(heads, best, logs, GROUPS, UNIQUE, ["root", "nsubj", "nsubj", None])  # given: nobody's fault
    assert NAMES[best[3]] == "obj"


def test_a_reader_chooses_and_weighs():
    reader = RelationReader(NAMES)
    scores = torch.tensor([[9.0, 0, 0, 0, 0, 1], [2.0, 0, 1, 0, 0, 9], [2.0, 0, 1.5, 0, 0, 0]])
    heads = np.array([-1, 0, 1, 1])
    sentence = Sentence.from_words(["a", "b", "c"])
    found = {}
    for request in (Request(), Request(confidence=True), Request(unique=UNIQUE)):
        chosen = reader.choose(scores, torch.from_numpy(heads[1:]), request)
        found[request] = reader.read(chosen, slice(0, 3), heads, sentence, request)
    plain, weighed, unique = found.values()
    assert plain.names == weighed.names == ("root", "nsubj", "nsubj")
    assert unique.names == ("root", "nsubj", "obj")
    assert plain.logs is None
    np.testing.assert_allclose(weighed.logs, scores[:, :5].log_softmax(1).numpy().max(1) * [0, 1, 1], atol=1e-6)
    given = sentence.replace(heads=[-1, -1, 1, -1], relations=["_", "y", "_"])
    request = Request(keep_heads=True, confidence=True)
    kept = reader.read(reader.choose(scores, torch.from_numpy(heads[1:]), request), slice(0, 3), heads, given, request)
    assert kept.names == ("root", "y", "nsubj")
    assert kept.given.tolist() == [False, True, False]
    given = sentence.replace(heads=[-1, 0, -1, -1], relations=["x", "_", "_"])  # the root's own relation, too
    kept = reader.read(reader.choose(scores, torch.from_numpy(heads[1:]), request), slice(0, 3), heads, given, request)
    assert kept.names == ("x", "nsubj", "nsubj")


def test_relations_given_with_their_heads_stay():
    sentence = Sentence.from_words(list("abcd")).replace(
        heads=[-1, 0, -1, 1, 1], relations=["top", "given", "_", "given"]
    )
    assert given_relations(sentence).tolist() == [True, False, False, True]


def test_impossible_limits_are_errors():
    with pytest.raises(ValueError, match="the model has none of the relations expl"):
        RelationReader(NAMES).check_limits(("expl",))
    with pytest.raises(ValueError, match="no relation is left that several words"):
        RelationReader(("nsubj", "root")).check_limits(("nsubj",))
    RelationReader(NAMES).check_limits(("nsubj", "expl"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k_best": 0}, "at least one tree"),
        ({"among": 3}, "--unique"),
        ({"confidence": True, "k_best": 2}, "not for both"),
        ({"confidence": "no"}, 'confidence is True, False or "all"'),
        ({"unique": "nsubj:pass"}, "without subtypes"),
        ({"unique": "nsubj,"}, "without subtypes"),
    ],
)
def test_options_that_do_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        Request.of(**options)


def test_trees_are_needed():
    with pytest.raises(ValueError, match="need trees; predict heads"):
        Request.of("upos", confidence=True)


def test_options_come_back():
    for options in ({"confidence": "all"}, {"unique": "nsubj,obj", "among": 4, "k_best": 2}, {"confidence": True}):
        request = Request.of(**options)
        assert Request.of(**request.options) == request
