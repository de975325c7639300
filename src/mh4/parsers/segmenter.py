"""The segmenter of a model: a network over atoms, and rules that split multiword tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from itertools import pairwise, repeat
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mh4.data.segmenter import LONGEST_TOKEN, Segmenter, shortened
from mh4.data.text import Span
from mh4.data.udpipe import UDPIPE_FILE
from mh4.models.atoms import (
    EDGE,
    FEATURES_OF_FORMAT,
    NO_GAP,
    Atoms,
    HashTable,
    atoms_of,
    codes_of,
    features_of,
    ids_of,
    script_table,
)
from mh4.models.checked import STRICT, as_json
from mh4.models.segmenter import SENTENCE_END, SEVERAL_WORDS, TOKEN_END, Tagger

from .multiword import MultiwordTokens

SEGMENTER_SETTINGS, SEGMENTER_WEIGHTS = "segmenter.json", "segmenter.safetensors"
SEGMENTER_FILES = (SEGMENTER_SETTINGS, SEGMENTER_WEIGHTS, UDPIPE_FILE)  # a model has the first two, or the last

_SPAN = partial(tuple.__new__, Span)  # three times as fast as Span(…), which runs Python code

HASHES, CUT_RUNS, CUT_PLACES = "hashes", "cut_runs", "cut_places"


@dataclass(frozen=True, config=STRICT)
class SegmenterSettings:
    """Everything in a segmenter but its weights.

    Attributes
    ----------
    format
        Format of both files, see `FEATURES_OF_FORMAT`; higher numbers belong to later versions.
    token_odds, sentence_odds
        Log-odds above which a token, and a sentence, ends.
    spaces_in_words
        Whether white space may stand inside a word.
    lone_scripts
        Numbers of scripts in which each letter is an atom; see `mh4.models.atoms.script_of`.
    multiword
        Rules that split multiword tokens.
    """

    format: Annotated[int, Field(ge=1, le=max(FEATURES_OF_FORMAT))]
    token_odds: float
    sentence_odds: float
    spaces_in_words: bool
    lone_scripts: tuple[Annotated[int, Field(ge=0, lt=1 << 16)], ...]
    multiword: MultiwordTokens


class Ends(NamedTuple):
    """bool (A,) each: whether an atom ends a token, a sentence, and a token of several words."""

    tokens: np.ndarray
    sentences: np.ndarray
    several: np.ndarray

    @classmethod
    def of(cls, odds: np.ndarray, after: np.ndarray, settings: SegmenterSettings) -> Self:
        """Compare log-odds (A, 3) with the thresholds; for ``after`` see `Atoms`."""
        sentences = (odds[:, SENTENCE_END] > settings.sentence_odds) | (after == EDGE)
        tokens = (odds[:, TOKEN_END] > settings.token_odds) | sentences
        if not settings.spaces_in_words:
            tokens |= after != NO_GAP
        return cls(tokens, sentences, tokens & (odds[:, SEVERAL_WORDS] > 0))


class Proposal(NamedTuple):
    """The T tokens of a paragraph, and the log-odds that a sentence ends with each.

    Attributes
    ----------
    tokens
        In the order of the text; white space apart, they cover the paragraph.
    odds
        float32 (T,): log-odds minus the segmenter's threshold; +inf for the last token.
    """

    tokens: list[Span]
    odds: np.ndarray

    def sentences(self, ends: np.ndarray) -> list[list[Span]]:
        """The tokens of each sentence, overlong ones cut; ``ends``, bool (T,), marks the last token of a sentence."""
        stops = (np.flatnonzero(ends) + 1).tolist()
        found = [self.tokens[start:stop] for start, stop in pairwise([0, *stops])]
        if any(token.stop - token.start > LONGEST_TOKEN for token in self.tokens):
            found = [[short for token in own for short in shortened(token)] for own in found]
        return found


class AtomReader:
    """Turns paragraphs into the input of the network.

    Parameters
    ----------
    lone_scripts
        See `SegmenterSettings`.
    arrays
        Unsigned 64-bit numbers viewed as int64: ``hashes`` (V,) of known features, which are numbered from F on;
        ``cut_runs`` and ``cut_places`` (R,), see `atoms_of`.
    features
        F, the number of features of an atom.

    Raises
    ------
    ValueError
        An array is missing or invalid.
    """

    def __init__(self, lone_scripts: Sequence[int], arrays: Mapping[str, np.ndarray], features: int) -> None:
        for name in (HASHES, CUT_RUNS, CUT_PLACES):
            if name not in arrays:
                raise ValueError(f"{name} is missing")
            if arrays[name].dtype != np.int64 or arrays[name].ndim != 1:
                raise ValueError(f"{name} is not a vector of 64-bit integers")
        hashes, runs, places = arrays[HASHES], arrays[CUT_RUNS], arrays[CUT_PLACES]
        for name, own in ((HASHES, hashes), (CUT_RUNS, runs)):
            if len(np.unique(own)) < len(own) or not own.all():
                raise ValueError(f"{name} holds a hash twice, or 0")
        if len(runs) != len(places):
            raise ValueError(f"{CUT_PLACES} and {CUT_RUNS} differ in length")
        self.vectors = len(hashes) + features
        self._vocabulary = HashTable.of(hashes.view(np.uint64), np.arange(features, self.vectors))
        self._cuts = HashTable.of(runs.view(np.uint64), places)
        self._lone_scripts = script_table(lone_scripts)
        self._features = features

    def atoms(self, texts: Sequence[str]) -> tuple[Atoms, np.ndarray]:
        """The atoms of paragraphs, and uint64 (A, F), the hashes of their features."""
        codes = codes_of("".join(texts))
        atoms = atoms_of(codes, [len(text) for text in texts], self._lone_scripts, self._cuts)
        return atoms, features_of(codes, atoms, self._features)

    def __call__(self, texts: Sequence[str]) -> tuple[Atoms, np.ndarray]:
        """The atoms of paragraphs, and int32 (A, F), the numbers of their features."""
        atoms, hashes = self.atoms(texts)
        return atoms, ids_of(hashes, self._vocabulary)


class NeuralSegmenter(Segmenter):
    """A segmenter that was trained with the parser.

    Parameters
    ----------
    settings
        Everything but the weights.
    arrays
        The arrays of `AtomReader` and `SegmenterNetwork.weights`.

    Raises
    ------
    ValueError
        An array is missing, or arrays do not fit each other.
    """

    def __init__(self, settings: SegmenterSettings, arrays: Mapping[str, np.ndarray]) -> None:
        self.settings, self._arrays = settings, dict(arrays)
        self._reader = AtomReader(settings.lone_scripts, arrays, FEATURES_OF_FORMAT[settings.format])
        self._tagger = Tagger.of(arrays, self._reader.vectors)

    @classmethod
    def of_weights(cls, settings: SegmenterSettings, content: bytes) -> Self:
        """The segmenter with the weights in a safetensors file; a ValueError if the file is damaged."""
        try:
            arrays = load(content)
        except SafetensorError as error:
            raise ValueError(f"not a complete safetensors file: {error}") from None
        return cls(settings, arrays)

    def with_odds(self, token: float, sentence: float) -> Self:
        """The same segmenter with other thresholds for the ends of tokens and sentences."""
        return type(self)(replace(self.settings, token_odds=token, sentence_odds=sentence), self._arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.settings, self._arrays)

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        return {SEGMENTER_SETTINGS: as_json(asdict(self.settings)), SEGMENTER_WEIGHTS: save(self._arrays)}

    def log_odds(self, texts: Sequence[str]) -> tuple[Atoms, np.ndarray]:
        """The atoms of paragraphs, and the output of the network for each, float32 (A, 3); see `Ends`."""
        atoms, ids = self._reader(texts)
        return atoms, self._tagger.tag(ids, atoms.counts)

    def _tokens(self, texts: Sequence[str]) -> list[list[list[Span]]]:
        return [proposal.sentences(proposal.odds > 0) for proposal in self.propose(texts)]

    def propose(self, texts: Sequence[str]) -> Iterator[Proposal]:
        """The tokens of each paragraph, and the log-odds that a sentence ends with each."""
        atoms, odds = self.log_odds(texts)
        ends = Ends.of(odds, atoms.after, self.settings)
        last = np.flatnonzero(ends.tokens)
        first = np.concatenate([[0], last[:-1] + 1])[: len(last)]
        shift = np.repeat(np.cumsum([0, *map(len, texts[:-1])]), atoms.counts)[last]  # where paragraphs begin
        starts, stops = atoms.starts[first] - shift, atoms.stops[last] - shift
        tokens = list(map(_SPAN, zip(starts.tolist(), stops.tolist(), repeat(()))))
        paragraph_stops = np.searchsorted(last, np.cumsum(atoms.counts)).tolist()
        several, text = np.flatnonzero(ends.several[last]).tolist(), "".join(texts)
        for token, start, stop in zip(several, atoms.starts[first[several]], atoms.stops[last[several]], strict=True):
            tokens[token] = tokens[token]._replace(words=self.settings.multiword.words(text[start:stop]))
        of_tokens = odds[last, SENTENCE_END] - np.float32(self.settings.sentence_odds)
        of_tokens[ends.sentences[last] & (atoms.after[last] == EDGE)] = np.inf
        for begin, stop in pairwise([0, *paragraph_stops]):
            yield Proposal(tokens[begin:stop], of_tokens[begin:stop])
