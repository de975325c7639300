"""The loss of a configuration of Covington's parser, calculated from scratch in linear time (Theorem 1).

The loss is the least number of words with a wrong head in any tree that can be reached. It is the number of gold arcs
that cannot be reached even one by one, and for each cycle that the others form with the arcs made so far, one more.

An arc from the root is never made, but stands for the lack of an arc: a gold arc 0 → y can be reached until y gets a
head. With this understood, brute force confirms the theorem.

Source: Gómez-Rodríguez and Fernández-González (2015), "An efficient dynamic oracle for unrestricted non-projective
parsing", section 3, Algorithm 1.
"""

import numpy as np
from numba import njit

from mh4.transitions.transition_system import NO_HEAD


@njit(cache=True, nogil=True)
def topmost_words(heads, tops):
    """Fill tops, int (n + 1,), with the word without head that each is at or below; False if there is a cycle."""
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
    """Whether words can have these heads, and no others, when the focus words are ``left`` and ``right``."""
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
    """Cycles of the graph with the arcs above[y] → y, int32 (n + 1,), where above[y] is 0 if there is no other."""
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
    """The loss of a configuration, which `is_configuration`; O(n). Arguments, unchecked, as for `step_scores_batch`."""
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
