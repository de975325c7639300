"""What the 1-endpoint-crossing decoders share around their charts: the walk back and the number of root children."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numba import njit

from .chart_grammar import Grammar, walk_back
from .decoder import Decoder, check_numbers, derivation_score
from .lanes import scratch


@njit(cache=True, nogil=True)
def _root_penalties(scores, arc_bonus):
    """A penalty likely to leave one root child, and one that surely does if there is a tree with one."""
    n = scores.shape[1] - 2
    typical = largest = 0.0
    for d in range(1, n + 1):
        best = -np.inf
        for h in range(n + 1):
            if h != d:
                for channel in (0, scores.shape[0] - 1):  # arc and crossed arc
                    score = scores[channel, h, d] + arc_bonus[h, d]
                    if score > -np.inf:
                        largest = max(largest, abs(score))
                        best = max(best, score if h > 0 else -np.inf)
        if best > -np.inf:
            typical += 8 * abs(best) / n
    for channel in range(1, scores.shape[0] - 1):
        for score in scores[channel].ravel():
            if score > -np.inf:
                largest = max(largest, abs(score))
    # A power of two: sums of scores with few digits stay exact.
    likely = 2.0 ** np.ceil(np.log2(typical)) if typical > 0 else 1.0
    return likely, 7 * n * largest


class CrossingDecoder(Decoder):
    """What the two 1-endpoint-crossing decoders share: the walk back and the number of root children.

    One root child. A penalty on every arc from the root lowers all trees with one root child alike, the others more:
    a best tree under a penalty is a best tree with one root child as soon as it has just one, and under a large enough
    penalty it has. The first penalty is a guess from the scores that nearly always will do.
    """

    @abstractmethod
    def _fill(self, scores: np.ndarray, arc_bonus: np.ndarray, penalty: np.float32, memory: np.ndarray) -> None:
        """Fill the charts; ``penalty`` is subtracted from each arc of the root."""

    @abstractmethod
    def _walk(self, n: int) -> tuple[Grammar, np.ndarray, np.ndarray]:
        """What `walk_back` needs to know: rules, places and goal."""

    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        check_numbers(scores, arc_bonus)
        n = scores.shape[1] - 2
        rules, places, goal = self._walk(n)
        memory = scratch(self.chart_bytes(n) // 4)
        penalty, enough = _root_penalties(scores, arc_bonus) if self.single_root else (0.0, 0.0)
        while True:
            self._fill(scores, arc_bonus, np.float32(penalty), memory)
            count = walk_back(
                memory,
                places,
                rules.rules,
                rules.first,
                rules.symmetric,
                rules.empty,
                rules.channel,
                rules.arc,
                goal,
                heads,
                parts,
            )
            if count < 0 or not self.single_root or np.count_nonzero(heads[1:] == 0) == 1:
                return count, derivation_score(scores, arc_bonus, heads, parts, count)
            if penalty > enough:
                return -1, -np.inf
            penalty *= 8
