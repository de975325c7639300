"""The arcs that a policy rules out after an arc-standard step."""

from numba import njit

from mh4.transitions.arc_standard import POLICIES
from mh4.transitions.arrays.arc_standard import REDUCE_LEFT, REDUCE_RIGHT, SHIFT

LEFT_BEFORE_RIGHT, STRICT_LEFT_BEFORE_RIGHT, RIGHT_BEFORE_LEFT = range(len(POLICIES))


@njit(cache=True, nogil=True)
def restrictions(policy, transition, depth):
    """The arcs that a policy forbids in all steps after a transition, as (first, last, no_right).

    Elements first … last − 1 of the stack, which is ``depth`` deep after the transition, may not get left arcs; with
    ``no_right``, the topmost element may not get right arcs. All other demands of a policy concern the order in which
    arcs are found, not which trees can be reached (Nederhof 2019, section 4).
    """
    top = depth - 1
    if policy == RIGHT_BEFORE_LEFT:
        return 0, 0, transition == REDUCE_RIGHT
    if policy == STRICT_LEFT_BEFORE_RIGHT:
        # After a reduce_left the topmost element has a right arc.
        return 0, depth if transition == REDUCE_LEFT else top, False
    # A shift commits the previously topmost element to right arcs.
    return (top - 1, top, False) if transition == SHIFT else (0, 0, False)
