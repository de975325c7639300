"""The text of a treebank, where its tokens and sentences end, and what else a segmenter learns from it."""

from __future__ import annotations

import io
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mh4.data.blocks import comment_name
from mh4.data.sentence import Sentence
from mh4.data.spaces import Spaced
from mh4.data.text import Portion, portions
from mh4.models.atoms import LAST_PLACE, atoms_of, codes_of, run_hash, script_of, script_table

COLUMNS = ("upos", "relations", "feats", "crossed")  # auxiliary tasks: columns of the treebank
MOST_VALUES = 64  # values of a column, the most frequent ones
MOST_CROSSED = 4  # arcs across the end of a token; more count as this many

# Each letter of a script is an atom if runs that occur once hold at least this number of ends of tokens, and this share
# of its atoms: about as many ends would be missed in other text (Good 1953).
UNSEEN, FEWEST = 0.002, 10

_BREAK = "\n\n"
_WHITE = re.compile(r"\s+")


@dataclass(frozen=True)
class GoldText:
    """The text of a treebank, and the properties of its T tokens.

    Attributes
    ----------
    paragraphs
        The text, divided as the segmenter will read it.
    starts, stops
        int64 (T,): where tokens begin and end in all paragraphs together.
    ends_sentence, several
        bool (T,): whether a sentence ends with a token, and whether it holds several words.
    values
        int64 (T, number of `COLUMNS`): the values of a token's first word as numbers, -1 for rare and unknown values.
    classes
        The number of values of each column.
    multiword
        Forms and words of multiword tokens.
    spaces_in_words
        Whether any token holds white space.
    """

    paragraphs: list[str]
    starts: np.ndarray
    stops: np.ndarray
    ends_sentence: np.ndarray
    several: np.ndarray
    values: np.ndarray
    classes: list[int]
    multiword: list[tuple[str, tuple[str, ...]]]
    spaces_in_words: bool


def gold_text(sentences: Sequence[Sentence]) -> GoldText:
    """Reconstruct the text of a treebank, with its tokens and sentences; they need not be valid in other respects."""
    pieces = [_BREAK]  # also keeps a byte order mark of a token from being taken for the text's
    size, known = len(_BREAK), True
    spans: list[tuple[int, int]] = []
    values: list[tuple[str, ...]] = []
    last_tokens: list[int] = []
    multiword: list[tuple[str, tuple[str, ...]]] = []
    several: list[bool] = []
    source = sentences[0].source if sentences else ""
    for sentence in sentences:
        begins = not known and not {"newdoc", "newpar"}.isdisjoint(map(comment_name, sentence.comments))
        if begins or sentence.source != source:  # of another treebank
            source = sentence.source
            pieces.append(_BREAK)
            size += len(_BREAK)
        columns = _columns(sentence)
        for token in sentence.tokens:
            before, written, after, known = Spaced.of(token.form, token.misc)
            if "\n" in written:
                written = _WHITE.sub(" ", written)
            if not written.strip():
                written = token.form
            core = written.strip()
            pieces += [_blank(before), written, _blank(after)]
            start = size + len(pieces[-3]) + len(written) - len(written.lstrip())
            size += sum(map(len, pieces[-3:]))
            spans.append((start, start + len(core)))
            values.append(columns[token.first - 1])
            several.append(token.last > token.first)
            if several[-1]:
                multiword.append((core, sentence.forms[token.first - 1 : token.last]))
        last_tokens.append(len(spans) - 1)
    text = "".join(pieces)
    paragraphs, starts = _paragraphs(text)
    places = np.array(spans, np.int64).reshape(-1, 2)
    own = np.searchsorted(starts, places[:, 0], side="right") - 1
    before_own = np.cumsum([0, *map(len, paragraphs)])[own] - np.array(starts, np.int64)[own]
    ends = np.zeros(len(places), np.bool_)
    ends[last_tokens] = True
    numbers, classes = _numbered(values)
    starts_of_tokens, stops_of_tokens = (places + before_own[:, None]).T
    spaced = any(_WHITE.search(text, *span) is not None for span in spans)
    return GoldText(
        paragraphs,
        starts_of_tokens,
        stops_of_tokens,
        ends,
        np.array(several, np.bool_),
        numbers,
        classes,
        multiword,
        spaced,
    )


def _blank(text: str) -> str:
    """``text`` if it is white space or empty; a blank for anything else that MISC gives as white space."""
    return text if not text or text.isspace() else " "


def _columns(sentence: Sentence) -> list[tuple[str, ...]]:
    """The values of `COLUMNS` of each word."""
    n = len(sentence)
    crossed = np.zeros(n + 1, np.int64)
    for word, head in enumerate(sentence.heads.tolist()):
        if head > 0:
            first, last = sorted((word, head - 1))
            crossed[first] += 1
            crossed[last] -= 1
    known = (sentence.heads >= 0).all()
    counts = [str(count) if known else "_" for count in np.minimum(np.cumsum(crossed)[:n], MOST_CROSSED)]
    return list(zip(sentence.upos, sentence.relations, sentence.feats, counts, strict=True))


def _numbered(values: Sequence[tuple[str, ...]]) -> tuple[np.ndarray, list[int]]:
    """The values of each column as numbers, -1 for rare values and "_"; and the number of values of each column."""
    numbers = np.full((len(values), len(COLUMNS)), -1, np.int64)
    classes = []
    for column, own in enumerate(zip(*values, strict=True)):
        counts = Counter(own)
        del counts["_"]
        ranked = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_VALUES]
        place = {value: number for number, value in enumerate(ranked)}
        numbers[:, column] = [place.get(value, -1) for value in own]
        classes.append(max(1, len(ranked)))
    return numbers, classes


def _paragraphs(text: str) -> tuple[list[str], list[int]]:
    """The paragraphs of a text, as a segmenter reads them, and where they begin in it."""
    paragraphs: list[str] = []
    starts: list[int] = []
    begins = True
    for portion in portions(io.BytesIO(text.encode()), "treebank"):
        if not isinstance(portion, Portion) or not portion.text:
            continue
        if begins:
            paragraphs.append(portion.text)
            starts.append(portion.start)
        else:
            paragraphs[-1] += portion.text
        begins = portion.ends
    return paragraphs, starts


def cut_runs(gold: GoldText) -> tuple[tuple[int, ...], dict[int, int]]:
    """The scripts in which each letter has to be an atom, and the places where runs of other scripts are cut.

    The places are those that `atoms_of` takes, by the hashes of runs.
    """
    text = "".join(gold.paragraphs)
    atoms = atoms_of(codes_of(text), list(map(len, gold.paragraphs)), script_table(()))
    scripts = Counter(script_of(text[start]) for start in atoms.starts.tolist())
    ends = gold.stops[~np.isin(gold.stops, atoms.stops)]
    places: dict[tuple[int, int], int] = defaultdict(int)  # of each run, named by its script and its hash
    seen: Counter[tuple[int, int]] = Counter()
    inside: Counter[tuple[int, int]] = Counter()
    previous, run = -1, (0, 0)
    for end, atom in zip(ends.tolist(), np.searchsorted(atoms.stops, ends).tolist(), strict=True):
        start, stop = int(atoms.starts[atom]), int(atoms.stops[atom])
        if not text[start].isalpha():
            continue
        if atom != previous:
            run = script_of(text[start]), run_hash(text[start:stop])
            seen[run] += 1
            previous = atom
        inside[run] += 1
        if end - start <= LAST_PLACE:
            places[run] |= 1 << (end - start)
    missed: Counter[int] = Counter()
    for run, count in seen.items():
        if count == 1:
            missed[run[0]] += inside[run]
    lone = sorted(one for one, count in missed.items() if count >= FEWEST and count > UNSEEN * scripts[one])
    return tuple(lone), {own: found for (script, own), found in places.items() if script not in lone}
