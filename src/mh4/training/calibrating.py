"""Calibration of a model's margins, fitted on a treebank that the model was not trained on."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mh4.data.annotation import Annotation
from mh4.data.errors import DataError, ErrorPolicy
from mh4.data.sentence import Sentence
from mh4.parsers.calibration import Calibration, Compared
from mh4.parsers.chart import ChartParser
from mh4.parsers.folder import ModelFolder
from mh4.parsers.greedy import GreedyParser
from mh4.parsers.model_files import CALIBRATION, WEIGHTS, read_weights
from mh4.parsers.ownership import sole_owner
from mh4.parsers.packages.cache import find_model
from mh4.parsers.registry import load
from mh4.trees.reliability import CalibrationReport, report_calibration

from .treebanks import Files, by_name, listed, read_treebanks

SLOW_BEYOND = 60  # words, for decoders whose margins take a decode per word: 1ec needs 3 s for 70 words, 19 s for 94

log = logging.getLogger("mh4")


class Calibrated(NamedTuple):
    """The result of `calibrate`.

    Attributes
    ----------
    calibration : Calibration
        The calibration that was written.
    report : CalibrationReport, optional
        The reliability of calibrations fitted on half of the sentences, each tested on the other half; None if a half
        is too small.
    """

    calibration: Calibration
    report: CalibrationReport | None


def calibrate(
    model: str | Path,
    treebank: Files,
    *,
    device: str = "auto",
    threads: int | None = None,
    errors: ErrorPolicy = "raise",
) -> Calibrated:
    """Fit the calibration of a model to a treebank that it was not trained on, and write it into the model's folder.

    Parameters
    ----------
    model
        The folder of a model with an exact decoder, or the name of a downloaded one.
    treebank
        CoNLL-U with gold trees; for a model of several treebanks, such files by name. Sentences that are parsed in
        pieces are left out, with ``1ec`` also those of more than 60 words.
    device, threads
        See `mh4.load`.
    errors : {"raise", "skip"} or callable
        What to do if a sentence is not valid.

    Raises
    ------
    DataError
        A bad treebank, or too few words or no relations in it; a damaged model; or a process that is training it.
    ValueError
        A model without an exact decoder.
    """
    folder = find_model(model)
    _ = ModelFolder(folder).config  # a DataError unless it is a model
    with sole_owner(folder):  # training would replace the weights that are calibrated here
        parser = load(folder, device=device, threads=threads)
        if not isinstance(parser, ChartParser):
            raise ValueError(f"{model}: a greedy parser has no exact decoder, so there is nothing to calibrate")
        golds, predictions = _predicted(parser, {own.name: own.sentences for own in read_treebanks(treebank, errors)})
        if not golds:
            problem = f"every sentence has more than {_longest(parser)} words (add shorter ones)"
            raise DataError(f"{listed(treebank)}: {problem}")
        try:
            calibration = Calibration.fit(predictions, golds)
        except DataError as error:
            raise DataError(f"{listed(treebank)}: {error}") from None
        calibration.save(folder)
    try:
        return Calibrated(calibration, cross_fitted(predictions, golds))
    except DataError:  # the whole suffices, but a half does not
        return Calibrated(calibration, None)


def _longest(parser: ChartParser) -> int:
    """Words in the longest sentence to calibrate on: longer ones are parsed in pieces, or their margins are slow."""
    return parser.longest if parser.decoder.has_fast_margins else min(parser.longest, SLOW_BEYOND)


def _predicted(
    parser: ChartParser, treebanks: Mapping[str | None, Sequence[Sentence]]
) -> tuple[list[Sentence], list[Annotation]]:
    """Gold trees and predictions with margins, of sentences that are not too long."""
    golds: list[Sentence] = []
    predictions: list[Annotation] = []
    for name, sentences in treebanks.items():
        whole = [sentence for sentence in sentences if len(sentence) <= _longest(parser)]
        golds += whole
        predictions += parser.predict_with_margins(whole, name)
    return golds, predictions


def cross_fitted(predictions: Sequence[Annotation], golds: Sequence[Sentence]) -> CalibrationReport:
    """The reliability of confidences, each half of the sentences with a calibration fitted on the other.

    The halves are every other sentence.

    DataError: One half does not suffice for a fit.
    """
    columns: list[tuple[np.ndarray, ...]] = []
    for half in (0, 1):
        calibration = Calibration.fit(predictions[1 - half :: 2], golds[1 - half :: 2])
        for prediction, gold in zip(predictions[half::2], golds[half::2], strict=True):
            columns.append(compared(calibration, prediction, gold))
    return report_calibration(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def compared(calibration: Calibration, prediction: Annotation, gold: Sentence) -> tuple[np.ndarray, ...]:
    """Arrays over the words of a sentence: margin, confidence in head and in word, whether head and word are right.

    Where the gold relation is unknown, the confidence in the word is NaN, and the word counts as right.
    """
    own = Compared.of(prediction, gold)
    heads, words = calibration.probabilities(own.margins, own.relations)
    right = own.head_right & own.relation_right | ~own.relation_known
    return own.margins, heads, np.where(own.relation_known, words, np.nan), own.head_right, right


def calibrate_best(
    parser: ChartParser | GreedyParser,
    dev: Sequence[Sentence] | Mapping[Any, Sequence[Sentence]],
    folder: Path,
) -> None:
    """Fit the calibration of the model that training left in a folder, if its decoder is exact and dev suffices."""
    if not isinstance(parser, ChartParser) or (folder / CALIBRATION).exists() or not (folder / WEIGHTS).exists():
        return
    parser.network.load_state_dict(read_weights(folder / WEIGHTS))
    golds, predictions = _predicted(parser, by_name(dev))
    try:
        Calibration.fit(predictions, golds).save(folder)
    except DataError as error:
        log.warning("%s: no confidence yet: %s; see mh4 calibrate", folder, error)
