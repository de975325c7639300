"""The base class of all decoders: what they take and return.

A sentence of n words has N = n + 2 positions: 0 is the root, 1…n the words, n + 1 the *end* position (the empty
buffer of a transition system, "none" for a missing grandparent or sibling).
"""

from __future__ import annotations

import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import isfinite, isnan
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mh4.machine import available_threads

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
from .forest import Forest, Sums, cheapest_heads, marginals_by_decoding, margins_by_decoding
from .k_best import NearlyBest
from .numbers import check_numbers, own_array, plain_array
from .shared import Group, without_low, without_shared
from .tree_batch import TreeBatch

T = TypeVar("T")
WITH_MARGINALS = ("mst", "eisner", "mh3", "mh4-two", "mh4-hybrid")  # decoders with `has_marginals`
MARGINS_DECODES = 4  # time of `margins`, in decodes
DEFAULT_MEMORY_LIMIT = 2 << 30  # bytes of chart for one sentence
THREADED_BYTES = 500_000  # average chart per sentence below which handing it to a thread takes longer than decoding


@cache
def _kept_zeros(size: int) -> np.ndarray:
    return np.zeros((size, size), np.float32)


def _no_bonus(size: int) -> np.ndarray:
    """Zeros (size, size), cached for short sentences, where allocation takes a notable time; kernels only read them."""
    return _kept_zeros(size) if size <= 64 else np.zeros((size, size), np.float32)


@cache
def _thread_pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mh4-decode")


if hasattr(os, "register_at_fork"):  # a forked process inherits the pool but not its threads
    os.register_at_fork(after_in_child=_thread_pool.cache_clear)


class Decoder(ABC):
    """An exact decoder for one class of trees and one factorisation.

    Parameters
    ----------
    single_root : bool
        Exactly one word is attached to the root (the default), or at least one.
    memory_limit : int
        Largest chart, in bytes, that one sentence may take.

    Attributes
    ----------
    name : str
    channels : tuple of str
        Name of each score matrix, in order.
    roles : tuple of (row role, column role)
        What the rows and the columns of each matrix stand for: head, dependent, s1, s0, b0, …
    shared : tuple of groups
        Groups of channels in which every derivation has exactly one part for each word; see `shared`.
    tree_class : {"projective", "mh4", "1ec", "all"}
        The class of trees that it builds; see `closest`.
    exact : bool
        Whether the best derivation is guaranteed.
    has_outside_pass : bool
        Whether `max_marginals` takes one outside pass rather than a decode per arc.
    has_fast_margins : bool
        Whether `margins` takes a few decodes rather than one for each word.
    has_marginals : bool
        Whether it can sum over derivations: `marginals`, `log_partition`, `sample`.
    """

    name: str
    channels: tuple[str, ...]
    roles: tuple[tuple[str, str], ...]
    shared: tuple[Group, ...]
    tree_class: str
    exact: bool = True
    has_outside_pass: bool = False
    has_fast_margins: bool = False
    has_marginals: bool = False

    def __init__(self, single_root: bool = True, memory_limit: int = DEFAULT_MEMORY_LIMIT) -> None:
        self.single_root = single_root
        self.memory_limit = memory_limit

    def __repr__(self) -> str:
        return f"<{self.name} decoder, {'one root child' if self.single_root else 'any number of root children'}>"

    @abstractmethod
    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        """Fill ``heads`` and the first rows of ``parts`` (3n, 3); return the number of parts and the score.

        A negative number of parts means that there is no derivation. Every implementation begins with `check_numbers`
        and ends with `derivation_score`. Fast decoders do all this in one kernel, since two more calls would take as
        long as decoding a short sentence. Kernels are nogil: they run in a thread pool.
        """

    def chart_bytes(self, n: int) -> int:
        """Bytes of the chart of a sentence of n words (0 if negligible)."""
        return 0

    def decode(self, scores: ArrayLike, arc_bonus: ArrayLike | None = None) -> Derivation:
        """Return the best derivation under ``scores``.

        Parameters
        ----------
        scores : float32 (C, N, N)
            One matrix per channel, N = n + 2. −inf forbids a part.
        arc_bonus : float32 (N, N), optional
            ``arc_bonus[h, d]`` is added once when arc h → d is built; −inf forbids the arc.

        Both may be float64, or tensors of PyTorch, on any device; values of −3.3e38 and less count as −inf. Numbers
        of up to 1024 are added as they are, in float32, so their sums are rounded to its 24 bits. A larger constant on
        all arcs to a word, or on all channels of a group in `shared`, costs no precision; nor do larger numbers that no
        derivation can avoid, such as finite masks, or that cancel out.

        Raises
        ------
        InfeasibleError
            Every derivation is forbidden.
        ChartTooLargeError
            The chart exceeds the memory limit.
        ValueError
            Wrong shape; a mask instead of numbers to add; masked arrays; complex numbers; NaN, +inf or numbers too
            large to sum, beyond 2^121 / N.
        """
        checked, bonus = self._checked(scores, arc_bonus)
        found = self._best(checked, bonus)
        return self.forest(scores, arc_bonus).best if isnan(found.score) else found

    def _best(self, scores: np.ndarray, arc_bonus: np.ndarray) -> Derivation:
        """The best derivation under arrays from `_checked`; its score is NaN if large numbers make it uncertain."""
        n = len(arc_bonus) - 2
        if not self.fits(n):
            raise ChartTooLargeError(
                f"{self.name}: the chart of {n} words takes {memory_size(self.chart_bytes(n))}, "
                f"the limit is {memory_size(self.memory_limit)}"
            )
        heads = np.empty(n + 1, np.int32)
        heads[0] = -1
        parts = np.empty((3 * n, 3), np.int32)
        count, score = self._run(scores, arc_bonus, heads, parts)
        if count < 0:
            raise InfeasibleError(f"no {self.name} derivation of these {n} words: the allowed arcs hold no such tree")
        return Derivation(heads, parts[:count], float(score))

    def forest(self, scores: ArrayLike, arc_bonus: ArrayLike | None = None, temperature: ArrayLike = 1.0) -> Forest:
        """Return the forest of all derivations of one sentence, which answers several questions; see `Forest`."""
        return Forest(self, scores, arc_bonus, temperature)

    def margins(self, scores: ArrayLike, arc_bonus: ArrayLike | None = None) -> Margins:
        """See `Forest.margins`."""
        return self.forest(scores, arc_bonus).margins

    def max_marginals(self, scores: ArrayLike, arc_bonus: ArrayLike | None = None) -> np.ndarray:
        """See `Forest.max_marginals`."""
        return self.forest(scores, arc_bonus).max_marginals

    def k_best(self, scores: ArrayLike, k: int, arc_bonus: ArrayLike | None = None) -> list[Derivation]:
        """See `Forest.k_best`."""
        return self.forest(scores, arc_bonus).k_best(k)

    def marginals(
        self, scores: ArrayLike, arc_bonus: ArrayLike | None = None, temperature: ArrayLike = 1.0
    ) -> np.ndarray:
        """See `Forest.marginals`."""
        return self.forest(scores, arc_bonus, temperature).marginals

    def part_marginals(
        self, scores: ArrayLike, arc_bonus: ArrayLike | None = None, temperature: ArrayLike = 1.0
    ) -> PartMarginals:
        """See `Forest.part_marginals`."""
        return self.forest(scores, arc_bonus, temperature).part_marginals

    def log_partition(
        self, scores: ArrayLike, arc_bonus: ArrayLike | None = None, temperature: ArrayLike = 1.0
    ) -> float:
        """See `Forest.log_partition`."""
        return self.forest(scores, arc_bonus, temperature).log_partition

    def sample(
        self,
        scores: ArrayLike,
        count: int,
        arc_bonus: ArrayLike | None = None,
        temperature: ArrayLike = 1.0,
        rng: np.random.Generator | int | None = None,
    ) -> list[Derivation]:
        """See `Forest.sample`."""
        return self.forest(scores, arc_bonus, temperature).sample(count, rng)

    def outside_bytes(self, n: int) -> int:
        """Bytes of the charts of `max_marginals` for a sentence of n words, including the decoding chart."""
        return 0

    def sums_bytes(self, n: int) -> int:
        """Bytes of the charts of `part_marginals` for a sentence of n words."""
        return 0

    def _max_marginals(self, solved: Solved) -> np.ndarray:
        """See `Forest.max_marginals`. By default: one decode for each arc that is not in the best tree."""
        return marginals_by_decoding(self, solved)

    def _margins(self, solved: Solved) -> tuple[np.ndarray, np.ndarray]:
        """Values and heads of `Margins`. Without an outside pass: one decode for each word, with its head forbidden."""
        if self.has_outside_pass:
            return cheapest_heads(self._max_marginals(solved), solved.best.heads)
        return margins_by_decoding(self, *solved[:3])

    def _nearly_best(self, solved: Solved, rank: int) -> NearlyBest | None:
        """Roughly the ``rank`` best derivations or more; None if there is no fast way to find them."""
        return None

    def _spans(self, solved: Solved) -> np.ndarray:
        """See `Forest.span`: float32 (N, N)."""
        raise UnsupportedError(f"the chart of {self.name} does not support span")

    def _unsure(self, n: int) -> str | None:
        """Why this decoder cannot rank alternatives to the tree it finds for n words; None if it can."""
        return None if self.exact else f"{self!r} need not find the best tree, so it cannot say what is next to it"

    def _lacks_marginals(self) -> str:
        """The error message of a decoder without sums, which names the decoders that have them."""
        return (
            f"{self!r} cannot sum over its derivations, so it has no probabilities and no samples; "
            f"these have: {', '.join(WITH_MARGINALS)}"
        )

    def without_shared(self, scores: np.ndarray, arc_bonus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Subtract the constants that all derivations share; see `shared`."""
        return without_shared(scores, arc_bonus, self.channels, self.roles, self.shared, self.single_root)

    def _sums(self, scores: np.ndarray, arc_bonus: np.ndarray) -> Sums:
        """Sums over the derivations; both arrays are float64 and divided by the temperature.

        UnsupportedError: The decoder does not support sums; see `has_marginals`.
        """
        raise UnsupportedError(self._lacks_marginals())

    def _checked(
        self, scores: ArrayLike, arc_bonus: ArrayLike | None, dtype: type[np.floating[Any]] = np.float32
    ) -> tuple[np.ndarray, np.ndarray]:
        scores = own_array(scores, dtype)
        shape = scores.shape
        if len(shape) != 3 or shape[0] != len(self.channels) or shape[1] != shape[2]:
            raise ValueError(
                f"{self.name} expects scores of shape ({len(self.channels)}, N, N), channels "
                f"{', '.join(self.channels)}; got {shape}{' (batches: decode_batch)' * (len(shape) == 4)}"
            )
        size = shape[1]
        if size < 3:
            raise ValueError(f"a sentence of n words has N = n + 2 positions; N = {size} leaves no word")
        if arc_bonus is None:
            arc_bonus = _no_bonus(size).astype(dtype, copy=False)
        else:
            arc_bonus = plain_array(arc_bonus)
            if arc_bonus.dtype == bool:
                raise ValueError("arc_bonus is added to scores, so it is no mask; write np.where(allowed, 0, -np.inf)")
            arc_bonus = own_array(arc_bonus, dtype)
            if arc_bonus.shape != (size, size):
                raise ValueError(f"arc_bonus must have shape ({size}, {size}); got {arc_bonus.shape}")
        return scores, arc_bonus

    def fits(self, n: int) -> bool:
        """Whether the chart of a sentence of n words stays within the memory limit."""
        return self.chart_bytes(n) <= self.memory_limit

    def decode_batch(
        self,
        scores: ArrayLike,
        lengths: Iterable[int],
        arc_bonus: ArrayLike | None = None,
        threads: int | None = None,
    ) -> list[Derivation]:
        """Decode a padded batch; the result does not depend on ``threads``.

        Parameters
        ----------
        scores : float32 (B, C, N, N)
            Sentence b of n words occupies the first n + 2 positions, its end position being n + 1.
        lengths : int (B,)
            Words of each sentence.
        arc_bonus : float32 (B, N, N), optional
        threads : int, optional
            Threads for batches with sentences long enough to benefit; by default one per core.

        Raises
        ------
        InfeasibleError, ChartTooLargeError, ValueError
            See `decode`, for any of the sentences; shapes and lengths that do not match; fewer than one thread.
        TypeError
            Lengths are not integers.
        """
        return self.map_batch(self.decode, scores, lengths, arc_bonus, threads)

    def margins_batch(
        self,
        scores: ArrayLike,
        lengths: Iterable[int],
        arc_bonus: ArrayLike | None = None,
        threads: int | None = None,
    ) -> list[Margins]:
        """`margins` of a padded batch; see `decode_batch`."""
        return self.map_batch(self.margins, scores, lengths, arc_bonus, threads, decodes=MARGINS_DECODES)

    def part_marginals_batch(
        self,
        scores: ArrayLike,
        lengths: Iterable[int],
        arc_bonus: ArrayLike | None = None,
        temperature: ArrayLike = 1.0,
        threads: int | None = None,
    ) -> list[PartMarginals]:
        """`part_marginals` of a padded batch; see `decode_batch`."""
        return self.map_batch(
            lambda own, bonus: self.part_marginals(own, bonus, temperature), scores, lengths, arc_bonus, threads
        )

    def decode_together(
        self, scores: np.ndarray, lengths: Sequence[int], arc_bonus: np.ndarray, threads: int | None = None
    ) -> TreeBatch:
        """Like `decode_batch`, but returns arrays for all sentences together."""
        batch = TreeBatch.empty(lengths)
        best = self.decode_batch(scores, lengths, arc_bonus, threads)
        for b, ((heads, parts), derivation) in enumerate(zip(batch.each(), best, strict=True)):
            batch.put(b, heads, parts, derivation)
        return batch

    def map_batch(
        self,
        ask: Callable[[np.ndarray, np.ndarray | None], T],
        scores: ArrayLike,
        lengths: Iterable[int],
        arc_bonus: ArrayLike | None = None,
        threads: int | None = None,
        decodes: int = 1,
    ) -> list[T]:
        """Apply ``ask`` to scores and arc bonus of each sentence of a padded batch, in several threads.

        Parameters
        ----------
        ask
            A method such as `decode`.
        scores, lengths, arc_bonus, threads
            See `decode_batch`.
        decodes
            Rough time of ``ask``, in decodes: fast calls are not worth a thread.
        """
        counts = [operator.index(n) for n in lengths]
        scores = self._checked_batch(scores, counts, arc_bonus)
        batch = len(scores)
        if arc_bonus is not None:
            arc_bonus = plain_array(arc_bonus)

        def one(b: int) -> T:
            size = counts[b] + 2
            bonus = None if arc_bonus is None else arc_bonus[b, :size, :size]
            return ask(scores[b, :, :size, :size], bonus)

        threads = self._threads_that_pay(counts, threads, decodes)
        if threads == 1:
            return [one(b) for b in range(batch)]
        return list(_thread_pool(threads).map(one, range(batch)))

    def _threads_that_pay(self, lengths: Sequence[int], threads: int | None, decodes: int = 1) -> int:
        """The number of threads to use; 1 if handing over sentences would take longer than it saves."""
        threads = available_threads() if threads is None else operator.index(threads)
        if threads < 1:
            raise ValueError(f"decoding needs at least one thread; got {threads}")
        batch = len(lengths)
        quick = batch < 2 or decodes * sum(map(self.chart_bytes, lengths)) < THREADED_BYTES * batch
        return 1 if quick else threads

    def _checked_batch(
        self, scores: ArrayLike, lengths: Sequence[int], arc_bonus: ArrayLike | None = None
    ) -> np.ndarray:
        """The scores (B, C, N, N) as an array; ValueError if their shape, a length or the bonus does not fit."""
        scores = plain_array(scores)
        if scores.ndim != 4 or scores.shape[1] != len(self.channels) or scores.shape[2] != scores.shape[3]:
            raise ValueError(f"{self.name} expects scores of shape (B, {len(self.channels)}, N, N); got {scores.shape}")
        if len(lengths) != len(scores):
            raise ValueError(f"{len(scores)} score tensors but {len(lengths)} lengths")
        for n in lengths:
            if not 1 <= n <= scores.shape[3] - 2:
                raise ValueError(f"a sentence of {n} words does not fit scores of shape {scores.shape}")
        wanted = (len(scores), *scores.shape[2:])
        if arc_bonus is not None and np.shape(arc_bonus) != wanted:
            raise ValueError(f"arc_bonus must have shape {wanted}; got {np.shape(arc_bonus)}")
        return scores

    def derive_batch(self, scores: ArrayLike, trees: Iterable[ArrayLike]) -> list[Derivation]:
        """Return the best derivation of each given tree, as `decode_batch` does if all other arcs are forbidden.

        Parameters
        ----------
        scores
            See `decode_batch`.
        trees : B arrays int (n + 1,), or one array (B, n + 1)
            Heads of trees of this decoder's class; arrays may be tensors of PyTorch, too.

        Raises
        ------
        InfeasibleError
            Heads are not a tree of the class, or all its derivations are forbidden.
        ValueError
            Shapes or lengths do not match; a score of the tree is NaN or +inf.
        """
        given = TreeBatch.of(trees)
        self.derive_together(scores, given)
        found = zip(given.each(), given.counts.tolist(), given.totals.tolist(), strict=True)
        return [Derivation(heads, parts[:count], total) for (heads, parts), count, total in found]

    def derive_together(self, scores: ArrayLike, given: TreeBatch) -> None:
        """Like `derive_batch`, but writes into ``given``."""
        scores = without_low(own_array(self._checked_batch(scores, given.lengths)))
        self._derive(scores, given)
        totals = given.totals.tolist()
        if all(map(isfinite, totals)):
            return
        for own, (heads, _), total in zip(scores, given.each(), totals, strict=True):
            if not isfinite(total):
                size = len(heads) + 1
                check_numbers(own_array(own[:, :size, :size]), _no_bonus(size))
                raise InfeasibleError(f"no {self.name} derivation of these heads that is allowed: {heads.tolist()}")

    @abstractmethod
    def _derive(self, scores: np.ndarray, given: TreeBatch) -> None:
        """Find the best derivation of each tree in ``given``, scores float32 (B, C, N, N); heads may not be trees."""
