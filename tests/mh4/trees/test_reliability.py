"""Reliability and the share of errors found, checked against counts by hand."""

import numpy as np
import pytest

from mh4.data.errors import DataError
from mh4.trees.reliability import Reliability, errors_found, measure_calibration, report_calibration


def test_the_calibration_error_of_a_few_words():
    confidence = np.array([0.95, 0.95, 0.95, 0.95, 0.55, 0.5, np.nan])
    right = np.array([True, True, True, False, False, True, False])
    found = Reliability.of(confidence, right)
    assert (found.words, found.right) == (6, pytest.approx(4 / 6))
    assert [tuple(map(float, one)) for one in found.bins] == [
        pytest.approx((2, 0.525, 0.5)),
        pytest.approx((4, 0.95, 0.75)),
    ]
    assert found.ece == pytest.approx((2 * 0.025 + 4 * 0.2) / 6)
    assert Reliability.of(np.array([1.0, 0.0]), np.array([True, False])).ece == 0
    assert Reliability.of(np.array([np.nan]), np.array([True])).words == 0


def test_errors_are_found_in_the_order_of_looking():
    wrong = np.array([False, True, False, True])
    assert errors_found(np.array([1, 0, 3, 2]), wrong, (0.25, 0.5, 0.75, 1.0)) == {0.25: 0.5, 0.5: 0.5, 0.75: 1, 1.0: 1}
    assert errors_found(np.array([0]), np.array([False]), (1.0,)) == {1.0: 0}


def test_ties_of_confidence_are_looked_at_by_margin():
    heads = np.array([0.5, 0.5, 0.5, 0.9])
    margins, right = np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, False, True, True])
    report = report_calibration(margins, heads, heads, right, right)
    assert report.wrong_heads[0.3] == 1.0
    assert report.heads_before.words == 4
    raw = [one.confidence for one in report.heads_before.bins]
    assert raw == pytest.approx([1 / (1 + np.exp(-margin)) for margin in range(4)])


LINE = "{}\t{}\t_\t_\t_\t_\t{}\t{}\t_\t{}\n"
WORDS = (("a", 2, "x", "Confidence=0.3|HeadConfidence=0.4|Margin=0"), ("b", 0, "root", "Confidence=0.9"))


def conllu(*words):
    return "".join(LINE.format(i, *word) for i, word in enumerate(words, start=1)) + "\n"


def test_a_file_is_measured_against_gold(tmp_path):
    system, gold = tmp_path / "system.conllu", tmp_path / "gold.conllu"
    system.write_text(conllu(*WORDS, ("c", 2, "z", "_")))
    gold.write_text(conllu(("a", 2, "y", "_"), ("b", 0, "root", "_"), ("c", 1, "z", "_")))
    report = measure_calibration(gold, system)
    assert (report.both.words, report.both.right, report.heads.words, report.heads.right) == (2, 0.5, 1, 1.0)
    assert report.both.ece == pytest.approx((0.3 + 0.1) / 2)
    assert report.heads_before.ece == pytest.approx(0.5)
    assert report.as_dict()["both"]["words"] == 2


def test_a_relation_is_right_with_its_subtype(tmp_path):
    system, gold = tmp_path / "system.conllu", tmp_path / "gold.conllu"
    system.write_text(conllu(*WORDS))
    gold.write_text(conllu(("a", 2, "x:y", "_"), ("b", 0, "root", "_")))
    report = measure_calibration(gold, system)
    assert (report.both.words, report.both.right, report.heads.right) == (2, 0.5, 1.0)


def test_a_file_without_confidence_says_what_to_do(tmp_path):
    plain, broken = tmp_path / "plain.conllu", tmp_path / "broken.conllu"
    plain.write_text(conllu(("a", 0, "root", "_")))
    broken.write_text(conllu(("a", 0, "root", "Confidence=high")))
    with pytest.raises(DataError, match=r"plain\.conllu: MISC has no Confidence \(parse with mh4 parse --conf"):
        measure_calibration(plain, plain)
    for misc, message in (
        ("Confidence=high", "could not convert string to float: 'high'"),
        ("Confidence=90", r"Confidence=90 is not a probability from 0 to 1"),
        ("Confidence=0.5|HeadConfidence=-1", "HeadConfidence=-1 is not a probability"),
        ("Confidence=inf", "Confidence=inf is not a probability"),
        ("Confidence=0.5|Margin=-2", "Margin=-2 is negative"),
    ):
        broken.write_text(conllu(("a", 0, "root", "_"), ("b", 1, "x", misc)))
        with pytest.raises(DataError, match=rf"broken\.conllu:2: sentence 1: Confidence, .*: {message}"):
            measure_calibration(broken, broken)


def test_gold_without_trees_is_an_error(tmp_path):
    gold, system = tmp_path / "gold.conllu", tmp_path / "system.conllu"
    gold.write_text(conllu(("a", "_", "_", "_")))
    system.write_text(conllu(("a", 0, "root", "Confidence=0.5")))
    with pytest.raises(DataError, match=r"gold\.conllu:1: sentence 1: HEAD of word 1 is missing"):
        measure_calibration(gold, system)


def test_a_broken_confidence_is_found_inside_a_multiword_token(tmp_path):
    broken, blank = tmp_path / "broken.conllu", "\t_" * 8
    first, second, third = (LINE.format(i, *word) for i, word in enumerate([*WORDS, ("c", 2, "x", "Confidence=7")], 1))
    words = f"{first}1.1\ta{blank}\n2-3\tbc{blank}\n{second}2.1\tb{blank}\n{third}\n"
    broken.write_text(f"{conllu(*WORDS)}# sent_id = s\n{words}")
    with pytest.raises(DataError, match=r"broken\.conllu:10: sentence s: Confidence, .*: Confidence=7 is not"):
        measure_calibration(broken, broken)


def test_certain_words_are_in_the_last_bin():
    found = Reliability.of(np.array([1.0, 0.95, 0.05]), np.array([True, False, False]))
    assert [(one.words, one.right) for one in found.bins] == [(1, 0.0), (2, 0.5)]
    assert found.ece == pytest.approx((0.05 + 2 * 0.475) / 3)


def test_as_many_words_are_looked_at_as_the_share_says_at_the_nearest():
    wrong = np.zeros(30, bool)
    wrong[1] = True
    assert errors_found(np.arange(30), wrong, (0.01, 0.05)) == {0.01: 0.0, 0.05: 1.0}  # 0.3 and 1.5 words: 0 and 2


def test_words_are_looked_at_by_their_own_confidence():
    """Wrong words are found by word confidence, wrong heads by head confidence."""
    heads, words = np.linspace(0.1, 0.9, 10), np.linspace(0.9, 0.1, 10)
    right = np.ones(10, bool)
    head_right, word_right = right.copy(), right.copy()
    head_right[0] = word_right[9] = False
    report = report_calibration(np.ones(10), heads, words, head_right, word_right)
    assert report.wrong_heads[0.1] == report.wrong_words[0.1] == 1.0
    ties = report_calibration(np.linspace(2, 1, 10), np.ones(10), np.ones(10), word_right, word_right)
    assert ties.wrong_heads[0.1] == ties.wrong_words[0.1] == 1.0  # ties: smaller margin first
