"""The trees that a system is trained on: gold trees, or close ones that it can build."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mh4.decoders.projectivization import projectivize

from ..oracles.mh4 import closest_derivable
from ..transitions.mh4 import MH4
from ..treebank import Sentence
from .state import System


def training_trees(sentences: Sequence[Sentence], system: System) -> list[np.ndarray]:
    """The gold trees, replaced where the system cannot build them.

    Systems for projective trees get the closest projective tree (Nederhof 2019, section 3), with one word below the
    root if the gold tree is such a tree or the system builds no others. MH4 gets the closest tree of its chart decoder
    (Gómez-Rodríguez, Shi and Lee 2018, section 3). Covington's parser builds every tree.

    Parameters
    ----------
    sentences : sequence of Sentence
        With gold trees.
    system : System

    Returns
    -------
    list of int (n + 1,)
        Heads.
    """
    if system.name == MH4.name:
        return [closest_derivable(sentence.heads, system.single_root) for sentence in sentences]
    if system.projective:
        return [projectivize(s.heads, single_root=system.single_root or len(s.roots) == 1) for s in sentences]
    return [sentence.heads for sentence in sentences]
