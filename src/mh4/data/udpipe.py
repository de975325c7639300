"""The segmenter of models trained before version 1.1: a model of UDPipe 1 (Straka and Straková 2017)."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Self

from mh4.machine import require

from .errors import DataError
from .segmenter import Segmenter, shortened
from .text import Span
from .values import FORM, MISC

EXTRA = "text"
UDPIPE_FILE = "segmenter.udpipe"

_HEADER = b"\x12morphodita_parsito"  # of a model of UDPipe 1

# UDPipe ends a text at NUL, and takes for words some characters that are white space to Python and to line readers.
_FOR_UDPIPE = str.maketrans({"\0": "\1"} | dict.fromkeys("\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029", " "))
_RANGE = re.compile(r"TokenRange=(\d+):(\d+)")


class UDPipeSegmenter(Segmenter):
    """A UDPipe model with a tokenizer, loaded when it first cuts text.

    Parameters
    ----------
    path
        The model file, named in messages.
    content
        The content of the file.
    """

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content = path, content
        self._lock = Lock()
        self._loaded: tuple[Any, Any] | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[Path, bytes]]:
        return type(self), (self.path, self.content)

    @property
    def files(self) -> Mapping[str, bytes]:
        return {UDPIPE_FILE: self.content}

    def _load(self) -> tuple[Any, Any]:
        """Load module and model; a `DataError` if the file is damaged, a ValueError without `ufal.udpipe`."""
        udpipe = require("ufal.udpipe", EXTRA)
        with self._lock:
            if self._loaded is None:
                self._loaded = udpipe, self._read(udpipe)
        return self._loaded

    def _read(self, udpipe: Any) -> Any:
        model = None
        if self.content.startswith(_HEADER):  # on any other file, UDPipe ends the process
            descriptor, name = tempfile.mkstemp(prefix="mh4-", suffix=".udpipe")
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(self.content)
                model = udpipe.Model.load(name)
            finally:
                Path(name).unlink()
        if model is None or model.newTokenizer("") is None:
            raise DataError(f"{self.path}: is damaged or is not a UDPipe segmenter (train the model again)")
        return model

    def _tokens(self, texts: Sequence[str]) -> list[list[list[Span]]]:
        udpipe, model = self._load()
        writer = udpipe.OutputFormat.newConlluOutputFormat()
        found = []
        for text in texts:
            error, tokenizer = udpipe.ProcessingError(), model.newTokenizer(udpipe.Model.TOKENIZER_RANGES)
            tokenizer.setText(text.translate(_FOR_UDPIPE))
            sentences: list[list[Span]] = []
            while tokenizer.nextSentence(sentence := udpipe.Sentence(), error):
                sentences.append(
                    [short for token in _read_tokens(writer.writeSentence(sentence)) for short in shortened(token)]
                )
            if error.occurred():
                raise DataError(f"{self.path}: {error.message}")
            found.append(sentences)
        return found


def _read_tokens(conllu: str) -> Iterator[Span]:
    """Yield the tokens of a sentence in UDPipe's CoNLL-U output."""
    rows = [line.split("\t") for line in conllu.split("\n") if line[:1].isdigit()]
    row = 0
    while row < len(rows):
        first, dash, last = rows[row][0].partition("-")
        start, stop = _RANGE.search(rows[row][MISC]).groups()  # type: ignore[union-attr]
        words = rows[row + 1 : row + 2 + int(last) - int(first)] if dash else []
        yield Span(int(start), int(stop), tuple(word[FORM] for word in words))
        row += 1 + len(words)
