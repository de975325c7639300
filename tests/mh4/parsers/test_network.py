"""What network parsers share: batches of sentences to parse."""

import numpy as np
import pytest
import torch
from small import small_config

from mh4.data.sentence import Sentence
from mh4.models.devices import HostCopy
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


def test_relations_of_all_arcs_are_scored_before_trees_are_found():
    """A decoder can weigh them: here an arc scores what its best relation does."""

    class WithRelations(ChartParser):
        def start_scores(self, encoded):
            own = super().start_scores(encoded).numpy()
            best = self.network.all_label_scores(encoded.states).amax(3)
            own[:, 0, :-1, :-1] += 100 * best.numpy()
            return HostCopy(torch.from_numpy(own))

    sentences = [
        Sentence(["a", "b", "c"] * n, heads=[0, *[1] * (3 * n - 1)], relations=["root", *"xyzxyzxyz"[1 : 3 * n]])
        for n in (1, 3)
    ]
    parser = WithRelations(Definition.learn(small_config("mst"), sentences), device="cpu")
    with torch.inference_mode():
        parser.network.eval()
        states = parser.encode(sentences).states
        every = parser.network.all_label_scores(states)
        b, h, d = (indices.flatten() for indices in torch.meshgrid(*map(torch.arange, every.shape[:3]), indexing="ij"))
        torch.testing.assert_close(every[b, h, d], parser.network.label_scores(states, b, h, d), atol=1e-5, rtol=1e-5)
    plain = ChartParser(Definition.learn(small_config("mst"), sentences), device="cpu")
    plain.network.load_state_dict(parser.network.state_dict())
    best = every.amax(3).numpy()
    for k, (one, other) in enumerate(zip(parser.predict(sentences), plain.predict(sentences), strict=True)):
        words = np.arange(1, len(sentences[k]) + 1)
        assert best[k][one.heads, words].sum() > best[k][other.heads, words].sum()
