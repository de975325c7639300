"""``mh4 train``."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mh4.data.errors import Errors
from mh4.training.presets import PRESETS

from .options import (
    DEFAULT_DECODER,
    PAPER,
    DecoderName,
    Device,
    DeviceOption,
    PresetOption,
    SettingOption,
    SkipBadOption,
    ThreadsOption,
    error_policy,
    messages,
    say,
    set_threads,
)


class Scorer(StrEnum):
    """What scores the transitions of a greedy parser."""

    bilstm = "bilstm"
    perceptron = "perceptron"


def train(
    treebank: Annotated[Path, typer.Argument(help="Training treebank, CoNLL-U with gold trees.", metavar="TRAIN")],
    dev: Annotated[Path, typer.Option(help="Development treebank: picks the best model, ends training.")],
    decoder: Annotated[
        DecoderName | None, typer.Option(help=f"Class of trees and factorisation; default: {DEFAULT_DECODER.value}.")
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            help="A transition system instead of a decoder: arc-hybrid, mh4, arc-standard, arc-eager, covington or "
            "lr-spine."
        ),
    ] = None,
    oracle: Annotated[
        str | None,
        typer.Option(help="static, dynamic or, for covington, all-pairs; default: dynamic where the system has it."),
    ] = None,
    scorer: Annotated[Scorer, typer.Option(help="What scores the transitions.")] = Scorer.bilstm,
    output_folder: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Model folder; default: models/TREEBANK-DECODER-SEED or TREEBANK-SYSTEM-SCORER-SEED."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Random seed: equal seeds give equal models on a device.")
    ] = 1,
    many_roots: Annotated[bool, typer.Option("--many-roots", help="Allow several children of the root.")] = False,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many minibatches at the latest.")] = None,
    preset: PresetOption = PAPER,
    setting: SettingOption = None,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last evaluation.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again in a folder that holds a model.")] = False,
    skip_bad: SkipBadOption = False,
) -> None:
    """Train a parser; the folder holds the model that was best on the development treebank.

    With --decoder it finds the best tree of a class exactly; with --system it is a greedy transition-based parser.
    """
    if system is None and (oracle is not None or scorer is not Scorer.bilstm):
        raise ValueError("--oracle and --scorer perceptron need a transition system; choose one with --system")
    if system is not None and (many_roots or decoder is not None):
        raise ValueError("--decoder and --many-roots do not go with --system")
    decoder = decoder or DEFAULT_DECODER
    kind = decoder.value if system is None else f"{system}-{scorer.value}"
    folder = output_folder or Path("models") / f"{treebank.stem}-{kind}-{seed}"
    chosen = [f"{name}={value}" for name, value in (("system", system), ("oracle", oracle)) if value is not None]
    if scorer is Scorer.perceptron:
        if max_steps or resume or device is Device.cuda or preset is not PAPER:
            raise ValueError("--max-steps, --resume, --preset and --device cuda do not go with --scorer perceptron")
        _train_perceptron(
            treebank, dev, folder, [f"seed={seed}", *chosen, *(setting or [])], overwrite, error_policy(skip_bad)
        )
        return
    from mh4.parsers.config import Config, make_config
    from mh4.parsers.folder import STATE, WEIGHTS
    from mh4.parsers.transition_config import TransitionConfig, make_transition_config
    from mh4.training.trainer import train as run

    limit = [f"max_steps={max_steps}"] if max_steps else []
    settings = [*PRESETS[preset], f"seed={seed}", *limit, *(setting or [])]
    config: Config | TransitionConfig
    if system is None:
        config = make_config(decoder.value, single_root=not many_roots, settings=settings)
    else:
        config = make_transition_config([*chosen, *settings])
    set_threads(threads)
    # Of the processes of torchrun, the first one speaks.
    messages.quiet = "TORCHELASTIC_RUN_ID" in os.environ and os.environ["RANK"] != "0"
    with TrainingDisplay() as (on_step, on_evaluation):
        try:
            progress = run(
                treebank,
                dev,
                folder,
                config,
                device.value,
                threads,
                resume,
                overwrite,
                error_policy(skip_bad),
                on_step,
                on_evaluation,
            )
        except KeyboardInterrupt:
            kept = f"the best model so far is in {folder}" if (folder / WEIGHTS).exists() else "no model yet"
            how = "continues" if (folder / STATE).exists() else "starts again"  # before the first evaluation
            say(f"mh4: interrupted; {kept}; --resume {how}")
            raise SystemExit(130) from None
    say(
        f"best: UAS {progress.best_uas:.2f}, LAS {progress.best_las:.2f} on {dev} at step {progress.best_step}, "
        f"after {progress.seconds / 60:.1f} minutes in all; model in {folder}",
    )


def _train_perceptron(
    treebank: Path, dev: Path, folder: Path, settings: list[str], overwrite: bool, errors: Errors
) -> None:
    from mh4.parsers.perceptron.config import make_config
    from mh4.training.perceptron import train as run

    best = {"dev_uas": 0.0, "dev_las": 0.0, "epoch": 0}

    def on_evaluation(report: dict[str, Any]) -> None:
        say(
            f"epoch {report['epoch']:>3}  wrong {report['wrong']:.1%}  {report['words_per_second']:.0f} words/s  "
            f"dev UAS {report['dev_uas']:.2f} LAS {report['dev_las']:.2f}{'  *' if report['best'] else ''}",
        )
        if report["best"]:
            best.update(report)

    run(treebank, dev, folder, make_config(settings), overwrite, errors, on_evaluation)
    say(
        f"best: UAS {best['dev_uas']:.2f}, LAS {best['dev_las']:.2f} on {dev} after epoch {best['epoch']}; "
        f"model in {folder}",
    )


class TrainingDisplay:
    """A live line on a terminal, a plain line per evaluation everywhere."""

    def __enter__(self) -> tuple[Callable[..., None] | None, Callable[[dict[str, Any]], None]]:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=messages,
            transient=True,
            disable=not messages.is_terminal,
        )
        self.task = self.bar.add_task("compiling the decoder")
        self.bar.start()
        return self.on_step if messages.is_terminal else None, self.on_evaluation

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def on_step(self, progress: Any, recent: Any) -> None:
        """Show how a minibatch left things."""
        dev = f"dev UAS {progress.best_uas:.2f} LAS {progress.best_las:.2f}" if progress.best_step else "no dev yet"
        line = (
            f"step {progress.step}  loss {recent.loss / recent.words:.3f}  "
            f"{recent.words / recent.profile.total:.0f} words/s  "
            f"decoding {recent.profile.shares['decode']:.0%}  {dev}  lr {progress.learning_rate:.2g}"
        )
        self.bar.update(self.task, description=line)

    def on_evaluation(self, report: dict[str, Any]) -> None:
        """Print the line of an evaluation."""
        say(
            f"step {report['step']:>6}  epoch {report['epoch']:6.2f}  loss {report['loss']:.3f}  "
            f"{report['words_per_second']:.0f} words/s  decoding {report['share']['decode']:.1%}  "
            f"dev UAS {report['dev_uas']:.2f} LAS {report['dev_las']:.2f}  lr {report['learning_rate']:.2g}"
            f"{'  *' if report['best'] else ''}",
        )
