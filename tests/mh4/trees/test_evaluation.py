"""Scores, checked against cases counted by hand and against the maintained scorer of the shared tasks.

The oracle is `udtools.udeval`, which continues the script of the CoNLL 2018 shared task. For the metrics here it still
counts as that script did: same lists of content and function relations, the 21 features of UD 2.0, same alignment. It
differs in three ways that do not affect them: it also scores enhanced dependencies (ELAS, EULAS), it can be told to
accept sentences with several roots, which the script refuses and `mh4` accepts, and it checks more of the file format.
The scorers in `udapi` need both files cut into the same sentences, so they are no oracle for raw text.
"""

import io
import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from paths import UD
from udtools import udeval

from mh4.data.annotation import Annotation
from mh4.data.conllu import read_conllu
from mh4.data.document import Document
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.trees.alignment import UNALIGNED, align_words, read_analysis
from mh4.trees.evaluation import (
    LENGTH_BINS,
    METRICS,
    Comparison,
    Evaluation,
    Score,
    attachment_scores,
    count_units,
)
from mh4.trees.evaluation import evaluate as evaluate_sources


@pytest.fixture
def evaluate(tmp_path: Path) -> Callable[[str, str], Evaluation]:
    """Score two analyses written with spaces in place of tabs."""

    def run(gold: str, system: str) -> Evaluation:
        for name, text in (("gold", gold), ("system", system)):
            (tmp_path / f"{name}.conllu").write_text(conllu(text), encoding="utf-8")
        return evaluate_sources(tmp_path / "gold.conllu", tmp_path / "system.conllu")

    return run


def conllu(text: str) -> str:
    """Return CoNLL-U for lines of ID FORM LEMMA UPOS FEATS HEAD DEPREL, with "·" for a space inside a field."""
    lines = []
    for line in text.strip().splitlines():
        fields = line.split()
        if fields and not line.lstrip().startswith("#"):
            word, form, lemma, upos, feats, head, relation = (value.replace("·", " ") for value in fields)
            line = "\t".join((word, form, lemma, upos, upos.lower(), feats, head, relation, "_", "_"))
        lines.append(line.strip())
    return "\n".join(lines) + "\n\n"


def counts(score: Score) -> tuple[int, int, int]:
    return score.correct, score.gold_total, score.system_total


FRENCH = """
    1    Il     il      PRON   Person=3   2  nsubj
    2    parle  parler  VERB   Mood=Ind   0  root
    3-4  du     _       _      _          _  _
    3    de     de      ADP    _          5  case
    4    le     le      DET    Gender=Masc|Number=Sing  5  det
    5    chat   chat    NOUN   Number=Sing  2  obl:arg
    6    noir   noir    ADJ    _          5  amod
    7    .      .       PUNCT  _          2  punct
"""


def test_identical_files_are_fully_right(evaluate):
    evaluation = evaluate(FRENCH, FRENCH)
    assert tuple(evaluation.scores) == METRICS
    assert {score.f1 for score in evaluation.scores.values()} == {1.0}
    assert counts(evaluation.scores["Tokens"]) == (6, 6, 6)
    assert counts(evaluation.scores["Words"]) == (7, 7, 7)
    assert counts(evaluation.scores["CLAS"]) == (4, 4, 4)  # Il, parle, chat, noir


def test_each_metric_sees_its_own_errors(evaluate):
    system = """
        1    Il     il      PRON   Person=3   2  nsubj
        2    parle  parle   VERB   Mood=Ind   0  root
        3-4  du     _       _      _          _  _
        3    de     de      ADP    _          5  case
        4    le     le      PRON   Number=Sing|Gender=Masc  5  det
        5    chat   chat    NOUN   Number=Sing|Animate=Yes  2  obl
        6    noir   noir    ADJ    _          2  advmod
        7    .      .       PUNCT  _          2  punct
    """
    scores = evaluate(FRENCH, system).scores
    expected = {
        "Tokens": (6, 6, 6),
        "Sentences": (1, 1, 1),
        "Words": (7, 7, 7),
        "UPOS": (6, 7, 7),  # wrong: le
        "XPOS": (6, 7, 7),  # wrong: le
        "UFeats": (7, 7, 7),  # order and features that are not universal do not count
        "AllTags": (6, 7, 7),
        "Lemmas": (6, 7, 7),  # wrong: parle
        "UAS": (6, 7, 7),  # wrong: noir
        "LAS": (6, 7, 7),  # wrong: noir; obl for obl:arg is correct
        "LAS+subtypes": (5, 7, 7),  # wrong: noir and obl for obl:arg
        "CLAS": (3, 4, 4),  # wrong: noir
        "MLAS": (2, 4, 4),  # wrong: noir, and chat because of its article
        "BLEX": (2, 4, 4),  # wrong: noir, and parle because of its lemma
    }
    assert {name: counts(score) for name, score in scores.items()} == expected


def test_unsplit_multiword_token_costs_its_words(evaluate):
    system = """
        1  Il     il      PRON   Person=3   2  nsubj
        2  parle  parler  VERB   Mood=Ind   0  root
        3  du     du      ADP    _          4  case
        4  chat   chat    NOUN   Number=Sing  2  obl:arg
        5  noir   noir    ADJ    _          4  amod
        6  .      .       PUNCT  _          2  punct
    """
    scores = evaluate(FRENCH, system).scores
    assert counts(scores["Tokens"]) == (6, 6, 6)
    assert counts(scores["Words"]) == counts(scores["LAS"]) == (5, 7, 6)
    assert scores["LAS"].precision == pytest.approx(5 / 6)
    assert scores["LAS"].recall == pytest.approx(5 / 7)
    assert scores["LAS"].f1 == pytest.approx(10 / 13)
    assert scores["LAS"].aligned_accuracy == 1.0
    assert scores["Words"].aligned_accuracy is None
    assert counts(scores["CLAS"]) == (4, 4, 4)
    assert counts(scores["MLAS"]) == (3, 4, 4)  # chat lost two function words and gained another


def test_words_of_multiword_tokens_are_aligned_by_form(evaluate):
    gold = """
        1-2  Vámonos  _     _     _  _  _
        1    vamos    ir    VERB  _  0  root
        2    nos      yo    PRON  _  1  obj
        3-4  al       _     _     _  _  _
        3    a        a     ADP   _  5  case
        4    el       el    DET   _  5  det
        5    mar      mar   NOUN  _  1  obl
    """
    system = """
        1-3  Vámonos  _     _     _  _  _
        1    Va       ir    VERB  _  0  root
        2    mos      yo    PRON  _  1  obj
        3    NOS      yo    PRON  _  1  obj
        4    al       al    ADP   _  5  case
        5    mar      mar   NOUN  _  1  obl
    """
    scores = evaluate(gold, system).scores
    assert counts(scores["Tokens"]) == (3, 3, 3)
    assert counts(scores["Words"]) == (2, 5, 5)  # nos, aligned with NOS, and mar
    assert counts(scores["UAS"]) == (0, 5, 5)  # the head of both has no counterpart


@pytest.mark.parametrize(
    ("gold", "system"),
    [
        # "xy" overlaps the start of the multiword token, "bc" its end, so they do not match the equal forms inside it.
        # Only "ab" and "a" have counterparts.
        (
            "1 x x X _ 3 dep \n 2-3 yab _ _ _ _ _ \n 2 xy xy X _ 3 dep \n 3 ab ab X _ 0 root",
            "1 xy xy X _ 2 dep \n 2 ab ab X _ 0 root",
        ),
        (
            "1-2 ab _ _ _ _ _ \n 1 a a X _ 0 root \n 2 bc bc X _ 1 dep \n 3 c c X _ 1 dep",
            "1 a a X _ 0 root \n 2 bc bc X _ 1 dep",
        ),
    ],
)
def test_words_that_stick_out_of_a_multiword_token_are_not_aligned(evaluate, tmp_path, gold, system):
    assert counts(evaluate(gold, system).scores["Words"]) == (1, 3, 2)
    assert_same_scores(tmp_path / "gold.conllu", tmp_path / "system.conllu")
    assert counts(evaluate(system, gold).scores["Words"]) == (1, 2, 3)
    assert_same_scores(tmp_path / "gold.conllu", tmp_path / "system.conllu")


def test_tokens_with_spaces_and_moved_sentence_boundary(evaluate):
    gold = """
        1  Hà·Nội  Hà·Nội  PROPN  _  2  nsubj
        2  đẹp     đẹp     ADJ    _  0  root

        1  Vâng    vâng    INTJ   _  0  root
    """
    system = """
        1  Hà      Hà      PROPN  _  3  nsubj
        2  Nội     Nội     PROPN  _  1  flat
        3  đẹp     đẹp     ADJ    _  0  root
        4  Vâng    vâng    INTJ   _  3  discourse
    """
    scores = evaluate(gold, system).scores
    assert counts(scores["Tokens"]) == (2, 3, 4)
    assert counts(scores["Sentences"]) == (0, 2, 1)
    assert counts(scores["LAS"]) == (1, 3, 4)  # only đẹp


def test_no_white_space_counts():
    inside = ["a" + space + "b" for space in " \u00a0\u3000\u2028\u0085\x0b"]
    apart = Sentence([part for form in inside for part in form.split()], heads=[0, *[1] * (2 * len(inside) - 1)])
    result = evaluate_sources(Sentence(inside, heads=[0, *[1] * (len(inside) - 1)]), apart)
    assert counts(result.scores["Tokens"]) == (0, len(inside), len(apart))


@pytest.mark.parametrize(("nothing", "name"), [([], "list"), (Document([]), "Document"), (iter(()), "tuple_iterator")])
def test_no_sentences_are_named(nothing, name):
    with pytest.raises(DataError, match=f"^{name}: holds no sentences"):
        evaluate_sources([Sentence(["a"])], nothing)


def test_any_lemma_is_right_where_the_gold_file_has_none(evaluate):
    gold = "1 a _ X _ 2 dep \n 2 b b X _ 0 root"
    system = "1 a anything X _ 2 dep \n 2 b _ X _ 0 root"
    scores = evaluate(gold, system).scores
    assert counts(scores["Lemmas"]) == counts(scores["BLEX"]) == (1, 2, 2)


HEARING = """
    1  A          a         DET   _  2  det
    2  hearing    hearing   NOUN  _  4  nsubj:pass
    3  is         be        AUX   _  4  aux:pass
    4  scheduled  schedule  VERB  _  0  root
    5  on         on        ADP   _  7  case
    6  the        the       DET   _  7  det
    7  issue      issue     NOUN  _  2  nmod
    8  today      today     NOUN  _  4  obl:tmod
"""
PROJECTIVE_HEARING = HEARING.replace("2  nmod", "4  obl")


def test_crossing_arcs(evaluate):
    # hearing → issue crosses root → scheduled and scheduled → today. The projective tree has the latter two as well,
    # but there nothing crosses them.
    missed = evaluate(HEARING, PROJECTIVE_HEARING).crossing
    assert counts(missed) == (2, 3, 0)
    assert missed.recall == pytest.approx(2 / 3)
    assert (missed.precision, missed.f1) == (0.0, 0.0)
    invented = evaluate(PROJECTIVE_HEARING, HEARING).crossing
    assert counts(invented) == (0, 0, 3)
    assert invented.precision == pytest.approx(2 / 3)
    assert (invented.recall, invented.f1) == (0.0, 0.0)
    found = evaluate(HEARING, HEARING).crossing
    assert (found.precision, found.recall, found.f1) == (1.0, 1.0, 1.0)


def test_arc_lengths(evaluate):
    by_length = evaluate(HEARING, HEARING.replace("2  nmod", "8  obl")).by_length
    assert tuple(by_length) == LENGTH_BINS
    assert {name: counts(score) for name, score in by_length.items()} == {
        "root": (1, 1, 1),
        "1": (3, 3, 4),  # A, is, the; in the system also issue
        "2": (2, 2, 2),  # hearing, on
        "3-6": (1, 2, 1),  # today; in gold also issue
        "7+": (0, 0, 0),
    }
    assert by_length["1"].precision == 0.75


def test_borders_of_the_length_bins(evaluate):
    names = "\n".join(f"{i} w w X _ {0 if i == 1 else 1} dep" for i in range(1, 10))  # nine words, all below the first
    by_length = evaluate(names, names).by_length
    assert [by_length[name].correct for name in ("root", "1", "2", "3-6", "7+")] == [1, 1, 1, 4, 2]


def test_arc_length_is_measured_on_each_side(evaluate):
    gold = "1 ab ab X _ 2 dep \n 2 c c X _ 0 root"
    system = "1 ab ab X _ 3 dep \n 2-3 c _ _ _ _ _ \n 2 x x X _ 3 dep \n 3 c c X _ 0 root"
    by_length = evaluate(gold, system).by_length
    assert (by_length["1"].recall, by_length["1"].precision) == (1.0, 0.0)
    assert (by_length["2"].recall, by_length["2"].precision) == (0.0, 1.0)


def test_result_survives_json(evaluate):
    report = evaluate(HEARING, PROJECTIVE_HEARING).as_dict()
    assert json.loads(json.dumps(report)) == report
    assert report["scores"]["UAS"]["f1"] == pytest.approx(7 / 8)
    assert report["crossing"]["gold_total"] == 3
    assert report["by_length"]["root"]["recall"] == 1.0


def test_several_roots_are_accepted(evaluate):
    gold = "1 a a X _ 0 root \n 2 b b X _ 0 root"
    assert counts(evaluate(gold, gold).scores["LAS"]) == (2, 2, 2)


def test_different_texts_are_an_error_that_shows_where(evaluate, tmp_path):
    gold = "# sent_id = eins \n 1 Ja ja X _ 0 root \n \n # sent_id = zwei \n 1 Straße Straße X _ 0 root"
    with pytest.raises(DataError) as caught:
        evaluate(gold, "1 Ja ja X _ 0 root \n 2 Strasse Straße X _ 1 dep")
    assert str(caught.value) == (
        f"{tmp_path}/system.conllu:2: sentence 1: the text differs from that of {tmp_path}/gold.conllu:5: sentence "
        "zwei: 'sse' (U+0073 …) where the gold text has 'ße' (U+00DF …) "
        "(evaluate files made from the same text; only the spaces may differ)"
    )
    with pytest.raises(DataError, match=r"system\.conllu:1: .*: the end of the file where .* 'Straße'"):
        evaluate(gold, "1 Ja ja X _ 0 root")


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("1 a a X _ 2 dep \n 2 b b X _ 1 dep", r"system\.conllu:1: sentence 1: .*form a cycle"),
        ("1 a a X _ _ dep \n 2 b b X _ 0 dep", r"system\.conllu:1: sentence 1: HEAD of word 1 is missing"),
        (
            "1 a a X _ 2 dep \n 2-3 · _ _ _ _ _ \n 2 b b X _ 0 root \n 3 c c X _ 2 dep",
            r":2: sentence 1: FORM .* white space",
        ),
    ],
)
def test_bad_system_file_is_an_error(evaluate, system, message):
    with pytest.raises(DataError, match=message):
        evaluate("1 a a X _ 2 dep \n 2 b b X _ 0 root", system)


def test_attachment_scores():
    one_word = Annotation(np.array([0]), ("root",))
    gold = Annotation(np.array([2, 0, 2]), ("nsubj:pass", "root", "punct"))
    system = Annotation(np.array([2, 0, 1]), ("nsubj", "dep", "punct"))
    assert attachment_scores([gold, one_word], [system, one_word]) == (75.0, 50.0)


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ([([0], ("root",))], "sentence 1: 2 and 1 words by their heads, 2 and 1 by their relations"),
        ([([0, 1], ("_", "root", "dep"))], "sentence 1: 2 and 2 words by their heads, 2 and 3 by their relations"),
        ([], "shorter"),
    ],
)
def test_attachment_scores_of_different_words_are_an_error(trees, message):
    gold = Annotation(np.array([0, 1]), ("root", "dep"))
    with pytest.raises(ValueError, match=message):
        attachment_scores([gold], [Annotation(np.array(heads), relations) for heads, relations in trees])


@pytest.mark.parametrize(("gold", "system"), [([-1, -1], [-1, -1]), ([2, 0], [2, -1]), ([-1, 0], [2, 0])])
def test_attachment_scores_without_a_head_are_an_error(gold, system):
    trees = [[Annotation(np.array(heads), ("dep", "root"))] for heads in (gold, system)]
    with pytest.raises(ValueError, match="sentence 1 has a word without a head"):
        attachment_scores(*trees)


def test_attachment_scores_without_words_are_an_error():
    with pytest.raises(ValueError, match="no words"):
        attachment_scores([], [])


# --- The oracle, on damaged copies ---------------------------------------------------------------------------------

MIXED = f"""
{FRENCH.strip()}

{HEARING.strip()}

    # empty node, subtypes, a language's own feature, no lemma, spaces inside a form, two multiword tokens in a row
    1    Hà·Nội   _        PROPN  _                             2  nsubj
    1.1  ghost    ghost    VERB   _                             _  _
    2    sees     see      VERB   Person=3|Mood=Ind|Clitic=No   0  root
    3-5  dámelo   _        _      _                             _  _
    3    da       dar      VERB   Mood=Imp                      2  ccomp
    4    me       yo       PRON   Case=Dat                      3  iobj
    5    lo       él       PRON   Case=Acc                      3  obj
    6-7  del      _        _      _                             _  _
    6    de       de       ADP    _                             8  case
    7    el       el       DET    Definite=Def                  8  det
    8    el       el       NOUN   _                             3  obl:from
    9    !        !        PUNCT  _                             2  punct
"""


@dataclass(frozen=True)
class Word:
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    relation: str
    head: int  # index in the list of all words, -1 for the root
    origin: int  # index of the undamaged word


def read_tokens(path: Path) -> list[list[tuple[str, list[Word]]]]:
    """Read the sentences of a file as lists of tokens (surface form, words)."""
    sentences, first = [], 0
    for sentence in read_conllu(path, trees="required"):
        words = [
            Word(form, lemma, upos, xpos, feats, relation, first + head - 1 if head else -1, first + i)
            for i, (form, lemma, upos, xpos, feats, relation, head) in enumerate(
                zip(
                    *(sentence.forms, sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats),
                    *(sentence.relations, sentence.heads.tolist()),
                    strict=True,
                )
            )
        ]
        surface = {}  # first word: (last word, form)
        for line in sentence.lines:
            word_id, _, rest = line.partition("\t")
            if word_id.replace("-", "").isdigit() and "-" in word_id:
                start, end = map(int, word_id.split("-"))
                surface[start] = (end, rest.split("\t")[0])
        tokens, i = [], 1
        while i <= len(words):
            end, form = surface.get(i, (i, words[i - 1].form))
            tokens.append((form, words[i - 1 : end]))
            i = end + 1
        sentences.append(tokens)
        first += len(words)
    return sentences


def damage(sentences: list[list[tuple[str, list[Word]]]], rng: random.Random, rate: float) -> str:
    """Return CoNLL-U of the same text with about a share ``rate`` of tokens, words, boundaries and labels changed."""

    def hit() -> bool:
        return rng.random() < rate

    every_word = [word for tokens in sentences for _, words in tokens for word in words]
    stream = [(form, words, i == len(tokens) - 1) for tokens in sentences for i, (form, words) in enumerate(tokens)]
    new_tokens: list[tuple[str, list[Word], bool]] = []
    while stream:
        form, words, last = stream.pop(0)
        if hit() and stream:  # merge two tokens into one with one word, all words or all but the first
            next_form, next_words, last = stream.pop(0)
            form, words = form + rng.choice(("", " ", "\u00a0")) + next_form, words + next_words
            words = rng.choice(([replace(words[0], form=form)], words, words[1:]))
        elif hit() and len(words) > 1:  # a multiword token becomes one word
            words = [replace(words[0], form=form)]
        elif hit() and len(form) > 1:  # split a token
            cut = rng.randrange(1, len(form))
            if form[:cut].strip() and form[cut:].strip():
                stream.insert(0, (form[cut:], [replace(w, form=form[cut:]) for w in words[-1:]], last))
                form, words, last = form[:cut], [replace(w, form=form[:cut]) for w in words[:1]], False
        elif hit():  # make a multiword token of invented words and some of the true ones
            invented = [replace(word, form=form[: rng.randrange(1, len(form) + 1)]) for word in words]
            words = [replace(word, form=rng.choice((str.upper, str.title, str.lower))(word.form)) for word in words]
            words = rng.sample(words + invented, rng.randint(2, len(words) + len(invented)))
            words = [w if w.form.strip() else replace(w, form=form) for w in words]
        new_tokens.append((form, words, last != (rng.random() < rate / 3)))

    lines: list[str] = []
    block: list[tuple[str, list[Word]]] = []
    for i, (form, words, last) in enumerate(new_tokens):
        block.append((form, words))
        if last or i == len(new_tokens) - 1:
            lines += render(block, every_word, rng, hit)
            block = []
    return "\n".join(lines) + "\n"


def render(
    tokens: Sequence[tuple[str, list[Word]]], labels: Sequence[Word], rng: random.Random, hit: Callable[[], bool]
) -> Iterable[str]:
    words = [word for _, token_words in tokens for word in token_words]
    place = {word.origin: i for i, word in enumerate(words, start=1)}
    heads = [0 if w.head < 0 else place.get(w.head, rng.randint(0, len(words))) for w in words]
    heads = [rng.randint(0, len(words)) if hit() else head for head in heads]
    for start in range(1, len(words) + 1):  # break cycles by attaching a word to the root
        seen, word = set(), start
        while word and word not in seen:
            seen.add(word)
            word = heads[word - 1]
        if word:
            heads[word - 1] = 0
    number = 0
    for form, token_words in tokens:
        if len(token_words) > 1 or token_words[0].form != form:
            yield "\t".join((f"{number + 1}-{number + len(token_words)}", form, *"_" * 8))
        for word in token_words:
            number += 1
            columns = [
                getattr(rng.choice(labels) if hit() else word, name)
                for name in ("lemma", "upos", "xpos", "feats", "relation")
            ]
            relation = columns.pop()
            yield "\t".join((str(number), word.form, *columns, str(heads[number - 1]), relation, "_", "_"))
    yield ""


def oracle_scores(gold: Path, system: Path) -> dict[str, tuple[float, float, float, float | None]]:
    def run(*texts: str) -> dict:
        return udeval.evaluate(
            *(udeval.load_conllu(io.StringIO(text), "", {"multiple_roots_okay": True}) for text in texts)
        )

    gold_text, system_text = gold.read_text(encoding="utf-8"), system.read_text(encoding="utf-8")
    scores = run(gold_text, system_text)
    scores["LAS+subtypes"] = run(*map(hide_subtypes, (gold_text, system_text)))["LAS"]
    return {name: (s.precision, s.recall, s.f1, s.aligned_accuracy) for name, s in scores.items() if name in METRICS}


def hide_subtypes(text: str) -> str:
    """Replace ":" in relations by "~", so that a scorer takes every whole relation for a universal one."""
    rows = [line.split("\t") for line in text.split("\n")]
    return "\n".join("\t".join([*row[:7], row[7].replace(":", "~"), *row[8:]]) if row[1:] else row[0] for row in rows)


def assert_same_scores(gold: Path, system: Path) -> Evaluation:
    evaluation = evaluate_sources(gold, system)
    expected = oracle_scores(gold, system)
    assert set(expected) == set(METRICS)
    for name, score in evaluation.scores.items():
        ours = (score.precision, score.recall, score.f1, score.aligned_accuracy)
        assert ours == pytest.approx(expected[name], abs=1e-9), name
    for part in ("correct", "gold_total", "aligned_total"):
        in_bins = sum(getattr(score, part) for score in evaluation.by_length.values())
        assert in_bins == getattr(evaluation.scores["UAS"], part)
    return evaluation


def test_damaged_small_file_scores_as_the_oracle_says(tmp_path):
    gold, system = tmp_path / "gold.conllu", tmp_path / "system.conllu"
    gold.write_text(conllu(MIXED), encoding="utf-8")
    tokens = read_tokens(gold)
    seen = set()
    for seed in range(300):
        rng = random.Random(seed)
        system.write_text(damage(tokens, rng, rng.choice((0.02, 0.1, 0.3))), encoding="utf-8")
        evaluation = assert_same_scores(gold, system)
        seen |= {name for name, score in evaluation.scores.items() if 0 < score.f1 < 1}
    assert seen == set(METRICS)  # the damage reaches every metric


def test_alignment_keeps_order_and_uses_no_word_twice(tmp_path):
    gold, system = tmp_path / "gold.conllu", tmp_path / "system.conllu"
    gold.write_text(conllu(MIXED), encoding="utf-8")
    for seed in range(50):
        system.write_text(damage(read_tokens(gold), random.Random(seed), 0.3), encoding="utf-8")
        gold_word = align_words(read_analysis(gold), read_analysis(system))
        assert np.all(np.diff(gold_word[gold_word != UNALIGNED]) > 0)


@pytest.mark.parametrize("treebank", ["vi", "ro", "el"])
def test_damaged_treebank_scores_as_the_oracle_says(treebank, tmp_path):
    gold = UD / treebank / f"{treebank}-ud-dev.conllu"
    if not gold.exists():
        pytest.skip("the shared folder with UD 2.0 treebanks is not here")
    system = tmp_path / "system.conllu"
    system.write_text(damage(read_tokens(gold), random.Random(treebank), 0.05), encoding="utf-8")
    evaluation = assert_same_scores(gold, system)
    assert all(0.3 < score.f1 < 1 for score in evaluation.scores.values())


WORD_METRICS = ("Tokens", "Sentences", "Words", "UPOS", "XPOS", "UFeats", "AllTags", "Lemmas")


def test_files_without_trees_are_scored_up_to_lemmas_as_the_oracle_does(tmp_path):
    gold, system, bare = (tmp_path / f"{name}.conllu" for name in ("gold", "system", "bare"))
    gold.write_text(conllu(MIXED), encoding="utf-8")
    for seed in range(8):
        system.write_text(damage(read_tokens(gold), random.Random(seed), 0.2), encoding="utf-8")
        with bare.open("wb") as stream:
            for sentence in read_conllu(system):
                n = len(sentence)
                stream.write(sentence.replace(heads=[-1] * n, relations=["_"] * n).to_bytes())
        evaluation = evaluate_sources(gold, bare)
        expected = oracle_scores(gold, system)
        assert tuple(evaluation.scores) == WORD_METRICS
        for name, score in evaluation.scores.items():
            ours = (score.precision, score.recall, score.f1, score.aligned_accuracy)
            assert ours == pytest.approx(expected[name], abs=1e-12), name
        assert evaluation.missing == ("DEPREL", "HEAD")
        assert all(evaluation.counts_missing(name) for name in ("LAS", "CLAS", "MLAS", "BLEX"))
        assert evaluation.crossing is None
        assert tuple(evaluate_sources(bare, system).scores) == WORD_METRICS
        assert evaluate_sources(bare, bare).missing == ()
    with pytest.raises(ValueError, match="no LAS: one of the files has no trees"):
        _ = evaluation.las
    assert json.loads(json.dumps(evaluation.as_dict()))["missing"] == ["DEPREL", "HEAD"]


def test_columns_that_a_system_lacks_are_named(evaluate):
    system = FRENCH.replace("PRON", "_").replace("VERB", "_")
    fields = [line.split() for line in system.strip().splitlines()]
    system = "\n".join(" ".join([*row[:2], "_", "_", "_", *row[5:]]) for row in fields)
    evaluation = evaluate(FRENCH, system)
    assert evaluation.missing == ("UPOS", "XPOS", "FEATS", "LEMMA")
    assert [name for name in METRICS if evaluation.counts_missing(name)] == [
        *("UPOS", "XPOS", "UFeats", "AllTags", "Lemmas", "MLAS", "BLEX"),
    ]
    assert evaluation.las == 100
    assert evaluate(FRENCH, FRENCH).missing == ()


@pytest.mark.parametrize(
    ("column", "metrics"),
    [
        ("UPOS", ["UPOS", "AllTags", "MLAS"]),
        ("XPOS", ["XPOS", "AllTags"]),
        ("FEATS", ["UFeats", "AllTags", "MLAS"]),
        ("LEMMA", ["Lemmas", "BLEX"]),
        ("DEPREL", ["LAS", "LAS+subtypes", "CLAS", "MLAS", "BLEX"]),
        ("HEAD", []),
    ],
)
def test_metrics_that_a_column_counts_for(column, metrics):
    evaluation = Evaluation({}, None, {}, missing=(column,))
    assert [name for name in METRICS if evaluation.counts_missing(name)] == metrics


def test_correct_units_of_the_system_are_its_own():
    assert Score(1, 4, 2, None, 2).as_dict()["correct_in_system"] == 2


def test_the_first_sentence_without_heads_is_named(evaluate):
    bare = "1 a a X _ _ _"
    with pytest.raises(DataError, match=r"gold\.conllu:3: sentence 2: HEAD of word 1 is missing"):
        evaluate(f"1 a a X _ 0 root \n\n {bare} \n\n {bare}", bare)


def test_some_trees_are_not_enough(evaluate):
    two = FRENCH + "\n\n" + FRENCH
    bare = "\n".join(" ".join([*line.split()[:5], "_", "_"]) for line in FRENCH.strip().splitlines())
    with pytest.raises(DataError, match=r"system\.conllu:.*HEAD"):
        evaluate(two, FRENCH + "\n\n" + bare)


def test_attachment_scores_equal_those_of_the_files(tmp_path):
    gold, system = tmp_path / "gold.conllu", tmp_path / "system.conllu"
    gold.write_text(conllu(MIXED), encoding="utf-8")
    rng = random.Random(1)
    with system.open("wb") as stream:
        for sentence in read_conllu(gold, trees="required"):
            heads = sentence.heads.copy()
            heads[rng.randrange(len(sentence))] = 0
            labels = rng.sample(sentence.relations, len(sentence))
            stream.write(sentence.replace(heads=heads, relations=labels).to_bytes())
    expected = evaluate_sources(gold, system).scores
    a, b = (list(read_conllu(path, trees="required")) for path in (gold, system))
    uas, las = attachment_scores(a, b)
    assert (uas, las) == pytest.approx((100 * expected["UAS"].f1, 100 * expected["LAS"].f1))
    assert 0 < las < uas < 100


def test_sentences_are_scored_as_their_file_is(tmp_path):
    lines = [["1\ta\t_\tX\t_\t_\t0\troot\t_\t_", "2\tb\t_\tX\t_\t_\t{}\tdep\t_\t_"]] * 2
    for name, head in (("gold", 1), ("system", 0)):
        text = "".join("\n".join(rows).format(head) + "\n\n" for rows in lines)
        (tmp_path / name).write_text(text, encoding="utf-8")
    gold, system = (list(read_conllu(tmp_path / name)) for name in ("gold", "system"))
    found = evaluate_sources(gold, iter(system))
    assert found == evaluate_sources(tmp_path / "gold", tmp_path / "system")
    assert (found.uas, found.las) == (50, 50)
    assert "UAS 50.00" in str(found)
    headless = [sentence.replace(heads=[0, -1]) for sentence in system]
    with pytest.raises(DataError, match="HEAD"):
        evaluate_sources(gold, headless)


def test_what_was_copied_is_named(evaluate):
    for_others = FRENCH.replace("2  nsubj", "5  nsubj")
    assert evaluate(FRENCH, for_others).copied == ("UPOS", "XPOS", "FEATS", "LEMMA")
    without_lemmas = "\n".join(
        " ".join(["_" if column == 2 else value for column, value in enumerate(line.split())])
        for line in FRENCH.strip().splitlines()
    )
    assert evaluate(FRENCH, without_lemmas).copied == ("UPOS", "XPOS", "FEATS")
    assert evaluate(without_lemmas, FRENCH).copied == ("UPOS", "XPOS", "FEATS")
    for right, wrong in (("ADJ", "NOUN"), ("Number=Sing", "Number=Plur"), ("noir   noir", "noir   noire")):
        assert evaluate(FRENCH, FRENCH.replace(right, wrong)).copied == ()
    # Values that the system adds where gold has none do not count.
    assert evaluate(FRENCH, FRENCH.replace("ADP    _", "ADP  Case=Gen")).copied == ("UPOS", "XPOS", "FEATS", "LEMMA")
    assert evaluate(FRENCH, FRENCH.replace("Person=3", "_")).copied == ()
    assert evaluate(without_tags := "1 a _ _ _ 0 root", without_tags).copied == ()
    assert evaluate(FRENCH, FRENCH).as_dict()["copied"] == ["UPOS", "XPOS", "FEATS", "LEMMA"]


def test_counts_of_sentences_make_up_the_scores(tmp_path):
    """Even if gold and system differ in sentences, tokens and words."""
    gold = "\n\n".join([FRENCH, "1 Oui oui INTJ _ 0 root\n2 . . PUNCT _ 1 punct", FRENCH])
    first = FRENCH.replace("3-4  du     _       _      _          _  _\n", "")
    first = first.replace("3    de     de", "3    d      de").replace("le     le      DET", "u     le      DET")
    second = "1 Oui. oui INTJ _ 2 dep\n2 Il il PRON _ 0 root"
    third = "1 parle parler VERB _ 0 root\n2 du le DET _ 3 det\n3 chat chat NOUN _ 1 obl\n4 noir. noir ADJ _ 3 amod"
    system = "\n\n".join([first, second, third])
    for name, text in (("gold", gold), ("system", system)):
        (tmp_path / name).write_text(conllu(text), encoding="utf-8")
    evaluation = evaluate_sources(tmp_path / "gold", tmp_path / "system")
    units = count_units(Comparison.of(read_analysis(tmp_path / "gold"), read_analysis(tmp_path / "system")))
    assert list(units) == list(evaluation.rows)
    assert {name: part.total() for name, part in units.items()} == evaluation.rows
    assert all(part.correct.shape == (3,) for part in units.values())
    assert units["Sentences"].gold_total.tolist() == [1, 1, 1]
    assert units["Sentences"].system_total.tolist() == [1, 1, 1]
    assert units["Sentences"].correct.tolist() == [1, 0, 0]
    assert units["Words"].gold_total.tolist() == [7, 2, 7]
    assert units["Words"].system_total.tolist() == [7, 1, 5]
    assert units["Words"].correct.tolist() == [5, 0, 3]
