"""From margins to probabilities: how often a parser was right on words that it was as sure of.

The score of a tree has no unit, and a softmax is too sure of itself. What the numbers mean is read off a treebank with
gold trees: a curve that never falls and fits best, by isotonic regression, says which share of words was right
(Zadrozny and Elkan 2002, "Transforming classifier scores into accurate multiclass probability estimates").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from mh4.data.confidence import Confidence
from mh4.data.errors import DataError
from mh4.data.sentence import Annotation, Sentence

from .folder import CALIBRATION, read_object, write_json

FORMAT = 1
LEAST_WORDS = 20  # without as many, nothing is fitted
SMALLEST = 1e-6  # confidence of a word in the product over a tree


@dataclass(frozen=True)
class Curve:
    """A probability that never falls: straight lines between knots, constant outside of them.

    Attributes
    ----------
    at, probability : tuple of float
        The knots, both ascending.
    """

    at: tuple[float, ...]
    probability: tuple[float, ...]

    @classmethod
    def fit(cls, values: np.ndarray, right: np.ndarray) -> Self:
        """The curve that fits best.

        One case more is counted as wrong at the largest value, and one as right at the smallest, so that no
        probability is 0 or 1.

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
        """The probability at each value; NaN stays."""
        return np.where(np.isnan(values), np.nan, np.interp(values, self.at, self.probability))


@dataclass(frozen=True)
class Calibration:
    """What a model's numbers mean, fitted on a treebank.

    Attributes
    ----------
    heads
        From the margin of a word to the probability that its head is right.
    relations
        From the softmax of a relation to the probability that it is right, given that the head is.
    trees
        From the sum of the logarithms of the words' probabilities to that of a tree without any error.
    words
        How many it was fitted on.
    """

    heads: Curve
    relations: Curve
    trees: Curve
    words: int

    @classmethod
    def fit(cls, predictions: Sequence[Annotation], golds: Sequence[Sentence]) -> Self:
        """Fit to trees with their margins and to the gold trees of the same words; DataError: Too few words."""
        if not predictions:
            raise DataError("there is nothing to calibrate on")
        compared = [Compared.of(prediction, gold) for prediction, gold in zip(predictions, golds, strict=True)]
        together = Compared(*(np.concatenate(column) for column in zip(*compared, strict=True)))
        finite = np.isfinite(together.margins)
        words = int(finite.sum())
        if words < LEAST_WORDS:
            raise DataError(f"{words} words are too few to calibrate on; take at least {LEAST_WORDS}")
        heads = Curve.fit(together.margins[finite], together.head_right[finite])
        counted = together.head_right & np.isfinite(together.relations)
        if not counted.any():
            raise DataError("not one head is right; nothing can be calibrated on that")
        relations = Curve.fit(together.relations[counted], together.relation_right[counted])
        fitted = cls(heads, relations, Curve((0.0,), (0.0,)), words)
        sums, whole = [], []
        for prediction, own in zip(predictions, compared, strict=True):
            if not np.isnan(own.margins).any():
                sums.append(_log_product(fitted.applied(prediction.confidence).words))  # type: ignore[arg-type]
                whole.append(bool((own.head_right & own.relation_right).all()))
        return replace(fitted, trees=Curve.fit(np.array(sums), np.array(whole)))

    def applied(self, found: Confidence) -> Confidence:
        """The same with probabilities. What has no alternative is certain."""
        heads = np.where(found.margins == np.inf, 1.0, self.heads(found.margins))
        relations = np.where(found.relations == np.inf, 1.0, self.relations(found.relations))
        words = heads * relations
        tree = None
        if not np.isnan(words[1:]).any():
            tree = min(float(self._of_trees(np.array(_log_product(words)))), float(words[1:].min()))
        return replace(found, heads=heads, words=words, tree=tree)

    @cached_property
    def _of_trees(self) -> Curve:
        """A tree of which every word is certain is certain, which no treebank that it was fitted on need show."""
        at, probability = self.trees.at, self.trees.probability
        return self.trees if at[-1] >= 0 else Curve((*at, 0.0), (*probability, 1.0))

    def save(self, folder: Path) -> None:
        """Write it into a model folder."""
        write_json(folder / CALIBRATION, {"format": FORMAT, **asdict(self)})

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """That of a model folder, if it has one; a `DataError` if the file is damaged."""
        path = folder / CALIBRATION
        if not path.exists():
            return None
        try:
            return cls._of(read_object(path))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{path}: is not a calibration: {error} (make it anew with mh4 calibrate {folder} DEV)"
            ) from None

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Self:
        curves = {}
        for name in ("heads", "relations", "trees"):
            at, probability = (tuple(map(float, content[name][key])) for key in ("at", "probability"))
            if not at or len(at) != len(probability) or list(at) != sorted(at):
                raise ValueError(f"{name} has no ascending knots")
            if list(probability) != sorted(probability) or probability[0] < 0 or probability[-1] > 1:
                raise ValueError(f"{name} has no ascending probabilities")
            curves[name] = Curve(at, probability)
        return cls(**curves, words=int(content["words"]))


def _log_product(words: np.ndarray) -> float:
    return float(np.log(np.maximum(words[1:], SMALLEST)).sum())


class Compared(NamedTuple):
    """Words of a tree beside those of the gold tree.

    Attributes
    ----------
    margins, relations : float (n,)
        The margin of each head, and the softmax of each relation.
    head_right, relation_right : bool (n,)
    """

    margins: np.ndarray
    relations: np.ndarray
    head_right: np.ndarray
    relation_right: np.ndarray

    @classmethod
    def of(cls, prediction: Annotation, gold: Sentence) -> Self:
        """Compare the words of a sentence; ValueError: The prediction was made without confidence."""
        found = prediction.confidence
        if found is None:
            raise ValueError("the prediction was made without confidence")
        heads, relations = prediction.tree
        relation_right = np.array([a == b for a, b in zip(relations, gold.relations, strict=True)])
        return cls(found.margins[1:], found.relations[1:], heads[1:] == gold.heads[1:], relation_right)
