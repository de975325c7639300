"""``mh4 train``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mh4.machine import Terminated

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
    messages,
    say,
)
from .progress import TrainingDisplay, epochs_bar

if TYPE_CHECKING:
    from mh4.data.errors import Errors
    from mh4.parsers.config import PerceptronConfig


class Scorer(StrEnum):
    """What scores the transitions of a greedy parser."""

    bilstm = "bilstm"
    perceptron = "perceptron"


class Loss(StrEnum):
    """What the trees of a chart parser are learnt by."""

    hinge = "hinge"
    softmax_margin = "softmax-margin"
    crf = "crf"


class Precision(StrEnum):
    """What layers of the network compute in."""

    fp32 = "fp32"
    bf16 = "bf16"


def train(
    treebank: Annotated[
        Path,
        typer.Argument(
            help="Training treebank: CoNLL-U with gold trees, or, for --decoder, parts of them.", metavar="TRAIN"
        ),
    ],
    dev: Annotated[Path, typer.Option(help="Development treebank for model selection and early stopping.")],
    decoder: Annotated[
        DecoderName | None,
        typer.Option(help="Decoder: class of trees and factorisation.", show_default=DEFAULT_DECODER.value),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            help="Train a greedy parser with this transition system instead: arc-hybrid, mh4, arc-standard, arc-eager, "
            "covington or lr-spine."
        ),
    ] = None,
    oracle: Annotated[
        str | None,
        typer.Option(
            help="With --system: static, dynamic or (covington only) all-pairs.",
            show_default="dynamic if the system has one",
        ),
    ] = None,
    scorer: Annotated[Scorer, typer.Option(help="With --system: what scores the transitions.")] = Scorer.bilstm,
    output_folder: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Model folder.",
            show_default="models/TREEBANK-DECODER-SEED or models/TREEBANK-SYSTEM-SCORER-SEED",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Random seed; on one device, equal seeds give equal models.")
    ] = 1,
    many_roots: Annotated[bool, typer.Option("--many-roots", help="Allow several children of the root.")] = False,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Stop after at most this many passes over the training treebank.")
    ] = None,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Stop after at most this many minibatches.")] = None,
    preset: Annotated[Preset | None, typer.Option(help=PRESET_HELP, show_default=DEFAULT_PRESET.value)] = None,
    loss: Annotated[
        Loss | None,
        typer.Option(
            help="With --decoder: how trees are learnt. crf and softmax-margin sum over all trees (not with 1ec).",
            show_default="hinge",
        ),
    ] = None,
    precision: Annotated[
        Precision | None,
        typer.Option(
            help="Precision of MLPs and classifiers in training; bf16 needs a GPU. All else is fp32.",
            show_default="fp32",
        ),
    ] = None,
    setting: SettingOption = None,
    segmenter: Annotated[
        bool, typer.Option("--segmenter/--no-segmenter", help="Also learn to cut text into sentences and words.")
    ] = True,
    segmenter_settings: Annotated[
        str,
        typer.Option(
            metavar="NAME=VALUE;…", help="Of UDPipe's tokenizer, e.g. epochs=50;dimension=64.", show_default="epochs=30"
        ),
    ] = "",
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last evaluation.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the model that the folder holds.")] = False,
    skip_bad: SkipBadOption = False,
) -> None:
    """Train a parser and keep the model that is best on the development treebank.

    With --decoder, the parser finds the best tree of a class exactly; with --system, it is a greedy transition-based
    parser.
    """
    from mh4.api import configure
    from mh4.parsers.config import PerceptronConfig, parse_settings
    from mh4.training.segmenter import segmenter_options
    from mh4.training.trainer import train as run

    if resume and overwrite:
        raise ValueError("--resume continues what --overwrite would replace; choose one")
    if segmenter_settings and not segmenter:
        raise ValueError("--segmenter-settings cannot be used with --no-segmenter")
    if system is not None and many_roots:
        raise ValueError("--many-roots cannot be used with --system")
    if scorer is Scorer.perceptron and (max_steps or resume or precision or device is Device.cuda):
        raise ValueError("--max-steps, --resume, --precision and --device cuda cannot be used with --scorer perceptron")
    if system is not None and loss:
        raise ValueError("--loss cannot be used with --system")
    limits = {"max_steps": max_steps} if max_steps else {}
    losses = {"loss": loss.value} if loss else {}
    precisions = {"precision": precision.value} if precision else {}
    roots = {"single_root": False} if many_roots else {}
    config = configure(
        decoder=decoder and decoder.value,
        system=system,
        oracle=oracle,
        scorer=scorer.value,
        preset=preset and preset.value,
        seed=seed,
        epochs=epochs,
        settings=limits | roots | losses | precisions | parse_settings(setting or []),
    )
    options = segmenter_options(segmenter and (segmenter_settings or True), scorer is Scorer.perceptron)
    kind = (decoder or DEFAULT_DECODER).value if system is None else f"{system}-{scorer.value}"
    folder = output_folder or Path("models") / f"{treebank.stem}-{kind}-{seed}"
    errors = error_policy(skip_bad)
    if isinstance(config, PerceptronConfig):
        _train_perceptron(treebank, dev, folder, config, overwrite, errors, options)
        return
    # Of the processes of torchrun, only the first one writes messages.
    messages.quiet = "TORCHELASTIC_RUN_ID" in os.environ and os.environ["RANK"] != "0"
    with _told_what_is_kept(), TrainingDisplay() as display:
        progress = run(
            treebank,
            dev,
            folder,
            config,
            device=device.value,
            threads=threads,
            resume=resume,
            overwrite=overwrite,
            errors=errors,
            segmenter=options,
            on_step=display.on_step,
            on_evaluation=display.on_evaluation,
            on_preparation=display.on_preparation,
        )
    say(
        f"best: UAS {progress.best_uas:.2f}, LAS {progress.best_las:.2f} on {dev} at step {progress.best_step}; "
        f"trained for {progress.seconds / 60:.1f} minutes; model in {folder}",
    )


@contextmanager
def _told_what_is_kept() -> Iterator[None]:
    """An interruption ends the program with a line that says what training leaves."""
    try:
        yield
    except (KeyboardInterrupt, Terminated) as interruption:
        say("; ".join(["mh4: interrupted", *getattr(interruption, "__notes__", ["training has not begun"])]))
        raise SystemExit(interruption.code if isinstance(interruption, Terminated) else 130) from None


def _train_perceptron(
    treebank: Path,
    dev: Path,
    folder: Path,
    config: PerceptronConfig,
    overwrite: bool,
    errors: Errors,
    segmenter: str | None,
) -> None:
    from mh4.training.perceptron import train as run

    best: dict[str, Any] = {"dev_uas": 0.0, "dev_las": 0.0, "epoch": 0}

    def on_evaluation(report: dict[str, Any]) -> None:
        advance()
        say(
            f"epoch {report['epoch']:>3}  wrong {report['wrong']:.1%}  {report['words_per_second']:.0f} words/s  "
            f"dev UAS {report['dev_uas']:.2f} LAS {report['dev_las']:.2f}{'  *' if report['best'] else ''}",
        )
        if report["best"]:
            best.update(report)

    with _told_what_is_kept(), epochs_bar(config.iterations) as advance:
        run(
            treebank,
            dev,
            folder,
            config,
            overwrite=overwrite,
            errors=errors,
            segmenter=segmenter,
            on_evaluation=on_evaluation,
        )
    say(
        f"best: UAS {best['dev_uas']:.2f}, LAS {best['dev_las']:.2f} on {dev} after epoch {best['epoch']}; "
        f"model in {folder}",
    )
