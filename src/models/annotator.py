"""Scores for the columns UPOS, XPOS, FEATS and LEMMA of words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .layers import Classifier
from .network_config import LossWeights, ScorerConfig

IGNORED = -100  # index where there is no class
INCOMPLETE = -20.0  # added to the score of an analysis without a UPOS or XPOS if others have one


class Analyses(NamedTuple):
    """The parts of K analyses, each of which has a UPOS, an XPOS and FEATS.

    Attributes
    ----------
    upos, xpos : int64 (K,)
        Indices of the tags; `IGNORED` if there is none.
    feats : int64 (K,)
        Index of the FEATS as a whole.
    parts : float32 (classes of UPOS, XPOS and FEATS, K)
        1 where the analysis has this class.
    """

    upos: np.ndarray
    xpos: np.ndarray
    feats: np.ndarray
    parts: np.ndarray


class Classes(NamedTuple):
    """The number of classes of each column; 0 leaves a column out.

    Attributes
    ----------
    upos, xpos, feats, lemmas
        UPOS tags; XPOS tags, or characters at their positions; values of all attributes in FEATS, including one for the
        absence of each attribute; lemma rules.
    analyses
        The combinations of the first three.
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
    """Scores analyses and lemma rules.

    The score of an analysis is the sum of the scores of its parts: its classes of UPOS, XPOS and every attribute in
    FEATS. A softmax over all analyses turns scores into probabilities, so that the parts are learnt together, as they
    are chosen.

    Parameters
    ----------
    size : int
        The size of the word vectors.
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
        """Scores for M words, from their vectors (M, size)."""
        scores = [classifier(words) for classifier in (self.upos, self.xpos, self.feats) if classifier is not None]
        analyses = None
        if scores:
            with torch.autocast(words.device.type, enabled=False):  # bfloat16 would round many analyses to one score
                analyses = torch.cat(scores, 1) @ self.parts + self.penalty
        return ColumnScores(analyses, None if self.lemmas is None else self.lemmas(words))

    def loss(self, words: Tensor, targets: Tensor) -> Tensor:
        """Weighted negative log-probabilities of the analyses and lemma rules of M words, summed.

        ``targets``, int64 (M, 4), has the UPOS, XPOS, FEATS and lemma rule of each word. Where one of the first three
        is `IGNORED`, any analysis that agrees with the others is right.
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
