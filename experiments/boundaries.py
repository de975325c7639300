"""Sentence boundaries chosen together with the trees, for text without punctuation: an experiment, not a feature.

    python experiments/boundaries.py MODEL DEV.conllu

The best sequence of sentences is the one whose best trees have the highest scores together, with a constant for every
sentence; dynamic programming over all spans of up to ``--longest`` words finds it. Gold words are given. The constant,
and what a boundary is worth that the model's segmenter finds, too, are chosen on the first half of the file; F1 of
sentences and LAS are those of the second half.
"""

from __future__ import annotations

import argparse
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch

from mh4.data.conllu import read_conllu
from mh4.data.sentence import Sentence
from mh4.data.text import text_of
from mh4.parsers.chart import ChartParser
from mh4.parsers.registry import load
from mh4.parsers.sources import require_segmenter
from mh4.trees.evaluation import evaluate

CONSTANTS = (-16, -12, -10, -8, -6, -5, -4, -3, -2, -1, 0, 1, 2)
WEIGHTS = (0, 1, 2, 3, 4, 6, 8, 12)
BATCH_WORDS = 40_000


def span_scores(parser: ChartParser, words: list[str], longest: int) -> np.ndarray:
    """At [i, k] the score of the best tree of the k words from word i on; −inf where there are none."""
    found = np.full((len(words), longest + 1), -np.inf)
    for length in range(1, longest + 1):
        starts = np.arange(len(words) - length + 1)
        for own in np.array_split(starts, 1 + len(starts) * length // BATCH_WORDS):
            scores = np.stack(parser.score([Sentence(words[i : i + length]) for i in own]))
            best = parser.decoder.decode_batch(scores, [length] * len(own), threads=1)
            found[own, length] = [tree.score for tree in best]
    return found


def best_spans(scores: np.ndarray, bonus: np.ndarray) -> list[int]:
    """Boundaries, the first 0, of the spans with the highest sum; ``bonus[j]`` goes with a boundary before word j."""
    n, longest = len(scores), scores.shape[1] - 1
    best, back = np.full(n + 1, -np.inf), np.zeros(n + 1, np.int64)
    best[0] = 0
    for j in range(1, n + 1):
        lengths = np.arange(1, min(longest, j) + 1)
        values = best[j - lengths] + scores[j - lengths, lengths]
        back[j] = lengths[values.argmax()]
        best[j] = values.max() + bonus[j]
    boundaries = [n]
    while boundaries[-1]:
        boundaries.append(int(boundaries[-1] - back[boundaries[-1]]))
    return boundaries[::-1]


def sentence_f1(gold: list[int], found: list[int]) -> float:
    """In per cent."""
    correct = len(set(pairwise(gold)) & set(pairwise(found)))
    return 200 * correct / (len(gold) + len(found) - 2)


def boundaries_of(sentences: list[Sentence]) -> list[int]:
    """The number of words before each sentence and after the last one."""
    return [0, *np.cumsum([len(sentence) for sentence in sentences]).tolist()]


def main() -> None:
    """Print one line a way of cutting."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("dev", type=Path, metavar="DEV")
    parser.add_argument("--longest", type=int, default=45, help="words of a span (default: %(default)s)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sentences = list(read_conllu(arguments.dev))
    halves = sentences[: len(sentences) // 2], sentences[len(sentences) // 2 :]
    model = load(arguments.model, device="cpu", threads=1)
    if not isinstance(model, ChartParser):
        raise SystemExit(f"{arguments.model}: no exact parser")
    segmenter, scores, golds, cuts = require_segmenter(model.segmenter), [], [], []
    for half in halves:
        words = [form for sentence in half for form in sentence.forms]
        cut = list(segmenter.cut("".join(text_of(half))))
        if [form for sentence in cut for form in sentence.forms] != words:
            raise SystemExit(f"{arguments.model}: finds other words than {arguments.dev} has")
        scores.append(span_scores(model, words, arguments.longest))
        golds.append(boundaries_of(half))
        cuts.append(boundaries_of(cut))

    def choose(half: int, constant: float, weight: float) -> list[int]:
        bonus = np.full(len(scores[half]) + 1, float(constant))
        bonus[cuts[half]] += weight
        return best_spans(scores[half], bonus)

    def tuned(weights: tuple[int, ...]) -> list[int]:
        settings = max(product(CONSTANTS, weights), key=lambda one: sentence_f1(golds[0], choose(0, *one)))
        print(f"constant {settings[0]}, weight of the segmenter {settings[1]}")
        return choose(1, *settings)

    ways = {"gold": golds[1], "segmenter": cuts[1], "trees": tuned((0,)), "both": tuned(WEIGHTS)}
    words = [form for sentence in halves[1] for form in sentence.forms]
    annotate = load(arguments.model, device="cpu", threads=1)
    for name, found in ways.items():
        parsed = list(annotate([words[i:j] for i, j in pairwise(found)]))
        las = evaluate(halves[1], parsed).las
        print(f"{name}: {len(found) - 1} sentences, F1 {sentence_f1(golds[1], found):.2f}, LAS {las:.2f}", flush=True)


if __name__ == "__main__":
    main()
