"""MH4 parsing, the transition system of the MH4 decoder: one of the two topmost words is attached nearby and removed.

It extends arc-hybrid parsing from three heads to four. As there, the root 0 is the bottom of the stack, and a sentence
of n words takes n shifts and n reductions.

Source: Gómez-Rodríguez, Shi and Lee (2018), "Global transition-based non-projective dependency parsing", section 3.2.
"""

from typing import ClassVar

from .arc_hybrid import SHIFT, ArcHybrid, Configuration

__all__ = ["MH4", "SHIFT", "Configuration"]


class MH4(ArcHybrid):
    """Attach either of the two topmost words to the other, to the third or to the next word of the input; remove it.

    The system builds all projective trees and many others, more than the chart of the same name, which does not cover
    every order of transitions. With the stack S s2 s1 s0 and the remaining input b0 B:

    =======  ========  =======
    name     arc       removes
    =======  ========  =======
    ``ra2``  (s2, s0)  s0
    ``ra``   (s1, s0)  s0
    ``la``   (b0, s0)  s0
    ``ra'``  (s2, s1)  s1
    ``la'``  (s0, s1)  s1
    ``la2``  (b0, s1)  s1
    =======  ========  =======

    The root is never removed. For ``shift`` and the parameters see `ArcHybrid`.
    """

    name = "mh4"
    transitions = (SHIFT, "ra2", "ra", "la", "ra'", "la'", "la2")
    reduces: ClassVar[dict[str, tuple[int, int]]] = {
        "ra2": (0, 2),
        "ra": (1, 2),
        "la": (3, 2),
        "ra'": (0, 1),
        "la'": (2, 1),
        "la2": (3, 1),
    }
