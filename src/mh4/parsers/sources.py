"""Where a parser's sentences come from: CoNLL-U, raw text, words in lines, or Python objects; in windows."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from mh4.data.arriving import read_arriving
from mh4.data.conllu import read_conllu
from mh4.data.errors import Errors, quote
from mh4.data.files import is_descriptor, may_wait, open_input, source_name
from mh4.data.folders import text_name
from mh4.data.segmenter import Segmenter
from mh4.data.sentence import Sentence
from mh4.data.shards import WINDOW_WORDS
from mh4.data.stream import Stream
from mh4.data.text import read_words

from .checking import check_number
from .request import ANNOTATED, Request, given_columns

T = TypeVar("T")
Sentences = Generator[Sentence | None, None, None] | Stream[Sentence]  # both can be closed

_LETTER = re.compile(r"[^\W\d_]")
# Of UD, except X: "Chapter X" is a sentence.
UPOS_TAGS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB"
FORMATS = ("conllu", "text", "horizontal", "vertical")


def check_format(name: str, request: Request) -> None:
    """ValueError for an unknown format, or one that does not allow the request's boundaries."""
    if name not in FORMATS:
        raise ValueError(f"unknown input format {name!r}; known: {', '.join(FORMATS)}")
    if name != "text" and request.boundaries != "segmenter":
        raise ValueError(f'boundaries can be chosen only in raw text, format="text"; got {name}')


def read_file(path: str | Path, form: str, report: Errors, segmenter: Segmenter | None) -> Sentences:
    """Yield the sentences of a file in one of `FORMATS`, of standard input (``-``) or of a pipe.

    None is yielded where no more input is waiting, and the sentences so far should be parsed.
    """
    if form == "text":
        return _cut_file(require_segmenter(segmenter), path, report)
    if form != "conllu":
        return read_words(path, form, report)
    words = path.split() if isinstance(path, str) else [path]
    if not words:
        raise ValueError("an empty string is not a file; write parser(text) to parse text")
    if len(words) > 1 and not os.path.exists(path):  # Path.exists may raise an error for a long text
        shown = quote(str(path))
        instead = f"parser({shown}) to parse text, or parser({words[:5]}) for words"
        if re.search(r"^[0-9]+\t", str(path), re.MULTILINE):
            instead = "parser(mh4.Document.from_conllu(text)) for a string in CoNLL-U"
        raise ValueError(f"{shown} is not a file; write {instead}")
    return read_arriving(path, report) if may_wait(path) else read_conllu(path, errors=report)


def _cut_file(segmenter: Segmenter, path: str | Path, report: Errors) -> Generator[Sentence | None, None, None]:
    """Yield the sentences of a text file; the document is named after the file, unless it is a file descriptor."""
    stem = "" if is_descriptor(path) else text_name(Path(path).name)
    document = "".join(character if character.isprintable() else "_" for character in stem)
    with open_input(path) as stream:
        yield from segmenter.cut_stream(stream, source_name(path), report, document)


def require_segmenter(segmenter: Segmenter | None) -> Segmenter:
    """The segmenter of a model; a ValueError if it has none."""
    if segmenter is None:
        raise ValueError(
            "the model cannot split text: it has no segmenter (train it with one, or give words: "
            'parser([…]), CoNLL-U, format="horizontal")'
        )
    return segmenter


def as_items(given: Any, lines: bool = False) -> Iterable[Any]:
    """Return ``given``, words or sentences in order; a TypeError with advice for anything else.

    An open file is accepted only with ``lines``: each of its lines is an item.
    """
    if isinstance(given, Path):
        raise TypeError(f"{given} is a path where words or sentences are expected; write parser.parse(path)")
    if type(given).__module__.startswith("spacy."):
        raise TypeError("spaCy's documents cannot be parsed here; write parser([token.text for token in doc])")
    if hasattr(given, "read") and not lines:
        raise TypeError("open files cannot be parsed; write parser.parse(path), or parser(file.read()) for its text")
    if isinstance(given, bytes | Mapping | Set) or not isinstance(given, Iterable) or hasattr(given, "columns"):
        # Iterating over a data frame would yield the names of its columns.
        raise TypeError(f"a parser takes text, a list of words, a Sentence, or a list of these two; not {given!r}")
    return given


def check_text(text: str) -> None:
    """TypeError unless this is a string."""
    if not isinstance(text, str):
        raise TypeError(f"cut takes a text, not {reprlib.repr(text)}")


def check_sentences(method: str, sentences: Sequence[Sentence]) -> None:
    """TypeError unless these are a sequence of sentences."""
    if isinstance(sentences, Sentence | str | bytes) or not isinstance(sentences, Sequence):
        raise TypeError(f"{method} takes a list of sentences; write [mh4.Sentence(words), …]")
    if wrong := [one for one in sentences if not isinstance(one, Sentence)]:
        shown = reprlib.repr(wrong[0])
        raise TypeError(f"{method} takes a list of sentences; write [mh4.Sentence(words), …] instead of [{shown}, …]")


def as_sentences(items: Sentence | Iterable[Sentence | Sequence[str]]) -> Generator[Sentence, None, None]:
    """Yield sentences as they are, and lists of words as sentences."""
    for number, item in enumerate([items] if isinstance(items, Sentence) else as_items(items), start=1):
        yield as_sentence(item, number)


def as_sentence(item: Sentence | Sequence[str], number: int) -> Sentence:
    """Return a sentence as it is, or a list of words as a sentence; ``number`` is its position in the input, from 1."""
    if isinstance(item, str):
        raise ValueError(
            f"{quote(item)} is a string where a sentence is expected; write parser([…]) for the words of one sentence, "
            "parser.parse([[…], …]) for several, parser(text) for text, parser.pipe(texts) for several texts, or "
            "parser.parse(path) for each file"
        )
    if isinstance(item, Sentence):
        return item
    words = list(as_items(item))
    if words and isinstance(words[0], Sentence):
        raise TypeError(f"item {number} is a document, not a sentence; write parser.pipe(documents)")
    if len(words) == 2 and isinstance(words[1], str) and words[1] in UPOS_TAGS.split():
        raise ValueError(f"{words} is a word with its tag, not a sentence; write mh4.Sentence(words, upos=tags)")
    return Sentence.from_words(words, number=number)


def check_words(words: Sequence[Any]) -> None:
    """ValueError if texts are given instead of words: they would be parsed as one sentence."""
    if text := next((word for word in words if isinstance(word, str) and _is_text(word)), None):
        raise ValueError(
            f"{quote(text)} is text where a word is expected; write parser.pipe(texts) for several texts, parser(text) "
            "for one, or parser(mh4.Sentence(words)) if a space belongs to the word"
        )


def _is_text(word: str) -> bool:
    """Whether white space stands between letters."""
    return any(_LETTER.search(left) and _LETTER.search(right) for left, right in pairwise(word.split()))


def check_batch_words(batch_words: int | None) -> None:
    """TypeError or ValueError unless this is a whole number of at least 1, or None."""
    if batch_words is not None:
        check_number("batch_words", batch_words)


def words_alone(sentences: Iterable[Sentence], given: str | Iterable[str] | None = None) -> Iterator[Sentence]:
    """The sentences without their annotation, as input for a parser that is evaluated.

    ``given`` names columns to keep: "upos", "xpos", "feats", "lemmas" or "tags", in a comma-separated string or one by
    one.

    ValueError: A column is unknown, or is HEAD. TypeError: ``given`` is not names.
    """
    stays = frozenset() if given is None else given_columns(given)
    gone = [name for name in (*ANNOTATED, "relations", "deps") if name not in stays]
    for sentence in sentences:
        n = len(sentence)
        columns: dict[str, Any] = {name: ["_"] * n for name in gone}
        yield sentence.replace(heads=[-1] * n, **columns)


def windows(
    items: Iterable[T | None], batch_words: int | None = None, words_in: Callable[[Any], int] = len
) -> Iterator[list[T]]:
    """Group sentences, or other items that consist of words, into windows of at least ``batch_words`` words.

    By default, a window has at least `WINDOW_WORDS` words, but also ends at None, where no more input is waiting.
    Before an error in reading an item is raised, the items before it are yielded.
    """
    waits, most = batch_words is not None, batch_words or WINDOW_WORDS
    window: list[T] = []
    words = 0
    failure: Exception | None = None
    try:
        for item in items:
            if item is not None:
                window.append(item)
                words += words_in(item)
            if words >= most or (item is None and window and not waits):
                yield window
                window, words = [], 0
    except Exception as error:
        failure = error
    if window:
        yield window
    if failure is not None:
        raise failure
