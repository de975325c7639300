"""White space around and inside tokens, as MISC keeps it, and where tokens stand in their text.

What stands between two tokens is kept as UDPipe does it (Straka and Straková 2017): nothing is ``SpaceAfter=No``, one
blank is not written, all else is ``SpacesAfter=…`` with ``\\s``, ``\\t``, ``\\n`` and ``\\r``. ``SpacesBefore`` is what
stands before a paragraph, ``SpacesInToken`` a token as it was if it holds more than single blanks. Other white space is
escaped, as Stanza does it, ``\\u00A0``: UD allows none at the end of MISC.
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
_UNESCAPED = {escape: character for character, escape in _ESCAPES.items()}


def escaped(text: str) -> str:
    """White space, or a token, for MISC."""
    return text.translate(_ESCAPED)


def unescaped(value: str) -> str:
    """What `escaped` was given."""
    return re.sub(r"\\(?:u[0-9A-F]{4}|.)", lambda match: _UNESCAPED.get(match[0], match[0]), value)


class Spaced(NamedTuple):
    """A token as its text has it.

    Attributes
    ----------
    before, written, after
        White space before it that does not stand behind another token, itself, white space behind it.
    is_known
        Whether MISC says exactly what stands behind it; else it is taken for one blank, or for nothing.
    """

    before: str
    written: str
    after: str
    is_known: bool

    @classmethod
    def of(cls, form: str, misc: str) -> Spaced:
        """The token with a form and MISC."""
        attributes = dict(entry.partition("=")[::2] for entry in misc.split("|"))
        within, after = attributes.get("SpacesInToken"), attributes.get("SpacesAfter")
        return cls(
            unescaped(attributes.get("SpacesBefore", "")),
            form if within is None else unescaped(within),
            " " * (attributes.get("SpaceAfter") != "No") if after is None else unescaped(after),
            after is not None,
        )


def spans_in_text(tokens: Iterable[Spaced], start: int) -> list[tuple[int, int]]:
    """Where each token begins and ends (half-open) in the text that they were cut from; the first is at ``start``."""
    spans = []
    for token in tokens:
        end = start + len(token.written)
        spans.append((start, end))
        start = end + len(token.after)
    return spans


def spans_in_line(forms: Iterable[str], text: str) -> list[tuple[int, int]] | None:
    """The same in the text of a sentence; None unless the forms stand in it in their order, but for white space."""
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
