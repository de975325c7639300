"""In which format sentences are written: CoNLL-U, or JSON where the name of the output asks for it."""

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
_OTHERS = (".csv", ".tsv", ".xml", ".html", ".zip", ".zst", ".7z", ".lz4")


def output_format(target: str | Path) -> tuple[str | Path, OutputFormat]:
    """Where an output goes, and its format.

    A file named ``.json`` is an array, ``.jsonl`` has a sentence in each line; ``json`` is the latter on standard
    output. All else is CoNLL-U. See `Sentence.to_dict`.
    """
    if str(target) == "json":
        return "-", "jsonl"
    match Path(_PACKED.sub("", str(target))).suffix.lower():
        case ".json":
            return target, "json"
        case ".jsonl":
            return target, "jsonl"
        case suffix if suffix in _OTHERS:
            raise ValueError(f"{target}: {suffix[1:]} files cannot be written (name the file .conllu, .json or .jsonl)")
    return target, "conllu"


def require_conllu(target: str | Path) -> None:
    """ValueError if the name of an output asks for another format."""
    if output_format(target)[1] != "conllu":
        raise ValueError(f"{target}: JSON cannot be written here (name the file .conllu)")


@contextmanager
def sentence_writer(stream: BinaryIO, form: OutputFormat) -> Iterator[Callable[[Sentence], object]]:
    """Writes sentences into a stream, which holds valid JSON or CoNLL-U when the block ends well."""
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
