"""Ensembles: the trees of several trained parsers, combined by parsing once more (Sagae and Lavie 2006).

Every member says how much it is for each arc; the tree that collects most is found by a chart decoder, so that it is a
tree of the decoder's class with one root child, whatever the members propose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch

from mh4.data.errors import DataError
from mh4.data.sentence import Annotation, Sentence
from mh4.decoders import Derivation, get_decoder
from mh4.decoders.fallback import Fallback
from mh4.decoders.trees import arc_matrix

from .base import ROOT_RELATION, TreebankParser
from .chart import ChartParser, decode_sentence, known_heads_bonus, warn_of_size
from .network import keep_relations, prediction_batches
from .registry import load_parser

Tree = tuple[np.ndarray, tuple[str, ...]]  # heads and relations

COMBINATIONS = ("votes", "scores")
ANY_RELATION = "dep"  # UD's relation for want of a better one


class EnsembleParser(TreebankParser):
    """Several parsers that decide together.

    Parameters
    ----------
    members : sequence of TreebankParser
        At least one; all for the same treebank's conventions, the best first.
    decoder : str
        Finds the tree: a name that `mh4.decoders.get_decoder` knows.
    combine : {"votes", "scores"}
        ``votes``: each member has one vote a word, for its head; of the trees with most votes, one that is closest to
        the first member's is taken. ``scores``: a member whose scores are those of single arcs (decoders ``mst``,
        ``eisner``, ``1ec-first-order``) splits its vote, in proportion to the exponential of its scores; the others
        vote as before.
    single_root : bool, optional
        Exactly one word is attached to the root; by default if all members have it so.

    Raises
    ------
    ValueError
        No member, an unknown decoder or an unknown combination; the message lists the known ones.

    Notes
    -----
    The relation of an arc is voted on by the members that have the arc, or, if nobody has it, by all; in a tie the
    first member's wins. As in UD, ``root`` goes to children of the root and to nobody else.
    """

    def __init__(
        self,
        members: Sequence[TreebankParser],
        decoder: str = "mst",
        combine: str = "votes",
        single_root: bool | None = None,
    ) -> None:
        if not members:
            raise ValueError("an ensemble needs at least one model")
        if combine not in COMBINATIONS:
            raise ValueError(f"unknown combination {combine!r}; known: {', '.join(COMBINATIONS)}")
        self.members = tuple(members)
        if single_root is None:
            single_root = all(member.single_root for member in members)
        self.decoder = get_decoder(decoder, single_root=single_root)
        self.fallback = Fallback(self.decoder, by_arcs=True)
        self.combine = combine

    @classmethod
    def load(
        cls,
        folders: Sequence[str | Path],
        decoder: str = "mst",
        combine: str = "votes",
        single_root: bool | None = None,
        device: str = "auto",
        threads: int | None = None,
    ) -> Self:
        """Read trained models of any kind; see the class, and `load_parser` for device and threads."""
        members = [load_parser(folder, device=device, threads=threads) for folder in folders]
        return cls(members, decoder, combine, single_root)

    def attempt(self, sentences: Sequence[Sentence], keep_heads: bool = False) -> list[Annotation | DataError]:
        """See `TreebankParser`.

        With ``keep_heads`` the members vote as if no head was given, and the best tree with the given heads is taken.
        """
        proposals = [member.predict(sentences) for member in self.members]
        weights = [self._split_votes(member, sentences) for member in self.members]
        predictions: list[Annotation | DataError] = []
        for i, sentence in enumerate(sentences):
            trees = [predicted[i].tree for predicted in proposals]
            bonus = self._arc_weights(trees, [None if own is None else own[i] for own in weights])
            if keep_heads:
                bonus += known_heads_bonus([sentence], len(sentence) + 2)[0]
            found = self._decode(bonus, sentence)
            if isinstance(found, DataError):
                predictions.append(found)
                continue
            prediction = Annotation(found.heads, vote_on_relations(found.heads, trees))
            predictions.append(keep_relations(sentence, prediction) if keep_heads else prediction)
        return predictions

    def _split_votes(self, member: TreebankParser, sentences: Sequence[Sentence]) -> list[np.ndarray] | None:
        """Of a member that may split its votes; None if it has one vote a word."""
        if self.combine == "scores" and isinstance(member, ChartParser) and member.decoder.channels == ("arc",):
            return arc_probabilities(member, sentences)
        return None

    def _arc_weights(self, trees: Sequence[Tree], weights: Sequence[np.ndarray | None]) -> np.ndarray:
        first, _ = trees[0]
        total = np.zeros((len(first) + 1,) * 2, np.float32)
        for (heads, _), own in zip(trees, weights, strict=True):
            total += arc_matrix(heads) if own is None else own
        if self.combine == "votes":
            # Whole numbers, so exact: no number of arcs in common with the first tree is worth a vote.
            total = total * np.float32(len(first)) + arc_matrix(first)
        return total

    def _decode(self, bonus: np.ndarray, sentence: Sentence) -> Derivation | DataError:
        if instead := self.fallback.instead(len(sentence)):
            warn_of_size(self.decoder, sentence, f"combined with {instead}")
        scores = np.zeros((len(self.decoder.channels), *bonus.shape), np.float32)
        return decode_sentence(self.fallback, scores, bonus, sentence)


@torch.inference_mode()
def arc_probabilities(parser: ChartParser, sentences: Sequence[Sentence]) -> list[np.ndarray]:
    """A distribution over the heads of every word: the softmax of an arc-factored parser's scores.

    Returns
    -------
    One float32 (n + 2, n + 2) a sentence; the columns 1…n sum to 1, everything else, the diagonal too, is 0.
    """
    probabilities: list[np.ndarray] = [np.empty(0)] * len(sentences)
    parser.network.eval()
    for indices in prediction_batches([len(sentence) for sentence in sentences]):
        batch = parser.vocabulary.batch([sentences[i] for i in indices]).to(parser.device)
        scores = parser.network.scorer(parser.network.encode(batch).roles)[:, 0].cpu()
        for matrix, i in zip(scores, indices, strict=True):
            n = len(sentences[i])
            arcs = matrix[: n + 1, 1 : n + 1].clone()
            arcs[torch.arange(1, n + 1), torch.arange(n)] = -torch.inf
            probabilities[i] = np.zeros((n + 2, n + 2), np.float32)
            probabilities[i][: n + 1, 1 : n + 1] = arcs.softmax(0).numpy()
    return probabilities


def vote_on_relations(heads: np.ndarray, trees: Sequence[Tree]) -> tuple[str, ...]:
    """The relations of a tree's words, by the members' trees; see `EnsembleParser`.

    Parameters
    ----------
    heads : int (n + 1,)
        The tree.
    trees : sequence of (heads, relations)
        Those of the members, in their order.
    """
    chosen = []
    for d in range(1, len(heads)):
        names = [relations[d - 1] for own, relations in trees if own[d] == heads[d]]
        if not names:
            names = [relations[d - 1] for _, relations in trees if relations[d - 1] != ROOT_RELATION]
            names = [ROOT_RELATION] if heads[d] == 0 else names or [ANY_RELATION]
        chosen.append(Counter(names).most_common(1)[0][0])  # equal counts come in the order of the first of each
    return tuple(chosen)
