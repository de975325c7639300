"""The result of a request: annotations, errors and warnings as values."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Self

from mh4.data.annotation import Annotation
from mh4.data.confidence_columns import ranked, without_confidence
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence

log = logging.getLogger("mh4")


@dataclass
class Answers:
    """The result of a request for some sentences.

    Attributes
    ----------
    annotations : list of Annotation
        One for each sentence, in order; an empty one for a sentence with an error.
    errors : dict of int to DataError
        Errors by the position of their sentence, in order: infeasible given heads, a missing tag.
    warnings : list of str
        Deviations from the request, such as a sentence parsed in pieces.
    """

    annotations: list[Annotation]
    errors: dict[int, DataError] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def logged(self) -> Self:
        """Log the warnings, and return the answers."""
        for warning in self.warnings:
            log.warning("%s", warning)
        return self

    def checked(self) -> list[Annotation]:
        """The annotations; raises the error of the first sentence that has one."""
        if self.errors:
            raise self.errors[min(self.errors)]
        return self.annotations


def with_trees(sentence: Sentence, result: Annotation, k: int) -> list[Sentence]:
    """The sentence with its best tree or, for k > 1, with each of its k best trees and the rank of each.

    If there is a new tree, confidences that an earlier parse wrote into the sentence are removed.
    """
    if result.heads is not None:
        sentence = without_confidence(sentence)
    if k == 1:
        return [sentence.annotated(result)]
    trees = [
        replace(result, heads=tree.heads, relations=tree.relations, score=tree.score, next_best=())
        for tree in (result, *result.next_best)
    ]
    return [ranked(sentence.annotated(tree), rank) for rank, tree in enumerate(trees, start=1)]
