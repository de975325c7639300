"""Total scores of a word's analyses and lemma, with network scores set by hand."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from small import ANNOTATOR

from mh4.data.lemma_rules import lemma_rule
from mh4.data.sentence import Sentence
from mh4.models.annotator import Annotator, ColumnScores
from mh4.parsers.column_choice import choose_rules
from mh4.parsers.column_reader import ColumnReader
from mh4.parsers.column_weights import ColumnWeights
from mh4.parsers.columns import Columns
from mh4.parsers.request import TAGS, Request

RELATIONS = ["root", "dep"]


def sentence(*words):
    """Return a sentence of words "form lemma upos xpos feats"; the first is the root and heads all others."""
    columns = list(zip(*(word.split() for word in words), strict=True))
    return Sentence(
        columns[0],
        heads=[0, *[1] * (len(words) - 1)],
        relations=["root", *["dep"] * (len(words) - 1)],
        **dict(zip(("lemmas", "upos", "xpos", "feats"), columns[1:], strict=True)),
    )


def reader_of(*sentences):
    columns = Columns.from_sentences(sentences)
    annotator = Annotator(*ANNOTATOR, 4, columns.classes)
    return ColumnReader(columns, annotator, torch.device("cpu"), RELATIONS)


def scores_of(reader, words, analyses=None, rules=None):
    """Return scores of ``words`` words: 0 except for the given {(word, index): score}."""
    found = ColumnScores(
        torch.zeros(words, len(reader.columns.analyses)), torch.zeros(words, len(reader.columns.rules))
    )
    for (word, k), score in (analyses or {}).items():
        found.analyses[word, k] = score
    for (word, k), score in (rules or {}).items():
        found.lemmas[word, k] = score
    return found


def test_what_a_form_had_in_training_is_the_logarithm_of_its_counts_and_of_some_spread_over_all():
    reader = reader_of(
        sentence("saw saw X N _", "saw see X V _", "saw saw X N _"),
        sentence("dog dog X N _", "see see X V _", "the the X D _"),
    )
    columns = reader.columns
    words = Sentence(["saw", "new", "the"])
    chosen = reader.choose(scores_of(reader, 3), [words]).chosen
    total = {}
    for word in range(3):
        for k, score in zip(chosen.analyses[word].tolist(), chosen.analysis_scores[word].tolist(), strict=True):
            total[word, columns.analyses[k][1]] = score - reader._commonest_first[k].item()
    share = {"N": 3 / 6, "V": 2 / 6, "D": 1 / 6}
    counts = {0: {"N": 2, "V": 1}, 2: {"D": 1}}
    for (word, tag), score in total.items():
        expected = 0.0  # for a form unseen in training
        if word in counts:
            expected = 0.5 * np.log(counts[word].get(tag, 0) + 0.5 * share[tag])
        assert score == pytest.approx(expected, abs=1e-5), (word, tag)
    assert len(total) == 9


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("relations", [True, False])
def test_on_the_cpu_the_same_is_chosen_as_on_a_gpu(seed, relations):
    """Slots without an analysis or rule have the score −inf and an arbitrary index."""
    draw = np.random.default_rng(seed)
    forms, tags = ["dogs", "s", "see", "tables", "of"], ["NOUN", "VERB", "ADP"]
    columns = forms, forms, tags, ["X", "Y", "Z"], ["_", "Case=Nom", "Case=Gen"]
    words = [" ".join(map(draw.choice, columns)) for _ in range(40)]
    reader = reader_of(*(sentence(*words[i : i + 4]) for i in range(0, 40, 4)))
    texts = [
        Sentence(
            [*draw.choice([*forms, "new", "x"], n)],
            upos=[*draw.choice([*tags, "X", "_"], n)],
            xpos=[*draw.choice(["X", "Y", "?", "_"], n)],
            feats=[*draw.choice(["_", "Case=Gen", "Case=Ine"], n)],
        )
        for n in (3, 5, 1)
    ]
    analyses, rules = (
        torch.from_numpy(draw.normal(0, 3, (9, count)).astype(np.float32))
        for count in (len(reader.columns.analyses), len(reader.columns.rules))
    )
    of_words = torch.from_numpy(draw.integers(0, len(RELATIONS) + 1, 9)) if relations else None
    for overwritten in (TAGS, ("feats",), ()):
        found = []
        for choose in (reader._choose, reader._choose_compiled):
            reader._choose_compiled = choose
            found.append(reader.choose(ColumnScores(analyses, rules), texts, overwritten, of_words).chosen)
            del reader._choose_compiled
        (classes, *theirs), (own_classes, *ours) = found
        np.testing.assert_array_equal(own_classes, classes)
        for places, scores, own_places, own_scores in ((*theirs[:2], *ours[:2]), (*theirs[2:], *ours[2:])):
            np.testing.assert_array_equal(own_scores, scores)
            there = np.isfinite(scores)
            np.testing.assert_array_equal(own_places[there], places[there])


def test_of_equal_rules_the_first_are_found():
    scores, none = np.zeros((2, 5), np.float32), np.zeros(5, np.int64)
    best, found, found_scores = np.full(2, 9, np.int32), np.full((1, 3), 9, np.int32), np.empty((1, 3), np.float32)
    choose_rules(scores, np.array([4, 4]), none, np.array([-1, 0]), best, found, found_scores)
    assert best.tolist() == [0, 0]
    assert found.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(("form", "fits"), [("s", False), ("xs", True)])
def test_a_rule_that_would_leave_nothing_is_not_taken(form, fits):
    reader = reader_of(sentence("dogs dog NOUN N _", "of of ADP P _"))
    cuts = reader.columns.rules.index(lemma_rule("dogs", "dog"))
    scores = scores_of(reader, 1, rules={(0, cuts): 9.0})
    chosen = reader.choose(scores, [Sentence([form])]).chosen
    assert (int(chosen.classes[0, 2]) == cuts) == fits


def test_given_features_choose_the_lemma_unless_they_are_overwritten():
    training = sentence("saw saw NOUN N Number=Sing", "saw sawe NOUN N Case=Gen", "of of ADP P _")
    reader = reader_of(training)
    given = sentence("saw _ NOUN N Number=Sing")
    other = next(k for k, (_, _, feats) in enumerate(reader.columns.analyses) if feats == "Case=Gen")
    scores = scores_of(reader, 1, analyses={(0, other): 9.0})
    for columns, lemma in (("lemmas", "saw"), ("feats,lemmas", "sawe")):
        request = Request(predict=columns, overwrite=True)
        (values,) = reader.read(reader.choose(scores, [given], request.overwritten), [given], request)
        assert values["lemmas"] == (lemma,)


@pytest.mark.parametrize("features", ["Case=Gen|Number=Sing", "Number=Sing|Case=Gen"])
def test_given_features_choose_the_lemma_in_any_order(features):
    """In training, too, FEATS count in UD's order."""
    reader = reader_of(sentence("saw saw X N Number=Sing|Case=Gen", "saw see X N Number=Sing|Case=Nom"))
    words = Sentence(["saw"], upos=["X"], feats=[features])
    choices = reader.choose(scores_of(reader, 1), [words])
    (found,) = reader.read(choices, [words], Request(predict="lemmas"))
    assert found == {"lemmas": ("saw",)}
    words = words.replace(feats=[features.replace("Gen", "Nom")])
    (found,) = reader.read(choices, [words], Request(predict="lemmas"))
    assert found == {"lemmas": ("see",)}


ANALYSES = [
    *["a a NOUN Nsg Number=Sing", "b b NOUN Npl Number=Plur", "c c VERB Vfin Number=Sing"],
    *["d d ADV Npl _", "e e _ Odd _", "f f ADJ Adj Gender=Fem|Case=Gen", "g g INTJ _ Foreign=Yes"],
]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("x _ _ Npl _", "NOUN Npl Number=Plur"),
        ("x _ NOUN _ Number=Sing", "NOUN Nsg Number=Sing"),
        ("x _ _ _ Number=Sing", "VERB Vfin Number=Sing"),
        ("x _ _ Vfin Number=Plur", "VERB Vfin Number=Plur"),  # no word of training has both: XPOS decides on UPOS
        ("x _ ADV Vfin Number=Plur", "ADV Vfin Number=Plur"),
        ("x _ _ New Number=Plur", "NOUN New Number=Plur"),
        ("x _ _ Odd _", "NOUN Odd Number=Plur"),  # had no UPOS in training, and must have one: XPOS does not decide
        ("x _ X Vfin _", "X Vfin Number=Sing"),
        ("x _ _ _ Gender=Fem|Case=Gen", "ADJ Adj Gender=Fem|Case=Gen"),
    ],
)
def test_predicted_values_agree_with_given_ones(given, expected):
    reader = reader_of(*map(sentence, ANALYSES))
    order = ["NOUN Npl", "VERB Vfin", "NOUN Nsg", "ADV Npl", "_ Odd", "ADJ Adj", "INTJ _"]  # from the likeliest
    scores = scores_of(reader, 1)
    for k, (upos, xpos, _) in enumerate(reader.columns.analyses):
        scores.analyses[0, k] = 9.0 - 3 * order.index(f"{upos} {xpos}")
    before = scores.analyses.clone()
    words, request = sentence(given), Request(predict="tags")
    for choose in (reader._choose_compiled, reader._choose):
        reader._choose_compiled = choose
        (values,) = reader.read(reader.choose(scores, [words]), [words], request)
        assert " ".join(values.get(name, getattr(words, name))[0] for name in TAGS) == expected
    assert torch.equal(scores.analyses, before)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("upos,xpos", {"upos": "VERB", "xpos": "Vfin"}),  # as FEATS say
        ("upos,feats", {"upos": "NOUN", "feats": "Number=Sing"}),  # as XPOS says
        ("tags", {"upos": "ADV", "xpos": "Npl", "feats": "_"}),
    ],
)
def test_given_values_that_are_overwritten_do_not_count(columns, expected):
    reader = reader_of(*map(sentence, ANALYSES))
    tags = [f"{upos} {xpos}" for upos, xpos, _ in reader.columns.analyses]
    likely = {"ADV Npl": 9.0, "VERB Vfin": 6.0, "NOUN Npl": 3.0}
    scores = scores_of(reader, 3, analyses={(2, tags.index(tag)): score for tag, score in likely.items()})
    texts = [Sentence(["new", "x"]), Sentence(["x"], xpos=["Nsg"], feats=["Number=Sing"])]
    request = Request(predict=columns, overwrite=True)
    *_, values = reader.read(reader.choose(scores, texts, request.overwritten), texts, request)
    assert {name: value for name, (value,) in values.items()} == expected


def test_dependents_agree_with_their_own_heads():
    agreeing = [
        sentence(f"n n NOUN N Case={case}", f"a a ADJ A Case={case}") for case in ("Nom", "Acc") for _ in range(8)
    ]
    reader = reader_of(*agreeing, sentence("v v VERB V _", *["b b ADJ A Case=Acc"] * 4))
    analyses = {(upos, feats): k for k, (upos, _, feats) in enumerate(reader.columns.analyses)}
    words = Sentence(["x", "y", "z"], upos=["VERB", "NOUN", "ADJ"])
    sure = {(0, analyses["VERB", "_"]): 9.0, (1, analyses["NOUN", "Case=Nom"]): 9.0}
    choices = reader.choose(scores_of(reader, 3, analyses=sure), [words])
    found = {}
    for head in (1, 2):  # of the adjective
        heads = np.array([-1, 0, 1, head], np.int32)
        (values,) = reader.read(choices, [words], Request(predict="feats"), [(heads, np.array([0, 1, 1]))])
        found[head] = values["feats"][2]
    assert found == {1: "Case=Acc", 2: "Case=Nom"}  # the more frequent case, and the noun's


def test_agreement_is_smoothed_and_weighted_as_the_model_says():
    columns = Columns.from_sentences(
        [sentence(f"n n NOUN N Case={case}", f"a a ADJ A Case={case}") for case in ("Nom", "Acc")]
    )
    weights = ColumnWeights(form_smoothing=3.0, occurrence_smoothing=2.0, agreement_weight=0.6)
    reader = ColumnReader(columns, Annotator(*ANNOTATOR, 4, columns.classes), torch.device("cpu"), RELATIONS, weights)
    expected = columns.agreement_gains(RELATIONS, 2.0)
    assert expected.any()
    np.testing.assert_allclose(reader._gains, 0.6 * expected, rtol=1e-6)


def test_choices_can_be_read_again_and_in_any_order_of_columns():
    """Rules for new forms are looked up by word, whatever was read before."""
    reader = reader_of(sentence("dogs dog NOUN N _", "cats cat NOUN N _", "is be VERB V _"))
    texts = [Sentence(["dogs", "rats"]), Sentence(["is"]), Sentence(["foxes", "is", "owls"])]
    strip = next(k for k, rule in enumerate(reader.columns.rules) if rule.apply("rats") == "rat")
    choices = reader.choose(scores_of(reader, 6, rules={(k, strip): 9.0 for k in (1, 5)}), texts)
    for names in ("upos", "lemmas", "upos,lemmas"):
        found = reader.read(choices, texts, Request(predict=names))
        assert [list(values) for values in found] == [names.split(",")] * 3
        if "lemmas" in names:
            assert [values["lemmas"][-1] for values in found] == ["rat", "be", "owl"]


@pytest.mark.parametrize("changes", [{"form_weight": 0.0}, {"known_lemma_weight": 0.0}])
def test_weights_are_those_of_the_model(changes):
    training = [
        sentence("a a NOUN N _", "b b VERB V _", "dogs dog NOUN N _"),
        sentence("a a NOUN N _", "kat cat NOUN N _"),
    ]
    columns = Columns.from_sentences(training)
    annotator = Annotator(*ANNOTATOR, 4, columns.classes)
    tried = Sentence(["a", "cats"], upos=["_", "NOUN"])
    verb = next(k for k, (upos, _, _) in enumerate(columns.analyses) if upos == "VERB")
    as_it_is = next(k for k, rule in enumerate(columns.rules) if rule.apply("cats") == "cats")
    found = []
    for weights in (ColumnWeights(), ColumnWeights(**changes)):
        reader = ColumnReader(columns, annotator, torch.device("cpu"), RELATIONS, weights)
        scores = scores_of(reader, 2, analyses={(0, verb): 0.4}, rules={(1, as_it_is): 3.0})
        choices = reader.choose(scores, [tried])
        found.append(reader.read(choices, [tried], Request(predict="upos,lemmas")))
    assert found[0] != found[1]


def test_every_weight_counts():
    agreeing = [sentence("n n NOUN N Case=Nom", "a a ADJ A Case=Nom"), sentence("n n NOUN N Case=Acc", "bs b ADJ A _")]
    columns, words = Columns.from_sentences(agreeing), Sentence(["n", "new"])

    def outcome(weights):
        reader = ColumnReader(
            columns, Annotator(*ANNOTATOR, 4, columns.classes), torch.device("cpu"), RELATIONS, weights
        )
        scores = scores_of(reader, 2, rules={(1, 0): 1.0})
        chosen = reader.choose(scores, [words], relations=torch.tensor([0, 1])).chosen
        return [reader._gains, *(array.tolist() for array in chosen)]

    plain = ColumnWeights(candidate_analyses=2, candidate_rules=1)
    for field in fields(ColumnWeights):
        if field.name == "known_lemma_weight":  # has a test of its own
            continue
        changed = replace(plain, **{field.name: 3 * getattr(plain, field.name)})
        (gains, *one), (others, *other) = (outcome(weights) for weights in (plain, changed))
        assert one != other or not np.array_equal(gains, others), field.name
