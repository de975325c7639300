"""How sure a decoder is: what other heads cost, the k best trees, probabilities. The part of `Decoder` that asks.

Two kinds of answers. The first is about the best derivations alone and every exact decoder has it, if need be by
decoding again. The second sums over all derivations, each weighing exp(score / temperature): one derivation a tree for
mst and eisner, one a transition sequence for mh3, mh4-two and mh4-hybrid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import isfinite
from operator import index
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np

from .derivation import ChartTooLargeError, Derivation, InfeasibleError, Margins, PartMarginals, UnsupportedError
from .k_best import Next, k_best_trees, next_by_margins
from .shared import LARGE, Group, exact, holds_large, without_shared

T = TypeVar("T")
MARGINS_DECODES = 4  # what `margins` takes, in decodes
ROUNDING = 1e-5  # more than that of sums in float32, relative to their size
MOST = 1e30  # a score with which derivations can still be compared


class Sums(Protocol):
    """Sums over all derivations of one sentence that are allowed, of which there is one at least.

    Attributes
    ----------
    log_partition : float
    """

    log_partition: float

    def marginals(self) -> PartMarginals:
        """See `Certainty.part_marginals`."""

    def samples(self, count: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Heads and parts of each derivation drawn; see `Certainty.sample`."""


def cheapest_heads(marginals: np.ndarray, best: Derivation) -> tuple[np.ndarray, np.ndarray]:
    """Values and heads of `Margins`, from max-marginals (N, N)."""
    n = len(best.heads) - 1
    words = np.arange(1, n + 1)
    others = marginals[: n + 1, : n + 1].astype(np.float64)
    with_own = others[best.heads[1:], words]
    others[best.heads[1:], words] = -np.inf
    heads = others.argmax(axis=0).astype(np.int32)
    values = np.full(n + 1, np.inf)
    values[1:] = np.maximum(with_own - others[heads[1:], words], 0)
    heads[values == np.inf] = -1
    return values, heads


class Certainty(ABC):
    """What a decoder can say beyond its best derivation. See `Decoder` for the attributes."""

    name: str
    channels: tuple[str, ...]
    roles: tuple[tuple[str, str], ...]
    shared: tuple[Group, ...]
    single_root: bool
    memory_limit: int
    exact: bool = True  # what is found is the best
    has_outside_pass: bool = False  # `_max_marginals` is worth less than n decodes
    has_marginals: bool = False  # `_sums` is there

    @abstractmethod
    def decode(self, scores: np.ndarray, arc_bonus: np.ndarray | None = None) -> Derivation:
        """See `Decoder.decode`."""

    @abstractmethod
    def _checked(
        self, scores: np.ndarray, arc_bonus: np.ndarray | None, dtype: type[np.floating[Any]] = np.float32
    ) -> tuple[np.ndarray, np.ndarray]:
        """Both as arrays of the right shape and of that type; ValueError if they cannot be."""

    @abstractmethod
    def map_batch(
        self,
        ask: Callable[[np.ndarray, np.ndarray | None], T],
        scores: np.ndarray,
        lengths: Iterable[int],
        arc_bonus: np.ndarray | None = None,
        threads: int | None = None,
        decodes: int = 1,
    ) -> list[T]:
        """See `Decoder.map_batch`."""

    def outside_bytes(self, n: int) -> int:
        """Bytes that the charts of `max_marginals` take for a sentence of n words, those of decoding included."""
        return 0

    def sums_bytes(self, n: int) -> int:
        """Bytes that the charts of `part_marginals` take for a sentence of n words."""
        return 0

    def max_marginals(self, scores: np.ndarray, arc_bonus: np.ndarray | None = None) -> np.ndarray:
        """The score of the best tree with each arc.

        One outside pass for eisner, mh3, mh4-two and mh4-hybrid; the others decode once for each arc, so if it is the
        margins that are wanted, ask for `margins`.

        Parameters
        ----------
        scores, arc_bonus
            See `Decoder.decode`.

        Returns
        -------
        float32 (N, N)
            At [h, d] the largest score of a derivation with the arc h → d; −inf if there is none.

        Raises
        ------
        UnsupportedError
            An approximate search.
        ChartTooLargeError
            Charts beyond the memory limit.
        ValueError
            See `Decoder.decode`.
        """
        self._check_exact()
        checked, bonus = self._checked(scores, arc_bonus)
        self._check_room("max-marginals", self.outside_bytes(checked.shape[1] - 2), checked.shape[1] - 2)
        if not (holds_large(checked) or holds_large(bonus)):
            return self._max_marginals(checked, bonus)
        try:
            best = self.decode(scores, arc_bonus)
        except InfeasibleError:
            return np.full_like(bonus, -np.inf)
        checked, bonus, inner = self._without_shared(scores, arc_bonus, best)
        return (self._max_marginals(checked, bonus) + (best.score - inner.score)).astype(np.float32)

    def margins(self, scores: np.ndarray, arc_bonus: np.ndarray | None = None) -> Margins:
        """The best derivation, and for each word by how much it beats the best one in which it has another head.

        Parameters
        ----------
        scores, arc_bonus
            See `Decoder.decode`.

        Raises
        ------
        InfeasibleError
            Every derivation is forbidden.
        UnsupportedError, ChartTooLargeError, ValueError
            See `max_marginals`.
        """
        self._check_exact()
        best = self.decode(scores, arc_bonus)
        n = len(best.heads) - 1
        self._check_room("margins", self.outside_bytes(n), n)
        own, bonus, inner = self._without_shared(scores, arc_bonus, best)
        if self._has_large(own, bonus, inner):  # next to which a chart would not tell the others apart
            wide, wide_bonus = exact(scores), exact(bonus if arc_bonus is None else arc_bonus)
            return Margins(best, *self._decodes(wide, wide_bonus, best))
        return Margins(best, *self._margins(own, bonus, inner))

    def margins_batch(
        self,
        scores: np.ndarray,
        lengths: Iterable[int],
        arc_bonus: np.ndarray | None = None,
        threads: int | None = None,
    ) -> list[Margins]:
        """`margins` of a padded batch; see `Decoder.decode_batch`."""
        return self.map_batch(self.margins, scores, lengths, arc_bonus, threads, decodes=MARGINS_DECODES)

    def k_best(self, scores: np.ndarray, k: int, arc_bonus: np.ndarray | None = None) -> list[Derivation]:
        """The k best trees, each once, best first; all of them if there are fewer.

        Takes k decodes and up to 2k − 3 times `margins`. The order is exact up to the rounding of float32 sums.

        Parameters
        ----------
        scores, arc_bonus
            See `Decoder.decode`.
        k : int
            At least 1.

        Returns
        -------
        list of Derivation
            The first one is that of `decode`; each is the best derivation of its tree.

        Raises
        ------
        ValueError
            k below 1; see `max_marginals`.
        TypeError
            k is no integer.
        UnsupportedError, ChartTooLargeError
            See `max_marginals`.
        """
        self._check_exact()
        k = index(k)
        if k < 1:
            raise ValueError(f"k_best lists at least one tree; got k = {k}")
        try:
            best = self.decode(scores, arc_bonus)
        except InfeasibleError:
            return []
        n = len(best.heads) - 1
        self._check_room("the k best trees", self.outside_bytes(n), n)
        own, bonus = self._checked(scores, arc_bonus)
        if holds_large(own) or holds_large(bonus):
            wide, wide_bonus = exact(scores), exact(bonus if arc_bonus is None else arc_bonus)
            return k_best_trees(best, wide_bonus, k, partial(self._next_tree, wide), partial(self.decode, wide))

        def find_next(cell: np.ndarray, tree: Derivation) -> Next:
            return next_by_margins(self._margins(own, cell, tree)[0], tree)

        return k_best_trees(best, bonus.copy(), k, find_next, partial(self.decode, own))

    def marginals(
        self, scores: np.ndarray, arc_bonus: np.ndarray | None = None, temperature: float = 1.0
    ) -> np.ndarray:
        """The probability of each arc if derivations have probabilities that grow with exp(score / temperature).

        For mst, eisner, mh3, mh4-two and mh4-hybrid; see `part_marginals`.

        Returns
        -------
        float64 (N, N)
            At [h, d] the probability of h → d; columns 1…n sum to 1.
        """
        return self.part_marginals(scores, arc_bonus, temperature).arcs

    def log_partition(self, scores: np.ndarray, arc_bonus: np.ndarray | None = None, temperature: float = 1.0) -> float:
        """Logarithm of the sum of exp(score / temperature) over all derivations; see `part_marginals`.

        With an arc bonus of −inf on all arcs but those of a tree (or of all trees with some given heads) this is the
        sum over its (their) derivations.
        """
        sums, shared = self._sums_and_shared(*self._checked_sums(scores, arc_bonus, temperature))
        return sums.log_partition + shared

    def part_marginals(
        self, scores: np.ndarray, arc_bonus: np.ndarray | None = None, temperature: float = 1.0
    ) -> PartMarginals:
        """How often each part and each arc is in a derivation, on average, and the log partition function.

        Parameters
        ----------
        scores : float (C, N, N)
            As for `Decoder.decode`, but taken in float64.
        arc_bonus : float (N, N), optional
        temperature : float
            Scores are divided by it: towards 0 the best derivation gets all the probability, towards infinity all get
            the same.

        Raises
        ------
        UnsupportedError
            A decoder that cannot sum over its derivations.
        InfeasibleError
            Every derivation is forbidden.
        ChartTooLargeError
            Charts beyond the memory limit.
        ValueError
            Wrong shapes, NaN, +inf, or a temperature that is not positive.
        """
        sums, shared = self._sums_and_shared(*self._checked_sums(scores, arc_bonus, temperature))
        found = sums.marginals()
        totals = found.arcs.sum(axis=0)  # 1 for each word, but for rounding
        arcs = found.arcs / np.where(totals > 0, totals, 1)
        return found._replace(arcs=arcs, log_partition=found.log_partition + shared)

    def part_marginals_batch(
        self,
        scores: np.ndarray,
        lengths: Iterable[int],
        arc_bonus: np.ndarray | None = None,
        temperature: float = 1.0,
        threads: int | None = None,
    ) -> list[PartMarginals]:
        """`part_marginals` of a padded batch; see `Decoder.decode_batch`."""
        return self.map_batch(
            lambda own, bonus: self.part_marginals(own, bonus, temperature), scores, lengths, arc_bonus, threads
        )

    def sample(
        self,
        scores: np.ndarray,
        count: int,
        arc_bonus: np.ndarray | None = None,
        temperature: float = 1.0,
        rng: np.random.Generator | int | None = None,
    ) -> list[Derivation]:
        """Derivations drawn at random, independently, each with a probability that grows with exp(score / temperature).

        Parameters
        ----------
        scores, arc_bonus, temperature
            See `part_marginals`.
        count : int
        rng
            Generator or seed.

        Returns
        -------
        list of Derivation
            With their scores under ``scores``, whatever the temperature.

        Raises
        ------
        UnsupportedError, InfeasibleError, ChartTooLargeError, ValueError
            See `part_marginals`; a negative count.
        """
        if count < 0:
            raise ValueError(f"the number of samples cannot be negative; got {count}")
        weights, bonus = self._checked_sums(scores, arc_bonus, temperature)
        drawn = []
        sums, _ = self._sums_and_shared(weights, bonus)
        for heads, parts in sums.samples(count, np.random.default_rng(rng)):
            found = Derivation(heads, parts, np.nan)
            drawn.append(found._replace(score=self._weigh(found, weights, bonus) * temperature))
        return drawn

    def _max_marginals(self, scores: np.ndarray, arc_bonus: np.ndarray) -> np.ndarray:
        """`max_marginals` of what has been checked. Here: a decode for each arc that the best tree does not have."""
        size = len(arc_bonus)
        marginals = np.full((size, size), -np.inf, np.float32)
        try:
            best = self.decode(scores, arc_bonus)
        except InfeasibleError:
            return marginals
        marginals[best.heads[1:], np.arange(1, size - 1)] = best.score
        for d in range(1, size - 1):
            forced = arc_bonus.copy()
            for h in range(size - 1):
                if h not in (d, best.heads[d]) and arc_bonus[h, d] > -np.inf:
                    forced[:, d] = -np.inf
                    forced[h, d] = arc_bonus[h, d]
                    marginals[h, d] = self._score_or_nothing(scores, forced)
        return marginals

    def _margins(self, scores: np.ndarray, arc_bonus: np.ndarray, best: Derivation) -> tuple[np.ndarray, np.ndarray]:
        """Values and heads of `Margins`. By the outside pass, if there is one."""
        if self.has_outside_pass:
            return cheapest_heads(self._max_marginals(scores, arc_bonus), best)
        return self._decodes(scores, arc_bonus, best)

    def _next_tree(self, scores: np.ndarray, arc_bonus: np.ndarray, best: Derivation) -> Next:
        """The second best tree for `k_best_trees`, among large numbers, in float64."""
        own, bonus, inner = self._without_shared(scores, arc_bonus, best)
        candidates = np.arange(1, len(best.heads))
        rest = np.inf
        if not self._has_large(own, bonus, inner):
            values, _ = self._margins(own, bonus, inner)
            values = np.where(values > LARGE, values * (1 - ROUNDING), values)  # at most what it is
            least = values.min()
            if least <= LARGE or least == np.inf:
                return next_by_margins(values, best)
            near = values <= least * (1 + 2 * ROUNDING)
            candidates, rest = np.flatnonzero(near), values.min(where=~near, initial=np.inf)
        trees = [(word, tree) for word, tree in self._without_head(scores, arc_bonus, best, candidates) if tree]
        if not trees:
            return Next(0, np.inf, np.inf)
        trees.sort(key=lambda found: -found[1].score)
        (word, tree), others = trees[0], trees[1:]
        rest = min([rest - best.score, *(-other.score for _, other in others)])
        return Next(word, -tree.score, rest, tree)

    @staticmethod
    def _has_large(scores: np.ndarray, arc_bonus: np.ndarray, derivation: Derivation) -> bool:
        arcs = derivation.heads[1:], np.arange(1, len(derivation.heads))
        return bool(holds_large(scores[tuple(derivation.parts.T)]) or holds_large(arc_bonus[arcs]))

    def _decodes(self, scores: np.ndarray, arc_bonus: np.ndarray, best: Derivation) -> tuple[np.ndarray, np.ndarray]:
        """Values and heads of `Margins`, by a decode for each word without its head."""
        values, heads = np.full(len(best.heads), np.inf), np.full(len(best.heads), -1, np.int32)
        for d, other in self._without_head(scores, arc_bonus, best, range(1, len(best.heads))):
            if other is not None:
                values[d], heads[d] = max(best.score - other.score, 0.0), other.heads[d]
        return values, heads

    def _without_head(
        self, scores: np.ndarray, arc_bonus: np.ndarray, best: Derivation, words: Iterable[int]
    ) -> Iterator[tuple[int, Derivation | None]]:
        """Each of the words and the best derivation in which it has another head than in ``best``, if there is one."""
        without = arc_bonus.copy()
        for d in words:
            own = best.heads[d]
            without[own, d] = -np.inf
            try:
                yield d, self.decode(scores, without)
            except InfeasibleError:
                yield d, None
            without[own, d] = arc_bonus[own, d]

    def _sums(self, scores: np.ndarray, arc_bonus: np.ndarray) -> Sums:
        """Sums over the derivations; scores and arc bonus are float64 and divided by the temperature."""
        self._lacks_marginals()

    def _sums_and_shared(self, scores: np.ndarray, arc_bonus: np.ndarray) -> tuple[Sums, float]:
        """Sums over the derivations, each less what all of them share if numbers are large, and what that is."""
        given = scores, arc_bonus
        if not any(map(holds_large, given)) or any((np.abs(x) > MOST).any(where=x > -np.inf) for x in given):
            return self._sums(scores, arc_bonus), 0.0
        less = without_shared(scores, arc_bonus, self.channels, self.roles, self.shared, self.single_root)
        some = self.decode(scores, arc_bonus)
        before, after = (self._weigh(some, *values) for values in ((scores, arc_bonus), less))
        return self._sums(*less), before - after

    @staticmethod
    def _weigh(derivation: Derivation, scores: np.ndarray, arc_bonus: np.ndarray) -> float:
        """Score of a derivation, in float64."""
        heads = derivation.heads
        return float(scores[tuple(derivation.parts.T)].sum() + arc_bonus[heads[1:], np.arange(1, len(heads))].sum())

    def _score_or_nothing(self, scores: np.ndarray, arc_bonus: np.ndarray) -> float:
        try:
            return self.decode(scores, arc_bonus).score
        except InfeasibleError:
            return -np.inf

    def _without_shared(
        self, scores: np.ndarray, arc_bonus: np.ndarray | None, best: Derivation
    ) -> tuple[np.ndarray, np.ndarray, Derivation]:
        """Both in float32 for a chart; less what all trees share where that is large, and so is the score of the best.

        As `Decoder.decode` does where the best derivation is made of large numbers.
        """
        own, bonus = self._checked(scores, arc_bonus)
        if not self._has_large(own, bonus, best):
            return own, bonus, best
        wide, wide_bonus = exact(scores), exact(bonus if arc_bonus is None else arc_bonus)
        less = without_shared(wide, wide_bonus, self.channels, self.roles, self.shared, self.single_root)
        own, bonus = self._checked(*less)
        return own, bonus, best._replace(score=self._weigh(best, *less))

    def _checked_sums(
        self, scores: np.ndarray, arc_bonus: np.ndarray | None, temperature: float
    ) -> tuple[np.ndarray, np.ndarray]:
        if not self.has_marginals:
            self._lacks_marginals()
        if not (isfinite(temperature) and temperature > 0):
            raise ValueError(f"a temperature is a positive number; got {temperature}")
        scores, arc_bonus = self._checked(scores, arc_bonus, np.float64)
        if not (scores < np.inf).all() or not (arc_bonus < np.inf).all():  # false for NaN, too
            raise ValueError("scores or arc_bonus hold NaN or +inf; forbid parts with −inf")
        n = scores.shape[1] - 2
        self._check_room("probabilities", self.sums_bytes(n), n)
        return scores / temperature, arc_bonus / temperature

    def _check_exact(self) -> None:
        if not self.exact:
            raise UnsupportedError(f"{self!r} need not find the best tree, so it cannot say what is next to it")

    def _check_room(self, what: str, size: int, n: int) -> None:
        if size > self.memory_limit:
            raise ChartTooLargeError(
                f"{self.name}: the charts for {what} of {n} words take {size / 2**30:.1f} GiB, "
                f"the limit is {self.memory_limit / 2**30:.1f} GiB"
            )

    def _lacks_marginals(self) -> NoReturn:
        found, pending = set(), [Certainty]
        while pending:
            kind = pending.pop()
            pending += kind.__subclasses__()
            if kind.has_marginals and "name" in vars(kind):
                found.add(kind.name)
        raise UnsupportedError(
            f"{self!r} cannot sum over its derivations, so it has no probabilities and no samples; "
            f"these have: {', '.join(sorted(found))}"
        )
