"""Scores of what stands in the columns UPOS, XPOS, FEATS and LEMMA of words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .layers import Classifier
from .network_config import LossWeights, ScorerConfig

IGNORED = -100  # class of a word without one
INCOMPLETE = -20.0  # score of an analysis without a UPOS or XPOS where others have one


class Analyses(NamedTuple):
    """What each of K analyses consists of: a UPOS, an XPOS and FEATS.

    Attributes
    ----------
    upos, xpos : int64 (K,)
        Indices of the tags; `IGNORED` without one.
    feats : int64 (K,)
        Which FEATS, as a whole.
    parts : float32 (classes of UPOS, XPOS and FEATS, K)
        1 where the analysis has this class.
    """

    upos: np.ndarray
    xpos: np.ndarray
    feats: np.ndarray
    parts: np.ndarray


class Classes(NamedTuple):
    """How many classes the columns have; 0 leaves one out.

    Attributes
    ----------
    upos, xpos, feats, lemmas
        UPOS tags; XPOS tags, or characters at their positions; values of all attributes in FEATS, with that of an
        attribute that a word does not have; rules of lemmas.
    analyses
        Of the first three together.
    """

    upos: int
    xpos: int
    feats: int
    lemmas: int
    analyses: Analyses


class ColumnScores(NamedTuple):
    """Scores for M words; None where a column is left out."""

    analyses: Tensor | None  # (M, K)
    lemmas: Tensor | None  # (M, rules)


class Annotator(nn.Module):
    """Scores analyses and rules of lemmas.

    The score of an analysis is the sum of those of its parts, the classes of UPOS, XPOS and every attribute in FEATS. A
    softmax over all analyses makes probabilities of them, so that the parts are learnt together, as they are chosen.

    Parameters
    ----------
    size : int
        Of the vectors of words.
    """

    def __init__(self, config: ScorerConfig, weights: LossWeights, size: int, classes: Classes) -> None:
        super().__init__()
        self.analysis_weight, self.lemma_weight = weights.analysis_weight, weights.lemma_weight
        counts = (classes.upos, classes.xpos, classes.feats), (classes.lemmas,)
        (self.upos, self.xpos, self.feats), (self.lemmas,) = (
            [Classifier(size, config.mlp, count, config.mlp_dropout) if count and weight else None for count in group]
            for group, weight in zip(counts, (self.analysis_weight, self.lemma_weight), strict=True)
        )
        upos, xpos, feats, parts = classes.analyses
        penalty = sum(INCOMPLETE * ((of == IGNORED) & (of != IGNORED).any()) for of in (upos, xpos))
        for name, array in {
            "parts": parts,
            "penalty": np.asarray(penalty, np.float32),
            "analyses": np.stack([upos, xpos, feats]),
        }.items():
            self.register_buffer(name, torch.from_numpy(array), persistent=False)
        self.parts: Tensor  # (classes of all columns, K)
        self.penalty: Tensor  # (K,)
        self.analyses: Tensor  # (3, K)

    def forward(self, words: Tensor) -> ColumnScores:
        """Scores for words, (M, size)."""
        scores = [classifier(words) for classifier in (self.upos, self.xpos, self.feats) if classifier is not None]
        analyses = torch.cat(scores, 1) @ self.parts + self.penalty if scores else None
        return ColumnScores(analyses, None if self.lemmas is None else self.lemmas(words))

    def loss(self, words: Tensor, targets: Tensor) -> Tensor:
        """Weighted sum over M words of minus the log-probabilities of their analyses and of their rules.

        ``targets``, int64 (M, 4), has the UPOS, XPOS and FEATS of words and the rule of the lemma. Where one of the
        first three is `IGNORED`, any analysis that has the others is right.
        """
        scores = self(words)
        total = words.new_zeros(())
        if scores.analyses is not None:
            given = targets[:, :3, None]
            right = ((given == self.analyses) | (given == IGNORED)).all(1)
            losses = scores.analyses.logsumexp(1) - scores.analyses.masked_fill(~right, float("-inf")).logsumexp(1)
            total = total + self.analysis_weight * losses.sum()
        if scores.lemmas is not None:
            lemmas = cross_entropy(scores.lemmas, targets[:, 3], ignore_index=IGNORED, reduction="sum")
            total = total + self.lemma_weight * lemmas
        return total
