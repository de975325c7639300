"""The reduces of the MH4 transition system as a table; MH3 has two of them, ``ra`` and ``la``.

They work on a window of four words: the top three of the stack, of which s0 is the topmost, and b0, the first in the
buffer.
"""

import numpy as np
from numba.extending import register_jitable

from .shared import Group

WINDOW = ("s2", "s1", "s0", "b0")
REDUCE_NAMES = ("ra2", "ra", "la", "ra'", "la'", "la2")
RA2, RA, LA, RA1, LA1, LA2 = range(6)  # RA1 and LA1 are ra' and la'
REDUCES = np.array([(0, 2), (1, 2), (3, 2), (0, 1), (2, 1), (3, 1)])
"""Head and dependent of each reduce, as indices into the window; the dependent leaves the stack."""


@register_jitable
def place_of_pair(i, j):
    """Index of the pair i < j in charts that have a row for each pair."""
    return j * (j - 1) // 2 + i


def hybrid_groups() -> tuple[Group, Group]:
    """Groups of reduce channels (see `shared`): those with the removed word, s0 or s1, as row, and the others."""
    of_s0, of_s1 = REDUCE_NAMES[:3], REDUCE_NAMES[3:]
    return (
        (*((f"{name}[s0,b0]", "row") for name in of_s0), *((f"{name}[s1,s0]", "row") for name in of_s1)),
        (*((f"{name}[s1,s0]", "all") for name in of_s0), *((f"{name}[s0,b0]", "all") for name in of_s1)),
    )
