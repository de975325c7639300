"""First-order projective parsing in O(n³) time and O(n²) space.

MH3 builds exactly the projective trees, so the chart is that of `mh3`, with scores of 0 for its moves and the arc
scores as its arc bonus.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from .arc_factored import ArcFactored, arc_parts, fill_parts, sentence_of_batch
from .derivation import PartMarginals, Solved
from .lanes import padded
from .mh3 import walk_back
from .mh3_chart import NEG, fill, item_values
from .mh3_outside import max_marginals, outside_floats
from .mh3_sums import ProjectiveSums, projective_sums_bytes
from .numbers import check_numbers, derivation_score


@njit(cache=True, nogil=True)
def _decode(scores, arc_bonus, single_root, heads, parts):
    """Fill heads and parts with the best projective tree; return the number of parts, −1 if none, and its score."""
    is_high = check_numbers(scores, arc_bonus)
    size = scores.shape[1]
    charts = np.empty((3, size, padded(size)), np.float32)
    moves, bonus = np.zeros((3, size, size), np.float32), scores[0] + arc_bonus
    fill(moves, bonus, single_root, charts[0], charts[1], charts[2])
    count = -1
    if charts[0, size - 1, 0] > NEG:
        steps = np.empty((2 * heads.shape[0], 3), np.int32)
        walk_back(moves, bonus, single_root, charts[0], charts[1], charts[2], heads, steps)
        count = fill_parts(heads, parts)
    return count, derivation_score(scores, arc_bonus, heads, parts, count, is_high)


class _ProjectiveTrees(ProjectiveSums):
    """Sums over projective trees, from MH3 with scores of 0 for its moves and the arc scores as bonus."""

    def marginals(self) -> PartMarginals:
        arcs = super().marginals().arcs
        return PartMarginals(self.log_partition, arcs[None], arcs)

    def samples(self, count: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for heads, _ in super().samples(count, rng):
            yield heads, arc_parts(heads)


@njit(cache=True, nogil=True)
def _decode_batch(scores, arc_bonus, single_root, heads, ends, parts, counts, totals):
    for b in range(ends.shape[0]):
        own, bonus, own_heads, own_parts = sentence_of_batch(scores, arc_bonus, heads, ends, parts, b)
        counts[b], totals[b] = _decode(own, bonus, single_root, own_heads, own_parts)


class Eisner(ArcFactored):
    """Best projective tree for arc scores; O(n³) time, O(n²) space. Sums are taken in float32.

    See `shared` for large numbers.

    References
    ----------
    Eisner (1996), "Three new probabilistic models for dependency parsing"; Eisner (2000), "Bilexical grammars and their
    cubic-time parsing algorithms".
    """

    name = "eisner"
    tree_class = "projective"
    has_outside_pass = has_fast_margins = has_marginals = True
    projective = True
    kernel = staticmethod(_decode)
    kernel_of_batch = staticmethod(_decode_batch)

    def chart_bytes(self, n: int) -> int:
        return 12 * (n + 2) * (padded(n + 2) + n + 2)

    def outside_bytes(self, n: int) -> int:
        return 4 * outside_floats(n)

    def _max_marginals(self, solved: Solved) -> np.ndarray:
        return max_marginals(*self._as_mh3(solved), self.single_root)

    def _spans(self, solved: Solved) -> np.ndarray:
        return item_values(*self._as_mh3(solved), self.single_root)

    @staticmethod
    def _as_mh3(solved: Solved) -> tuple[np.ndarray, np.ndarray]:
        """The scores as scores and arc bonus of MH3."""
        return np.zeros((3, *solved.arc_bonus.shape), np.float32), solved.scores[0] + solved.arc_bonus

    def sums_bytes(self, n: int) -> int:
        return projective_sums_bytes(n)

    def _sums(self, scores: np.ndarray, arc_bonus: np.ndarray) -> _ProjectiveTrees:
        return _ProjectiveTrees(np.zeros((3, *arc_bonus.shape)), scores[0] + arc_bonus, self.single_root, True)
