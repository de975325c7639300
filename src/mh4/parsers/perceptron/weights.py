"""Hashed features and their weights in flat arrays, with lazy averaging.

A hash table with open addressing maps the key of a feature to its block: a header, then the actions that ever had a
weight for this feature. Most features occur with few actions, so that a block fits into a cache line and scoring a
feature costs two memory accesses, however many relations there are. Updates create features and blocks on demand; a
full block moves to a new one of twice the size.

Averaging: the averaged perceptron is the mean of the weights after each of T steps. A change by δ in step t counts in
T − t + 1 of these, so the mean is w − u / T with u = Σ (t − 1) δ, which takes no pass over all weights before the end.
Changes are whole numbers, and u is exact, unless several optimal actions share an update (``ties="all"``).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

# Indices of `Weights.sizes`.
FEATURES, USED = range(2)
ARRAYS = ("keys", "offsets", "actions", "values")  # of averaged weights, as `averaged_lists` returns them
_FIRST_BLOCK = 4  # cells of a new block, the header among them


class Weights(NamedTuple):
    """Weights of actions given features; a *cell* is a pair of 32-bit numbers.

    Cell e is ``actions[2 e], values[2 e + 1]``: action and weight. A block begins with a header cell, of which both
    numbers are integers in `actions`: how many cells with weights follow, and how many cells the block has.
    """

    # int64 (2^k, 2): key (0 in a free row) and first cell of the block; unknown features share the empty block at 0
    table: np.ndarray
    actions: np.ndarray  # int32 (2 E,)
    values: np.ndarray  # float32 (2 E,), the same memory as `actions`
    totals: np.ndarray  # float64 (E,): u of each cell; empty unless the weights are trained
    sizes: np.ndarray  # int64 (2,): number of known features, number of cells in use


@njit(cache=True, nogil=True)
def new_weights(features, cells, trained):
    """Empty weights with capacity for about ``features`` and ``cells``; ``trained`` allocates totals."""
    size = 1024
    while size < 2 * features:
        size *= 2
    cells = max(cells, 1024)
    actions = np.zeros(2 * cells, np.int32)
    totals = np.zeros(cells if trained else 0, np.float64)
    sizes = np.zeros(2, np.int64)
    sizes[USED] = _FIRST_BLOCK
    actions[1] = _FIRST_BLOCK
    return Weights(np.zeros((size, 2), np.int64), actions, actions.view(np.float32), totals, sizes)


@njit(cache=True, nogil=True, inline="always")
def _slot(table, key):
    """The row of a key in the table, or the free row where it belongs."""
    mask = table.shape[0] - 1
    at = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
    while table[at, 0] != key and table[at, 0] != 0:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def find_blocks(weights, keys, count, blocks):
    """Look up the first ``count`` features; unknown ones get the empty block."""
    for i in range(count):
        blocks[i] = weights.table[_slot(weights.table, keys[i]), 1]


@njit(cache=True, nogil=True)
def add_scores(weights, blocks, count, scores):
    """Add the weights of some features, given by their blocks, to the scores of all actions, float32 (A,)."""
    for i in range(count):
        block = blocks[i]
        for cell in range(block + 1, block + 1 + weights.actions[2 * block]):
            scores[weights.actions[2 * cell]] += weights.values[2 * cell + 1]


@njit(cache=True, nogil=True)
def with_room(weights, features, most_actions):
    """The weights with room to update ``features`` features for up to ``most_actions`` actions each."""
    table, actions, totals, sizes = weights.table, weights.actions, weights.totals, weights.sizes
    grown = False
    if 2 * (sizes[FEATURES] + features) > table.shape[0]:
        size = 2 * table.shape[0]
        while size < 2 * (sizes[FEATURES] + features):
            size *= 2
        table = np.zeros((size, 2), np.int64)
        for at in range(weights.table.shape[0]):
            if weights.table[at, 0] != 0:
                slot = _slot(table, weights.table[at, 0])
                table[slot, 0], table[slot, 1] = weights.table[at, 0], weights.table[at, 1]
        grown = True
    needed = sizes[USED] + features * 2 * max(_FIRST_BLOCK, most_actions + 1)
    if needed > totals.shape[0]:
        cells = max(needed, totals.shape[0] + totals.shape[0] // 2)
        actions = np.zeros(2 * cells, np.int32)
        for i in range(2 * sizes[USED]):
            actions[i] = weights.actions[i]
        totals = np.zeros(cells, np.float64)
        for i in range(sizes[USED]):
            totals[i] = weights.totals[i]
        grown = True
    if not grown:
        return weights
    return Weights(table, actions, actions.view(np.float32), totals, sizes)


@njit(cache=True, nogil=True)
def _new_block(weights, cells):
    block = weights.sizes[USED]
    weights.sizes[USED] += cells
    weights.actions[2 * block] = 0
    weights.actions[2 * block + 1] = cells
    return block


@njit(cache=True, nogil=True)
def update(weights, keys, count, action, change, step):
    """Add ``change`` to the weights of an action for some features; call `with_room` first. Steps count from 1."""
    table, actions, values, totals = weights.table, weights.actions, weights.values, weights.totals
    for i in range(count):
        at = _slot(table, keys[i])
        if table[at, 0] == 0:
            table[at, 0] = keys[i]
            table[at, 1] = _new_block(weights, _FIRST_BLOCK)
            weights.sizes[FEATURES] += 1
        block = table[at, 1]
        filled = actions[2 * block]
        cell = block + 1
        while cell <= block + filled and actions[2 * cell] != action:
            cell += 1
        if cell > block + filled:
            if filled + 1 == actions[2 * block + 1]:
                larger = _new_block(weights, 2 * (filled + 1))
                for i in range(2, 2 * (filled + 1)):
                    actions[2 * larger + i] = actions[2 * block + i]
                for i in range(1, filled + 1):
                    totals[larger + i] = totals[block + i]
                block = larger
                table[at, 1] = block
            actions[2 * block] = filled + 1
            cell = block + filled + 1
            actions[2 * cell] = action
            values[2 * cell + 1] = 0.0
            totals[cell] = 0.0
        values[2 * cell + 1] += change
        totals[cell] += (step - 1) * change


@njit(cache=True, nogil=True)
def _lists(weights, steps):
    """Weights averaged over ``steps`` steps as keys, offsets, actions and values, without zeros."""
    features = weights.sizes[FEATURES]
    keys = np.empty(features, np.int64)
    offsets = np.zeros(features + 1, np.int64)
    actions = np.empty(weights.sizes[USED], np.int32)
    values = np.empty(weights.sizes[USED], np.float32)
    count, used = 0, 0
    for at in range(weights.table.shape[0]):
        if weights.table[at, 0] == 0:
            continue
        block = weights.table[at, 1]
        for cell in range(block + 1, block + 1 + weights.actions[2 * block]):
            mean = np.float32(weights.values[2 * cell + 1] - weights.totals[cell] / steps)
            if mean != 0.0:
                actions[used] = weights.actions[2 * cell]
                values[used] = mean
                used += 1
        if used > offsets[count]:
            keys[count] = weights.table[at, 0]
            count += 1
            offsets[count] = used
    return keys[:count], offsets[: count + 1], actions[:used], values[:used]


@njit(cache=True, nogil=True)
def from_lists(keys, offsets, actions, values):
    """Weights for parsing from the arrays of `averaged_lists`."""
    weights = new_weights(keys.shape[0], actions.shape[0] + keys.shape[0] + _FIRST_BLOCK, False)
    for f in range(keys.shape[0]):
        at = _slot(weights.table, keys[f])
        block = weights.sizes[USED]
        weights.table[at, 0] = keys[f]
        weights.table[at, 1] = block
        weights.sizes[FEATURES] += 1
        length = offsets[f + 1] - offsets[f]
        weights.sizes[USED] += length + 1
        weights.actions[2 * block] = length
        weights.actions[2 * block + 1] = length + 1
        for i in range(length):
            weights.actions[2 * (block + 1 + i)] = actions[offsets[f] + i]
            weights.values[2 * (block + 1 + i) + 1] = values[offsets[f] + i]
    return weights


def averaged_lists(weights: Weights, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The weights averaged over ``steps`` steps: keys, int64 (F,), offsets, int64 (F + 1,), actions, values.

    The keys, hashed by `templates.feature_keys`, are those of features with a nonzero weight. The actions, int32, and
    values, float32, of feature f are at ``offsets[f]`` to ``offsets[f + 1] - 1``.
    """
    return _lists(weights, max(steps, 1))
