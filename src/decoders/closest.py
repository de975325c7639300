"""The tree of a class that is closest to a given tree."""

import threading
from contextlib import nullcontext
from functools import cache

import numpy as np

from .decoder import Decoder
from .derivation import InfeasibleError
from .one_endpoint_crossing import is_one_endpoint_crossing
from .registry import get_decoder
from .trees import checked_tree, is_projective

TREE_CLASSES = ("projective", "mh4", "1ec")
# The fastest decoder that finds the closest tree of each class.
_FINDERS = {"projective": "eisner", "mh4": "mh4-two", "1ec": "1ec-first-order", "all": "mst"}
LARGE_CHART = 1 << 28  # bytes; larger charts are filled one at a time, across all threads
LONGEST_TIES = 2048  # words; in sentences as long or longer, lifting is not preferred: float32 would round the sums
_one_large_chart = threading.Lock()


def check_tree_class(name: str) -> None:
    """ValueError unless there is a class of trees with this name."""
    if name not in _FINDERS:
        raise ValueError(f"unknown class of trees {name!r}; known: {', '.join(_FINDERS)}")


@cache
def _decoder(tree_class: str, single_root: bool) -> Decoder:
    check_tree_class(tree_class)
    return get_decoder(_FINDERS[tree_class], single_root=single_root)


def _bonus(heads: np.ndarray) -> np.ndarray:
    """Arc bonus of 1 on the arcs of the tree, and of less than 1 in all on arcs from a word above the old head."""
    n = len(heads) - 1
    bonus = np.zeros((n + 2, n + 2), np.float32)
    lift = np.float32(0.5) ** (n.bit_length() + 1) if n < LONGEST_TIES else np.float32(0)  # a power of two: exact
    above = heads.tolist()
    for d in range(1, n + 1):
        h = above[d]
        bonus[h, d] = 1
        while h > 0 and (h := above[h]) > 0:
            bonus[h, d] = lift
    return bonus


def closest_tree(heads: np.ndarray, tree_class: str | Decoder, single_root: bool = True) -> np.ndarray:
    """Return the tree of a class that keeps the most arcs of a given tree, arcs from the root included.

    Among several such trees, it prefers those that attach the most changed words to a word above their old head, as
    lifting does (Nivre and Nilsson 2005). A tree that is in the class stays as it is.

    Parameters
    ----------
    heads : int (n + 1,)
    tree_class : {"projective", "mh4", "1ec", "all"} or Decoder
        A decoder stands for the trees that it can build, and for its ``single_root``.
    single_root : bool
        The result has exactly one word attached to the root, or at least one.

    Raises
    ------
    ChartTooLargeError
        The tree is not in the class (or too long to tell), and the chart exceeds the decoder's memory limit.
    InfeasibleError
        ``single_root``, but the sentence has no words.
    ValueError
        ``heads`` is not a tree, or the class is unknown.
    """
    heads = checked_tree(heads)
    if isinstance(tree_class, Decoder):
        single_root, tree_class = tree_class.single_root, tree_class.tree_class
    decoder = _decoder(tree_class, single_root)
    n = len(heads) - 1
    if single_root and n == 0:
        raise InfeasibleError("a sentence without words has no tree")
    # Projective trees are in all classes.
    within = tree_class == "all" or is_projective(heads) or (tree_class == "1ec" and is_one_endpoint_crossing(heads))
    if within and (not single_root or np.count_nonzero(heads[1:] == 0) == 1):
        return heads.astype(np.int32)
    scores = np.zeros((len(decoder.channels), n + 2, n + 2), np.float32)
    with nullcontext() if decoder.chart_bytes(n) <= LARGE_CHART else _one_large_chart:
        if tree_class == "mh4" and _can_derive(decoder, scores, heads):
            return heads.astype(np.int32)
        return decoder.decode(scores, _bonus(heads)).heads


def _can_derive(decoder: Decoder, scores: np.ndarray, heads: np.ndarray) -> bool:
    """Whether the decoder can build a tree; False if the sentence is too long to find out."""
    if 2 * scores.nbytes > decoder.memory_limit:  # the items of the derivation take about as much
        return False
    try:
        decoder.derive_batch(scores[None], [heads])
    except InfeasibleError:
        return False
    return True
