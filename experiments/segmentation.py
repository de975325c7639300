"""Predicted segmentation of test files with UDPipe (Straka and Straková 2017), for Tables 5 and 6.

    python experiments/segmentation.py train TRAIN.conllu DEV.conllu -o MODEL.udpipe
    python experiments/segmentation.py segment MODEL.udpipe TEST.conllu -o SEGMENTED.conllu

The first trains a segmenter of UDPipe's own default settings, for treebanks whose model from the shared task is not at
hand. The second cuts the text of a gold file into sentences and words; `grid.py` does so by itself where it gets a
model in place of a segmented file. Both need the extra ``text``: ``pip install -e '.[text]'``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import conllu

from mh4.data.errors import DataError, require
from mh4.data.files import atomic_output

MODEL_SUFFIX = ".udpipe"


def raw_text(path: Path) -> str:
    """The text of a treebank: documents and paragraphs apart by an empty line, sentences by a space.

    Words are joined as their SpaceAfter says, multiword tokens as they are written.

    Raises
    ------
    DataError
        The file is no CoNLL-U.
    """
    try:
        sentences = conllu.parse(path.read_text(encoding="utf-8"))
    except (conllu.exceptions.ParseException, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from None
    pieces: list[str] = []
    for sentence in sentences:
        if pieces and any(key.startswith(("newdoc", "newpar")) for key in sentence.metadata):
            pieces.append("\n\n")
        covered = 0  # the last word of a multiword token
        for token in sentence:
            number = token["id"]
            if isinstance(number, tuple):
                if number[1] != "-":
                    continue
                covered = number[2]
            elif number <= covered:
                continue
            spaced = (token["misc"] or {}).get("SpaceAfter") != "No"
            pieces.append(token["form"] + (" " if spaced else ""))
    return "".join(pieces)


def segment(model: Path, text: str) -> str:
    """Sentences and words of a text, as CoNLL-U without annotation.

    Raises
    ------
    DataError
        The file is no model of UDPipe, or one that has no segmenter.
    """
    udpipe = require("ufal.udpipe", "text")
    loaded = udpipe.Model.load(str(model))
    if loaded is None:
        raise DataError(f"{model}: not a model of UDPipe")
    error = udpipe.ProcessingError()
    none = udpipe.Pipeline.NONE
    segmented = udpipe.Pipeline(loaded, "tokenize", none, none, "conllu").process(text, error)
    if error.occurred():
        raise DataError(f"{model}: {error.message}")
    return segmented


def segment_file(model: Path, gold: Path, output: Path) -> Path:
    """Write the segmented text of a gold file; returns ``output``."""
    segmented = segment(model, raw_text(gold))
    with atomic_output(output) as stream:
        stream.write(segmented.encode())
    return output


def train_segmenter(train: Path, dev: Path, options: str = "") -> bytes:
    """A model of UDPipe that segments, the best one on ``dev``.

    Parameters
    ----------
    options
        As of UDPipe's ``--tokenizer``, such as ``"epochs=20"``.

    Raises
    ------
    DataError
        What UDPipe makes of the files or the options.
    """
    udpipe = require("ufal.udpipe", "text")
    error = udpipe.ProcessingError()

    def read(path: Path) -> Any:
        reader, sentences = udpipe.InputFormat.newConlluInputFormat(), udpipe.Sentences()
        reader.setText(path.read_text(encoding="utf-8"))
        sentence = udpipe.Sentence()
        while reader.nextSentence(sentence, error):
            sentences.append(sentence)
            sentence = udpipe.Sentence()
        if error.occurred():
            raise DataError(f"{path}: {error.message}")
        return sentences

    none = udpipe.Trainer.NONE
    model = udpipe.Trainer.train("morphodita_parsito", read(train), read(dev), options, none, none, error)
    if error.occurred():
        raise DataError(f"{train}: {error.message}")
    return model


def main() -> None:
    """Train or segment."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train a segmenter")
    train.add_argument("train", type=Path, metavar="TRAIN")
    train.add_argument("dev", type=Path, metavar="DEV")
    train.add_argument("--options", default="", help="as of udpipe --tokenizer; default: UDPipe's")
    cut = commands.add_parser("segment", help="cut the text of a gold file")
    cut.add_argument("model", type=Path, metavar="MODEL")
    cut.add_argument("gold", type=Path, metavar="GOLD")
    for command in (train, cut):
        command.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        if arguments.command == "segment":
            segment_file(arguments.model, arguments.gold, arguments.output)
            return
        model = train_segmenter(arguments.train, arguments.dev, arguments.options)
        with atomic_output(arguments.output) as stream:
            stream.write(model)
    except (ValueError, OSError) as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
