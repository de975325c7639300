"""Cutting a text in a process of its own: the segmenter holds Python's lock, and works ahead of the parser here.

The process reads the text from its standard input, which is the file, the pipe or the standard input that was opened
here, and writes records: a letter, the length of what follows in four bytes, and that. ``S`` is a `Cut`, ``E`` the
error of a paragraph that is left out, ``F`` that of the whole text, and ``.`` the end.
"""

from __future__ import annotations

import io
import os
import queue
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from mh4.machine import undisturbed

from .errors import DataError, Errors
from .files import is_descriptor, open_input, open_unread, source_name
from .segmenter import Cut, Segmenter, SegmenterModel, read_cut
from .sentence import Sentence

AHEAD = 64  # records, of up to 64 KiB of text each, that wait for the parser
PAUSE = 0.05  # seconds without a record after which the parser takes what there is


def cut_file(
    model: SegmenterModel | str | Path, path: str | Path, report: Errors
) -> Generator[Sentence | None, None, None]:
    """The sentences of a text, cut in a process of its own; None where no more text has come for a moment.

    Parameters
    ----------
    model
        What `Segmenter` is made of.
    path
        A file, a named pipe, or ``-`` for standard input.
    report
        Gets the errors of paragraphs that are not UTF-8; if it returns, they are left out.

    Raises
    ------
    DataError
        The text or the segmenter cannot be read.
    """
    source, segmenter = source_name(path), SegmenterModel.of(model)
    number = 0
    with (
        _text(path) as text,
        segmenter.copied() as copy,
        closing(_records([str(copy), str(segmenter.path), source, _document(path)], text)) as records,
    ):
        for kind, payload in records:
            if kind == b"S":
                for sentence in read_cut(Cut.from_bytes(payload), source, number):
                    number = sentence.number
                    yield sentence
            elif kind == b"":
                yield None
            else:
                error = DataError(payload.decode(errors="surrogateescape"))
                if kind == b"F":
                    raise error
                report(error)


@contextmanager
def _text(path: str | Path) -> Iterator[BinaryIO]:
    """The text, open and unread, with a descriptor that the process can inherit."""
    with open_unread(path) as opened:
        try:
            opened.fileno()
        except io.UnsupportedOperation:  # standard input that was replaced by something in memory
            with tempfile.TemporaryFile() as copy:
                shutil.copyfileobj(opened, copy)
                copy.seek(0)
                yield copy
        else:
            yield opened


def _document(path: str | Path) -> str:
    """The ID of the document, from the name of its file; empty for what has no name of its own."""
    stem = "" if is_descriptor(path) else Path(path).name.partition(".")[0]
    return "".join(character if character.isprintable() else "_" for character in stem)


def _records(arguments: list[str], text: BinaryIO) -> Generator[tuple[bytes, bytes], None, None]:
    """Records of a process that runs `main` up to its end; where more text may come later, empty ones while none comes.

    ``arguments`` are those of `main`.
    """
    live = not stat.S_ISREG(os.fstat(text.fileno()).st_mode)
    program = [sys.executable, "-P", "-m", __name__, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with undisturbed():
        process = subprocess.Popen(program, stdin=text, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    arrived: queue.Queue[tuple[bytes, bytes]] = queue.Queue(AHEAD)
    stopped = threading.Event()
    reader = threading.Thread(target=_receive, args=(process.stdout, arrived, stopped), daemon=True)
    reader.start()
    try:
        while True:
            try:
                record = arrived.get(timeout=PAUSE if live else None)
            except queue.Empty:
                record = (b"", b"")
            if record[0] == b".":
                return
            yield record
    finally:
        stopped.set()
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()


def _receive(stream: BinaryIO, arrived: queue.Queue[tuple[bytes, bytes]], stopped: threading.Event) -> None:
    """Put records into the queue until the last one, or until nobody wants them."""
    kind = b""
    while kind not in (b".", b"F") and not stopped.is_set():
        head = stream.read(5)
        size = int.from_bytes(head[1:], "little")
        payload = stream.read(size)
        kind = head[:1]
        if len(head) < 5 or len(payload) < size:
            kind, payload = b"F", b"the process that cuts the text ended early (out of memory?)"
        while not stopped.is_set():
            try:
                arrived.put((kind, payload), timeout=PAUSE)
                break
            except queue.Full:
                continue


def _send(kind: bytes, payload: bytes = b"") -> None:
    sys.stdout.buffer.write(kind + len(payload).to_bytes(4, "little") + payload)
    sys.stdout.buffer.flush()


def main(copy: str, model: str, source: str, document: str) -> None:
    """Cut the text on standard input, called ``source`` in errors, into records on standard output.

    ``copy`` is a file with the segmenter, called ``model`` in errors. It is removed as soon as it is read, so that it
    does not stay behind when the parser is killed.
    """

    def report(error: DataError) -> None:
        _send(b"E", str(error).encode(errors="surrogateescape"))

    try:
        content = Path(copy).read_bytes()
        Path(copy).unlink()
        segmenter = Segmenter(SegmenterModel(Path(model), content))
        with open_input("-", source) as stream:
            for cut in segmenter.cut_stream(stream, source, Errors(report), document):
                _send(b"S", cut.to_bytes())
        _send(b".")
    except BrokenPipeError:
        raise
    except (ValueError, OSError, MemoryError) as error:
        _send(b"F", (str(error) or "out of memory").encode(errors="surrogateescape"))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (BrokenPipeError, KeyboardInterrupt):  # the parser ended
        os._exit(1)
