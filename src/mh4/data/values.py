"""Valid values of the CoNLL-U columns: one rule for input files, values set in Python and parser output.

A value is never empty or only white space; an unknown value is "_". FORM, LEMMA and MISC may contain white space; FORM,
as a piece of text, may also begin or end with it.
"""

import re
from collections.abc import Sequence

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(len(COLUMNS))

UNKNOWN_HINT = "an unknown value is _"
_BREAKS = "\t\n\r\0"
# White space other than tabs and line feeds; the explicit list is matched twice as fast as \s.
SPACE = re.compile("[" + "".join(c for c in map(chr, range(0x3001)) if c.isspace() and c not in "\t\n") + "]")
_MAY_HOLD_SPACE = frozenset((FORM, LEMMA, MISC))


def value_problem(value: str, column: int) -> str | None:
    """The problem with a value of a column, such as "is empty"; None if it is valid."""
    if not value:
        return "is empty"
    if any(character in value for character in _BREAKS):
        return "holds a tab, a line break or NUL"
    if value.isspace():
        return "is white space alone"
    if column != FORM and value != value.strip():
        return "begins or ends with white space"
    if column not in _MAY_HOLD_SPACE and len(value.split()) > 1:
        return "holds white space"
    return None if is_unicode(value) else "is not valid Unicode"


def sound(value: str, column: int) -> str:
    """Make a value valid, by stripping it or as "_": models of earlier versions also learnt padded and blank values."""
    stripped = value.strip()
    return stripped if value_problem(stripped, column) is None else "_"


def surely_sound(values: Sequence[str], column: int | None = None) -> bool:
    """Whether values are certainly valid in a column, or in every column, by a fast joint check.

    If False, some may be invalid: check each with `value_problem`.
    """
    together = "\n".join(values)
    if together.count("\n") >= len(values) or "\t" in together or "\0" in together or not is_unicode(together):
        return False
    if SPACE.search(together) is None:
        return "" not in values
    return (
        column in _MAY_HOLD_SPACE and "\r" not in together and all(value and value == value.strip() for value in values)
    )


def is_unicode(text: str) -> bool:
    """Whether a text can be encoded, that is, holds no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
