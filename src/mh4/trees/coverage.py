"""Coverage of a treebank by classes of trees: how many trees belong to each class, and how many arcs it can keep."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError, ErrorPolicy, Errors
from mh4.data.sentence import Sentence
from mh4.decoders import ChartTooLargeError
from mh4.decoders.trees import gap_degree, is_planar, is_projective, is_well_nested

from .closest import TREE_CLASSES, closest_tree
from .transform import map_in_order

__all__ = [
    "STRUCTURES",
    "Coverage",
    "SentenceCoverage",
    "coverage_table",
    "iterate_coverage",
    "kept_arcs",
    "measure_coverage",
]

# Classes without a decoder that finds the closest tree: only the share of sentences is known.
STRUCTURES: dict[str, Callable[[np.ndarray], bool]] = {
    "planar": is_planar,
    "well-nested, ≤ 1 gap": lambda heads: gap_degree(heads) <= 1 and is_well_nested(heads),
}


@dataclass(frozen=True)
class SentenceCoverage:
    """Coverage of one sentence.

    Attributes
    ----------
    name : str
        Its sent_id, or its number in the file (from 1).
    words : int
        Number of words, and so of arcs, since arcs from the root count.
    kept : dict
        For each of `TREE_CLASSES`, how many arcs the closest tree keeps.
    within : dict
        For each of `STRUCTURES`, whether the tree belongs to it.
    """

    name: str
    words: int
    kept: dict[str, int]
    within: dict[str, bool]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"sentence": self.name, "words": self.words, "kept": self.kept, "within": self.within}


@dataclass
class Coverage:
    """Coverage of a treebank without skipped sentences. Words are syntactic: no multiword tokens, no empty nodes."""

    sentences: int = 0
    words: int = 0
    # By class: sentences whose tree belongs to it, and arcs that the closest trees keep.
    covered: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*TREE_CLASSES, *STRUCTURES), 0))
    kept: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TREE_CLASSES, 0))

    def add(self, sentence: SentenceCoverage) -> None:
        """Count a sentence."""
        self.sentences += 1
        self.words += sentence.words
        for tree_class, kept in sentence.kept.items():
            self.covered[tree_class] += kept == sentence.words
            self.kept[tree_class] += kept
        for structure, within in sentence.within.items():
            self.covered[structure] += within

    def sentence_percent(self, tree_class: str) -> float:
        """Percentage of sentences whose tree belongs to the class."""
        return 100 * self.covered[tree_class] / self.sentences

    def arc_percent(self, tree_class: str) -> float:
        """Percentage of arcs that the closest trees of the class keep."""
        return 100 * self.kept[tree_class] / self.words

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "sentences": self.sentences,
            "words": self.words,
            "covered_sentences": self.covered,
            "covered_sentences_percent": {name: self.sentence_percent(name) for name in self.covered},
            "kept_arcs": self.kept,
            "kept_arcs_percent": {name: self.arc_percent(name) for name in self.kept},
        }


def kept_arcs(heads: np.ndarray) -> dict[str, int]:
    """How many arcs the closest tree of each of `TREE_CLASSES` keeps, with any number of words below the root.

    ``heads`` is int (n + 1,); for errors see `closest_tree`.
    """
    heads = np.asarray(heads)
    if is_projective(heads):
        return dict.fromkeys(TREE_CLASSES, len(heads) - 1)
    closest = {name: closest_tree(heads, name, single_root=False) for name in TREE_CLASSES}
    return {name: int(np.count_nonzero(tree[1:] == heads[1:])) for name, tree in closest.items()}


def _sentence_coverage(sentence: Sentence) -> SentenceCoverage | DataError:
    heads = sentence.padded_heads
    try:
        kept = kept_arcs(heads)
    except ChartTooLargeError as error:
        return sentence.error(f"not projective, and too long to find the closest tree: {error}")
    if kept["projective"] == len(sentence):  # projective trees are planar, without gaps and well-nested
        within = dict.fromkeys(STRUCTURES, True)
    else:
        within = {name: belongs(heads) for name, belongs in STRUCTURES.items()}
    return SentenceCoverage(sentence.label, len(sentence), kept, within)


def iterate_coverage(
    path: str | Path, *, threads: int | None = None, errors: ErrorPolicy = "raise"
) -> Iterator[SentenceCoverage]:
    """The coverage of each sentence of a treebank with gold trees, in order.

    Parameters
    ----------
    path
        A CoNLL-U file, or ``-`` for standard input.
    threads
        By default one per core; the result does not depend on it.
    errors
        As for `read_conllu`; also for sentences too long for the chart.

    Raises
    ------
    DataError
        As `read_conllu`; or, with ``errors="raise"``, a tree outside a class is too long for its chart.
    """
    report = Errors.of(errors)
    sentences = read_conllu(path, trees="required", errors=report)
    for result in map_in_order(_sentence_coverage, sentences, threads):
        if isinstance(result, DataError):
            report(result)
        else:
            yield result


def measure_coverage(path: str | Path, *, threads: int | None = None, errors: ErrorPolicy = "raise") -> Coverage:
    """The coverage of a treebank; arguments and errors as for `iterate_coverage`."""
    coverage = Coverage()
    for sentence in iterate_coverage(path, threads=threads, errors=errors):
        coverage.add(sentence)
    if not coverage.sentences:
        raise DataError(f"{path}: all sentences were left out, nothing to measure")
    return coverage


def coverage_table(results: dict[str, Coverage]) -> Table:
    """A table of sentences in each class and arcs kept, in per cent: a row per treebank and class.

    A treebank is called by its file's name without the last suffix or, if others have the same, by its path.
    """
    stems = Counter(Path(path).stem for path in results)
    table = Table(box=None, pad_edge=False)
    table.add_column("treebank", overflow="fold")
    for column in ("sentences", "words", "class", "% sent.", "% arcs"):
        table.add_column(column, justify="left" if column == "class" else "right", no_wrap=True)
    for path, result in results.items():
        stem = Path(path).stem
        start = (stem if stems[stem] == 1 else path, str(result.sentences), str(result.words))
        for name in result.covered:
            arcs = f"{result.arc_percent(name):.2f}" if name in result.kept else ""
            table.add_row(*start, name, f"{result.sentence_percent(name):.2f}", arcs)
            start = ("", "", "")
    return table
