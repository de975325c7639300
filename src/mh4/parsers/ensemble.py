"""Ensembles: the trees of several trained parsers, combined by parsing once more (Sagae and Lavie 2006).

Members vote on arcs, and a decoder finds the tree with the most votes. So the result always belongs to the decoder's
class of trees and, with ``single_root``, has one root child, whatever the members propose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import torch

from mh4.data.annotation import Annotation
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.decoders import InfeasibleError, get_decoder
from mh4.decoders.fallback import Fallback
from mh4.decoders.trees import arc_matrix, given_heads_bonus

from .answers import Answers
from .base import Parser
from .chart import ChartParser, infeasible, size_warning
from .relation_places import RelationPlaces
from .relations import given_relations
from .request import ANNOTATED, HEADS, Request
from .runtime import check_combination

Tree = tuple[np.ndarray, tuple[str, ...]]  # heads with an entry for the root in front, relations without one

TIE = np.float32(2**-16)  # share of a vote that breaks ties between sums of probabilities; larger than their rounding
ANY_RELATION = "dep"  # UD's relation for arcs that no other relation fits


class EnsembleParser(Parser, kind="ensemble"):
    """Several parsers that decide together.

    Parameters
    ----------
    members : sequence of Parser
        At least one, the best first; all trained on the same annotation scheme.
    decoder : str
        Finds the tree: a name that `mh4.decoders.get_decoder` knows.
    combine : {"votes", "scores"}
        ``votes``: each member has one vote per word, for its head; of several trees with the most votes, one closest to
        the first member's tree is taken. ``scores``: a member that scores single arcs (decoders ``mst``, ``eisner``,
        ``1ec-first-order``) splits each vote among all heads, by a softmax of its scores; the others vote as above, and
        ties are broken as above.
    single_root : bool, optional
        Whether exactly one word is attached to the root; by default, whether all members require it.

    Raises
    ------
    ValueError
        No member, an unknown decoder or an unknown combination; the message lists the known ones.

    Notes
    -----
    Members whose tree has an arc vote on its relation. If there are none, all members that attach the word to a word
    vote (without any, it is ``dep``); for an arc from the root, the relations of all root children in the members'
    trees count as votes. Each other column is voted on word by word by the members that predict it. Ties go to the
    first member among the voters. Members that were trained on several treebanks parse as the requested one.
    """

    can_keep_heads = True

    def __init__(
        self,
        members: Sequence[Parser],
        decoder: str = "mst",
        combine: str = "votes",
        single_root: bool | None = None,
    ) -> None:
        if not members:
            raise ValueError("an ensemble needs at least one model")
        check_combination(combine)
        self.members = tuple(members)
        self.segmenter = next((member.segmenter for member in members if member.segmenter is not None), None)
        self.places = RelationPlaces(
            frozenset().union(*(member.places.only_root for member in members)),
            frozenset().union(*(member.places.only_words for member in members)),
        )
        several = [member.treebanks for member in members if member.treebanks]
        self.treebanks = tuple(name for name in (several or [()])[0] if all(name in own for own in several))
        self.spaced_words = any(member.spaced_words for member in members)
        if single_root is None:
            single_root = all(member.single_root for member in members)
        self.single_root = single_root
        self.decoder = get_decoder(decoder, single_root=single_root)
        self.fallback = Fallback(self.decoder, by_arcs=True)
        self.combine = combine
        self.annotates = frozenset().union(*(member.annotates for member in members))
        self.needs = frozenset().union(*(member.needs for member in members))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return type(self), (self.members, self.decoder.name, self.combine, self.single_root)

    @property
    def longest(self) -> int:
        return min(member.longest for member in self.members)

    def unparsable(self, sentence: Sentence) -> DataError | None:
        return next(filter(None, (member.unparsable(sentence) for member in self.members)), None)

    def limit_charts(self, most: int) -> None:
        for member in self.members:
            member.limit_charts(most)
        self.decoder.memory_limit = most
        self.fallback = Fallback(self.decoder, by_arcs=True)

    def __repr__(self) -> str:
        return f"<EnsembleParser: {', '.join(map(repr, self.members))}>"

    def _check_certainty(self, request: Request) -> None:
        raise ValueError("an ensemble counts votes and has no exact decoder with margins (use one of its models)")

    def _answer(self, sentences: Sequence[Sentence], request: Request) -> Answers:
        trees = Answers([Annotation()] * len(sentences))
        if request.heads:
            trees = self._trees(sentences, request)
        for i, columns in enumerate(self._columns(sentences, request)):
            if i not in trees.errors:
                trees.annotations[i] = replace(trees.annotations[i], **columns)  # type: ignore[arg-type]
        return trees

    def _columns(self, sentences: Sequence[Sentence], request: Request) -> list[dict[str, tuple[str, ...]]]:
        """The columns besides the tree, by a vote of the members.

        A member outvoted on one column of a word has no vote on the following ones, so that the values fit together.
        """
        votes: list[list[Annotation]] = []
        for member in self.members:
            if columns := request.columns & member.annotates:
                treebank = request.treebank if member.treebanks else None
                own = Request(predict=columns, overwrite=request.overwrite, treebank=treebank)
                votes.append(member.attempt(sentences, own).checked())
        return [_elected([one[i] for one in votes]) for i in range(len(sentences))]

    def _reason(self, columns: frozenset[str]) -> str:
        return self.members[0]._reason(columns)

    def _trees(self, sentences: Sequence[Sentence], request: Request) -> Answers:
        """The combined trees. Members vote as if no heads were given; only the choice of the tree respects these."""
        answers = Answers([Annotation()] * len(sentences))
        ballots = [
            self._ballots(member, sentences, request.treebank if member.treebanks else None, answers)
            for member in self.members
        ]
        for i, sentence in enumerate(sentences):
            if i in answers.errors:
                continue
            trees = [(own.annotations[i].padded_heads, own.annotations[i].tree[1]) for own, _ in ballots]
            bonus = self._arc_weights(trees, [votes[i] for _, votes in ballots])
            if request.keep_heads:
                bonus += given_heads_bonus([sentence.padded_heads], len(sentence) + 2)[0]
            if instead := self.fallback.instead(len(sentence)):
                answers.warnings.append(size_warning(self.decoder, sentence, f"combined with {instead}"))
            scores = np.zeros((len(self.decoder.channels), *bonus.shape), np.float32)
            try:
                heads = self.fallback.decode(scores, bonus).heads
            except InfeasibleError as error:
                answers.errors[i] = infeasible(sentence, error, self.decoder.single_root)
                continue
            relations = vote_on_relations(heads, trees)
            if request.keep_heads:
                given = zip(given_relations(sentence), sentence.relations, relations, strict=True)
                relations = tuple(own if stays else voted for stays, own, voted in given)
            answers.annotations[i] = Annotation(heads[1:], relations)
        return answers

    def _ballots(
        self, member: Parser, sentences: Sequence[Sentence], treebank: str | None, answers: Answers
    ) -> tuple[Answers, list[np.ndarray]]:
        """A member's trees, and its votes on their arcs; its errors and warnings are added to ``answers``."""
        if self.combine == "scores" and isinstance(member, ChartParser) and member.decoder.channels == ("arc",):
            found, scores = member.annotate_and_score(sentences, treebank)
            votes = [arc_probabilities(own) for own in scores]
        else:
            found = member.attempt(sentences, Request(predict=HEADS, treebank=treebank))
            votes = [
                arc_matrix(one.padded_heads) if one.heads is not None else np.empty((0, 0), np.float32)
                for one in found.annotations
            ]
        answers.errors.update({i: error for i, error in found.errors.items() if i not in answers.errors})
        answers.warnings += found.warnings
        return found, votes

    def _arc_weights(self, trees: Sequence[Tree], votes: Sequence[np.ndarray]) -> np.ndarray:
        """Sums of votes, plus a small bonus on the arcs of the first member's tree, which breaks ties."""
        first, _ = trees[0]
        total = reduce(np.add, votes)
        if (total == np.rint(total)).all():
            # Whole votes, scaled to outweigh any number of arcs in common with the first tree: float32 sums are exact.
            return total * np.float32(len(first)) + arc_matrix(first)
        return total + TIE * arc_matrix(first)


def _elected(votes: Sequence[Annotation]) -> dict[str, tuple[str, ...]]:
    """The winning values of each column, for the words of one sentence; see `EnsembleParser._columns`."""
    found: dict[str, list[str]] = {}
    columns = {name: [getattr(one, name) for one in votes] for name in ANNOTATED}
    columns = {name: own for name, own in columns.items() if any(values is not None for values in own)}
    words = len(next(values for own in columns.values() for values in own if values is not None)) if columns else 0
    for word in range(words):
        voters: Sequence[int] = range(len(votes))
        for name, own in columns.items():
            able = [one for one in voters if own[one] is not None]
            values = [own[one][word] for one in able] or [values[word] for values in own if values is not None]
            winner = Counter(values).most_common(1)[0][0]
            voters = [one for one in voters if own[one] is None or own[one][word] == winner]
            found.setdefault(name, []).append(winner)
    return {name: tuple(values) for name, values in found.items()}


def arc_probabilities(scores: np.ndarray) -> np.ndarray:
    """A distribution over the heads of every word: the softmax of arc scores, float32 (1, n + 2, n + 2).

    Returns
    -------
    float32 (n + 2, n + 2); the columns 1…n sum to 1, everything else, the diagonal too, is 0.
    """
    n = scores.shape[-1] - 2
    arcs = torch.from_numpy(scores[0, : n + 1, 1 : n + 1].copy())
    arcs[torch.arange(1, n + 1), torch.arange(n)] = -torch.inf
    probabilities = np.zeros((n + 2, n + 2), np.float32)
    probabilities[: n + 1, 1 : n + 1] = arcs.softmax(0).numpy()
    return probabilities


def vote_on_relations(heads: np.ndarray, trees: Sequence[Tree]) -> tuple[str, ...]:
    """The relations of a tree's words, by the members' trees; see `EnsembleParser`.

    Parameters
    ----------
    heads : int (n + 1,)
        The tree.
    trees : sequence of (heads, relations)
        The members' trees, in the order of the members.
    """
    of_roots = [name for own, names in trees for h, name in zip(own[1:], names, strict=True) if h == 0]
    chosen = []
    for d in range(1, len(heads)):
        names = [relations[d - 1] for own, relations in trees if own[d] == heads[d]]
        if not names and heads[d] == 0:
            names = of_roots
        elif not names:
            names = [relations[d - 1] for own, relations in trees if own[d] > 0] or [ANY_RELATION]
        chosen.append(Counter(names).most_common(1)[0][0])  # in a tie, the first one counted
    return tuple(chosen)
