"""Splitting words into pieces, and long sentences into windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_bert import make_tokenizer
from tokenizers import Tokenizer, models, pre_tokenizers

from mh4.models import word_pieces
from mh4.models.encoder import FileError
from mh4.models.word_pieces import PieceBatch, PieceVocabulary, WordPieces, windows

COUNTS = st.lists(st.integers(1, 9), min_size=1, max_size=60).map(np.array)


@given(COUNTS, st.integers(12, 40))
def test_every_piece_is_in_the_window_that_its_state_comes_from(counts, room):
    starts, chosen = windows(counts, room)
    total = counts.sum()
    size = min(room, total)
    pieces = np.arange(total)
    assert (starts[chosen] <= pieces).all()
    assert (pieces < starts[chosen] + size).all()
    assert starts[0] == 0
    assert starts[-1] + size == total
    assert (np.diff(starts) > 0).all()
    assert (np.diff(starts) <= room // 2).all()  # windows overlap by at least half


@given(COUNTS, st.integers(20, 40))
def test_the_pieces_of_a_word_come_from_the_window_whose_middle_is_closest(counts, room):
    starts, chosen = windows(counts, room)
    ends = counts.cumsum()
    for first, end in zip(ends - counts, ends, strict=True):
        assert len(set(chosen[first:end])) == 1
        middle = (first + end - 1) / 2
        distances = np.abs(starts + (min(room, ends[-1]) - 1) / 2 - middle)
        assert distances[chosen[first]] == distances.min()


def test_a_word_longer_than_a_window_is_not_cut():
    starts, chosen = windows(np.array([1, 100, 1]), 20)
    pieces = np.arange(102)
    assert ((starts[chosen] <= pieces) & (pieces < starts[chosen] + 20)).all()


@pytest.fixture(scope="module")
def vocabulary():
    tokenizer = make_tokenizer(["abc abd abe xyz"] * 9, size=60)
    return PieceVocabulary(tokenizer.backend_tokenizer.to_str().encode(), tokenizer.unk_token_id)


def test_words_are_cut_each_by_itself(vocabulary):
    alone = [vocabulary.pieces([form]).ids.tolist() for form in ("abc", "xq", "abd")]
    together = vocabulary.pieces(["abc", "xq", "abd"])
    assert together.ids.tolist() == [i for own in alone for i in own]
    assert together.counts.tolist() == [len(own) for own in alone]
    assert vocabulary.pieces(["\x01"]).ids.tolist() == [1]  # a control character leaves no piece
    assert (vocabulary.before.tolist(), vocabulary.after.tolist()) == ([2], [3])


def test_of_very_long_words_both_ends_are_read_and_nothing_is_kept_in_memory(vocabulary):
    word = 700 * "abc" + 10_000 * "x" + 700 * "abd"
    ids = vocabulary.pieces([word, "abe"]).ids.tolist()
    assert ids == vocabulary.pieces([word[:500] + word[-500:], "abe"]).ids.tolist()
    assert {"abe"} <= vocabulary._known.keys()
    assert max(map(len, vocabulary._known)) <= 32


def test_few_words_are_remembered(vocabulary, monkeypatch):
    monkeypatch.setattr(word_pieces, "MOST_FORMS", 2)
    monkeypatch.setattr(vocabulary, "_known", {})
    for forms, known in ((["a", "b", "c"], 3), (["d"], 1), (["e", "d"], 2)):
        vocabulary.pieces(forms)
        assert len(vocabulary._known) == known


def test_words_that_spell_special_pieces_are_ordinary(vocabulary):
    for form in ("[SEP]", "a[CLS]b", "[PAD]"):
        assert not {0, 2, 3} & {*vocabulary.pieces([form]).ids.tolist()}
    assert vocabulary.before.tolist() == [2]


def test_special_pieces_that_a_unigram_model_finds_in_words_are_split_into_letters():
    pieces = [
        ("</s>", 0.0),
        ("<unk>", 0.0),
        ("▁", -2.0),
        ("▁a", -3.0),
        ("<", -4.0),
        ("/", -4.0),
        ("s", -4.0),
        (">", -4.0),
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, 1))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(["</s>", "<unk>"])
    vocabulary = PieceVocabulary(tokenizer.to_str().encode(), 1)
    assert vocabulary.pieces(["a</s>", "as"]).ids.tolist() == [3, 2, 4, 2, 5, 2, 6, 2, 7, 3, 6]
    assert vocabulary.pieces(["ö"]).ids.tolist() == [2, 1]  # the unknown piece is special, too


def test_sentences_of_the_same_pieces_are_not_equal_if_their_words_differ():
    one, again, other = (WordPieces(np.array([7, 8, 9]), np.array(counts)) for counts in ([1, 2], [1, 2], [2, 1]))
    assert one.key == again.key != other.key


def test_a_batch_has_the_pieces_of_all_windows(vocabulary):
    sentences = [vocabulary.pieces(["abc"] * count) for count in (30, 3, 20)]
    batch = PieceBatch.of(vocabulary, sentences, 18)
    flat = batch.ids.flatten()
    assert flat[batch.places].tolist() == [i for own in sentences for i in own.ids]
    assert batch.lengths.tolist() == [30, 3, 20]
    assert batch.sizes.max() == 18
    assert (batch.ids[:, 0] == 2).all()
    assert all(row[size - 1] == 3 and (row[size:] == 0).all() for row, size in zip(batch.ids, batch.sizes, strict=True))


def test_what_is_no_tokenizer_is_named():
    with pytest.raises(FileError, match=r"^tokenizer\.json: is not a tokenizer"):
        PieceVocabulary(b"{}", 0)
