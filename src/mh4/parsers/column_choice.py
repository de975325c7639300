"""The best classes of words by the scores of all, on the CPU, compiled: `ColumnReader` does the same on a GPU."""

import math

import numpy as np
from numba import njit

PREDICTED = -1  # stands for a UPOS that is not given
_NEGLIGIBLE = np.float32(25.0)  # below the best score: of probabilities that float32 would not add to that of the best


@njit(cache=True, nogil=True)
def choose_analyses(scores, forms, seen, unseen, relations, of_relations, rarity, upos_of, upos, found, found_scores):
    """Fill UPOS that are not given, and the best analyses that have the UPOS of each word, best first.

    Parameters
    ----------
    scores : float32 (M, K)
        Of all analyses.
    forms : int64 (M,)
        Numbers of the words' forms in training; −1 for new ones.
    seen : tuple
        The first analysis of each form, int64 (F + 1,); analyses of forms, int64 (P,); what each adds, float32 (P,).
    unseen : float32 (K,)
        What is added for each word that is not new.
    relations : int64 (M,)
        Of each word, the row of ``of_relations``.
    of_relations : float32 (R, K)
        What relations add.
    rarity : float32 (K,)
        What is added when analyses of a UPOS are compared.
    upos_of : int64 (K,)
    upos : int64 (M,)
        `PREDICTED` becomes the UPOS whose analyses have the highest probability together; any analysis goes with one
        that none has.
    found, found_scores : int32, float32 (M, C)
        Filled; where a UPOS has fewer, the score is −inf.
    """
    starts, analyses, gains = seen
    total = np.empty(scores.shape[1], np.float32)
    tags = upos_of.max() + 1
    for m in range(len(scores)):
        total[:] = scores[m]
        if forms[m] >= 0:
            total += unseen
            for p in range(starts[forms[m]], starts[forms[m] + 1]):
                total[analyses[p]] += gains[p]
        total += of_relations[relations[m]]
        if upos[m] == PREDICTED:
            upos[m] = _likeliest(total, upos_of, tags)
        total += rarity
        _best(total, upos_of, upos[m], upos[m] < tags, found[m], found_scores[m])


@njit(nogil=True)
def _likeliest(total, upos_of, tags):
    """The UPOS whose analyses have the highest probability together."""
    highest = _highest(total)
    sums = np.zeros(tags)
    for k in range(len(total)):
        if total[k] > highest - _NEGLIGIBLE and upos_of[k] >= 0:
            sums[upos_of[k]] += math.exp(total[k] - highest)
    return np.argmax(sums)


@njit(nogil=True, fastmath={"nnan", "nsz"})  # a vector of maxima
def _highest(total):
    highest = total[0]
    for k in range(len(total)):
        highest = max(highest, total[k])
    return highest


@njit(nogil=True)
def _best(scores, kinds, kind, matters, found, found_scores):
    """The best of one kind, if it matters: the best first, and of equal ones the first."""
    found[:] = 0
    found_scores[:] = -np.inf
    for k in range(len(scores)):
        if scores[k] > found_scores[-1] and (kinds[k] == kind or not matters):
            at = len(found) - 1
            while at > 0 and scores[k] > found_scores[at - 1]:
                found[at], found_scores[at] = found[at - 1], found_scores[at - 1]
                at -= 1
            found[at], found_scores[at] = k, scores[k]


@njit(cache=True, nogil=True)
def choose_rules(scores, lengths, cut, rows, best, found, found_scores):
    """Fill the best rule for each word that is long enough for it, and the best rules for some words.

    Parameters
    ----------
    scores : float32 (M, R)
    lengths : int64 (M,)
        Characters of each word.
    cut : int64 (R,)
        How many characters each rule takes away: fewer than the word has.
    rows : int64 (M,)
        Of each word, its row of ``found``; −1 without one.
    best : int64 (M,)
        Filled.
    found, found_scores : int32, float32 (U, C)
        Filled as by `choose_analyses`.
    """
    fits = np.empty(len(cut), np.bool_)
    own, own_score = np.empty(1, np.int32), np.empty(1, np.float32)
    for m in range(len(scores)):
        for r in range(len(cut)):
            fits[r] = cut[r] < lengths[m]
        if rows[m] < 0:
            _best(scores[m], fits, True, True, own, own_score)
            best[m] = own[0]
        else:
            _best(scores[m], fits, True, True, found[rows[m]], found_scores[rows[m]])
            best[m] = found[rows[m], 0]
