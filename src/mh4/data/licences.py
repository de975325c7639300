"""Licences of treebanks: find them beside the files, and tell whether they allow commercial use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .files import is_descriptor

__all__ = ["find_licence", "is_non_commercial", "licence_in"]

MOST = 1 << 16  # characters read from a file

_STATED = re.compile(r"^[\s*#-]*licen[cs]e:[ \t]*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)  # as in READMEs of UD
_LINK = re.compile(r"creativecommons\.org/licenses/(by(?:-[a-z]{2})*)/(\d\.\d)", re.IGNORECASE)
_SHORT = re.compile(r"\bCC[ -](BY(?:-(?:NC|SA|ND))*)[ -](\d\.\d)", re.IGNORECASE)
_WORDS = re.compile(
    r"Attribution((?:[\s-]+(?:Non-?Commercial|Share-? ?Alike|No-?Deriv\w*))*)\s+(\d\.\d)", re.IGNORECASE
)
_TERMS = {"NC": "noncommercial", "SA": "sharealike", "ND": "noderiv"}
_GNU = re.compile(r"GNU (?:(LESSER|AFFERO) )?GENERAL PUBLIC LICENSE\W+Version (\d)", re.IGNORECASE)
_NON_COMMERCIAL = re.compile(r"\bNC\b|non-?commercial|(?:research|academic)\w*(?: use)? only", re.IGNORECASE)


def find_licence(treebank: str | Path) -> str | None:
    """The licence of a treebank, from a README, LICENSE or COPYING file beside it; None if there is none.

    Nothing is beside standard input and other open descriptors.
    Creative Commons and GNU names are shortened ("CC BY-SA 4.0", "GPL 3"); of other licences, the first line is
    returned.
    """
    if is_descriptor(treebank):
        return None
    try:
        files = sorted(path for path in Path(treebank).resolve().parent.iterdir() if path.is_file())
    except OSError:
        return None
    for beginning in ("readme", "licen", "copying"):
        for path in files:
            if path.name.lower().startswith(beginning):
                with path.open(encoding="utf-8", errors="replace") as stream:
                    text = stream.read(MOST)
                if beginning == "readme":
                    text = stated[1] if (stated := _STATED.search(text)) else ""
                if found := licence_in(text):
                    return found
    return None


def licence_in(text: str) -> str | None:
    """The licences that a text names, joined by "and"; its first line if it names none that is known."""
    known = list(dict.fromkeys(_known(text)))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " and ".join(known) if known else lines[0][:100] if lines else None


def is_non_commercial(licence: str) -> bool:
    """Whether a licence forbids commercial use."""
    return _NON_COMMERCIAL.search(licence) is not None


def _known(text: str) -> Iterator[str]:
    for pattern in (_LINK, _SHORT):
        for terms, version in pattern.findall(text):
            yield f"CC {terms.upper()} {version}"
    for words, version in _WORDS.findall(text):
        bare = re.sub(r"[\s-]", "", words).lower()
        terms = [short for short, start in _TERMS.items() if start in bare]
        yield f"CC {'-'.join(['BY', *terms])} {version}"
    for kind, version in _GNU.findall(text):
        yield f"{kind[:1].upper()}GPL {version}"
