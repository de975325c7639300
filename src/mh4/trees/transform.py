"""Changes trees into the closest tree of a class: optimal projectivisation and its variants for other classes."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError, ErrorPolicy, Errors
from mh4.data.files import atomic_output, check_apart
from mh4.data.sentence import Sentence
from mh4.data.writing import require_conllu
from mh4.decoders import ChartTooLargeError
from mh4.decoders.projectivization import count_optimal_trees
from mh4.machine import available_threads

from .closest import check_tree_class, closest_tree

CHANGED_COMMENT = "changed_arcs"
COUNT_COMMENT = "optimal_projective_trees"
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass
class TransformTotals:
    """Counts of what `transform_file` did."""

    sentences: int = 0
    words: int = 0
    changed_sentences: int = 0
    changed_arcs: int = 0
    ambiguous_sentences: int = 0  # with several closest trees, if these were counted
    log_trees: float = 0.0  # sum of the natural logarithms of the numbers of closest trees, if these were counted

    @property
    def log_mean_trees(self) -> float:
        """Logarithm of the geometric mean of the number of closest trees; 0 without sentences."""
        return self.log_trees / max(self.sentences, 1)


class Transformed(NamedTuple):
    """A sentence with the closest tree of a class."""

    text: bytes  # CoNLL-U
    changed: int  # words whose head changed
    trees: int | None  # how many closest trees there are, if they were counted


def map_in_order(
    function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int | None
) -> Iterator[_Result]:
    """``map`` in a pool of threads, by default one per core, that reads at most 256 items ahead.

    Before an error of ``items`` is raised, the results of the items before it are yielded.
    """
    workers, problems = available_threads() if threads is None else threads, list[Exception]()
    with ThreadPoolExecutor(workers, thread_name_prefix="mh4-closest") as pool:
        waiting: deque[Future[_Result]] = deque()
        try:
            for item in _before_error(items, problems):
                waiting.append(pool.submit(function, item))
                if len(waiting) == 256:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
    if problems:
        raise problems[0]


def _before_error(items: Iterable[_Item], problems: list[Exception]) -> Iterator[_Item]:
    """Yield the items before an error, which is appended to ``problems``."""
    try:
        yield from items
    except Exception as error:
        problems.append(error)


def transform_sentence(
    sentence: Sentence, tree_class: str, mark_arcs: bool = False, count_trees: bool = False
) -> Transformed:
    """Change the tree of a sentence into the closest one of a class: "projective", "mh4" or "1ec".

    - One root stays one root; a tree with several roots may get any number of them.
    - A sentence that has a changed arc gets the comment ``# changed_arcs = N`` after its other comments (in place of
      one from an earlier transformation); all others stay byte for byte.
    - A word with a new head keeps its label, except that a new root gets the label "root", and a former root, or any
      other word labelled "root", the label "dep". The label "_" always stays.
    - With ``mark_arcs`` MISC of a changed word gets ``OldHead=H`` and, where the label changed, ``OldDeprel=L``. Such
      entries of an earlier transformation stay as they are.
    - With ``count_trees`` every sentence gets the comment ``# optimal_projective_trees = N`` likewise: N projective
      trees (with one root, if the tree has one), including the chosen one, keep equally many arcs.
    - DEPS, the enhanced graph, is left alone.

    Raises
    ------
    DataError
        The tree is not in the class and too long for the chart.
    ValueError
        The heads are not a tree, the class is unknown, or ``count_trees`` is set for a class other than "projective".
    """
    if count_trees:
        _check_countable(tree_class)
    single_root = len(sentence.roots) == 1
    try:
        heads = closest_tree(sentence.padded_heads, tree_class, single_root)
    except ChartTooLargeError as error:
        raise sentence.error(f"not in the class, and too long to find the closest tree: {error}") from None
    changed = np.flatnonzero(heads != sentence.padded_heads).tolist()
    trees = count_optimal_trees(sentence.padded_heads, single_root)[1] if count_trees else None
    if changed:
        labels, misc = list(sentence.relations), list(sentence.misc)
        for word in changed:
            label = _label(sentence, word, int(heads[word]))
            if mark_arcs:
                misc[word - 1] = _marked(misc[word - 1], int(sentence.padded_heads[word]), labels[word - 1], label)
            labels[word - 1] = label
        sentence = sentence.replace(heads=heads[1:], relations=labels, misc=misc)
        sentence = sentence.with_comment(CHANGED_COMMENT, len(changed))
    if trees is not None:
        sentence = sentence.with_comment(COUNT_COMMENT, trees)
    return Transformed(sentence.to_bytes(), len(changed), trees)


def _check_countable(tree_class: str) -> None:
    if tree_class != "projective":
        raise ValueError(f"closest trees can be counted only for the class projective, not for {tree_class}")


def _label(sentence: Sentence, word: int, head: int) -> str:
    """The label of a word below its new head."""
    old = sentence.relations[word - 1]
    if old == "_":
        return old
    if head == 0:
        return "root"
    return "dep" if sentence.padded_heads[word] == 0 or old.partition(":")[0] == "root" else old


def _marked(misc: str, old_head: int, old_label: str, label: str) -> str:
    """MISC with ``OldHead`` and, if the label changed, ``OldDeprel``; existing entries of these names stay."""
    entries = [] if misc in ("", "_") else misc.split("|")
    for name, old, changed in (("OldHead", old_head, True), ("OldDeprel", old_label, label != old_label)):
        if changed and not any(entry.startswith(f"{name}=") for entry in entries):
            entries.append(f"{name}={old}")
    return "|".join(entries)


def transform_file(
    source: str | Path,
    target: str | Path,
    tree_class: str,
    *,
    mark_arcs: bool = False,
    count_trees: bool = False,
    threads: int | None = None,
    errors: ErrorPolicy = "raise",
) -> TransformTotals:
    """Write a treebank with every tree changed into the closest one of a class; see `transform_sentence`.

    Parameters
    ----------
    source, target
        CoNLL-U files with gold trees; ``-`` is standard input or output. The target is complete or not there at all.
    tree_class, mark_arcs, count_trees
        See `transform_sentence`.
    threads
        By default one per core; the result does not depend on it.
    errors
        As for `read_conllu`; also for sentences too long for the chart.

    Raises
    ------
    DataError
        As `read_conllu` and `atomic_output`; or, with ``errors="raise"``, a tree outside the class is too long.
    ValueError
        As `transform_sentence`.
    """

    def transformed(sentence: Sentence) -> tuple[int, Transformed] | DataError:
        try:
            return len(sentence), transform_sentence(sentence, tree_class, mark_arcs, count_trees)
        except DataError as error:
            return error

    check_tree_class(tree_class)
    require_conllu(target)
    check_apart(source, target)
    if count_trees:
        _check_countable(tree_class)
    totals = TransformTotals()
    report = Errors.of(errors)
    sentences = read_conllu(source, trees="required", errors=report)
    with atomic_output(target) as stream:
        for result in map_in_order(transformed, sentences, threads):
            if isinstance(result, DataError):
                report(result)
                continue
            words, (text, changed, trees) = result
            stream.write(text)
            totals.sentences += 1
            totals.words += words
            totals.changed_sentences += changed > 0
            totals.changed_arcs += changed
            if trees is not None:
                totals.ambiguous_sentences += trees > 1
                totals.log_trees += math.log(trees)
    return totals
