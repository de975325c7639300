"""Code shared by network parsers: batches, threads and the order of warnings."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from small import ANNOTATING, changed, small_config, small_greedy_config

from mh4.data.sentence import Sentence
from mh4.decoders import Decoder
from mh4.models.devices import on_one_core
from mh4.models.dropout import Dropout
from mh4.parsers import network
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import TransitionConfig
from mh4.parsers.definition import Definition
from mh4.parsers.greedy import GreedyParser
from mh4.parsers.network import prediction_batches
from mh4.parsers.request import Request


@pytest.mark.parametrize(
    ("words", "cells", "padded"),
    [(60, 10**9, 10**9), (10**9, 500, 10**9), (60, 500, 10**9), (1, 1, 1), (10**9, 10**9, 100), (60, 10**9, 20)],
)
def test_prediction_batches_keep_to_their_limits(words, cells, padded, monkeypatch):
    monkeypatch.setattr(network, "BATCH_COST", words)
    monkeypatch.setattr(network, "BATCH_CELLS", cells)
    lengths = [5, 1, 9, 30, 2, 9, 14, 1, 7, 7, 3, 22, 5]
    batches = [[lengths[i] for i in batch] for batch in prediction_batches(lengths, lengths, padded)]
    assert sorted(n for batch in batches for n in batch) == sorted(lengths)

    def within(batch):
        count, longest = len(batch), max(batch)
        padding = count * (longest + 2) ** 2 - sum((n + 2) ** 2 for n in batch)
        return count == 1 or (count * longest <= words and count * (longest + 2) ** 2 <= cells and padding <= padded)

    assert all(map(within, batches))
    for batch, following in pairwise(batches):  # no batch ends before it has to
        assert not within([*batch, following[0]])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_only_a_cpu_parses_less_padding_in_more_batches(device, monkeypatch):
    sentences = [Sentence(["a"] * n) for n in (2, 3, 30)]
    parser = ChartParser(Definition.learn(small_config("mst"), sentences), device="cpu")
    monkeypatch.setattr(network, "PADDED_CELLS", 500)
    monkeypatch.setattr(parser, "device", torch.device(device))
    assert list(parser.batches(sentences)) == ([[0, 1], [2]] if device == "cpu" else [[0, 1, 2]])


def test_batches_are_limited_by_what_the_encoder_counts(monkeypatch):
    sentences = [Sentence(["a"] * n) for n in (2, 3, 4)]
    parser = ChartParser(Definition.learn(small_config("mst"), sentences), device="cpu")
    assert list(parser.batches(sentences)) == [[0, 1, 2]]
    monkeypatch.setattr(parser.network.encoder, "cost", lambda sentence: 500 * len(sentence))
    assert list(parser.batches(sentences)) == [[0, 1], [2]]


def test_parsing_has_no_dropout():
    sentences = [Sentence.from_words(["a", "b", "c"] * n) for n in (1, 2, 3)]
    parser = ChartParser(Definition.learn(small_config("mst"), sentences), device="cpu")
    expected = [prediction.heads.tolist() for prediction in parser.predict(sentences)]
    for seed in range(5):
        torch.manual_seed(seed)
        parser.network.train()
        assert [prediction.heads.tolist() for prediction in parser.predict(sentences)] == expected


@pytest.mark.parametrize("k_best", [1, 2])
def test_decoders_share_no_core_that_others_use(k_best, monkeypatch):
    """A parser by itself decodes on all of its threads, but on one core beside other parsing threads."""
    sentences = [Sentence(["a", "b"]), Sentence(["c", "d"])]
    parser = ChartParser(Definition.learn(small_config("mst"), sentences), device="cpu")
    parser.threads, seen = 3, []
    threads_that_pay = Decoder._threads_that_pay
    monkeypatch.setattr(Decoder, "_threads_that_pay", lambda *asked: seen.append(asked[2]) or threads_that_pay(*asked))
    list(parser.parse(sentences, k_best=k_best))
    with on_one_core():
        list(parser.parse(sentences, k_best=k_best))
    assert seen == [3, 1]


def test_warnings_are_in_the_order_of_their_sentences():
    """Although shorter sentences are parsed first."""
    sentences = [Sentence.from_words(["a"] * n, number=number) for number, n in enumerate((9, 3, 7, 8), start=1)]
    parser = ChartParser(Definition.learn(small_config("eisner"), sentences), device="cpu")
    parser.limit_charts(parser.decoder.chart_bytes(5))
    warnings = parser.attempt(sentences, Request(predict="heads")).warnings
    assert [warning.partition("sentence ")[2][:1] for warning in warnings] == ["1", "3", "4"]


@pytest.mark.parametrize("greedy", [False, True])
def test_the_encoder_and_what_builds_on_it_have_their_own_rates_of_dropout(greedy):
    rates = {"lstm_dropout": 0.21, "mlp_dropout": 0.37}
    sentences = [Sentence(["a", "b"], heads=[0, 1], relations=["root", "x"], upos=["X", "Y"], lemmas=["a", "b"])]
    settings = {**ANNOTATING, **rates}
    config = small_greedy_config(TransitionConfig("mh4"), **settings) if greedy else small_config("mst", **settings)
    network = (GreedyParser if greedy else ChartParser)(Definition.learn(config, sentences), device="cpu").network
    found = {name: own.rate for name, own in network.named_modules() if isinstance(own, Dropout)}
    assert {name.partition(".")[0] for name in found} == {"encoder", "scorer", "labeler", "taggers", "annotator"}
    assert all(rate == (0.21 if name.startswith("encoder.") else 0.37) for name, rate in found.items())


@pytest.mark.parametrize("options", [{"unique": "x"}, {"unique": "x", "among": 3}, {"keep_heads": True}])
def test_columns_are_chosen_for_the_tree_that_is_returned(options, monkeypatch):
    """Scores are set by hand: x is the best relation of every arc, and the third of three trees is ranked first."""
    learnt = Sentence(list("abcd"), heads=[0, 1, 1, 2], relations=list("zxxy"), upos=list("NVNV"), feats=["A=B"] * 4)
    parser = ChartParser(Definition.learn(changed(small_config("eisner"), **ANNOTATING), [learnt]), device="cpu")
    names = parser.vocabulary.relations
    label_scores = torch.tensor([{"x": 3.0, "y": 2.0, "z": 1.0}[name] for name in names])
    read_relations, reader, seen = parser.relations.read, parser.reader, []

    def with_logs(chosen, arcs, *others):
        return read_relations(chosen, arcs, *others)._replace(logs=np.full(4, 0.0 if arcs.start == 8 else -1e4))

    monkeypatch.setattr(parser.network, "label_scores", lambda _, __, heads, ___: label_scores.repeat(len(heads), 1))
    monkeypatch.setattr(parser.relations, "read", with_logs)
    for name in ("choose", "read"):
        method = getattr(reader, name)
        monkeypatch.setattr(reader, name, lambda *given, method=method: seen.append(given[-1]) or method(*given))
    sentence = Sentence(list("abcd"))
    trees = [tree.heads.tolist() for tree in parser.k_best(sentence, 3)]
    seen.clear()
    if "keep_heads" in options:
        sentence = sentence.replace(heads=[-1, trees[0][1], -1, -1], relations=["_", "y", "_", "_"])
    (found,) = parser.parse([sentence], **options)
    assert found.comments == ()  # no rank: a single tree was asked for
    of_words, [(heads, relations)] = seen
    assert heads[1:].tolist() == found.heads.tolist() == trees[2 if "among" in options else 0]
    assert [names[r] for r in relations] == [names[r] for r in of_words] == list(found.relations)


def test_predicted_tags_agree_with_given_ones_unless_these_are_overwritten():
    analyses = [("NOUN", "N", "Number=Sing"), ("NOUN", "M", "Number=Plur"), ("VERB", "V", "_"), ("VERB", "W", "_")]
    upos, xpos, feats = zip(*analyses, strict=True)
    learnt = Sentence(list("abcd"), heads=[0, 1, 1, 1], relations=list("zxxx"), upos=upos, xpos=xpos, feats=feats)
    parser = ChartParser(Definition.learn(changed(small_config("mst"), **ANNOTATING), [learnt]), device="cpu")
    words = Sentence(["new", "newer"])
    bare = parser(words)
    for tag in xpos:
        given = words.replace(xpos=[tag, "_"])
        assert (parser(given).upos[0], tag, parser(given).feats[0]) in analyses
        tags = parser(given, predict="tags", overwrite=True)
        assert (tags.upos, tags.xpos, tags.feats) == (bare.upos, bare.xpos, bare.feats)
