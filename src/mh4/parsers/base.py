"""What every parser offers, whatever it scores with: sentences annotated, files in and out."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Unpack, overload

from mh4.data.confidence_columns import Output, ranked
from mh4.data.document import Document
from mh4.data.errors import DataError, ErrorPolicy, Errors
from mh4.data.files import atomic_output, is_standard_input
from mh4.data.segmenter import Segmenter, SegmenterModel
from mh4.data.sentence import Annotation, Sentence
from mh4.data.shards import WINDOW_WORDS
from mh4.data.stream import Stream
from mh4.data.writing import output_format, sentence_writer
from mh4.decoders.search import beam_width

from .checking import check_flag
from .checksums import write_file
from .folder import META, SEGMENTER, new_folder, write_json
from .long_sentences import LONGEST, in_pieces
from .relation_places import RelationPlaces
from .request import ANNOTATED, HEADS, CallOptions, ParseOptions, Request
from .sources import (
    Sentences,
    as_items,
    as_sentence,
    as_sentences,
    check_batch_words,
    check_format,
    check_words,
    read_file,
    require_segmenter,
    windows,
)

log = logging.getLogger("mh4")

__all__ = ["Count", "TreebankParser", "check_greedy"]


class Count(NamedTuple):
    """How much was parsed."""

    sentences: int
    words: int


class CalledWithWords(ABC):
    """What can be called with text or words; the types that it returns are told once."""

    @overload
    def __call__(self, words: str, **options: Unpack[CallOptions]) -> Document: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, words: Sentence | Sequence[str], **options: Unpack[CallOptions]
    ) -> Sentence: ...

    @overload
    def __call__(self, words: Iterable[Sentence | Sequence[str]], **options: Unpack[CallOptions]) -> Document: ...

    def __call__(self, words: Any, **options: Unpack[CallOptions]) -> Sentence | Document:
        """Parse text, which makes a `Document`; one sentence, a list of words or a `Sentence`; or a list of these.

        Options are ``keep_heads``, ``predict``, ``overwrite``, ``confidence``, ``unique`` and ``among``, as for
        `parse`.

        Raises
        ------
        DataError
            A word is empty or holds a tab, a line break or NUL; text that is not valid Unicode; or the given heads
            cannot be kept.
        ValueError
            Text, and a model without a segmenter; or a path.
        """
        return self._call(words, **options)

    @abstractmethod
    def _call(self, words: Any, **options: Unpack[CallOptions]) -> Sentence | Document:
        """See `__call__`."""


class TreebankParser(CalledWithWords):
    """What every parser does with sentences and files. Several threads may share a parser.

    Attributes
    ----------
    single_root : bool
        Whether all its trees have exactly one word below the root.
    can_keep_heads : bool
        Whether it can keep heads that are given, and predict the others around them.
    annotates : frozenset
        Which of the columns "upos", "xpos", "feats" and "lemmas" it predicts beside trees.
    places : RelationPlaces
        Which relations are for children of the root.
    spaced_words : bool
        Whether many words of its treebank hold spaces, as in Vietnamese.
    segmenter : mh4.data.segmenter.SegmenterModel, optional
        What cuts text, of a loaded model that can.
    meta : dict
        Of a loaded model, what is known of its training: language, treebank, scores on dev, version, command, time.
    """

    single_root: bool = True
    can_keep_heads: bool = False
    annotates: frozenset[str] = frozenset()
    places: RelationPlaces = RelationPlaces.of_ud()
    spaced_words: bool = False
    segmenter: SegmenterModel | None = None
    meta: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def _answer(self, sentences: Sequence[Sentence], request: Request) -> Sequence[Annotation | DataError]:
        """See `attempt`; the request is one that `check` has let pass. What it does not ask for is left out."""

    def attempt(
        self,
        sentences: Sequence[Sentence],
        **options: Unpack[ParseOptions],
    ) -> Sequence[Annotation | DataError]:
        """As `predict`; in place of an annotation the error of given heads that no tree has.

        Sentences of more than 2,000 words are parsed in pieces, with a warning; see `long_sentences`.
        """
        return self._answer_all(sentences, self.check(**options))

    def _answer_all(self, sentences: Sequence[Sentence], request: Request) -> Sequence[Annotation | DataError]:
        return in_pieces(
            lambda pieces: self._answer(pieces, request), sentences, request, self.places.only_root, self.longest
        )

    @property
    def longest(self) -> int:
        """Words of the longest sentence that is parsed as one."""
        return LONGEST

    def check(self, **options: Unpack[ParseOptions]) -> Request:
        """The request that options make; see `parse`. A column that is named, and not predicted, is logged, once.

        Raises
        ------
        ValueError
            An unknown column, or nothing that the parser predicts; or it cannot keep heads, or do what else is wished.
        """
        request = Request.of(**options)
        if request.confidence or request.trees > 1:
            self._check_certainty(request)
        if request.unique:
            self._check_relations(request.unique)
        if request.keep_heads and not self.can_keep_heads:
            raise ValueError("a transition-based parser cannot keep given heads; use a model with a chart decoder")
        missing = request.columns - self.annotates - {HEADS}
        if options.get("predict") is not None and missing:
            names = ", ".join(name.upper() for name in ANNOTATED if name in missing)
            problem = f"the model does not predict {names}: {self._reason(missing)}"
            if missing == request.columns:
                raise ValueError(problem)
            self._warn_once(f"{problem}; what is there stays")
        return request

    def _warn_once(self, problem: str) -> None:
        """Once is enough, also for a parser that is called for each sentence."""
        if problem not in self._logged:
            self._logged.add(problem)
            log.warning("%s", problem)

    @cached_property
    def _logged(self) -> set[str]:
        """What `_warn_once` has said."""
        return set()

    def _reason(self, columns: frozenset[str]) -> str:
        """Why the parser does not predict some columns."""
        return "it was trained to predict heads and relations alone"

    def _check_certainty(self, request: Request) -> None:
        """ValueError unless the parser can say how sure it is, or what the next best trees are."""
        raise ValueError(
            "a greedy parser has no exact decoder, so it cannot say how sure it is of a tree or which one is next best "
            "(use a model that was trained with a decoder)"
        )

    def _check_relations(self, unique: tuple[str, ...]) -> None:
        """ValueError unless the parser can keep relations unique under each head."""
        raise ValueError("only a single model with a network can keep relations unique")

    def predict(self, sentences: Sequence[Sentence], **options: Unpack[ParseOptions]) -> list[Annotation]:
        """What `parse` writes to some sentences, in their order; None for a column that does not change.

        Raises
        ------
        DataError
            At the first sentence whose given heads are not those of any tree that the parser can build.
        ValueError
            As for `parse`.
        """
        predictions = []
        for result in self.attempt(sentences, **options):
            if isinstance(result, DataError):
                raise result
            predictions.append(result)
        return predictions

    def parse(
        self,
        source: str | Path | Iterable[Sentence | Sequence[str]],
        *,
        errors: ErrorPolicy = "raise",
        format: str = "conllu",
        **options: Unpack[ParseOptions],
    ) -> Stream[Sentence]:
        """Parse CoNLL-U or text; yields every sentence with its tree and what else was missing, in order.

        Several threads may draw from what is returned; its ``close()`` ends the work behind it.

        Parameters
        ----------
        source
            A file, ``"-"`` for standard input, or sentences: `Sentence` objects or lists of words; or one `Sentence`.
        errors : {"raise", "skip"} or callable
            What happens at a sentence that is not valid, or whose given heads cannot be kept; see `Errors.of`.
        keep_heads : bool
            Keep the heads that the input has and predict the others, exactly, around them.
        predict : str or iterable of str, optional
            Columns to predict: "heads" (and relations), "upos", "xpos", "feats", "lemmas"; "tags" stands for the three
            in the middle, "all" for everything. By default all that the model knows; all else stays as it is.
        overwrite : bool
            Predict tags and lemmas also where they are given; else only what is "_".
        format : {"conllu", "text", "horizontal", "vertical"}
            Of the file: raw text, one sentence per line (its words separated by spaces), one word per line (an empty
            line after each sentence).
        confidence : bool or "all"
            Say how sure the parser is of each word: `Word.confidence`, `Word.margin`, and as `Word.alternatives` the
            best other head or, with "all", all of them.
        k_best : int
            Yield each sentence with its k best trees, best first, each with its score, comments ``# rank`` and
            ``# score``, and a sent_id of its own; with fewer if there are fewer trees.
        unique : str or iterable of str, optional
            Relations, such as "nsubj,obj", that a word has at most one dependent with; subtypes count as the whole. The
            best relations under this limit are found exactly.
        among : int
            With ``unique``, look among so many of the best trees for the best ones together with their relations: the
            scores of the tree and the logarithms of the relations' probabilities are added up.

        Raises
        ------
        DataError
            The file cannot be read; with ``errors="raise"``, at the first bad sentence.
        ValueError
            Text where a file is expected, or words where sentences are; an unknown column, or none that the parser
            predicts; or it cannot keep heads.
        """
        parsed = self._open(source, self.check(**options), errors, format)

        def trees() -> Generator[Sentence, None, None]:
            with closing(parsed):
                for _, trees in parsed:
                    yield from trees

        return Stream(trees())

    def pipe(
        self, items: Iterable[str | Sentence | Sequence[str]], **options: Unpack[CallOptions]
    ) -> Stream[Sentence | Document]:
        """Parse many texts, or many lists of words; yields what a call makes of each, a document or a sentence.

        They are parsed together, `WINDOW_WORDS` words at a time. Options are those of a call.

        Raises
        ------
        DataError, ValueError, TypeError
            As a call, at the first item that is wrong.
        """
        _check_one_tree(options)
        if isinstance(items, str | Path | Sentence):
            raise ValueError(
                "parser.pipe takes many texts or sentences; write parser(…) for one, parser.parse for a file"
            )
        return Stream(self._pipe(as_items(items), self.check(**options)))

    def _pipe(self, items: Iterable[Any], request: Request) -> Generator[Sentence | Document, None, None]:
        def parsed(window: list[Sentence | list[Sentence]]) -> Iterator[Sentence | Document]:
            sentences = chain.from_iterable([one] if isinstance(one, Sentence) else one for one in window)
            trees = self._annotated(list(sentences), request)
            for one in window:
                yield next(trees) if isinstance(one, Sentence) else Document(islice(trees, len(one)))

        window: list[Sentence | list[Sentence]] = []
        words = 0
        for number, item in enumerate(items, start=1):
            if isinstance(item, str):
                own = list(self._segmenter.cut(item, f"text {number}"))
                words += sum(map(len, own))
                window.append(own)
            else:
                window.append(as_sentence(item, number))
                words += len(window[-1])
            if words >= WINDOW_WORDS:
                yield from parsed(window)
                window, words = [], 0
        yield from parsed(window)

    def _annotated(self, sentences: Sequence[Sentence], request: Request) -> Iterator[Sentence]:
        """The sentences with their best trees; the first error is raised."""
        for sentence, result in zip(sentences, self._answer_all(sentences, request), strict=True):
            if isinstance(result, DataError):
                raise result
            yield sentence.annotated(result)

    def _open(
        self,
        source: str | Path | Iterable[Sentence | Sequence[str]],
        request: Request,
        errors: ErrorPolicy,
        format: str,
        batch_words: int | None = None,
    ) -> Generator[tuple[Sentence, list[Sentence]], None, None]:
        """Each sentence of a source, and with its tree, or with its best trees."""
        report = Errors.of(errors)
        check_format(format)
        check_batch_words(batch_words)
        sentences = (
            read_file(source, format, report, self.segmenter)
            if isinstance(source, (str, Path))
            else as_sentences(source)
        )
        return self._parse(sentences, request, report, batch_words)

    def _parse(
        self, sentences: Sentences, request: Request, report: Errors, batch_words: int | None
    ) -> Generator[tuple[Sentence, list[Sentence]], None, None]:
        with closing(sentences):
            for window in windows(sentences, batch_words):
                for sentence, result in zip(window, self._answer_all(window, request), strict=True):
                    if isinstance(result, DataError):
                        report(result)
                    else:
                        yield sentence, _with_trees(sentence, result, request.k_best)

    def k_best(self, words: Sentence | Sequence[str], k: int, *, keep_heads: bool = False) -> list[Sentence]:
        """The k best trees of a sentence, or all if there are fewer, best first; see ``k_best`` of `parse`.

        Raises
        ------
        DataError, ValueError
            See `parse`.
        """
        return list(self.parse([words], keep_heads=keep_heads, k_best=k))

    def parse_file(
        self,
        source: str | Path | Iterable[Sentence | Sequence[str]],
        target: str | Path,
        *,
        errors: ErrorPolicy = "raise",
        format: str = "conllu",
        min_confidence: float | None = None,
        batch_words: int | None = None,
        on_progress: Callable[[Count], object] | None = None,
        **options: Unpack[ParseOptions],
    ) -> Count:
        """`parse` into a CoNLL-U file, ``"-"`` for standard output; the file appears when it is whole.

        A file named ``.json`` or ``.jsonl`` gets JSON, ``"json"`` is JSON on standard output: see `output_format`.

        With ``confidence``, it is in MISC and in the comment ``# tree_confidence``; with ``min_confidence``, words that
        are less certain have ``_`` for HEAD and DEPREL. Standard input is answered when nothing more has come, but if
        ``batch_words`` are given, when at least so many words have. ``on_progress`` is called after every sentence,
        with what was parsed so far.
        """
        output = Output(bool(options.get("confidence")), min_confidence)
        if min_confidence is not None:
            options["confidence"] = True
        request = self.check(**options)
        count = Count(0, 0)
        parsed = self._open(source, request, errors, format, batch_words)
        target, form = output_format(target)
        with closing(parsed), atomic_output(target) as stream, sentence_writer(stream, form) as write:
            for given, trees in parsed:
                for sentence in trees:
                    write(output(sentence, given if request.keep_heads else None))
                if is_standard_input(source):
                    stream.flush()  # whoever waits for it sees it now
                count = Count(count.sentences + 1, count.words + len(trees[0]))
                if on_progress is not None:
                    on_progress(count)
        return count

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
        with new_folder(folder, overwrite) as place:
            self.write(place)
            if self.meta:
                write_json(place / META, dict(self.meta))
            if self.segmenter is not None:
                write_file(place / SEGMENTER, self.segmenter.content)

    def write(self, folder: Path) -> None:
        """Write configuration, vocabulary, weights and calibration into a model folder, each file as a whole."""
        raise ValueError("an ensemble has no folder of its own; save its models, such as parser.model.members[0]")

    def _call(self, words: Any, **options: Unpack[CallOptions]) -> Sentence | Document:
        _check_one_tree(options)
        if isinstance(words, Path):
            raise ValueError(f"a parser takes text or words: write parser.parse({str(words)!r}) for a file")
        if isinstance(words, str):
            if os.path.isfile(words):
                log.warning("%s is taken as text; write parser.parse(%r) to parse the file", words, words)
            return Document(self.parse(self._segmenter.cut(words), **options))
        if isinstance(words, Sentence):
            return words.annotated(*self.predict([words], **options))
        items = list(as_items(words))
        if items and isinstance(items[0], str):
            if not self.spaced_words:
                check_words(items)
            return self(Sentence.from_words(items), **options)
        return Document(self.parse(items, **options))

    @cached_property
    def _segmenter(self) -> Segmenter:
        return Segmenter(require_segmenter(self.segmenter))


def _check_one_tree(options: Mapping[str, Any]) -> None:
    if "k_best" in options:
        raise ValueError("a call gives each sentence one tree; write parser.k_best(…) or parser.parse(…, k_best=…)")


def _with_trees(sentence: Sentence, result: Annotation, k: int) -> list[Sentence]:
    """The sentence with its best tree, or one for each of its best trees."""
    if k == 1:
        return [sentence.annotated(result)]
    trees = [
        replace(result, heads=tree.heads, relations=tree.relations, score=tree.score, next_best=())
        for tree in (result, *result.next_best)
    ]
    return [ranked(sentence.annotated(tree), rank) for rank, tree in enumerate(trees, start=1)]


def check_greedy(search: str) -> None:
    """ValueError for a way to search that no greedy parser has."""
    beam_width(search)
    if search not in ("exact", "greedy"):
        raise ValueError(f"search {search!r} is for chart parsers; this is a greedy transition-based parser")
