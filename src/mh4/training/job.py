"""The description of a training, checked before it runs."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mh4.data.errors import ErrorPolicy, Errors
from mh4.models.devices import check_device
from mh4.models.encoder import OnReading, unreported
from mh4.models.treebank_vectors import check_name
from mh4.parsers.checking import check_flag, check_number
from mh4.parsers.config import ChartConfig, Config, PerceptronConfig
from mh4.parsers.model_files import named_folder

from .schedule import Progress
from .treebanks import Files, by_name


@dataclass(frozen=True)
class TrainingJob:
    """The parser to train, the treebanks, and the settings; `mh4.training.running.run_training` does the work.

    Attributes that are not listed here are the parameters of `mh4.train`.

    Attributes
    ----------
    config : ChartConfig, GreedyConfig or PerceptronConfig
        The kind of parser and its settings, by default as published. On resumption it must equal the saved one, except
        for the limits ``max_steps`` and ``max_epochs``.
    on_reading : callable
        Called while a file of word vectors is read, with the bytes read so far and in all.
    on_preparation : callable, optional
        Called while the sentences are prepared, before the first step of a network, with the work done and in all.
    command : str, optional
        The command line of the training, recorded in meta.json.

    Raises
    ------
    TypeError
        A treebank is not a path, or a value has the wrong type.
    ValueError
        A value that is unknown, or that the kind of parser does not have; both ``resume`` and ``overwrite``.
    """

    train: Files
    dev: Files
    output: str | Path
    config: Config = field(default_factory=ChartConfig)
    device: str = "auto"
    threads: int | None = None
    resume: bool = False
    overwrite: bool = False
    errors: ErrorPolicy = "raise"
    segmenter: bool = False
    on_step: Callable[[Progress, Any], None] | None = None
    on_evaluation: Callable[[dict[str, Any]], None] | None = None
    on_reading: OnReading = unreported
    on_preparation: Callable[[int, int], None] | None = None
    command: str | None = None

    def __post_init__(self) -> None:
        self._check_treebanks()
        if not isinstance(self.output, str | Path):
            raise TypeError(f"output is the folder for the model; got {reprlib.repr(self.output)}")
        named_folder(self.output)
        check_flag("resume", self.resume)
        check_flag("overwrite", self.overwrite)
        check_flag("segmenter", self.segmenter)
        check_device(self.device)
        for name in ("on_step", "on_evaluation", "on_preparation"):
            told = getattr(self, name)
            if told is not None and not callable(told):
                raise TypeError(f"{name} is a function that is called in training; got {reprlib.repr(told)}")
        if self.threads is not None:
            check_number("threads", self.threads)
        Errors(self.errors)
        if self.resume and self.overwrite:
            raise ValueError("resume=True continues what overwrite=True would replace; choose one")
        if isinstance(self.config, PerceptronConfig):
            if self.resume:
                raise ValueError("the perceptron trains in minutes and cannot resume; start again with overwrite=True")
            if self.device == "cuda":
                raise ValueError("the perceptron trains on the CPU, so device cannot be cuda")

    def _check_treebanks(self) -> None:
        train, dev = by_name(self.train), by_name(self.dev)
        for name, treebank in (*train.items(), *dev.items()):
            if not isinstance(treebank, str | Path):
                kind = type(treebank).__name__
                raise TypeError(f"a treebank is a file, not a {kind}; mh4.write_conllu(sentences, path) makes one")
            if name is not None:
                check_name(name)
        if train.keys() != dev.keys() or not train:
            own, others = (
                ", ".join(name or "one without a name" for name in files) or "none" for files in (train, dev)
            )
            raise ValueError(f"training treebanks: {own}; development treebanks: {others}; give the same names")
        if None not in train and isinstance(self.config, PerceptronConfig):
            raise ValueError("a perceptron learns from a single treebank; networks can learn from several")

    @property
    def folder(self) -> Path:
        """The model folder."""
        return Path(self.output)
