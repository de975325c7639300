"""Confidence in drawings: weak arcs, and the next best heads of doubtful words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from .confidence import Confidence

SURE = 0.9  # words whose head has a lower probability are marked as doubtful
LEVEL, NOTE_SIZE, GAP = 22, 11, 8  # pixels: height of a level of arcs below the words, font size of notes, gap below
LEGEND = f"next best head of words whose head is less than {SURE:.0%} certain"


class Doubt(NamedTuple):
    """A word whose head is not certain."""

    word: int
    probability: float
    runner_up: int
    """The next best head; -1 if there is none."""


def doubts(confidence: Confidence | None) -> list[Doubt]:
    """The words whose head has a confidence below `SURE`, in order."""
    if confidence is None or confidence.heads is None:
        return []
    found = np.flatnonzero(confidence.heads < SURE).tolist()  # false for NaN
    return [Doubt(i + 1, float(confidence.heads[i]), int(confidence.runners_up[i])) for i in found]


def strength(confidence: Confidence | None, word: int) -> float:
    """The probability of a word's head, 1 if unknown."""
    if confidence is None or confidence.heads is None or np.isnan(confidence.heads[word - 1]):
        return 1.0
    return float(confidence.heads[word - 1])


def noted(doubt: Doubt, words: Sequence[str]) -> str:
    """A doubt as text for the terminal: the probability of the head, and the next best head."""
    other = "" if doubt.runner_up < 0 else f"  ╌ {'●' if doubt.runner_up == 0 else words[doubt.runner_up - 1]}"
    return f"{doubt.probability:4.0%}{other}"


def svg_below(found: Sequence[Doubt], centres: Sequence[float], top: float) -> tuple[list[str], float]:
    """SVG elements below the words of a picture: probabilities, and dashed arcs from next best heads.

    Parameters
    ----------
    found
        The doubtful words, at least one.
    centres
        x of the centre of each word; index 0 is unused.
    top
        y at the top of the free space.

    Returns
    -------
    list of str, float
        The elements, and y at their bottom.
    """
    spans = {one.word: tuple(sorted((one.runner_up, one.word))) for one in found if one.runner_up > 0}
    levels: dict[int, int] = {}
    lowest = np.zeros(len(centres), np.int64)  # level of the deepest arc so far at each word
    for d in sorted(spans, key=lambda d: (spans[d][1] - spans[d][0], d)):
        left, right = spans[d]
        levels[d] = 1 + int(lowest[left : right + 1].max())
        lowest[left : right + 1] = levels[d]
    floor = top + NOTE_SIZE + GAP
    elements = []
    for one in found:
        x = centres[one.word]
        note = escape(f"{one.probability:.0%}")
        elements.append(f'<text class="note" x="{x:.1f}" y="{top + NOTE_SIZE:.0f}">{note}</text>')
        if one.runner_up > 0:
            start = centres[one.runner_up] + (4 if x > centres[one.runner_up] else -4)
            way = 1 if x > start else -1
            bottom = floor + levels[one.word] * LEVEL
            bend = way * min(abs(x - start) / 2, 14)
            path = (
                f"M{start:.1f} {floor:.0f}Q{start:.1f} {bottom:.0f} {start + bend:.1f} {bottom:.0f}"
                f"H{x - bend:.1f}Q{x:.1f} {bottom:.0f} {x:.1f} {floor + 6:.0f}"
            )
        elif one.runner_up == 0:
            path = f"M{x:.1f} {floor + LEVEL:.0f}V{floor + 6:.0f}"
        else:
            continue
        elements.append(f'<path class="other" data-head="{one.runner_up}" data-dependent="{one.word}" d="{path}"/>')
        elements.append(f'<path class="tip" d="M{x:.1f} {floor:.0f}l-4 8q4 -2 8 0z"/>')
    deepest = max([levels.get(one.word, 1) for one in found if one.runner_up >= 0], default=0)
    return elements, floor + deepest * LEVEL
