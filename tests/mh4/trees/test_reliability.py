"""Reliability and the errors found, against counting by hand."""

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


def test_a_file_without_confidence_says_what_to_do(tmp_path):
    plain, broken = tmp_path / "plain.conllu", tmp_path / "broken.conllu"
    plain.write_text(conllu(("a", 0, "root", "_")))
    broken.write_text(conllu(("a", 0, "root", "Confidence=high")))
    with pytest.raises(DataError, match=r"plain\.conllu: MISC states no Confidence \(parse with mh4 parse --conf"):
        measure_calibration(plain, plain)
    for misc, message in (
        ("Confidence=high", "could not convert string to float: 'high'"),
        ("Confidence=90", r"Confidence=90 is no probability, which is in 0…1"),
        ("Confidence=0.5|HeadConfidence=-1", "HeadConfidence=-1 is no probability"),
        ("Confidence=inf", "Confidence=inf is no probability"),
        ("Confidence=0.5|Margin=-2", "Margin=-2 is negative"),
    ):
        broken.write_text(conllu(("a", 0, "root", "_"), ("b", 1, "x", misc)))
        with pytest.raises(DataError, match=rf"broken\.conllu:2: sentence 1: Confidence, .*: {message}"):
            measure_calibration(broken, broken)
