"""Chart rules as text, and the walk back through a filled chart that follows them.

The kernels that fill a chart with dozens of kinds of items are written for speed and store no backpointers. The walk
back finds where a value came from by trying the rules of the item one by one, so it needs the rules as data. A line

    ``FbA(a,b,x)   k∈(a,b):  c(a,k) F0(a,k,x) D(k,b)  |  c(x,k) Z(a,k) FbX(k,b,a)``

has an item, what k (and l) run over, and alternatives, each a sum of scores and smaller items; the item is the maximum.
Intervals have a direction: (a,b) holds what lies strictly between a and b, walked from a, and a may be the larger one.

=========  ======================================================
``a⁺``     the neighbour of a on the side of b
``b⁻``     the neighbour of b on the side of a
``⊥``      none, as a grandparent or sibling: position n + 1
``∅``      no grandparent part at all: position n + 2
=========  ======================================================
"""

import re
from typing import NamedTuple

import numpy as np
from numba import njit

INDICES = ("a", "b", "x", "k", "l", "a⁺", "b⁻", "⊥", "∅")
RANGES = ("", "k∈(a,b)", "k∈(a,b]", "k∈[a,b)", "k∈(a,b) l∈(a,k)")
TERMS = 5  # largest number of scores and items in one alternative
FIRST_TERM = 3  # columns of a rule before its terms: item, range, number of terms

_RULE = re.compile(r"(\w+)\(([^)]*)\)(.*)")
_TERM = re.compile(r"(\w+)\(([^)]*)\)")


class Grammar(NamedTuple):
    """Rules of a chart; a kind is an index into the names of the items and scores."""

    kinds: tuple[str, ...]
    # int32 (R, 3 + 4 · 5), sorted by item: item, range, number of terms, then for each term its kind and three indices
    rules: np.ndarray
    first: np.ndarray  # int32 (kinds + 1,): the rules of kind t are ``first[t]`` to ``first[t + 1] - 1``
    symmetric: np.ndarray  # bool (kinds,): items that do not depend on the direction of the interval
    empty: np.ndarray  # bool (kinds,): items worth 0 where no word lies inside the interval
    channel: np.ndarray  # int32 (kinds,): channel of a score, -1 for an item
    arc: np.ndarray  # bool (kinds,): scores that are the score of an arc (head, dependent)


def parse_grammar(
    text: str,
    kinds: tuple[str, ...],
    channels: dict[str, int],
    arcs: set[str],
    symmetric: set[str],
    empty: set[str],
) -> Grammar:
    """Read rules, one or several alternatives per line; ValueError for a malformed rule or an unknown name.

    ``kinds`` are all names that may occur, ``channels`` maps those of scores to their channels; for the others see
    `Grammar`.
    """
    rows = []
    for line in filter(None, map(str.strip, text.splitlines())):
        head = _RULE.fullmatch(line)
        if head is None:
            raise ValueError(f"not a rule: {line!r}")
        item, _, rest = head.groups()
        where, _, alternatives = rest.rpartition(":")
        for alternative in alternatives.split("|"):
            terms = _TERM.findall(alternative)
            row = [kinds.index(item), RANGES.index(where.strip()), len(terms)]
            for name, indices in terms:
                positions = [INDICES.index(index) for index in indices.split(",")]
                row += [kinds.index(name), *positions, *[0] * (3 - len(positions))]
            rows.append(row + [0] * (FIRST_TERM + 4 * TERMS - len(row)))
    rules = np.array(sorted(rows, key=lambda row: row[0]), np.int32)
    return Grammar(
        kinds,
        rules,
        np.searchsorted(rules[:, 0], np.arange(len(kinds) + 1)).astype(np.int32),
        np.array([kind in symmetric for kind in kinds]),
        np.array([kind in empty for kind in kinds]),
        np.array([channels.get(kind, -1) for kind in kinds], np.int32),
        np.array([kind in arcs for kind in kinds]),
    )


@njit(nogil=True)
def _total(memory, places, rule, at):
    """The sum of one alternative at the positions ``at``, in the order of `INDICES`."""
    total = np.float32(0)
    for t in range(FIRST_TERM, FIRST_TERM + 4 * rule[2], 4):
        kind = rule[t]
        place = places[kind, 0] + places[kind, 1] * at[rule[t + 1]]
        total += memory[place + places[kind, 2] * at[rule[t + 2]] + places[kind, 3] * at[rule[t + 3]]]
    return total


@njit(nogil=True)
def _best_alternative(memory, places, rules, start, stop, at):
    """The first best of the rules start…stop − 1, −1 if all are forbidden; writes its k and l to ``at``."""
    a, b = at[0], at[1]
    step = 1 if a < b else -1
    best, chosen, best_k, best_l = np.float32(-np.inf), -1, 0, 0
    for r in range(start, stop):
        where = rules[r, 1]
        first_k, last_k = a + step, b - step
        if where == 0:
            first_k = last_k = b
        elif where == 2:
            last_k = b
        elif where == 3:
            first_k = a
        for k in range(first_k, last_k + step, step):
            at[3] = k
            first_l, stop_l = (a + step, k) if where == 4 else (a, a + step)
            for inner in range(first_l, stop_l, step):
                at[4] = inner
                total = _total(memory, places, rules[r], at)
                if total > best:
                    best, chosen, best_k, best_l = total, r, k, inner
    at[3], at[4] = best_k, best_l
    return chosen


@njit(cache=True, nogil=True)
def walk_back(memory, places, rules, first, symmetric, empty, channel, arc, goal, heads, parts):
    """Follow the best derivation from the goal; fill heads and parts, return the number of parts, −1 if there is none.

    The chart has no backpointers: the rules of each item are tried again, and the first best is taken.
    ``memory``, float32, holds all charts and scores: item or score t with the positions i, j and x is at
    ``places[t, 0] + places[t, 1] i + places[t, 2] j + places[t, 3] x``. ``goal`` is kind and positions of the item that
    spans the sentence; for the rules see `Grammar`.
    """
    n = heads.shape[0] - 1
    # Items on the stack share no words, except those worth 0, at most one of which is pushed with each other item.
    stack = np.empty((4 * n + 16, 4), np.int64)
    for t in range(4):
        stack[0, t] = goal[t]
    size = 1
    count = 0
    at = np.empty(9, np.int64)
    at[7], at[8] = n + 1, n + 2
    while size > 0:
        size -= 1
        kind = stack[size, 0]
        a, b = stack[size, 1], stack[size, 2]
        if symmetric[kind] and a > b:
            a, b = b, a
        step = 1 if a < b else -1
        at[0], at[1], at[2] = a, b, stack[size, 3]
        at[5], at[6] = a + step, b - step
        chosen = _best_alternative(memory, places, rules, first[kind], first[kind + 1], at)
        if chosen < 0:
            return -1
        rule = rules[chosen]
        for t in range(FIRST_TERM, FIRST_TERM + 4 * rule[2], 4):
            kind = rule[t]
            i, j, x = at[rule[t + 1]], at[rule[t + 2]], at[rule[t + 3]]
            if channel[kind] < 0:
                if i != j and not (empty[kind] and abs(i - j) == 1):
                    stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = kind, i, j, x
                    size += 1
            elif i <= n + 1:
                parts[count, 0], parts[count, 1], parts[count, 2] = channel[kind], i, j
                count += 1
                if arc[kind]:
                    heads[j] = i
    return count
