"""``mh4 train``."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mh4.machine import INTERRUPTED, Terminated

from .options import (
    DEFAULT_DECODER,
    DEFAULT_PRESET,
    PRESET_HELP,
    DecoderName,
    Device,
    DeviceOption,
    Preset,
    SettingOption,
    SkipBadOption,
    ThreadsOption,
    error_policy,
    files_by_name,
    in_options,
    messages,
    named_files,
    say,
)
from .progress import EpochsDisplay, TrainingDisplay

if TYPE_CHECKING:
    from mh4.parsers.config import Config
    from mh4.training.job import TrainingJob


class Scorer(StrEnum):
    """Scorers of the transitions of greedy parsers."""

    bilstm = "bilstm"
    perceptron = "perceptron"


class Loss(StrEnum):
    """Training losses of chart parsers."""

    hinge = "hinge"
    softmax_margin = "softmax-margin"
    crf = "crf"


class Precision(StrEnum):
    """Floating-point formats of layers of the network."""

    fp32 = "fp32"
    bf16 = "bf16"


TreebankArgument = Annotated[
    str | None,
    typer.Argument(
        help="Training treebank: CoNLL-U with gold trees or, with --decoder, partial trees.",
        metavar="TRAIN",
        show_default=False,
    ),
]
TreebanksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--treebank",
        metavar="NAME=FILE",
        help="Instead of TRAIN: one of several treebanks that train one model; each needs a --dev.",
    ),
]
DevOption = Annotated[
    list[str],
    typer.Option(
        metavar="FILE|NAME=FILE",
        help="Development treebank for model selection and early stopping; one for each --treebank.",
    ),
]
DecoderOption = Annotated[
    DecoderName | None,
    typer.Option(help="Decoder: class of trees and factorisation.", show_default=DEFAULT_DECODER.value),
]
SystemOption = Annotated[
    str | None,
    typer.Option(
        help="Train a greedy parser with this transition system instead: arc-hybrid, mh4, arc-standard, arc-eager, "
        "covington or lr-spine."
    ),
]
OracleOption = Annotated[
    str | None,
    typer.Option(
        help="With --system: static, or dynamic (not for mh4). Also all-pairs (covington), chart-order (mh4, as "
        "published), exact (arc-standard and arc-eager: trains on non-projective trees as they are) and approximate "
        "(arc-eager: like exact, in linear time).",
        show_default="dynamic if the system has one",
    ),
]
ScorerOption = Annotated[Scorer, typer.Option(help="With --system: what scores the transitions.")]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Model folder.",
        show_default="models/TREEBANK-DECODER-SEED or models/TREEBANK-SYSTEM-SCORER-SEED",
    ),
]
SeedOption = Annotated[
    int, typer.Option(min=0, max=2**63 - 1, help="Random seed; on one device, equal seeds give equal models.")
]
ManyRootsOption = Annotated[bool, typer.Option("--many-roots", help="Allow several children of the root.")]
EpochsOption = Annotated[
    int | None, typer.Option(min=1, help="Stop after at most this many passes over the training treebank.")
]
StepsOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Stop after at most this many minibatches.", show_default="100000; no limit in preset pretrained"
    ),
]
PresetOption = Annotated[Preset | None, typer.Option(help=PRESET_HELP, show_default=DEFAULT_PRESET.value)]
EncoderOption = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER|NAME",
        help="Pretrained transformer to build on: a folder, or a name on the hub (needs the extra transformers).",
    ),
]
VectorsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Word vectors to build on: text (.vec, GloVe), also .gz, .xz or .bz2; word2vec .bin; "
        "fastText .bin (needs the extra vectors).",
    ),
]
VectorsKeepOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="With --vectors: keep the first N words of the file in the model, and those of the treebanks.",
        show_default="200000",
    ),
]
LossOption = Annotated[
    Loss | None,
    typer.Option(
        help="With --decoder: training loss. crf and softmax-margin sum over all trees (not with 1ec).",
        show_default="hinge",
    ),
]
MembersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=100,
        metavar="K",
        help="With --decoder: K scorers on one encoder, an ensemble in one model; their scores are averaged.",
        show_default="1",
    ),
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option(
        help="Precision of MLPs, classifiers and transformers in training; bf16 needs a GPU or a CPU that supports "
        "it. Everything else is fp32.",
        show_default="fp32",
    ),
]
SegmenterOption = Annotated[
    bool, typer.Option("--segmenter/--no-segmenter", help="Also train a segmenter for raw text.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue from the last evaluation.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace the model in the folder.")]


def train(
    train_file: TreebankArgument = None,
    treebank: TreebanksOption = None,
    *,
    dev: DevOption,
    decoder: DecoderOption = None,
    system: SystemOption = None,
    oracle: OracleOption = None,
    scorer: ScorerOption = Scorer.bilstm,
    output_folder: OutputOption = None,
    seed: SeedOption = 1,
    many_roots: ManyRootsOption = False,
    epochs: EpochsOption = None,
    max_steps: StepsOption = None,
    preset: PresetOption = None,
    encoder: EncoderOption = None,
    vectors: VectorsOption = None,
    vectors_keep: VectorsKeepOption = None,
    loss: LossOption = None,
    members: MembersOption = None,
    precision: PrecisionOption = None,
    setting: SettingOption = None,
    segmenter: SegmenterOption = True,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    skip_bad: SkipBadOption = False,
) -> None:
    """Train a parser and keep the model that is best on the development treebank.

    With --decoder, the parser finds the best tree of a class exactly; with --system, it is a greedy transition-based
    parser.
    """
    from mh4.api import configure
    from mh4.parsers.config import parse_settings
    from mh4.training.job import TrainingJob

    files, dev_files = _training_files(train_file, treebank), named_files(dev)
    if system is not None:
        _refuse_with_system({"many-roots": many_roots, "loss": loss, "members": members})
    if scorer is Scorer.perceptron and (max_steps or resume or precision or device is Device.cuda):
        raise ValueError("--max-steps, --resume, --precision and --device cuda cannot be used with --scorer perceptron")
    if vectors_keep is not None and vectors is None:
        raise ValueError("--vectors-keep needs --vectors FILE")
    config = configure(
        decoder=decoder and decoder.value,
        system=system,
        oracle=oracle,
        scorer=scorer.value,
        preset=preset and preset.value,
        encoder=encoder,
        vectors=vectors,
        seed=seed,
        epochs=epochs,
        settings=_given(
            max_steps=max_steps,
            loss=loss,
            members=members,
            precision=precision,
            vectors_keep=vectors_keep,
            single_root=False if many_roots else None,
        )
        | parse_settings(setting or []),
    )
    job = TrainingJob(
        files,
        dev_files,
        _default_folder(files, config) if output_folder is None else output_folder,
        config,
        device=device.value,
        threads=threads,
        resume=resume,
        overwrite=overwrite,
        errors=error_policy(skip_bad),
        segmenter=segmenter,
        command=shlex.join(["mh4", *sys.argv[1:]]),
    )
    _run(job)


def _training_files(train: str | None, treebanks: list[str] | None) -> Path | dict[str, Path]:
    if (train is None) == (not treebanks):
        raise ValueError("name one training treebank, TRAIN, or several, as in --treebank got=FILE --treebank cu=FILE")
    if train is not None:
        return named_files([train])
    (first, *others) = treebanks or []
    if not others and "=" not in first:
        raise ValueError(
            f"--treebank {first}: is for several treebanks, each with its name, as in --treebank got=FILE (for one "
            f"alone: mh4 train {first})"
        )
    return files_by_name(treebanks or [])


def _refuse_with_system(options: dict[str, object]) -> None:
    if given := [name for name, value in options.items() if value]:
        raise ValueError(f"--{given[0]} cannot be used with --system")


def _given(**settings: object) -> dict[str, Any]:
    """The settings given on the command line; members of enumerations become their values."""
    given = {name: value for name, value in settings.items() if value is not None}
    return {name: value.value if isinstance(value, StrEnum) else value for name, value in given.items()}


def _default_folder(files: Path | dict[str, Path], config: Config) -> str:
    from mh4.parsers.config import ChartConfig, PerceptronConfig

    stem = files.stem if isinstance(files, Path) else "-".join(files)
    if isinstance(config, PerceptronConfig):
        return str(Path("models") / f"{stem}-{config.system}-{Scorer.perceptron}-{config.seed}")
    kind = config.decoder if isinstance(config, ChartConfig) else f"{config.transitions.system}-{Scorer.bilstm}"
    return str(Path("models") / f"{stem}-{kind}-{config.training.seed}")


def _run(job: TrainingJob) -> None:
    """Train with a progress display, and print the result."""
    from mh4.parsers.config import PerceptronConfig
    from mh4.training.running import run_training
    from mh4.training.treebanks import listed

    config = job.config
    display = EpochsDisplay(config.iterations) if isinstance(config, PerceptronConfig) else TrainingDisplay()
    job = replace(
        job,
        on_step=display.on_step,
        on_evaluation=display.on_evaluation,
        on_reading=display.on_reading,
        on_preparation=display.on_preparation,
    )
    # Under torchrun, only the first process prints messages.
    messages.quiet = "TORCHELASTIC_RUN_ID" in os.environ and os.environ["RANK"] != "0"
    with _told_what_is_kept(), display:
        progress = run_training(job)
    perceptron = isinstance(config, PerceptronConfig)
    when = "after epoch" if perceptron else "at step"
    how_long = "" if perceptron else f"trained for {progress.seconds / 60:.1f} minutes; "
    say(
        f"best: UAS {progress.best_uas:.2f}, LAS {progress.best_las:.2f} on {listed(job.dev)} {when} "
        f"{progress.best_step}; {how_long}model in {job.output}"
    )


@contextmanager
def _told_what_is_kept() -> Iterator[None]:
    """On interruption, exit with a line that says what training has saved."""
    try:
        yield
    except (KeyboardInterrupt, Terminated) as interruption:
        notes = getattr(interruption, "__notes__", ["training has not begun"])
        say(in_options("; ".join(["mh4: interrupted", *notes])))
        raise SystemExit(interruption.code if isinstance(interruption, Terminated) else INTERRUPTED) from None
