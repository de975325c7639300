"""Feature templates: a notation, and the kernel that turns a context into hashed features.

A template is a conjunction of atoms between spaces. ``d`` is the distance between the system's first two tokens; any
other atom is TOKEN.ATTRIBUTE:

======  =====================================================================
``w``   form of the word
``p``   part of speech
``l``   relation of the arc to it
``vl``  left valency: number of left dependents
``vr``  right valency: number of right dependents
``sl``  set of the relations of its left dependents
``sr``  set of the relations of its right dependents
======  =====================================================================

A template gives no feature where none of its tokens exists.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from mh4.transitions.arrays.state import LEFT, RIGHT

ATTRIBUTES = ("w", "p", "l", "vl", "vr", "sl", "sr")
_FORM, _TAG, _RELATION, _LEFT_VALENCY, _RIGHT_VALENCY, _LEFT_SET, _RIGHT_SET = range(len(ATTRIBUTES))
_DISTANCE = len(ATTRIBUTES)
_MISSING = -2  # value of any attribute of a missing token; −1 is a relation not yet known

MOST_ATOMS = 4  # per template


class Templates(NamedTuple):
    """F templates over M atoms, in arrays for the kernels."""

    atoms: np.ndarray  # int32 (M, 2): slot of the token in a context, attribute
    conjunctions: np.ndarray  # int32 (F, MOST_ATOMS): rows of `atoms`, then −1
    tokens: np.ndarray  # int64 (F,); bit i: the template has an atom of slot i


def compile_templates(templates: Sequence[str], tokens: Sequence[str]) -> Templates:
    """Compile templates to arrays.

    ValueError: More than 63 tokens; an unknown token or attribute; a template that repeats another or has not 1 to 4
    atoms.
    """
    atoms: dict[tuple[int, int], int] = {}
    conjunctions = np.full((len(templates), MOST_ATOMS), -1, np.int32)
    masks = np.zeros(len(templates), np.int64)
    if len(tokens) > 63:
        raise ValueError(f"{len(tokens)} tokens; 63 are possible")
    seen: set[frozenset[str]] = set()
    for f, template in enumerate(templates):
        names = template.split()
        if not 1 <= len(names) <= MOST_ATOMS or frozenset(names) in seen:
            raise ValueError(f"template {template!r} is given twice or has not 1 to {MOST_ATOMS} atoms")
        seen.add(frozenset(names))
        for i, name in enumerate(names):
            token, _, attribute = name.partition(".")
            if name == "d":
                atom = (0, _DISTANCE)
                masks[f] |= 3
            elif token in tokens and attribute in ATTRIBUTES:
                atom = (tokens.index(token), ATTRIBUTES.index(attribute))
                masks[f] |= 1 << atom[0]
            else:
                raise ValueError(
                    f"unknown atom {name!r} in template {template!r}; known tokens: {', '.join(tokens)}; "
                    f"attributes: {', '.join(ATTRIBUTES)}"
                )
            conjunctions[f, i] = atoms.setdefault(atom, len(atoms))
    return Templates(np.array(list(atoms), np.int32).reshape(-1, 2), conjunctions, masks)


@njit(cache=True, nogil=True, inline="always")
def _bucket(distance):
    """The bucket of a distance: 1, 2, 3, 4, 5 to 10, or more."""
    if distance > 10:
        return 6
    return min(distance, 5)


@njit(cache=True, nogil=True)
def _value(attribute, token, words, base, state):
    if attribute == _FORM:
        return np.int64(words[0, base + token])
    if attribute == _TAG:
        return np.int64(words[1, base + token])
    if attribute == _RELATION:
        return np.int64(state.relations[token])
    if attribute == _LEFT_VALENCY:
        return np.int64(state.valencies[LEFT, token])
    if attribute == _RIGHT_VALENCY:
        return np.int64(state.valencies[RIGHT, token])
    if attribute == _LEFT_SET:
        return state.relation_sets[LEFT, token]
    return state.relation_sets[RIGHT, token]


@njit(cache=True, nogil=True)
def feature_keys(templates, words, base, state, tokens, group, values, keys):
    """Write the hashed features of one context to ``keys``, int64 (F,), none of them 0; returns how many.

    ``words``, int32 (2, P), are form and part of speech of all positions of a treebank; those of the sentence begin at
    ``base``. ``tokens``, int32 (S,), are the context; ``values``, int64 (M,), is room for the values of the atoms.
    """
    present = np.int64(0)
    for slot in range(tokens.shape[0]):
        if tokens[slot] >= 0:
            present |= np.int64(1) << np.int64(slot)
    for m in range(templates.atoms.shape[0]):
        token = tokens[templates.atoms[m, 0]]
        attribute = templates.atoms[m, 1]
        values[m] = _MISSING
        if token >= 0:
            if attribute != _DISTANCE:
                values[m] = _value(attribute, token, words, base, state)
            elif tokens[1] >= 0:
                values[m] = _bucket(abs(token - tokens[1]))
    count = 0
    for f in range(templates.conjunctions.shape[0]):
        if templates.tokens[f] & present == 0:
            continue
        key = np.uint64(f + 1) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(group) * np.uint64(0xD1B54A32D192ED03)
        for i in range(MOST_ATOMS):
            m = templates.conjunctions[f, i]
            if m < 0:
                break
            key = (key ^ np.uint64(values[m])) * np.uint64(0xFF51AFD7ED558CCD)
            key ^= key >> np.uint64(32)
        keys[count] = np.int64(key | np.uint64(1))
        count += 1
    return count
