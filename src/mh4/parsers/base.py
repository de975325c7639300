"""What every parser offers, whatever it scores with: sentences annotated, files in and out."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, overload

from mh4.data.conllu import read_conllu
from mh4.data.document import Document
from mh4.data.errors import DataError, ErrorPolicy, Errors
from mh4.data.files import atomic_output
from mh4.data.sentence import Annotation, Sentence
from mh4.data.shards import WINDOW_WORDS

from .request import ANNOTATED, HEADS, Request

log = logging.getLogger("mh4")
ROOT_RELATION = "root"


class Count(NamedTuple):
    """How much was parsed."""

    sentences: int
    words: int


def _windows(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Sentences in portions of `WINDOW_WORDS`."""
    window: list[Sentence] = []
    words = 0
    for sentence in sentences:
        window.append(sentence)
        words += len(sentence)
        if words >= WINDOW_WORDS:
            yield window
            window, words = [], 0
    if window:
        yield window


class TreebankParser(ABC):
    """What every parser does with sentences and files. Several threads may share a parser.

    Attributes
    ----------
    single_root : bool
        Whether all its trees have exactly one word below the root.
    can_keep_heads : bool
        Whether it can keep heads that are given, and predict the others around them.
    annotates : frozenset
        Which of the columns "upos", "xpos", "feats" and "lemmas" it predicts beside trees.
    meta : dict
        Of a loaded model, what is known of its training: language, treebank, scores on dev, version, command, time.
    """

    single_root: bool = True
    can_keep_heads: bool = False
    annotates: frozenset[str] = frozenset()
    meta: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def _answer(self, sentences: Sequence[Sentence], request: Request) -> Sequence[Annotation | DataError]:
        """See `attempt`; the request is one that `check` has let pass. What it does not ask for is left out."""

    def attempt(
        self,
        sentences: Sequence[Sentence],
        keep_heads: bool = False,
        *,
        predict: str | Iterable[str] | None = None,
        overwrite: bool = False,
    ) -> Sequence[Annotation | DataError]:
        """As `predict`; in place of an annotation the error of given heads that no tree has."""
        return self._answer(sentences, self.check(predict, keep_heads, overwrite))

    def check(
        self, predict: str | Iterable[str] | None = None, keep_heads: bool = False, overwrite: bool = False
    ) -> Request:
        """The request for some columns; see `parse`. A column that is named, and not predicted, is logged.

        Raises
        ------
        ValueError
            An unknown column, or nothing that the parser predicts; or it cannot keep heads.
        """
        request = Request.of(predict, keep_heads, overwrite)
        if keep_heads and not self.can_keep_heads:
            raise ValueError("a transition-based parser cannot keep given heads; use a model with a chart decoder")
        missing = request.columns - self.annotates - {HEADS}
        if predict is not None and missing:
            names = ", ".join(name.upper() for name in ANNOTATED if name in missing)
            problem = f"the model does not predict {names}: {self._reason(missing)}"
            if missing == request.columns:
                raise ValueError(problem)
            log.warning("%s; what is there stays", problem)
        return request

    def _reason(self, columns: frozenset[str]) -> str:
        """Why the parser does not predict some columns."""
        return "it was trained to predict heads and relations alone"

    def predict(
        self,
        sentences: Sequence[Sentence],
        keep_heads: bool = False,
        *,
        predict: str | Iterable[str] | None = None,
        overwrite: bool = False,
    ) -> list[Annotation]:
        """What `parse` writes to some sentences, in their order; None for a column that does not change.

        Raises
        ------
        DataError
            At the first sentence whose given heads are not those of any tree that the parser can build.
        ValueError
            As for `parse`.
        """
        predictions = []
        for result in self.attempt(sentences, keep_heads, predict=predict, overwrite=overwrite):
            if isinstance(result, DataError):
                raise result
            predictions.append(result)
        return predictions

    def parse(
        self,
        source: str | Path | Iterable[Sentence | Sequence[str]],
        keep_heads: bool = False,
        errors: ErrorPolicy = "raise",
        *,
        predict: str | Iterable[str] | None = None,
        overwrite: bool = False,
    ) -> Iterator[Sentence]:
        """Parse CoNLL-U; yields every sentence with its tree and what else was missing, in order.

        Parameters
        ----------
        source
            A file, ``"-"`` for standard input, or sentences: `Sentence` objects or lists of words.
        keep_heads : bool
            Keep the heads that the input has and predict the others, exactly, around them.
        errors : {"raise", "skip"} or callable
            What happens at a sentence that is not valid, or whose given heads cannot be kept; see `Errors.of`.
        predict : str or iterable of str, optional
            Columns to predict: "heads" (and relations), "upos", "xpos", "feats", "lemmas"; "tags" stands for the three
            in the middle, "all" for everything. By default all that the model knows; all else stays as it is.
        overwrite : bool
            Predict tags and lemmas also where they are given; else only what is "_".

        Raises
        ------
        DataError
            The file cannot be read; with ``errors="raise"``, at the first bad sentence.
        ValueError
            Text where a file is expected, or words where sentences are; an unknown column, or none that the parser
            predicts; or it cannot keep heads.
        """
        request = self.check(predict, keep_heads, overwrite)
        report = Errors.of(errors)
        sentences = _read(source, report) if isinstance(source, (str, Path)) else _sentences(source)
        return self._parse(sentences, request, report)

    def _parse(self, sentences: Iterable[Sentence], request: Request, report: Errors) -> Iterator[Sentence]:
        for window in _windows(sentences):
            for sentence, result in zip(window, self._answer(window, request), strict=True):
                if isinstance(result, DataError):
                    report(result)
                else:
                    yield sentence.annotated(result)

    def parse_file(
        self,
        source: str | Path | Iterable[Sentence | Sequence[str]],
        target: str | Path,
        *,
        keep_heads: bool = False,
        errors: ErrorPolicy = "raise",
        predict: str | Iterable[str] | None = None,
        overwrite: bool = False,
        on_progress: Callable[[Count], object] | None = None,
    ) -> Count:
        """`parse` into a CoNLL-U file, ``"-"`` for standard output; the file appears when it is whole.

        ``on_progress`` is called after every sentence, with what was written so far.
        """
        count = Count(0, 0)
        with atomic_output(target) as stream:
            for sentence in self.parse(source, keep_heads, errors, predict=predict, overwrite=overwrite):
                stream.write(sentence.to_bytes())
                count = Count(count.sentences + 1, count.words + len(sentence))
                if on_progress is not None:
                    on_progress(count)
        return count

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a string is a sequence of strings, too, and an error
        self, words: Sentence | Sequence[str], *, keep_heads: bool = False, **options: Any
    ) -> Sentence: ...

    @overload
    def __call__(
        self, words: Iterable[Sentence | Sequence[str]], *, keep_heads: bool = False, **options: Any
    ) -> Document: ...

    def __call__(self, words: Any, *, keep_heads: bool = False, **options: Any) -> Sentence | Document:
        """Parse one sentence, a list of words or a `Sentence`; or several, which make a `Document`.

        Options are ``predict`` and ``overwrite``, as for `parse`.

        Raises
        ------
        DataError
            A word is empty or holds a tab or a line break; or the given heads cannot be kept.
        ValueError
            A string: text has to be cut into words first.
        """
        if isinstance(words, (str, Path)):
            cut = str(words).split() or ["word"]
            raise ValueError(
                f"a parser takes words: write parser({cut!r}) for a sentence, or parser.parse(path) for a CoNLL-U file"
            )
        if isinstance(words, Sentence):
            return words.annotated(*self.predict([words], keep_heads, **options))
        items = list(words)
        if items and isinstance(items[0], str):
            return self(Sentence.from_words(items), keep_heads=keep_heads, **options)
        return Document(self.parse(items, keep_heads, **options))


def _read(path: str | Path, report: Errors) -> Iterator[Sentence]:
    """The sentences of a file; a name that looks like a sentence, and is no file, is taken for one."""
    if str(path) != "-" and not Path(path).exists() and len(words := str(path).split()) > 1:
        raise ValueError(
            f"{path!r} is no file; write parser({words!r}) to parse the words of a sentence, or name a CoNLL-U file"
        )
    return read_conllu(path, errors=report)


def _sentences(items: Iterable[Sentence | Sequence[str]]) -> Iterator[Sentence]:
    """Sentences as they are, lists of words as sentences."""
    for number, item in enumerate(items, start=1):
        if isinstance(item, str):
            raise ValueError(
                f"{item!r} is a string where a sentence is expected; write parser([…]) for the words of one sentence, "
                "parser.parse([[…], …]) for several, or parser.parse(path) for each file"
            )
        yield item if isinstance(item, Sentence) else Sentence.from_words(item, number=number)


def check_greedy(search: str) -> None:
    """ValueError for a way to search that no greedy parser has."""
    if search not in ("exact", "greedy"):
        raise ValueError(f"search {search!r} is for chart parsers; this is a greedy transition-based parser")
