"""Word vectors: from an embedding, predicted from characters, or both."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mh4.data.sentence import Sentence
from mh4.models.bilstm_config import BiLSTMConfig
from mh4.models.bilstm_encoder import BiLSTMEncoder, SentenceEncoder
from mh4.models.checked import as_json
from mh4.models.dropout import Dropout
from mh4.models.encoder import unreported
from mh4.models.weight_average import WeightAverage
from mh4.models.word_encoder import VOCABULARY, WordBatch, WordEncoder
from mh4.models.word_vocabulary import BEGIN, END, UNKNOWN

FREQUENT, RARE, OTHER = [3], [4, 5], [5]  # ids of the characters of words


def encoder(characters, word_unknown=0.0, spelling_dropout=0.0, block_dropout=0.0, character_unknown=0.0):
    torch.manual_seed(1)
    config = BiLSTMConfig(
        word_size=5,
        character_size=4,
        character_hidden=6,
        character_layers=1,
        lstm_dropout=0.0,
        block_dropout=block_dropout,
        characters=characters,
        spelling_dropout=spelling_dropout,
    )
    made = WordEncoder(config, {VOCABULARY: as_json({"words": {"a": 1}, "characters": {"a": 1, "b": 1, "c": 1}})})
    made.word_unknown = torch.tensor([0.0, word_unknown])
    made.character_unknown = torch.tensor([0.0] * 5 + [character_unknown])
    return made


def batch(words):
    """A batch of one sentence; each word is a pair of its index in the vocabulary and the ids of its characters."""
    rows = [torch.tensor([BEGIN, *characters, END]) for _, characters in words]
    return WordBatch(
        torch.tensor([len(words)]),
        torch.tensor([[word for word, _ in words]]),
        torch.arange(len(words))[None],
        torch.cat(rows),
        torch.tensor([len(row) for row in rows]),
    )


def vectors(encoder, *words):
    return encoder(batch(words))[0]


def spelt(encoder, characters):
    return encoder.predict(batch([(UNKNOWN, characters)]), torch.tensor([0]))[0]


def test_rare_words_are_spelt_and_frequent_ones_are_not():
    words = encoder("rare").eval()
    frequent, rare = vectors(words, (1, FREQUENT), (UNKNOWN, RARE))
    torch.testing.assert_close(frequent, words.words.weight[1])
    torch.testing.assert_close(rare, spelt(words, RARE))


def test_all_words_can_be_spelt_and_have_an_embedding():
    words = encoder("all").eval()
    frequent, rare, other = vectors(words, (1, FREQUENT), (UNKNOWN, RARE), (UNKNOWN, OTHER))
    torch.testing.assert_close(frequent, words.words.weight[1] + spelt(words, FREQUENT))
    torch.testing.assert_close(rare, words.words.weight[UNKNOWN] + spelt(words, RARE))
    torch.testing.assert_close(other, words.words.weight[UNKNOWN] + spelt(words, OTHER))


@pytest.mark.parametrize("characters", ["rare", "all"])
def test_frequent_words_are_taken_for_unknown_in_training_only(characters):
    words = encoder(characters, word_unknown=1.0)
    taken = vectors(words.train(), (1, FREQUENT))
    torch.testing.assert_close(taken, vectors(words, (UNKNOWN, FREQUENT)))
    assert not torch.allclose(taken, vectors(words.eval(), (1, FREQUENT)))


def test_frequent_words_may_go_without_their_spelling_in_training_only():
    words = encoder("all", spelling_dropout=0.999999)
    frequent, rare = vectors(words.train(), (1, FREQUENT), (UNKNOWN, RARE))
    torch.testing.assert_close(frequent, words.words.weight[1])
    torch.testing.assert_close(rare, words.words.weight[UNKNOWN] + spelt(words, RARE))
    torch.testing.assert_close(vectors(words.eval(), (1, FREQUENT))[0], frequent + spelt(words, FREQUENT))


def test_characters_are_taken_for_unknown_in_training_only():
    words = encoder("rare", character_unknown=1.0)
    (taken,) = vectors(words.train(), (UNKNOWN, OTHER))
    torch.testing.assert_close(taken, spelt(words.eval(), [UNKNOWN]))
    assert not torch.allclose(taken, spelt(words, OTHER))
    torch.testing.assert_close(vectors(words, (UNKNOWN, OTHER))[0], spelt(words, OTHER))


def test_whole_vectors_are_dropped_in_training_only():
    words, many = encoder("rare", block_dropout=0.2), [(1, FREQUENT)] * 1000
    (kept,) = vectors(words.eval(), (1, FREQUENT))
    rows = vectors(words.train(), *many)
    dropped = (rows == 0).all(1)
    assert 150 < dropped.sum() < 250
    torch.testing.assert_close(rows[~dropped], (kept / 0.8).expand(int((~dropped).sum()), -1))


def test_every_rate_is_that_of_the_settings():
    sizes = {"word_size": 5, "character_size": 4, "character_hidden": 6, "hidden": 6}
    rates = {"lstm_dropout": 0.4, "block_dropout": 0.2, "spelling_dropout": 0.6}
    config = BiLSTMConfig(**sizes, **rates, word_unknown=3.0, character_unknown=0.5, min_word_count=2)
    words = WordEncoder(config, WordEncoder.learn(config, [Sentence.from_words(["a", "a", "b"])], [], unreported))
    assert words.word_unknown.tolist() == pytest.approx([0, 3 / 5])  # "b" is too rare to be a word
    assert words.character_unknown.tolist() == pytest.approx([0] * 3 + [0.5 / 2.5, 0.5 / 1.5])
    assert (words.block_dropout, words.spelling_dropout) == (0.2, 0.6)
    for module in (words, SentenceEncoder(config)):
        assert {own.rate for own in module.modules() if isinstance(own, Dropout)} == {0.4}


def test_taggers_build_on_the_last_layer_unless_another_is_named():
    encoder = SentenceEncoder(BiLSTMConfig(word_size=5, hidden=6, layers=2, lstm_dropout=0.0))
    last, taggers = encoder(torch.randn(1, 3, 5), torch.tensor([3]))
    assert encoder.tagger_layer == 2
    assert torch.equal(last, taggers)


def test_a_sentence_costs_what_its_dearest_source_takes(monkeypatch):
    config = BiLSTMConfig(word_size=5, hidden=6)
    sentence = Sentence.from_words(["a", "b"])
    encoder = BiLSTMEncoder(config, BiLSTMEncoder.learn(config, [sentence]))
    assert encoder.cost(sentence) == 2
    sources = [SimpleNamespace(cost=lambda sentence, cost=cost: cost) for cost in (2, 7, 5)]
    monkeypatch.setattr(BiLSTMEncoder, "sources", sources)
    assert encoder.cost(sentence) == 7


def test_every_source_has_groups_of_its_own(monkeypatch):
    encoder = BiLSTMEncoder(config := BiLSTMConfig(word_size=5, hidden=6), BiLSTMEncoder.learn(config, []))
    groups = [[{"rate": 1.0}], [], [{"rate": 2.0}, {"rate": 3.0}]]
    sources = [SimpleNamespace(parameter_groups=lambda own=own: own) for own in groups]
    monkeypatch.setattr(BiLSTMEncoder, "sources", sources)
    assert encoder.parameter_groups() == [{"rate": 1.0}, {"rate": 2.0}, {"rate": 3.0}]


def test_taggers_may_build_on_a_lower_layer():
    lengths, words = torch.tensor([3, 1]), torch.randn(2, 3, 5)
    encoders = []
    for layers, tagger_layer in ((2, 1), (2, 2), (1, 1)):
        torch.manual_seed(2)
        config = BiLSTMConfig(word_size=5, hidden=6, layers=layers, lstm_dropout=0.0, tagger_layer=tagger_layer)
        encoders.append(SentenceEncoder(config))
    (last, lower), (same, top), (alone, _) = (encoder(words, lengths) for encoder in encoders)
    torch.testing.assert_close(last, same)
    torch.testing.assert_close(same, top)
    torch.testing.assert_close(lower, alone)
    assert (lower[1, 2:] == 0).all()
    assert lower[1, :2].abs().sum() > 0
    lower.sum().backward()
    first, second = (layer.input_weight.grad for layer in encoders[0].lstm.layers)
    assert first.abs().sum() > 0
    assert second is None


@pytest.fixture
def remembering():
    return encoder("all").eval()


@torch.inference_mode()
def test_what_is_remembered_is_what_would_be_computed(remembering, monkeypatch):
    first, both = batch([(UNKNOWN, RARE)]), batch([(1, FREQUENT), (UNKNOWN, RARE), (UNKNOWN, OTHER)])
    remembering(first)
    remembered = remembering(both)
    remembering.forget()
    np.testing.assert_array_equal(remembered, remembering(both))
    monkeypatch.setattr(remembering, "predict", None)
    np.testing.assert_array_equal(remembered, remembering(both))


def test_a_step_of_training_is_seen(remembering):
    optimizer = torch.optim.AdamW(remembering.parameters(), lr=0.1, fused=True)  # as in training
    one = batch([(UNKNOWN, RARE)])
    with torch.inference_mode():
        before = remembering(one)
    remembering(one).sum().backward()
    optimizer.step()
    with torch.inference_mode():
        after = remembering(one)
        remembering.forget()
        np.testing.assert_array_equal(after, remembering(one))
    assert not np.array_equal(before, after)


@torch.inference_mode()
def test_averaged_weights_are_seen(remembering):
    average, one = WeightAverage(remembering, 0.9), batch([(UNKNOWN, RARE)])
    for weight in average.averages.values():
        weight.mul_(2)
    before = remembering(one)
    with average.applied():
        inside = remembering(one)
    assert not np.array_equal(before, inside)
    np.testing.assert_array_equal(remembering(one), before)


@torch.inference_mode()
def test_weights_that_nobody_sees_change_are_not_relied_on():
    words, one = encoder("all").eval(), batch([(UNKNOWN, RARE)])
    before = words(one)
    for weight in words.parameters():
        weight.mul_(2)
    assert not np.array_equal(before, words(one))


def test_shapes_alone_draw_no_normal_numbers(monkeypatch):
    """Normal numbers on the meta device would make PyTorch load its compiler, which takes seconds."""
    monkeypatch.setattr(torch.Tensor, "normal_", None)
    with torch.device("meta"):
        assert encoder("all").words.weight.is_meta


def test_the_root_begins_as_a_small_vector():
    root = SentenceEncoder(BiLSTMConfig(word_size=200)).root.detach()
    assert 0.14 < float(root.abs().max()) <= 0.15
    assert root.unique().numel() > 190
