"""A parser's confidence in a tree: per word, for the whole tree, and the cost of other heads."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf, isnan, nan
from typing import Any, Self

import numpy as np

# Attributes of `Confidence` by their keys in JSON.
_KEYS = {
    "confidence": "words",
    "head_confidence": "heads",
    "margin": "margins",
    "next_head": "runners_up",
    "relation_share": "relations",
}


@dataclass(frozen=True, eq=False)
class Confidence:
    """A parser's confidence in a tree of n words; ``values[i]`` belongs to word i + 1.

    Attributes
    ----------
    margins
        float64 (n,), at least 0: how much the score of the tree drops if the word must take another head; +inf if no
        other head is possible; NaN if unknown.
    runners_up
        int32 (n,): the second-best head, which the margin refers to; -1 if there is none.
    relations
        float64 (n,): the softmax probability of each word's relation among all relations; +inf if it was given.
    heads, words
        float64 (n,): estimated probability that the head is correct, and that head and relation both are; None without
        calibration.
    tree
        Estimated probability that all heads and relations are correct; None without calibration.
    losses
        float32 (n+1, n), if requested: ``losses[h, d - 1]`` is how much the score drops if h (0 for the root) becomes
        the head of word d; +inf if it cannot, and for the head that d has.
    """

    margins: np.ndarray
    runners_up: np.ndarray
    relations: np.ndarray
    heads: np.ndarray | None = None
    words: np.ndarray | None = None
    tree: float | None = None
    losses: np.ndarray | None = None

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # pickle and copy make arrays writeable

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Confidence):
            return False
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(
            np.array_equal(mine, theirs, equal_nan=True)
            if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray)
            else mine is theirs or (isinstance(mine, float) and mine == theirs)
            for mine, theirs in pairs
        )

    __hash__ = None  # type: ignore[assignment]

    def entries(self, word: int) -> dict[str, float | None]:
        """The known values of a word (1 … n) for JSON, except `losses`; infinite values are None."""
        found: dict[str, float | None] = {}
        for key, name in _KEYS.items():
            values = getattr(self, name)
            value = np.nan if values is None else values[word - 1].item()
            if not isnan(value) and (key != "next_head" or value >= 0):
                found[key] = None if isinf(value) else value
        return found

    @classmethod
    def of_entries(cls, words: Sequence[Mapping[str, Any]], tree: float | None = None) -> Self | None:
        """Restore a confidence from its `entries`; None if there are none.

        TypeError, ValueError, OverflowError: A value is not a number, or a next head is not a word of the sentence.
        """
        columns: dict[str, np.ndarray] = {}
        for key, name in _KEYS.items():
            if key == "next_head":
                columns[name] = np.array([_next_head(word.get(key), len(words)) for word in words], np.int32)
            elif any(key in word for word in words) or name in ("margins", "relations"):
                values = (word.get(key, nan) for word in words)
                columns[name] = np.array([inf if value is None else float(value) for value in values], np.float64)
        known = any(key in word for word in words for key in _KEYS)
        return cls(**columns, tree=None if tree is None else float(tree)) if known else None

    def alternatives(self, word: int) -> list[tuple[int, float]]:
        """Other possible heads of a word (1 … n) with the drop in score that each costs, cheapest first.

        All of them if there are `losses`, otherwise only the runner-up.
        """
        if self.losses is None:
            runner_up = int(self.runners_up[word - 1])
            return [] if runner_up < 0 else [(runner_up, float(self.margins[word - 1]))]
        losses = self.losses[:, word - 1]
        others = np.arange(len(losses)) != self.runners_up[word - 1]  # sorts the runner-up before heads of equal cost
        return [(h, float(losses[h])) for h in np.lexsort((others, losses)).tolist() if losses[h] < np.inf]


def _next_head(given: Any, n: int) -> int:
    """The runner-up among the heads 0 … n; -1 for None."""
    if given is None:
        return -1
    if not 0 <= (head := int(given)) <= n:
        raise ValueError(f"next_head {reprlib.repr(given)} is out of range 0…{n}")
    return head


def with_entries(misc: str, entries: dict[str, str]) -> str:
    """Set entries of MISC, replacing those with the same names; all others keep their text and order.

    Each new entry is inserted before the first entry that sorts after it, ignoring case: sorted entries stay sorted.
    """
    kept = [] if misc in ("", "_") else [e for e in misc.split("|") if e.partition("=")[0] not in entries]
    for name, value in sorted(entries.items()):
        place = next((i for i, e in enumerate(kept) if e.partition("=")[0].lower() > name.lower()), len(kept))
        kept.insert(place, f"{name}={value}")
    return "|".join(kept) or "_"
