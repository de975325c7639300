"""The interface of all parsers: annotate sentences, parse files."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self, Unpack, overload

import torch

from mh4.data.annotation import Annotation
from mh4.data.confidence_columns import Output
from mh4.data.conllu import read_conllu
from mh4.data.document import Document
from mh4.data.errors import DataError, ErrorPolicy, Errors
from mh4.data.files import atomic_output, check_apart, may_wait
from mh4.data.guesses import ATTEMPT, K_BEST, PARSER, Guided, guided
from mh4.data.segmenter import Segmenter
from mh4.data.sentence import Sentence
from mh4.data.stream import Stream
from mh4.data.writing import output_format, sentence_writer
from mh4.trees.evaluation import Evaluation, evaluate

from .ahead import WORKERS, answered
from .answers import Answers, with_trees
from .checking import check_flag
from .folder import ModelFolder
from .long_sentences import LONGEST, in_pieces
from .packages.hub import Shared
from .relation_places import RelationPlaces
from .request import ANNOTATED, HEADS, Boundaries, CallOptions, ParseOptions, Request, describing_options
from .sources import (
    Sentences,
    as_items,
    as_sentence,
    as_sentences,
    check_batch_words,
    check_format,
    check_sentences,
    check_text,
    check_words,
    read_file,
    require_segmenter,
    windows,
    words_alone,
)

log = logging.getLogger("mh4")


class Count(NamedTuple):
    """How much was parsed."""

    sentences: int
    words: int


class Parser(Shared, Guided, ABC):
    """A trained parser: exact, greedy, perceptron or an ensemble. Several threads may share it.

    Attributes
    ----------
    single_root : bool
        Whether all its trees have exactly one child of the root.
    can_keep_heads : bool
        Whether it can keep given heads and predict the others around them.
    annotates : frozenset
        Columns that it predicts besides trees, among "upos", "xpos", "feats" and "lemmas".
    needs : frozenset
        Columns, "upos" or "xpos", that every word must have before it is parsed.
    places : RelationPlaces
        Which relations occur at the root only, or never there.
    treebanks : tuple of str
        Names of the treebanks that it can parse as, if it was trained on several.
    spaced_words : bool
        Whether many words of its treebank contain spaces, as in Vietnamese.
    segmenter : mh4.data.segmenter.Segmenter, optional
        Splits text into sentences and words, if the model can.
    meta : dict
        Contents of meta.json: language, treebank, licence, scores on dev, version, command, time; empty for ensembles.

    Examples
    --------
    >>> parser = mh4.load("models/hu")                          # doctest: +SKIP
    >>> parser(["A", "kutya", "ugat", "."]).heads               # doctest: +SKIP
    >>> for sentence in parser.parse("input.conllu"): ...       # doctest: +SKIP
    """

    single_root: bool = True
    can_keep_heads: bool = False
    annotates: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    places: RelationPlaces = RelationPlaces.of_ud()
    treebanks: tuple[str, ...] = ()
    spaced_words: bool = False
    meta: Mapping[str, Any] = MappingProxyType({})

    _guesses = PARSER

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        if cls is Parser:
            raise TypeError('mh4.Parser is the type of all parsers; write mh4.load("FOLDER")')
        return super().__new__(cls)

    @overload
    def __call__(self, words: str, **options: Unpack[CallOptions]) -> Document: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, words: Sentence | Iterable[str], **options: Unpack[CallOptions]
    ) -> Sentence: ...

    @overload
    def __call__(self, words: Iterable[Sentence | Sequence[str]], **options: Unpack[CallOptions]) -> Document: ...

    def __call__(self, words: Any, **options: Unpack[CallOptions]) -> Sentence | Document:
        """Parse a text into a `Document`; or one sentence, a list of words or a `Sentence`; or a list of sentences.

        Options are those of `parse`, except ``errors``, ``format`` and ``k_best``.

        Raises
        ------
        DataError
            A word is empty or contains a tab, a line break or NUL; the text is not valid Unicode; or the given heads
            cannot be kept.
        ValueError
            The model has no segmenter for the text; or a path was given.
        """
        _check_one_tree(options)
        request = self._checked(options)
        if isinstance(words, Path):
            raise ValueError(f"a parser takes text or words: write parser.parse({str(words)!r}) for a file")
        if isinstance(words, str):
            return self._document(self._cut_text(words, request), request)
        if isinstance(words, Sentence):
            return next(self._annotated([words], request))
        items = list(as_items(words))
        if items and isinstance(items[0], str):
            if not self.spaced_words:
                check_words(items)
            return next(self._annotated([Sentence.from_words(items)], request))
        return self._document(items, request)

    def cut(self, text: str, source: str = "text", *, boundaries: Boundaries = "segmenter") -> Document:
        """Split a text into sentences and words; ``source`` names it in messages; for ``boundaries`` see `parse`.

        Raises
        ------
        DataError
            The text is not valid Unicode, or contains NUL.
        ValueError, TypeError
            The model has no segmenter, or the parser does not support such boundaries; the text is not a string.
        """
        check_text(text)
        return Document(self.segmenter_for(self._checked({"boundaries": boundaries})).cut(text, source))

    def segmenter_for(self, request: Request, before_batch: Callable[[], object] | None = None) -> Segmenter:
        """The segmenter for a request, or a ValueError; ``before_batch`` is that of `ChartParser.tree_scores`."""
        if request.boundaries == "segmenter":
            return require_segmenter(self.segmenter)
        raise ValueError("joint boundaries need a single model with an exact decoder")

    def _document(self, sentences: Iterable[Sentence | Sequence[str]], request: Request) -> Document:
        return Document(tree for _, (tree,) in self._parse(as_sentences(sentences), request, Errors(), None))

    @guided(ATTEMPT)
    def attempt(self, sentences: Sequence[Sentence], request: Request | None = None) -> Answers:
        """Answer a request, by default for all columns; errors and warnings are returned, not raised or logged.

        Sentences of more than 2,000 words are parsed in pieces, with a warning; see `long_sentences`.

        Raises
        ------
        ValueError
            The parser does not support the request; see `parse`.
        """
        request = Request() if request is None else request
        if not isinstance(request, Request):
            raise TypeError(f"attempt takes a request, such as mh4.Request(keep_heads=True), not {request!r}")
        check_sentences("attempt", sentences)
        warnings = self.check(request)
        answers = self._answer_all(sentences, request)
        return replace(answers, warnings=warnings + answers.warnings)

    @abstractmethod
    def _answer(self, sentences: Sequence[Sentence], request: Request) -> Answers:
        """See `attempt`; `check` has accepted the request. Columns that it does not ask for are left out."""

    def _answer_all(self, sentences: Sequence[Sentence], request: Request) -> Answers:
        answer = partial(self._answer, request=request)
        answers = in_pieces(answer, sentences, request, self.places.only_root, self.longest, self.unparsable)
        return replace(answers, errors=dict(sorted(answers.errors.items())))

    def unparsable(self, sentence: Sentence) -> DataError | None:
        """The error of a sentence that cannot be parsed, such as one without the tags that trees need; else None."""
        return None

    def limit_charts(self, most: int) -> None:
        """Treat charts of more than ``most`` bytes as too large for memory: their sentences are parsed approximately.

        Charts grow with the cube of a sentence's length, and decoding time grows faster. A server limits both this way.
        """

    @property
    def longest(self) -> int:
        """Length in words of the longest sentence that is parsed as a whole."""
        return LONGEST

    def _answer_and_log(self, sentences: Sequence[Sentence], request: Request) -> Answers:
        return self._answer_all(sentences, request).logged()

    def _checked(self, options: ParseOptions | CallOptions) -> Request:
        """The request for some options; each warning is logged once per parser."""
        request = Request(**options)
        for warning in self.check(request):
            if warning not in self._logged:
                self._logged.add(warning)
                log.warning("%s", warning)
        return request

    @cached_property
    def _logged(self) -> set[str]:
        """Warnings that `_checked` has logged."""
        return set()

    def check(self, request: Request) -> list[str]:
        """Return warnings about columns requested by name, and relations, that the model does not have.

        ValueError: The model predicts none of the columns, cannot keep heads, or does not support another option.
        """
        if request.treebank is not None and request.treebank not in self.treebanks:
            known = ", ".join(self.treebanks)
            known = f"those of the model: {known}" if known else "the model does not tell treebanks apart"
            raise ValueError(f"unknown treebank {request.treebank!r}; {known}")
        if request.confidence or request.trees > 1:
            self._check_certainty(request)
        warnings = self._check_relations(request.unique) if request.unique else []
        if request.keep_heads and not self.can_keep_heads:
            raise ValueError("a transition-based parser cannot keep given heads; use a model with a chart decoder")
        if request.boundaries == "joint":
            self.segmenter_for(request)
        missing = request.columns - self.annotates - {HEADS}
        if request.predict is not None and missing:
            names = ", ".join(name.upper() for name in ANNOTATED if name in missing)
            problem = f"the model does not predict {names}: {self._reason(missing)}"
            if missing == request.columns:
                raise ValueError(problem)
            warnings.append(f"{problem}; given values are kept")
        return warnings

    def _reason(self, columns: frozenset[str]) -> str:
        """Why the parser does not predict some columns."""
        return "it was trained to predict heads and relations alone"

    def _check_certainty(self, request: Request) -> None:
        """ValueError unless the parser has confidences and next best trees."""
        raise ValueError(
            "a greedy parser has no exact decoder, and so neither confidences nor k best trees (use a model that was "
            "trained with a decoder)"
        )

    def _check_relations(self, unique: tuple[str, ...]) -> list[str]:
        """Warnings about relations that the model lacks; ValueError unless it supports unique relations."""
        raise ValueError("unique relations need a single model with a network")

    def predict(self, sentences: Sequence[Sentence], **options: Unpack[ParseOptions]) -> list[Annotation]:
        """Annotations of some sentences, in order; raises the first error."""
        check_sentences("predict", sentences)
        return self._answer_and_log(sentences, self._checked(options)).checked()

    @describing_options
    def parse(
        self,
        source: str | Path | Sentence | Iterable[Sentence | Sequence[str]],
        *,
        errors: ErrorPolicy = "raise",
        format: str = "conllu",
        **options: Unpack[ParseOptions],
    ) -> Stream[Sentence]:
        """Parse CoNLL-U or text; yields the sentences in order, with trees and missing columns predicted.

        Several threads may read from the stream; its ``close()`` stops the work behind it.

        Parameters
        ----------
        source
            A file, ``"-"`` for standard input, or sentences: `Sentence` objects or lists of words; or one `Sentence`.
        errors : {"raise", "skip"} or callable
            What to do with a sentence that is invalid, or whose given heads cannot be kept; see `Errors.of`.
        format : {"conllu", "text", "horizontal", "vertical"}
            Format of the file: CoNLL-U, raw text, one sentence per line (its words separated by spaces), or one word
            per line (an empty line after each sentence).
        **options

        Raises
        ------
        DataError
            The file cannot be read; with ``errors="raise"``, at the first bad sentence.
        ValueError
            ``source`` is text instead of a file, or words instead of sentences; a column is unknown, or the parser
            predicts none of them; or it cannot keep heads.
        """
        parsed = self._open(source, self._checked(options), errors, format)

        def trees() -> Generator[Sentence, None, None]:
            with closing(parsed):
                for _, trees in parsed:
                    yield from trees

        return Stream(trees())

    def pipe(
        self, items: Iterable[str | Sentence | Document | Sequence[str]], **options: Unpack[CallOptions]
    ) -> Stream[Sentence | Document]:
        """Parse many texts, documents or sentences together; yields for each what a call would return.

        They are parsed in windows of at least `WINDOW_WORDS` words. Options are those of a call.

        Raises
        ------
        DataError, ValueError, TypeError
            See `__call__`; raised at the first invalid item, after the results of the items before it.
        """
        _check_one_tree(options)
        if isinstance(items, str | Path | Sentence):
            raise ValueError(
                "parser.pipe takes many texts or sentences; write parser(…) for one, parser.parse for a file"
            )
        return Stream(self._pipe(as_items(items, lines=True), self._checked(options)))

    def _pipe(self, items: Iterable[Any], request: Request) -> Generator[Sentence | Document, None, None]:
        units = (self._unit(item, request, number) for number, item in enumerate(items, start=1))
        grouped: Iterator[list[Sentence | list[Sentence]]] = windows(units, words_in=_words_in)
        for window in grouped:
            sentences = chain.from_iterable([one] if isinstance(one, Sentence) else one for one in window)
            trees = self._annotated(list(sentences), request)
            for one in window:
                yield next(trees) if isinstance(one, Sentence) else Document(islice(trees, len(one)))

    def _unit(self, item: Any, request: Request, number: int) -> Sentence | list[Sentence]:
        """The sentences of a text or document, or a single one."""
        if isinstance(item, str):
            return list(self._cut_text(item, request, f"text {number}"))
        return list(item) if isinstance(item, Document) else as_sentence(item, number)

    def _annotated(self, sentences: Sequence[Sentence], request: Request) -> Iterator[Sentence]:
        """The sentences with their best trees; the first error is raised."""
        answers = self._answer_and_log(sentences, request)
        for i, sentence in enumerate(sentences):
            if i in answers.errors:
                raise answers.errors[i]
            yield from with_trees(sentence, answers.annotations[i], 1)

    def _open(
        self,
        source: str | Path | Sentence | Iterable[Sentence | Sequence[str]],
        request: Request,
        errors: ErrorPolicy,
        format: str,
        batch_words: int | None = None,
        ahead: bool = False,
    ) -> Generator[tuple[Sentence, list[Sentence]], None, None]:
        """Yield each sentence of a source as given, and with its best trees; ``ahead`` lets several threads answer."""
        report = Errors.of(errors)
        check_format(format, request)
        check_batch_words(batch_words)
        if isinstance(source, str | Path):
            sentences = read_file(source, format, report, self.segmenter_for(request) if format == "text" else None)
        else:
            sentences = as_sentences(source)
        return self._parse(sentences, request, report, batch_words, self.workers if ahead else 1)

    @property
    def workers(self) -> int:
        """How many threads answer requests at a time, for a file or for a server."""
        return min(WORKERS, torch.get_num_threads())

    def _parse(
        self, sentences: Sentences, request: Request, report: Errors, batch_words: int | None, workers: int = 1
    ) -> Generator[tuple[Sentence, list[Sentence]], None, None]:
        parsed = answered(windows(sentences, batch_words), lambda own: self._answer_all(own, request), workers)
        with closing(sentences), closing(parsed):
            for window, answers in parsed:
                answers.logged()
                for i, sentence in enumerate(window):
                    if i in answers.errors:
                        report(answers.errors[i])
                    else:
                        yield sentence, with_trees(sentence, answers.annotations[i], request.k_best)

    @guided(K_BEST)
    def k_best(
        self, words: Sentence | Sequence[str], k: int, *, keep_heads: bool = False, treebank: str | None = None
    ) -> list[Sentence]:
        """The k best trees of a sentence, or all if there are fewer, best first; see ``k_best`` of `parse`.

        Raises
        ------
        DataError, ValueError
            See `parse`.
        """
        return list(self.parse([words], keep_heads=keep_heads, k_best=k, treebank=treebank))

    def parse_file(
        self,
        source: str | Path | Sentence | Iterable[Sentence | Sequence[str]],
        target: str | Path,
        *,
        errors: ErrorPolicy = "raise",
        format: str = "conllu",
        min_confidence: float | None = None,
        batch_words: int | None = None,
        on_progress: Callable[[Count], object] | None = None,
        **options: Unpack[ParseOptions],
    ) -> Count:
        """`parse` into a CoNLL-U file, ``"-"`` for standard output; the file appears once it is complete.

        A file named ``.json`` or ``.jsonl`` gets JSON; ``"json"`` is JSON on standard output: see `output_format`.

        ``confidence`` is written to MISC and the comment ``# tree_confidence``; with ``min_confidence``, less certain
        words get ``_`` for HEAD and DEPREL. Standard input or a pipe is parsed whenever no more input is waiting or,
        with ``batch_words``, once that many words have arrived. ``on_progress`` gets the count after every sentence.
        """
        output = Output(bool(options.get("confidence")), min_confidence)
        if min_confidence is not None:
            options["confidence"] = options.get("confidence") or True
        request = self._checked(options)
        target, form = output_format(target)
        check_apart(source, target)
        count = Count(0, 0)
        waiting = isinstance(source, str | Path) and may_wait(source)  # so may a reader of the output
        ahead = isinstance(source, str | Path) and not waiting
        parsed = self._open(source, request, errors, format, batch_words, ahead)
        with closing(parsed), atomic_output(target) as stream, sentence_writer(stream, form) as write:
            for given, trees in parsed:
                for sentence in trees:
                    write(output(sentence, given if request.keep_heads else None))
                if waiting:
                    stream.flush()
                count = Count(count.sentences + 1, count.words + len(trees[0]))
                if on_progress is not None:
                    on_progress(count)
        return count

    @guided({})
    def evaluate(
        self,
        gold: str | Path | Iterable[Sentence],
        *,
        given: str | Iterable[str] | None = None,
        treebank: str | None = None,
    ) -> Evaluation:
        """Parse the words of gold trees (a file or sentences) and score the result; see `mh4.evaluate`.

        ``given`` names gold columns that the parser may see: "upos", "xpos", "feats", "lemmas"; for ``treebank`` see
        `parse`.
        """
        sentences = list(read_conllu(gold) if isinstance(gold, str | Path) else as_sentences(gold))
        return evaluate(sentences, self.parse(words_alone(sentences, given), treebank=treebank))

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a model folder, which ``mh4.load`` reads.

        Raises
        ------
        DataError
            The folder holds a model already, unless ``overwrite`` is True; or it cannot be written.
        ValueError
            An ensemble, whose models have folders of their own.
        """
        check_flag("overwrite", overwrite)
        with ModelFolder(folder).replaced(overwrite) as place:
            self.write(place)
            place.write_origin(self.meta, self.segmenter)

    def write(self, folder: ModelFolder) -> None:
        """Write configuration, vocabulary, weights and calibration into a model folder, each file atomically."""
        raise ValueError("an ensemble has no folder of its own; save its models, such as parser.members[0]")

    def _cut_text(self, text: str, request: Request, name: str = "text") -> Iterator[Sentence]:
        if os.path.isfile(text):
            log.warning("%s is taken as text; write parser.parse(%r) to parse the file", text, text)
        return self.segmenter_for(request).cut(text, name)


def _words_in(unit: Sentence | list[Sentence]) -> int:
    return len(unit) if isinstance(unit, Sentence) else sum(map(len, unit))


def _check_one_tree(options: Mapping[str, Any]) -> None:
    if "k_best" in options:
        raise ValueError("a call gives each sentence one tree; write parser.k_best(…) or parser.parse(…, k_best=…)")
