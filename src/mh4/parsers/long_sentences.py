"""Parsing of very long sentences, such as whole documents without a sentence break, in pieces.

Scores are matrices over all pairs of words, so that their memory grows with the square of the length.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from mh4.data.annotation import Annotation
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence

from .answers import Answers
from .request import Request

LONGEST = 2_000  # words in the longest sentence that is parsed as a whole
PIECE = 200  # words in the longest piece
# A piece ends after the last word of only these characters in its second half, if there is one.
ENDS = frozenset(".!?…;:。｡！？।॥؟۔։።။។")  # noqa: RUF001
SIDE_BY_SIDE = "parataxis"  # UD's relation between sentences that stand side by side


def in_pieces(
    answer: Callable[[Sequence[Sentence]], Answers],
    sentences: Sequence[Sentence],
    request: Request,
    only_root: frozenset[str],
    longest: int,
    unparsable: Callable[[Sentence], DataError | None] = lambda sentence: None,
) -> Answers:
    """Call ``answer`` on sentences, with those of more than ``longest`` words in pieces, and join its answers.

    Such sentences get a warning or, if trees with given heads are requested, an error, since heads may lead to another
    piece. The root of each later piece becomes a child of the first piece's root; a relation that only children of the
    root have (``only_root``) is replaced by `SIDE_BY_SIDE`. ``unparsable`` is `Parser.unparsable`; it looks at whole
    sentences, so that its errors name words by their places in the file.
    """
    if all(len(sentence) <= longest for sentence in sentences):
        return answer(sentences)
    piece = min(PIECE, longest)
    pieces: list[Sentence] = []
    stops: list[int] = []  # index in `pieces` after the last piece of each sentence
    errors: dict[int, DataError] = {}
    warnings = []
    for i, sentence in enumerate(sentences):
        n = len(sentence)
        if n <= longest:
            pieces.append(sentence)
        elif request.keep_heads and request.heads:
            errors[i] = sentence.error(f"has {n} words; heads can be kept in sentences of up to {longest} (split it)")
        elif request.heads and (error := unparsable(sentence)) is not None:
            errors[i] = error
        else:
            pieces += cut(sentence, piece)
            below = f", below the first one's root{request.lost}" if request.heads else ""
            warnings.append(
                f"{sentence.source}:{sentence.first_line}: {sentence.name}: of {n} words, more than {longest}, is "
                f"{'parsed' if request.heads else 'annotated'} in pieces of at most {piece}{below}"
            )
        stops.append(len(pieces))
    found = answer(pieces) if pieces else Answers([])
    annotations = []
    for i, (start, stop) in enumerate(zip([0, *stops], stops, strict=False)):
        own = found.annotations[start:stop]
        if wrong := [k for k in range(start, stop) if k in found.errors]:
            errors[i] = found.errors[wrong[0]]
        if len(own) == 1:
            annotations.append(own[0])
        else:
            annotations.append(Annotation() if i in errors else joined(own, pieces[start:stop], only_root))
    return Answers(annotations, errors, warnings + found.warnings)


def cut(sentence: Sentence, most: int = PIECE) -> list[Sentence]:
    """Cut a sentence into consecutive pieces of at most ``most`` words, after punctuation where possible."""
    start, pieces = 0, []
    while start < len(sentence):
        stop = min(start + most, len(sentence))
        if stop < len(sentence):
            last = range(stop - 1, stop - most // 2 - 1, -1)
            stop = next((i + 1 for i in last if ENDS.issuperset(sentence.forms[i])), stop)
        piece = Sentence.from_words(sentence.forms[start:stop], source=sentence.source, number=sentence.number)
        columns = ("upos", "xpos", "feats", "lemmas")
        pieces.append(piece.replace(**{name: getattr(sentence, name)[start:stop] for name in columns}))
        start = stop
    return pieces


def joined(parts: Sequence[Annotation], pieces: Sequence[Sentence], only_root: frozenset[str]) -> Annotation:
    """Join the annotations of the pieces of a sentence; confidences are dropped."""
    values: dict[str, Any] = {}
    for name in ("upos", "xpos", "feats", "lemmas"):
        columns = [getattr(part, name) for part in parts]
        some = any(column is not None for column in columns)
        if name != "feats" and some:  # a piece without predictions has all of its values given
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
    first = int(np.flatnonzero(trees[0][0] == 0)[0]) + 1
    heads, relations = [trees[0][0]], list(trees[0][1])
    before = len(relations)
    for own, names in trees[1:]:
        heads.append(np.where(own == 0, first, own + before).astype(np.int32))
        relations += [
            SIDE_BY_SIDE if head == 0 and name in only_root else name
            for head, name in zip(own.tolist(), names, strict=True)
        ]
        before = len(relations)
    return np.concatenate(heads), tuple(relations)
