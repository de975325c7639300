"""A static oracle of the MH4 transition system: which trees it can build, and how.

A word is removed as soon as it is *complete*, with all its gold dependents, and has its gold head within reach; the
next word is read when no word can be removed. This builds every tree that can be built at all. Let a computation lead
to the gold tree from a configuration in which a word can be removed. The same computation less the step that removes
the word leads there after it has been removed: it is no head any more, and without it all other words are as near to
the top of the stack as before or nearer, so that their steps still apply. So removing a word never does harm, and where
two could be removed the order is of no account; here the topmost one comes first.

A gold tree that cannot be built is replaced by the closest one that the chart decoder finds. The chart covers nearly
all that the system does (Gómez-Rodríguez, Shi and Lee 2018, section 3.2), so there is seldom a closer one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mh4.decoders import InfeasibleError, get_decoder
from mh4.decoders.trees import checked_tree
from mh4.transitions.mh4 import MH4

SHIFT, RA2, RA, LA, RA1, LA1, LA2 = range(len(MH4.transitions))

# Charts too large for memory are searched with a beam instead.
_CLOSEST = "beam:64"


@njit(cache=True, nogil=True)
def reduction(gold, s2, s1, s0, b0, complete, complete_below):
    """The transition that removes s0, or else s1, with its gold head; `SHIFT` if neither can be removed.

    Parameters
    ----------
    gold : int32 (n + 1,)
    s2, s1, s0, b0 : int
        The three topmost elements of the stack and the next word; −1 where the stack ends, n + 1 where the input does.
    complete, complete_below : bool
        Whether s0 and s1 have all their gold dependents.
    """
    if complete and s0 > 0:
        head = gold[s0]
        if head == s1:
            return RA
        if head == b0:
            return LA
        if head == s2:
            return RA2
    if complete_below and s1 > 0:
        head = gold[s1]
        if head == s0:
            return LA1
        if head == s2:
            return RA1
        if head == b0:
            return LA2
    return SHIFT


@njit(cache=True, nogil=True)
def _run(gold, transitions):
    """Fill transitions, int8 (2n,), as far as the oracle gets; returns whether that is to the end."""
    n = gold.shape[0] - 1
    missing = np.zeros(n + 1, np.int32)  # gold dependents that a word has not got yet
    for word in range(1, n + 1):
        missing[gold[word]] += 1
    stack = np.empty(n + 1, np.int32)
    stack[0] = 0
    depth, front = 1, 1
    for step in range(2 * n):
        s0 = stack[depth - 1]
        s1 = stack[depth - 2] if depth > 1 else -1
        s2 = stack[depth - 3] if depth > 2 else -1
        transition = reduction(gold, s2, s1, s0, front, missing[s0] == 0, s1 >= 0 and missing[s1] == 0)
        transitions[step] = transition
        if transition == SHIFT:
            if front > n:
                return False
            stack[depth] = front
            depth += 1
            front += 1
            continue
        depth -= 1
        removed = s0
        if transition >= RA1:
            removed = s1
            stack[depth - 1] = s0
        missing[gold[removed]] -= 1
    return True


def is_derivable(heads: np.ndarray, single_root: bool = False) -> bool:
    """Whether the system can build a tree; O(n).

    Parameters
    ----------
    heads : int (n + 1,)
        A tree, −1 at 0.
    single_root : bool
        See `MH4`.

    Raises
    ------
    ValueError
        ``heads`` is not a tree.
    """
    gold = np.ascontiguousarray(checked_tree(heads), np.int32)
    if single_root and np.count_nonzero(gold == 0) != 1:
        return False
    return bool(_run(gold, np.empty(2 * len(gold), np.int8)))


def closest_derivable(heads: np.ndarray, single_root: bool = False) -> np.ndarray:
    """The tree itself if the system can build it, or else the closest one that the chart decoder can.

    Parameters
    ----------
    heads : int (n + 1,)
        A tree, −1 at 0.
    single_root : bool
        See `MH4`.

    Returns
    -------
    int32 (n + 1,)
        A new array.

    Raises
    ------
    InfeasibleError
        One word below the root is wanted, and there is no word.
    ValueError
        ``heads`` is not a tree.
    """
    if is_derivable(heads, single_root):
        return np.array(heads, np.int32)
    if len(heads) == 1:
        raise InfeasibleError("no word, so none to be attached to the root")
    return get_decoder("mh4-two", single_root, search=_CLOSEST).closest_tree(heads)


def optimal_computation(gold: np.ndarray, single_root: bool = False) -> tuple[str, ...]:
    """Transitions to a tree, or to the one of `closest_derivable`: every word is removed as soon as possible.

    Parameters
    ----------
    gold : int (n + 1,)
        Heads of the gold tree, −1 at 0.
    single_root : bool
        See `MH4`.

    Raises
    ------
    InfeasibleError, ValueError
        As `closest_derivable`.
    """
    heads = closest_derivable(gold, single_root)
    transitions = np.empty(2 * (len(heads) - 1), np.int8)
    _run(heads, transitions)
    return tuple(MH4.transitions[transition] for transition in transitions)
