"""Calibration: turns margins and softmax shares into probabilities that a head or a relation is right.

Scores of trees have no unit, and a softmax is overconfident. Therefore isotonic regression fits non-decreasing curves
to the share of words that are right in a treebank with gold trees (Zadrozny and Elkan 2002, "Transforming classifier
scores into accurate multiclass probability estimates").
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from mh4.data.annotation import Annotation
from mh4.data.confidence import Confidence
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.models.checked import STRICT, checked

from .column_counts import UNKNOWN
from .model_files import CALIBRATION, read_object, write_json

FORMAT = 1
LEAST_WORDS = 20  # with finite margins, to fit the curves on
SMALLEST = 1e-6  # lower bound of a word's probability in the product over a tree, whose logarithm stays finite

Probability = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, config=STRICT)
class Curve:
    """A non-decreasing probability: linear between knots, constant outside of them.

    Attributes
    ----------
    at, probability : tuple of float
        Positions and values of the knots, both ascending.
    """

    at: Annotated[tuple[float, ...], Field(min_length=1)]
    probability: tuple[Probability, ...]

    @model_validator(mode="after")
    def _check_knots(self) -> Self:
        if list(self.at) != sorted(self.at) or list(self.probability) != sorted(self.probability):
            raise ValueError("knots and probabilities must ascend")
        if len(self.at) != len(self.probability):
            raise ValueError(f"{len(self.at)} knots have {len(self.probability)} probabilities")
        return self

    @classmethod
    def fit(cls, values: np.ndarray, right: np.ndarray) -> Self:
        """The best-fitting curve.

        A wrong case is added at the largest value and a right one at the smallest, so that no probability is 0 or 1.

        Parameters
        ----------
        values : float (P,)
            Finite numbers, at least one.
        right : bool (P,)
        """
        from scipy.optimize import isotonic_regression

        values = np.concatenate([values, [values.max(), values.min()]])
        right = np.concatenate([right, [False, True]])
        at, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        fitted = isotonic_regression(np.bincount(places, right) / counts, weights=counts).x
        rises = np.diff(fitted) > 1e-12
        ends = np.concatenate([[True], rises]) | np.concatenate([rises, [True]])  # first or last of a level
        return cls(tuple(at[ends].round(6).tolist()), tuple(fitted[ends].round(6).tolist()))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """The probability at each value; NaN for NaN."""
        return np.where(np.isnan(values), np.nan, np.interp(values, self.at, self.probability))


@dataclass(frozen=True, config=STRICT)
class Calibration:
    """The curves of a model, fitted on a treebank.

    Attributes
    ----------
    heads
        From the margin of a word to the probability that its head is right.
    relations
        From the softmax of a relation to the probability that it is right, given that the head is; 1 where the model
        has no relations.
    trees
        From the sum of the logarithms of the words' probabilities to the probability that the whole tree is right.
    words
        Number of words with finite margins in the treebank.
    """

    heads: Curve
    relations: Curve
    trees: Curve
    words: Annotated[int, Field(ge=0)]

    @classmethod
    def fit(cls, predictions: Sequence[Annotation], golds: Sequence[Sentence]) -> Self:
        """Fit to predicted trees with margins, compared with gold trees of the same words.

        A word without a gold relation counts by its head alone.

        Raises
        ------
        DataError
            There are too few words, no correct heads, or no gold relations.
        """
        if not predictions:
            raise DataError("there is nothing to calibrate on: no sentence is parsed as a whole")
        compared = [Compared.of(prediction, gold) for prediction, gold in zip(predictions, golds, strict=True)]
        together = Compared(*(np.concatenate(column) for column in zip(*compared, strict=True)))
        finite = np.isfinite(together.margins)
        words = int(finite.sum())
        if words < LEAST_WORDS:
            raise DataError(
                f"{words} words are too few to calibrate on; take at least {LEAST_WORDS} that can have several heads"
            )
        if not together.head_right.any():
            raise DataError("no head is correct, so there is nothing to calibrate on")
        heads = Curve.fit(together.margins[finite], together.head_right[finite])
        fitted = cls(heads, _relation_curve(together, predictions), Curve((0.0,), (0.0,)), words)
        sums, whole = [], []
        for own in compared:
            if not np.isnan(own.margins).any():
                heads_of, words_of = fitted.probabilities(own.margins, own.relations)
                sums.append(_log_product(np.where(own.relation_known, words_of, heads_of)))
                whole.append(bool((own.head_right & (own.relation_right | ~own.relation_known)).all()))
        return replace(fitted, trees=Curve.fit(np.array(sums), np.array(whole)))

    def probabilities(self, margins: np.ndarray, relations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`Confidence.heads` and `Confidence.words`; a head or relation without an alternative is certain."""
        heads = np.where(margins == np.inf, 1.0, self.heads(margins))
        return heads, heads * np.where(relations == np.inf, 1.0, self.relations(relations))

    def applied(self, found: Confidence) -> Confidence:
        """A confidence with its probabilities filled in."""
        heads, words = self.probabilities(found.margins, found.relations)
        tree = None
        if not np.isnan(words).any():
            tree = min(float(self._of_trees(np.array(_log_product(words)))), float(words.min()))
        return replace(found, heads=heads, words=words, tree=tree)

    @cached_property
    def _of_trees(self) -> Curve:
        """`trees`, extended so that a tree of certain words is certain: the treebank may not have had such a tree."""
        at, probability = self.trees.at, self.trees.probability
        return self.trees if at[-1] >= 0 else Curve((*at, 0.0), (*probability, 1.0))

    def save(self, folder: Path) -> None:
        """Write it into a model folder."""
        write_json(folder / CALIBRATION, {"format": FORMAT, **asdict(self)})

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Read the calibration in a model folder, if any; a `DataError` if the file is damaged or of another format."""
        path = folder / CALIBRATION
        if not path.exists():
            return None
        advice = f"mh4 calibrate {folder} DEV makes a new one"
        try:
            content = read_object(path)
        except DataError as error:
            raise DataError(f"{error}; {advice}") from None
        try:
            if (found := content.pop("format", None)) != FORMAT:
                raise ValueError(f"format {found!r}; this version reads format {FORMAT}")
            return checked(cls, json.dumps(content))
        except ValueError as error:
            raise DataError(f"{path}: is not a calibration: {error}; {advice}") from None


def _relation_curve(together: Compared, predictions: Sequence[Annotation]) -> Curve:
    """See `Calibration.relations`."""
    if all(set(prediction.tree[1]) == {UNKNOWN} for prediction in predictions):
        return Curve((0.0,), (1.0,))
    if not together.relation_known.any():
        raise DataError("the treebank has no relations (DEPREL) to calibrate on")
    counted = together.head_right & together.relation_known & np.isfinite(together.relations)
    if not counted.any():
        raise DataError("no word with a relation has the correct head, so there is nothing to calibrate on")
    return Curve.fit(together.relations[counted], together.relation_right[counted])


def _log_product(words: np.ndarray) -> float:
    return float(np.log(np.maximum(words, SMALLEST)).sum())


class Compared(NamedTuple):
    """A predicted tree of n words, compared with the gold tree.

    Attributes
    ----------
    margins, relations : float (n,)
        The margin of each head, and the softmax of each relation.
    head_right, relation_right : bool (n,)
    relation_known : bool (n,)
        Whether the word has a relation in both trees.
    """

    margins: np.ndarray
    relations: np.ndarray
    head_right: np.ndarray
    relation_right: np.ndarray
    relation_known: np.ndarray

    @classmethod
    def of(cls, prediction: Annotation, gold: Sentence) -> Self:
        """Compare the words of a sentence; ValueError: The prediction was made without confidence."""
        found = prediction.confidence
        if found is None:
            raise ValueError("the prediction was made without confidence")
        heads, relations = prediction.tree
        pairs = list(zip(relations, gold.relations, strict=True))
        return cls(
            found.margins,
            found.relations,
            heads == gold.heads,
            np.array([a == b for a, b in pairs]),
            np.array([UNKNOWN not in pair for pair in pairs]),
        )
