"""The policy ``chart-order``: the MH4 computation that a chart with fixed tie-breaking finds for a tree.

A tree has many computations. Gómez-Rodríguez, Shi and Lee (2018) train greedy MH4 on the one that their chart finds
when all transitions score 0 and only gold arcs count. Ties are then decided by the order in which the chart tries its
rules, as in the published implementation: shorter items first; among items of one length, by the distance of their
first two heads, then of the second and third; combinations before reductions; ra2, ra, la before ra', la', la2; a later
rule replaces an earlier one only if it scores higher. This order reduces words late, and so uses la' and ra2 far more
than reduce-before-shift does.
"""

import numpy as np
from numba import njit

from mh4.transitions.mh4 import MH4

_NEVER = -10_000  # score of impossible items and arcs; no number of gold arcs can make up for it
LONGEST = 200  # words; a sentence takes O(n ** 4) time and O(n ** 3) memory
_MOVES = len(MH4.transitions)


@njit(cache=True, nogil=True)
def _chart(arcs):
    """Scores and backpointers of the items with two and three heads.

    Parameters
    ----------
    arcs : int64 (n + 2, n + 2)
        Scores by head and dependent.

    Returns
    -------
    two, three : int16 (n + 2, n + 2), int16 (n + 2, n + 2, n + 2)
        The highest score of each item.
    of_two, of_three : int32, likewise
        Its reduction and the word that it removed, as `_MOVES` · word + reduction; 0: a combination of two items.
    """
    end = arcs.shape[0] - 1
    two, of_two = np.full((end + 1, end + 1), _NEVER, np.int16), np.zeros((end + 1, end + 1), np.int32)
    three = np.full((end + 1, end + 1, end + 1), _NEVER, np.int16)
    of_three = np.zeros((end + 1, end + 1, end + 1), np.int32)
    for i in range(end):
        two[i, i + 1] = 0
    for length in range(2, end + 1):
        for i in range(end + 1 - length):
            l = i + length  # noqa: E741
            for j in range(i + 1, l):
                if two[i, j] + two[j, l] > three[i, j, l]:
                    three[i, j, l], of_three[i, j, l] = two[i, j] + two[j, l], 0
                for k in range(j + 1, l):
                    four = max(three[i, j, k] + two[k, l], two[i, j] + three[j, k, l])
                    for move in range(1, _MOVES):
                        head = (i, j, l, i, k, l)[move - 1]
                        gone, kept = (k, j) if move < 4 else (j, k)
                        if four + arcs[head, gone] > three[i, kept, l]:
                            three[i, kept, l], of_three[i, kept, l] = four + arcs[head, gone], _MOVES * gone + move
                for move in (2, 3):
                    score = three[i, j, l] + arcs[i if move == 2 else l, j]
                    if score > two[i, l]:
                        two[i, l], of_two[i, l] = score, _MOVES * j + move
    return two, three, of_two, of_three


@njit(cache=True, nogil=True)
def chart_computation(gold):
    """Transitions, int64 (2n,), as indices of `MH4.transitions`, to the closest tree of the chart to ``gold``."""
    end = gold.shape[0]
    arcs = np.zeros((end + 1, end + 1), np.int64)
    arcs[end] = _NEVER
    for word in range(1, end):
        arcs[gold[word], word] = 1
    two, three, of_two, of_three = _chart(arcs)
    transitions = np.empty(2 * (end - 1), np.int64)
    count, size = 0, 1
    agenda = np.zeros((8 * end + 8, 5), np.int64)  # items (number of heads, heads) and transitions (0, transition)
    agenda[0, 0], agenda[0, 2] = 2, end
    while size > 0:
        size -= 1
        heads, i, j, k, l = agenda[size]  # noqa: E741
        if heads == 0:
            transitions[count] = i
            count += 1
            continue
        if heads == 2:
            if j == i + 1:
                continue
            gone, move = divmod(of_two[i, j], _MOVES)
            before = (3, i, gone, j, 0)
        elif heads == 3 and of_three[i, j, k] > 0:
            gone, move = divmod(of_three[i, j, k], _MOVES)
            before = (4, i, j, gone, k) if move < 4 else (4, i, gone, j, k)
        else:  # a combination: the shift comes between its two items
            move, after, before = 0, (2, j, k, 0, 0), (2, i, j, 0, 0)
            if heads == 4:
                later = two[i, j] + three[j, k, l] > three[i, j, k] + two[k, l]
                after = (3, j, k, l, 0) if later else (2, k, l, 0, 0)
                before = (2, i, j, 0, 0) if later else (3, i, j, k, 0)
            for column in range(5):
                agenda[size, column] = after[column]
            size += 1
        for column in range(5):
            agenda[size, column] = 0
            agenda[size + 1, column] = before[column]
        agenda[size, 1] = move
        size += 2
    return transitions
