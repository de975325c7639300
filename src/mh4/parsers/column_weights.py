"""Weights of the evidence for column values; saved with each model, so that new defaults do not change old models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from mh4.models.checked import STRICT, Positive, Weight

MoreThanNone = Annotated[Weight, Field(gt=0)]


@dataclass(frozen=True, config=STRICT)
class ColumnWeights:
    """Weights of the evidence that is added to the network's scores of analyses and lemma rules.

    Attributes
    ----------
    form_weight
        Weight of the analyses that a form had in training.
    form_smoothing
        Pseudo-occurrences of each form, distributed over analyses as all words are.
    relation_weight
        Weight of the log-probability of a word's relation given its analysis.
    agreement_weight
        Weight of agreement between the analyses of head and dependent.
    occurrence_smoothing
        Pseudo-occurrences, distributed as by chance, in the statistics of relations and agreement.
    candidate_analyses
        Analyses of a word, at most, among which the joint choice for a tree is made.
    rarity_penalty
        Subtracted from the score of the rarest analysis, less from more frequent ones, to break ties in their favour.
    candidate_rules
        Lemma rules, at most, that are tried on a new form.
    known_lemma_weight
        Added to the score of a rule whose lemma is known with the word's UPOS.
    """

    form_weight: Weight = 0.5
    form_smoothing: MoreThanNone = 0.5
    relation_weight: Weight = 0.5
    agreement_weight: Weight = 0.7
    occurrence_smoothing: MoreThanNone = 5.0
    candidate_analyses: Positive = 8
    rarity_penalty: Weight = 1e-3
    candidate_rules: Positive = 20
    known_lemma_weight: Weight = 6.0


DEFAULT = ColumnWeights()
