"""Treebank vectors, which are added to the vector of every word."""

import pytest
import torch

from mh4.models.bilstm_config import BiLSTMConfig
from mh4.models.bilstm_encoder import BiLSTMEncoder
from mh4.models.encoder import FileError
from mh4.models.layers import SMALL
from mh4.models.treebank_vectors import TreebankVectors

NAMES = ("one", "other", "third")


class Words:
    """The part of `Sentence` that encoders read."""

    def __init__(self, *forms):
        self.forms = forms

    def __len__(self):
        return len(self.forms)


def test_a_sentence_has_the_vector_of_its_treebank_or_the_mean_of_all():
    torch.manual_seed(1)
    vectors = TreebankVectors(4, NAMES)
    shares = torch.stack([vectors.shares(name) for name in ("other", None, "one")])
    expected = torch.stack([vectors.vectors[1], vectors.vectors.mean(0), vectors.vectors[0]])[:, None]
    torch.testing.assert_close(vectors(shares), expected)


def test_it_is_added_to_every_word_and_learns_with_them():
    torch.manual_seed(1)
    config = BiLSTMConfig(word_size=8, character_size=4, character_hidden=8, hidden=8, layers=1, min_word_count=1)
    sentences = [Words("a", "b", "c"), Words("c")]
    alone, several = (
        BiLSTMEncoder(config, BiLSTMEncoder.learn(config, sentences, treebanks=names)).eval() for names in ((), NAMES)
    )
    alone.load_state_dict({name: weight for name, weight in several.state_dict().items() if "treebank" not in name})
    words = alone.words_of(alone.collate([alone.prepare(sentence) for sentence in sentences]))
    own = several.collate([several.prepare(*pair) for pair in zip(sentences, ("third", "one"), strict=True)])
    with_treebanks = several.words_of(own)
    vectors = several.of_treebank.vectors
    torch.testing.assert_close(with_treebanks, words + vectors[[2, 0]][:, None])
    with_treebanks[own.batches[0].mask].sum().backward()
    torch.testing.assert_close(vectors.grad, torch.tensor([1.0, 0.0, 3.0])[:, None].expand(3, 8))


def test_it_begins_as_a_small_vector():
    vectors = TreebankVectors(64, NAMES).vectors
    assert SMALL / 2 < vectors.abs().max() <= SMALL


def test_names_survive_in_files_in_their_order():
    for names in (NAMES, NAMES[::-1]):
        assert TreebankVectors.names_in(TreebankVectors.files_of(names)) == names
    assert TreebankVectors.files_of(()) == {}
    assert TreebankVectors.names_in({}) == ()
    with pytest.raises(FileError):
        TreebankVectors.names_in({"treebanks.json": b"{}"})


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a\x1b[31mb", "a\nb", "a\u202eb"])
def test_a_name_that_could_not_be_shown_or_given_is_an_error(name):
    message = r"^treebanks\.json: .*no white space, '=' or control characters; got '"
    with pytest.raises(FileError, match=message) as said:
        TreebankVectors.names_in(TreebankVectors.files_of(("one", name)))
    assert str(said.value).isprintable()
