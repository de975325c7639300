"""The models of a server: their names, and a limited number of them in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mh4.data.sentence import Sentence
from mh4.parsers.base import Parser
from mh4.parsers.packages.cache import find_model
from mh4.parsers.registry import load
from mh4.parsers.request import Request

MOST_CHART = 192 << 20  # bytes: about 430 words with mh4-hybrid or 100 with 1ec, which take seconds to parse
# For each extension, a request that a parser can check if it supports the extension.
_EXTENSIONS = {
    "confidence": Request(confidence=True),
    "k_best": Request(k_best=2),
    "keep_heads": Request(keep_heads=True),
}


@dataclass(frozen=True)
class ServedModel:
    """A model of a server.

    Attributes
    ----------
    name
        Its name in requests and answers.
    folder : Path
    abilities : tuple of str
        Some of "tokenizer", "tagger" and "parser", in the terms of UDPipe's protocol.
    extensions : tuple of str
        Some of "confidence", "k_best" and "keep_heads", which extend the protocol.
    language, licence
        From its meta.json; "" if missing there.
    """

    name: str
    folder: Path
    abilities: tuple[str, ...]
    extensions: tuple[str, ...]
    language: str
    licence: str


class ServedModels:
    """The models of a server. Any number of threads may share them.

    All are loaded once at the start; models dropped from memory are loaded again on demand. A model answers to its
    name, to any prefix of it that ends before a hyphen, and to its language; if several match, the first one answers.

    Parameters
    ----------
    given : sequence of str
        ``FOLDER`` or ``NAME=FOLDER``; the first is the default. The default name of a model is that of its folder.
    most
        Maximum number of models in memory, by default all; the least recently used one is dropped.
    **loading
        Arguments of `mh4.load`.

    Raises
    ------
    ValueError
        No model is given, a name or a folder is empty, or two models have the same name.
    DataError
        A folder cannot be read.
    """

    def __init__(self, given: Sequence[str], most: int | None = None, **loading: Any) -> None:
        if not given:
            raise ValueError("a server needs a model: mh4 serve FOLDER")
        self._most = most or len(given)
        self._loading = loading
        self._lock = threading.Lock()  # held for a moment only, whatever is being loaded
        self._loader = threading.Lock()  # one model is loaded at a time
        self._loaded: OrderedDict[str, Parser] = OrderedDict()
        named = [_named(one) for one in given]
        for i, (name, _) in enumerate(named):
            if name in [earlier for earlier, _ in named[:i]]:
                raise ValueError(f"two models are called {name}; name them: mh4 serve NAME=FOLDER NAME=FOLDER")
        self.models = [self._first_seen(*one) for one in named]
        self._by_name = {model.name: model for model in self.models}
        for model in self.models:
            parts = model.name.split("-")
            shorter = ["-".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]
            for name in filter(None, (*shorter, model.language)):
                self._by_name.setdefault(name, model)

    @property
    def default(self) -> ServedModel:
        """The model that answers requests without a name."""
        return self.models[0]

    @property
    def workers(self) -> int:
        """Number of threads that may parse at a time with each of the models in memory."""
        return min(parser.workers for parser in self._loaded.values())

    def find(self, name: str | None) -> ServedModel | None:
        """The model that answers to a name, by default the first one; None if there is none."""
        return self._by_name.get(name) if name else self.default

    def in_memory(self, model: ServedModel) -> bool:
        """Whether the model's parser is loaded."""
        return model.name in self._loaded

    def parser(self, model: ServedModel) -> Parser:
        """The parser of a model, loaded if it is not in memory; one in memory does not wait for another's loading."""
        return self._parser(model.name, model.folder)

    def warm_up(self) -> None:
        """Parse a sentence with each model in memory, so that no request waits for kernels to be compiled."""
        for parser in self._loaded.values():
            with suppress(ValueError):  # a perceptron needs tags
                parser.attempt([Sentence(["a", "b"])])

    def _parser(self, name: str, folder: Path) -> Parser:
        if (found := self._in_memory(name)) is not None:
            return found
        with self._loader:
            if (found := self._in_memory(name)) is not None:  # loaded while this thread waited
                return found
            with self._lock:
                while len(self._loaded) >= self._most:
                    self._loaded.popitem(last=False)
            parser = load(folder, **self._loading)
            parser.limit_charts(MOST_CHART)
            with self._lock:
                self._loaded[name] = parser
            return parser

    def _in_memory(self, name: str) -> Parser | None:
        with self._lock:
            if name in self._loaded:
                self._loaded.move_to_end(name)
            return self._loaded.get(name)

    def _first_seen(self, name: str, folder: Path) -> ServedModel:
        parser = self._parser(name, folder)
        abilities = ["tokenizer"] * (parser.segmenter is not None) + ["tagger"] * bool(parser.annotates) + ["parser"]
        language, licence = (str(parser.meta.get(key) or "") for key in ("language", "licence"))
        return ServedModel(name, find_model(folder), tuple(abilities), tuple(_extensions(parser)), language, licence)


def _extensions(parser: Parser) -> Iterator[str]:
    for name, request in _EXTENSIONS.items():
        with suppress(ValueError):
            parser.check(request)
            yield name


def _named(given: str) -> tuple[str, Path]:
    name, equals, folder = given.partition("=")
    if not equals or Path(given).is_dir():
        name, folder = Path(given).resolve().name, given
    if not name or not folder:
        raise ValueError(f"{given}: the model has no {'folder' if name else 'name'}; write NAME=FOLDER")
    # Whole paths, which are not confused with other words when messages are rid of them.
    return name, Path(folder).resolve() if Path(folder).is_dir() else Path(folder)
