"""Train UDPipe 1 (Straka and Straková 2017), for comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError, Errors
from mh4.data.udpipe import EXTRA
from mh4.machine import require


def train_udpipe(
    train: str | Path, dev: str | Path, tokenizer: str, tagger: str | None = None, parser: str | None = None
) -> bytes:
    """Train a UDPipe model and return its bytes; UDPipe reports progress on the system's stderr.

    Parameters
    ----------
    train, dev
        CoNLL-U files; invalid sentences are left out.
    tokenizer, tagger, parser
        Options of ``udpipe --tokenizer``, ``--tagger`` and ``--parser``; with None, that component is not trained.

    Raises
    ------
    DataError
        UDPipe rejects the files or the options.
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
