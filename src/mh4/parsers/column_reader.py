"""Turns the network's scores into column values: first UPOS, then the best analysis with this UPOS, then the lemma."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mh4.data.sentence import Sentence
from mh4.data.values import FEATS, LEMMA, UPOS, XPOS, sound
from mh4.models.annotator import Annotator, ColumnScores
from mh4.models.devices import HostCopy, send

from .agreement import best_together
from .column_choice import PREDICTED, choose_analyses, choose_rules
from .column_counts import UNKNOWN, canonical
from .column_weights import DEFAULT, ColumnWeights
from .columns import Columns
from .given_analyses import GivenAnalyses
from .request import TAGS, Request


class Chosen(NamedTuple):
    """Classes chosen for M words, and candidate lemma rules for the U words among them with new forms.

    Attributes
    ----------
    classes : int32 (M, 3)
        UPOS, analysis, lemma rule.
    analyses, analysis_scores : int32 (M, C), float32 (M, C)
        The best analyses with this UPOS, best first.
    rules, rule_scores : int32 (U, R), float32 (U, R)
        The best rules for each new form, best first.
    """

    classes: np.ndarray
    analyses: np.ndarray
    analysis_scores: np.ndarray
    rules: np.ndarray
    rule_scores: np.ndarray


class ColumnChoices(NamedTuple):
    """Choices for the words of B sentences, on their way to the host.

    Attributes
    ----------
    starts : int64 (B + 1,)
        The first word of each sentence, followed by M.
    rule_rows : int64 (M,)
        Row of each word in `Chosen.rules`; −1 if its form is known.
    """

    starts: np.ndarray
    rule_rows: np.ndarray
    on_its_way: HostCopy

    @property
    def chosen(self) -> Chosen:
        """The choices; waits until they have arrived on the host."""
        return Chosen(*(tensor.numpy() for tensor in self.on_its_way.tensors()))


class ColumnReader:
    """Chooses UPOS, XPOS, FEATS and lemmas, and fills them in beside the given values.

    An *analysis* is a combination of UPOS, XPOS and FEATS that occurs in training, so that the three always go
    together. Its score is the network's, plus what the form's analyses in training suggest, plus what the word's
    relation in the tree suggests. Analyses that contradict given values are left out. The UPOS is the one whose
    analyses have the highest total probability; XPOS and FEATS come from the analyses with the UPOS, given or
    predicted, chosen jointly for all words of a tree: see `mh4.parsers.agreement`. A form in the lexicon gets its lemma
    there, any other the result of the best applicable lemma rule; for new forms, rules that yield a known lemma get a
    bonus.

    Attributes
    ----------
    annotates : frozenset
        Which of the columns "upos", "xpos", "feats" and "lemmas" are predicted.
    knows_relations : bool
        Whether relations affect the scores of analyses.
    """

    def __init__(
        self,
        columns: Columns,
        annotator: Annotator,
        device: torch.device,
        relations: Sequence[str] = (),
        weights: ColumnWeights = DEFAULT,
    ) -> None:
        self.columns, self.weights = columns, weights
        self.device = device
        predicted = {"lemmas"} if annotator.lemmas is not None else set()
        if any(classifier is not None for classifier in (annotator.upos, annotator.xpos, annotator.feats)):
            predicted.update(TAGS)
        self.annotates = columns.known & predicted
        of_upos = np.arange(len(columns.upos))[:, None] == columns.classes.analyses.upos
        self._of_upos = torch.from_numpy(of_upos.astype(np.float32)).to(device)
        # The last row, for an unknown UPOS, forbids nothing.
        self._forbidden = torch.from_numpy(np.pad(~of_upos, ((0, 1), (0, 0)))).to(device)
        self._given = GivenAnalyses(columns.analyses)
        self._seen = columns.occurrences
        # A form seen c times with an analysis adds log(spread + c) = log(spread) + log(1 + c / spread), weighted.
        of_form = weights.form_weight
        spread = weights.form_smoothing * columns.totals / max(columns.totals.sum(), 1)
        self._unseen = torch.from_numpy(of_form * np.log(np.maximum(spread, np.finfo(np.float32).tiny))).to(device)
        self._seen_gains = of_form * np.log1p(self._seen.counts / spread[self._seen.analyses])
        self.knows_relations = bool(columns.by_relation)
        smoothing, count = weights.occurrence_smoothing, len(columns.analyses)
        of_relations = np.vstack([columns.relation_probabilities(relations, smoothing), np.ones((1, count))])
        logs = np.log(np.maximum(of_relations, np.finfo(np.float32).tiny)).astype(np.float32)
        self._of_relations = torch.from_numpy(weights.relation_weight * logs).to(device)  # (R + 1, K)
        self._values = columns.values()
        self._gains = weights.agreement_weight * columns.agreement_gains(relations, smoothing)
        # Analyses are sorted by frequency.
        self._commonest_first = torch.linspace(0, -weights.rarity_penalty, count, dtype=torch.float32, device=device)
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
        self,
        scores: ColumnScores,
        sentences: Sequence[Sentence],
        overwritten: Collection[str] = (),
        relations: Tensor | None = None,
    ) -> ColumnChoices:
        """Choose classes for the M words of some sentences, which agree with given values.

        Given values in ``overwritten`` columns do not count. ``relations``, int64 (M,), are indices, R for none.
        """
        index, unknown = self.columns.upos_index, len(self.columns.upos)
        predicted = "upos" in self.annotates
        given = [
            PREDICTED if predicted and ("upos" in overwritten or tag == UNKNOWN) else index.get(tag, unknown)
            for sentence in sentences
            for tag in sentence.upos
        ]
        # A given UPOS is applied later, like a predicted one; here it only decides contradictions with XPOS and FEATS.
        if scores.analyses is not None and (constraints := self._given.constraints(sentences, overwritten)):
            words, excluded = (send(torch.from_numpy(array), self.device) for array in constraints)
            of_words = scores.analyses[words].masked_fill(excluded, float("-inf"))
            scores = scores._replace(analyses=scores.analyses.index_put((words,), of_words))
        forms = [form for sentence in sentences for form in sentence.forms]
        rule_rows = np.full(len(forms), -1)
        if scores.lemmas is not None:
            new = np.flatnonzero([form not in self._known_forms for form in forms])
            rule_rows[new] = np.arange(len(new))
        choose = self._choose_compiled if self.device.type == "cpu" else self._choose
        on_its_way = HostCopy(*choose(scores, np.array(given), forms, rule_rows, relations))
        return ColumnChoices(np.cumsum([0, *map(len, sentences)]), rule_rows, on_its_way)

    def _choose(
        self, scores: ColumnScores, given: np.ndarray, forms: list[str], rule_rows: np.ndarray, relations: Tensor | None
    ) -> tuple[Tensor, ...]:
        """The tensors of `Chosen`."""
        upos = send(torch.from_numpy(given), self.device)
        if scores.analyses is None:
            candidates, candidate_scores = torch.zeros_like(upos)[:, None], _zeros(upos, 1)
        else:
            total = scores.analyses.clone()
            self._add_opinions(total, self._numbers(forms))
            if relations is not None:
                total += self._of_relations[relations]
            likeliest = (total.softmax(1) @ self._of_upos.T).argmax(1)
            upos = torch.where(upos == PREDICTED, likeliest, upos)
            total += self._commonest_first
            total.masked_fill_(self._forbidden[upos], float("-inf"))
            candidate_scores, candidates = total.topk(min(self.weights.candidate_analyses, total.shape[1]), 1)
        if scores.lemmas is None:
            best_rule, rules, rule_scores = torch.zeros_like(upos), upos.new_empty(0, 0), _zeros(upos[:0], 0)
        else:
            too_short = send(torch.tensor([len(form) for form in forms]), self.device)[:, None] <= self._cut
            all_rules = scores.lemmas.masked_fill(too_short, float("-inf"))
            best_rule = all_rules.argmax(1)
            of_new = all_rules[send(torch.from_numpy(np.flatnonzero(rule_rows >= 0)), self.device)]
            rule_scores, rules = of_new.topk(min(self.weights.candidate_rules, of_new.shape[1]), 1)
        return (
            torch.stack([upos, candidates[:, 0], best_rule], 1).to(torch.int32),
            candidates.to(torch.int32),
            candidate_scores.to(torch.float32),
            rules.to(torch.int32),
            rule_scores.to(torch.float32),
        )

    def _choose_compiled(
        self, scores: ColumnScores, given: np.ndarray, forms: list[str], rule_rows: np.ndarray, relations: Tensor | None
    ) -> tuple[Tensor, ...]:
        """`_choose` on the CPU."""
        classes = np.zeros((len(forms), 3), np.int32)
        analyses, rules = np.zeros((len(forms), 1), np.int32), np.zeros((0, 0), np.int32)
        analysis_scores, rule_scores = np.zeros(analyses.shape, np.float32), np.zeros(rules.shape, np.float32)
        if scores.analyses is not None:
            count = min(self.weights.candidate_analyses, scores.analyses.shape[1])
            analyses = np.empty((len(forms), count), np.int32)
            analysis_scores = np.empty(analyses.shape, np.float32)
            of_relations = self._of_relations.numpy()
            choose_analyses(
                scores.analyses.detach().float().contiguous().numpy(),
                self._numbers(forms),
                (self._seen.starts, self._seen.analyses, self._seen_gains),
                self._unseen.numpy(),
                np.full(len(forms), len(of_relations) - 1) if relations is None else relations.numpy(),
                of_relations,
                self._commonest_first.numpy(),
                self.columns.classes.analyses.upos,
                given,
                analyses,
                analysis_scores,
            )
        if scores.lemmas is not None:
            shape = np.count_nonzero(rule_rows >= 0), min(self.weights.candidate_rules, scores.lemmas.shape[1])
            rules, rule_scores = np.empty(shape, np.int32), np.empty(shape, np.float32)
            choose_rules(
                scores.lemmas.detach().float().contiguous().numpy(),
                np.array(list(map(len, forms))),
                self._cut.numpy(),
                rule_rows,
                classes[:, 2],
                rules,
                rule_scores,
            )
        classes[:, 0], classes[:, 1] = given, analyses[:, 0]
        return tuple(map(torch.from_numpy, (classes, analyses, analysis_scores, rules, rule_scores)))

    def _numbers(self, forms: list[str]) -> np.ndarray:
        """int64 (M,): the number of each form in training, −1 for new forms."""
        return np.array(list(map(self._seen.numbers.get, forms, repeat(-1))))

    def _add_opinions(self, total: Tensor, forms: np.ndarray) -> None:
        """Add the gains from the forms' analyses in training to the scores of analyses, (M, K), in place."""
        words = np.flatnonzero(forms >= 0)
        if len(words):
            places, rows = self._seen.places(forms[words])
            total[send(torch.from_numpy(words), self.device)] += self._unseen
            cells = (send(torch.from_numpy(array), self.device) for array in (words[rows], self._seen.analyses[places]))
            gains = send(torch.from_numpy(self._seen_gains[places]), self.device)
            total.index_put_(tuple(cells), gains, accumulate=True)

    def read(
        self,
        choices: ColumnChoices,
        sentences: Sequence[Sentence],
        request: Request,
        trees: Sequence[tuple[np.ndarray, np.ndarray] | None] | None = None,
    ) -> list[dict[str, tuple[str, ...]]]:
        """The requested columns with predicted values, for each of the sentences passed to `choose`.

        Given values stay unless the request overwrites them. If any word of a sentence has features, all its FEATS
        count as given, since "_" also means no features. ``trees`` are heads (n + 1,) and indices of relations (n,) of
        each sentence, or None for a sentence without a tree.
        """
        chosen = choices.chosen
        classes = chosen.classes
        own = list(map(slice, choices.starts[:-1].tolist(), choices.starts[1:].tolist()))
        if trees is not None and self._values.shape[1]:
            classes = classes.copy()
            for words, tree in zip(own, trees, strict=True):
                if tree is not None:
                    candidates, scores = chosen.analyses[words], chosen.analysis_scores[words]
                    together = self._together(*tree, classes[words, 0], candidates, scores)
                    classes[words, 1] = np.take_along_axis(candidates, together[:, None], 1)[:, 0]
        rules = list(zip(chosen.rules.tolist(), chosen.rule_scores.tolist(), strict=True))
        found = []
        for words, sentence in zip(own, sentences, strict=True):
            best = zip(classes[words, 2].tolist(), choices.rule_rows[words].tolist(), strict=True)
            own_rules = [([rule], [0.0]) if row < 0 else rules[row] for rule, row in best]
            found.append(self._read(classes[words], own_rules, sentence, request))
        return found

    def _together(
        self, heads: np.ndarray, relations: np.ndarray, upos: np.ndarray, candidates: np.ndarray, scores: np.ndarray
    ) -> np.ndarray:
        """The column of ``candidates`` chosen for each word jointly, int64 (n,)."""
        of_head = np.append(upos, len(self.columns.upos))[heads[1:] - 1]  # head 0 gives index −1: no UPOS
        gains = self._gains[relations, upos, of_head]
        return best_together(heads, candidates, scores, self._values, gains)

    def _read(
        self,
        choices: np.ndarray,
        rules: Sequence[tuple[list[int], list[float]]],
        sentence: Sentence,
        request: Request,
    ) -> dict[str, tuple[str, ...]]:
        values: dict[str, tuple[str, ...]] = {}

        def fill(name: str, predicted: Iterable[str]) -> tuple[str, ...]:
            given: tuple[str, ...] = getattr(sentence, name)
            if name in request.overwritten or given.count(UNKNOWN) == len(given):
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
        if "lemmas" in self.annotates & request.columns:
            fill("lemmas", map(self._lemma, sentence.forms, upos, feats, rules))
        return values

    def _lemma(self, form: str, tag: str, features: str, rules: tuple[list[int], list[float]]) -> str:
        """The lemma in the lexicon, or else by the best of the rules, which come with their scores, best first."""
        lexicon, key = self._lexicon, f"{form}\t{tag}"
        found = lexicon.get(key)
        if found is None:
            found = lexicon.get(f"{key}\t{canonical(features)}")
        if found is not None:
            return found
        core = form.strip()  # forms may begin or end with white space, lemmas do not
        if core != form:
            return self._lemma(core, tag, features, rules) if core else form
        best, of_known = float("-inf"), self.weights.known_lemma_weight
        for rule, score in zip(*rules, strict=True):
            if score + of_known <= best:
                break
            lemma = self.columns.rules[rule].apply(form)
            if lemma and lemma == lemma.strip():  # cutting a form at inner white space can expose it
                score += of_known * ((tag, lemma) in self._known_lemmas)
                if score > best:
                    best, found = score, lemma
        return form if found is None else found


def _zeros(words: Tensor, count: int) -> Tensor:
    """float32 (M, count), for M words."""
    return torch.zeros(len(words), count, dtype=torch.float32, device=words.device)
