"""What the columns of CoNLL-U may hold: one rule for files that are read, for Python, and for what parsers write.

A value is never empty or white space alone; an unknown one is "_". White space may stand inside FORM, LEMMA and MISC,
and at either end of FORM, which is text.
"""

import re
from collections.abc import Sequence

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(len(COLUMNS))

UNKNOWN_HINT = "an unknown value is _"
_BREAKS = "\t\n\r\0"
# All white space that may stand inside a line and a value; listed, it is found twice as fast as with \s.
SPACE = re.compile("[" + "".join(c for c in map(chr, range(0x3001)) if c.isspace() and c not in "\t\n") + "]")
_MAY_HOLD_SPACE = frozenset((FORM, LEMMA, MISC))


def value_problem(value: str, column: int) -> str | None:
    """What is wrong with a value of a column, as in "LEMMA is empty"; None for a sound one."""
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
    """A value of a model of an earlier version, which learnt padded and blank ones, too, as it may be written."""
    stripped = value.strip()
    return stripped if value_problem(stripped, column) is None else "_"


def surely_sound(values: Sequence[str], column: int | None = None) -> bool:
    """Whether values are sound, in a column or in any, told from all at once: fast, as nearly all are.

    False where `value_problem` has to be asked.
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
    """Whether a text holds no lone surrogate, so that it can be written."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
