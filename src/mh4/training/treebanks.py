"""Reading the treebanks of a training."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mh4.data.conllu import Trees, read_conllu
from mh4.data.errors import DataError, ErrorPolicy, Errors
from mh4.data.sentence import Sentence, share_strings

log = logging.getLogger("mh4")

# More distinct values than these, most of them of a single word, are ids: UD has 17 UPOS and no attribute with 30
# values; XPOS may hold whole morphological analyses.
MOST_VALUES = {"upos": 30, "xpos": 400, "feats": 30}


Files = str | Path | Mapping[str, str | Path]  # one treebank, or several by name


class Treebank(NamedTuple):
    """A treebank to learn from or to evaluate on; ``name`` is None if it is the only one."""

    name: str | None
    path: str | Path
    sentences: list[Sentence]


def by_name(one_or_several: Any) -> dict[str | None, Any]:
    """A dict of several treebanks by name; a single one has the key None."""
    return dict(one_or_several) if isinstance(one_or_several, Mapping) else {None: one_or_several}


def listed(files: Files) -> str:
    """The files, for messages."""
    return ", ".join(map(str, by_name(files).values()))


def read_treebanks(files: Files, errors: ErrorPolicy = "raise", trees: Trees = "required") -> list[Treebank]:
    """Read all treebanks of a training; see `read_gold`."""
    return [Treebank(name, path, read_gold(path, errors, trees)) for name, path in by_name(files).items()]


def read_gold(path: str | Path, errors: ErrorPolicy = "raise", trees: Trees = "required") -> list[Sentence]:
    """All sentences of a treebank with gold trees; skipped and unusual ones are counted in the log, a line each.

    With ``trees="partial"`` some heads may be missing; see `read_conllu`.

    DataError: A sentence is not valid, unless ``errors`` says otherwise; or no sentence is left.
    """
    skipped = Errors(errors)
    sentences = list(share_strings(read_conllu(path, trees=trees, errors=skipped)))
    if skipped.count:
        log.warning("%s: %s", path, skipped.summary)
    if sentences and all(form == "_" for sentence in sentences for form in sentence.forms):
        log.warning("%s: every FORM is _: the words of this treebank have to be added from the original text", path)
    several = sum(len(sentence.roots) > 1 for sentence in sentences)
    if several:
        log.warning("%s: %d of %d sentences have several roots", path, several, len(sentences))
    words = sum(map(len, sentences))
    if unknown := words - sum(int(np.count_nonzero(sentence.heads >= 0)) for sentence in sentences):
        log.info("%s: %d of %d words have a head; trees are learnt from these", path, words - unknown, words)
    if not sentences:
        raise DataError(f"{path}: holds no usable sentences")
    return sentences


def without_ids(sentences: Sequence[Sentence], path: str | Path) -> list[Sentence]:
    """Training sentences without values that identify words instead of describing them.

    Some treebanks keep ids of sentences or words in FEATS, UPOS or XPOS. An attribute of FEATS, or a column of tags, is
    left out, with a warning, if it has more distinct values than `MOST_VALUES` and, on average, less than two words for
    each.
    """
    found = list(sentences)
    for column in ("upos", "xpos"):
        counts = Counter(tag for sentence in found for tag in getattr(sentence, column))
        del counts["_"]
        if _are_ids(counts, column):
            _warn_of_ids(path, column, "", counts)
            found = [_blanked(sentence, column) for sentence in found]
    of_feats = Counter(feats for sentence in found for feats in sentence.feats)
    values: dict[str, Counter[str]] = {}
    for feats, count in of_feats.items():
        for entry in feats.split("|"):
            name, equals, value = entry.partition("=")
            if equals:
                values.setdefault(name, Counter())[value] += count
    ids = {name for name, counts in values.items() if _are_ids(counts, "feats")}
    for name in sorted(ids):
        _warn_of_ids(path, "feats", name, values[name])
    if not ids:
        return found
    kept = {feats: _without(feats, ids) for feats in of_feats}
    return [sentence.replace(feats=[kept[feats] for feats in sentence.feats]) for sentence in found]


def _blanked(sentence: Sentence, column: str) -> Sentence:
    unknown: dict[str, Any] = {column: ["_"] * len(sentence)}
    return sentence.replace(**unknown)


def _are_ids(counts: Counter[str], column: str) -> bool:
    return len(counts) > MOST_VALUES[column] and 2 * len(counts) > counts.total()


def _without(feats: str, names: set[str]) -> str:
    return "|".join(entry for entry in feats.split("|") if entry.partition("=")[0] not in names) or "_"


def _warn_of_ids(path: str | Path, column: str, attribute: str, counts: Counter[str]) -> None:
    name = f"{column.upper()}, attribute {attribute}," if attribute else column.upper()
    log.warning(
        "%s: %s has %d different values in %d words, such as %s: it looks like an id and is not learnt",
        *(path, name, len(counts), counts.total(), ", ".join(map(repr, list(counts)[:3]))),
    )
