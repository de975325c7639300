"""What the margins of a model mean, fitted on a treebank that it was not trained on."""

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
from mh4.parsers.greedy import GreedyParser
from mh4.parsers.model_files import CALIBRATION, WEIGHTS, read_weights
from mh4.parsers.packages.cache import find_model
from mh4.parsers.registry import load
from mh4.trees.reliability import CalibrationReport, report_calibration

from .treebanks import Files, by_name, listed, read_treebanks

log = logging.getLogger("mh4")


class Calibrated(NamedTuple):
    """What `calibrate` did: the calibration that it wrote, and how well two, each of half the sentences, hold.

    Attributes
    ----------
    calibration : Calibration
    report : CalibrationReport, optional
        Of words whose confidence comes from the other half of the sentences; None if a half is too small for that.
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
        CoNLL-U with gold trees; for a model of several treebanks, such files by their names.
    device, threads
        See `mh4.load`.
    errors : {"raise", "skip"} or callable
        What happens at a sentence that is not valid.

    Raises
    ------
    DataError
        A bad treebank, or too few words or no relations in it; a damaged model.
    ValueError
        A model without an exact decoder.
    """
    folder = find_model(model)
    parser = load(folder, device=device, threads=threads)
    if not isinstance(parser, ChartParser):
        raise ValueError(f"{model}: a greedy parser has no exact decoder, so there is nothing to calibrate")
    read = {one.name: one.sentences for one in read_treebanks(treebank, errors)}
    golds, predictions = _predicted(parser, read)
    if not golds:
        raise DataError(
            f"{listed(treebank)}: every sentence has more than {parser.longest} words, and is parsed in pieces"
        )
    try:
        calibration = Calibration.fit(predictions, golds)
    except DataError as error:
        raise DataError(f"{listed(treebank)}: {error}") from None
    calibration.save(folder)
    try:
        return Calibrated(calibration, cross_fitted(predictions, golds))
    except DataError:  # enough for the whole need not be enough for halves
        return Calibrated(calibration, None)


def _predicted(
    parser: ChartParser, treebanks: Mapping[str | None, Sequence[Sentence]]
) -> tuple[list[Sentence], list[Annotation]]:
    """Gold trees and predictions with margins, without sentences parsed in pieces, which have none."""
    golds: list[Sentence] = []
    predictions: list[Annotation] = []
    for name, sentences in treebanks.items():
        whole = [sentence for sentence in sentences if len(sentence) <= parser.longest]
        golds += whole
        predictions += parser.predict_with_margins(whole, name)
    return golds, predictions


def cross_fitted(predictions: Sequence[Annotation], golds: Sequence[Sentence]) -> CalibrationReport:
    """How well confidences hold, those of every other sentence fitted on the rest.

    DataError: One half cannot be fitted on.
    """
    columns: list[tuple[np.ndarray, ...]] = []
    for half in (0, 1):
        calibration = Calibration.fit(predictions[1 - half :: 2], golds[1 - half :: 2])
        for prediction, gold in zip(predictions[half::2], golds[half::2], strict=True):
            columns.append(compared(calibration, prediction, gold))
    return report_calibration(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def compared(calibration: Calibration, prediction: Annotation, gold: Sentence) -> tuple[np.ndarray, ...]:
    """Of the words of a sentence: margin, confidence in the head and in the word, whether head and word are right.

    Where the gold relation is not known, the confidence in the word is NaN, and it does not count as wrong.
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
    """Fit the calibration of the model that training left in a folder, if it is exact and dev suffices."""
    if not isinstance(parser, ChartParser) or (folder / CALIBRATION).exists() or not (folder / WEIGHTS).exists():
        return
    parser.network.load_state_dict(read_weights(folder / WEIGHTS))
    golds, predictions = _predicted(parser, by_name(dev))
    try:
        Calibration.fit(predictions, golds).save(folder)
    except DataError as error:
        log.warning("%s: no confidence yet: %s; see mh4 calibrate", folder, error)
