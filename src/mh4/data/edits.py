"""Edit the columns, comments and multiword tokens of a sentence, held as in `Content`; new values are checked."""

import re
import reprlib
from collections.abc import Callable, Iterable, Sequence, Sized
from operator import index

import numpy as np

from .blocks import STRIDE
from .entries import written
from .errors import quote
from .spaces import NO_SPACE
from .values import COLUMNS, FORM, HEAD, LEMMA, MISC, UNKNOWN_HINT, surely_sound, value_problem

Others = tuple[tuple[int, str], ...]
_SOUND: dict[int, set[str]] = {}  # by column: values known to be valid
_LONGEST_KEPT, _MOST_KEPT = 64, 1 << 16  # limits: characters of a cached value; cached values per column
_HEAD_NAMES = [*map(str, range(4096)), "_"]  # "_" for -1


def replace_heads(fields: list[str], heads: np.ndarray | Sequence[int]) -> np.ndarray:
    """Write n heads into the fields; returns padded heads, int32 (n+1,), with -1 for the root."""
    n = len(fields) // STRIDE
    values = np.asarray(heads)
    if values.shape != (n,) or values.dtype.kind not in "iu":
        padded = values.shape == (n + 1,) and values[0] == -1
        hint = "; leave out the entry of the root, heads[1:]" if padded else ""
        what = "integers, the ID of each word's head, 0 for the root, -1 if it is unknown"
        raise ValueError(f"heads must be {n} {what}; got {reprlib.repr(heads)}{hint}")
    if values.min() < -1 or values.max() > n:
        raise ValueError(f"heads must lie in -1…{n}")
    names = _HEAD_NAMES if n < len(_HEAD_NAMES) - 1 else [*map(str, range(n + 1)), "_"]
    fields[HEAD::STRIDE] = [names[head] for head in values.tolist()]
    padded = np.empty(n + 1, np.int32)
    padded[0], padded[1:] = -1, values
    return padded


def replace_column(fields: list[str], column: int, given: Sequence[object]) -> None:
    """Write n values of a column into the fields; see `entries.written`."""
    n = len(fields) // STRIDE
    if isinstance(given, str) or not isinstance(given, Sized) or len(given) != n:
        raise ValueError(f"{COLUMNS[column]} needs one value for each of {n} words")
    values = [value if type(value) is str else written(value, column) for value in given]
    known = _SOUND.setdefault(column, set())
    if not known.issuperset(values):
        old = fields[column::STRIDE]
        if column == MISC:
            old = [field.partition("\n")[0].removesuffix("\r") for field in old]
        new = set(values).difference(known, old)
        if not surely_sound([*new], column):
            for value in new:
                _check(value, column, COLUMNS[column])
        if len(known) + len(new) > _MOST_KEPT:
            known.clear()
        known.update(value for value in new if len(value) <= _LONGEST_KEPT)
    if column == MISC:
        parts = [field.partition("\n") for field in fields[column::STRIDE]]
        ends = ["\r" * misc.endswith("\r") + line_end + next_id for misc, line_end, next_id in parts]
        values = list(map(str.__add__, values, ends))
    fields[column::STRIDE] = values


def _check(value: object, column: int, name: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {reprlib.repr(value)}, not a string")
    if problem := value_problem(value, column):
        hint = f" ({UNKNOWN_HINT} or None)" if not value else ""
        raise ValueError(f"{name} may not be {quote(value)}, which {problem}{hint}")


def with_comments(others: Others, comments: Iterable[str], first_misc: str) -> Others:
    """Return ``others`` with its comments replaced by these, which come first."""
    if isinstance(comments, str):
        raise TypeError(f"comments must be a list of lines, such as [{quote(comments)}], not one string")
    kept = [other for other in others if not other[1].startswith("#")]
    return (*((0, checked_comment(line) + _line_end(first_misc)) for line in comments), *kept)


def changed_comments(others: Others, change: Callable[[str], str | None]) -> Others:
    """Return ``others`` with ``change`` applied to each comment, without its line end; None removes the comment."""
    lines = []
    for before, line in others:
        if line.startswith("#"):
            comment = line.removesuffix("\r")
            if (new := change(comment)) is None:
                continue
            line = checked_comment(new) + line[len(comment) :]
        lines.append((before, line))
    return tuple(lines)


def with_comment(others: Others, key: str, value: object, first_misc: str) -> Others:
    """Return ``others`` with ``# key = value`` after the leading comments, replacing an earlier value."""
    start = f"# {key} = "
    earlier = re.compile(rf"#\s*{re.escape(key)}\s*=")
    lines = [other for other in others if not earlier.match(other[1])]
    place = 0
    while place < len(lines) and lines[place][1].startswith("#") and not lines[place][0]:
        place += 1
    following = lines[place][1] if place < len(lines) and not lines[place][0] else first_misc.partition("\n")[0]
    lines.insert(place, (0, checked_comment(f"{start}{value}") + "\r" * following.endswith("\r")))
    return tuple(lines)


def with_multiword_tokens(others: Others, tokens: Iterable[tuple], n: int, first_misc: str) -> Others:
    """Return ``others`` with its multiword tokens replaced by these; tokens of a single word are skipped.

    Each is (first, last, form[, space after[, misc]]), like a `Token`; misc, if given, overrides space after. A token
    that is there already keeps its other columns, such as the feature Typo=Yes.
    """
    kept = [other for other in others if other[1].startswith("#") or "-" not in other[1].partition("\t")[0]]
    old = {tuple(fields[:LEMMA]): fields[LEMMA:MISC] for _, line in others if len(fields := line.split("\t")) > MISC}
    end = 0
    for token in tokens:
        try:
            start, stop, form, *more = token
            if isinstance(start, bool | np.bool_) or isinstance(stop, bool | np.bool_):  # index takes the latter, too
                raise TypeError
            first, last = index(start), index(stop)
        except (TypeError, ValueError):
            raise TypeError(
                f"expected a multiword token as (first word, last word, form); got {reprlib.repr(token)}"
            ) from None
        if not end < first <= last <= n:
            raise ValueError(f"multiword token {first}-{last} overlaps another or reaches beyond the words, {n}")
        _check(form, FORM, f"the form of {first}-{last}")
        misc = written(more[1], MISC) if len(more) > 1 else NO_SPACE if more == [False] else "_"
        _check(misc, MISC, f"MISC of {first}-{last}")
        end = last
        if first < last:
            name = f"{first}-{last}"
            line = "\t".join((name, form, *old.get((name, form), "_" * (MISC - LEMMA)), misc))
            kept.append((first - 1, line + _line_end(first_misc)))
    return tuple(sorted(kept, key=lambda other: other[0]))


def _line_end(first_misc: str) -> str:
    """Return the CR, if any, at the end of the first word's line, whose last column is ``first_misc``."""
    return "\r" * first_misc.partition("\n")[0].endswith("\r")


def checked_comment(line: object) -> str:
    """Return the comment unchanged, as a plain string; TypeError or ValueError if it is invalid."""
    if not isinstance(line, str):
        raise TypeError(f"a comment must be a string, not {reprlib.repr(line)}")
    if not line.startswith("#") or value_problem(line.replace("\t", " "), FORM):
        raise ValueError(f"{quote(line)} is not a comment (it begins with # and is one line)")
    return str.__str__(line)
