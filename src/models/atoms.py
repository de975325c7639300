"""Text as a sequence of atoms, inside which no token ends, and the features that a segmenter sees of each.

An atom is a run of letters of one script, a run of digits, a flag, or another character alone; marks and joiners stay
with what they follow. In scripts that put neither white space nor punctuation between words, each letter is an atom.
Every feature of an atom is a hash of 64 bits, so that a vocabulary is an array of hashes.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Collection, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
from numba import njit

SPACE, BREAK, LETTER, DIGIT, OTHER, JOINED, JOINER = range(1, 8)  # kinds of characters; 0: not looked up yet
NO_GAP, BLANK, LINE_BREAK, EDGE = range(4)  # gaps between atoms; EDGE is either end of the paragraph

FEATURES = (
    *("lowered", "exact", "shape", "suffix_2", "suffix_3", "prefix_3", "gaps"),
    *("with_previous", "with_next", "unit", "next_shape"),
    *("ahead", "behind", "around", "seam", "before_seam", "kinds"),
)

FEATURES_OF_FORMAT = {1: FEATURES.index("ahead"), 2: len(FEATURES)}

_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_CODES = 0x110000
_SCRIPTS = 1 << 16
_LONGEST_SHAPE = 4  # characters up to which shapes tell lengths apart
LAST_PLACE = 62  # number of letters after which a run may still be cut
_LONGEST_UNIT = 24  # characters of a unit (atoms without gaps inside) that count
_REACH = 5  # atoms to look ahead or behind, up to the next run
_ALIKE = {"Pd": 0, "Ps": 1, "Pi": 2, "Pe": 3, "Pf": 4}  # categories of punctuation whose characters are alike
_QUOTES, _QUOTE, _FIRST_CLOSING = "\"'", 5, 2  # marks without a direction; they may close, like `Pi`
_LOWER, _UPPER, _CASELESS, _DIGITS, _PUNCTUATION = range(5)

_PRIME, _BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)  # of the hash FNV-1a
_MIXING, _KIND, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x632BE59BD9B4E019), np.uint64(29)


class Atoms(NamedTuple):
    """A atoms of P paragraphs.

    Attributes
    ----------
    starts, stops
        int64 (A,): the range of each atom's characters, half-open.
    before, after
        uint8 (A,): the gaps before and after each atom.
    counts
        int64 (P,): number of atoms of each paragraph.
    """

    starts: np.ndarray
    stops: np.ndarray
    before: np.ndarray
    after: np.ndarray
    counts: np.ndarray


class _Characters:
    """Properties of characters, looked up in Unicode's tables when a character is first met."""

    def __init__(self) -> None:
        self.kinds = np.zeros(_CODES, np.uint8)
        self.scripts = np.zeros(_CODES, np.uint16)
        self.lowered = np.zeros(_CODES, np.uint32)
        self.classes = np.zeros(_CODES, np.uint32)
        self._lock = Lock()

    def learn(self, codes: np.ndarray) -> None:
        """Look up the characters that are not known yet."""
        unknown = codes[self.kinds[codes] == 0]
        if not len(unknown):
            return
        with self._lock:
            for code in np.unique(unknown).tolist():
                character = chr(code)
                lowered = character.lower()
                self.lowered[code] = ord(lowered) if len(lowered) == 1 else code
                self.scripts[code] = script_of(character)
                self.classes[code] = _class(character)
                self.kinds[code] = _kind(character)  # last, because other threads look at it without the lock


def script_of(character: str) -> int:
    """A number for the script of a letter, the same for all Latin letters, for instance."""
    name = unicodedata.name(character, "").partition(" ")[0]
    return zlib.crc32(name.encode()) % _SCRIPTS


def _kind(character: str) -> int:
    category = unicodedata.category(character)
    if character.isspace():
        return BREAK if character in _LINE_BREAKS else SPACE
    if character == "\u200d":
        return JOINER
    is_modifier = category in ("Lm", "Sk") and unicodedata.name(character, "").startswith(("MODIFIER", "EMOJI"))
    if category[0] == "M" or category == "Cf" or is_modifier:
        return JOINED
    return {"L": LETTER, "Nd": DIGIT}.get(category if category == "Nd" else category[0], OTHER)


def _class(character: str) -> int:
    """The class of a character in patterns: a letter's case, the kind of a bracket or dash, or the character itself."""
    if character.isalpha():
        return _LOWER if character.islower() else _UPPER if character.isupper() or character.istitle() else _CASELESS
    category = unicodedata.category(character)
    if category == "Nd":
        return _DIGITS
    kind = _QUOTE if character in _QUOTES else _ALIKE.get(category, _QUOTE + 1 + ord(character))
    return _PUNCTUATION + kind


_characters = _Characters()


def codes_of(text: str) -> np.ndarray:
    """The code points of a text, uint32."""
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def script_table(scripts: Collection[int]) -> np.ndarray:
    """Whether each script is among ``scripts``, bool."""
    table = np.zeros(_SCRIPTS, np.bool_)
    table[list(scripts)] = True
    return table


class HashTable(NamedTuple):
    """A map from hashes to values, by open addressing; a hash of 0 is an empty slot.

    Attributes
    ----------
    hashes
        uint64 (S,), S a power of two, at least half of the slots empty.
    values
        int64 (S,).
    """

    hashes: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, hashes: np.ndarray, values: np.ndarray) -> HashTable:
        """Make a table of distinct hashes, none of them 0, and their values."""
        size = 2
        while size < 2 * len(hashes):
            size *= 2
        table = cls(np.zeros(size, np.uint64), np.zeros(size, np.int64))
        _fill_table(hashes, values, *table)
        return table


@njit(cache=True, nogil=True)
def _fill_table(hashes, values, slots, slot_values):
    mask = np.uint64(len(slots) - 1)
    for i in range(len(hashes)):
        at = hashes[i] & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = hashes[i]
        slot_values[at] = values[i]


@njit(nogil=True)
def _found(slots, values, wanted, missing):
    """The value of a hash, or ``missing``."""
    mask = np.uint64(len(slots) - 1)
    at = wanted & mask
    while slots[at] != 0:
        if slots[at] == wanted:
            return values[at]
        at = (at + np.uint64(1)) & mask
    return missing


@njit(nogil=True, inline="always")
def _with(value, code):
    return (value ^ np.uint64(code)) * _PRIME


@njit(nogil=True)
def _mixed(value, kind):
    """The hash of a feature of this kind, spread over all bits; never 0."""
    value = (value + np.uint64(kind + 1) * _KIND) * _MIXING
    value = (value ^ (value >> _SHIFT)) * _MIXING
    return (value ^ (value >> _SHIFT)) | np.uint64(1)


@njit(nogil=True)
def _hash_of(codes, start, stop):
    value = _BASIS
    for i in range(start, stop):
        value = _with(value, codes[i])
    return value


@njit(nogil=True, inline="always")
def _is_half_flag(code):
    """Whether it is a regional indicator; two of them are a flag."""
    return 0x1F1E6 <= code <= 0x1F1FF


@njit(nogil=True)
def _end_of_atom(codes, kinds, scripts, runs, start, end):
    """The end of the atom that begins at ``start``; ``runs`` says whether characters of its kind form runs."""
    kind, script = kinds[codes[start]], scripts[codes[start]]
    stop = start + 1
    while stop < end:
        following = kinds[codes[stop]]
        goes_on = runs and following == kind and (kind == DIGIT or scripts[codes[stop]] == script)
        joined = following > BREAK and kinds[codes[stop - 1]] == JOINER
        flag = stop == start + 1 and _is_half_flag(codes[start]) and _is_half_flag(codes[stop])
        if not (goes_on or joined or flag or following in (JOINED, JOINER)):
            break
        stop += 1
    return stop


@njit(cache=True, nogil=True)
def _cut(codes, bounds, kinds, scripts, lowered, lone_scripts, cut_hashes, cut_places, atoms):
    """Fill the arrays of `Atoms`; return the number of atoms. Cut places are bits: 1 << k is a cut after k letters."""
    starts, stops, before, after, counts = atoms
    has_places = cut_hashes.any()
    count = 0
    for paragraph in range(len(counts)):
        first = count
        i, end = bounds[paragraph], bounds[paragraph + 1]
        gap = EDGE
        while i < end:
            kind = kinds[codes[i]]
            if kind <= BREAK:
                if gap != EDGE:
                    gap = LINE_BREAK if kind == BREAK or gap == LINE_BREAK else BLANK
                i += 1
                continue
            runs = kind == DIGIT or (kind == LETTER and not lone_scripts[scripts[codes[i]]])
            stop = _end_of_atom(codes, kinds, scripts, runs, i, end)
            places = np.int64(0)
            if runs and kind == LETTER and has_places:
                value = _BASIS
                for k in range(i, stop):
                    value = _with(value, lowered[codes[k]])
                places = _found(cut_hashes, cut_places, _mixed(value, 0), np.int64(0))
            at = i
            for k in range(i + 1, stop + 1):
                if k == stop or (k - i <= LAST_PLACE and (places >> (k - i)) & 1):
                    starts[count], stops[count], before[count] = at, k, gap
                    if count > first:
                        after[count - 1] = gap
                    count += 1
                    at, gap = k, NO_GAP
            i = stop
        if count > first:
            after[count - 1] = EDGE
        counts[paragraph] = count - first
    return count


@njit(nogil=True)
def _class_of(codes, classes, start, stop):
    """Three times the class of the first character; in runs, plus 1 if a second one follows, 2 if it is upper case."""
    first = np.uint64(classes[codes[start]])
    if first >= _PUNCTUATION:
        return first * np.uint64(3)
    return first * np.uint64(3) + np.uint64(0 if stop == start + 1 else 1 + (classes[codes[start + 1]] == _UPPER))


@njit(nogil=True)
def _pattern(classes, gaps, a, step):
    """The hash of the classes and gaps from atom a on, in one direction (``step``), up to the next run."""
    value = _with(_BASIS, classes[a])
    for _ in range(_REACH):
        value = _with(value, gaps[a])
        if gaps[a] == EDGE:
            break
        a += step
        value = _with(value, classes[a])
        if classes[a] < 3 * _PUNCTUATION:
            break
    return value


@njit(nogil=True)
def _around(classes, before, after, a):
    """The hash of the classes and gaps of an atom, the one before it, and the two after it."""
    value = _with(_with(_BASIS, classes[a]), before[a])
    if before[a] != EDGE:
        value = _with(value, classes[a - 1])
    for k in range(a, a + 2):
        value = _with(value, after[k])
        if after[k] == EDGE:
            break
        value = _with(value, classes[k + 1])
    return value


@njit(nogil=True)
def _closed(classes, before, a):
    """Return the last atom before the closing brackets and quotation marks that end with atom a, or a itself."""
    for _ in range(_REACH):
        may_close = 3 * (_PUNCTUATION + _FIRST_CLOSING) <= classes[a] <= 3 * (_PUNCTUATION + _QUOTE)
        if before[a] != NO_GAP or not may_close:
            break
        a -= 1
    return a


@njit(nogil=True)
def _seam(classes, after, closed, a):
    """The hash of the gap after atom a, and of the classes around it: of ``closed`` and of the next run.

    Brackets, quotation marks and dashes around the gap are skipped. If the gap is empty, the next run does not count.
    """
    value = _with(_with(_BASIS, after[a]), classes[closed])
    if after[a] == NO_GAP:
        return value
    for _ in range(_REACH):
        if after[a] == EDGE:
            return _with(value, EDGE)
        a += 1
        if classes[a] < 3 * _PUNCTUATION:
            break
    return _with(value, classes[a])


@njit(cache=True, nogil=True)
def _fill_features(codes, kinds, lowered, classes, atoms, out):
    """Fill ``out`` (A, F) with the hash of each feature, in the order of `FEATURES`."""
    starts, stops, before, after, _ = atoms
    count = len(starts)
    hashes, shapes = np.zeros(count + 2, np.uint64), np.zeros(count + 2, np.uint64)  # of atom a at a + 1
    own_classes, own_kinds = np.empty((2, count), np.uint64)
    small = np.empty(len(codes), np.uint32)
    for i in range(len(codes)):
        small[i] = lowered[codes[i]]
    for a in range(count):
        start, stop = starts[a], stops[a]
        hashes[a + 1] = _hash_of(small, start, stop)
        shape = np.uint64(min(stop - start, _LONGEST_SHAPE))
        for i in range(start, min(stop, start + 2)):  # two characters tell lower, title and upper case apart
            shape = shape * np.uint64(16) + np.uint64(kinds[codes[i]] * 2 + (small[i] != codes[i]))
        shapes[a + 1] = shape
        own_classes[a] = _class_of(codes, classes, start, stop)
        own_kinds[a] = kinds[codes[start]]
    unit_start = 0
    nothing = np.uint64(0)
    for a in range(count):
        start, stop = starts[a], stops[a]
        if before[a] != NO_GAP:
            unit_start = a
        last = a
        while after[last] == NO_GAP and stops[last] - starts[unit_start] <= _LONGEST_UNIT:
            last += 1
        own = hashes[a + 1]
        previous = nothing if before[a] == EDGE else hashes[a]
        following, shape = (nothing, nothing) if after[a] == EDGE else (hashes[a + 2], shapes[a + 2])
        unit = _hash_of(small, starts[unit_start], min(stops[last], starts[unit_start] + _LONGEST_UNIT))
        row = out[a]
        row[0] = _mixed(own, 0)
        row[1] = _mixed(_hash_of(codes, start, stop), 1)
        row[2] = _mixed(shapes[a + 1], 2)
        row[3] = _mixed(_hash_of(small, max(start, stop - 2), stop), 3)
        row[4] = _mixed(_hash_of(small, max(start, stop - 3), stop), 4)
        row[5] = _mixed(_hash_of(small, start, min(stop, start + 3)), 5)
        row[6] = _mixed(np.uint64(before[a] * 4 + after[a]), 6)
        row[7] = _mixed(_with(_mixed(previous, 0), own), 7)
        row[8] = _mixed(_with(_mixed(own, 0), following), 8)
        row[9] = _mixed(_with(unit, a - unit_start), 9)
        row[10] = _mixed(_with(_mixed(shape, 0), after[a]), 10)
        if len(row) < len(FEATURES):
            continue
        row[11] = _mixed(_pattern(own_classes, after, a, 1), 11)
        row[12] = _mixed(_pattern(own_classes, before, a, -1), 12)
        row[13] = _mixed(_around(own_classes, before, after, a), 13)
        closed = _closed(own_classes, before, a)
        seam = _seam(own_classes, after, closed, a)
        row[14] = _mixed(seam, 14)
        row[15] = _mixed(_with(_with(seam, before[closed]), nothing if before[closed] == EDGE else shapes[closed]), 15)
        row[16] = _mixed(_around(own_kinds, before, after, a), 16)


@njit(cache=True, nogil=True)
def _look_up(hashes, slots, values, out):
    """Fill ``out`` (A, F) with the values of hashes; features that the table lacks get the number of their kind."""
    for a in range(hashes.shape[0]):
        for kind in range(hashes.shape[1]):
            out[a, kind] = _found(slots, values, hashes[a, kind], kind)


def run_hash(letters: str) -> int:
    """The hash of a run of letters, its key in a table of cuts."""
    codes = codes_of(letters)
    _characters.learn(codes)
    return int(_hash_of_run(codes, _characters.lowered))


@njit(cache=True, nogil=True)
def _hash_of_run(codes, lowered):
    value = _BASIS
    for code in codes:
        value = _with(value, lowered[code])
    return _mixed(value, 0)


NO_CUTS = HashTable(np.zeros(2, np.uint64), np.zeros(2, np.int64))


def atoms_of(codes: np.ndarray, lengths: Sequence[int], lone_scripts: np.ndarray, cuts: HashTable = NO_CUTS) -> Atoms:
    """Split paragraphs into atoms.

    Parameters
    ----------
    codes
        uint32 (N,): the characters of all paragraphs, one after the other.
    lengths
        The number of characters of each paragraph.
    lone_scripts
        The scripts in which each letter is an atom; see `script_table`.
    cuts
        Places where runs of letters are cut, by `run_hash`, as bits: 1 << k is a cut after k letters.
    """
    _characters.learn(codes)
    n = len(codes)
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    starts, stops = np.empty((2, n), np.int64)
    before, after = np.empty((2, n), np.uint8)
    counts = np.empty(len(lengths), np.int64)
    tables = _characters.kinds, _characters.scripts, _characters.lowered
    found = Atoms(starts, stops, before, after, counts)
    count = _cut(codes, bounds, *tables, lone_scripts, *cuts, found)
    return Atoms(starts[:count], stops[:count], before[:count], after[:count], counts)


def features_of(codes: np.ndarray, atoms: Atoms, count: int = len(FEATURES)) -> np.ndarray:
    """The features of each atom, uint64 (A, F): the first ``count`` of `FEATURES`."""
    hashes = np.empty((len(atoms.starts), count), np.uint64)
    _fill_features(codes, _characters.kinds, _characters.lowered, _characters.classes, atoms, hashes)
    return hashes


def ids_of(hashes: np.ndarray, vocabulary: HashTable) -> np.ndarray:
    """The number of each feature in a vocabulary, int32 (A, F); if it is not there, the number of its kind."""
    ids = np.empty(hashes.shape, np.int32)
    _look_up(hashes, *vocabulary, ids)
    return ids
