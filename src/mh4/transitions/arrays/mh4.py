"""MH4 parsing, compiled, as in `mh4.transitions.mh4`: arc-hybrid parsing with a larger table of reductions.

On a `State`, exactly one word is below the root. The tokens are the same as for arc-hybrid parsing.
"""

from numba import njit

from mh4.decoders.mh4_transitions import REDUCES

from .arc_hybrid import TOKENS, initialize, list_reduces, take

__all__ = ["REDUCES", "TOKENS", "apply", "initialize", "list_candidates"]


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """List the legal transitions, in one context."""
    return list_reduces(REDUCES, state, candidates)


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step."""
    take(REDUCES, state, transition, relation)
