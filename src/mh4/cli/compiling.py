"""The first use of a kernel compiles it: that is said, and ``mh4 warm-up`` does it beforehand."""

import tempfile
import threading
from pathlib import Path
from typing import Annotated

import typer
from numba.core import event

from .options import DecoderName, Device, say


class _Announcer(event.Listener):
    """Says once that kernels are being compiled: for a minute, nothing else can be seen."""

    def __init__(self) -> None:
        self.waits = True
        self.lock = threading.Lock()

    def on_start(self, event: event.Event) -> None:
        kernel = event.data["dispatcher"].py_func
        with self.lock:
            first, self.waits = self.waits, self.waits and not kernel.__module__.startswith("mh4.")
        if first and not self.waits:
            say("mh4: compiling kernels that are used for the first time; this takes up to a minute, once")

    def on_end(self, event: event.Event) -> None:
        """Nothing."""


def announce_compiling() -> None:
    """From now on, say that a kernel is compiled, if there is one that is not cached."""
    event.register("numba:compile", _Announcer())


def warm_up(
    models: Annotated[
        list[Path] | None, typer.Argument(help="Model folders: what parsing with them needs.", metavar="[MODEL]...")
    ] = None,
    decoder: Annotated[
        list[DecoderName] | None,
        typer.Option(help="What training and parsing with this decoder need; may be given several times."),
    ] = None,
) -> None:
    """Compile kernels now, for images and installations that others use; without arguments, those of all decoders."""
    from mh4.api import Parser
    from mh4.data.document import Document
    from mh4.data.sample import read_sample
    from mh4.parsers.config import ChartConfig, TrainingConfig
    from mh4.training.trainer import train

    names = [name.value for name in (decoder or ([] if models else DecoderName))]
    sample = read_sample()["dev"]
    with tempfile.TemporaryDirectory() as folder:
        treebank = Path(folder, "sample.conllu")
        treebank.write_text("".join(sample[:20]), encoding="utf-8")
        for name in names:
            model, training = Path(folder, name), TrainingConfig(batch_words=50, evaluation_steps=2, max_steps=2)
            train(treebank, treebank, model, ChartConfig(decoder=name, training=training), device="cpu", threads=1)
        sentences = Document.from_conllu("".join(sample[:20]))
        for model in [*(models or []), *(Path(folder, name) for name in names)]:
            list(Parser(model, device=Device.cpu.value, threads=1).parse(sentences))
    kept = ", ".join([*map(str, models or []), *names])
    say(f"mh4: kernels for {kept} are compiled")
