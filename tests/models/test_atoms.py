"""Splitting text into atoms, and the features of atoms."""

import re
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mh4.models.atoms import (
    BLANK,
    EDGE,
    FEATURES,
    FEATURES_OF_FORMAT,
    LINE_BREAK,
    NO_GAP,
    HashTable,
    atoms_of,
    codes_of,
    features_of,
    ids_of,
    run_hash,
    script_of,
    script_table,
)

NONE = script_table(())


def pieces(*texts, scripts=NONE, **more):
    atoms = atoms_of(codes_of("".join(texts)), list(map(len, texts)), scripts, **more)
    whole = "".join(texts)
    return [whole[start:stop] for start, stop in zip(atoms.starts, atoms.stops, strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop, 10.5km!", ["Don", "'", "t", "stop", ",", "10", ".", "5", "km", "!"]),
        ("Привет мир…", ["Привет", "мир", "…"]),
        ("東京タワーです", ["東京", "タワ", "ー", "です"]),
        ("abcжц", ["abc", "жц"]),
        ("e\u0301te\u0301 \u0301x", ["e\u0301te\u0301", "\u0301", "x"]),
        ("👩‍👩‍👧🏽👍", ["👩‍👩‍👧🏽", "👍"]),
        ("a🇭🇺🇨🇺🇦 🇭 🇺🇭🇺🏽😀🇺", ["a", "🇭🇺", "🇨🇺", "🇦", "🇭", "🇺🇭", "🇺🏽", "😀", "🇺"]),
        ("क्षत्रिय", ["क्षत्रिय"]),
        ("שלום-עולם", ["שלום", "-", "עולם"]),
        ("a\u200db \u200b", ["a\u200db", "\u200b"]),
        (" \t\n", []),
        ("", []),
    ],
)
def test_atoms_of_text(text, expected):
    assert pieces(text) == expected


def test_each_letter_of_some_scripts_is_an_atom():
    scripts = script_table([script_of("東"), script_of("タ")])
    assert pieces("東京タワ ok", scripts=scripts) == ["東", "京", "タ", "ワ", "ok"]


def test_runs_are_cut_at_places_that_are_known():
    cuts = HashTable.of(np.array([run_hash("cannot"), run_hash("x")], np.uint64), np.array([1 << 3, 1 << 2]))
    assert pieces("Cannot cannots x", cuts=cuts) == ["Can", "not", "cannots", "x"]


def test_what_stands_between_atoms():
    text, other = "a b,\n c\u2028d\u00a0e ", " f"
    atoms = atoms_of(codes_of(text + other), [len(text), len(other)], NONE)
    assert atoms.before.tolist() == [EDGE, BLANK, NO_GAP, LINE_BREAK, LINE_BREAK, BLANK, EDGE]
    assert atoms.after.tolist() == [BLANK, NO_GAP, LINE_BREAK, LINE_BREAK, BLANK, EDGE, EDGE]
    assert atoms.counts.tolist() == [6, 1]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_atoms_hold_all_but_white_space(texts):
    whole = "".join(texts)
    atoms = atoms_of(codes_of(whole), list(map(len, texts)), NONE)
    covered = [i for start, stop in zip(atoms.starts, atoms.stops, strict=True) for i in range(start, stop)]
    assert covered == [i for i, character in enumerate(whole) if not character.isspace()]
    assert atoms.counts.sum() == len(atoms.starts)


def plain_class(atom):
    """The class of an atom that patterns consist of: whether it is a run, then its kind and length."""
    first = atom[0]
    if first.isalnum():
        length = "one" if len(atom) == 1 else "upper" if atom[1].isupper() else "more"
        return True, first.isdigit() or (first.isupper() and "upper"), length
    category = unicodedata.category(first)
    return False, "quote" if first in "\"'" else category if category in ("Pd", "Ps", "Pi", "Pe", "Pf") else first


def plain_patterns(firsts, classes, shapes, gaps, i):
    """The feature `ahead` and those after it, for atom i; ``gaps[i]`` is the space before atom i, None at both ends."""

    def pattern(step):
        at = i
        yield classes[at]
        for _ in range(5):
            gap = gaps[at + (step > 0)]
            yield gap
            if gap is None:
                return
            at += step
            yield classes[at]
            if classes[at][0]:
                return

    def around(own):
        found = [own[i], gaps[i], own[i - 1] if gaps[i] is not None else None]
        for k in (i, i + 1):
            found.append(gaps[k + 1])
            if gaps[k + 1] is None:
                break
            found.append(own[k + 1])
        return tuple(found)

    kinds = [(one.isalpha(), one.isdigit()) for one in firsts]
    closed = i
    while closed > i - 5 and gaps[closed] == "" and classes[closed][1] in ("Pi", "Pe", "Pf", "quote"):
        closed -= 1
    following = None
    if gaps[i + 1] != "":
        last = i
        while last < i + 5 and gaps[last + 1] is not None and (last == i or not classes[last][0]):
            last += 1
        reached = last > i and (classes[last][0] or last == i + 5)
        following = classes[last] if reached else "end"
    seam = gaps[i + 1], classes[closed], following
    before = gaps[closed], shapes[closed - 1] if gaps[closed] is not None else None
    return tuple(pattern(1)), tuple(pattern(-1)), around(classes), seam, (seam, before), around(kinds)


def plain_keys(text):
    """The unhashed features of each atom, for text of Latin letters, digits and some punctuation."""
    kinds = {"L": 3, "N": 4}
    found = list(re.finditer(r"[^\W\d_]+|\d+|[^\w\s]", text))

    def shape(match):
        head = [(kinds.get(unicodedata.category(c)[0], 5), c != c.lower()) for c in match[0][:2]]
        return min(len(match[0]), 4), *head

    classes = [plain_class(match[0]) for match in found]
    gaps = [None, *(text[one.end() : other.start()] for one, other in pairwise(found)), None]
    for i, match in enumerate(found):
        own = match[0].lower()
        before = text[found[i - 1].end() : match.start()] if i else None
        after = text[match.end() : found[i + 1].start()] if i + 1 < len(found) else None
        first = i
        while first and found[first - 1].end() == found[first].start():
            first -= 1
        last = i
        while last + 1 < len(found) and found[last].end() == found[last + 1].start():
            last += 1
        yield (
            *(own, match[0], shape(match), own[-2:], own[-3:], own[:3], (before, after)),
            (found[i - 1][0].lower() if i else None, own),
            (own, found[i + 1][0].lower() if after is not None else None),
            (text[found[first].start() : found[last].end()].lower(), i - first),
            (shape(found[i + 1]) if after is not None else None, after),
            *plain_patterns([one[0][0] for one in found], classes, list(map(shape, found)), gaps, i),
        )


WORDS = ["Ab", "ab", "c", "Abc", "abcd", "ABCD", "1", "23", "é"]


@given(st.lists(st.sampled_from([*WORDS, " ", " ", *',."”-–()']), max_size=30).map("".join))
def test_features_tell_apart_what_they_stand_for(text):
    text = re.sub(" +", " ", text).strip()
    codes = codes_of(text)
    hashes = features_of(codes, atoms_of(codes, [len(text)], NONE))
    keys = list(plain_keys(text))
    assert hashes.shape == (len(keys), len(FEATURES))
    seen = {}
    for row, own in zip(hashes.tolist(), keys, strict=True):
        for kind, (value, key) in enumerate(zip(row, own, strict=True)):
            assert value
            assert seen.setdefault((kind, key), value) == value
    assert len(set(seen.values())) == len(seen)
    earlier = features_of(codes, atoms_of(codes, [len(text)], NONE), FEATURES_OF_FORMAT[1])
    assert (earlier == hashes[:, : FEATURES_OF_FORMAT[1]]).all()


@given(st.sets(st.integers(1, 2**64 - 1) | st.integers(1, 50)))
def test_hashes_are_found_again(keys):
    keys = np.array(sorted(keys), np.uint64)
    table = HashTable.of(keys, np.arange(len(keys)) + 7)
    assert ids_of(keys[:, None], table)[:, 0].tolist() == list(range(7, 7 + len(keys)))
    missing = np.setdiff1d(np.arange(1, 100, dtype=np.uint64), keys)
    assert not ids_of(missing[:, None], table).any()  # 0: the number of the kind of the only column
