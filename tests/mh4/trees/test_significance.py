"""Intervals and p-values, checked against scipy's bootstrap and all exchanges of a few sentences."""

import json
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, bootstrap

from mh4.data.conllu import write_conllu
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.trees import significance
from mh4.trees.alignment import read_analysis
from mh4.trees.evaluation import Comparison, count_units, evaluate
from mh4.trees.significance import compare

RANDOM = np.random.default_rng(5)


def treebank(sentences, right, seed):
    """Return gold chains of 2 to 9 words, and an analysis with about a share ``right`` of correct heads."""
    random = np.random.default_rng(seed)
    gold, system = [], []
    for number, n in enumerate(np.random.default_rng(3).integers(2, 10, sentences)):
        heads = np.arange(n)
        wrong = random.random(n) > right
        others = np.where(wrong, 0, heads)
        words = [f"w{number}"] * n
        gold.append(Sentence(words, heads=heads, relations=["root"] + ["dep"] * (n - 1), upos=["X"] * n))
        relations = ["dep" if head else "root" for head in others]
        system.append(Sentence(words, heads=others, relations=relations))
    return gold, system


def units(gold, system):
    counts = count_units(Comparison.of(read_analysis(gold), read_analysis(system)))
    return {name: (part.correct, part.gold_total, part.system_total) for name, part in counts.items()}


def f1(correct, gold, system):
    return 2 * correct.sum(-1) / (gold.sum(-1) + system.sum(-1))


def test_scores_are_those_of_each_alone():
    gold, one = treebank(30, 0.8, 1)
    _, other = treebank(30, 0.6, 2)
    results = compare(gold, {"one": one, "other": other}, samples=10)
    assert list(results) == ["one", "other"]
    assert results["one"].evaluation == evaluate(gold, one)
    assert results["other"].evaluation == evaluate(gold, other)
    for result in results.values():
        assert list(result.intervals) == [name for name, row in result.evaluation.rows.items() if row.gold_total]
    assert results["one"].p_values == {}
    assert list(results["other"].p_values) == list(results["one"].evaluation.rows)


def test_intervals_are_those_of_scipy():
    gold, system = treebank(60, 0.7, 1)
    intervals = compare(gold, {"system": system}, samples=4000)["system"].intervals
    for row in ("UAS", "LAS", "root arcs", "Words"):
        low, high = intervals[row]
        if row == "Words":
            assert (low, high) == (1, 1)
            continue
        if row == "root arcs":  # gold and system have different numbers of units
            part = count_units(Comparison.of(read_analysis(gold), read_analysis(system)))[row]
            recall, precision = part.correct.sum() / part.gold_total.sum(), part.correct.sum() / part.system_total.sum()
            assert low < 2 * recall * precision / (recall + precision) < high
            continue
        expected = bootstrap(
            units(gold, system)[row], f1, paired=True, method="percentile", n_resamples=4000, rng=RANDOM
        ).confidence_interval
        assert low == pytest.approx(expected.low, abs=0.012)
        assert high == pytest.approx(expected.high, abs=0.012)
        assert 0.05 < high - low < 0.3


def test_intervals_have_95_of_100_treebanks():
    """With one-word sentences, half of them correct, the number correct in a resampled treebank is binomial."""
    gold = [Sentence(["w"], upos=["X"])] * 100
    system = [Sentence(["w"], upos=["XY"[number % 2]]) for number in range(100)]
    low, high = compare(gold, {"system": system}, samples=4000)["system"].intervals["UPOS"]
    assert (low, high) == pytest.approx(tuple(binom.ppf((0.025, 0.975), 100, 0.5) / 100), abs=0.011)


def test_samples_without_a_unit_do_not_count():
    """Two of 60 perfectly parsed sentences have crossing arcs, so every seventh sample has none; no arc is long."""
    gold = [Sentence(["w"] * 4, heads=heads, relations=["x"] * 4) for heads in [[3, 0, 2, 2]] * 2 + [[2, 0, 2, 2]] * 58]
    intervals = compare(gold, {"system": gold}, samples=200)["system"].intervals
    assert intervals["crossing arcs"] == intervals["UAS"] == (1, 1)
    assert "arcs of length 7+" not in intervals
    none = [one.replace(heads=[2, 0, 2, 2]) for one in gold]  # missed arcs count as wrong
    assert compare(gold, {"system": none}, samples=200)["system"].intervals["crossing arcs"] == (0, 0)


def f1_exchanged(one, other, exchanged):
    """Return F1 of ``one`` with the sentences marked in ``exchanged`` taken from ``other``."""

    def total(name):
        return np.where(exchanged, getattr(other, name), getattr(one, name)).sum()

    recall = total("correct") / one.gold_total.sum()
    precision = total("correct_in_system" if one.correct_in_system is not None else "correct") / total("system_total")
    return 2 * recall * precision / (recall + precision)


def test_p_values_are_the_share_of_all_exchanges():
    gold, one = treebank(7, 0.9, 1)
    _, other = treebank(7, 0.55, 4)
    p_values = compare(gold, {"one": one, "other": other}, samples=20_000)["other"].p_values
    for row in ("UAS", "LAS", "root arcs", "arcs of length 1"):
        a, b = (count_units(Comparison.of(read_analysis(gold), read_analysis(system)))[row] for system in (one, other))
        exchanges = product((False, True), repeat=7)
        differences = np.array([abs(f1_exchanged(a, b, some) - f1_exchanged(b, a, some)) for some in exchanges])
        assert p_values[row] == pytest.approx((differences >= differences[0] - 1e-12).mean(), abs=0.012)
    assert p_values["Words"] == 1


def test_equal_systems_do_not_differ():
    gold, system = treebank(20, 0.7, 1)
    assert set(compare(gold, {"a": system, "b": system}, samples=100)["b"].p_values.values()) == {1.0}


def test_a_clear_difference_is_as_unlikely_as_samples_can_tell():
    gold, system = treebank(100, 0.5, 1)
    result = compare(gold, {"gold": gold, "system": system}, samples=200)["system"]
    assert result.p_values["UAS"] == 1 / 201


def test_results_do_not_depend_on_the_other_systems_nor_on_portions(monkeypatch):
    gold, one = treebank(20, 0.7, 1)
    _, other = treebank(20, 0.6, 2)
    expected = compare(gold, {"one": one, "other": other}, samples=50)
    assert compare(gold, {"other": other}, samples=50)["other"].intervals == expected["other"].intervals
    assert compare(gold, {"one": one, "x": gold, "other": other}, samples=50)["other"] == expected["other"]
    assert compare(gold, {"one": one}, samples=50, seed=2)["one"].intervals != expected["one"].intervals
    drawn_again = compare(gold, {"one": one, "other": other}, samples=50, seed=2)["other"]
    assert drawn_again.p_values != expected["other"].p_values
    monkeypatch.setattr(significance, "_AT_ONCE", 60)  # three samples at once
    again = compare(gold, {"one": one, "other": other}, samples=50)
    for result in again.values():
        assert all(0 <= low <= high <= 1 for low, high in result.intervals.values())
        assert all(1 / 51 <= p <= 1 for p in result.p_values.values())


def test_files_and_what_one_system_lacks(tmp_path):
    gold, system = treebank(5, 0.7, 1)
    bare = [one.replace(heads=[-1] * len(one), relations=["_"] * len(one)) for one in gold]
    for name, sentences in (("gold", gold), ("system", system), ("bare", bare)):
        write_conllu(sentences, tmp_path / name)
    results = compare(tmp_path / "gold", {"system": tmp_path / "system", "bare": tmp_path / "bare"}, samples=10)
    assert "UAS" in results["system"].intervals
    assert "UAS" not in results["bare"].intervals
    assert set(results["bare"].p_values) == set(results["bare"].evaluation.rows)
    told = json.loads(json.dumps(results["bare"].as_dict()))
    assert told["intervals"]["Words"] == [1, 1]
    assert told["p_values"]["Words"] == 1
    assert "scores" in told
    with pytest.raises(DataError, match="no such file"):
        compare(tmp_path / "gold", {"nothing": tmp_path / "nothing"})


def test_what_cannot_be_compared():
    gold, system = treebank(3, 0.7, 1)
    with pytest.raises(ValueError, match="there is no system"):
        compare(gold, {})
    with pytest.raises(ValueError, match="at least one sample"):
        compare(gold, {"system": system}, samples=0)
