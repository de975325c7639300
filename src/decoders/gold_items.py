"""The items of a transition chart that derivations of a given tree go through.

An item [i, l] or [i, j, l] of MH3 or MH4 says that the words between its heads are gone: attached, and off the stack. A
word that is gone has all its dependents, which are gone too, so the words that are gone form whole subtrees below heads
of the item. A typical tree has O(n) such items, whereas the chart has O(n²) for MH3 and O(n³) for MH4.
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

import numpy as np
from numba import njit

NO_ITEM = -1


@njit(nogil=True)
def without_root_arcs(heads):
    """Return a copy of the heads with −1 for the children of the root, and the number of these."""
    above = heads.copy()
    children = 0
    for d in range(1, heads.shape[0]):
        if heads[d] == 0:
            above[d] = -1
            children += 1
    return above, children


@njit(cache=True, nogil=True)
def items_of_tree(heads):
    """Return the items that may occur in a derivation of these heads, ``kept`` and ``pairs``.

    A head of −1 marks a word that only the last move may attach. ``kept[l, i]``, int32 (n + 2, n + 2), is 0 if all
    words between i and l can be gone, so that [i, l] is possible, and [i, j, l] for children j of i and l; it is j if
    only [i, j, l] is possible; else `NO_ITEM`. ``pairs``, int32 (P, 2), are the (i, l) with items, l ascending and i
    descending.
    """
    end = heads.shape[0]
    # A word w can only be gone between i and l if i ≤ low[w] and high[w] ≤ l.
    low, high = heads.copy(), heads.copy()
    for d in range(1, end):
        h = heads[d]
        if h > 0:
            low[h] = min(low[h], d - 1)
            high[h] = max(high[h], d + 1)
    kept = np.full((end + 1, end + 1), NO_ITEM, np.int32)
    pairs = np.empty((end * (end + 1) // 2, 2), np.int32)
    count = 0
    for l in range(1, end + 1):
        beyond = 0  # the word between i and l that is not gone, because it reaches beyond l
        lowest = second = end  # the two smallest values of `low` of the others, and the word of the smallest
        lowest_word = 0
        for i in range(l - 1, -1, -1):
            w = i + 1
            if w < l:
                if high[w] > l:
                    if beyond > 0:
                        break
                    beyond = w
                elif low[w] < lowest:
                    lowest, second, lowest_word = low[w], lowest, w
                else:
                    second = min(second, low[w])
            if lowest >= i:
                j = beyond
            elif beyond == 0 and second >= i:
                j = lowest_word
            else:
                continue
            if j > 0 and i < heads[j] < l:
                continue
            kept[l, i] = j
            pairs[count, 0], pairs[count, 1] = i, l
            count += 1
    return kept, pairs[:count]
