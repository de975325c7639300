"""``mh4 warm-up`` compiles kernels before they are first used."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from .options import DecoderName, Device, say


def warm_up(
    models: Annotated[
        list[Path] | None, typer.Argument(help="Compile the kernels of these models.", metavar="[MODEL]...")
    ] = None,
    decoder: Annotated[
        list[DecoderName] | None,
        typer.Option(help="Compile the kernels for training and parsing with this decoder; repeatable."),
    ] = None,
) -> None:
    """Compile kernels in advance, for images and shared installations; by default, those of all decoders."""
    from mh4.data.document import Document
    from mh4.data.sample import read_sample
    from mh4.parsers.config import ChartConfig, TrainingConfig
    from mh4.parsers.registry import load
    from mh4.training.job import TrainingJob
    from mh4.training.running import run_training

    names = [name.value for name in (decoder or ([] if models else DecoderName))]
    sample = read_sample()["dev"]
    with tempfile.TemporaryDirectory() as folder:
        treebank = Path(folder, "sample.conllu")
        treebank.write_text("".join(sample[:20]), encoding="utf-8")
        for name in names:
            model, training = Path(folder, name), TrainingConfig(batch_words=50, evaluation_steps=2, max_steps=2)
            config = ChartConfig(decoder=name, training=training)
            run_training(TrainingJob(treebank, treebank, model, config, device="cpu", threads=1))
        sentences = Document.from_conllu("".join(sample[:20]))
        for model in [*(models or []), *(Path(folder, name) for name in names)]:
            list(load(model, device=Device.cpu.value, threads=1).parse(sentences))
    kept = ", ".join([*map(str, models or []), *names])
    say(f"mh4: kernels for {kept} are compiled")
