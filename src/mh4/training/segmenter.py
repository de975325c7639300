"""Training the segmenter of a model on the text of its treebank, before the parser."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from mh4.data.sentence import Sentence
from mh4.models.atoms import FEATURES, FEATURES_OF_FORMAT, Atoms
from mh4.models.randomness import Initial, Random, Randomness
from mh4.models.segmenter import SegmenterNetwork
from mh4.models.weight_average import WeightAverage
from mh4.parsers.multiword import MultiwordTokens
from mh4.parsers.segmenter import CUT_PLACES, CUT_RUNS, HASHES, AtomReader, Ends, NeuralSegmenter, SegmenterSettings

from .segmentation import GoldText, cut_runs, gold_text

log = logging.getLogger("mh4")

_PAUSE = 10  # seconds between two messages about the progress
_ODDS = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0)  # thresholds that are tried


@dataclass(frozen=True)
class Recipe:
    """Settings of the training of a segmenter.

    Attributes
    ----------
    size, hidden, layers, dropout
        See `SegmenterNetwork`.
    min_count, min_pair_count
        How often a feature, and a feature of two atoms side by side, must occur in training to have its own vector.
    unknown, all_unknown
        Probabilities that a feature, and that all features of an atom that name its letters, are treated as unknown.
    column_weight
        Weight of the loss of each column of the treebank that is an auxiliary task.
    window, batch, min_batches
        Atoms in a window, and full windows in a batch; fewer in a small treebank, which has at least ``min_batches`` if
        its windows are full.
    epochs, most_atoms
        Passes over the treebank; fewer over a large one, so that at most ``most_atoms`` are seen, but at least one
        pass.
    learning_rate, warmup
        The highest learning rate, and the steps over which it is reached; it then falls linearly. It would reach 0 if
        all windows were full. Short paragraphs leave it above 0 at the end, which costs no accuracy.
    average
        The share of the moving average of the weights that each step keeps.
    """

    size: int = 64
    hidden: int = 96
    layers: int = 1
    dropout: float = 0.33
    min_count: int = 3
    min_pair_count: int = 2
    unknown: float = 0.1
    all_unknown: float = 0.15
    column_weight: float = 0.3
    window: int = 64
    batch: int = 24
    min_batches: int = 10
    epochs: int = 30
    most_atoms: int = 4_000_000
    learning_rate: float = 0.005
    warmup: int = 20
    average: float = 0.99


RECIPE = Recipe()
# Features that name the letters of an atom.
_LETTERS = [FEATURES.index(name) for name in ("lowered", "exact", "with_previous", "with_next", "unit")]
_PAIRS = [FEATURES.index(name) for name in ("with_previous", "with_next")]
_GENTLE = (0.9, 0.99)  # decay of Adam's averages
_MAX_NORM = 1.0


class Examples(NamedTuple):
    """A atoms of P paragraphs to learn from.

    Attributes
    ----------
    ids : int32 (A, F)
    targets : float32 (A, 3)
    columns : int64 (A, K), -1 where nothing is learnt
    counts : int64 (P,), atoms of each paragraph
    """

    ids: np.ndarray
    targets: np.ndarray
    columns: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, reader: AtomReader, gold: GoldText) -> Examples:
        """Make examples from gold text."""
        atoms, ids = reader(gold.paragraphs)
        token = np.searchsorted(gold.stops, atoms.stops)  # the token that ends with the atom, if one does
        token[token == len(gold.stops)] = 0
        ends = gold.stops[token] == atoms.stops
        targets = np.stack([ends, ends & gold.ends_sentence[token], ends & gold.several[token]], axis=1)
        columns = np.where(ends[:, None], gold.values[token], -1)
        return cls(ids, targets.astype(np.float32), columns, atoms.counts)


def train_segmenter(
    train: Sequence[Sentence], dev: Sequence[Sentence], seed: int, recipe: Recipe | None = None
) -> NeuralSegmenter:
    """Train a segmenter on the text of ``train``, with thresholds for ends of tokens and sentences from ``dev``.

    On one kind of processor, the same seed, from 0 to 2⁶³ − 1, gives the same segmenter.
    """
    recipe = recipe or RECIPE
    start = time.monotonic()
    gold = gold_text(train)
    reader, lone_scripts, arrays = make_reader(gold, recipe)
    examples = Examples.of(reader, gold)
    randomness = Randomness(seed)
    with Initial(randomness):
        network = SegmenterNetwork(
            reader.vectors, recipe.size, recipe.hidden, recipe.layers, recipe.dropout, gold.classes
        )
    for module in network.modules():
        if isinstance(module, Random):
            module.randomness = randomness
    _fit(network, examples, recipe, np.random.default_rng(seed))
    settings = SegmenterSettings(
        max(FEATURES_OF_FORMAT), 0.0, 0.0, gold.spaces_in_words, lone_scripts, MultiwordTokens.learn(gold.multiword)
    )
    segmenter, tokens, sentences = _with_best_odds(
        NeuralSegmenter(settings, arrays | network.weights()), gold_text(dev)
    )
    seconds = time.monotonic() - start
    log.info("segmenter: dev tokens %.2f, sentences %.2f, after %.0f s", 100 * tokens, 100 * sentences, seconds)
    return segmenter


def make_reader(gold: GoldText, recipe: Recipe) -> tuple[AtomReader, tuple[int, ...], dict[str, np.ndarray]]:
    """The reader of text for training on gold text, with the lone scripts and the arrays that it is made of."""
    lone_scripts, cuts = cut_runs(gold)
    arrays = {
        CUT_RUNS: np.array(list(cuts), np.uint64).view(np.int64),
        CUT_PLACES: np.array(list(cuts.values()), np.int64),
        HASHES: np.zeros(0, np.int64),
    }
    _, hashes = AtomReader(lone_scripts, arrays, len(FEATURES)).atoms(gold.paragraphs)
    features, places, counts = np.unique(hashes, return_index=True, return_counts=True)
    is_pair = np.isin(places % len(FEATURES), _PAIRS)
    needed = np.where(is_pair, recipe.min_pair_count, recipe.min_count)
    arrays[HASHES] = features[counts >= needed].view(np.int64)
    return AtomReader(lone_scripts, arrays, len(FEATURES)), lone_scripts, arrays


def _fit(network: SegmenterNetwork, examples: Examples, recipe: Recipe, draw: np.random.Generator) -> None:
    """Train the network; afterwards its weights are the moving average of those in training."""
    optimizer = torch.optim.Adam(network.parameters(), betas=_GENTLE, foreach=True)
    average = WeightAverage(network, recipe.average)
    total = sum(examples.counts)
    epochs = min(recipe.epochs, max(1, recipe.most_atoms // total))
    windows = len(list(_windows(examples.counts, recipe.window, draw)))
    batch = max(1, min(recipe.batch, windows // recipe.min_batches)) * recipe.window
    steps = epochs * (windows * recipe.window // batch + 1)
    step, shown = 0, time.monotonic()
    network.train()
    for epoch in range(1, epochs + 1):
        for own in _batches(_windows(examples.counts, recipe.window, draw), batch):
            step += 1
            rate = recipe.learning_rate * min(1.0, step / recipe.warmup) * max(0.0, 1 - step / steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            _loss(network, examples, own, recipe, draw).backward()
            nn.utils.clip_grad_norm_(network.parameters(), _MAX_NORM)
            optimizer.step()
            average.update(step)
        if time.monotonic() > shown + _PAUSE:
            shown = time.monotonic()
            log.info("segmenter: epoch %d of %d", epoch, epochs)
    network.eval()
    average.settle()


def _windows(counts: np.ndarray, size: int, draw: np.random.Generator) -> Iterator[tuple[int, int]]:
    """The windows of a pass in random order, as half-open ranges of atoms.

    The first window of a long paragraph has a random length, so that windows begin elsewhere in every pass.
    """
    windows = []
    begin = 0
    for count in counts.tolist():
        end = begin + count
        stop = begin + (int(draw.integers(1, size + 1)) if count > size else count)
        while begin < end:
            windows.append((begin, min(stop, end)))
            begin, stop = min(stop, end), stop + size
    return (windows[i] for i in draw.permutation(len(windows)).tolist())


def _batches(windows: Iterator[tuple[int, int]], size: int) -> Iterator[list[tuple[int, int]]]:
    """Batches of windows with ``size`` atoms or a little more; the last may have fewer."""
    batch: list[tuple[int, int]] = []
    atoms = 0
    for first, stop in windows:
        batch.append((first, stop))
        atoms += stop - first
        if atoms >= size:
            yield batch
            batch, atoms = [], 0
    if batch:
        yield batch


def _loss(
    network: SegmenterNetwork,
    examples: Examples,
    windows: Sequence[tuple[int, int]],
    recipe: Recipe,
    draw: np.random.Generator,
) -> Tensor:
    """The mean loss of an atom."""
    rows = np.concatenate([np.arange(first, stop) for first, stop in windows])
    ids = examples.ids[rows]
    unknown = draw.random(ids.shape, np.float32) < recipe.unknown
    unknown[:, _LETTERS] |= draw.random((len(ids), 1), np.float32) < recipe.all_unknown
    ids = np.where(unknown, np.arange(ids.shape[1], dtype=np.int32), ids)
    lengths = torch.tensor([stop - first for first, stop in windows])
    found, columns = network(torch.from_numpy(ids), lengths)
    targets = torch.from_numpy(examples.targets[rows])
    loss = nn.functional.binary_cross_entropy_with_logits(found, targets, reduction="sum")
    for scores, values in zip(columns, torch.from_numpy(examples.columns[rows]).T, strict=True):
        known = nn.functional.cross_entropy(scores, values, ignore_index=-1, reduction="sum")
        loss = loss + recipe.column_weight * known
    return loss / len(rows)


def _with_best_odds(segmenter: NeuralSegmenter, gold: GoldText) -> tuple[NeuralSegmenter, float, float]:
    """The segmenter with the thresholds that are best on gold text, and its F1 of tokens and of sentences there."""
    token, sentence, tokens, sentences = best_odds(*segmenter.log_odds(gold.paragraphs), segmenter.settings, gold)
    return segmenter.with_odds(token, sentence), tokens, sentences


def best_odds(
    atoms: Atoms, odds: np.ndarray, settings: SegmenterSettings, gold: GoldText
) -> tuple[float, float, float, float]:
    """The thresholds for the ends of tokens and of sentences that are best on gold text, and F1 of both there.

    ``odds``, float32 (A, 3), are the log-odds of the atoms.
    """

    def scores(token: float, sentence: float) -> tuple[float, float]:
        ends = Ends.of(odds, atoms.after, replace(settings, token_odds=token, sentence_odds=sentence))
        return (
            _f1(gold.stops, atoms.stops[ends.tokens]),
            _f1(gold.stops[gold.ends_sentence], atoms.stops[ends.sentences]),
        )

    token = max(_ODDS, key=lambda one: (scores(one, 0.0)[0], -abs(one)))
    sentence = max(_ODDS, key=lambda one: (scores(token, one)[1], -abs(one)))
    return token, sentence, *scores(token, sentence)


def _f1(gold: np.ndarray, found: np.ndarray) -> float:
    """F1 of consecutive spans, given by their ends."""
    correct = len(set(pairwise([0, *gold.tolist()])) & set(pairwise([0, *found.tolist()])))
    return 2 * correct / max(1, len(gold) + len(found))
