"""Training a perceptron parser: epochs of the compiled loop, averaging, evaluation on dev after each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from mh4.data.errors import DataError, ErrorPolicy
from mh4.data.sentence import Sentence
from mh4.oracles.costs import ORACLE_NAMES
from mh4.parsers.config import PerceptronConfig
from mh4.parsers.folder import CONFIG, LOG, SEGMENTER, named_folder
from mh4.parsers.perceptron.loops import Actions, new_room, train_epoch
from mh4.parsers.perceptron.parser import PerceptronParser
from mh4.parsers.perceptron.vocabulary import PerceptronVocabulary
from mh4.parsers.perceptron.weights import averaged_lists, new_weights
from mh4.parsers.systems import get_system
from mh4.trees.closest import training_tree
from mh4.trees.evaluation import attachment_scores

from .model_folder import OF_A_MODEL, ModelFolder
from .origin import noting_origin
from .ownership import sole_owner
from .segmenter import segmenter_beside
from .treebanks import read_gold

_FEATURES, _CELLS = 1 << 16, 1 << 18  # room to begin with


class PerceptronTrainer:
    """Trains epoch by epoch; `parser` is the parser of the averaged weights so far.

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
        Transitions decided on in all of them, over which the weights are averaged.
    """

    def __init__(self, config: PerceptronConfig, sentences: Sequence[Sentence]) -> None:
        self.config = config
        self.vocabulary = PerceptronVocabulary.from_sentences(sentences, config.tag_column)
        self._system = get_system(config.system)
        self._templates = self._system.compiled_templates()
        self._actions = Actions.of(self._system, self.vocabulary.places.allowed(self.vocabulary.relations))
        self._room = new_room(self._system, self._templates, self._actions, max(map(len, sentences)))
        self._text = self.vocabulary.text(sentences)
        self._gold = self.vocabulary.gold(sentences, [training_tree(s, self._system) for s in sentences])
        self._weights = new_weights(_FEATURES, _CELLS, True)
        self.epoch = self.decisions = 0

    def train_epoch(self) -> float:
        """One pass over the sentences, shuffled; returns the share of decisions that were not optimal."""
        generator = np.random.default_rng([self.config.seed, self.epoch])
        order = generator.permutation(len(self._text.offsets) - 1)
        random = generator.integers(1, 2**63, dtype=np.uint64)
        before = self.decisions
        # In a thread, where no signal arrives: Numba crashes when Ctrl-C interrupts it while it returns a tuple.
        with ThreadPoolExecutor(1) as thread:
            self._weights, self.decisions, wrong = thread.submit(
                train_epoch,
                self._system.code,
                ORACLE_NAMES.index(self.config.oracle),
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


def train(
    train: str | Path,
    dev: str | Path,
    output: str | Path,
    config: PerceptronConfig | None = None,
    *,
    overwrite: bool = False,
    errors: ErrorPolicy = "raise",
    segmenter: str | None = None,
    on_evaluation: Callable[[dict[str, Any]], None] | None = None,
) -> PerceptronParser:
    """Train a parser and leave the model that was best on ``dev`` in the folder ``output``; returns it.

    Parameters
    ----------
    train, dev
        CoNLL-U files with gold trees.
    config : PerceptronConfig, optional
    overwrite : bool
        Start again in a folder that holds a model.
    errors : {"raise", "skip"} or callable
        What happens at a sentence that is not valid; see `Errors`. Those left out are counted in the log.
    segmenter : str, optional
        Train a segmenter beside the parser, with these options; see `mh4.training.segmenter.segmenter_options`.
    on_evaluation
        Called after every epoch with the line that goes to log.jsonl: epoch, share of decisions that were wrong,
        words_per_second, dev_uas, dev_las, best, seconds.

    Raises
    ------
    DataError
        Bad treebanks, or an output folder that holds a model already.
    """
    config = config or PerceptronConfig()
    folder = named_folder(output)
    with sole_owner(folder):
        if (folder / CONFIG).exists() and not overwrite:
            raise DataError(f"{folder}: holds a model already (start again with overwrite=True)")
        sentences, dev_sentences = read_gold(train, errors), read_gold(dev, errors)
        place = ModelFolder(folder, OF_A_MODEL, wanted={SEGMENTER} if segmenter else (), goes_on=False)
        report_evaluation = noting_origin(folder, (train, sentences), (dev, dev_sentences), on_evaluation)

        def on_epoch(report: dict[str, Any], parser: PerceptronParser) -> None:
            if report["best"]:
                place.save(lambda: parser.write(folder))
            with (folder / LOG).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(report) + "\n")
            report_evaluation(report)

        with place.noted(), segmenter_beside(folder, (train, sentences), (dev, dev_sentences), segmenter):
            return fit(config, sentences, dev_sentences, on_epoch)
