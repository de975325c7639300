"""Segmenters in general: what they say about texts."""

import pytest

from mh4.data.segmenter import Segmenter
from mh4.data.text import Span

WORD = "1\tUgat\tugat\tVERB\t_\t_\t0\troot\t_\t_\n"


class OneSentence(Segmenter):
    """Takes every paragraph as a sentence of one token."""

    files = property(lambda self: {})

    def _tokens(self, texts):
        return [[[Span(0, len(text.rstrip()))]] for text in texts]


@pytest.mark.parametrize("text", [WORD, f"# text = Ugat\n{WORD}\n{WORD}", WORD.replace("\n", "\r\n")])
def test_conllu_taken_as_text_is_told_once(text, caplog):
    assert list(OneSentence().cut(text, "a.conllu"))
    (record,) = caplog.records
    assert record.getMessage().startswith("a.conllu is taken as text, but looks like CoNLL-U; leave out --text")


@pytest.mark.parametrize("text", ["Ugat.", "1\tUgat\n2\tA\n", "1" + "\t2" * 8, f"Ugat.\n\n{WORD}", ""])
def test_other_texts_are_not(text, caplog):
    list(OneSentence().cut(text))
    assert not caplog.records
