"""Training the segmenter of a model in a process of its own, beside the parser's."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.errors import DataError, Errors, require
from mh4.data.segmenter import EXTRA
from mh4.parsers.checksums import write_file
from mh4.parsers.model_files import SEGMENTER

from .origin import Treebank

log = logging.getLogger("mh4")

# Of `udpipe --tokenizer`; more than 30 epochs hardly change what is found on dev.
DEFAULTS = {"epochs": "30"}
NAMES = (
    *("epochs", "dimension", "batch_size", "segment_size", "learning_rate", "learning_rate_final", "dropout"),
    *("early_stopping", "tokenize_url", "allow_spaces"),
)
_PAUSE = 10  # seconds between two lines about the progress
_TOTAL = re.compile(r"\bepochs=(\d+)")
_EPOCH = re.compile(r"Epoch (\d+),.*heldout tokens:.*/([\d.]+)%, sentences:.*/([\d.]+)%")
_FAILED = "failed: "


def segmenter_options(settings: bool | str, perceptron: bool = False) -> str | None:
    """What UDPipe is told: the defaults (True), changed by ``NAME=VALUE;…``; None for no segmenter (False).

    A perceptron gets none: it needs the tags of its words, which text has not.

    Raises
    ------
    ValueError
        An unknown setting, a value that is not a number, or settings while `ufal.udpipe` is not installed, or for a
        perceptron.
    TypeError
        Neither True nor False nor settings.
    """
    if not isinstance(settings, bool | str):
        raise TypeError(f'segmenter must be True, False or settings such as "epochs=50"; got {settings!r}')
    if perceptron and isinstance(settings, str):
        raise ValueError(
            "a perceptron cannot parse text, which has no tags; it gets no segmenter, and no settings of one"
        )
    if settings is False or perceptron:
        return None
    chosen = DEFAULTS.copy()
    for pair in filter(None, settings.split(";") if isinstance(settings, str) else ()):
        name, _, value = (part.strip() for part in pair.partition("="))
        if name not in NAMES:
            raise ValueError(
                f"unknown setting {name!r} of the segmenter; known: {', '.join(NAMES)} (segmenter=False trains none)"
            )
        if not re.fullmatch(r"\d*\.?\d+", value):
            raise ValueError(f"{name} of the segmenter must be a number, not {value!r}")
        chosen[name] = value
    try:
        require("ufal.udpipe", EXTRA)
    except ValueError as error:
        if settings is not True:
            raise
        log.warning("the model will not cut text: %s", error)
        return None
    return ";".join(f"{name}={value}" for name, value in chosen.items())


@contextmanager
def segmenter_beside(folder: Path, train: Treebank, dev: Treebank, options: str | None) -> Iterator[None]:
    """Train a segmenter while the block trains the parser, and write it into the folder when both are done.

    A failure of the segmenter is logged at once and leaves the model without one; when the block raises, it ends, too.
    The treebanks are those of the parser, with the sentences that were read from them.
    """
    if options is None:
        yield
        return
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with _readable(train) as train_file, _readable(dev) as dev_file, tempfile.TemporaryFile() as result:
        program = [sys.executable, "-P", "-m", __name__, str(train_file), str(dev_file), options]
        process = subprocess.Popen(
            program, stdin=subprocess.DEVNULL, stdout=result, stderr=subprocess.PIPE, env=environment
        )
        assert process.stderr is not None
        follower = threading.Thread(target=_follow, args=(process.stderr,), daemon=True)
        follower.start()
        try:
            yield
            if process.poll() is None:
                log.info("the parser is trained; waiting for the segmenter")
            process.wait()
        finally:
            process.kill()
            process.wait()
            follower.join()
            process.stderr.close()
        if process.returncode == 0:
            result.seek(0)
            write_file(folder / SEGMENTER, result.read())


@contextmanager
def _readable(treebank: Treebank) -> Iterator[str | Path]:
    """A file that can be read once more: of standard input and of pipes, a copy of what came."""
    path, sentences = treebank
    if os.path.isfile(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="mh4-") as folder:
        copy = Path(folder) / "treebank.conllu"
        write_conllu(sentences, copy)
        yield copy


def _follow(lines: IO[bytes]) -> None:
    """Log how the training goes."""
    total, shown, message = "?", time.monotonic(), ""
    for raw in lines:
        line = raw.decode(errors="replace").strip()
        if found := _TOTAL.search(line):
            total = found[1]
        elif found := _EPOCH.match(line):
            message = f"segmenter: epoch {found[1]} of {total}, dev tokens {found[2]}, sentences {found[3]}"
            if time.monotonic() >= shown + _PAUSE and found[1] != total:
                shown = time.monotonic()
                log.info("%s", message)
        elif line.startswith(_FAILED):
            log.warning("the model will not cut text: training the segmenter %s", line)
            return
    if message:
        log.info("%s", message)


def train_segmenter(train: str | Path, dev: str | Path, options: str) -> bytes:
    """A model of UDPipe that cuts text, the best one on ``dev``; see `train_udpipe`."""
    return train_udpipe(train, dev, options)


def train_udpipe(
    train: str | Path, dev: str | Path, tokenizer: str, tagger: str | None = None, parser: str | None = None
) -> bytes:
    """A model of UDPipe; its progress goes to the system's stderr.

    Parameters
    ----------
    train, dev
        CoNLL-U files; sentences that are not valid are left out.
    tokenizer, tagger, parser
        Options of ``udpipe --tokenizer``, ``--tagger`` and ``--parser``; None trains none.

    Raises
    ------
    DataError
        What UDPipe makes of the files or the options.
    """
    udpipe = require("ufal.udpipe", EXTRA)
    error = udpipe.ProcessingError()

    def read(path: str | Path) -> Any:
        reader, sentences = udpipe.InputFormat.newConlluInputFormat(), udpipe.Sentences()
        for sentence in read_conllu(path, errors=Errors(lambda error: None)):
            reader.setText(sentence.to_conllu())
            reader.nextSentence(read := udpipe.Sentence(), error)
            if error.occurred():
                raise DataError(f"{path}: {sentence.name}: {error.message}")
            sentences.append(read)
        return sentences

    none = udpipe.Trainer.NONE
    options = (tokenizer, none if tagger is None else tagger, none if parser is None else parser)
    model = udpipe.Trainer.train("morphodita_parsito", read(train), read(dev), *options, error)
    if error.occurred():
        raise DataError(f"{train}: {error.message}")
    return model


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(
            signal.SIGPIPE, signal.SIG_DFL
        )  # if the parser's process is killed, the next epoch's line ends this
    if hasattr(os, "nice"):
        os.nice(10)  # the parser goes first
    try:
        sys.stdout.buffer.write(train_segmenter(*sys.argv[1:4]))
    except (ValueError, OSError) as error:
        print(f"{_FAILED}{error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
