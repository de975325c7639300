"""``mh4 bench serve``."""

import sys

import pytest

from mh4.cli.bench.serving import _pages, measure_serving, serving_table
from mh4.cli.bench.text import MIB
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence


def test_a_server_is_measured(small_model):
    found = measure_serving(small_model, None, [1, 3], 0.4, "cpu", 1)
    assert [(run["requests_of"], run["clients"]) for run in found["runs"]] == [
        ("sentence", 1),
        ("sentence", 3),
        ("page", 1),
        ("page", 3),
    ]
    for run in found["runs"]:
        assert run["requests"] > 0
        assert run["wrong"] == 0
        assert 0 < run["p50"] <= run["p99"]
        assert run["words_per_second"] > 0
        if sys.platform == "linux":
            assert run["memory"] > 50 * MIB
            assert 0 <= run["deviation"] < 1
    assert serving_table(found).row_count == 4


def test_an_empty_treebank_and_a_folder_without_a_model(small_model, tmp_path):
    (tmp_path / "empty.conllu").touch()
    with pytest.raises(DataError, match="holds no sentences"):
        measure_serving(small_model, tmp_path / "empty.conllu", [1], 0.1, "cpu", 1)
    with pytest.raises(DataError, match=r"config\.json"):
        measure_serving(tmp_path, None, [1], 0.1, "cpu", 1)


def test_pages_hold_every_sentence_once():
    sentences = [Sentence(["x"] * 90) for _ in range(7)]
    pages = list(_pages(sentences))
    assert [one for page in pages for one in page] == sentences
    assert [sum(map(len, page)) for page in pages] == [450, 180]
