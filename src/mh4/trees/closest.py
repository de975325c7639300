"""The tree that a system is trained on: the gold tree, or a close one that it can build."""

from __future__ import annotations

import numpy as np

from mh4.data.conllu import Sentence
from mh4.decoders.projectivization import projectivize
from mh4.oracles.mh4 import closest_derivable
from mh4.transitions.arrays.state import System
from mh4.transitions.mh4 import MH4


def training_tree(sentence: Sentence, system: System) -> np.ndarray:
    """Heads, int (n + 1,), of the gold tree, or of one in its place where the system cannot build it.

    Systems for projective trees get the closest projective tree (Nederhof 2019, section 3), with one word below the
    root if the gold tree is such a tree or the system builds no others. MH4 gets the closest tree of its chart decoder
    (Gómez-Rodríguez, Shi and Lee 2018, section 3). Covington's parser builds every tree.
    """
    if system.name == MH4.name:
        return closest_derivable(sentence.heads, system.single_root)
    if system.projective:
        return projectivize(sentence.heads, single_root=system.single_root or len(sentence.roots) == 1)
    return sentence.heads
