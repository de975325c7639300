"""Output formats of sentences: CoNLL-U, or JSON if the name of the output asks for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

if TYPE_CHECKING:
    from .sentence import Sentence

OutputFormat = Literal["conllu", "json", "jsonl"]
_PACKED = re.compile(r"\.(gz|xz|bz2)$", re.IGNORECASE)
_OTHERS = (".csv", ".tsv", ".xml", ".html", ".zip", ".zst", ".7z", ".lz4")  # refused


def output_format(target: str | Path) -> tuple[str | Path, OutputFormat]:
    """The destination of an output, and its format; a ValueError for suffixes such as ``.csv``.

    A file named ``.json`` is an array, ``.jsonl`` has a sentence per line; ``json`` alone means JSON lines on standard
    output. Everything else is CoNLL-U. See `Sentence.to_dict`.
    """
    if str(target) == "json":
        return "-", "jsonl"
    match _suffix(target):
        case ".json":
            return target, "json"
        case ".jsonl":
            return target, "jsonl"
        case suffix if suffix in _OTHERS:
            raise ValueError(f"{target}: {suffix[1:]} files cannot be written (name the file .conllu, .json or .jsonl)")
    return target, "conllu"


def require_conllu(target: str | Path) -> None:
    """Raise a ValueError unless the format of an output is CoNLL-U."""
    if str(target) == "json" or _suffix(target) in (".json", ".jsonl", *_OTHERS):
        raise ValueError(f"{target}: only CoNLL-U can be written here (name the file .conllu)")


def _suffix(target: str | Path) -> str:
    return Path(_PACKED.sub("", str(target))).suffix.lower()


@contextmanager
def sentence_writer(stream: BinaryIO, form: OutputFormat) -> Iterator[Callable[[Sentence], object]]:
    """Yield a function that writes sentences to a stream, which is valid JSON or CoNLL-U when the block succeeds."""
    if form == "conllu":
        yield lambda sentence: stream.write(sentence.to_bytes())
    elif form == "jsonl":
        yield lambda sentence: stream.write(f"{sentence.to_json()}\n".encode())
    else:
        before = "["

        def write(sentence: Sentence) -> None:
            nonlocal before
            stream.write(f"{before}\n{sentence.to_json()}".encode())
            before = ","

        yield write
        stream.write(b"[]\n" if before == "[" else b"\n]\n")
