"""Approximate search: the MH3 and MH4 transition systems run left to right with a beam.

For sentences whose chart does not fit into memory, and to measure what exact decoding is worth. The scores are those of
the chart decoders, the trees a superset of theirs: from the stack [0] and the buffer 1…n, n + 1, a derivation takes n
shifts and n reduces to the stack [0] and the buffer [n + 1].
"""

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from .decoder import DEFAULT_MEMORY_LIMIT, Decoder
from .derivation import Derivation, InfeasibleError
from .mh3 import MH3
from .mh4 import MH4Hybrid, MH4Two
from .mh4_transitions import LA, REDUCE_NAMES, REDUCES
from .numbers import check_numbers, derivation_score
from .tree_batch import TreeBatch

SHIFT = len(REDUCES)  # behind the reduces

# Columns of the table of states. A state that puts a word on the stack owns the stack cell of the same number.
PARENT, MOVE = 0, 1
TOP = 2  # the topmost stack cell
WORD, BELOW = 3, 4  # of a stack cell: its word, and the cell below it
FRONT = 5  # the first word in the buffer

SEARCH_FORMS = "exact, greedy, beam:K with K = 1, 2, …"


def _reduce_channels(chart: type[Decoder]) -> np.ndarray:
    """For each reduce, its channel over [s0, b0] and its channel over [s1, s0]; −1 if there is none."""
    channel = {name: c for c, name in enumerate(chart.channels)}
    return np.array(
        [
            [channel.get(f"{name}[s0,b0]", channel.get(name, -1)), channel.get(f"{name}[s1,s0]", -1)]
            for name in REDUCE_NAMES
        ]
    )


_CHANNELS = {chart.name: _reduce_channels(chart) for chart in (MH3, MH4Two, MH4Hybrid)}


@njit(cache=True, nogil=True, inline="always")
def _arc(reduce, s2, s1, s0, b0):
    """Head and dependent of a reduce; the dependent leaves the stack."""
    window = (np.int64(s2), np.int64(s1), np.int64(s0), np.int64(b0))
    return window[REDUCES[reduce, 0]], window[REDUCES[reduce, 1]]


@njit(cache=True, nogil=True, inline="always")
def _push_key(key, word):
    """Hash of a stack or configuration, from the hash without its last word."""
    mixed = (key ^ np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


@njit(cache=True, nogil=True, inline="always")
def _propose(scores, arc_bonus, reduces, single_root, states, totals, first, stop, moves, move_scores):
    """List the legal moves from the states ``first`` … ``stop`` − 1, state and kind of each; return their number."""
    end = scores.shape[1] - 1
    count = 0
    for state in range(first, stop):
        top, b0 = states[state, TOP], states[state, FRONT]
        s0 = states[top, WORD]
        if b0 < end:
            move_scores[count] = totals[state] + scores[0, s0, b0]
            moves[count, 0], moves[count, 1] = state, SHIFT
            count += 1
        if s0 == 0:
            continue
        below = states[top, BELOW]
        s1 = states[below, WORD]
        s2 = states[states[below, BELOW], WORD] if s1 > 0 else -1
        last = s1 == 0 and b0 == end
        for reduce in range(SHIFT):
            if reduces[reduce, 0] < 0:
                continue
            h, d = _arc(reduce, s2, s1, s0, b0)
            if h < 0 or h == end or d == 0 or (single_root and h == 0 and not last):
                continue
            score = totals[state] + scores[reduces[reduce, 0], s0, b0] + arc_bonus[h, d]
            if reduces[reduce, 1] >= 0:
                score += scores[reduces[reduce, 1], s1, s0]
            move_scores[count] = score
            moves[count, 0], moves[count, 1] = state, reduce
            count += 1
    return count


@njit(cache=True, nogil=True, inline="always")
def _advance(moves, move_scores, width, states, totals, keys, slots, first):
    """Make the best moves, at most ``width`` into distinct configurations; return the end of the states ``first`` ….

    ``slots``, an open hash table, holds the states of this step; older ones count as free.
    """
    order = np.argsort(-move_scores, kind="mergesort")  # stable: ties stay in order of generation
    stop = first
    for m in order:
        if stop - first == width or move_scores[m] == -np.inf:
            break
        old, kind = moves[m, 0], moves[m, 1]
        word, below, front = np.int32(-1), states[old, TOP], states[old, FRONT]
        if kind == SHIFT:
            word = front
            front += 1
        elif kind <= LA:  # s0 leaves the stack
            below = states[below, BELOW]
        else:
            word = states[below, WORD]
            below = states[states[below, BELOW], BELOW]
        stack_key = keys[0, below] if word < 0 else _push_key(keys[0, below], word)
        key = _push_key(stack_key, front)
        slot = np.int64(key & np.uint64(slots.shape[0] - 1))
        while slots[slot] >= first and keys[1, slots[slot]] != key:
            slot = (slot + 1) & (slots.shape[0] - 1)
        if slots[slot] >= first:
            continue
        slots[slot] = stop
        keys[1, stop] = key
        states[stop, PARENT], states[stop, MOVE], states[stop, FRONT] = old, kind, front
        totals[stop] = move_scores[m]
        states[stop, TOP] = below
        if word >= 0:
            states[stop, TOP] = stop
            states[stop, WORD], states[stop, BELOW] = word, below
            keys[0, stop] = stack_key
        stop += 1
    return stop


@njit(cache=True, nogil=True)
def _beam_search(scores, arc_bonus, single_root, width, reduces, heads, parts):
    """Fill heads and parts with the best derivation found, return the number of parts; −1 if the beam died out.

    One root child. The word removed last can only be attached to the root, so the root takes no other: an arc from it
    is legal in the very last move alone. Some move is then always legal: shift while there is a word in the buffer,
    afterwards s1 → s0. Only forbidden parts lead into dead ends.

    Configurations that agree in stack and buffer have the same future, so only the best of them stays in the beam.
    """
    n = heads.shape[0] - 1
    states = np.empty((2 * n * width + 1, 6), np.int32)
    totals = np.empty(len(states))
    keys = np.empty((2, len(states)), np.uint64)  # hashes of the stack from a cell down, and of the configuration
    size = 4
    while size < 2 * width:
        size *= 2
    slots = np.full(size, -1, np.int32)
    moves, move_scores = np.empty(((SHIFT + 1) * width, 2), np.int32), np.empty((SHIFT + 1) * width)

    states[0, TOP] = states[0, WORD] = 0
    states[0, PARENT] = states[0, BELOW] = -1
    states[0, FRONT] = 1
    totals[0] = 0.0
    keys[0, 0] = np.uint64(1)
    first, stop = 0, 1
    for _ in range(2 * n):
        count = _propose(scores, arc_bonus, reduces, single_root, states, totals, first, stop, moves, move_scores)
        first, stop = stop, _advance(moves, move_scores[:count], width, states, totals, keys, slots, stop)
        if stop == first:
            return -1

    chosen = np.empty(2 * n, np.int8)
    state = first  # each step is sorted: its first state is its best
    for step in range(2 * n - 1, -1, -1):
        chosen[step] = states[state, MOVE]
        state = states[state, PARENT]
    return _replay(chosen, reduces, heads, parts)


@njit(cache=True, nogil=True)
def _replay(moves, reduces, heads, parts):
    """Heads and parts of a sequence of moves; returns the number of parts."""
    stack = np.empty(heads.shape[0], np.int32)
    stack[0] = 0
    size = 1
    b0 = 1
    count = 0
    for kind in moves:
        s0 = stack[size - 1]
        if kind == SHIFT:
            parts[count, 0], parts[count, 1], parts[count, 2] = 0, s0, b0
            count += 1
            stack[size] = b0
            size += 1
            b0 += 1
            continue
        s1 = stack[size - 2]
        s2 = stack[size - 3] if size > 2 else -1
        h, d = _arc(kind, s2, s1, s0, b0)
        heads[d] = h
        if reduces[kind, 1] >= 0:
            parts[count, 0], parts[count, 1], parts[count, 2] = reduces[kind, 1], s1, s0
            count += 1
        parts[count, 0], parts[count, 1], parts[count, 2] = reduces[kind, 0], s0, b0
        count += 1
        size -= 1
        if kind > LA:  # s1 left the stack
            stack[size - 1] = s0
    return count


def beam_width(search: str) -> int | None:
    """Beam width of a search given by name: None for "exact", 1 for "greedy", K for "beam:K".

    Raises a ValueError that lists these forms for anything else.
    """
    if search == "exact":
        return None
    if search == "greedy":
        return 1
    form, _, digits = search.partition(":") if isinstance(search, str) else ("", "", "")
    if form == "beam" and digits.isascii() and digits.isdigit() and int(digits) > 0:
        return int(digits)
    raise ValueError(f"unknown search {search!r}; known: {SEARCH_FORMS}")


class BeamSearch(Decoder):
    """Beam search with the scores of a chart decoder; O(n · width) time and space.

    The derivation is valid and its score exact, but it need not be the best; with −inf scores the beam may die out
    although a derivation exists. A beam that holds every configuration finds at least the chart's score.

    Parameters
    ----------
    chart : type of Decoder
        `MH3`, `MH4Two` or `MH4Hybrid`, whose name and channels are adopted; ValueError for others, which have no
        transition system. The attribute ``chart`` is the exact decoder.
    width : int
        Configurations kept after each move, ranked by their score so far; 1 is greedy search.
    """

    exact = False

    def __init__(
        self,
        chart: type[Decoder],
        width: int,
        single_root: bool = True,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
    ) -> None:
        if chart.name not in _CHANNELS:
            raise ValueError(
                f"{chart.name} has no transition system to search with a beam; these do: {', '.join(_CHANNELS)}"
            )
        if width < 1:
            raise ValueError(f"the width of a beam must be at least 1; got {width}")
        super().__init__(single_root, memory_limit)
        self.name, self.channels, self.roles = chart.name, chart.channels, chart.roles
        self.shared, self.tree_class = chart.shared, chart.tree_class
        self.width = width
        self.chart = chart(single_root, memory_limit)
        self._reduces = _CHANNELS[chart.name]

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {'greedy' if self.width == 1 else f'beam of {self.width}'}>"

    def decode(self, scores: ArrayLike, arc_bonus: ArrayLike | None = None) -> Derivation:
        """Best derivation found; see `Decoder.decode`.

        Raises
        ------
        InfeasibleError
            The beam died out: every derivation is forbidden, or the beam is too narrow to find one.
        ValueError
            Wrong shape, NaN or +inf among the scores, or a beam beyond the memory limit.
        """
        try:
            return super().decode(scores, arc_bonus)
        except InfeasibleError as error:
            raise InfeasibleError(
                f"the beam of {self.width} {self.name} configurations died out: there is no derivation without "
                "forbidden parts, or only a wider beam finds it"
            ) from error

    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        is_high = check_numbers(scores, arc_bonus)
        count = _beam_search(scores, arc_bonus, self.single_root, self.width, self._reduces, heads, parts)
        return count, derivation_score(scores, arc_bonus, heads, parts, count, is_high)

    def _derive(self, scores: np.ndarray, given: TreeBatch) -> None:
        self.chart._derive(scores, given)

    def chart_bytes(self, n: int) -> int:
        return (2 * n * self.width + 1) * 45 + 7 * self.width * 21
