"""Training a perceptron parser: epochs of the compiled loop, averaging, evaluation on dev after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from mh4.data.sentence import Sentence
from mh4.oracles.costs import ORACLE_NAMES
from mh4.parsers.config import PerceptronConfig
from mh4.parsers.perceptron.loops import TIES, Actions, new_room, train_epoch
from mh4.parsers.perceptron.parser import PerceptronParser
from mh4.parsers.perceptron.vocabulary import PerceptronVocabulary
from mh4.parsers.perceptron.weights import averaged_lists, new_weights
from mh4.parsers.systems import get_system
from mh4.trees.closest import training_tree
from mh4.trees.evaluation import attachment_scores

_FEATURES, _CELLS = 1 << 16, 1 << 18  # initial capacity


class PerceptronTrainer:
    """Trains epoch by epoch; `parser` makes a parser with the averaged weights so far.

    Parameters
    ----------
    config : PerceptronConfig
    sentences : sequence of Sentence
        With gold trees.

    Attributes
    ----------
    epoch : int
        Epochs done.
    decisions : int
        Number of transitions chosen in all of them, over which the weights are averaged.
    """

    def __init__(self, config: PerceptronConfig, sentences: Sequence[Sentence]) -> None:
        self.config = config
        self.vocabulary = PerceptronVocabulary.from_sentences(sentences, config.tag_column)
        self._system = get_system(config.system)
        self._templates = self._system.compiled_templates()
        self._actions = Actions.of(self._system, self.vocabulary.places.allowed(self.vocabulary.relations))
        self._room = new_room(self._system, self._templates, self._actions, max(map(len, sentences)))
        self._text = self.vocabulary.text(sentences)
        self._gold = self.vocabulary.gold(sentences, [training_tree(s, self._system, config.oracle) for s in sentences])
        self._weights = new_weights(_FEATURES, _CELLS, True)
        self.epoch = self.decisions = 0

    def learn_from(self, sentences: Sequence[Sentence], trees: Sequence[np.ndarray]) -> None:
        """From the next epoch on, learn from other trees of the same sentences, given by their heads, int (n + 1,)."""
        self._gold = self.vocabulary.gold(sentences, trees)

    def train_epoch(self) -> float:
        """Make one pass over the shuffled sentences; return the share of decisions that were not optimal."""
        generator = np.random.default_rng([self.config.seed, self.epoch])
        order = generator.permutation(len(self._text.offsets) - 1)
        random = generator.integers(1, 2**63, dtype=np.uint64)
        before = self.decisions
        # In a thread, where no signal arrives: Numba crashes when Ctrl-C interrupts it while it returns a tuple.
        with ThreadPoolExecutor(1) as thread:
            self._weights, self.decisions, wrong = thread.submit(
                train_epoch,
                self._system.kernels,
                ORACLE_NAMES.index(self.config.oracle),
                TIES.index(self.config.ties),
                self._weights,
                self._templates,
                self._actions,
                self._text,
                self._gold,
                order,
                self.config.exploration_at(self.epoch),
                random,
                self.decisions,
                self._room,
            ).result()
        self.epoch += 1
        return wrong / max(self.decisions - before, 1)

    def parser(self) -> PerceptronParser:
        """A parser with the averaged weights."""
        return PerceptronParser(self.config, self.vocabulary, averaged_lists(self._weights, self.decisions))


def fit(
    config: PerceptronConfig,
    sentences: Sequence[Sentence],
    dev: Sequence[Sentence] = (),
    on_epoch: Callable[[dict[str, Any], PerceptronParser], None] | None = None,
) -> PerceptronParser:
    """Train, and return the parser of the epoch with the best LAS on dev; without dev, of the last one.

    Parameters
    ----------
    config : PerceptronConfig
    sentences, dev : sequences of Sentence
        With gold trees.
    on_epoch
        Called after each epoch with a report (epoch, wrong, words_per_second, seconds; with dev: dev_uas, dev_las,
        best) and its parser.

    Raises
    ------
    ValueError
        There are no training sentences.
    """
    if not sentences:
        raise ValueError("there are no training sentences")
    trainer = PerceptronTrainer(config, sentences)
    words = sum(map(len, sentences))
    best: tuple[float, float] = (-1.0, -1.0)
    start = time.perf_counter()
    for epoch in range(1, config.iterations + 1):
        began = time.perf_counter()
        wrong = trainer.train_epoch()
        seconds = time.perf_counter() - began
        parser = trainer.parser()
        report: dict[str, Any] = {"epoch": epoch, "wrong": wrong, "words_per_second": words / seconds}
        improved = True
        if dev:
            uas, las = attachment_scores(dev, parser.predict(dev))
            improved = (las, uas) > best
            best = max(best, (las, uas))
            report |= {"dev_uas": uas, "dev_las": las, "best": improved}
        if improved:
            chosen = parser
        if on_epoch is not None:
            on_epoch(report | {"seconds": time.perf_counter() - start}, parser)
    return chosen
