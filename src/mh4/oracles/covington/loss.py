"""The loss of a configuration of Covington's parser, calculated from scratch in linear time (Theorem 1).

The loss is the smallest number of words with a wrong head in any tree that can be reached. It is the number of gold
arcs that cannot be reached even individually, plus the number of cycles that the other gold arcs form together with the
arcs made so far.

Arcs from the root are never made; they stand for the lack of an arc, so a gold arc 0 → y can be reached until y gets a
head. Read this way, the theorem is confirmed by brute force.

Source: Gómez-Rodríguez and Fernández-González (2015), "An efficient dynamic oracle for unrestricted non-projective
parsing", section 3, Algorithm 1.
"""

import numpy as np
from numba import njit

from mh4.transitions.transition_system import NO_HEAD


@njit(cache=True, nogil=True)
def topmost_words(heads, tops):
    """Fill tops, int (n + 1,), with the topmost ancestor of each word, or itself; return False if there is a cycle."""
    n = heads.shape[0] - 1
    tops[:] = NO_HEAD
    path = np.empty(n + 1, np.int32)
    for word in range(n + 1):
        length, node = 0, np.int32(word)
        while tops[node] == NO_HEAD and heads[node] != NO_HEAD:
            if length > n:
                return False
            path[length] = node
            length += 1
            node = heads[node]
        top = node if heads[node] == NO_HEAD else tops[node]
        tops[node] = top
        for k in range(length):
            tops[path[k]] = top
    return True


@njit(cache=True, nogil=True)
def is_configuration(heads, left, right):
    """Whether some computation leads to exactly these heads with ``left`` and ``right`` as focus words."""
    n = heads.shape[0] - 1
    if n < 0 or heads[0] != NO_HEAD or left < 0 or left >= right or right > n + 1 or (right > n and left < n):
        return False
    for word in range(1, n + 1):
        head = heads[word]
        if head == NO_HEAD:
            continue
        if head < 1 or head > n or head == word:
            return False
        last = max(head, word)
        if last > right or (last == right and min(head, word) <= left):
            return False
    return topmost_words(heads, np.empty(n + 1, np.int32))


@njit(cache=True, nogil=True)
def _count_cycles(above):
    """The number of cycles in the graph of arcs above[y] → y; ``above``, int32 (n + 1,), is 0 where there is no arc."""
    seen_from = np.zeros(above.shape[0], np.int32)
    cycles = 0
    for word in range(1, above.shape[0]):
        node = np.int32(word)
        while node != 0 and seen_from[node] == 0:
            seen_from[node] = word
            node = above[node]
        if node != 0 and seen_from[node] == word:
            cycles += 1
    return cycles


@njit(cache=True, nogil=True)
def loss_on_arrays(heads, left, right, gold):
    """The loss of a valid configuration (see `is_configuration`; unchecked), in O(n). ``gold`` is int32 (n + 1,)."""
    tops = np.empty(heads.shape[0], np.int32)
    topmost_words(heads, tops)
    above = np.zeros(heads.shape[0], np.int32)
    unreachable = 0
    for word in range(1, heads.shape[0]):
        head = gold[word]
        if heads[word] != NO_HEAD:
            above[word] = heads[word]
            unreachable += head != heads[word]
        elif head != 0:
            first, last = min(head, word), max(head, word)
            passed = right > last or (right == last and left < first)
            if passed or tops[word] == tops[head]:
                unreachable += 1
            else:
                above[word] = head
    return unreachable + _count_cycles(above)
