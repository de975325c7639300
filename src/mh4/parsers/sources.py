"""Where a parser's sentences come from: CoNLL-U, raw text, words in lines, or Python objects; in windows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mh4.data.arriving import read_arriving
from mh4.data.conllu import read_conllu
from mh4.data.cutting import cut_file
from mh4.data.errors import DataError, Errors, quote
from mh4.data.files import is_standard_input
from mh4.data.sentence import Sentence
from mh4.data.shards import WINDOW_WORDS
from mh4.data.text import read_words

FORMATS = ("conllu", "text", "horizontal", "vertical")


def check_format(name: str) -> None:
    """ValueError for an unknown format."""
    if name not in FORMATS:
        raise ValueError(f"unknown input format {name!r}; known: {', '.join(FORMATS)}")


def read_file(path: str | Path, form: str, report: Errors, segmenter: Path | None) -> Iterator[Sentence | None]:
    """The sentences of a file in one of `FORMATS`, or of standard input (``-``).

    None stands where nothing more has come for a moment: what is there should be parsed now.
    """
    if form == "text":
        return cut_file(require_segmenter(segmenter), path, report)
    if form != "conllu":
        return read_words(path, form, report)
    words = str(path).split()
    if not words:
        raise ValueError("an empty string is no file; write parser(text) to parse text")
    if len(words) > 1 and not os.path.exists(path):  # unlike Path.exists it does not mind how long a text is
        shown = quote(str(path))
        raise ValueError(f"{shown} is no file; write parser({shown}) to parse text, or parser({words[:5]}) for words")
    return read_arriving(report) if is_standard_input(path) else read_conllu(path, errors=report)


def require_segmenter(segmenter: Path | None) -> Path:
    """The segmenter of a model; a ValueError if it has none."""
    if segmenter is None:
        raise ValueError(
            "the model cannot cut text: it has no segmenter.udpipe (train one without --no-segmenter and with "
            "mh4[text] installed, or give words: parser([…]), CoNLL-U, --input horizontal)"
        )
    return segmenter


def as_items(given: Any) -> Iterable[Any]:
    """What a parser was given; a TypeError that says what it takes unless that holds words or sentences."""
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise TypeError(f"a parser takes text, a list of words, a Sentence, or a list of these two; not {given!r}")
    return given


def as_sentences(items: Iterable[Sentence | Sequence[str]]) -> Iterator[Sentence]:
    """Sentences as they are, lists of words as sentences."""
    for number, item in enumerate([items] if isinstance(items, Sentence) else as_items(items), start=1):
        if isinstance(item, str):
            raise ValueError(
                f"{item!r} is a string where a sentence is expected; write parser([…]) for the words of one sentence, "
                "parser.parse([[…], …]) for several, parser(text) for text, or parser.parse(path) for each file"
            )
        yield item if isinstance(item, Sentence) else Sentence.from_words(list(as_items(item)), number=number)


def windows(sentences: Iterable[Sentence | None], batch_words: int | None = None) -> Iterator[list[Sentence]]:
    """Sentences in portions of at least ``batch_words``; by default `WINDOW_WORDS`, fewer at None.

    Before an error about a sentence is raised, those before it are handed on.

    Raises
    ------
    ValueError
        Less than one word.
    """
    if batch_words is not None and batch_words < 1:
        raise ValueError(f"a batch holds one word at least; got {batch_words}")
    waits, most = batch_words is not None, batch_words or WINDOW_WORDS
    window: list[Sentence] = []
    words = 0
    failure: DataError | None = None
    try:
        for sentence in sentences:
            if sentence is not None:
                window.append(sentence)
                words += len(sentence)
            if words >= most or (sentence is None and window and not waits):
                yield window
                window, words = [], 0
    except DataError as error:
        failure = error
    if window:
        yield window
    if failure is not None:
        raise failure
