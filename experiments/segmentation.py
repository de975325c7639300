"""Predicted segmentation of test files with UDPipe (Straka and Straková 2017), for Tables 5 and 6.

    python experiments/segmentation.py train TRAIN.conllu DEV.conllu -o MODEL.udpipe
    python experiments/segmentation.py segment MODEL.udpipe TEST.conllu -o SEGMENTED.conllu
    python experiments/segmentation.py score TRAIN.conllu DEV.conllu --seed 1 --udpipe MODEL.udpipe -o RESULT.json

The first trains a segmenter with UDPipe's default settings, for treebanks whose model from the shared task is not
available. The second cuts the text of a gold file into sentences and words; `grid.py` does this itself when given a
model instead of a segmented file. The third trains our own segmenter and scores both on the text of DEV, unless the
result exists. UDPipe needs the extra ``text``: ``pip install -e '.[text]'``.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from provenance import made_with
from scripting import run_script

from mh4.cli.bench.udpipe import train_udpipe
from mh4.data.conllu import read_conllu
from mh4.data.files import atomic_output
from mh4.data.text import text_of
from mh4.data.udpipe import UDPipeSegmenter
from mh4.training.segmenter import train_segmenter
from mh4.trees.evaluation import evaluate

MODEL_SUFFIX = ".udpipe"


def segment_file(model: Path, gold: Path, output: Path) -> Path:
    """Write the sentences and words that a model finds in the text of a gold file; returns ``output``.

    Raises
    ------
    DataError
        The gold file is not CoNLL-U, or the model is not a UDPipe model with a segmenter.
    """
    segmenter, text = UDPipeSegmenter(model, model.read_bytes()), "".join(text_of(read_conllu(gold)))
    with atomic_output(output) as stream:
        for sentence in segmenter.cut(text):
            stream.write(sentence.to_bytes())
    return output


def score(train: Path, dev: Path, seed: int, peer: Path, output: Path) -> None:
    """Write the F1 of both segmenters on gold text, and the processor seconds for training ours."""
    if output.exists():
        return
    gold = list(read_conllu(dev))
    start = time.process_time()
    own = train_segmenter(list(read_conllu(train)), gold, seed)
    result = {"train": train.name, "dev": dev.name, "seed": seed, "cpu_seconds": time.process_time() - start}
    for name, segmenter in (("mh4", own), ("udpipe", UDPipeSegmenter(peer, peer.read_bytes()))):
        scores = evaluate(gold, segmenter.cut("".join(text_of(gold)))).scores
        result[name] = {metric: 100 * scores[metric].f1 for metric in ("Tokens", "Words", "Sentences")}
    result |= made_with("cpu")
    with atomic_output(output) as stream:
        stream.write((json.dumps(result, indent=1) + "\n").encode())


def main() -> None:
    """Train, segment or score."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train a segmenter")
    train.add_argument("train", type=Path, metavar="TRAIN")
    train.add_argument("dev", type=Path, metavar="DEV")
    train.add_argument("--options", default="", help="as of udpipe --tokenizer; default: UDPipe's")
    cut = commands.add_parser("segment", help="cut the text of a gold file")
    cut.add_argument("model", type=Path, metavar="MODEL")
    cut.add_argument("gold", type=Path, metavar="GOLD")
    both = commands.add_parser("score", help="train our own segmenter, and score it beside UDPipe's")
    both.add_argument("train", type=Path, metavar="TRAIN")
    both.add_argument("dev", type=Path, metavar="DEV")
    both.add_argument("--seed", type=int, default=1)
    both.add_argument("--udpipe", type=Path, required=True, metavar="MODEL")
    for command in (train, cut, both):
        command.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.command == "segment":
        segment_file(arguments.model, arguments.gold, arguments.output)
        return
    if arguments.command == "score":
        score(arguments.train, arguments.dev, arguments.seed, arguments.udpipe, arguments.output)
        return
    model = train_udpipe(arguments.train, arguments.dev, arguments.options)
    with atomic_output(arguments.output) as stream:
        stream.write(model)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
