"""Reading sentences from Python objects, and grouping them in windows."""

import time

import pytest

from mh4.data.annotation import Annotation
from mh4.data.document import Document
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.parsers import sources
from mh4.parsers.answers import Answers
from mh4.parsers.base import Parser
from mh4.parsers.sources import as_sentences, check_words, windows, words_alone


def test_sentences_of_words_are_counted():
    given = Sentence.from_words(["x"], number=7)
    assert [sentence.number for sentence in as_sentences([["a"], given, ["b", "c"]])] == [1, 7, 3]
    with pytest.raises(DataError, match=r"^words: sentence 2: word 2"):
        list(as_sentences([["a"], ["b", ""]]))


def test_a_word_with_its_tag_is_no_sentence_but_a_word_may_be_x():
    (chapter,) = as_sentences([["Chapter", "X"]])
    assert chapter.forms == ("Chapter", "X")
    with pytest.raises(ValueError, match="is a word with its tag, not a sentence"):
        list(as_sentences([["kutya", "NOUN"]]))


@pytest.mark.parametrize("error", [DataError("bad"), ConnectionError("bad"), KeyError("bad")])
def test_windows_hold_words_enough_and_what_came_before_an_error(error):
    def sentences():
        yield from as_sentences([["a"], ["b", "c"], ["d"], ["e"]])
        raise error

    found = []
    with pytest.raises(type(error), match="bad"):
        found.extend([len(sentence) for sentence in window] for window in windows(sentences(), 3))
    assert found == [[1, 2], [1, 1]]


def test_windows_of_a_pipe_hold_words_enough_of_documents_and_sentences(monkeypatch):
    monkeypatch.setattr(sources, "WINDOW_WORDS", 5)
    asked = []

    class Noting(Parser):
        def _answer(self, sentences, request):
            asked.append([len(sentence) for sentence in sentences])
            return Answers([Annotation()] * len(sentences))

    three = ["a", "b", "c"]
    items = [three, three, Sentence(three), Document([Sentence(three)]), three, ["e"]]
    found = list(Noting().pipe(items))
    assert [isinstance(one, Document) for one in found] == [isinstance(item, Document) for item in items]
    assert asked == [[3, 3], [3, 3], [3, 1]]


def test_texts_of_a_pipe_are_numbered():
    named = []

    class Cutting(Parser):
        @property
        def segmenter(self):
            return self

        def cut(self, text, source):
            named.append(source)
            yield Sentence([text])

        def _answer(self, sentences, request):
            return Answers([Annotation()] * len(sentences))

    found = list(Cutting().pipe(["a", ["b"], "c"]))
    assert [isinstance(one, Document) for one in found] == [True, False, True]
    assert named == ["text 1", "text 3"]


@pytest.mark.parametrize("word", ["a b", "Ugat .A", "1 a\tb", "a'\u2028'b"])
def test_text_is_no_word(word):
    with pytest.raises(ValueError, match="is text where a word is expected"):
        check_words(["x", word])


@pytest.mark.parametrize("word", ["10 000", "a ", "1 a 2", " ", "a 1 b", "a" * 100_000])
def test_white_space_may_stand_in_a_word(word):
    before = time.thread_time()
    check_words(["x", word, 3])
    assert time.thread_time() - before < 1


@pytest.mark.parametrize("given", ["heads", "all", "upos,HEAD", "deprel", "x", [], ["tags", ""]])
def test_every_column_that_an_error_lists_can_be_given(given):
    sentence = Sentence(["a"], heads=[0], relations=["root"], upos=["X"])
    with pytest.raises(ValueError, match=r"known: tags, upos, xpos, feats, lemmas$") as raised:
        list(words_alone([sentence], given))
    for known in str(raised.value).partition("known: ")[2].split(", "):
        assert next(words_alone([sentence], known)).heads.tolist() == [-1]
    assert next(words_alone([sentence], "tags")).upos == ("X",)
