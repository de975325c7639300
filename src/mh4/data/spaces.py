"""White space around and inside tokens, as kept in MISC, and the positions of tokens in their text.

The space between two tokens is encoded as in UDPipe (Straka and Straková 2017): none as ``SpaceAfter=No``, a single
blank not at all, anything else as ``SpacesAfter=…`` with ``\\s``, ``\\t``, ``\\n`` and ``\\r``. ``SpacesBefore`` is the
white space before a paragraph, ``SpacesInToken`` the original form of a token with tabs, line breaks or several blanks
in a row. Other white space is escaped as in Stanza, ``\\u00A0``, since UD allows none at the end of MISC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

NO_SPACE = "SpaceAfter=No"

_ESCAPES = {"\\": "\\\\", " ": "\\s", "\t": "\\t", "\n": "\\n", "\r": "\\r", "|": "\\p"}
_SPACES = (character for character in map(chr, range(0x3001)) if character.isspace())
_ESCAPES |= {space: f"\\u{ord(space):04X}" for space in _SPACES if space not in _ESCAPES}
_ESCAPED = str.maketrans(_ESCAPES)
_WHITE = re.compile(r"\s*")
_NOT_IN_FORM = re.compile(r"[\t\n\r]|  ")
_UNESCAPED = {escape: character for character, escape in _ESCAPES.items()}


def escaped(text: str) -> str:
    """Escape white space, or a token, for MISC."""
    return text.translate(_ESCAPED)


def one_line(form: str) -> str:
    """A token as FORM: with single blanks for white space if it holds tabs, line breaks or several blanks in a row."""
    return re.sub(r"\s+", " ", form) if _NOT_IN_FORM.search(form) else form


def unescaped(value: str) -> str:
    """The inverse of `escaped`."""
    return re.sub(r"\\(?:u[0-9A-F]{4}|.)", lambda match: _UNESCAPED.get(match[0], match[0]), value)


class Spaced(NamedTuple):
    """A token as in its text, with white space.

    Attributes
    ----------
    before, written, after
        White space before the token unless it follows another one, the token, and white space after it.
    is_known
        Whether MISC gives ``after`` exactly; otherwise one blank, or nothing, is assumed.
    """

    before: str
    written: str
    after: str
    is_known: bool

    @classmethod
    def of(cls, form: str, misc: str) -> Spaced:
        """The token with this form and MISC."""
        attributes = dict(entry.partition("=")[::2] for entry in misc.split("|"))
        within, after = attributes.get("SpacesInToken"), attributes.get("SpacesAfter")
        return cls(
            unescaped(attributes.get("SpacesBefore", "")),
            form if within is None else unescaped(within),
            " " * (attributes.get("SpaceAfter") != "No") if after is None else unescaped(after),
            after is not None,
        )


def spans_in_text(tokens: Iterable[Spaced], start: int) -> list[tuple[int, int]]:
    """(start, end) of each token in the text that they were cut from, end exclusive; the first is at ``start``."""
    spans = []
    for token in tokens:
        end = start + len(token.written)
        spans.append((start, end))
        start = end + len(token.after)
    return spans


def spans_in_line(forms: Iterable[str], text: str) -> list[tuple[int, int]] | None:
    """(start, end) of each form in the text of a sentence; None unless only white space separates them in it."""
    spans = []
    place = 0
    for form in forms:
        if not text.startswith(form, place):
            place = _WHITE.match(text, place).end()  # type: ignore[union-attr]
            if not text.startswith(form, place):
                form = form.strip()
                if not text.startswith(form, place):
                    return None
        spans.append((place, place + len(form)))
        place += len(form)
    return spans
