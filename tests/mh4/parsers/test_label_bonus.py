"""Relations that influence trees: results match an enumeration of all trees with the label bonus of their arcs."""

from dataclasses import replace

import naive
import numpy as np
import pytest
import torch
from small import changed, small_config

from mh4.data.sentence import Sentence
from mh4.decoders import InfeasibleError, decoder_names
from mh4.models import network
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import as_dict, from_dict
from mh4.parsers.definition import Definition
from mh4.parsers.ensemble import EnsembleParser, arc_probabilities
from mh4.parsers.request import Request

BONUS = 0.7
SENTENCES = [
    Sentence(["a", "b", "c", "d"], heads=[0, 1, 1, 3], relations=["root", "x", "y", "z"]),
    Sentence(["d", "a"], heads=[2, 0], relations=["x", "root"]),
    Sentence(["c", "b", "d"], heads=[2, 0, 2], relations=["z", "root", "y"]),
]


def parser_of(decoder, bonus=BONUS, **settings):
    """Return a parser with random weights, scaled so that relations decide as much as arcs."""
    config = replace(changed(small_config(decoder), **settings), label_bonus=bonus)
    parser = ChartParser(Definition.learn(config, SENTENCES), device="cpu")
    parser.network.eval()
    with torch.no_grad():
        parser.network.labeler.output.weight *= 40
    return parser


@torch.no_grad()
def best_logs(parser, sentence):
    """Return log p of the best allowed relation of each arc [head, dependent], computed arc by arc."""
    states = parser.encode([sentence]).states
    names = parser.vocabulary.relations
    found = np.full((len(sentence) + 1,) * 2, np.nan)
    for h in range(len(sentence) + 1):
        for d in range(1, len(sentence) + 1):
            scores = parser.network.label_scores(states, *(torch.tensor([k]) for k in (0, h, d)))[0].double().numpy()
            may = np.array([(name == "root") == (h == 0) for name in names])
            found[h, d] = scores[may].max() - np.log(np.exp(scores[may]).sum())
    return found


def all_scores(parser, sentence, weight=BONUS):
    """Return (score with bonus, heads) of every tree of the decoder's class, best first."""
    scores, logs, found = parser.score([sentence])[0], best_logs(parser, sentence), []
    if parser.decoder.channels == ("arc",):  # these scores include the bonus already
        scores = scores - parser_bonus(parser, sentence)
    for tree in naive.all_trees(len(sentence), single_root=True):
        heads = np.array(tree)
        try:
            (derivation,) = parser.decoder.derive_batch(scores[None], [heads])
        except InfeasibleError:
            continue
        arcs = heads[1:], np.arange(1, len(heads))
        found.append((derivation.score + weight * logs[arcs].sum(), tuple(heads[1:].tolist())))
    return sorted(found, reverse=True)


def parser_bonus(parser, sentence):
    with torch.no_grad():
        return parser.arc_bonus(parser.encode([sentence]).states)[0][0].numpy()


@pytest.mark.parametrize("decoder", decoder_names())
def test_trees_scores_and_margins_are_those_of_all_trees(decoder):
    parser = parser_of(decoder)
    moved = 0
    found = parser.predict(SENTENCES)
    listed = parser._answer(SENTENCES, Request(k_best=4)).checked()
    sure = parser.predict_with_margins(SENTENCES)
    for i, sentence in enumerate(SENTENCES):
        trees = all_scores(parser, sentence)
        assert tuple(found[i].heads.tolist()) == trees[0][1]
        assert found[i].score == pytest.approx(trees[0][0], abs=1e-3)
        ours = [listed[i], *listed[i].next_best]
        assert [tuple(one.heads.tolist()) for one in ours] == [heads for _, heads in trees[:4]]
        assert [one.score for one in ours] == pytest.approx([score for score, _ in trees[:4]], abs=1e-3)
        for d, own in enumerate(trees[0][1]):
            others = [score for score, heads in trees if heads[d] != own]
            margin = trees[0][0] - max(others) if others else np.inf
            assert sure[i].confidence.margins[d] == pytest.approx(margin, abs=1e-3)
        moved += trees[0][1] != all_scores(parser, sentence, 0.0)[0][1]
    assert moved


def test_no_relation_is_weighed_where_it_cannot_be():
    """`best_logs` normalises over allowed relations alone; below the root there is only one, which costs nothing."""
    parser = parser_of("mst")
    for sentence in SENTENCES:
        bonus, logs = parser_bonus(parser, sentence), best_logs(parser, sentence)
        assert not bonus[0].any()
        n = len(sentence)
        np.testing.assert_allclose(bonus[: n + 1, 1 : n + 1], BONUS * logs[:, 1:], atol=1e-4)
        assert np.abs(bonus - bonus.T).max() > 0.1


@pytest.mark.parametrize("together", [1, 200, 10**9])
def test_arcs_are_looked_at_in_pieces(together, monkeypatch):
    parser = parser_of("mst")
    whole = parser_bonus(parser, SENTENCES[0])
    monkeypatch.setitem(network._TOGETHER, "cpu", together)
    np.testing.assert_allclose(parser_bonus(parser, SENTENCES[0]), whole, atol=1e-5)


@pytest.mark.parametrize("decoder", ["mst", "mh4-hybrid"])
def test_given_heads_stay(decoder):
    parser = parser_of(decoder)
    for sentence in SENTENCES:
        for _, heads in all_scores(parser, sentence)[-2:]:
            given = sentence.replace(heads=[heads[0], *[-1] * (len(sentence) - 1)])
            found = parser.predict([given], keep_heads=True)[0].heads
            expected = next(tree for _, tree in all_scores(parser, sentence) if tree[0] == heads[0])
            assert tuple(found.tolist()) == expected


def test_relations_count_once_among_the_best_trees():
    """Trees are ranked by their arcs and joint relations, whatever the weight of the bonus."""
    orders = []
    for bonus in (0.0, BONUS):
        parser = parser_of("mst", bonus)
        request = Request(k_best=64, among=64, unique=("x",))
        best = parser._answer(SENTENCES[:1], request).checked()[0]
        orders.append([one.heads.tolist() for one in (best, *best.next_best)])
    assert len(orders[0]) == 64
    assert orders[0] == orders[1]


def test_ensembles_of_scores_see_relations():
    members = [parser_of("mst"), parser_of("mst", seed=2)]
    ensemble = EnsembleParser(members, combine="scores")
    annotations = ensemble.predict(SENTENCES)
    for member in members:
        _, scores = member.annotate_and_score(SENTENCES)
        for own, sentence in zip(scores, SENTENCES, strict=True):
            best = member.decoder.decode(own).heads[1:].tolist()
            assert tuple(best) == all_scores(member, sentence)[0][1]
            assert arc_probabilities(own).shape == own.shape[1:]
    assert len(annotations) == len(SENTENCES)


def test_models_without_the_setting_choose_relations_afterwards():
    config = small_config("mst")
    values = as_dict(config)
    assert values.pop("label_bonus") == 0.0
    assert from_dict(values) == config
    parser = parser_of("mst", 0.0)
    assert parser.arc_bonus(parser.encode(SENTENCES).states) == []
    with pytest.raises(ValueError, match="label_bonus"):
        from_dict(as_dict(config) | {"label_bonus": -1.0})
