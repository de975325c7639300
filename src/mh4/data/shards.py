"""Cut a CoNLL-U file into shards that can be parsed independently, and read one shard."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .blocks import blocks
from .errors import DataError, ErrorPolicy, Errors
from .files import open_input
from .sentence import Sentence

WINDOW_WORDS = 20_000  # words read ahead so that sentences of similar length share a batch


@dataclass(frozen=True)
class Shard:
    """Consecutive sentences of a file.

    Attributes
    ----------
    source
        The file as the user named it.
    path
        Its absolute path.
    start, stop
        Byte offsets in the file, after unpacking.
    lines_before, sentences_before
        Number of lines and sentences of the file before ``start``.
    sentences
        Number of sentences in the shard, valid or not.
    """

    source: str
    path: str
    start: int
    stop: int
    lines_before: int
    sentences_before: int
    sentences: int


def cut_shards(path: str | Path, words: int = WINDOW_WORDS, source: str | Path | None = None) -> Iterator[Shard]:
    """Cut a file at blank lines into shards of at least ``words`` words, except the last one.

    The file is read once; memory does not grow with it. With the default, a shard equals the window of sentences that
    `Parser.parse` reads ahead, which makes batches the same and trees bit-identical unless invalid sentences are left
    out: shards count their words, windows do not. ``source`` is the user's name for the file, by default its path.

    Raises
    ------
    DataError
        The file cannot be read.
    """
    names = str(source or path), str(Path(path).absolute())
    start = stop = lines_before = lines = sentences_before = sentences = shard_words = 0
    with open_input(path) as stream:
        for block in blocks(stream):
            stop += len(block.lead) + sum(map(len, block.lines)) + len(block.blank)
            lines += block.lead.count(b"\n") + len(block.lines) + bool(block.blank)
            sentences += 1
            shard_words += sum(line.partition(b"\t")[0].isdigit() for line in block.lines)
            if shard_words >= words:
                yield Shard(*names, start, stop, lines_before, sentences_before, sentences)
                start, lines_before, sentences_before = stop, lines, sentences_before + sentences
                sentences = shard_words = 0
    if sentences:
        yield Shard(*names, start, stop, lines_before, sentences_before, sentences)


def read_shard(shard: Shard, errors: ErrorPolicy = "raise") -> Iterator[Sentence]:
    """Yield the sentences of a shard; they, and errors, have their line and number in the whole file.

    DataError: The file cannot be read or has changed since it was cut; or, with ``errors="raise"``, at the first bad
    sentence.
    """
    report = Errors.of(errors)
    with open_input(shard.path) as stream:
        stream.seek(shard.start)
        data = stream.read(shard.stop - shard.start)
    number = shard.sentences_before
    for number, block in enumerate(blocks(io.BytesIO(data)), start=shard.sentences_before + 1):
        block = block._replace(first_line=block.first_line + shard.lines_before)
        try:
            sentence = Sentence.from_block(block, shard.source, number)
        except DataError as error:
            report(error)
        else:
            yield sentence
    if len(data) != shard.stop - shard.start or number != shard.sentences_before + shard.sentences:
        raise DataError(f"{shard.source}: changed while it was being parsed (parse it again)")
