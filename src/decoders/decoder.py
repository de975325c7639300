"""The parts contract: what every decoder takes and returns.

A sentence of n words has N = n + 2 positions: 0 is the root, 1…n the words, n + 1 the *end* position (the empty
buffer of a transition system, "none" for a missing grandparent or sibling).
"""

from __future__ import annotations

import operator
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate
from math import isfinite, isnan
from typing import Any, NamedTuple, Self

import numpy as np
from numba import njit

from mh4.machine import available_threads

from .certainty import Certainty, T
from .derivation import ChartTooLargeError, Derivation, InfeasibleError
from .levels import best_by_levels
from .shared import LARGE, Group, exact, without_shared
from .trees import arc_matrix, checked_tree

DEFAULT_MEMORY_LIMIT = 2 << 30  # bytes of chart for one sentence
LARGEST_SUM = (
    2.0**121
)  # of one number per position; a chart sums up to four per word and weighs them against 16 times that
THREADED_BYTES = 500_000  # of chart a sentence, on average; with less, passing one on to a thread takes longer than it


class TreeBatch(NamedTuple):
    """Trees, one behind the other, and their best derivations, or room for them.

    Attributes
    ----------
    heads : int32 (H,)
    ends : int64 (B,)
        Where each tree ends.
    parts : int32 (3 · H, 3)
        The parts of a tree that begins at h begin in row 3 · h.
    counts : int64 (B,)
        Number of parts.
    totals : float64 (B,)
        Their sum; −inf where there is no derivation.
    """

    heads: np.ndarray
    ends: np.ndarray
    parts: np.ndarray
    counts: np.ndarray
    totals: np.ndarray

    @classmethod
    def of(cls, trees: Sequence[np.ndarray]) -> Self:
        """The trees, whose derivations are yet to be found."""
        batch = cls.empty([len(tree) - 1 for tree in trees])
        if trees:
            np.concatenate(trees, out=batch.heads, casting="same_kind")
        return batch

    @classmethod
    def empty(cls, lengths: Sequence[int]) -> Self:
        """Room for trees of some numbers of words."""
        ends = list(accumulate(n + 1 for n in lengths))
        total, size = ends[-1] if ends else 0, len(ends)
        return cls(
            np.empty(total, np.int32),
            np.array(ends, np.int64),
            np.empty((3 * total, 3), np.int32),
            np.empty(size, np.int64),
            np.empty(size),
        )

    @property
    def lengths(self) -> list[int]:
        """Words of each tree."""
        ends = self.ends.tolist()
        return [end - start - 1 for start, end in zip([0, *ends], ends, strict=False)]

    def put(self, b: int, heads: np.ndarray, parts: np.ndarray, derivation: Derivation) -> None:
        """The derivation of sentence b, whose places `each` gave."""
        count = len(derivation.parts)
        heads[:], parts[:count] = derivation.heads, derivation.parts
        self.counts[b], self.totals[b] = count, derivation.score

    def each(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The heads (n + 1,) of every tree and the place of its parts, (3 · (n + 1), 3)."""
        start = 0
        for end in self.ends.tolist():
            yield self.heads[start:end], self.parts[3 * start : 3 * end]
            start = end


@njit(cache=True, nogil=True)
def parts_score(scores, parts, count):
    """Sum of the first ``count`` parts, in float64; −inf if ``count`` is negative. scores (C, N, N)."""
    if count < 0:
        return -np.inf
    total = 0.0
    for p in range(count):
        total += scores[parts[p, 0], parts[p, 1], parts[p, 2]]
    return total


@njit(cache=True, nogil=True)
def derivation_score(scores, arc_bonus, heads, parts, count):
    """Sum of the first ``count`` parts and of the bonuses of the arcs, in float64; −inf if ``count`` is negative.

    NaN if one of them is `LARGE`: the chart may have missed the best derivation. scores (C, N, N), arc_bonus (N, N).
    """
    if count < 0:
        return -np.inf
    total, largest = 0.0, np.float32(0)
    for p in range(count):
        score = scores[parts[p, 0], parts[p, 1], parts[p, 2]]
        total += score
        largest = max(largest, abs(score))
    for d in range(1, heads.shape[0]):
        bonus = arc_bonus[heads[d], d]
        total += bonus
        largest = max(largest, abs(bonus))
    return total if largest <= LARGE else np.nan


@njit(cache=True, nogil=True)
def check_numbers(scores, arc_bonus):
    """ValueError unless every number is −inf or small enough that no sum in a chart leaves float32.

    No branch (NaN compares false) and a bound of the numbers' own type, so that the loops vectorise.
    """
    bound = np.float32(LARGEST_SUM / scores.shape[1])
    forbidden = np.float32(-np.inf)
    fine = True
    flat = scores.reshape(-1)
    for at in range(flat.size):
        fine &= (abs(flat[at]) < bound) | (flat[at] == forbidden)
    flat = arc_bonus.reshape(-1)
    for at in range(flat.size):
        fine &= (abs(flat[at]) < bound) | (flat[at] == forbidden)
    if not fine:
        raise ValueError("scores or arc_bonus hold NaN, +inf or numbers too large to be summed; forbid parts with −inf")


@cache
def _kept_zeros(size: int) -> np.ndarray:
    return np.zeros((size, size), np.float32)


def _no_bonus(size: int) -> np.ndarray:
    """Zeros (size, size), made once for the sizes where making them would show; kernels only read them."""
    return _kept_zeros(size) if size <= 64 else np.zeros((size, size), np.float32)


@cache
def _thread_pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mh4-decode")


if hasattr(os, "register_at_fork"):  # a forked process has the pool, but not its threads
    os.register_at_fork(after_in_child=_thread_pool.cache_clear)


def _own_array(values: np.ndarray, dtype: type[np.floating[Any]] = np.float32) -> np.ndarray:
    """As the kernels are compiled for it: of that type, C order, writable (though they only read)."""
    if getattr(values, "dtype", None) != dtype:
        with np.errstate(over="ignore"):  # too low for float32 is forbidden; too high, `check_numbers` refuses
            values = np.asarray(values, dtype)
    array = np.ascontiguousarray(values)
    return array if array.flags.writeable else array.copy()


class Decoder(Certainty):
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
        Channels of which every derivation has exactly one part for each word; see `shared`.
    """

    name: str
    channels: tuple[str, ...]
    roles: tuple[tuple[str, str], ...]
    shared: tuple[Group, ...]

    def __init__(self, single_root: bool = True, memory_limit: int = DEFAULT_MEMORY_LIMIT) -> None:
        self.single_root = single_root
        self.memory_limit = memory_limit

    def __repr__(self) -> str:
        return f"<{self.name} decoder, {'one root child' if self.single_root else 'any number of root children'}>"

    @abstractmethod
    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        """Fill ``heads`` and the first rows of ``parts`` (3n of them at hand); return their number and the score.

        A negative number of parts says that there is no derivation. All begin with `check_numbers` and end with
        `derivation_score`; the fast decoders in one kernel, as a call of its own for each of the two would take as long
        as decoding a short sentence. Kernels are nogil: they run in a thread pool.
        """

    def chart_bytes(self, n: int) -> int:
        """Bytes that the chart of a sentence of n words takes (0 when it is of no concern)."""
        return 0

    def decode(self, scores: np.ndarray, arc_bonus: np.ndarray | None = None) -> Derivation:
        """Best derivation under ``scores``.

        Parameters
        ----------
        scores : float32 (C, N, N)
            One matrix per channel, N = n + 2. −inf forbids a part.
        arc_bonus : float32 (N, N), optional
            ``arc_bonus[h, d]`` is added once when arc h → d is built; −inf forbids the arc.

        Both may be float64, of which −3.4e38 and less counts as −inf. A large constant on all arcs to a word, or on all
        of `shared`, costs no precision, nor do large numbers such as finite masks that no derivation avoids.

        Raises
        ------
        InfeasibleError
            Every derivation is forbidden.
        ChartTooLargeError
            A chart beyond the memory limit.
        ValueError
            Wrong shape; NaN, +inf or, beyond 2^121 / N, numbers too large to be summed.
        """
        given, given_bonus = scores, arc_bonus
        scores, arc_bonus = self._checked(scores, arc_bonus)
        size = scores.shape[1]
        n = size - 2
        if not self.fits(n):
            raise ChartTooLargeError(
                f"{self.name}: the chart of {n} words takes {self.chart_bytes(n) / 2**30:.1f} GiB, "
                f"the limit is {self.memory_limit / 2**30:.1f} GiB"
            )
        heads = np.empty(n + 1, np.int32)
        heads[0] = -1
        parts = np.empty((3 * n, 3), np.int32)
        count, score = self._run(scores, arc_bonus, heads, parts)
        if isnan(score):
            scores, arc_bonus = exact(given), exact(arc_bonus if given_bonus is None else given_bonus)
            own, bonus = without_shared(scores, arc_bonus, self.channels, self.roles, self.shared, self.single_root)
            count, score = self._run(_own_array(own), _own_array(bonus), heads, parts)
            if isnan(score) and self.exact:
                count = self._run_by_levels(own, bonus, heads, parts)
            score = scores[tuple(parts[: max(count, 0)].T)].sum() + arc_bonus[heads[1:], np.arange(1, n + 1)].sum()
        if count < 0:
            raise InfeasibleError(f"no {self.name} derivation of these {n} words: the allowed arcs hold no such tree")
        return Derivation(heads, parts[:count], float(score))

    def _run_by_levels(self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray) -> int:
        """`_run` of float64 numbers, large ones where they cannot be avoided; see `levels`."""
        count, size, words = -1, len(arc_bonus), np.arange(1, len(heads))

        def run(values: np.ndarray) -> np.ndarray | None:
            nonlocal count
            own, bonus = values[: scores.size].reshape(scores.shape), values[scores.size :].reshape(arc_bonus.shape)
            count, _ = self._run(_own_array(own), _own_array(bonus), heads, parts)
            if count < 0:
                return None
            return np.concatenate(
                [np.ravel_multi_index(tuple(parts[:count].T), scores.shape), scores.size + heads[1:] * size + words]
            )

        best_by_levels(run, np.concatenate([scores.reshape(-1), arc_bonus.reshape(-1)]), len(words))
        return count

    def _checked(
        self, scores: np.ndarray, arc_bonus: np.ndarray | None, dtype: type[np.floating[Any]] = np.float32
    ) -> tuple[np.ndarray, np.ndarray]:
        scores = _own_array(scores, dtype)
        shape = scores.shape
        if len(shape) != 3 or shape[0] != len(self.channels) or shape[1] != shape[2]:
            raise ValueError(
                f"{self.name} wants scores of shape ({len(self.channels)}, N, N), channels "
                f"{', '.join(self.channels)}; got {shape}"
            )
        size = shape[1]
        if size < 3:
            raise ValueError(f"a sentence of n words has N = n + 2 positions; N = {size} leaves no word")
        if arc_bonus is None:
            arc_bonus = _no_bonus(size).astype(dtype, copy=False)
        else:
            arc_bonus = _own_array(arc_bonus, dtype)
            if arc_bonus.shape != (size, size):
                raise ValueError(f"arc_bonus must have shape ({size}, {size}); got {arc_bonus.shape}")
        return scores, arc_bonus

    def fits(self, n: int) -> bool:
        """Whether the chart of a sentence of n words stays within the memory limit."""
        return self.chart_bytes(n) <= self.memory_limit

    def decode_batch(
        self,
        scores: np.ndarray,
        lengths: Iterable[int],
        arc_bonus: np.ndarray | None = None,
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
            Threads to use, where sentences are long enough for several to pay; by default one for each core.

        Raises
        ------
        InfeasibleError, ChartTooLargeError, ValueError
            See `decode`, for any of the sentences; shapes and lengths that do not fit each other; no threads.
        TypeError
            Lengths that are no integers.
        """
        return self.map_batch(self.decode, scores, lengths, arc_bonus, threads)

    def decode_together(
        self, scores: np.ndarray, lengths: Sequence[int], arc_bonus: np.ndarray, threads: int | None = None
    ) -> TreeBatch:
        """The same as `decode_batch`, as arrays of all sentences together."""
        batch = TreeBatch.empty(lengths)
        best = self.decode_batch(scores, lengths, arc_bonus, threads)
        for b, ((heads, parts), derivation) in enumerate(zip(batch.each(), best, strict=True)):
            batch.put(b, heads, parts, derivation)
        return batch

    def map_batch(
        self,
        ask: Callable[[np.ndarray, np.ndarray | None], T],
        scores: np.ndarray,
        lengths: Iterable[int],
        arc_bonus: np.ndarray | None = None,
        threads: int | None = None,
        decodes: int = 1,
    ) -> list[T]:
        """What ``ask`` answers to the scores and the arc bonus of each sentence of a padded batch, by several threads.

        Parameters
        ----------
        ask
            A method such as `decode`.
        scores, lengths, arc_bonus, threads
            See `decode_batch`.
        decodes
            How many times as long as `decode` it takes, about: what is quick is not worth a thread.
        """
        counts = [operator.index(n) for n in lengths]
        scores = self._checked_batch(scores, counts, arc_bonus)
        batch = len(scores)
        if arc_bonus is not None:
            arc_bonus = np.asarray(arc_bonus)

        def one(b: int) -> T:
            size = counts[b] + 2
            bonus = None if arc_bonus is None else arc_bonus[b, :size, :size]
            return ask(scores[b, :, :size, :size], bonus)

        threads = self._threads_that_pay(counts, threads, decodes)
        if threads == 1:
            return [one(b) for b in range(batch)]
        return list(_thread_pool(threads).map(one, range(batch)))

    def _threads_that_pay(self, lengths: Sequence[int], threads: int | None, decodes: int = 1) -> int:
        """The number of threads to use; 1 if passing sentences on to others would take longer than it spares."""
        threads = available_threads() if threads is None else operator.index(threads)
        if threads < 1:
            raise ValueError(f"decoding takes one thread at least; got {threads}")
        batch = len(lengths)
        quick = batch < 2 or decodes * sum(map(self.chart_bytes, lengths)) < THREADED_BYTES * batch
        return 1 if quick else threads

    def _checked_batch(
        self, scores: np.ndarray, lengths: Sequence[int], arc_bonus: np.ndarray | None = None
    ) -> np.ndarray:
        """The scores (B, C, N, N) as an array; ValueError if their shape, a length or the bonus does not fit."""
        scores = np.asarray(scores)
        if scores.ndim != 4 or scores.shape[1] != len(self.channels) or scores.shape[2] != scores.shape[3]:
            raise ValueError(f"{self.name} wants scores of shape (B, {len(self.channels)}, N, N); got {scores.shape}")
        if len(lengths) != len(scores):
            raise ValueError(f"{len(scores)} score tensors but {len(lengths)} lengths")
        for n in lengths:
            if not 1 <= n <= scores.shape[3] - 2:
                raise ValueError(f"a sentence of {n} words does not fit scores of shape {scores.shape}")
        wanted = (len(scores), *scores.shape[2:])
        if arc_bonus is not None and np.shape(arc_bonus) != wanted:
            raise ValueError(f"arc_bonus must have shape {wanted}; got {np.shape(arc_bonus)}")
        return scores

    def derive_batch(self, scores: np.ndarray, trees: Sequence[np.ndarray]) -> list[Derivation]:
        """Best derivation of each given tree: what `decode_batch` returns if all other arcs are forbidden.

        Parameters
        ----------
        scores
            See `decode_batch`.
        trees : B arrays int (n + 1,)
            Of this decoder's class.

        Raises
        ------
        InfeasibleError
            No tree of the class, or every derivation is forbidden.
        ValueError
            Shapes or lengths that do not fit each other; a score of the tree that is NaN or +inf.
        """
        given = TreeBatch.of(trees)
        self.derive_together(scores, given)
        found = zip(given.each(), given.counts.tolist(), given.totals.tolist(), strict=True)
        return [Derivation(heads, parts[:count], total) for (heads, parts), count, total in found]

    def derive_together(self, scores: np.ndarray, given: TreeBatch) -> None:
        """The same as `derive_batch`, into the room beside the trees."""
        scores = _own_array(self._checked_batch(scores, given.lengths))
        self._derive(scores, given)
        totals = given.totals.tolist()
        if all(map(isfinite, totals)):
            return
        for own, (heads, _), total in zip(scores, given.each(), totals, strict=True):
            if not isfinite(total):
                size = len(heads) + 1
                check_numbers(_own_array(own[:, :size, :size]), _no_bonus(size))
                raise InfeasibleError(f"no {self.name} derivation of these heads that is allowed: {heads.tolist()}")

    @abstractmethod
    def _derive(self, scores: np.ndarray, given: TreeBatch) -> None:
        """Find the best derivation of each given tree, scores float32 (B, C, N, N); they need not be trees."""

    def closest_tree(self, heads: np.ndarray) -> np.ndarray:
        """The tree of this decoder's class that shares most arcs with ``heads`` (int (n + 1,), ``heads[0] == -1``).

        Zero scores and a bonus of 1 on every arc of ``heads``; ties are broken by the decoder's order of candidates.

        Raises
        ------
        ValueError
            ``heads`` is not a tree.
        ChartTooLargeError
            A chart beyond the memory limit.
        """
        bonus = arc_matrix(checked_tree(heads))
        return self.decode(np.zeros((len(self.channels), *bonus.shape), np.float32), bonus).heads
