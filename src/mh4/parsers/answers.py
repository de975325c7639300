"""What a parser answers to a request: annotations, errors and warnings as values."""

from __future__ import annotations

from dataclasses import dataclass, field

from mh4.data.annotation import Annotation
from mh4.data.errors import DataError


@dataclass
class Answers:
    """What is found for some sentences.

    Attributes
    ----------
    annotations : list of Annotation
        One for each sentence, in order; one that changes nothing where the sentence has an error.
    errors : dict of int to DataError
        What is wrong with a sentence, by its position, in order: given heads that no tree has, a tag that is missing.
    warnings : list of str
        What is not as it was asked for, such as a sentence parsed in pieces.
    """

    annotations: list[Annotation]
    errors: dict[int, DataError] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def checked(self) -> list[Annotation]:
        """The annotations; raises the error of the first sentence that has one."""
        if self.errors:
            raise self.errors[min(self.errors)]
        return self.annotations
