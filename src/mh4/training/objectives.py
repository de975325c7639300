"""Losses of trees: structured losses for chart parsers, a hinge loss of single transitions for greedy parsers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from mh4.data.sentence import Sentence
from mh4.decoders.closest import closest_tree
from mh4.decoders.numbers import LARGEST_SUM
from mh4.models.devices import HostCopy, send, send_together
from mh4.models.loss import PartDifference, find_violations, log_loss
from mh4.models.network import Encoded
from mh4.models.rows import take_cells
from mh4.models.transition_scorer import BiaffineArrays, ScorerArrays, step_hinge
from mh4.oracles.costs import ORACLE_NAMES
from mh4.parsers.chart import ChartParser, split_scores
from mh4.parsers.greedy import GreedyParser
from mh4.parsers.network_loops import Decisions, note_decisions
from mh4.parsers.profiling import stage
from mh4.transitions.arrays.state import Candidates, State
from mh4.trees.closest import known_part, training_tree

SCORES_LOST = "scores are no numbers"
FEWEST_HALVED = 32  # sentences; for fewer, starting a GPU takes about as long as its work


class DivergedError(ValueError):
    """Training has diverged: gradients or weights are not finite, or the decoder rejects the scores."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"training diverged: {problem}")


class Objective(ABC):
    """The loss of the trees in a batch."""

    reason: str
    """Why some gold trees are replaced, for the message that counts them."""

    @abstractmethod
    def training_tree(self, sentence: Sentence) -> np.ndarray | None:
        """Heads (n + 1,) to learn: the gold tree, or the closest one that can be built; None if its chart is too large.

        Unknown heads, −1, stay unknown.
        """

    @abstractmethod
    def start(self, encoded: Encoded, trees: Sequence[np.ndarray], epoch: int) -> Callable[[], Tensor]:
        """Start to score a batch; return a function that decodes it and returns its loss, summed over the batch.

        Work that the caller gives to a GPU between the two calls runs while the CPU decodes. Scoring and decoding are
        booked as stages of their own, see `stage`.
        """

    def loss(self, encoded: Encoded, trees: Sequence[np.ndarray], epoch: int) -> Tensor:
        """The loss, summed over a batch."""
        return self.start(encoded, trees, epoch)()


class ChartObjective(Objective):
    """A loss over all trees of the decoder's class, the same in every epoch; in an ensemble, the mean over members."""

    def __init__(self, parser: ChartParser) -> None:
        self.parser = parser
        self.members = parser.network.scorer.members
        self.reason = f"are outside the class of {parser.decoder.name}"

    def training_tree(self, sentence: Sentence) -> np.ndarray | None:
        """See `Objective`."""
        decoder = self.parser.decoder
        if not self._fits(len(sentence)):
            return None
        whole = (sentence.heads >= 0).all()
        return closest_tree(sentence.padded_heads, decoder) if whole else known_part(sentence.padded_heads, decoder)

    def _fits(self, n: int) -> bool:
        return self.parser.decoder.fits(n)

    @staticmethod
    def _halves(encoded: Encoded, trees: Sequence[np.ndarray]) -> list[tuple[Encoded, Sequence[np.ndarray]]]:
        """Vectors and trees of both halves of a large batch, so that a GPU scores one while the other is decoded.

        A small batch, or one on the CPU, stays whole.
        """
        if encoded.roles.device.type == "cpu" or len(trees) < FEWEST_HALVED:
            return [(encoded, trees)]
        halves = slice(len(trees) // 2), slice(len(trees) // 2, None)
        return [(Encoded._make(own if own is None else own[half] for own in encoded), trees[half]) for half in halves]

    def _of_members(
        self, scores: Tensor, encoded: Encoded, trees: Sequence[np.ndarray]
    ) -> tuple[list[Tensor], Sequence[np.ndarray]]:
        """Each member's scores and arc bonus, as if for a sentence of its own, and the trees of these sentences.

        The K members of the scorer follow each other: scores are (B · K, C, N, N), the bonus (B · K, N, N). There is no
        bonus unless relations add to the scores of trees.
        """
        members = self.members
        bonus = [own.repeat_interleave(members, 0) for own in self.parser.arc_bonus(encoded.states)]
        return [scores.unflatten(1, (members, -1)).flatten(0, 1), *bonus], [
            tree for tree in trees for _ in range(members)
        ]

    @contextmanager
    def _decoding(self, copy: HostCopy) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Wait for the scores and the arc bonus, None if relations do not add to tree scores; decoding goes inside.

        Raises DivergedError if the decoder rejects the scores as too large or not finite.
        """
        with stage("score"):
            scores, bonus = split_scores(copy)
        try:
            with stage("decode"):
                yield scores, bonus
        except ValueError as error:
            if np.abs(scores).max() < LARGEST_SUM / scores.shape[-1]:
                raise
            raise DivergedError(SCORES_LOST) from error


class StructuredHinge(ChartObjective):
    """Cost-augmented structured hinge (Gómez-Rodríguez, Shi & Lee 2018, section 4)."""

    def start(self, encoded: Encoded, trees: Sequence[np.ndarray], epoch: int) -> Callable[[], Tensor]:
        scorer, device = self.parser.network.scorer, self.parser.device
        scored = []
        with stage("score"), torch.no_grad():
            for half, own in self._halves(encoded, trees):
                products, scores = scorer.products_and_scores(half.roles)
                of_members, own_trees = self._of_members(scores, half, own)
                scored.append((products, HostCopy(*of_members), own_trees))

        def finish() -> Tensor:
            violations = PartDifference.joined([self._violations(scores, own) for _, scores, own in scored])
            if self.members > 1:
                violations = violations.of_members(self.members, len(self.parser.decoder.channels))
            products = [half for half, _, _ in scored]
            all_products = products[0] if len(products) == 1 else torch.cat(products)
            sentences, parts, weights = map(torch.from_numpy, violations[:3])
            weights = send(weights, device)
            loss = (scorer.score_parts(encoded.roles, all_products, sentences, parts) * weights).sum() + violations.cost
            return (loss + self.parser.bonus_difference(encoded.states, violations.changed)) / self.members

        return finish

    def _violations(self, copy: HostCopy, trees: Sequence[np.ndarray]) -> tuple[PartDifference, int]:
        """The result of `find_violations`, and the number of sentences."""
        with self._decoding(copy) as (scores, bonus):
            return find_violations(self.parser.decoder, scores, trees, self.parser.threads, bonus), len(trees)


class LogLoss(ChartObjective):
    """The negative log-probability of the gold tree, perhaps with cost augmentation; see `log_loss`."""

    def __init__(self, parser: ChartParser, cost_augmented: bool) -> None:
        super().__init__(parser)
        self.cost_augmented = cost_augmented

    def _fits(self, n: int) -> bool:
        decoder = self.parser.decoder
        return super()._fits(n) and decoder.sums_bytes(n) <= decoder.memory_limit

    def start(self, encoded: Encoded, trees: Sequence[np.ndarray], epoch: int) -> Callable[[], Tensor]:
        scorer, scored = self.parser.network.scorer, []
        with stage("score"):
            for half, own in self._halves(encoded, trees):
                scores, own_trees = self._of_members(scorer.products_and_scores(half.roles)[1], half, own)
                scored.append((scores, HostCopy(*scores), own_trees))
        return lambda: torch.stack([self._loss(*half) for half in scored]).sum() / self.members

    def _loss(self, all_scores: Sequence[Tensor], copy: HostCopy, trees: Sequence[np.ndarray]) -> Tensor:
        parser = self.parser
        with self._decoding(copy) as (scores, bonus):
            value, *gradients = log_loss(parser.decoder, scores, trees, self.cost_augmented, parser.threads, bonus)
        # A surrogate, linear in the scores, with the gradient of the loss; then its value is corrected.
        wanted = gradients[: len(all_scores)]  # the second is for the bonus, if there is one
        sent = send_together([torch.from_numpy(own) for own in wanted], parser.device)
        surrogate = torch.stack([(own * slope).sum() for own, slope in zip(all_scores, sent, strict=True)]).sum()
        return surrogate - surrogate.detach() + value


class TransitionHinge(Objective):
    """The hinge loss of every decision in one derivation per sentence; an oracle says which transitions are optimal."""

    def __init__(self, parser: GreedyParser) -> None:
        self.parser = parser
        self.oracle = ORACLE_NAMES.index(parser.config.transitions.oracle)
        self.reason = f"cannot be built by {parser.system.name}"
        self._decisions = Decisions.empty(64, 256, len(parser.roles))

    def training_tree(self, sentence: Sentence) -> np.ndarray | None:
        return training_tree(sentence, self.parser.system, self.parser.config.transitions.oracle)

    def start(self, encoded: Encoded, trees: Sequence[np.ndarray], epoch: int) -> Callable[[], Tensor]:
        """See `Objective`; from some epoch on, wrong predictions may be followed."""
        parser = self.parser
        with stage("score"):
            scorer = parser.network.scorer.arrays(encoded.roles)
        exploration = parser.config.transitions.explorations_at(epoch)
        seeds = torch.randint(2**31, (len(trees),), generator=parser.randomness.on()).tolist()
        return lambda: self._loss(encoded, trees, scorer, exploration, seeds)

    def _loss(
        self,
        encoded: Encoded,
        trees: Sequence[np.ndarray],
        scorer: ScorerArrays | BiaffineArrays,
        exploration: tuple[float, float],
        seeds: Sequence[int],
    ) -> Tensor:
        parser = self.parser
        with stage("decode"):
            room = parser.new_room(max(map(len, trees)) - 1)
            noted = [
                self._follow(scorer, i, tree, exploration, seed, room)
                for i, (tree, seed) in enumerate(zip(trees, seeds, strict=True))
            ]
        first_context = np.cumsum([0, *(len(decisions.positions) for decisions, _ in noted)])
        first_step = np.cumsum([0, *(steps for _, steps in noted)])

        columns = (
            [decisions.positions.astype(np.int64) for decisions, _ in noted],
            [np.repeat(np.arange(len(noted)), np.diff(first_context))],
            [d.contexts + first for (d, _), first in zip(noted, first_context[:-1], strict=True)],
            [decisions.transitions.astype(np.int64) for decisions, _ in noted],
            [d.steps + first for (d, _), first in zip(noted, first_step[:-1], strict=True)],
            [decisions.optimal for decisions, _ in noted],
        )
        positions, sentences, contexts, transitions, steps, optimal = send_together(
            [torch.from_numpy(np.concatenate(arrays)) for arrays in columns], parser.device
        )
        scores = parser.network.scorer(encoded.roles, sentences, positions)
        scores = take_cells(scores, contexts, transitions)
        return step_hinge(scores, steps, optimal, int(first_step[-1]))

    def _follow(
        self,
        scorer: ScorerArrays | BiaffineArrays,
        sentence: int,
        tree: np.ndarray,
        exploration: tuple[float, float],
        seed: int,
        room: tuple[State, Candidates, np.ndarray],
    ) -> tuple[Decisions, int]:
        """The decisions of one derivation, and the number of their steps."""
        parser = self.parser
        while True:
            contexts, candidates, steps = note_decisions(
                parser.system.kernels,
                self.oracle,
                scorer,
                sentence,
                tree,
                parser.roles,
                exploration,
                parser.network.scorer.dropout.current,
                seed,
                *room,
                self._decisions,
            )
            if contexts >= 0:
                d = self._decisions
                cut = Decisions(
                    d.positions[:contexts].copy(),
                    *(column[:candidates].copy() for column in (d.contexts, d.transitions, d.steps, d.optimal)),
                )
                return cut, steps
            size = 2 * len(self._decisions.positions)
            self._decisions = Decisions.empty(size, 4 * size, len(parser.roles))


def make_objective(parser: ChartParser | GreedyParser) -> Objective:
    """The objective of a parser."""
    if isinstance(parser, GreedyParser):
        return TransitionHinge(parser)
    if parser.config.loss == "hinge":
        return StructuredHinge(parser)
    return LogLoss(parser, cost_augmented=parser.config.loss == "softmax-margin")
