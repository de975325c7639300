"""From the scores of columns to their values: UPOS first, then what goes with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from mh4.data.sentence import Sentence
from mh4.models.annotator import ColumnScores
from mh4.models.devices import send

from .columns import UNKNOWN, Columns
from .request import ANNOTATED, Request

_PREDICTED = -1  # in place of a given UPOS


class ColumnReader:
    """Chooses values for words, and writes them beside those that are given.

    Each attribute of FEATS has one value or none, of those that the UPOS had in training; XPOS is one that it had. A
    form of the lexicon has the lemma of the lexicon, any other the one that the best rule that fits makes.
    """

    def __init__(self, columns: Columns, device: torch.device) -> None:
        self.columns = columns
        self.device = device
        self._forbidden_xpos, self._forbidden_feats = (
            torch.from_numpy(~allowed).to(device) for allowed in columns.allowed()
        )
        self._cut = torch.tensor([rule.cut for rule in columns.rules], dtype=torch.int64, device=device)
        self._upos = np.array([*columns.upos, UNKNOWN], dtype=object)
        self._xpos = np.array(columns.xpos, dtype=object)
        self._features = [("", *features) for features in columns.attributes.values()]
        self._feats: dict[bytes, str] = {}  # names of choices, made when they first come up

    def choose(self, scores: ColumnScores, sentences: Sequence[Sentence], overwrite: bool) -> Tensor:
        """The best classes of the M words of some sentences, int32 (M, 3 + attributes): UPOS, XPOS, rule, FEATS."""
        index, unknown = self.columns.upos_index, len(self.columns.upos)
        predicted = scores.upos is not None
        given = [
            _PREDICTED if predicted and (overwrite or tag == UNKNOWN) else index.get(tag, unknown)
            for sentence in sentences
            for tag in sentence.upos
        ]
        upos = send(torch.tensor(given, dtype=torch.int64), self.device)
        if scores.upos is not None:
            upos = torch.where(upos == _PREDICTED, scores.upos.argmax(1), upos)
        nothing = torch.zeros_like(upos)
        xpos = feats = lemmas = nothing
        if scores.xpos is not None:
            xpos = scores.xpos.masked_fill(self._forbidden_xpos[upos], float("-inf")).argmax(1)
        if scores.feats is not None:
            feats = scores.feats.masked_fill(self._forbidden_feats[upos], float("-inf")).argmax(2)
        if scores.lemmas is not None:
            lengths = torch.tensor([len(form) for sentence in sentences for form in sentence.forms])
            too_short = send(lengths, self.device)[:, None] <= self._cut
            lemmas = scores.lemmas.masked_fill(too_short, float("-inf")).argmax(1)
        columns = (upos, xpos, lemmas, *((feats,) if feats.dim() == 2 else ()))
        return torch.cat([column.reshape(len(upos), -1) for column in columns], 1).to(torch.int32)

    def read(
        self, choices: np.ndarray, sentences: Sequence[Sentence], request: Request, columns: frozenset[str]
    ) -> list[dict[str, tuple[str, ...]]]:
        """Those of some columns in which anything is predicted, for each of the sentences that `choose` has chosen for.

        Given values stay, unless the request says otherwise; a sentence where any word has features has its FEATS,
        since "_" also stands for none.
        """
        starts = np.cumsum([0, *map(len, sentences)])
        return [
            self._read(choices[start:end], sentence, request, columns)
            for start, end, sentence in zip(starts[:-1], starts[1:], sentences, strict=True)
        ]

    def _read(
        self, choices: np.ndarray, sentence: Sentence, request: Request, columns: frozenset[str]
    ) -> dict[str, tuple[str, ...]]:
        known = self.columns
        values: dict[str, tuple[str, ...]] = {}

        def fill(name: str, predicted: Iterable[str]) -> tuple[str, ...]:
            given: tuple[str, ...] = getattr(sentence, name)
            if request.overwrite or given.count(UNKNOWN) == len(given):
                filled = tuple(predicted)
            elif UNKNOWN not in given or name == "feats":
                return given
            else:
                pairs = zip(given, predicted, strict=True)
                filled = tuple(new if old == UNKNOWN else old for old, new in pairs)
            if name in request.columns:
                values[name] = filled
            return filled

        upos, feats = sentence.upos, sentence.feats
        if "upos" in columns:
            upos = fill("upos", self._upos[choices[:, 0]])
        if "feats" in columns:
            feats = fill("feats", self._feats_names(choices[:, 3:]))
        if "xpos" in columns and "xpos" in request.columns:
            fill("xpos", self._xpos[choices[:, 1]] if known.xpos else self._xpos_of(upos, feats))
        if "lemmas" in columns and "lemmas" in request.columns:
            fill("lemmas", self._lemmas(sentence.forms, upos, feats, choices[:, 2].tolist()))
        return values

    def _feats_names(self, choices: np.ndarray) -> list[str]:
        rows = np.ascontiguousarray(choices).view(np.dtype((np.void, choices.itemsize * choices.shape[1]))).ravel()
        names, found = self._feats, []
        for row, key in zip(choices, rows.tolist(), strict=True):
            name = names.get(key)
            if name is None:
                present = (features[k] for features, k in zip(self._features, row.tolist(), strict=True) if k)
                name = names[key] = "|".join(present) or UNKNOWN
            found.append(name)
        return found

    def _xpos_of(self, upos: Iterable[str], feats: Iterable[str]) -> list[str]:
        table = self.columns.xpos_table
        return [
            table.get((tag, features)) or table.get((tag, ""), UNKNOWN)
            for tag, features in zip(upos, feats, strict=True)
        ]

    def _lemmas(
        self, forms: Iterable[str], upos: Iterable[str], feats: Iterable[str], chosen: Iterable[int]
    ) -> list[str]:
        lexicon, rules, found = self.columns.lexicon, self.columns.rules, []
        for form, tag, features, rule in zip(forms, upos, feats, chosen, strict=True):
            key = f"{form}\t{tag}"
            lemma = lexicon.get(key)
            if lemma is None:
                lemma = lexicon.get(f"{key}\t{features}")
            if lemma is None:
                lemma = rules[rule].apply(form)
            found.append(form if lemma is None else lemma)
        return found


def known_columns(columns: Columns | None, annotator: object) -> frozenset[str]:
    """The columns that a network with this annotator predicts."""
    if columns is None or annotator is None:
        return frozenset()
    table = {"xpos"} if columns.xpos_table and columns.known >= {"upos", "xpos"} else set()
    heads = {name for name in ANNOTATED if getattr(annotator, name) is not None}
    return frozenset(heads | table)
