"""From the scores of columns to their values: UPOS, the best analysis that goes with it, then the lemma."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from mh4.data.sentence import Sentence
from mh4.data.values import FEATS, LEMMA, UPOS, XPOS, sound
from mh4.models.annotator import Annotator, ColumnScores
from mh4.models.devices import send

from .agreement import best_together
from .columns import UNKNOWN, Columns
from .request import TAGS, Request

_PREDICTED = -1  # in place of a given UPOS
_SEEN = 0.5  # weight of the analyses that a form had in training, beside the network's
_UNSEEN = 0.5  # occurrences of a form that count as spread over all analyses
_OF_RELATION = 0.5  # weight of what the relation of a word says of its analysis
_AGREEMENT = 0.7  # weight of what analyses of head and dependent say of each other
_CANDIDATES = 8  # how many analyses of a word are looked at for that
_RARER = 1e-3  # what the rarest analysis is behind, so that of equal ones the commonest is taken
_RULES = 20  # how many rules are tried on a form that is new
_KNOWN = 6.0  # what it adds to the score of a rule that its lemma is known, with this UPOS


class ColumnReader:
    """Chooses values for words, and writes them beside those that are given.

    The UPOS is the one whose analyses have the highest probability together; XPOS and FEATS are the most probable
    analysis that the UPOS, be it given or predicted, had in training: so they go together. What a form had in training
    counts, too: its analyses there are a second opinion, and its relation in the tree is a third one. Of the best
    analyses of all words of a tree, those are taken that are best together: see `mh4.parsers.agreement`. A form of the
    lexicon has the lemma of the lexicon, any other the one that the best rule that fits makes; of a new form, rules
    that make known lemmas go first.

    Attributes
    ----------
    annotates : frozenset
        Which of the columns "upos", "xpos", "feats" and "lemmas" are predicted.
    knows_relations : bool
        Whether relations say anything about analyses.
    """

    def __init__(
        self, columns: Columns, annotator: Annotator, device: torch.device, relations: Sequence[str] = ()
    ) -> None:
        self.columns = columns
        self.device = device
        predicted = {"lemmas"} if annotator.lemmas is not None else set()
        if any(classifier is not None for classifier in (annotator.upos, annotator.xpos, annotator.feats)):
            predicted.update(TAGS)
        self.annotates = columns.known & predicted
        of_upos = np.arange(len(columns.upos))[:, None] == columns.classes.analyses.upos
        self._of_upos = torch.from_numpy(of_upos.astype(np.float32)).to(device)
        self._forbidden = torch.from_numpy(np.pad(~of_upos, ((0, 1), (0, 0)))).to(device)  # none if UPOS is unknown
        seen, totals = columns.occurrences()
        spread = _UNSEEN * totals / max(totals.sum(), 1)
        self._unseen = torch.from_numpy(_SEEN * np.log(np.maximum(spread, np.finfo(np.float32).tiny))).to(device)
        self._seen = {
            form: (indices, _SEEN * np.log1p(counts / spread[indices])) for form, (indices, counts) in seen.items()
        }
        self.knows_relations = bool(columns.by_relation)
        of_relations = np.vstack([columns.relation_probabilities(relations), np.ones((1, len(columns.analyses)))])
        logs = np.log(np.maximum(of_relations, np.finfo(np.float32).tiny)).astype(np.float32)
        self._of_relations = torch.from_numpy(_OF_RELATION * logs).to(device)  # (R + 1, K)
        self._values, self._gains = columns.values(), _AGREEMENT * columns.agreement_gains(relations)
        self._commonest_first = torch.linspace(0, -_RARER, len(columns.analyses), dtype=torch.float32, device=device)
        keys = [(*key.split("\t"), lemma) for key, lemma in columns.lexicon.items()]
        self._known_forms = {key[0] for key in keys}
        self._known_lemmas = {(key[1], key[-1]) for key in keys}  # with their UPOS
        self._cut = torch.tensor([rule.cut for rule in columns.rules], dtype=torch.int64, device=device)
        self._lexicon = {key: lemma for key, lemma in columns.lexicon.items() if sound(lemma, LEMMA) == lemma}
        self._upos = np.array([*(sound(tag, UPOS) for tag in columns.upos), UNKNOWN], dtype=object)
        self._xpos, self._feats = (
            np.array([sound(analysis[place], column) for analysis in columns.analyses], dtype=object)
            for place, column in ((1, XPOS), (2, FEATS))
        )

    def choose(
        self, scores: ColumnScores, sentences: Sequence[Sentence], overwrite: bool, relations: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The best classes of the M words of some sentences, int32 (M, 3): UPOS, analysis, rule of the lemma.

        ``relations``, int64 (M,), are indices of the words' relations, R where there is none.

        And the best analyses that have this UPOS, int32 (M, C), and their scores, float32 (M, C), best first. And of
        the U words with new forms the best rules, int32 (U, R), and their scores, float32 (U, R), best first.
        """
        index, unknown = self.columns.upos_index, len(self.columns.upos)
        predicted = "upos" in self.annotates
        given = [
            _PREDICTED if predicted and (overwrite or tag == UNKNOWN) else index.get(tag, unknown)
            for sentence in sentences
            for tag in sentence.upos
        ]
        upos = send(torch.tensor(given, dtype=torch.int64), self.device)
        chosen = [upos, torch.zeros_like(upos), torch.zeros_like(upos)]
        if scores.analyses is not None:
            total = scores.analyses.clone()
            self._add_opinions(total, sentences)
            if relations is not None:
                total += self._of_relations[relations]
            if predicted:
                likeliest = (total.softmax(1) @ self._of_upos.T).argmax(1)
                chosen[0] = upos = torch.where(upos == _PREDICTED, likeliest, upos)
            total += self._commonest_first
            total.masked_fill_(self._forbidden[upos], float("-inf"))
            candidates = total.topk(min(_CANDIDATES, total.shape[1]), 1)
            chosen[1] = candidates.indices[:, 0]
            also = candidates.indices.to(torch.int32), candidates.values.to(torch.float32)
        else:
            also = (
                upos.new_zeros(len(upos), 1, dtype=torch.int32),
                torch.zeros(len(upos), 1, dtype=torch.float32, device=self.device),
            )
        if scores.lemmas is None:
            return (torch.stack(chosen, 1).to(torch.int32), *also)
        forms = [form for sentence in sentences for form in sentence.forms]
        too_short = send(torch.tensor([len(form) for form in forms]), self.device)[:, None] <= self._cut
        rules = scores.lemmas.masked_fill(too_short, float("-inf"))
        chosen[2] = rules.argmax(1)
        new = torch.tensor([word for word, form in enumerate(forms) if self._is_new(form)], dtype=torch.int64)
        best = rules[send(new, self.device)].topk(min(_RULES, rules.shape[1]), 1)
        rules_of_new = best.indices.to(torch.int32), best.values.to(torch.float32)
        return (torch.stack(chosen, 1).to(torch.int32), *also, *rules_of_new)

    def _is_new(self, form: str) -> bool:
        return form not in self._known_forms

    def _add_opinions(self, total: Tensor, sentences: Sequence[Sentence]) -> None:
        """Add what the analyses of forms in training say to the scores of analyses, (M, K)."""
        forms = (form for sentence in sentences for form in sentence.forms)
        found = {word: self._seen[form] for word, form in enumerate(forms) if form in self._seen}
        if found:
            columns, gains = (np.concatenate(arrays) for arrays in zip(*found.values(), strict=True))
            rows = np.repeat(list(found), [len(indices) for indices, _ in found.values()])
            total[send(torch.tensor(list(found)), self.device)] += self._unseen
            places = tuple(send(torch.from_numpy(array), self.device) for array in (rows, columns))
            total.index_put_(places, send(torch.from_numpy(gains), self.device), accumulate=True)

    def read(
        self,
        choices: Sequence[Tensor],
        sentences: Sequence[Sentence],
        request: Request,
        trees: Sequence[tuple[np.ndarray, np.ndarray] | None] | None = None,
    ) -> list[dict[str, tuple[str, ...]]]:
        """The columns of a request in which anything is predicted, for each sentence that `choose` has chosen for.

        Given values stay, unless the request says otherwise; a sentence where any word has features has its FEATS,
        since "_" also stands for none. ``trees`` are the heads (n + 1,) and the indices of relations (n,) of each
        sentence, if there are any.
        """
        starts = np.cumsum([0, *map(len, sentences)])
        classes, candidates, scores = (tensor.numpy() for tensor in choices[:3])
        if trees is not None and self._values.shape[1]:
            classes = classes.copy()
            for start, end, tree in zip(starts[:-1], starts[1:], trees, strict=True):
                if tree is not None:
                    own = slice(start, end)
                    together = self._together(*tree, classes[own, 0], candidates[own], scores[own])
                    classes[own, 1] = np.take_along_axis(candidates[own], together[:, None], 1)[:, 0]
        rules_of_new = zip(*(tensor.tolist() for tensor in choices[3:]), strict=True)
        return [
            self._read(classes[start:end], rules_of_new, sentence, request)
            for start, end, sentence in zip(starts[:-1], starts[1:], sentences, strict=True)
        ]

    def _together(
        self, heads: np.ndarray, relations: np.ndarray, upos: np.ndarray, candidates: np.ndarray, scores: np.ndarray
    ) -> np.ndarray:
        """Which candidate is the best of each word, int64 (n,), all of them together."""
        of_head = np.append(upos, len(self.columns.upos))[heads[1:] - 1]  # of the root, none
        gains = self._gains[relations, upos, of_head]
        return best_together(heads, candidates, scores, self._values, gains)

    def _read(
        self,
        choices: np.ndarray,
        rules_of_new: Iterator[tuple[list[int], list[float]]],
        sentence: Sentence,
        request: Request,
    ) -> dict[str, tuple[str, ...]]:
        values: dict[str, tuple[str, ...]] = {}

        def fill(name: str, predicted: Iterable[str]) -> tuple[str, ...]:
            given: tuple[str, ...] = getattr(sentence, name)
            if (request.overwrite and name in request.columns) or given.count(UNKNOWN) == len(given):
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
        if "upos" in self.annotates:
            upos = fill("upos", self._upos[choices[:, 0]])
        if "xpos" in self.annotates:
            fill("xpos", self._xpos[choices[:, 1]])
        if "feats" in self.annotates:
            feats = fill("feats", self._feats[choices[:, 1]])
        if "lemmas" in self.annotates:
            best = choices[:, 2].tolist()
            rules = [
                next(rules_of_new) if self._is_new(form) else ([rule], [0.0])
                for form, rule in zip(sentence.forms, best, strict=True)
            ]
            if "lemmas" in request.columns:
                fill("lemmas", map(self._lemma, sentence.forms, upos, feats, rules))
        return values

    def _lemma(self, form: str, tag: str, features: str, rules: tuple[list[int], list[float]]) -> str:
        """Of the lexicon, or of the best rule; rules come with their scores, best first."""
        lexicon, key = self._lexicon, f"{form}\t{tag}"
        found = lexicon.get(key)
        if found is None:
            found = lexicon.get(f"{key}\t{features}")
        if found is not None:
            return found
        core = form.strip()  # forms may begin or end with white space, lemmas do not
        if core != form:
            return self._lemma(core, tag, features, rules) if core else form
        best = float("-inf")
        for rule, score in zip(*rules, strict=True):
            if score + _KNOWN <= best:
                break
            lemma = self.columns.rules[rule].apply(form)
            if lemma and lemma == lemma.strip():  # forms may hold white space inside
                score += _KNOWN * ((tag, lemma) in self._known_lemmas)
                if score > best:
                    best, found = score, lemma
        return form if found is None else found
