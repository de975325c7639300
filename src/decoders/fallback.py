"""A decoder for sentences of any length: approximate where the exact chart would not fit into memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .decoder import Decoder
from .forest import Forest
from .mst import MST
from .numbers import derivation_score
from .search import BeamSearch
from .tree_batch import TreeBatch
from .trees import arc_matrix

WIDTH = 16  # of the beam that stands in for a chart


class Fallback(Decoder):
    """A decoder with a stand-in for sentences whose chart does not fit, or whose beam dies out.

    A beam of `WIDTH` stands in for the chart of a transition system, `MST` on the arc scores alone for others, and
    the chart for a wider beam that does not fit. If a beam finds no derivation without forbidden parts, the chart is
    used. If that does not fit, the result is the tree of allowed arcs that is closest to the one the beam finds without
    the arc bonus. Such a tree has no parts.

    Parameters
    ----------
    decoder : Decoder
        Exact or a beam search; its name, channels and roles are adopted.
    by_arcs : bool
        `MST` stands in for all charts: for scores that are all in the arc bonus.
    """

    def __init__(self, decoder: Decoder, by_arcs: bool = False) -> None:
        super().__init__(decoder.single_root)
        self.name, self.channels, self.roles = decoder.name, decoder.channels, decoder.roles
        self.exact, self.has_marginals = decoder.exact, decoder.has_marginals
        self.memory_limit = decoder.memory_limit
        self.shared, self.tree_class = decoder.shared, decoder.tree_class
        self.decoder = decoder
        self._chart = decoder.chart if isinstance(decoder, BeamSearch) else decoder
        self._mst = MST(decoder.single_root)
        self._instead: Decoder = self._mst
        if not by_arcs and "arc" not in decoder.channels:
            self._instead = BeamSearch(type(self._chart), WIDTH, decoder.single_root)

    def instead(self, n: int) -> str | None:
        """What decodes n words, "mst", "beam:16" or "the exact chart"; None if the decoder itself does."""
        chosen = self._chosen(n)
        if chosen is self.decoder:
            return None
        if chosen is self._chart:
            return "the exact chart"
        return f"beam:{WIDTH}" if isinstance(chosen, BeamSearch) else chosen.name

    def _chosen(self, n: int) -> Decoder:
        return next((own for own in (self.decoder, self._chart) if own.fits(n)), self._instead)

    def chart_bytes(self, n: int) -> int:
        return self._chosen(n).chart_bytes(n)

    def fits(self, n: int) -> bool:
        return self._chosen(n).fits(n)

    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        n = len(heads) - 1
        chosen = self._chosen(n)
        if chosen is self._mst:
            return self._best_by_arcs(scores, arc_bonus, heads, parts)
        count, score = chosen._run(scores, arc_bonus, heads, parts)
        if count >= 0 or not isinstance(chosen, BeamSearch):
            return count, score
        if self._chart.fits(n):
            return self._chart._run(scores, arc_bonus, heads, parts)
        count, _ = chosen._run(scores, np.zeros_like(arc_bonus), heads, parts)
        if count < 0:
            return count, score
        closest = arc_bonus + arc_matrix(heads)
        count = min(self._mst._run(np.zeros_like(closest)[None], closest, heads, parts)[0], 0)
        return count, derivation_score(scores, arc_bonus, heads, parts, count, False)

    def _derive(self, scores: np.ndarray, given: TreeBatch) -> None:
        self.decoder._derive(scores, given)

    def outside_bytes(self, n: int) -> int:
        return self.decoder.outside_bytes(n)

    def sums_bytes(self, n: int) -> int:
        return self.decoder.sums_bytes(n)

    def forest(self, scores: ArrayLike, arc_bonus: ArrayLike | None = None, temperature: ArrayLike = 1.0) -> Forest:
        """See `Decoder.forest`; where another decoder stands in, only the best tree is available."""
        n = len(self._checked(scores, arc_bonus)[1]) - 2
        chosen = self if self._unsure(n) else self.decoder
        return Forest(chosen, scores, arc_bonus, temperature)

    def _unsure(self, n: int) -> str | None:
        stand_in = self.instead(n)
        if stand_in is None or not self.exact:
            return self.decoder._unsure(n)
        return (
            f"{n} words are too many for the chart of {self.name}; {stand_in} stands in, and its trees say nothing "
            f"about how sure {self.name} is"
        )

    def _best_by_arcs(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        if "arc" not in self.channels:
            count, score = self._mst._run(np.zeros_like(arc_bonus)[None], arc_bonus, heads, parts)
            return min(count, 0), score
        arc = self.channels.index("arc")
        count, score = self._mst._run(scores[arc : arc + 1], arc_bonus, heads, parts)
        parts[:, 0] = arc
        return count, score
