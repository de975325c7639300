"""How much each opinion counts where values of columns are chosen; part of a model, which so stays as it was."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from mh4.models.checked import STRICT, Positive, Weight

MoreThanNone = Annotated[float, Field(gt=0)]


@dataclass(frozen=True, config=STRICT)
class ColumnWeights:
    """Weights beside the network's scores of analyses and rules of lemmas.

    Attributes
    ----------
    form_weight
        Of the analyses that a form had in training.
    form_smoothing
        Occurrences of a form that count as spread over all analyses.
    relation_weight
        Of what the relation of a word says of its analysis.
    agreement_weight
        Of what analyses of head and dependent say of each other.
    occurrence_smoothing
        Occurrences of a relation with an analysis, or of agreement, that count as spread as by chance.
    candidate_analyses
        How many analyses of a word are looked at for the best ones together.
    rarity_penalty
        Taken off the rarest analysis, so that of equal ones the most frequent one wins.
    candidate_rules
        How many rules are tried on a new form.
    known_lemma_weight
        Added to the score of a rule whose lemma is known with this UPOS.
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
