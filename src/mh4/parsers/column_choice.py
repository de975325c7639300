"""Compiled choice of the best analyses and lemma rules on the CPU; `ColumnReader` does the same on a GPU."""

import math

import numpy as np
from numba import njit

PREDICTED = -1  # marks a UPOS to be predicted
_NEGLIGIBLE = np.float32(25.0)  # skip scores this far below the best: their probabilities vanish in a float32 sum


@njit(cache=True, nogil=True)
def choose_analyses(scores, forms, seen, unseen, relations, of_relations, rarity, upos_of, upos, found, found_scores):
    """Predict missing UPOS, and list the best analyses compatible with the UPOS of each word, best first.

    Parameters
    ----------
    scores : float32 (M, K)
        The network's scores of all analyses.
    forms : int64 (M,)
        Number of each word's form in training; −1 for new forms.
    seen : tuple
        Offsets of each form's analyses, int64 (F + 1,); these analyses, int64 (P,); the score each gains, float32 (P,).
    unseen : float32 (K,)
        Added to the scores of every word whose form is not new.
    relations : int64 (M,)
        Row of each word's relation in ``of_relations``.
    of_relations : float32 (R, K)
        Added to the scores of words with the relation.
    rarity : float32 (K,)
        Added once the UPOS is known, to break ties between its analyses.
    upos_of : int64 (K,)
        UPOS of each analysis; negative without one.
    upos : int64 (M,)
        `PREDICTED` is replaced by the UPOS whose analyses have the highest total probability. A UPOS above all those in
        ``upos_of`` is compatible with every analysis.
    found, found_scores : int32, float32 (M, C)
        Filled; scores are −inf beyond the last analysis of a UPOS.
    """
    starts, analyses, gains = seen
    total = np.empty(scores.shape[1], np.float32)
    tags = upos_of.max() + 1
    for m in range(len(scores)):
        for k in range(scores.shape[1]):
            total[k] = scores[m, k]
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
    """The UPOS whose analyses have the highest total probability."""
    highest = _highest(total)
    sums = np.zeros(tags)
    for k in range(len(total)):
        if total[k] > highest - _NEGLIGIBLE and upos_of[k] >= 0:
            sums[upos_of[k]] += math.exp(total[k] - highest)
    return np.argmax(sums)


@njit(nogil=True, fastmath={"nnan", "nsz"})  # lets LLVM vectorise the maximum
def _highest(total):
    highest = total[0]
    for k in range(len(total)):
        highest = max(highest, total[k])
    return highest


@njit(nogil=True)
def _best(scores, kinds, kind, matters, found, found_scores):
    """Fill the top indices and scores, best first; only of one kind if ``matters``. Ties keep the order of indices."""
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
    """Fill the best lemma rule of each word and, for some words, the C best; a rule must leave at least one character.

    Parameters
    ----------
    scores : float32 (M, R)
    lengths : int64 (M,)
        Characters of each word.
    cut : int64 (R,)
        Characters that each rule removes.
    rows : int64 (M,)
        Row of each word in ``found``; −1 for words that need the best rule only.
    best : int32 (M,)
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
