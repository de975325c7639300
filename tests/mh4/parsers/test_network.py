"""What network parsers share: batches of sentences to parse."""

import pytest
import torch
from small import small_config

from mh4.data.sentence import Sentence
from mh4.parsers import network
from mh4.parsers.chart import ChartParser
from mh4.parsers.definition import Definition
from mh4.parsers.network import prediction_batches


@pytest.mark.parametrize(("words", "cells"), [(60, 10**9), (10**9, 500), (60, 500), (1, 1)])
def test_prediction_batches_keep_to_both_limits(words, cells, monkeypatch):
    monkeypatch.setattr(network, "BATCH_COST", words)
    monkeypatch.setattr(network, "BATCH_CELLS", cells)
    lengths = [5, 1, 9, 30, 2, 9, 14, 1, 7, 7, 3, 22, 5]
    batches = list(prediction_batches(lengths, lengths))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    sizes = [(len(batch), max(lengths[i] for i in batch)) for batch in batches]

    def within(count, longest):
        return count == 1 or (count * longest <= words and count * (longest + 2) ** 2 <= cells)

    assert all(within(*size) for size in sizes)
    for (count, _), following in zip(sizes, batches[1:], strict=False):  # and no batch ends before it has to
        assert not within(count + 1, lengths[following[0]])


def test_parsing_has_no_dropout():
    sentences = [Sentence.from_words(["a", "b", "c"] * n) for n in (1, 2, 3)]
    parser = ChartParser(Definition.learn(small_config("mst"), sentences), device="cpu")
    expected = [prediction.heads.tolist() for prediction in parser.predict(sentences)]
    for seed in range(5):
        torch.manual_seed(seed)
        parser.network.train()
        assert [prediction.heads.tolist() for prediction in parser.predict(sentences)] == expected
