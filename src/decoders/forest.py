"""All derivations of one sentence under its scores, and the questions they answer.

There are two kinds of questions. Those about the best derivations are supported by every exact decoder, if necessary by
decoding repeatedly. Those about probabilities sum over all derivations, each with the weight exp(score / temperature):
one derivation per tree for mst and eisner, one per transition sequence for mh3, mh4-two and mh4-hybrid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from math import isfinite, isnan
from operator import index
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from .derivation import (
    ChartTooLargeError,
    Derivation,
    InfeasibleError,
    Margins,
    PartMarginals,
    Solved,
    UnsupportedError,
    memory_size,
)
from .k_best import NearlyBest, Next, k_best_trees, next_by_margins
from .lanes import lent
from .levels import best_of_large, brought_together, joined, parted
from .numbers import check_numbers, own_array, plain_array
from .shared import LARGE, exact, holds_large, without_low

ROUNDING = 1e-5  # more than the relative rounding error of a float32 sum
NOTHING = Derivation(np.empty(0, np.int32), np.empty((0, 3), np.int32), -np.inf)
MOST = 1e30  # the largest score with which derivations can still be compared
LARGEST_WEIGHT = 1e300  # sums over a sentence of smaller numbers stay within float64


class Sums(Protocol):
    """Sums over all allowed derivations of one sentence.

    Implementations take float64 scores and an arc bonus, and ``single_root``: whether exactly one word is attached to
    the root. `Decoder._sums` creates them; it raises an `InfeasibleError` if every derivation is forbidden.

    Attributes
    ----------
    log_partition : float
    """

    log_partition: float

    def marginals(self) -> PartMarginals:
        """See `Forest.part_marginals`."""

    def samples(self, count: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield heads and parts of random derivations; see `Forest.sample`."""


class Solver(Protocol):
    """The methods of `Decoder` that a forest uses."""

    name: str
    exact: bool
    has_outside_pass: bool
    has_marginals: bool
    memory_limit: int

    def decode(self, scores: ArrayLike, arc_bonus: ArrayLike | None = None) -> Derivation:
        """See `Decoder.decode`."""

    def without_shared(self, scores: np.ndarray, arc_bonus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Decoder.without_shared`."""

    def outside_bytes(self, n: int) -> int:
        """See `Decoder.outside_bytes`."""

    def sums_bytes(self, n: int) -> int:
        """See `Decoder.sums_bytes`."""

    def _checked(
        self, scores: ArrayLike, arc_bonus: ArrayLike | None, dtype: type[np.floating[Any]] = np.float32
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def _best(self, scores: np.ndarray, arc_bonus: np.ndarray) -> Derivation: ...
    def _max_marginals(self, solved: Solved) -> np.ndarray: ...
    def _margins(self, solved: Solved) -> tuple[np.ndarray, np.ndarray]: ...
    def _nearly_best(self, solved: Solved, rank: int) -> NearlyBest | None: ...
    def _spans(self, solved: Solved) -> np.ndarray: ...
    def _sums(self, scores: np.ndarray, arc_bonus: np.ndarray) -> Sums: ...
    def _unsure(self, n: int) -> str | None: ...
    def _lacks_marginals(self) -> str: ...


class Forest:
    """All derivations of one sentence under its scores; `Decoder.forest` returns one.

    Attributes are computed on first use and cached. `margins`, `max_marginals`, `k_best` and `span` reuse the chart
    that `best` fills, unless the same thread has decoded another sentence in between. The arrays must not be modified
    meanwhile.

    Parameters
    ----------
    decoder : Decoder
    scores, arc_bonus
        See `Decoder.decode`. Sums use them in float64.
    temperature : float, or any number or tensor with one element
        Sums divide scores by it: towards 0 the best derivation has probability 1, towards infinity all derivations are
        equally probable.

    Raises
    ------
    ValueError
        Wrong shape, or a temperature that is not positive. Attributes and methods raise a ValueError for NaN, +inf or
        numbers too large to sum; `ChartTooLargeError` for charts beyond the memory limit; `InfeasibleError`, unless
        stated otherwise, if every derivation is forbidden; `UnsupportedError` if the decoder does not support them.
    """

    def __init__(
        self,
        decoder: Solver,
        scores: ArrayLike,
        arc_bonus: ArrayLike | None = None,
        temperature: ArrayLike = 1.0,
    ) -> None:
        temperature = float(plain_array(temperature).item())  # numbers of other types would round the sums
        if not (isfinite(temperature) and temperature > 0):
            raise ValueError(f"the temperature must be positive; got {temperature}")
        self.decoder = decoder
        self.temperature = temperature
        self._given = plain_array(scores), None if arc_bonus is None else plain_array(arc_bonus)
        checked, bonus = decoder._checked(*self._given)
        self._checked = without_low(checked), without_low(bonus)
        self._words = len(self._checked[1]) - 2
        self._solved: Solved | None = None
        self._large = False  # whether the best derivation has large numbers even without shared constants
        self._max_marginals: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"<forest of {self._words} words, {self.decoder.name} decoder>"

    @cached_property
    def best(self) -> Derivation:
        """The best derivation; see `Decoder.decode`."""
        found = self.decoder._best(*self._checked)
        self._solved = Solved(*self._checked, found, lent())
        return self._best_of_large(*self._wide(), found) if isnan(found.score) else found

    @property
    def score(self) -> float:
        """The score of the best derivation."""
        return self.best.score

    @cached_property
    def margins(self) -> Margins:
        """The best derivation and, for each word, its lead over the best one in which the word has another head."""
        self._check_exact()
        best, solved = self.best, self._current()
        self._check_room("margins", self.decoder.outside_bytes(self._words))
        if self._large:  # next to large numbers, a float32 chart would not tell the other derivations apart
            found = margins_by_decoding(self.decoder, *self._wide(), best)
        elif self.decoder.has_outside_pass:
            found = cheapest_heads(self._by_arcs(solved), best.heads)
        else:
            found = self.decoder._margins(solved)
        return Margins(best, *found)

    @property
    def max_marginals(self) -> np.ndarray:
        """The score of the best tree with each arc: float32 (N, N), at [h, d] for h → d; −inf if there is none.

        Takes one outside pass for eisner, mh3, mh4-two and mh4-hybrid; the others decode once for each arc, so prefer
        `margins` if they suffice. Raises no `InfeasibleError`.
        """
        self._check_exact()
        decoder = self.decoder
        self._check_room("max-marginals", decoder.outside_bytes(self._words))
        if "best" not in vars(self) and decoder.has_outside_pass and not any(map(holds_large, self._checked)):
            # An outside pass needs no best derivation.
            return self._by_arcs(Solved(*self._checked, NOTHING, None)).copy()
        try:
            best, solved = self.best, self._current()
        except InfeasibleError:
            return np.full_like(self._checked[1], -np.inf)
        taken_off, found = best.score - solved.best.score, self._by_arcs(solved)
        return (found + taken_off).astype(np.float32) if taken_off else found.copy()

    def k_best(self, k: int) -> list[Derivation]:
        """The k best trees, each once, best first; all of them if there are fewer (none if all are forbidden).

        Each is the best derivation of its tree. The order is exact up to the rounding of float32 sums. Takes k decodes
        and up to 2k − 3 times `margins`; much less for the MH4 decoders if few derivations are nearly as good as the k
        best trees.

        Raises
        ------
        ValueError
            k below 1.
        TypeError
            k is not an integer.
        """
        self._check_exact()
        k = index(k)
        if k < 1:
            raise ValueError(f"k must be at least 1; got {k}")
        try:
            best, solved = self.best, self._current()
        except InfeasibleError:
            return []
        self._check_room("the k best trees", self.decoder.outside_bytes(self._words))
        rank = k
        while not self._large and (nearly_best := self.decoder._nearly_best(solved, rank)):
            found = k_best_trees(solved.best, solved.arc_bonus.copy(), k, nearly_best.next, nearly_best.decode)
            if len(found) == k or nearly_best.are_all:
                taken_off = best.score - solved.best.score
                return [best, *(one._replace(score=one.score + taken_off) for one in found[1:])]
            rank *= 2
        return self._k_best_by_margins(best, k)

    def span(self, i: int, l: int) -> float:  # noqa: E741
        """The best score between two positions, 0 ≤ i < l ≤ n + 1.

        This is the score of the moves or arcs that give each of the words i + 1, …, l − 1 a head among i, …, l, while i
        and l get none; it does not depend on the rest of the sentence. The span (0, n + 1) is the whole sentence. With
        one root child, the root has no children in other spans. Available for eisner, mh3, mh4-two and mh4-hybrid, in
        float32; −inf instead of an `InfeasibleError`.

        Raises
        ------
        IndexError
            Positions out of range, or i ≥ l.
        """
        i, l = index(i), index(l)  # noqa: E741
        if not 0 <= i < l <= self._words + 1:
            raise IndexError(f"a span of {self._words} words has 0 ≤ i < l ≤ {self._words + 1}; got ({i}, {l})")
        return float(self._spans[i, l])

    @property
    def marginals(self) -> np.ndarray:
        """The probability of each arc, float64 (N, N), at [h, d] for h → d; columns 1…n sum to 1.

        The probability of a derivation is proportional to exp(score / temperature). Probabilities are available for
        mst, eisner, mh3, mh4-two and mh4-hybrid.
        """
        return self.part_marginals.arcs

    @property
    def parts(self) -> np.ndarray:
        """The expected count of each part, float64 (C, N, N)."""
        return self.part_marginals.parts

    @cached_property
    def part_marginals(self) -> PartMarginals:
        """Expected counts of parts, probabilities of arcs, and the log partition function."""
        sums, shared = self._summed
        found = sums.marginals()
        totals = found.arcs.sum(axis=0)  # 1 for each word, but for rounding
        arcs = found.arcs / np.where(totals > 0, totals, 1)
        return found._replace(arcs=arcs, log_partition=found.log_partition + shared)

    @property
    def log_partition(self) -> float:
        """Logarithm of the sum of exp(score / temperature) over all derivations.

        If the arc bonus is −inf on all arcs but those of one tree (or those that agree with some given heads), the sum
        is over the derivations of that tree (of the trees with these heads).
        """
        sums, shared = self._summed
        return sums.log_partition + shared

    def sample(self, count: int, rng: np.random.Generator | int | None = None) -> list[Derivation]:
        """Draw derivations independently, with probabilities proportional to exp(score / temperature).

        Their scores do not depend on the temperature. ``rng`` is a generator or a seed.

        Raises
        ------
        ValueError
            A negative count.
        """
        if count < 0:
            raise ValueError(f"the number of samples cannot be negative; got {count}")
        sums, _ = self._summed
        values = self._weights()
        drawn = []
        for heads, parts in sums.samples(count, np.random.default_rng(rng)):
            found = Derivation(heads, parts, np.nan)
            drawn.append(found._replace(score=weigh(found, *values) * self.temperature))
        return drawn

    def _wide(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores and arc bonus as given, in float64."""
        scores, arc_bonus = self._given
        return exact(scores), exact(self._checked[1] if arc_bonus is None else arc_bonus)

    def _best_of_large(self, scores: np.ndarray, arc_bonus: np.ndarray, found: Derivation) -> Derivation:
        """The best derivation if numbers are large: without shared constants and, if necessary, by levels.

        ``found`` is the best derivation of the chart. If it has no large numbers, they may still cancel out in others;
        constants are not subtracted then, since a large number may be in no derivation at all.
        """
        decoder = self.decoder
        less = scores, arc_bonus
        if _holds_large(*self._checked, found):
            less = decoder.without_shared(scores, arc_bonus)
            found = decoder._best(own_array(less[0]), own_array(less[1]))
        own, chart, self._large = (own_array(less[0]), own_array(less[1])), lent(), isnan(found.score)
        if self._large and decoder.exact:
            found = best_of_large(
                lambda *own: decoder._best(*map(own_array, own)), lambda one: weigh(one, *less), *less, found
            )
        self._solved = Solved(*own, found._replace(score=weigh(found, *less)), chart)
        return found._replace(score=weigh(found, scores, arc_bonus))

    def _current(self) -> Solved:
        """The result of `best`, without the chart if its memory has been reused."""
        assert self._solved is not None
        chart = self._solved.chart
        return self._solved if chart is None or lent() is chart else self._solved._replace(chart=None)

    @cached_property
    def _spans(self) -> np.ndarray:
        try:
            best = self.best
        except InfeasibleError:
            best = NOTHING
        solved = self._solved
        chart = self._current().chart if solved is not None and solved.scores is self._checked[0] else None
        return self.decoder._spans(Solved(*self._checked, best, chart))

    def _by_arcs(self, solved: Solved) -> np.ndarray:
        """Max-marginals under the numbers in ``solved``, cached."""
        if self._max_marginals is None:
            self._max_marginals = self.decoder._max_marginals(solved)
        return self._max_marginals

    def _k_best_by_margins(self, best: Derivation, k: int) -> list[Derivation]:
        scores, arc_bonus = self._checked
        decoder = self.decoder
        if holds_large(scores) or holds_large(arc_bonus):
            scores, arc_bonus = self._wide()
            return k_best_trees(
                best, arc_bonus, k, partial(_next_tree, decoder, scores), partial(decoder.decode, scores)
            )

        def next_tree(cell: np.ndarray, tree: Derivation) -> Next:
            return next_by_margins(decoder._margins(Solved(scores, cell, tree, None))[0], tree)

        return k_best_trees(best, arc_bonus.copy(), k, next_tree, partial(decoder.decode, scores))

    def _weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores and arc bonus for sums: float64, divided by the temperature."""
        scores, arc_bonus = self.decoder._checked(*self._given, np.float64)
        if not (scores < np.inf).all() or not (arc_bonus < np.inf).all():  # false for NaN, too
            raise ValueError("scores or arc_bonus hold NaN or +inf; forbid parts with −inf")
        scores, arc_bonus = without_low(scores), without_low(arc_bonus)
        if any(holds_large(own, LARGEST_WEIGHT * self.temperature) for own in (scores, arc_bonus)):
            at = f"at a temperature of {self.temperature}"
            raise ValueError(f"scores or arc_bonus hold numbers too large to be summed {at}")
        return scores / self.temperature, arc_bonus / self.temperature

    @cached_property
    def _summed(self) -> tuple[Sums, float]:
        """Sums over the derivations, and the constant to add to their logarithms: what large scores were reduced by."""
        decoder = self.decoder
        if not decoder.has_marginals:
            raise UnsupportedError(decoder._lacks_marginals())
        self._check_room("probabilities", decoder.sums_bytes(self._words))
        given = self._weights()
        if not any(map(holds_large, given)):
            return decoder._sums(*given), 0.0
        values = brought_together(joined(*given), self._words)
        if holds_large(values, MOST):
            return decoder._sums(*given), 0.0
        scores, arc_bonus = parted(values, *given)
        less, some = decoder.without_shared(scores, arc_bonus), decoder.decode(scores, arc_bonus)
        return decoder._sums(*less), weigh(some, *given) - weigh(some, *less)

    def _check_exact(self) -> None:
        if reason := self.decoder._unsure(self._words):
            raise UnsupportedError(reason)

    def _check_room(self, what: str, size: int) -> None:
        decoder = self.decoder
        if size > decoder.memory_limit:
            raise ChartTooLargeError(
                f"{decoder.name}: the charts for {what} of {self._words} words take {memory_size(size)}, "
                f"the limit is {memory_size(decoder.memory_limit)}"
            )


def weigh(derivation: Derivation, scores: np.ndarray, arc_bonus: np.ndarray) -> float:
    """Score of a derivation, in float64."""
    heads = derivation.heads
    of_arcs = arc_bonus[heads[1:], np.arange(1, len(heads))]
    return float(scores[tuple(derivation.parts.T)].sum(dtype=np.float64) + of_arcs.sum(dtype=np.float64))


@njit(cache=True, nogil=True)
def _cheapest_heads(marginals, best, values, heads):
    values[0], heads[0] = np.inf, -1
    for d in range(1, best.shape[0]):
        other, head = np.float32(-np.inf), -1
        for h in range(best.shape[0]):
            if h != best[d] and marginals[h, d] > other:
                other, head = marginals[h, d], h
        heads[d] = head
        values[d] = max(np.float64(marginals[best[d], d]) - np.float64(other), 0.0)


def cheapest_heads(marginals: np.ndarray, best: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and heads of `Margins`, from max-marginals (N, N) and the heads of the best tree."""
    values, heads = np.empty(len(best)), np.empty(len(best), np.int32)
    _cheapest_heads(marginals, best, values, heads)
    return values, heads


def marginals_by_decoding(decoder: Solver, solved: Solved) -> np.ndarray:
    """Max-marginals, by one decode for each arc that is not in the best tree."""
    scores, arc_bonus, best, _ = solved
    size = len(arc_bonus)
    marginals = np.full((size, size), -np.inf, np.float32)
    marginals[best.heads[1:], np.arange(1, size - 1)] = best.score
    for d in range(1, size - 1):
        forced = arc_bonus.copy()
        for h in range(size - 1):
            if h not in (d, best.heads[d]) and arc_bonus[h, d] > -np.inf:
                forced[:, d] = -np.inf
                forced[h, d] = arc_bonus[h, d]
                found = _decoded(decoder, scores, forced)
                marginals[h, d] = found.score if found else -np.inf
    return marginals


def margins_by_decoding(
    decoder: Solver, scores: np.ndarray, arc_bonus: np.ndarray, best: Derivation
) -> tuple[np.ndarray, np.ndarray]:
    """Values and heads of `Margins`, by one decode for each word, with its head forbidden."""
    values, heads = np.full(len(best.heads), np.inf), np.full(len(best.heads), -1, np.int32)
    for d, other in _without_head(decoder, scores, arc_bonus, best, range(1, len(best.heads))):
        if other is not None:
            values[d], heads[d] = max(best.score - other.score, 0.0), other.heads[d]
    return values, heads


def _without_head(
    decoder: Solver, scores: np.ndarray, arc_bonus: np.ndarray, best: Derivation, words: Iterable[int]
) -> Iterator[tuple[int, Derivation | None]]:
    """Yield each word with the best derivation in which its head differs from ``best``, None if there is none."""
    without = arc_bonus.copy()
    for d in words:
        own = best.heads[d]
        without[own, d] = -np.inf
        yield d, _decoded(decoder, scores, without)
        without[own, d] = arc_bonus[own, d]


def _decoded(decoder: Solver, scores: np.ndarray, arc_bonus: np.ndarray) -> Derivation | None:
    try:
        return decoder.decode(scores, arc_bonus)
    except InfeasibleError:
        return None


def _next_tree(decoder: Solver, scores: np.ndarray, arc_bonus: np.ndarray, best: Derivation) -> Next:
    """The second best tree for `k_best_trees`, in float64, if numbers are large."""
    own, inner = decoder._checked(scores, arc_bonus), best
    if _holds_large(*own, best):
        less = decoder.without_shared(scores, arc_bonus)
        own, inner = decoder._checked(*less), best._replace(score=weigh(best, *less))
    candidates = np.arange(1, len(best.heads))
    rest = np.inf
    if not _hide_others(*own, best):
        values, _ = decoder._margins(Solved(*own, inner, None))
        values = np.where(values > LARGE, values * (1 - ROUNDING), values)  # lower bounds
        least = values.min()
        if least <= LARGE or least == np.inf:
            return next_by_margins(values, best)
        near = values <= least * (1 + 2 * ROUNDING)
        candidates, rest = np.flatnonzero(near), values.min(where=~near, initial=np.inf)
    found = _without_head(decoder, scores, arc_bonus, best, candidates)
    trees = [(word, tree) for word, tree in found if tree]
    if not trees:
        return Next(0, np.inf, np.inf)
    trees.sort(key=lambda found: -found[1].score)
    (word, tree), others = trees[0], trees[1:]
    rest = min([rest - best.score, *(-other.score for _, other in others)])
    return Next(word, -tree.score, rest, tree)


def _holds_large(scores: np.ndarray, arc_bonus: np.ndarray, derivation: Derivation) -> bool:
    """Whether a derivation has large numbers; scores and arc bonus are float32."""
    arcs = derivation.heads[1:], np.arange(1, len(derivation.heads))
    return bool(holds_large(scores[tuple(derivation.parts.T)]) or holds_large(arc_bonus[arcs]))


def _hide_others(scores: np.ndarray, arc_bonus: np.ndarray, derivation: Derivation) -> bool:
    """Whether a chart may miss derivations, because large numbers are in this one or may cancel out in others."""
    return _holds_large(scores, arc_bonus, derivation) or check_numbers(scores, arc_bonus)
