"""Cutting a text in a process of its own: the segmenter holds Python's lock, and works ahead of the parser here.

The process reads the text itself, a file or the standard input that it inherits, and writes records: a letter, the
length of what follows in four bytes, and that. ``S`` are sentences in CoNLL-U, ``E`` is the error of a paragraph that
is left out, ``F`` that of the whole text, and ``.`` the end.
"""

from __future__ import annotations

import os
import queue
import stat
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from .errors import DataError, Errors
from .files import open_input, source_name
from .segmenter import Segmenter, read_cut
from .sentence import Sentence

AHEAD = 64  # records, of up to 64 KiB of text each, that wait for the parser
PAUSE = 0.05  # seconds without a record after which the parser takes what there is


def cut_file(model: str | Path, path: str | Path, report: Errors) -> Iterator[Sentence | None]:
    """The sentences of a text, cut in a process of its own; None where no more text has come for a moment.

    Parameters
    ----------
    model
        See `Segmenter`.
    path
        A file, or ``-`` for standard input.
    report
        Gets the errors of paragraphs that are not UTF-8; if it returns, they are left out.

    Raises
    ------
    DataError
        The text or the segmenter cannot be read.
    """
    source = source_name(path)
    number = 0
    with closing(_records(model, path, str(path) == "-" and _is_live())) as records:
        for kind, payload in records:
            if kind == b"S":
                for sentence in read_cut(payload, source, number):
                    number = sentence.number
                    yield sentence
            elif kind == b"":
                yield None
            else:
                error = DataError(payload.decode(errors="surrogateescape"))
                if kind == b"F":
                    raise error
                report(error)


def _is_live() -> bool:
    """Whether standard input is no file, so that more of it may come later."""
    try:
        return not stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:  # closed, as the process will say
        return False


def _records(model: str | Path, path: str | Path, live: bool) -> Generator[tuple[bytes, bytes], None, None]:
    """Records of the process up to its end; with ``live``, empty ones while none comes."""
    program = [sys.executable, "-P", "-m", __name__, str(model), str(path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    stdin = None if str(path) == "-" else subprocess.DEVNULL
    process = subprocess.Popen(program, stdin=stdin, stdout=subprocess.PIPE, env=environment)
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
        payload = stream.read(int.from_bytes(head[1:], "little"))
        kind = head[:1]
        if len(head) < 5:
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


def main(model: str, path: str) -> None:
    """Cut a text into records on standard output."""

    def report(error: DataError) -> None:
        _send(b"E", str(error).encode(errors="surrogateescape"))

    source, stem = source_name(path), "" if path == "-" else Path(path).name.partition(".")[0]
    document = "".join(character if character.isprintable() else "_" for character in stem)
    try:
        segmenter = Segmenter(model)
        with open_input(path) as stream:
            for portion in segmenter.cut_stream(stream, source, Errors(report), document):
                _send(b"S", portion)
        _send(b".")
    except (ValueError, OSError) as error:
        _send(b"F", str(error).encode(errors="surrogateescape"))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (BrokenPipeError, KeyboardInterrupt):  # the parser ended
        os._exit(1)
