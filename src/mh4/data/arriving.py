"""Read standard input and pipes as the data arrive, so that complete sentences need not wait for later ones."""

import io
import os
import select
import stat
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from .blocks import WAITING, blocks
from .errors import DataError, Errors
from .files import open_input, source_name
from .sentence import Sentence

PATIENCE = 0.005  # seconds to wait for more data; a busy writer usually needs less


def read_arriving(path: str | Path, report: Errors) -> Generator[Sentence | None, None, None]:
    """Like `read_conllu` on standard input or a pipe, but yield None whenever reading would block."""
    source, number = source_name(path), 0
    with open_input(path) as stream:
        for block in blocks(arriving_lines(stream)):
            if not block.lines:
                yield None
                continue
            number += 1
            try:
                sentence = Sentence.from_block(block, source, number)
            except DataError as error:
                report(error)
            else:
                yield sentence


def arriving_lines(stream: BinaryIO, longest: int = sys.maxsize) -> Iterator[bytes]:
    """Yield the lines of a stream, and `WAITING` when reading would block.

    Lines longer than ``longest`` bytes are split into pieces of that size.
    """
    if not _can_be_asked(stream):
        yield from iter(lambda: stream.readline(longest), b"")
        return
    rest = b""
    while True:
        if not select.select([stream], [], [], PATIENCE)[0]:
            yield WAITING
        portion = cast(io.BufferedReader, stream).read1(1 << 16)
        if not portion:
            break
        *lines, rest = (rest + portion).split(b"\n")
        for line in lines:
            yield from _cut(line + b"\n", longest)
        *cut, rest = _cut(rest, longest) or [b""]
        yield from cut
    if rest:
        yield rest


def _cut(line: bytes, longest: int) -> list[bytes]:
    return [line[i : i + longest] for i in range(0, len(line), longest)]


def _can_be_asked(stream: BinaryIO) -> bool:
    """Whether `select` tells if reading would block: for pipes and terminals, not for files or unpacked streams."""
    if os.name != "posix" or not isinstance(stream, io.BufferedReader) or not isinstance(stream.raw, io.FileIO):
        return False
    return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
