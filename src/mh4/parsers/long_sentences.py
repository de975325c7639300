"""Sentences of any length: very long ones, whole documents without a sentence break, are parsed in pieces.

Scores are matrices over all pairs of words, so that the memory they take grows with the square of the length.
"""

import logging
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from mh4.data.errors import DataError
from mh4.data.sentence import Annotation, Sentence

from .request import Request

LONGEST = 2_000  # words of a sentence that is parsed as one
PIECE = 200  # words of a piece, at most
ENDS = frozenset(".!?…;:。")  # a piece ends behind one of these, if its second half has one
SIDE_BY_SIDE = "parataxis"  # UD's relation between sentences that stand side by side

log = logging.getLogger("mh4")

Annotate = Callable[[Sequence[Sentence]], Sequence[Annotation | DataError]]


def in_pieces(
    annotate: Annotate, sentences: Sequence[Sentence], request: Request, only_root: frozenset[str], longest: int
) -> Sequence[Annotation | DataError]:
    """What ``annotate`` answers to a request about sentences; it gets those beyond ``longest`` words in pieces.

    The roots of all pieces but the first depend on the first one's root, and leave it relations that only children of
    the root have (``only_root``). Given heads may lead from one piece to
    another; long sentences with such heads get an error.
    """
    if all(len(sentence) <= longest for sentence in sentences):
        return annotate(sentences)
    piece = min(PIECE, longest)
    pieces: list[Sentence] = []
    stops: list[int] = []  # in `pieces`, of each sentence
    for sentence in sentences:
        if len(sentence) <= longest:
            pieces.append(sentence)
        elif not request.keep_heads:
            pieces += cut(sentence, piece)
            log.warning(
                "%s:%d: %s: of %d words, more than %d, is parsed in pieces of at most %d, below the first one's root%s",
                *(sentence.source, sentence.first_line, sentence.name, len(sentence), longest, piece, request.lost),
            )
        stops.append(len(pieces))
    found = annotate(pieces) if pieces else []
    results: list[Annotation | DataError] = []
    for sentence, start, stop in zip(sentences, [0, *stops], stops, strict=False):
        own = found[start:stop]
        if not own:
            results.append(
                sentence.error(f"has {len(sentence)} words; heads are kept in sentences of up to {longest} (cut it)")
            )
        else:
            results.append(own[0] if len(own) == 1 else joined(own, pieces[start:stop], only_root))
    return results


def cut(sentence: Sentence, most: int = PIECE) -> list[Sentence]:
    """Consecutive pieces of at most so many words, cut behind punctuation where there is some."""
    start, pieces = 0, []
    while start < len(sentence):
        stop = min(start + most, len(sentence))
        if stop < len(sentence):
            last = range(stop - 1, stop - most // 2 - 1, -1)
            stop = next((i + 1 for i in last if sentence.forms[i] in ENDS), stop)
        piece = Sentence.from_words(sentence.forms[start:stop], source=sentence.source, number=sentence.number)
        columns = ("upos", "xpos", "feats", "lemmas")
        pieces.append(piece.replace(**{name: getattr(sentence, name)[start:stop] for name in columns}))
        start = stop
    return pieces


def joined(
    found: Sequence[Annotation | DataError], pieces: Sequence[Sentence], only_root: frozenset[str]
) -> Annotation | DataError:
    """The annotation of a sentence, of those of its pieces, without confidence; the first error, if there is one."""
    parts: list[Annotation] = []
    for one in found:
        if isinstance(one, DataError):
            return one
        parts.append(one)
    values: dict[str, Any] = {}
    for name in ("upos", "xpos", "feats", "lemmas"):
        columns = [getattr(part, name) for part in parts]
        some = any(column is not None for column in columns)
        if name != "feats" and some:  # a piece whose values are all given has them
            given = (getattr(piece, name) for piece in pieces)
            columns = [own if column is None else column for column, own in zip(columns, given, strict=True)]
        if None not in columns:
            values[name] = tuple(chain.from_iterable(columns))
    if parts[0].heads is not None:
        values["heads"], values["relations"] = _joined_trees([part.tree for part in parts], only_root)
    scores = [part.score for part in parts if part.score is not None]
    return Annotation(**values, score=sum(scores) if len(scores) == len(parts) else None)


def _joined_trees(
    trees: Sequence[tuple[np.ndarray, tuple[str, ...]]], only_root: frozenset[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    first = int(np.flatnonzero(trees[0][0] == 0)[0])
    heads, relations = [trees[0][0]], list(trees[0][1])
    before = len(relations)
    for own, names in trees[1:]:
        heads.append(np.where(own[1:] == 0, first, own[1:] + before).astype(np.int32))
        relations += [
            SIDE_BY_SIDE if head == 0 and name in only_root else name
            for head, name in zip(own[1:].tolist(), names, strict=True)
        ]
        before = len(relations)
    return np.concatenate(heads), tuple(relations)
