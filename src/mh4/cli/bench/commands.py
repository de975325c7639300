"""``mh4 bench``: decoders, certainty, train, parse, text and serve."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mh4.decoders import decoder_names
from mh4.training.presets import PRESETS

from ..options import (
    DEFAULT_DECODER,
    PAPER,
    Commands,
    DecoderName,
    Device,
    DeviceOption,
    Preset,
    SettingOption,
    ThreadsOption,
    print_whole,
    set_threads,
)

bench_app = Commands(help="Measure time and memory of decoding, training and parsing.", no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RepeatsOption = Annotated[int, typer.Option(min=3, help="Maximum number of decodes to time per sentence length.")]
ModelArgument = Annotated[Path | None, typer.Argument(help="Model folder.", show_default="an untrained model")]
ParsedArgument = Annotated[Path | None, typer.Argument(help="CoNLL-U file.", show_default="the sample")]
UntrainedOption = Annotated[
    DecoderName | None, typer.Option(help="Decoder of the untrained model.", show_default=DEFAULT_DECODER.value)
]


def _numbers(what: str, text: str) -> list[int]:
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ValueError(f"{what} must be positive numbers separated by commas; got {text!r}")
    return numbers


def _untrained(model: Path | None, decoder: DecoderName | None) -> str:
    """The decoder of the untrained model; ValueError if one is named although a model is given."""
    if model is not None and decoder is not None:
        raise ValueError(f"--decoder is for the untrained model; leave out the option or the model {model}")
    return (decoder or DEFAULT_DECODER).value


@bench_app.command(name="decoders")
def bench_decoders(
    lengths: Annotated[
        str, typer.Option(help="Sentence lengths in words, separated by commas.")
    ] = "10,20,40,60,80,100,140,200,400",
    decoders: Annotated[str, typer.Option(help="Decoders, separated by commas.", show_default="all")] = "",
    repeats: RepeatsOption = 101,
    seconds: Annotated[
        float, typer.Option(min=0, help="Stop timing a length after this many seconds (and at least three decodes).")
    ] = 2.0,
    as_json: JsonOption = False,
) -> None:
    """Measure the median time to decode one sentence of random scores, memory, and how both grow from 20 to 200 words.

    One thread, preparation and backtrace included; compared with other packages' decoders if installed
    (ufal.chu_liu_edmonds).
    """
    from .decoders import decoder_table, measure_decoders

    names = [name.strip() for name in decoders.split(",")] if decoders else list(decoder_names())
    results = measure_decoders(names, _numbers("lengths", lengths), repeats, seconds)
    _print(results, as_json, decoder_table)


@bench_app.command(name="certainty")
def bench_certainty(
    lengths: Annotated[str, typer.Option(help="Sentence lengths in words, separated by commas.")] = "20,40,60,100",
    decoders: Annotated[str, typer.Option(help="Decoders, separated by commas.")] = "mst,eisner,mh3,mh4-two,mh4-hybrid",
    repeats: Annotated[int, typer.Option(min=3, help="Maximum number of measurements per decoder and length.")] = 31,
    seconds: Annotated[
        float, typer.Option(min=0, help="Stop measuring after this many seconds (and at least three times).")
    ] = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Measure margins, the ten best trees and probabilities, in multiples of decoding one sentence.

    CPU time of one thread. Max-marginals are measured only where an outside pass computes them.
    """
    from .certainty import certainty_table, measure_certainty

    names = [name.strip() for name in decoders.split(",")]
    _print(measure_certainty(names, _numbers("lengths", lengths), repeats, seconds), as_json, certainty_table)


@bench_app.command(name="train")
def bench_train(
    treebank: Annotated[
        Path | None, typer.Argument(help="Training treebank.", show_default="the sample", metavar="TRAIN")
    ] = None,
    decoder: Annotated[DecoderName, typer.Option(help="Class of trees and factorisation.")] = DEFAULT_DECODER,
    preset: Annotated[Preset, typer.Option(help="Hyperparameters, as in mh4 train.")] = PAPER,
    setting: SettingOption = None,
    steps: Annotated[int, typer.Option(min=1, help="Minibatches to time.")] = 100,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure words per second in training, and where the time goes."""
    from mh4.parsers.config import parse_settings

    from .stages import stage_table, time_training

    set_threads(threads)
    settings = {**PRESETS[preset], **parse_settings(setting or [])}
    results = time_training(treebank, decoder.value, steps, device.value, threads, settings)
    _print(results, as_json, stage_table)


@bench_app.command(name="parse")
def bench_parse(
    model: ModelArgument = None,
    treebank: ParsedArgument = None,
    decoder: UntrainedOption = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs; the median is reported.")] = 3,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure words per second in parsing sentences in memory, and where the time goes."""
    from .stages import stage_table, time_parsing

    set_threads(threads)
    results = time_parsing(model, treebank, _untrained(model, decoder), repeats, device.value, threads)
    _print(results, as_json, stage_table)


@bench_app.command(name="text")
def bench_text(
    model: ModelArgument = None,
    treebank: ParsedArgument = None,
    decoder: UntrainedOption = None,
    copies: Annotated[int, typer.Option(min=1, help="Number of copies of the treebank's text to annotate.")] = 8,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure words per second from a file of raw text to CoNLL-U, compared with UDPipe 1 (extra "text").

    UDPipe 1 is trained on the treebank by the first run, which takes minutes, and kept in the user's cache.
    """
    from .text import measure_text, text_table

    set_threads(threads)
    results = measure_text(model, treebank, _untrained(model, decoder), copies, device.value, threads)
    _print(results, as_json, text_table)


@bench_app.command(name="serve")
def bench_serve(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    treebank: ParsedArgument = None,
    clients: Annotated[str, typer.Option(help="Numbers of clients, separated by commas.")] = "1,8,64,256",
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds to measure each number of clients.")] = 10.0,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure words per second and waiting times of `mh4 serve`, compared with `mh4 parse`."""
    from .serving import measure_serving, serving_table

    set_threads(threads)
    counts = _numbers("clients", clients)
    _print(measure_serving(model, treebank, counts, seconds, device.value, threads), as_json, serving_table)


def _print(results: Any, as_json: bool, table: Callable[[Any], Any]) -> None:
    if as_json:
        typer.echo(json.dumps(results, indent=1))
    else:
        print_whole(table(results))
