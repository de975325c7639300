"""Joint choice of sentence boundaries and trees, for text whose punctuation does not show where sentences end.

The segmenter gives the log-odds that a sentence ends with a token, the parser the score of the best tree of a span of
tokens. Dynamic programming over the likeliest spans finds the sequence of spans with the highest sum of both
(semi-Markov decoding, Sarawagi and Cohen 2004).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from mh4.data.segmenter import LONGEST_SENTENCE, Segmenter
from mh4.data.sentence import Layout, Sentence
from mh4.data.text import Span

from .segmenter import NeuralSegmenter, Proposal

LEAST_LOG = float(np.log(0.01))  # log-probability below which a span is left out
MOST_WORDS = 3.0  # limit for the total length of a paragraph's spans, relative to the length of the paragraph
SENTENCE_COST = 0.5  # subtracted from the score of each tree: what one more root adds by itself


class Spans(NamedTuple):
    """S half-open spans of tokens, sorted by their ends.

    Attributes
    ----------
    starts, stops
        int64 (S,).
    contested
        bool (S,): whether a span shares tokens with another one.
    """

    starts: np.ndarray
    stops: np.ndarray
    contested: np.ndarray


def likely_spans(odds: np.ndarray) -> Spans:
    """The spans that may be sentences: the segmenter's own choice, and the likeliest others.

    Parameters
    ----------
    odds
        float64 (T,), log-odds that a sentence ends with each token; +inf at the end of a paragraph.
    """
    # Log-probabilities that a sentence ends with each token, goes on after it, and begins with it; those of `inside`
    # are for spans of growing length, that no sentence ends before their last token.
    ends, goes_on = -np.logaddexp(0, -odds), -np.logaddexp(0, odds)
    begins, inside = np.concatenate([[0.0], ends[:-1]]), np.zeros(len(odds))
    own = _taken(odds > 0)
    starts, stops, logs = [own[0]], [own[1]], [np.full(len(own[0]), np.inf)]
    for length in range(1, min(LONGEST_SENTENCE, len(odds)) + 1):
        likely = np.flatnonzero(begins[: len(inside)] + inside + ends[length - 1 :] >= LEAST_LOG)
        starts.append(likely)
        stops.append(likely + length)
        logs.append(begins[likely] + inside[likely] + ends[likely + length - 1])
        inside = inside[:-1] + goes_on[length - 1 : -1]
        if inside.max(initial=-np.inf) < LEAST_LOG:
            break
    spans = np.concatenate(starts), np.concatenate(stops)
    kept = _affordable(*spans, np.concatenate(logs), np.flatnonzero(odds == np.inf) + 1)
    first, last = (one[kept] for one in spans)
    borders = np.bincount(first, minlength=len(odds) + 1) - np.bincount(last, minlength=len(odds) + 1)
    several = np.concatenate([[0], np.cumsum(np.cumsum(borders) > 1)])
    return Spans(first, last, several[last] > several[first])


def _taken(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and stops of the segmenter's own sentences; overlong ones are cut, as in `Segmenter`."""
    stops = np.flatnonzero(ends) + 1
    starts = np.concatenate([[0], stops[:-1]])
    pieces = [np.arange(start, stop, LONGEST_SENTENCE) for start, stop in zip(starts, stops, strict=True)]
    firsts = np.concatenate(pieces) if pieces else starts
    return firsts, np.concatenate([firsts[1:], stops[-1:]])


def _affordable(starts: np.ndarray, stops: np.ndarray, logs: np.ndarray, paragraphs: np.ndarray) -> np.ndarray:
    """Indices of distinct spans, sorted by their ends: the likeliest within `MOST_WORDS`, and all with logs of +inf."""
    # In each paragraph, take spans from the likeliest on until their total length reaches the limit.
    sizes = np.diff(paragraphs, prepend=0)
    _, first = np.unique(stops * (paragraphs[-1] + 1) + starts, return_index=True)
    order = first[np.lexsort((-logs[first], np.searchsorted(paragraphs, stops[first])))]
    own = np.searchsorted(paragraphs, stops[order])
    words = np.concatenate([[0], np.cumsum(stops[order] - starts[order])])
    before = words[np.searchsorted(own, own)]
    kept = order[(words[1:] - before <= MOST_WORDS * sizes[own]) | (logs[order] == np.inf)]
    return kept[np.lexsort((starts[kept], stops[kept]))]


def best_ends(values: np.ndarray, spans: Spans, size: int) -> np.ndarray:
    """bool (size,): the ends of the spans that partition the tokens with the highest sum of ``values`` (S,)."""
    best, back = [0.0] + [-np.inf] * size, [0] * (size + 1)
    for start, stop, value in zip(spans.starts.tolist(), spans.stops.tolist(), values.tolist(), strict=True):
        if best[start] + value > best[stop]:
            best[stop], back[stop] = best[start] + value, start
    ends = np.zeros(size, np.bool_)
    while size:
        ends[size - 1] = True
        size = back[size]
    return ends


class JointSegmenter(Segmenter):
    """A segmenter that chooses sentence ends by its network's log-odds and the tree scores of a parser together.

    Parameters
    ----------
    segmenter
        Finds the tokens.
    tree_scores
        Returns float (S,), the score of the best tree of each sentence. Where it is NaN, the segmenter alone decides
        about all spans that overlap with the sentence, directly or through others.
    """

    def __init__(self, segmenter: NeuralSegmenter, tree_scores: Callable[[Sequence[Sentence]], np.ndarray]) -> None:
        self.segmenter, self._tree_scores = segmenter, tree_scores

    @property
    def files(self) -> Mapping[str, bytes]:
        return self.segmenter.files

    def _tokens(self, texts: Sequence[str]) -> list[list[list[Span]]]:
        proposals = list(self.segmenter.propose(texts))
        stops = np.cumsum([len(proposal.tokens) for proposal in proposals])
        if not stops[-1]:
            return [[] for _ in texts]
        odds = np.concatenate([proposal.odds for proposal in proposals], dtype=np.float64)
        ends = self._ends(odds, list(chain.from_iterable(map(_forms, texts, proposals))))
        parts = np.split(ends, stops[:-1])
        return [proposal.sentences(own) for proposal, own in zip(proposals, parts, strict=True)]

    def _ends(self, odds: np.ndarray, forms: Sequence[Sequence[str]]) -> np.ndarray:
        spans = likely_spans(odds)
        values = np.where(np.isinf(odds), 0, odds)[spans.stops - 1]
        contested = np.flatnonzero(spans.contested)
        places = zip(spans.starts[contested].tolist(), spans.stops[contested].tolist(), strict=True)
        words = [list(chain.from_iterable(forms[start:stop])) for start, stop in places]
        sentences = [Sentence.of_columns(own, ["_"] * len(own), (), Layout()) for own in words]
        scores = self._tree_scores(sentences)
        covers = np.bincount(spans.starts + 1, minlength=len(odds) + 2) - np.bincount(
            spans.stops, minlength=len(odds) + 2
        )
        groups = np.cumsum(np.cumsum(covers) == 0)[spans.starts[contested]]  # no span covers the border of two groups
        known = ~np.isin(groups, groups[np.isnan(scores)])
        values[contested[known]] += scores[known] - SENTENCE_COST
        return best_ends(values, spans, len(odds))


def _forms(text: str, proposal: Proposal) -> Iterator[tuple[str, ...]]:
    """The words of each token."""
    return (token.words or (" ".join(text[token.start : token.stop].split()),) for token in proposal.tokens)
