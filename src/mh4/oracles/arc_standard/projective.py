"""The best score after an arc-standard step in quadratic or linear time, for projective gold trees.

Nederhof (2019), sections 5 and 6. Only *critical* words of the remaining input matter: words with a gold head in the
stack, and words that have a gold dependent in the stack, or a gold descendant in the remaining input that has one.
Critical words with the same topmost gold ancestor in the remaining input, the *root*, form a *component*. Indices i and
j are positions in the stack, b is a critical word, and 0 stands for the paper's ⊥ where a word is expected.

Table 5 is correct as printed, for all three policies. Two definitions need more precision: a word is not critical just
because its gold head has been removed, although the paper's condition "the parent is not in the remaining input" covers
it; and kappa(i), the smallest stack position with a gold arc from or to a_i, is i − 1 if that position is above i.
"""

import numpy as np
from numba import njit

NONE, CONSUMED, FRESH = range(3)  # the paper's N, C and F: the state of the current component
VALUE, NEXT, WORD = 0, 1, 2  # columns of slots and entries, see `best_after`
LISTED_AT = 1  # column of words, beside `VALUE`


@njit(cache=True, nogil=True)
def components(stack, front, gold):
    """Gold relations of stack and remaining input: M, the number of gold arcs within the latter, and two tables.

    First table, int32 (6, k + 1), for each i:

    0. the number of gold dependents of a_i in the remaining input,
    1. c(i): the leftmost of them,
    2. p(i): the gold head of a_i, if in the remaining input,
    3. p≥(i): the first p at or above i in the stack,
    4. P≥(i): the root of the component of p≥(i),
    5. the lowest stack position with a gold arc from or to a_i, k if there is none.

    Second table, int32 (2, n + 1), for each word b of the remaining input:

    0. R(b): the root of its component, 0 if b is not critical,
    1. if b is a root, the lowest stack position with a gold arc from or to its component.
    """
    n = gold.shape[0] - 1
    k = stack.shape[0] - 1
    of_stack = np.zeros((6, k + 1), np.int32)
    children, leftmost_child, parent = of_stack[0], of_stack[1], of_stack[2]
    next_parent, next_root, lowest = of_stack[3], of_stack[4], of_stack[5]
    of_words = np.zeros((2, n + 1), np.int32)
    root, root_lowest = of_words[0], of_words[1]
    position = np.full(n + 1, -1, np.int32)
    for i in range(k + 1):
        position[stack[i]] = i
        lowest[i] = k
    for b in range(front, n + 1):
        root_lowest[b] = k
    within = 0
    for b in range(front, n + 1):
        h = gold[b]
        if h >= front:
            within += 1
        elif position[h] >= 0:
            i = position[h]
            children[i] += 1
            if leftmost_child[i] == 0:
                leftmost_child[i] = b
            root[b] = b
            root_lowest[b] = i
    for i in range(1, k + 1):
        h = gold[stack[i]]
        if h >= front:
            parent[i] = h
            r = h
            while root[r] == 0 and gold[r] >= front:
                r = gold[r]
            if root[r] > 0:
                r = root[r]
            while root[h] == 0:
                root[h] = r
                h = gold[h]
                if h < front:
                    break
            root_lowest[r] = min(root_lowest[r], i)
        elif position[h] >= 0:
            j = position[h]
            lowest[i] = min(lowest[i], j)
            lowest[j] = min(lowest[j], i)
    for i in range(k, -1, -1):
        if parent[i] > 0:
            next_parent[i] = parent[i]
            next_root[i] = root[parent[i]]
        elif i < k:
            next_parent[i] = next_parent[i + 1]
            next_root[i] = next_root[i + 1]
    return within, of_stack, of_words


@njit(nogil=True)
def _state_after(state, next_parent, next_root, parent, root):
    """The state of the component after a reduction into a_i, with p≥(i) and P≥(i), of an element with the last two."""
    if state == NONE or next_root != root:
        return NONE
    return state if next_parent == parent else FRESH


@njit(nogil=True)
def _offer(b, value, i, words, listed, count):
    """List the word b at i, unless it is listed, and raise its value; return the number of listed words."""
    if words[b, LISTED_AT] != i:
        words[b, LISTED_AT] = i
        words[b, VALUE] = value
        listed[count] = b
        return count + 1
    words[b, VALUE] = max(words[b, VALUE], value)
    return count


@njit(nogil=True)
def _with_room(entries, used, more):
    """The entries, in a longer array if there is no room for so many more."""
    if used + more <= entries.shape[0]:
        return entries
    longer = np.empty((2 * (used + more), entries.shape[1]), np.int32)
    for entry in range(used):
        for column in range(entries.shape[1]):
            longer[entry, column] = entries[entry, column]
    return longer


@njit(nogil=True)
def _link(slot, slots, first, i):
    """Put a slot at the beginning of the list of i."""
    slots[slot, NEXT] = first[i]
    first[i] = slot


@njit(cache=True, nogil=True)
def best_after(stack, front, gold, first, last, no_right, linear):
    """The most gold arcs that any computation can build from a configuration on: the paper's sigma-max.

    The states score(i, j, q) and score'(i, b) of Table 5 are followed from the top of the stack down: the value of a
    state is the largest number of arcs found on the way to it from score(k − 1, k, N), and the result is the largest
    value of a state with i < 0. States with the same i are processed together: they lead to states with lower i, and
    score(i, j, q) also to score'(i, b). New pairs (j, q) begin only in states (j − 1, j, q), so each pair is at one i
    at a time, and one slot per pair is enough.

    Parameters
    ----------
    stack : int32 (k + 1,)
    front : int
    gold : int32 (n + 1,)
        Heads of a projective tree.
    first, last, no_right
        See `restrictions`.
    linear : bool
        Whether to skip the states that section 6 shows to be unnecessary.
    """
    n = gold.shape[0] - 1
    k = stack.shape[0] - 1
    within, of_stack, of_words = components(stack, front, gold)
    children, leftmost_child, parent = of_stack[0], of_stack[1], of_stack[2]
    next_parent, next_root, lowest = of_stack[3], of_stack[4], of_stack[5]
    root, root_lowest = of_words[0], of_words[1]
    total = within if no_right else within + children[k]
    if k == 0:
        return total

    # score(i, j, q): slot 3j + q; one linked list of slots per i
    slots = np.empty((3 * (k + 1), 2), np.int32)
    first_slot = np.full(k + 1, -1, np.int32)
    # score'(i, b): one linked list of entries per i, in which a word may occur repeatedly; grown on demand
    entries, used = np.empty((8, 3), np.int32), 0
    first_entry = np.full(k + 1, -1, np.int32)
    words = np.full((n + 1, 2), -1, np.int32)  # the best of the entries of a word
    listed = np.empty(n + 1, np.int32)

    slots[3 * k + NONE, VALUE] = 0
    _link(3 * k + NONE, slots, first_slot, k - 1)
    best = 0
    for i in range(k - 1, -1, -1):
        # Section 6: if a_i is reduced without a gold arc, so is everything down to its lowest gold neighbour.
        jump = lowest[i] if linear and lowest[i] < i else i - 1
        new = 3 * i  # slots of score(i − 1, i, q)
        for slot in range(new, new + 3):
            slots[slot, VALUE] = -1
        count = 0
        entry = first_entry[i]
        while entry >= 0:
            count = _offer(entries[entry, WORD], entries[entry, VALUE], i, words, listed, count)
            entry = entries[entry, NEXT]

        slot = first_slot[i]
        while slot >= 0:
            following, arcs = slots[slot, NEXT], slots[slot, VALUE]
            j = slot // 3
            q = slot - 3 * j
            # a_j is reduced into a_i, which then gets its dependents in the remaining input
            found = arcs + children[i] + (gold[stack[j]] == stack[i])
            if q != NONE and leftmost_child[i] == next_root[j]:
                found -= 1
            after = new + _state_after(q, next_parent[i], next_root[i], next_parent[j], next_root[j])
            slots[after, VALUE] = max(slots[after, VALUE], found)
            # the gold head of a_j is shifted, a_j reduced into it
            if parent[j] > 0 and q != CONSUMED:
                count = _offer(parent[j], arcs + (q == NONE), i, words, listed, count)
            # a_i is reduced into a_j
            is_gold = gold[stack[i]] == stack[j]
            if (j < first or j >= last) and (is_gold or not linear or lowest[j] < i):
                target = i - 1 if is_gold else jump
                slots[slot, VALUE] = arcs + is_gold
                if target >= 0:
                    _link(slot, slots, first_slot, target)
                else:
                    best = max(best, slots[slot, VALUE])
            slot = following

        entries = _with_room(entries, used, count)
        for at in range(count):
            b = listed[at]
            arcs = words[b, VALUE]
            # b is reduced into a_i, which then gets its dependents in the remaining input
            after = new + _state_after(CONSUMED, next_parent[i], next_root[i], b, root[b])
            slots[after, VALUE] = max(slots[after, VALUE], arcs + children[i])
            # a_i is reduced into its gold head, if that is b or above b in its component, or else into b
            target = i - 1
            if parent[i] > 0 and root[parent[i]] == root[b]:
                b = parent[i]
                arcs += 1
            elif linear:
                if root_lowest[root[b]] >= i:
                    continue
                target = jump
            if target >= 0:
                entries[used, WORD] = b
                entries[used, VALUE] = arcs
                _link(used, entries, first_entry, target)
                used += 1
            else:
                best = max(best, arcs)

        for slot in range(new, new + 3):
            if slots[slot, VALUE] < 0:
                continue
            if i == 0:
                best = max(best, slots[slot, VALUE])
            else:
                _link(slot, slots, first_slot, i - 1)
    return total + best
