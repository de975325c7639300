"""Joint choice of the analyses of all words of a tree, rewarding heads and dependents that agree in case or gender."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def best_together(heads, candidates, scores, values, gains):
    """Choose one candidate analysis per word so that their total score is highest; exact, from the leaves to the root.

    Parameters
    ----------
    heads : int32 (n + 1,)
        A tree.
    candidates : int32 (n, k)
        Indices, among all K analyses, of the candidates of each word.
    scores : float32 (n, k)
    values : int32 (K, A)
        The value of each attribute in each analysis; 0 if it lacks the attribute.
    gains : float32 (n, A, 2)
        Score added if a word and its head both have an attribute: with equal values, and with different ones.

    Returns
    -------
    int64 (n,)
        The column of ``candidates`` chosen for each word; the first one in a tie.
    """
    n, k = candidates.shape
    best = scores.astype(np.float64)
    chosen = np.zeros((n, k), np.int64)  # best candidate of each word, given each candidate of its head
    order = _heads_first(heads)
    for at in range(n - 1, -1, -1):
        d = order[at] - 1
        h = heads[d + 1] - 1
        if h < 0:
            continue
        for b in range(k):
            highest = -np.inf
            for a in range(k):
                total = best[d, a]
                for j in range(values.shape[1]):
                    own, other = values[candidates[d, a], j], values[candidates[h, b], j]
                    if own and other:
                        total += gains[d, j, 0] if own == other else gains[d, j, 1]
                if total > highest:
                    highest, chosen[d, b] = total, a
            best[h, b] += highest
    result = np.zeros(n, np.int64)
    for d in order:
        h = heads[d]
        result[d - 1] = chosen[d - 1, result[h - 1]] if h > 0 else np.argmax(best[d - 1])
    return result


@njit(cache=True, nogil=True)
def _heads_first(heads):
    """The words of a tree in an order where each follows its head, int64 (n,)."""
    n = len(heads) - 1
    order = np.empty(n, np.int64)
    placed = np.zeros(n + 1, np.bool_)
    placed[0] = True
    count = 0
    path = np.empty(n, np.int64)
    for d in range(1, n + 1):
        length, word = 0, d
        while not placed[word]:
            path[length] = word
            length, word = length + 1, heads[word]
        for at in range(length - 1, -1, -1):
            order[count] = path[at]
            placed[path[at]] = True
            count += 1
    return order
