"""Changing trees into the closest tree of a class: optimal projectivisation and its relatives."""

from __future__ import annotations

import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from .decoders import get_decoder
from .decoders.decoder import ChartTooLargeError, Decoder
from .decoders.one_endpoint_crossing import is_one_endpoint_crossing
from .decoders.trees import is_projective
from .files import DataError, atomic_output
from .treebank import DEPREL, HEAD, MISC, Sentence, read_treebank

__all__ = ["TREE_CLASSES", "TransformTotals", "closest_tree", "transform_file", "transform_sentence"]

# For each class of trees the decoder that finds the closest one at the least cost.
TREE_CLASSES = {"projective": "eisner", "mh4": "mh4-two", "1ec": "1ec-first-order"}
COMMENT = "# changed_arcs = "
LARGE_CHART = 1 << 28  # bytes; a chart above it is filled while no other large one is
_one_large_chart = threading.Lock()
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass
class TransformTotals:
    """What `transform_file` did.

    Attributes
    ----------
    sentences, words
        Written.
    changed_sentences, changed_arcs
        How many of these sentences and of their arcs are not as they were.
    """

    sentences: int = 0
    words: int = 0
    changed_sentences: int = 0
    changed_arcs: int = 0


@cache
def _decoder(tree_class: str, single_root: bool) -> Decoder:
    if tree_class not in TREE_CLASSES:
        raise ValueError(f"unknown class of trees {tree_class!r}; known: {', '.join(TREE_CLASSES)}")
    return get_decoder(TREE_CLASSES[tree_class], single_root=single_root)


def _tie_bonus(heads: np.ndarray) -> np.ndarray:
    """1 on the arcs of the tree, and less than 1 in all on arcs from an ancestor of the old head."""
    n = len(heads) - 1
    bonus = np.zeros((n + 2, n + 2), np.float32)
    # A power of two, and none for sentences so long that float32 sums would be rounded.
    lift = np.float32(0.5) ** (n.bit_length() + 1) if n < 2048 else np.float32(0)
    above = heads.tolist()
    for d in range(1, n + 1):
        h = above[d]
        bonus[h, d] = 1
        while h > 0 and (h := above[h]) > 0:
            bonus[h, d] = lift
    return bonus


def closest_tree(heads: np.ndarray, tree_class: str, single_root: bool) -> np.ndarray:
    """The tree of a class that keeps most arcs of a tree.

    Among several such trees it is one that attaches most of the changed words to a word above their old head, as
    lifting does (Nivre and Nilsson 2005); a tree of the class stays as it is.

    Parameters
    ----------
    heads : int (n + 1,)
        A tree.
    tree_class : str
        "projective", "mh4" or "1ec"; arcs from the root count in all of them.
    single_root : bool
        The result has exactly one word attached to the root, or at least one.

    Returns
    -------
    int (n + 1,)

    Raises
    ------
    ChartTooLargeError
        The tree is not in the class, and the chart would take more than the decoder's memory limit.
    ValueError
        ``heads`` is not a tree, or the class is unknown.
    """
    heads = np.asarray(heads)
    decoder = _decoder(tree_class, single_root)
    # Projective trees are in all classes. Whether a tree is in MH4 only its decoder can tell.
    within = is_projective(heads) or (tree_class == "1ec" and is_one_endpoint_crossing(heads))
    if within and (not single_root or np.count_nonzero(heads[1:] == 0) == 1):
        return heads
    n = len(heads) - 1
    scores = np.zeros((len(decoder.channels), n + 2, n + 2), np.float32)
    if decoder.chart_bytes(n) <= LARGE_CHART:
        return decoder.decode(scores, _tie_bonus(heads)).heads
    with _one_large_chart:
        return decoder.decode(scores, _tie_bonus(heads)).heads


def map_in_order(
    function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int | None
) -> Iterator[_Result]:
    """``map`` in a pool of threads, by default one a core, that reads no more than some hundred items ahead."""
    with ThreadPoolExecutor(threads or os.cpu_count(), thread_name_prefix="mh4-closest") as pool:
        waiting: deque[Future[_Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) == 256:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def transform_sentence(sentence: Sentence, tree_class: str, mark_arcs: bool = False) -> tuple[bytes, int]:
    """The sentence as CoNLL-U with the closest tree of a class, and the number of words whose head changed.

    - One root stays one root; a tree with several roots may get any number of them.
    - A sentence that has a changed arc gets the comment ``# changed_arcs = N`` after its other comments (in place of
      one from an earlier transformation); all others stay byte for byte.
    - A changed arc keeps its label, unless it begins or ends to be the arc from the root: a new root gets the label
      "root", and a former one, or any other word labelled "root", the label "dep". "_" stays.
    - With ``mark_arcs`` MISC of a changed word gets ``OldHead=H`` and, where the label changed, ``OldDeprel=L``. Such
      entries of an earlier transformation stay as they are.
    - DEPS, the enhanced graph, is left alone.

    Raises
    ------
    DataError
        The tree is not in the class and too long for the chart.
    ValueError
        The heads are not a tree, or the class is unknown.
    """
    try:
        heads = closest_tree(sentence.heads, tree_class, single_root=len(sentence.roots) == 1)
    except ChartTooLargeError as error:
        raise sentence.error(f"not in the class, and too long to find the closest tree: {error}") from None
    changed = np.flatnonzero(heads != sentence.heads).tolist()
    if not changed:
        return sentence.render(), 0
    lines = list(sentence.lines)
    for word in changed:
        row = sentence.rows[word - 1]
        lines[row] = _changed_line(lines[row], int(heads[word]), mark_arcs)
    lines = [line for line in lines if not line.startswith(COMMENT)]
    first = next(row for row, line in enumerate(lines) if not line.startswith("#"))
    lines.insert(first, f"{COMMENT}{len(changed)}")
    return replace(sentence, lines=tuple(lines)).render(), len(changed)


def _changed_line(line: str, head: int, mark: bool) -> str:
    """The line of a word with its new head."""
    fields = line.split("\t")
    old_head, old_label = fields[HEAD], fields[DEPREL]
    label = old_label
    if old_label != "_":
        if head == 0:
            label = "root"
        elif int(old_head) == 0 or old_label.partition(":")[0] == "root":
            label = "dep"
    fields[HEAD], fields[DEPREL] = str(head), label
    if mark:
        line_end = "\r" if fields[MISC].endswith("\r") else ""
        misc = fields[MISC].removesuffix(line_end)
        entries = [] if misc == "_" else misc.split("|")
        if not any(entry.startswith("OldHead=") for entry in entries):
            entries.append(f"OldHead={old_head}")
            if label != old_label:
                entries.append(f"OldDeprel={old_label}")
        fields[MISC] = "|".join(entries) + line_end
    return "\t".join(fields)


def transform_file(
    source: str | Path,
    target: str | Path,
    tree_class: str,
    *,
    mark_arcs: bool = False,
    threads: int | None = None,
    skip_bad: bool = False,
    on_skip: Callable[[DataError], None] | None = None,
) -> TransformTotals:
    """Write a treebank with every tree changed into the closest one of a class; see `transform_sentence`.

    Parameters
    ----------
    source, target
        CoNLL-U files with gold trees; ``-`` is standard input or output. The target is complete or not there at all.
    tree_class
        "projective", "mh4" or "1ec".
    mark_arcs
        Mark the changed words in MISC.
    threads
        By default one a core; the result does not depend on it.
    skip_bad, on_skip
        As for `read_treebank`; also for sentences too long for the chart.

    Raises
    ------
    DataError
        As `read_treebank` and `atomic_output`; or, unless ``skip_bad``, a tree outside the class is too long.
    ValueError
        The class is unknown.
    """

    def transformed(sentence: Sentence) -> tuple[int, bytes, int] | DataError:
        try:
            return len(sentence), *transform_sentence(sentence, tree_class, mark_arcs)
        except DataError as error:
            return error

    _decoder(tree_class, True)
    totals = TransformTotals()
    sentences = read_treebank(source, gold=True, skip_bad=skip_bad, on_skip=on_skip)
    with atomic_output(target) as stream:
        for result in map_in_order(transformed, sentences, threads):
            if isinstance(result, DataError):
                report_skip(result, skip_bad, on_skip)
                continue
            words, text, changed = result
            stream.write(text)
            totals.sentences += 1
            totals.words += words
            totals.changed_sentences += changed > 0
            totals.changed_arcs += changed
    return totals


def report_skip(error: DataError, skip_bad: bool, on_skip: Callable[[DataError], None] | None) -> None:
    """Raise the error of a sentence, or hand it on where such sentences are to be left out."""
    if not skip_bad:
        raise error
    if on_skip is None:
        warnings.warn(f"{error}; sentence left out", stacklevel=3)
    else:
        on_skip(error)
