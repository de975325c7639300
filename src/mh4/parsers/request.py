"""What a parser is asked to predict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HEADS = "heads"  # and relations
TAGS = ("upos", "xpos", "feats")
ANNOTATED = (*TAGS, "lemmas")  # columns beside the tree
GROUPS = {"tags": TAGS, "all": (*ANNOTATED, HEADS)}
NAMES = (*GROUPS, *ANNOTATED, HEADS)


@dataclass(frozen=True)
class Request:
    """Columns to predict, and what becomes of values that are given.

    Attributes
    ----------
    columns
        Of "upos", "xpos", "feats", "lemmas" and "heads".
    keep_heads
        Keep the heads that sentences have and predict the others around them.
    overwrite
        Predict columns other than heads also where they are given.
    """

    columns: frozenset[str] = frozenset(GROUPS["all"])
    keep_heads: bool = False
    overwrite: bool = False

    @classmethod
    def of(cls, predict: str | Iterable[str] | None, keep_heads: bool = False, overwrite: bool = False) -> Request:
        """A request for columns or groups of them, in a string with commas between them or one by one; None is all.

        Raises
        ------
        ValueError
            An unknown name, or none.
        """
        if predict is None:
            return cls(keep_heads=keep_heads, overwrite=overwrite)
        names = predict.split(",") if isinstance(predict, str) else list(predict)
        columns: set[str] = set()
        for name in names:
            if name.strip() not in NAMES:
                raise ValueError(f"unknown column {name!r}; known: {', '.join(NAMES)}")
            columns.update(GROUPS.get(name.strip(), (name.strip(),)))
        if not columns:
            raise ValueError(f"nothing to predict; known: {', '.join(NAMES)}")
        return cls(frozenset(columns), keep_heads, overwrite)

    @property
    def heads(self) -> bool:
        """Whether trees are asked for."""
        return HEADS in self.columns
