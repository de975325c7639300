"""LR-spine parsing, compiled: Sartorio et al. (2013), as in `mh4.transitions.lr_spine`.

On a `State`, the arc from the root is made at the end, as in the paper's experiments, so one word is below the root.
Until then the parser works on the trees above the root. As in Algorithm 1, words are shifted automatically while there
are fewer than two of them, also after an arc that leaves one. Spines are not stored: each node of a spine is the
outermost dependent of the node before it.

Each candidate has its own context, relative to the arc that it makes (Table 1), and each type of transition has its own
weights.
"""

from numba import njit

from ..lr_spine import KINDS
from .arc_standard import initialize, shift_unasked
from .state import DEPTH, FRONT, LEFTMOST, NONE, RIGHTMOST, WORDS, add_arc, add_candidate, write_dependents

__all__ = ["TOKENS", "apply", "initialize", "list_candidates", "move"]

SHIFT, LEFT_ARC, RIGHT_ARC = range(len(KINDS))
_PLACEHOLDERS = ("s1", "s2", "s3", "q1", "q2", "gp", "gg")
TOKENS = (*_PLACEHOLDERS, *(f"{token}{side}" for token in ("s1", "s2") for side in ("l", "l2", "r", "r2")))


@njit(cache=True, nogil=True)
def move(transition, k, stack, depth, front, leftmost, rightmost):
    """Take a transition in place; returns depth and front after it, head and dependent (`NONE`: no arc).

    ``leftmost`` and ``rightmost``, int32, lead from each node of a left or a right spine to the next one.
    """
    if transition == SHIFT:
        stack[depth] = front
        return depth + 1, front + 1, NONE, NONE
    second, top = stack[depth - 2], stack[depth - 1]
    if transition == LEFT_ARC:
        stack[depth - 2] = top
        for _ in range(k - 1):
            top = leftmost[top]
        return depth - 1, front, top, second
    for _ in range(k - 1):
        second = rightmost[second]
    return depth - 1, front, second, top


@njit(cache=True, nogil=True)
def _context(state, candidates, i, transition, s1, s2, s3, q1, q2, gp, gg):
    tokens = candidates.tokens[i]
    tokens[0], tokens[1], tokens[2] = s1, s2, s3
    tokens[3], tokens[4], tokens[5], tokens[6] = q1, q2, gp, gg
    for j in range(2):
        write_dependents(state, tokens[j], tokens, 7 + 4 * j)
    candidates.groups[i] = transition


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """List the legal transitions, the shift first, each in its own context."""
    n, depth, front = state.counters[WORDS], state.counters[DEPTH], state.counters[FRONT]
    count = 0
    if depth < 2:
        return 0, 0
    top, second = state.stack[depth - 1], state.stack[depth - 2]
    third = state.stack[depth - 3] if depth > 2 else NONE
    b1 = front if front <= n else NONE
    b2 = front + 1 if front < n else NONE
    if front <= n:
        _context(state, candidates, count, SHIFT, top, second, third, b1, b2, NONE, NONE)
        count = add_candidate(candidates, count, count, SHIFT, 0, NONE, NONE)
    if second > 0:
        # The nodes above the head in the left spine are also the tokens that follow it (q1, q2).
        head, above, above2 = top, NONE, NONE
        q1, q2 = b1, b2
        k = 1
        while head != NONE:
            _context(state, candidates, count, LEFT_ARC, head, second, third, q1, q2, above, above2)
            count = add_candidate(candidates, count, count, LEFT_ARC, k, head, second)
            above, above2 = head, above
            q1, q2 = head, q1
            head = state.dependents[LEFTMOST, head]
            k += 1
    head, above, above2 = second, NONE, NONE
    k = 1
    while head != NONE:
        s3 = third if k == 1 else above
        _context(state, candidates, count, RIGHT_ARC, top, head, s3, b1, b2, above, above2)
        count = add_candidate(candidates, count, count, RIGHT_ARC, k, head, top)
        above, above2 = head, above
        head = state.dependents[RIGHTMOST, head]
        k += 1
    return count, count


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step, and shift automatically after it where needed."""
    counters, dependents = state.counters, state.dependents
    depth, front, head, dependent = move(
        transition,
        argument,
        state.stack,
        counters[DEPTH],
        counters[FRONT],
        dependents[LEFTMOST],
        dependents[RIGHTMOST],
    )
    counters[DEPTH], counters[FRONT] = depth, front
    if dependent != NONE:
        add_arc(state, head, dependent, relation)
        shift_unasked(state)
