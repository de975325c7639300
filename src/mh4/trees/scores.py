"""The counts of an evaluation, by sentence and in total, and the scores computed from them."""

from __future__ import annotations

from collections.abc import Iterator, KeysView
from dataclasses import dataclass
from typing import Any

import numpy as np

from mh4.data.guesses import EVALUATION, Guided

__all__ = ["CROSSING", "LENGTH_BINS", "METRICS", "Counts", "Evaluation", "Score", "length_row"]

METRICS = (
    *("Tokens", "Sentences", "Words", "UPOS", "XPOS", "UFeats", "AllTags", "Lemmas"),
    *("UAS", "LAS", "LAS+subtypes", "CLAS", "MLAS", "BLEX"),
)
# The columns besides HEAD that each metric depends on.
COUNTED = {
    "UPOS": frozenset(("UPOS",)),
    "XPOS": frozenset(("XPOS",)),
    "UFeats": frozenset(("FEATS",)),
    "AllTags": frozenset(("UPOS", "XPOS", "FEATS")),
    "Lemmas": frozenset(("LEMMA",)),
    "LAS": frozenset(("DEPREL",)),
    "LAS+subtypes": frozenset(("DEPREL",)),
    "CLAS": frozenset(("DEPREL",)),
    "MLAS": frozenset(("DEPREL", "UPOS", "FEATS")),
    "BLEX": frozenset(("DEPREL", "LEMMA")),
}
LENGTH_BINS = ("root", "1", "2", "3-6", "7+")
CROSSING = "crossing arcs"


def length_row(name: str) -> str:
    """The name of one of `LENGTH_BINS` in `Evaluation.rows`."""
    return "root arcs" if name == "root" else f"arcs of length {name}"


@dataclass(frozen=True)
class Score:
    """Counts behind one metric.

    Attributes
    ----------
    correct : int
        Correct units among those of the gold file.
    gold_total, system_total : int
        Units in the gold file and in the system's file.
    aligned_total : int, optional
        Units on aligned words; None for units that do not annotate words.
    correct_in_system : int, optional
        Correct units among those of the system's file, by default `correct`. The two differ where a unit can belong to
        a class on one side only: a correct arc may be crossed in the gold tree but not in the system's.
    """

    correct: int
    gold_total: int
    system_total: int
    aligned_total: int | None = None
    correct_in_system: int | None = None

    @property
    def precision(self) -> float:
        """Correct share of the system's units, in 0…1 (0 if there are none)."""
        correct = self.correct if self.correct_in_system is None else self.correct_in_system
        return correct / self.system_total if self.system_total else 0.0

    @property
    def recall(self) -> float:
        """Correct share of the gold units, in 0…1 (0 if there are none)."""
        return self.correct / self.gold_total if self.gold_total else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in 0…1."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def aligned_accuracy(self) -> float | None:
        """Correct share of the aligned units, in 0…1 (0 if there are none; None where alignment does not apply)."""
        if self.aligned_total is None:
            return None
        return self.correct / self.aligned_total if self.aligned_total else 0.0

    def as_dict(self) -> dict[str, float | int | None]:
        """Ratios and counts, ready for JSON."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "aligned_accuracy": self.aligned_accuracy,
            "correct": self.correct,
            "correct_in_system": self.correct if self.correct_in_system is None else self.correct_in_system,
            "gold_total": self.gold_total,
            "system_total": self.system_total,
            "aligned_total": self.aligned_total,
        }


@dataclass(frozen=True)
class Counts:
    """The counts of a `Score` for each of S gold sentences, int (S,).

    Units of the system's file belong to the gold sentence in which they begin.
    """

    correct: np.ndarray
    gold_total: np.ndarray
    system_total: np.ndarray
    aligned_total: np.ndarray | None = None
    correct_in_system: np.ndarray | None = None

    def total(self) -> Score:
        """The score of all sentences."""
        return Score(**{name: None if part is None else int(part.sum()) for name, part in vars(self).items()})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Evaluation(Guided):
    """All scores of one system file.

    Attributes
    ----------
    scores : dict
        A `Score` for each of `METRICS`, in that order.
    crossing : Score
        Unlabelled attachment of words whose arc is crossed by another arc of its sentence, including arcs from the root
        (position 0): recall over arcs crossed in the gold trees, precision over arcs crossed in the system's.
    by_length : dict
        Unlabelled attachment by distance between head and dependent in words, for each of `LENGTH_BINS`: recall over
        the gold arcs of that length, precision over the system's.
    missing : tuple of str
        Columns that are "_" throughout the system's file but not the gold file. Metrics that count them are computed,
        but say little. If either file lacks HEAD, ``scores`` has no metrics of trees, and there are no breakdowns.
    copied : tuple of str
        UPOS, XPOS, FEATS and LEMMA, as far as the files have them, if all of their values are correct, which suggests
        that the parser was given them; otherwise empty.
    """

    scores: dict[str, Score]
    crossing: Score | None
    by_length: dict[str, Score]
    missing: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    _guesses = EVALUATION

    @property
    def uas(self) -> float:
        """F1 of unlabelled attachment, in percent."""
        return self["UAS"]

    @property
    def las(self) -> float:
        """F1 of labelled attachment, without relation subtypes, in percent."""
        return self["LAS"]

    def __getitem__(self, name: str) -> float:
        """F1 of a metric, in percent."""
        if name in self.scores:
            return 100 * self.scores[name].f1
        if name in METRICS:
            raise ValueError(f"there is no {name}: one of the files has no trees")
        raise KeyError(f"no metric {name!r}; known: {', '.join(self.scores)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def keys(self) -> KeysView[str]:
        """The metrics: ``dict(evaluation)`` maps them to their F1, in percent."""
        return self.scores.keys()

    @classmethod
    def _advice(cls, name: str) -> str | None:
        metric = next((metric for metric in METRICS if metric.lower() == name.lower()), None)
        return f'evaluation["{metric}"]' if metric else super()._advice(name)

    @property
    def rows(self) -> dict[str, Score]:
        """``scores`` and the breakdowns, by display name."""
        rows = dict(self.scores)
        if self.crossing is not None:
            rows[CROSSING] = self.crossing
        return rows | {length_row(name): score for name, score in self.by_length.items()}

    def counts_missing(self, name: str) -> bool:
        """Whether a metric depends on a column that the system's file does not have."""
        return not COUNTED.get(name, frozenset()).isdisjoint(self.missing)

    def __str__(self) -> str:
        return "  ".join(f"{name} {100 * score.f1:.2f}" for name, score in self.scores.items())

    def as_dict(self) -> dict[str, Any]:
        """The attributes as nested dictionaries, ready for JSON (`Score.as_dict` inside)."""
        return {
            "scores": {name: score.as_dict() for name, score in self.scores.items()},
            "crossing": None if self.crossing is None else self.crossing.as_dict(),
            "by_length": {name: score.as_dict() for name, score in self.by_length.items()},
            "missing": list(self.missing),
            "copied": list(self.copied),
        }
