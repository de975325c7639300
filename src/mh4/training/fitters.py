"""The training of networks and of perceptrons, as steps of the life cycle in `running`."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

from mh4.data.conllu import Trees
from mh4.data.errors import DataError
from mh4.data.lemma_rules import OLDER_CASINGS
from mh4.machine import MissingPackageError
from mh4.models.checked import problems_in_words
from mh4.models.devices import deterministic, torch_threads
from mh4.models.encoder import UnusableError, unreported
from mh4.models.host_settings import settings_put_aside
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import ChartConfig, NetworkParserConfig, PerceptronConfig, differing
from mh4.parsers.definition import Definition
from mh4.parsers.folder import ModelFolder
from mh4.parsers.model_files import CALIBRATION, CONFIG, LOG, META, STATE
from mh4.parsers.perceptron.parser import PerceptronParser
from mh4.parsers.registry import new_parser
from mh4.parsers.segmenter import SEGMENTER_FILES
from mh4.parsers.vocabulary import Vocabulary

from .calibrating import calibrate_best
from .job import TrainingJob
from .origin import OnEvaluation
from .perceptron import fit
from .schedule import Progress
from .trainer import Trainer
from .training_folder import TrainingFolder
from .treebanks import Treebank, listed, read_treebanks, without_ids
from .workers import Workers

log = logging.getLogger("mh4")

Treebanks = tuple[list[Treebank], list[Treebank]]  # train and dev


class Fitter(ABC):
    """Trains one kind of parser.

    Attributes
    ----------
    resumes : bool
        Whether an interrupted training can be resumed.
    """

    resumes: bool

    @property
    def lead(self) -> bool:
        """Whether this process writes files and reports."""
        return True

    @property
    @abstractmethod
    def seed(self) -> int:
        """The random seed."""

    @abstractmethod
    def read(self) -> Treebanks:
        """Read the gold trees of train and dev."""

    @abstractmethod
    def prepare(self, treebanks: Treebanks, report: OnEvaluation | None) -> tuple[TrainingFolder, bool]:
        """Prepare for training; return the folder, and whether a segmenter has to be trained first."""

    @abstractmethod
    def fit(self) -> Progress:
        """Train, and leave the model that is best on dev in the folder."""


class PerceptronFitter(Fitter):
    """Trains an averaged perceptron."""

    resumes = False

    def __init__(self, job: TrainingJob) -> None:
        self.job = job
        self.config = cast(PerceptronConfig, job.config)

    @property
    def seed(self) -> int:
        return self.config.seed

    def read(self) -> Treebanks:
        job = self.job
        return read_treebanks(job.train, job.errors), read_treebanks(job.dev, job.errors)

    def prepare(self, treebanks: Treebanks, report: OnEvaluation | None) -> tuple[TrainingFolder, bool]:
        self.treebanks, self.report = treebanks, report
        self.place = TrainingFolder(self.job.folder, ModelFolder(self.job.folder).all_files, goes_on=False)
        return self.place, False

    def fit(self) -> Progress:
        (train,), (dev,) = self.treebanks
        progress = Progress()

        def on_epoch(report: dict[str, Any], parser: PerceptronParser) -> None:
            progress.step = progress.epoch = report["epoch"]
            progress.seconds = report["seconds"]
            if report["best"]:
                progress.best_uas, progress.best_las = report["dev_uas"], report["dev_las"]
                progress.best_step = progress.step
                self.place.save(parser.write)
            with (self.job.folder / LOG).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(report) + "\n")
            if self.report is not None:
                self.report(report)

        fit(self.config, train.sentences, dev.sentences, on_epoch)
        return progress


class NetworkFitter(Fitter):
    """Trains a network, jointly in all processes that `torchrun` started."""

    resumes = True

    def __init__(self, job: TrainingJob, stack: ExitStack) -> None:
        self.job, self.stack = job, stack
        self.config = cast(NetworkParserConfig, job.config)
        stack.enter_context(settings_put_aside(learns=True))
        stack.enter_context(torch_threads(job.threads))
        self.workers = Workers.join(job.device)
        stack.callback(self.workers.leave)

    @property
    def lead(self) -> bool:
        return self.workers.lead

    @property
    def seed(self) -> int:
        return self.config.training.seed

    def read(self) -> Treebanks:
        job = self.job
        trees: Trees = "partial" if isinstance(self.config, ChartConfig) else "required"
        train = [
            one._replace(sentences=without_ids(one.sentences, one.path))
            for one in read_treebanks(job.train, job.errors, trees)
        ]
        return train, read_treebanks(job.dev, job.errors)

    def prepare(self, treebanks: Treebanks, report: OnEvaluation | None) -> tuple[TrainingFolder, bool]:
        job, config, folder, workers = self.job, self.config, self.job.folder, self.workers
        train, self.dev = ({one.name: one.sentences for one in part} for part in treebanks)
        all_of_train, all_of_dev = ([*chain.from_iterable(part.values())] for part in (train, self.dev))
        names = [name for name in train if name is not None]
        on_reading = job.on_reading if self.lead else unreported
        try:
            with problems_in_words(Vocabulary):
                definition = Definition.learn(config, all_of_train, all_of_dev, on_reading, names)
        except (MissingPackageError, UnusableError) as error:
            raise DataError(str(error)) from None
        except ValueError as error:
            raise DataError(f"{listed(job.train)}: {error}") from None
        self.parser = new_parser(definition, job.device)
        resumes = job.resume and (folder / CONFIG).exists()
        if resumes:
            _check_definition(folder, self.parser.definition, listed(job.train))
        continues = resumes and (folder / STATE).exists()
        if resumes and not continues and (folder / META).exists():  # it has been evaluated, so it is worth keeping
            how = "start again with overwrite=True instead of resume=True"
            raise DataError(f"{folder}: holds a model, but no state to continue from, {STATE} ({how})")
        if job.resume and not continues and self.lead:  # a first start, a mistyped name, or a file was removed
            missing = f"holds no state of an interrupted training, {STATE}" if resumes else "holds no model to continue"
            level = logging.WARNING if resumes else logging.INFO
            log.log(level, "%s: %s; training starts from the beginning", folder, missing)
        self.parser.threads = job.threads or workers.threads
        self.stack.enter_context(deterministic(self.parser.device))
        there = resumes and any((folder / name).exists() for name in SEGMENTER_FILES)
        wanted = {CALIBRATION} if isinstance(self.parser, ChartParser) else set()
        outdated = () if continues else (STATE, LOG) if resumes else ModelFolder(folder).all_files
        place = TrainingFolder(folder, outdated, None if continues else self._define, wanted)
        on_step, on_preparation = (job.on_step, job.on_preparation) if self.lead else (None, None)
        self.trainer = Trainer(self.parser, train, self.dev, folder, on_step, report, workers, place, on_preparation)
        workers.gather(None)  # waits: all look at the folder before it is written to
        if continues:
            self.trainer.resume()
            if self.lead:
                self._define(ModelFolder(folder))  # the limits may have changed
        return place, self.lead and job.segmenter and not there

    def _define(self, folder: ModelFolder) -> None:
        folder.write_definition(*self.parser.definition)

    def fit(self) -> Progress:
        progress = self.trainer.run()
        if self.lead:
            calibrate_best(self.parser, self.dev, self.job.folder)
        del self.trainer  # it holds the process group, see `Workers.leave`
        return progress


def _check_definition(folder: Path, definition: Definition[Any], train: str) -> None:
    """Raise DataError unless the training of the model in ``folder`` can be resumed with these settings."""
    config, vocabulary, encoder_files = definition
    there = ModelFolder(folder)
    if (kind := there.config.kind) != config.kind:
        problem = f"holds a {kind} parser, not a {config.kind} parser"
        raise DataError(f"{folder}: {problem} (resume with the options that it was trained with)")
    saved_config, saved_vocabulary, saved_files = there.definition(type(config))
    limits = {name: getattr(config.training, name) for name in ("max_steps", "max_epochs")}
    saved_config = replace(saved_config, training=replace(saved_config.training, **limits))
    if differences := differing(saved_config, config):
        problem = f"was made with other settings: {', '.join(differences)}"
        raise DataError(f"{folder / CONFIG}: {problem} (resume with the same ones)")
    rules = saved_vocabulary.columns.lemma_rules if saved_vocabulary.columns is not None else ()
    if any(casing in OLDER_CASINGS for casing, *_ in rules):
        problem = "was begun by an earlier version of mh4"
        raise DataError(f"{folder}: {problem} (finish it with that one, or start again with overwrite=True)")
    changed = saved_files.keys() ^ encoder_files.keys()
    changed |= {name for name in saved_files.keys() - changed if saved_files[name] != encoder_files[name]}
    if saved_vocabulary != vocabulary or changed:
        files = (
            "" if saved_vocabulary != vocabulary else f", or with other vectors or encoder: {min(changed)} would differ"
        )
        raise DataError(f"{folder}: was trained on another treebank than {train}{files}")
