"""The items of a transition chart that derivations of a given tree go through.

An item [i, l] or [i, j, l] of MH3 or MH4 says that the words between its heads are gone: attached, and off the stack. A
word that is gone has found all its dependents, which are gone too. So all that is gone are whole subtrees, hanging from
heads of the item: O(n) items of a usual tree, where a chart has O(n²) and O(n³).
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

import numpy as np
from numba import njit

NO_ITEM = -1


@njit(nogil=True)
def without_root_arcs(heads):
    """A copy of the heads in which children of the root have no head, −1; how many they are."""
    above = heads.copy()
    children = 0
    for d in range(1, heads.shape[0]):
        if heads[d] == 0:
            above[d] = -1
            children += 1
    return above, children


@njit(cache=True, nogil=True)
def items_of_tree(heads):
    """The items that can be of use, for n words with these heads, −1 where no arc may be made yet: kept and pairs.

    ``kept[l, i]``, int32 (n + 2, n + 2), is 0 if all words between i and l can be gone, so that there may be an item
    [i, l] and items [i, j, l] for children j of i and l; it is j if only [i, j, l] can be; else `NO_ITEM`. ``pairs``,
    int32 (P, 2), are the (i, l) with items, l ascending and i descending.
    """
    end = heads.shape[0]
    # What is gone, with i and l, has to reach from `low` to `high` of each of its words.
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
        beyond = 0  # the word between i and l that is not gone, for it reaches beyond l
        lowest = second = end  # the lowest two of the others, and the word of the lowest
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
