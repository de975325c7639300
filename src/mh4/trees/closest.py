"""The closest tree: of a class, or that a transition system can build, for trees that are outside."""

import threading
from functools import cache
from typing import Protocol

import numpy as np

from mh4.data.sentence import Sentence
from mh4.decoders import get_decoder
from mh4.decoders.decoder import Decoder
from mh4.decoders.derivation import InfeasibleError
from mh4.decoders.one_endpoint_crossing import is_one_endpoint_crossing
from mh4.decoders.projectivization import projectivize
from mh4.decoders.trees import given_heads_bonus, is_projective
from mh4.oracles.mh4 import closest_derivable

# For each class of trees the decoder that finds the closest one at the least cost.
TREE_CLASSES = {"projective": "eisner", "mh4": "mh4-two", "1ec": "1ec-first-order"}
LARGE_CHART = 1 << 28  # bytes; a chart above it is filled while no other large one is
_one_large_chart = threading.Lock()


def check_tree_class(name: str) -> None:
    """ValueError unless there is a class of this name."""
    if name not in TREE_CLASSES:
        raise ValueError(f"unknown class of trees {name!r}; known: {', '.join(TREE_CLASSES)}")


@cache
def _decoder(tree_class: str, single_root: bool) -> Decoder:
    check_tree_class(tree_class)
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
    """The tree of a class, "projective", "mh4" or "1ec", that keeps most arcs of a tree, arcs from the root included.

    Among several such trees it is one that attaches most of the changed words to a word above their old head, as
    lifting does (Nivre and Nilsson 2005); a tree of the class stays as it is. With ``single_root`` the result has
    exactly one word attached to the root, or else at least one.

    Raises
    ------
    ChartTooLargeError
        The tree is not in the class, and the chart would take more than the decoder's memory limit.
    ValueError
        ``heads``, int (n + 1,), is not a tree, or the class is unknown.
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


def known_part(heads: np.ndarray, decoder: Decoder) -> np.ndarray:
    """Heads of which some are unknown, −1, int (n + 1,), if a tree of the decoder's class has the others.

    Else those become unknown that the tree that has most of them lacks.

    Raises
    ------
    ChartTooLargeError
        A chart beyond the memory limit.
    """
    size = len(heads) + 1
    scores = np.zeros((len(decoder.channels), size, size), np.float32)
    known = np.flatnonzero(heads[1:] >= 0) + 1
    try:
        decoder.decode(scores, given_heads_bonus([heads], size)[0])
    except InfeasibleError:
        bonus = np.zeros((size, size), np.float32)
        bonus[heads[known], known] = 1.0
        found = decoder.decode(scores, bonus).heads
        return np.where(found == heads, heads, -1)
    return heads


class TreeBuilder(Protocol):
    """A transition system, as far as `training_tree` needs to know it."""

    @property
    def trees(self) -> str:
        """Which trees it can build: "projective", "mh4" or "all"."""

    @property
    def single_root(self) -> bool:
        """Whether they have exactly one word below the root."""


def training_tree(sentence: Sentence, system: TreeBuilder) -> np.ndarray:
    """Heads, int (n + 1,), of the gold tree, or of one in its place where the system cannot build it.

    Systems for projective trees get the closest projective tree (Nederhof 2019, section 3), with one word below the
    root if the gold tree is such a tree or the system builds no others. MH4 gets the closest tree that it can build.
    Covington's parser builds every tree.
    """
    if system.trees == "mh4":
        return closest_derivable(sentence.heads, system.single_root)
    if system.trees == "projective":
        return projectivize(sentence.heads, single_root=system.single_root or len(sentence.roots) == 1)
    return sentence.heads
