"""Shared parts of the oracles that work on compiled configurations.

An oracle gives each candidate of a `mh4.transitions.arrays.state.State` a cost: the number of gold arcs that it loses,
or any other number whose minimum marks the optimal candidates. Relations are ignored. A static oracle gives 0 to one
candidate, the `static_transition` of its system, and 1 to the others.
"""

import numpy as np
from numba import njit

from mh4.decoders.trees import crossings
from mh4.transitions.arrays.state import TRANSITION

STATIC, DYNAMIC, ALL_PAIRS, EXACT, APPROXIMATE, CHART_ORDER = range(6)
ORACLE_NAMES = ("static", "dynamic", "all-pairs", "exact", "approximate", "chart-order")
"""``all-pairs`` is a static oracle of Covington parsing, ``chart-order`` one of MH4 parsing. ``exact`` and
``approximate`` are dynamic oracles of projective parsers for gold trees as annotated: ``exact`` takes cubic time unless
the tree is projective, ``approximate`` treats every tree as projective."""
ON_ORIGINAL_TREES = ("exact", "approximate")
EXPLORING = ("dynamic", *ON_ORIGINAL_TREES)

# Rows of notes. The first cell of CROSSED is whether arcs cross; rows from OWN_NOTES on are free for each oracle.
CHILDREN, FIRST_CHILD, LAST_CHILD, CROSSED, OWN_NOTES = range(5)


@njit(cache=True, nogil=True)
def note_crossing(gold, notes):
    """Note whether any two arcs of a gold tree cross."""
    notes[CROSSED, 0] = crossings(gold).any()


@njit(cache=True, nogil=True)
def note_children(gold, notes):
    """Fill three rows of notes, int32, for each token: how many gold children it has, and the first and last position
    among these and itself.
    """
    for position in range(gold.shape[0]):
        notes[CHILDREN, position] = 0
        notes[FIRST_CHILD, position] = position
        notes[LAST_CHILD, position] = position
    for child in range(1, gold.shape[0]):
        head = gold[child]
        notes[CHILDREN, head] += 1
        notes[FIRST_CHILD, head] = min(notes[FIRST_CHILD, head], child)
        notes[LAST_CHILD, head] = max(notes[LAST_CHILD, head], child)


@njit(cache=True, nogil=True)
def children_of(gold):
    """The rows that `note_children` fills: int32 (3, n + 1)."""
    notes = np.empty((LAST_CHILD + 1, gold.shape[0]), np.int32)
    note_children(gold, notes)
    return notes


@njit(cache=True, nogil=True)
def write_static_costs(candidates, count, right):
    """Give cost 0 to the transition ``right``, and cost 1 to the other candidates."""
    for c in range(count):
        candidates.costs[c] = 0 if candidates.rows[c, TRANSITION] == right else 1
