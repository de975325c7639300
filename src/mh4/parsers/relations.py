"""Chooses the relations of a tree: the best one of each arc, or jointly if some may occur only once under a head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mh4.data.sentence import Sentence
from mh4.data.values import DEPREL, sound
from mh4.models.devices import HostCopy, send

from .relation_places import RelationPlaces
from .request import Request

NO_LIMIT = -1


class ChosenRelations(NamedTuple):
    """Relations of A arcs, on their way to the host.

    Attributes
    ----------
    classes : int64 (A,)
        The relation of each arc, on the device of the scores.
    """

    classes: Tensor
    on_its_way: HostCopy

    @property
    def best(self) -> np.ndarray:
        """`classes` on the host."""
        return self.on_its_way.tensors()[0].numpy()

    @property
    def logs(self) -> np.ndarray:
        """Log-probabilities of all R relations, float32 (A, R), −inf for forbidden ones.

        (A, 0) unless the request weighs relations.
        """
        return self.on_its_way.tensors()[1].numpy()


class TreeRelations(NamedTuple):
    """Relations of the n words of a tree.

    Attributes
    ----------
    names : tuple of str
    logs : float64 (n,)
        Log-probability of each; 0 where the relation was given, or if the request does not weigh relations.
    given : bool (n,)
        Whether the relation was given.
    best_logs : float64 (n,)
        Log-probability of the best relation, even if limits rule it out; 0 as in ``logs``.
    """

    names: tuple[str, ...]
    logs: np.ndarray
    given: np.ndarray
    best_logs: np.ndarray


class RelationReader:
    """Chooses relations by their scores.

    Parameters
    ----------
    names : sequence of str
        The relations of the vocabulary.
    places : RelationPlaces
        Which relations may stand below the root, and which below words.
    """

    def __init__(self, names: Sequence[str], places: RelationPlaces) -> None:
        self._names = np.array([sound(name, DEPREL) for name in names], dtype=object)
        self._numbers = {name: number for number, name in enumerate(names)}
        self.allowed = places.allowed(names)

    def choose(self, scores: Tensor, heads: Tensor, request: Request) -> ChosenRelations:
        """The best allowed relation of each arc, by scores (A, R)."""
        if not self.allowed.all():
            forbidden = torch.from_numpy(~self.allowed).to(scores.device)
            scores = scores.masked_fill(forbidden[(heads == 0).long()], float("-inf"))
        logs = scores.log_softmax(1) if request.weighs_relations else scores[:, :0]
        best = scores.argmax(1)
        return ChosenRelations(best, HostCopy(best, logs))

    def settled(
        self,
        chosen: ChosenRelations,
        heads: np.ndarray,
        places: Sequence[Sequence[slice]],
        sentences: Sequence[Sentence],
        request: Request,
    ) -> ChosenRelations:
        """The relations of whole trees: those given with heads that are kept, and within the limits of the request.

        Parameters
        ----------
        chosen
            The best relation of each of A arcs. A given relation that the model does not have leaves it in place.
        heads : int (A,)
        places : sequence of B sequences of slice
            The arcs to the words 1…n of each tree of each sentence.
        sentences : sequence of B sentences
        """
        best, groups = chosen.best.copy(), self._groups(request.unique)
        for sentence, own in zip(sentences, places, strict=True):
            given = np.flatnonzero(given_relations(sentence)).tolist() if request.keep_heads else []
            for arcs in own:
                of_tree = best[arcs]  # a view
                taken: list[str | None] = [None] * len(of_tree)
                for i in given:
                    of_tree[i] = self._numbers.get(sentence.relations[i], of_tree[i])
                    taken[i] = sentence.relations[i].partition(":")[0]
                if request.unique:
                    of_words = np.append(-1, heads[arcs])
                    limit_relations(of_words, of_tree, chosen.logs[arcs], groups, request.unique, taken)
        classes = torch.from_numpy(best)
        return ChosenRelations(send(classes, chosen.classes.device), HostCopy(classes, torch.from_numpy(chosen.logs)))

    def check_limits(self, unique: Sequence[str]) -> list[str]:
        """Return the relations that the model lacks; ValueError if the others cannot be limited to one per head."""
        groups = self._groups(unique)
        if (groups == NO_LIMIT).all():
            raise ValueError(f"the model has none of the relations {', '.join(unique)}, so they cannot be kept unique")
        if not ((groups == NO_LIMIT) & self.allowed[0]).any():
            raise ValueError("no relation is left for several words with the same head")
        return [name for number, name in enumerate(unique) if number not in groups]

    def _groups(self, unique: Collection[str]) -> np.ndarray:
        """int (R,): index in ``unique`` of each relation, subtypes included, or `NO_LIMIT`."""
        numbers = {name: number for number, name in enumerate(unique)}
        groups = [numbers.get(str(name).partition(":")[0], NO_LIMIT) for name in self._names]
        return np.array(groups, np.int64)

    def read(self, chosen: ChosenRelations, arcs: slice, sentence: Sentence, request: Request) -> TreeRelations:
        """The relations of a tree; ``arcs`` is the slice of ``chosen`` with the arcs to its words 1…n."""
        best = chosen.best[arcs]
        given = np.zeros(len(best), bool)
        names = self._names[best]
        if request.keep_heads:
            given = given_relations(sentence)
            names = np.where(given, np.array(sentence.relations, dtype=object), names)
        if not request.weighs_relations:
            return TreeRelations(tuple(names.tolist()), np.zeros(len(best)), given, np.zeros(len(best)))
        logs = chosen.logs[arcs]
        best_logs = np.where(given, 0.0, logs.max(1).astype(np.float64))
        own = np.where(given, 0.0, logs[np.arange(len(best)), best].astype(np.float64))
        return TreeRelations(tuple(names.tolist()), own, given, best_logs)


def given_relations(sentence: Sentence) -> np.ndarray:
    """bool (n,): whether a word keeps its relation along with its given head; it needs to have both."""
    return (sentence.heads >= 0) & np.array([name != "_" for name in sentence.relations])


def limit_relations(
    heads: np.ndarray,
    best: np.ndarray,
    logs: np.ndarray,
    groups: np.ndarray,
    limited: Sequence[str],
    taken: Sequence[str | None],
) -> None:
    """Change ``best`` in place to the best relations with each limited relation at most once under a head.

    For each head that breaks the limits, this is an assignment problem: each child gets one of the limited relations,
    which only one child can have, or its best unlimited relation. Words below the root keep theirs.

    Parameters
    ----------
    heads : int (n + 1,)
    best : int (n,)
        The best relation of each word by itself.
    logs : float (n, R)
        Log-probabilities of relations; −inf for forbidden ones.
    groups : int (R,)
        Index in ``limited`` of each relation, or `NO_LIMIT`.
    limited : sequence of str
        Relations without subtypes.
    taken : sequence of n str or None
        Relations that words keep, without subtypes; None for the others.
    """
    from scipy.optimize import linear_sum_assignment

    open_words = np.array([name is None for name in taken], bool)
    held: dict[int, set[str]] = {}
    for head, name in zip(heads[1:].tolist(), taken, strict=True):
        if name is not None:
            held.setdefault(head, set()).add(name)
    for h in range(1, len(heads)):
        children = np.flatnonzero((heads[1:] == h) & open_words)
        own = groups[best[children]]
        counts = Counter(own[own != NO_LIMIT].tolist())
        used = held.get(h, set())
        if all(count == 1 and limited[g] not in used for g, count in counts.items()):
            continue
        left = [g for g, name in enumerate(limited) if name not in used]
        # Columns: each limited relation that is left, then one column per child for its best unlimited relation.
        options = np.full((len(children), len(left)), -1)
        gains = np.full((len(children), len(left) + len(children)), -np.inf)
        for column, g in enumerate(left):
            options[:, column], gains[:, column] = _best_of(logs[children], groups == g)
        rows = np.arange(len(children))
        free, gains[rows, len(left) + rows] = _best_of(logs[children], groups == NO_LIMIT)
        _, columns = linear_sum_assignment(-gains)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            best[children[row]] = options[row, column] if column < len(left) else free[row]


def _best_of(logs: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best allowed column of each row, int (rows,), and its logarithm, −inf where there is none."""
    logs = np.where(allowed, logs, -np.inf)
    return logs.argmax(1), logs.max(1)
