"""Command line: ``mh4 train | parse | eval | coverage | transform | sample | demo | bench``.

Heavy modules are imported by the command that needs them, so that ``mh4 --help`` answers at once.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from . import IMPORTED_AT
from .decoders import decoder_names

app = typer.Typer(
    name="mh4",
    help="Exact global dependency parsing: train, parse and evaluate on CoNLL-U treebanks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench_app = typer.Typer(help="Measure speed: decoders, training, parsing.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")

output = Console()
messages = Console(stderr=True)

DecoderName = StrEnum("DecoderName", {name: name for name in decoder_names()})  # type: ignore[misc]
DEFAULT_DECODER = DecoderName("mh4-hybrid")


class Device(StrEnum):
    """Where the network runs."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class TreeClass(StrEnum):
    """Classes of trees that have a closest tree."""

    projective = "projective"
    mh4 = "mh4"
    one_endpoint_crossing = "1ec"


ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="CPU threads for the network and for decoding; default: one a core.")
]
DeviceOption = Annotated[Device, typer.Option(help="auto takes CUDA when there is one.")]
DecodingThreadsOption = Annotated[int | None, typer.Option(min=1, help="CPU threads; default: one a core.")]
SkipBadOption = Annotated[bool, typer.Option("--skip-bad", help="Count and leave out invalid sentences.")]


class _ConsoleHandler(logging.Handler):
    """Log messages as plain lines that stay clear of the progress display."""

    def emit(self, record: logging.LogRecord) -> None:
        messages.print(self.format(record), markup=False, highlight=False, soft_wrap=True)


def main() -> None:
    """Entry point: an error that the user can mend is one line on stderr and exit status 1, without a traceback."""
    logging.basicConfig(level=logging.INFO, format="mh4: %(message)s", handlers=[_ConsoleHandler()])
    try:
        app()
    except ValueError as error:  # DataError, InfeasibleError, unknown options and names
        _fail(error)
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        _fail(error)


def _fail(error: Exception) -> None:
    if os.environ.get("MH4_TRACEBACK"):
        raise error
    messages.print(f"mh4: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise SystemExit(1) from None


def _set_threads(threads: int | None) -> None:
    import torch

    if threads is not None:
        torch.set_num_threads(threads)


@app.command()
def train(
    treebank: Annotated[Path, typer.Argument(help="Training treebank, CoNLL-U with gold trees.", metavar="TRAIN")],
    dev: Annotated[Path, typer.Option(help="Development treebank: picks the best model, ends training.")],
    decoder: Annotated[DecoderName, typer.Option(help="Class of trees and factorisation.")] = DEFAULT_DECODER,
    system: Annotated[
        str | None,
        typer.Option(help="A transition system instead of a decoder: arc-standard, arc-eager, covington or lr-spine."),
    ] = None,
    oracle: Annotated[str | None, typer.Option(help="Oracle of the transition system: static, dynamic, …")] = None,
    output_folder: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Model folder; default: models/TREEBANK-DECODER-SEED."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed: equal seeds give equal models on a device.")] = 1,
    many_roots: Annotated[bool, typer.Option("--many-roots", help="Allow several children of the root.")] = False,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many minibatches at the latest.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any setting of config.json, such as learning_rate=0.001."),
    ] = None,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last evaluation.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again in a folder that holds a model.")] = False,
    skip_bad: SkipBadOption = False,
) -> None:
    """Train a parser; the folder holds the model that was best on the development treebank.

    With --decoder a BiLSTM parser that finds the best tree of a class; with --system a greedy transition-based one,
    scored by an averaged perceptron.
    """
    if system is not None or oracle is not None:
        if many_roots or max_steps or resume or device is Device.cuda:
            raise ValueError("--many-roots, --max-steps, --resume and --device cuda do not go with --system")
        folder = output_folder or Path("models") / f"{treebank.stem}-{system or 'arc-eager'}-{seed}"
        chosen = [f"{name}={value}" for name, value in (("system", system), ("oracle", oracle)) if value is not None]
        _train_perceptron(treebank, dev, folder, [f"seed={seed}", *chosen, *(setting or [])], overwrite, skip_bad)
        return
    from .config import make_config
    from .model_folder import WEIGHTS
    from .training import train as run

    settings = [f"seed={seed}", *([f"max_steps={max_steps}"] if max_steps else []), *(setting or [])]
    config = make_config(decoder.value, single_root=not many_roots, settings=settings)
    folder = output_folder or Path("models") / f"{treebank.stem}-{decoder.value}-{seed}"
    _set_threads(threads)
    with _training_display() as (on_step, on_evaluation):
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
                skip_bad,
                on_step,
                on_evaluation,
            )
        except KeyboardInterrupt:
            kept = f"the best model so far is in {folder}" if (folder / WEIGHTS).exists() else "no model yet"
            messages.print(f"mh4: interrupted; {kept}; --resume continues")
            raise SystemExit(130) from None
    messages.print(
        f"best: UAS {progress.best_uas:.2f}, LAS {progress.best_las:.2f} on {dev} at step {progress.best_step}, "
        f"after {progress.seconds / 60:.1f} minutes in all; model in {folder}",
        highlight=False,
        soft_wrap=True,
    )


def _train_perceptron(
    treebank: Path, dev: Path, folder: Path, settings: list[str], overwrite: bool, skip_bad: bool
) -> None:
    from .perceptron.config import make_config
    from .perceptron.training import train as run

    best = {"dev_uas": 0.0, "dev_las": 0.0, "epoch": 0}

    def on_evaluation(report: dict[str, Any]) -> None:
        messages.print(
            f"epoch {report['epoch']:>3}  wrong {report['wrong']:.1%}  {report['words_per_second']:.0f} words/s  "
            f"dev UAS {report['dev_uas']:.2f} LAS {report['dev_las']:.2f}{'  *' if report['best'] else ''}",
            highlight=False,
            soft_wrap=True,
        )
        if report["best"]:
            best.update(report)

    run(treebank, dev, folder, make_config(settings), overwrite, skip_bad, on_evaluation)
    messages.print(
        f"best: UAS {best['dev_uas']:.2f}, LAS {best['dev_las']:.2f} on {dev} after epoch {best['epoch']}; "
        f"model in {folder}",
        highlight=False,
        soft_wrap=True,
    )


class _training_display:  # noqa: N801 (a context manager, used like a function)
    """A live line on a terminal, a plain line an evaluation everywhere."""

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
        busy = sum(recent.times.seconds.values())
        dev = f"dev UAS {progress.best_uas:.2f} LAS {progress.best_las:.2f}" if progress.best_step else "no dev yet"
        line = (
            f"step {progress.step}  loss {recent.loss / recent.words:.3f}  {recent.words / busy:.0f} words/s"
            f"  decoding {recent.times.share('decode'):.0%}  {dev}  lr {progress.learning_rate:.2g}"
        )
        self.bar.update(self.task, description=line)

    def on_evaluation(self, report: dict[str, Any]) -> None:
        messages.print(
            f"step {report['step']:>6}  epoch {report['epoch']:6.2f}  loss {report['loss']:.3f}  "
            f"{report['words_per_second']:.0f} words/s  decoding {report['share']['decode']:.1%}  "
            f"dev UAS {report['dev_uas']:.2f} LAS {report['dev_las']:.2f}  lr {report['learning_rate']:.2g}"
            f"{'  *' if report['best'] else ''}",
            highlight=False,
            soft_wrap=True,
        )


@app.command()
def parse(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    source: Annotated[str, typer.Argument(help="CoNLL-U to parse; - is standard input.", metavar="INPUT")] = "-",
    target: Annotated[str, typer.Option("--output", "-o", help="Where to write; - is standard output.")] = "-",
    keep_heads: Annotated[
        bool, typer.Option("--keep-heads", help="Keep the heads that are given, decode the rest exactly around them.")
    ] = False,
    search: Annotated[
        str, typer.Option(help="exact, beam:K or greedy (the last two with mh3 and mh4 models).")
    ] = "exact",
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Parse CoNLL-U: HEAD and DEPREL are predicted, every other byte stays as it was."""
    from .files import DataError
    from .model_folder import read_scorer
    from .parser import Parser
    from .perceptron.config import SCORER
    from .perceptron.parser import PerceptronParser

    _set_threads(threads)
    parser: Parser | PerceptronParser
    if read_scorer(model) == SCORER:
        if search != "exact":
            raise ValueError(f"{model} is a greedy transition-based parser: --search {search} does not apply")
        parser = PerceptronParser.load(model)
    else:
        parser = Parser.load(model, device.value, search)
        parser.threads = threads
    sentences = words = 0
    skipped: list[DataError] = []
    ready = time.perf_counter()

    def on_progress(more_sentences: int, more_words: int) -> None:
        nonlocal sentences, words
        sentences += more_sentences
        words += more_words

    parser.parse(source, target, keep_heads, skip_bad, skipped.append, on_progress)
    seconds = time.perf_counter() - ready
    if skipped:
        messages.print(f"{len(skipped)} bad sentences skipped; the first: {skipped[0]}", markup=False, highlight=False)
    messages.print(
        f"{sentences} sentences, {words} words, {words / seconds:.0f} words/s; start-up {ready - IMPORTED_AT:.1f} s",
        highlight=False,
    )


@app.command(name="eval")
def evaluate(
    gold: Annotated[Path, typer.Argument(help="Gold CoNLL-U.")],
    system: Annotated[Path, typer.Argument(help="CoNLL-U of the system; its words may be segmented differently.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """CoNLL shared-task metrics; LAS ignores relation subtypes. Also crossing arcs and arcs by length."""
    from rich.table import Table

    from .evaluation import evaluate_files

    result = evaluate_files(gold, system)
    if as_json:
        typer.echo(json.dumps(result.as_dict(), indent=1))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    for column in ("precision", "recall", "F1", "aligned", "gold"):
        table.add_column(column, justify="right")
    rows = [*result.scores.items(), ("crossing arcs", result.crossing)]
    rows += [(f"arcs of length {name}" if name != "root" else "root arcs", s) for name, s in result.by_length.items()]
    for name, score in rows:
        aligned = score.aligned_accuracy
        table.add_row(
            name,
            *(f"{100 * value:.2f}" for value in (score.precision, score.recall, score.f1)),
            "" if aligned is None else f"{100 * aligned:.2f}",
            str(score.gold_total),
        )
    output.print(table)


@app.command()
def coverage(
    treebanks: Annotated[list[str], typer.Argument(help="CoNLL-U with gold trees.", metavar="FILE...")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a line a sentence with --per-sentence.")] = False,
    per_sentence: Annotated[
        bool, typer.Option("--per-sentence", help="Arcs kept of every sentence, separated by tabs, instead of totals.")
    ] = False,
    threads: DecodingThreadsOption = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Share of the trees inside each class, and of the arcs that the closest tree of the class keeps."""
    from .coverage import coverage_table, iterate_coverage, measure_coverage
    from .files import DataError
    from .transform import TREE_CLASSES

    skipped: list[DataError] = []
    if per_sentence:
        if not as_json:
            typer.echo("\t".join(("treebank", "sentence", "words", *TREE_CLASSES)))
        for path in treebanks:
            for sentence in iterate_coverage(path, threads=threads, skip_bad=skip_bad, on_skip=skipped.append):
                if as_json:
                    typer.echo(json.dumps({"treebank": path, **sentence.as_dict()}, ensure_ascii=False))
                else:
                    typer.echo("\t".join(map(str, (path, sentence.name, sentence.words, *sentence.kept.values()))))
    else:
        results = {
            path: measure_coverage(path, threads=threads, skip_bad=skip_bad, on_skip=skipped.append)
            for path in treebanks
        }
        if as_json:
            typer.echo(json.dumps({path: result.as_dict() for path, result in results.items()}, indent=1))
        else:
            output.print(coverage_table(results))
    _report_skipped(skipped)


@app.command()
def transform(
    tree_class: Annotated[TreeClass, typer.Option("--to", help="Class of trees.")],
    source: Annotated[str, typer.Argument(help="CoNLL-U with gold trees; - is standard input.", metavar="INPUT")] = "-",
    target: Annotated[str, typer.Option("--output", "-o", help="Where to write; - is standard output.")] = "-",
    mark_arcs: Annotated[
        bool, typer.Option("--arcs", help="OldHead=H in MISC of every word whose head changes; OldDeprel=L likewise.")
    ] = False,
    count: Annotated[
        bool, typer.Option("--count", help="Comment # optimal_projective_trees = N; with --to projective only.")
    ] = False,
    threads: DecodingThreadsOption = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Change every tree into the closest one of a class; changed sentences get a comment, all else stays."""
    from decimal import Decimal

    from .files import DataError
    from .transform import transform_file

    skipped: list[DataError] = []
    totals = transform_file(
        source,
        target,
        tree_class.value,
        mark_arcs=mark_arcs,
        count_trees=count,
        threads=threads,
        skip_bad=skip_bad,
        on_skip=skipped.append,
    )
    _report_skipped(skipped)
    messages.print(
        f"{totals.sentences} sentences, {totals.words} words; "
        f"{totals.changed_arcs} arcs changed in {totals.changed_sentences} sentences",
        highlight=False,
    )
    if count:
        mean = Decimal(totals.log_mean_trees).exp()  # beyond the range of floats, if need be
        messages.print(
            f"{totals.ambiguous_sentences} sentences with several optimal projective trees; "
            f"geometric mean of their number over all sentences {mean:.4g}",
            highlight=False,
            soft_wrap=True,
        )


@app.command()
def oracle(
    source: Annotated[str, typer.Argument(help="CoNLL-U with gold trees; - is standard input.", metavar="INPUT")] = "-",
    target: Annotated[str, typer.Option("--output", "-o", help="Where to write; - is standard output.")] = "-",
    system: Annotated[
        str, typer.Option(help="Transition system: shift-reduce, arc-eager or arc-eager-normalized.")
    ] = "shift-reduce",
    policy: Annotated[
        str | None, typer.Option(help="Order of transitions where several build the same tree; default: the first.")
    ] = None,
    sequences: Annotated[
        bool, typer.Option("--sequences", help="Print id, attainable arcs, words and transitions, one line a sentence.")
    ] = False,
    skip_bad: SkipBadOption = False,
) -> None:
    """Annotate every gold tree, projective or not, with transitions that build as many of its arcs as can be built."""
    from .files import DataError
    from .oracles.annotation import annotate_file

    skipped: list[DataError] = []
    totals = annotate_file(
        source, target, system, policy, sequences_only=sequences, skip_bad=skip_bad, on_skip=skipped.append
    )
    _report_skipped(skipped)
    messages.print(
        f"{totals.sentences} sentences, {totals.words} words; {totals.transitions} transitions; "
        f"attainable accuracy {totals.accuracy:.2f} %",
        highlight=False,
    )


def _report_skipped(skipped: list[Any]) -> None:
    if skipped:
        count = f"{len(skipped)} bad sentence{'s'[: len(skipped) != 1]} skipped"
        messages.print(f"{count}; the first: {skipped[0]}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def sample(
    folder: Annotated[Path, typer.Argument(help="Folder to write train, dev and test files to.")] = Path("sample"),
    seed: Annotated[int, typer.Option(min=0)] = 1,
) -> None:
    """Write the built-in sample treebank."""
    from .sample import write_sample

    for path in write_sample(folder, seed).values():
        typer.echo(path)


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Folder for the sample, the models and the drawing.")] = Path("demo"),
) -> None:
    """Train every decoder on the sample, compare them, parse a file and draw a tree. Takes a few minutes."""
    from .demo import run_demo

    run_demo(folder, output)


@bench_app.command(name="decoders")
def bench_decoders(
    lengths: Annotated[
        str, typer.Option(help="Sentence lengths in words, separated by commas.")
    ] = "10,20,40,60,80,100",
    decoders: Annotated[str, typer.Option(help="Decoders, separated by commas; default: all.")] = "",
    repeats: Annotated[int, typer.Option(min=3, help="Timed decodes of each sentence length.")] = 101,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Median time to decode one sentence of random scores, one thread, preparation and backtrace included."""
    from .benchmark import decoder_table, time_decoders

    names = [name.strip() for name in decoders.split(",")] if decoders else list(decoder_names())
    try:
        sizes = [int(length) for length in lengths.split(",")]
    except ValueError:
        raise ValueError(f"lengths must be numbers separated by commas; got {lengths!r}") from None
    results = time_decoders(names, sizes, repeats)
    if as_json:
        typer.echo(json.dumps(results, indent=1))
    else:
        output.print(decoder_table(results))


@bench_app.command(name="train")
def bench_train(
    treebank: Annotated[
        Path | None, typer.Argument(help="Training treebank; default: the sample.", metavar="TRAIN")
    ] = None,
    decoder: Annotated[DecoderName, typer.Option()] = DEFAULT_DECODER,
    steps: Annotated[int, typer.Option(min=1, help="Timed minibatches.")] = 100,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Words a second in training, and where the time goes."""
    from .benchmark import stage_table, time_training

    _set_threads(threads)
    _print_stages(time_training(treebank, decoder.value, steps, device.value, threads), as_json, stage_table)


@bench_app.command(name="parse")
def bench_parse(
    model: Annotated[Path | None, typer.Argument(help="Model folder; default: an untrained model.")] = None,
    treebank: Annotated[Path | None, typer.Argument(help="CoNLL-U to parse; default: the sample.")] = None,
    decoder: Annotated[DecoderName, typer.Option(help="Decoder of the untrained model.")] = DEFAULT_DECODER,
    repeats: Annotated[int, typer.Option(min=1)] = 3,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Words a second in parsing, and where the time goes."""
    from .benchmark import stage_table, time_parsing

    _set_threads(threads)
    results = time_parsing(model, treebank, decoder.value, repeats, device.value, threads)
    _print_stages(results, as_json, stage_table)


def _print_stages(results: dict[str, Any], as_json: bool, table: Callable[[dict[str, Any]], Any]) -> None:
    if as_json:
        typer.echo(json.dumps(results, indent=1))
    else:
        output.print(table(results))


if __name__ == "__main__":
    main()
