"""Every option of parsing, described here once for Python, the command line and clusters."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from textwrap import wrap
from typing import Any, Literal, TypedDict, TypeVar, Unpack, get_args

from mh4.data.guesses import OPTIONS, hint

HEADS = "heads"  # and relations
TAGS = ("upos", "xpos", "feats")
ANNOTATED = (*TAGS, "lemmas")  # columns beside the tree
GROUPS = {"tags": TAGS, "all": (*ANNOTATED, HEADS)}
NAMES = (*GROUPS, *ANNOTATED, HEADS)
GIVEN = ("tags", *ANNOTATED)  # what a parser that is evaluated can be given
MOST_TREES = 10_000  # per sentence, on the command line
_SYNONYMS = {"head": HEADS, "lemma": "lemmas"}  # names of columns in CoNLL-U
_EXAMPLES = {"predict": "upos,lemmas", "given": "upos,lemmas", "unique": "nsubj,obj"}
_RELATIONS = frozenset({"deprel", "relations"})

Boundaries = Literal["segmenter", "joint"]

F = TypeVar("F", bound=Callable[..., Any])


def _flag(name: str, value: Any) -> bool:
    from .checking import check_flag  # loads NumPy

    check_flag(name, value)
    return bool(value)


def _number(name: str, value: Any) -> int:
    from .checking import check_number  # loads NumPy

    return check_number(name, value)


def _flag_or_all(name: str, value: Any) -> bool | Literal["all"]:
    if isinstance(value, str) and value == "all":
        return "all"
    try:
        return _flag(name, value)
    except TypeError:
        raise ValueError(f'{name} is True, False or "all"; got {reprlib.repr(value)}') from None


def _boundaries(name: str, value: Any) -> Boundaries:
    if value not in get_args(Boundaries):
        raise ValueError(f"{name} is {' or '.join(get_args(Boundaries))}; got {reprlib.repr(value)}")
    return value


def _predicted(name: str, value: Any) -> frozenset[str] | None:
    return None if value is None else _columns(_names(name, value), NAMES)


def _named(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} is a name; got {reprlib.repr(value)}")
    return value


def _relations(name: str, value: Any) -> tuple[str, ...]:
    relations = tuple(dict.fromkeys(_names(name, () if value is None else value)))
    if any(not one or ":" in one for one in relations):
        raise ValueError(f"{name} relations must be given without subtypes, such as nsubj,obj")
    return relations


def _option(
    default: Any, check: Callable[[str, Any], Any], description: str, python: str = "", **of_command: Any
) -> Any:
    """A dataclass field with its default, a check that also normalises the value, and its help.

    ``python`` is appended to the help in Python; ``of_command`` are further arguments of `typer.Option`.
    """
    texts = {"help": description, "python": f"{description} {python}".rstrip()}
    return field(default=default, metadata={"check": check, **texts, "command": of_command})


class CallOptions(TypedDict, total=False):
    """The options of a call, for type checkers; `Request` describes them."""

    keep_heads: bool
    predict: str | Iterable[str] | None
    overwrite: bool
    confidence: bool | Literal["all"]
    unique: str | Iterable[str] | None
    among: int
    treebank: str | None
    boundaries: Boundaries


class ParseOptions(CallOptions, total=False):
    """The options of methods that may return several trees per sentence."""

    k_best: int


@dataclass(frozen=True, init=False)
class Request:
    """The options of `Parser.parse`, checked and normalised.

    Raises
    ------
    ValueError
        An unknown column, or none; options that exclude each other.
    TypeError
        An unknown option, or a value of the wrong type.
    """

    keep_heads: bool = _option(False, _flag, "Keep the heads of the input; find the best tree that contains them.")
    predict: frozenset[str] | None = _option(
        None,
        _predicted,
        "What to predict: heads (and relations), upos, xpos, feats, lemmas, tags (upos, xpos, feats) or all.",
        metavar="COLUMN,...",
        show_default="all columns of the model",
    )
    overwrite: bool = _option(False, _flag, "Also replace tags, features and lemmas of the input.")
    confidence: bool | Literal["all"] = _option(
        False,
        _flag_or_all,
        "Write confidences into MISC (Confidence, HeadConfidence, Margin, NextHead) and a comment.",
        "`parse_file` writes; in Python, words have them: `Word.confidence`, `Word.margin`; `Word.alternatives` has "
        "the runner-up head or, with 'all', all other heads.",
    )
    k_best: int = _option(
        1,
        _number,
        "Write the K best trees of each sentence, best first, with their ranks, scores and own sent_ids.",
        metavar="K",
        min=1,
        max=MOST_TREES,
    )
    unique: tuple[str, ...] = _option(
        (),
        _relations,
        "Allow at most one dependent with each of these, subtypes included, e.g. nsubj,csubj,obj,iobj,expl.",
        metavar="RELATION,...",
    )
    among: int = _option(
        1,
        _number,
        "With unique relations: rank the K best trees by the score of the tree plus the log of its relations' "
        "probabilities.",
        metavar="K",
        min=1,
        max=MOST_TREES,
    )
    treebank: str | None = _option(
        None,
        _named,
        "For a model of several treebanks: parse as in this one.",
        "`Parser.treebanks` has the names.",
        metavar="NAME",
        show_default="an even mixture of all",
    )
    boundaries: Literal["segmenter", "joint"] = _option(
        "segmenter",
        _boundaries,
        "What decides where sentences of raw text end: the segmenter, or segmenter and best trees together (joint), "
        "for text whose punctuation does not show it.",
        metavar="segmenter|joint",
    )

    def __init__(self, **options: Unpack[ParseOptions]) -> None:
        given: dict[str, Any] = {**options}
        known = {one.name: one for one in fields(self)}
        if unknown := [name for name in given if name not in known]:
            advice = hint(OPTIONS, unknown)
            raise TypeError(f"a parser has no option {unknown[0]!r}{advice}; it has: {', '.join(known)}")
        for name, one in known.items():
            self.__dict__[name] = one.metadata["check"](name, given.get(name, one.default))
        if self.among > 1 and not self.unique:
            raise ValueError('among needs unique relations, as in unique="nsubj,obj", among=10')
        if self.confidence and self.trees > 1:
            raise ValueError("confidence describes the best tree; request either confidence or several trees, not both")
        if self.asks_more and not self.heads:
            raise ValueError(f"confidence, several trees and unique relations need trees: predict {HEADS}")

    @property
    def options(self) -> dict[str, Any]:
        """All options; ``Request(**request.options)`` is an equal request."""
        return asdict(self)

    @property
    def columns(self) -> frozenset[str]:
        """The columns to predict: "upos", "xpos", "feats", "lemmas", "heads"."""
        return frozenset(GROUPS["all"]) if self.predict is None else self.predict

    @property
    def overwritten(self) -> frozenset[str]:
        """The columns whose given values do not count."""
        return self.columns if self.overwrite else frozenset()

    @property
    def alternatives(self) -> bool:
        """Whether the costs of all other heads are requested."""
        return self.confidence == "all"

    @property
    def heads(self) -> bool:
        """Whether trees are requested."""
        return HEADS in self.columns

    @property
    def trees(self) -> int:
        """The number of best trees to find."""
        return max(self.k_best, self.among)

    @property
    def weighs_relations(self) -> bool:
        """Whether scores of relations are needed, not only the best relation."""
        return bool(self.confidence or self.unique)

    @property
    def asks_more(self) -> bool:
        """Whether more than the best tree is requested."""
        return self.weighs_relations or self.trees > 1

    @property
    def lost(self) -> str:
        """For messages: what a sentence lacks if only its best tree can be found; "" if nothing."""
        missing = ["confidence"] * bool(self.confidence) + ["other trees"] * (self.trees > 1)
        return f", without {missing[0]}" if missing else ""


def describing_options(function: F) -> F:
    """Decorate a function that takes ``**options``: list them in its docstring."""
    if function.__doc__:  # not with python -OO
        own_line = r"(?m)^( *)\*\*options$"  # Python 3.13 and later remove common indentation
        function.__doc__ = re.sub(own_line, lambda found: _described(found[1]), function.__doc__)
    return function


def _described(indent: str) -> str:
    """The options of a request, formatted for a docstring."""
    lines = []
    for one in fields(Request):
        default = "" if one.default in (None, ()) else f", by default {one.default}"
        within = f"{indent}    "
        lines += [f"{indent}{one.name}{default}"]
        lines += wrap(one.metadata["python"], 120, initial_indent=within, subsequent_indent=within)
    return "\n".join(lines)


def _names(option: str, given: str | Iterable[str]) -> list[str]:
    """List names that are given in a comma-separated string or one by one."""
    names = given.split(",") if isinstance(given, str) else given
    if isinstance(names, bytes) or not isinstance(names, Iterable):
        raise TypeError(f'{option} takes names, as in {option}="{_EXAMPLES[option]}"; got {reprlib.repr(given)}')
    names = list(names)
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f'{option} takes names, as in {option}="{_EXAMPLES[option]}"; got {reprlib.repr(wrong[0])}')
    return [name.strip() for name in names]


def given_columns(given: str | Iterable[str]) -> frozenset[str]:
    """The columns that a parser may see when it is evaluated, by names in `GIVEN`.

    ValueError: A name is unknown, or stands for heads, or there is none. TypeError: These are not names.
    """
    names = _names("given", given)
    if not {"all", "head", HEADS, *_RELATIONS}.isdisjoint(map(str.lower, names)):
        raise ValueError(f"a parser that is evaluated cannot be given heads; known: {', '.join(GIVEN)}")
    return _columns(names, GIVEN)


def _columns(names: Iterable[str], known: Iterable[str]) -> frozenset[str]:
    """The columns that names, in lower or upper case, stand for."""
    columns: set[str] = set()
    relations = False
    for given in names:
        name = _SYNONYMS.get(given.lower(), given.lower())
        if name in _RELATIONS:
            relations = True
        elif name in NAMES:
            columns.update(GROUPS.get(name, (name,)))
        else:
            raise ValueError(f"unknown column {given!r}; known: {', '.join(known)}")
    if relations and HEADS not in columns:
        raise ValueError(
            'relations are predicted together with heads: predict="heads" (keep_heads=True keeps given heads)'
        )
    if not columns:
        raise ValueError(f"no column is named; known: {', '.join(known)}")
    return frozenset(columns)
