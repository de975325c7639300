"""What a parser is asked to predict."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import numpy as np

from .checking import check_flag, check_number

HEADS = "heads"  # and relations
TAGS = ("upos", "xpos", "feats")
ANNOTATED = (*TAGS, "lemmas")  # columns beside the tree
GROUPS = {"tags": TAGS, "all": (*ANNOTATED, HEADS)}
NAMES = (*GROUPS, *ANNOTATED, HEADS)
_SYNONYMS = {"head": HEADS, "lemma": "lemmas"}  # as CoNLL-U has them
_EXAMPLES = {"predict": "upos,lemmas", "unique": "nsubj,obj"}
_RELATIONS = frozenset({"deprel", "relations"})


class CallOptions(TypedDict, total=False):
    """What a parser can be asked for when it is called, by the names that users give it; see `TreebankParser.parse`."""

    keep_heads: bool
    predict: str | Iterable[str] | None
    overwrite: bool
    confidence: bool | Literal["all"]
    among: int
    unique: str | Iterable[str] | None


class ParseOptions(CallOptions, total=False):
    """And where a sentence may have several trees."""

    k_best: int


OPTIONS = tuple(ParseOptions.__annotations__)


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
    confidence
        Say how sure the parser is of each head and relation.
    alternatives
        Say what every other head would cost.
    k_best
        How many trees to give for each sentence.
    among
        How many trees to look at for the best ones together with their relations.
    unique
        Relations that a head has at most one of, subtypes included.
    """

    columns: frozenset[str] = frozenset(GROUPS["all"])
    keep_heads: bool = False
    overwrite: bool = False
    confidence: bool = False
    alternatives: bool = False
    k_best: int = 1
    among: int = 1
    unique: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.among > 1 and not self.unique:
            raise ValueError('among goes with unique relations, as in unique="nsubj,obj", among=10')
        if self.confidence and self.trees > 1:
            raise ValueError("confidence is about the best tree; ask for it, or for several trees, not for both")
        if self.asks_more and not self.heads:
            raise ValueError(f"confidence, several trees and unique relations need trees; predict {HEADS}")
        if any(not name or ":" in name for name in self.unique):
            raise ValueError("unique relations are given without subtypes, such as nsubj,obj")

    @classmethod
    def of(
        cls,
        predict: str | Iterable[str] | None = None,
        *,
        keep_heads: bool = False,
        overwrite: bool = False,
        confidence: bool | Literal["all"] = False,
        k_best: int = 1,
        among: int = 1,
        unique: str | Iterable[str] | None = None,
        **unknown: Any,
    ) -> Request:
        """A request for columns or groups of them, in a string with commas between them or one by one; None is all.

        ValueError: An unknown name, or none; things that cannot be asked for together.
        TypeError: An unknown option, or a value of a wrong type.
        """
        if unknown:
            hint = ""
            if "heads" in unknown:
                hint = "; known heads stand in the sentence: mh4.Sentence(words, heads=[-1, …]) and keep_heads=True"
            raise TypeError(f"a parser has no option {next(iter(unknown))!r}; it has: {', '.join(OPTIONS)}{hint}")
        for name, value in (("keep_heads", keep_heads), ("overwrite", overwrite)):
            check_flag(name, value)
        if not isinstance(confidence, bool | np.bool_) and not (isinstance(confidence, str) and confidence == "all"):
            raise ValueError(f'confidence is True, False or "all"; got {reprlib.repr(confidence)}')
        more: dict[str, Any] = {
            "keep_heads": bool(keep_heads),
            "overwrite": bool(overwrite),
            "confidence": bool(confidence),
            "alternatives": isinstance(confidence, str),
            "k_best": check_number("k_best", k_best),
            "among": check_number("among", among),
            "unique": tuple(dict.fromkeys(_names("unique", () if unique is None else unique))),
        }
        return cls(**more) if predict is None else cls(_columns(_names("predict", predict)), **more)

    @property
    def heads(self) -> bool:
        """Whether trees are asked for."""
        return HEADS in self.columns

    @property
    def trees(self) -> int:
        """How many of the best trees are looked for."""
        return max(self.k_best, self.among)

    @property
    def weighs_relations(self) -> bool:
        """Whether the scores of relations matter beyond which is the best."""
        return self.confidence or bool(self.unique)

    @property
    def asks_more(self) -> bool:
        """Whether more is asked of trees than the best one."""
        return self.weighs_relations or self.trees > 1

    @property
    def lost(self) -> str:
        """What a sentence goes without, for messages, where only its best tree can be found; "" if that is all."""
        missing = ["confidence"] * self.confidence + ["other trees"] * (self.trees > 1)
        return f", without {missing[0]}" if missing else ""

    @property
    def options(self) -> ParseOptions:
        """What `of` made the request of."""
        return {
            "keep_heads": self.keep_heads,
            "predict": self.columns,
            "overwrite": self.overwrite,
            "confidence": "all" if self.alternatives else self.confidence,
            "k_best": self.k_best,
            "among": self.among,
            "unique": self.unique or None,
        }


def _names(option: str, given: str | Iterable[str]) -> list[str]:
    """Names that are given in a string with commas between them, or one by one."""
    names = given.split(",") if isinstance(given, str) else given
    if isinstance(names, bytes) or not isinstance(names, Iterable):
        raise TypeError(f'{option} takes names, as in {option}="{_EXAMPLES[option]}"; got {reprlib.repr(given)}')
    names = list(names)
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f'{option} takes names, as in {option}="{_EXAMPLES[option]}"; got {reprlib.repr(wrong[0])}')
    return [name.strip() for name in names]


def _columns(names: Iterable[str]) -> frozenset[str]:
    """The columns that names, in small letters or in capitals, stand for."""
    columns: set[str] = set()
    relations = False
    for given in names:
        name = _SYNONYMS.get(given.lower(), given.lower())
        if name in _RELATIONS:
            relations = True
        elif name in NAMES:
            columns.update(GROUPS.get(name, (name,)))
        else:
            raise ValueError(f"unknown column {given!r}; known: {', '.join(NAMES)}")
    if relations and HEADS not in columns:
        raise ValueError(
            'relations are predicted together with heads: predict="heads" (with keep_heads=True, given heads stay)'
        )
    if not columns:
        raise ValueError(f"nothing to predict; known: {', '.join(NAMES)}")
    return frozenset(columns)
