"""Check the IDs of a sentence's lines: words count 1, 2, 3, …; multiword tokens and empty nodes are in place."""

from conllu.exceptions import ParseException
from conllu.parser import parse_id_value

from .errors import quote, shortened

_BLANK_LINE_HINT = "is the blank line between two sentences missing?"


class Ids:
    """Checks the IDs of a sentence, line by line.

    Attributes
    ----------
    words
        Number of words so far.
    range_end
        Last word of the latest multiword token, 0 before the first.
    """

    def __init__(self) -> None:
        self.words = self.range_end = 0
        self._empty_nodes = 0  # since the last word
        self._open_range = ""  # ID of a multiword token whose first word comes next

    def add_word(self) -> None:
        """Count a word whose ID is known to be correct."""
        self.words += 1
        self._empty_nodes = 0
        self._open_range = ""

    def add(self, value: str) -> str | None:
        """Count the ID of the next line; returns the problem with it, or None."""
        expected = self.words + 1
        if value == str(expected):
            self.add_word()
            return None
        try:
            parsed = parse_id_value(value)
        except (ParseException, ValueError):  # ValueError: more digits than Python converts
            parsed = None
        shown = shortened(value)
        match parsed:
            case None:
                return f"ID {quote(value)} is not a word id, a range such as 1-2 or an empty node such as 1.1"
            case 1 | (1, "-", _) | (0, ".", _) if self.words:
                return f"ID {shown} where word {expected} is expected ({_BLANK_LINE_HINT})"
            case (int(start), "-", int(end)):
                if start != expected:
                    return f"multiword token {shown} does not stand before word {shortened(str(start))}"
                if start <= self.range_end:
                    return f"multiword token {shown} overlaps the one before it"
                self.range_end, self._open_range = end, value
                return None
            case (int(before), ".", int(empty)):
                if before != self.words:
                    return f"empty node {shown} does not stand after word {shortened(str(before))}"
                if self._open_range:
                    return f"empty node {shown} does not stand before multiword token {self._open_range}"
                if empty != self._empty_nodes + 1:
                    follows = f"{before}.{self._empty_nodes + 1}"
                    return f"empty node {shown} where {follows} is expected (they count {before}.1, {before}.2, …)"
                self._empty_nodes += 1
                return None
        return f"ID {shown} where word {expected} is expected (ids count 1, 2, 3, …)"
