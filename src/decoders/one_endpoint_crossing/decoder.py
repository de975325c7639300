"""Base class of the 1-endpoint-crossing decoders: the walk back through the chart and the number of root children."""

from abc import abstractmethod

import numpy as np
from numba import njit

from ..decoder import Decoder
from ..lanes import scratch
from ..numbers import check_numbers, derivation_score
from ..shared import LOWEST
from .grammar import Grammar, walk_back

GUESSES = 3  # number of failed penalties after which to check whether any tree has one root child


@njit(cache=True, nogil=True)
def _typical_penalty(scores, arc_bonus):
    """A penalty likely to leave one root child: a few times the score of a typical arc.

    The median ignores words that must depend on the root: all their other arcs may have a mask like −1e9, and next to a
    penalty of that size float32 would not tell the other scores apart.
    """
    n = scores.shape[1] - 2
    bests = np.zeros(n)
    for d in range(1, n + 1):
        best = -np.inf
        for h in range(1, n + 1):
            if h != d:
                for channel in (0, scores.shape[0] - 1):  # arc and crossed arc
                    score, bonus = scores[channel, h, d], arc_bonus[h, d]
                    if score > LOWEST and bonus > LOWEST:
                        best = max(best, score + bonus)
        if best > -np.inf:
            bests[d - 1] = abs(best)
    typical = 8 * np.median(bests)
    # A power of two: sums of scores with few digits stay exact.
    return 2.0 ** np.ceil(np.log2(typical)) if typical > 0 else 1.0


def _allowed(scores: np.ndarray) -> np.ndarray:
    return np.where(scores > LOWEST, np.float32(0), np.float32(-np.inf))


class CrossingDecoder(Decoder):
    """Base class of the two 1-endpoint-crossing decoders.

    One root child. A penalty on every arc from the root lowers all trees with one root child by the same amount, and
    all others by more. If the best tree under a penalty has one root child, it is therefore the best of all trees that
    have one, and a large enough penalty ensures this. The first penalty, a guess from the scores, nearly always does.
    """

    tree_class = "1ec"

    @abstractmethod
    def _fill(self, scores: np.ndarray, arc_bonus: np.ndarray, penalty: np.float32, memory: np.ndarray) -> None:
        """Fill the charts; ``penalty`` is subtracted from each arc of the root."""

    @abstractmethod
    def _walk(self, n: int) -> tuple[Grammar, np.ndarray, np.ndarray]:
        """The rules, places and goal that `walk_back` takes."""

    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        is_high = check_numbers(scores, arc_bonus)
        memory = scratch(self.chart_bytes(scores.shape[1] - 2) // 4)
        if not self.single_root:
            count = self._fill_and_walk(scores, arc_bonus, 0.0, memory, heads, parts)
            return count, derivation_score(scores, arc_bonus, heads, parts, count, is_high)
        penalty, failed = _typical_penalty(scores, arc_bonus), 0
        while True:
            count = self._fill_and_walk(scores, arc_bonus, penalty, memory, heads, parts)
            if count < 0 or np.count_nonzero(heads[1:] == 0) == 1:
                return count, derivation_score(scores, arc_bonus, heads, parts, count, is_high)
            failed += 1
            if failed == GUESSES:  # with scores of 0, the best tree has the fewest root children
                self._fill_and_walk(_allowed(scores), _allowed(arc_bonus), 1.0, memory, heads, parts)
                if np.count_nonzero(heads[1:] == 0) > 1:
                    return -1, -np.inf
            penalty *= 8

    def _fill_and_walk(
        self,
        scores: np.ndarray,
        arc_bonus: np.ndarray,
        penalty: float,
        memory: np.ndarray,
        heads: np.ndarray,
        parts: np.ndarray,
    ) -> int:
        """Fill the charts and walk back; return the number of parts."""
        rules, places, goal = self._walk(scores.shape[1] - 2)
        self._fill(scores, arc_bonus, np.float32(penalty), memory)
        return walk_back(memory, places, *rules[1:], goal, heads, parts)
