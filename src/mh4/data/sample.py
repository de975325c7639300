"""The sample treebank: eight hundred sentences of an invented language, Ulvari, free of any licence.

Tests, the tutorial and continuous integration train on it: it is small and rich in crossing arcs, with a third of its
trees non-projective. `experiments/ulvari.py` generates it and describes the language.
"""

import lzma
from importlib.resources import files
from pathlib import Path

from .files import atomic_output

SPLITS = ("train", "dev", "test")


def write_sample(directory: str | Path) -> dict[str, Path]:
    """Write ``sample-train.conllu``, ``sample-dev.conllu`` and ``sample-test.conllu`` into a folder, made if missing.

    Returns the path of each split: "train" (600 sentences), "dev" and "test" (100 each).
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = {split: directory / f"sample-{split}.conllu" for split in SPLITS}
    for split, path in paths.items():
        with atomic_output(path) as stream:
            stream.write(_read(split))
    return paths


def read_sample() -> dict[str, list[str]]:
    """The sentences of each split in the CoNLL-U format, each with the blank line that closes it."""
    texts = {split: _read(split).decode() for split in SPLITS}
    return {
        split: [f"{block}\n\n" for block in text.removesuffix("\n\n").split("\n\n")] for split, text in texts.items()
    }


def _read(split: str) -> bytes:
    return lzma.decompress(files("mh4.data").joinpath("ulvari", f"{split}.conllu.xz").read_bytes())
