"""UPOS, XPOS, FEATS and LEMMA: what models learn and predict, and which given values stay."""

import json
import logging
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from small import ANNOTATING, ANNOTATOR, SMALL_ENCODER, changed, small_config, small_greedy_config, train

from mh4.data.annotation import Annotation
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.lemma_rules import lemma_rule
from mh4.data.sentence import Sentence
from mh4.models.annotator import IGNORED, INCOMPLETE, Annotator, ColumnScores
from mh4.models.checked import checked
from mh4.parsers import columns as columns_module
from mh4.parsers.chart import ChartParser
from mh4.parsers.column_counts import lacks_features, shares_without_features
from mh4.parsers.column_reader import ColumnReader
from mh4.parsers.column_weights import ColumnWeights
from mh4.parsers.columns import MOST_XPOS, Columns
from mh4.parsers.config import TransitionConfig
from mh4.parsers.definition import Definition
from mh4.parsers.ensemble import EnsembleParser, _elected
from mh4.parsers.folder import ModelFolder
from mh4.parsers.model_files import write_tensors
from mh4.parsers.registry import load
from mh4.parsers.request import Request
from mh4.parsers.vocabulary import Vocabulary

COLUMNS = ("upos", "xpos", "feats", "lemmas")


def rows(*lines):
    """Return a sentence of words "form lemma upos xpos feats"; the first is the root and heads all others."""
    words = [
        "\t".join((str(i), *line.split(), str(int(i > 1)), "root" if i == 1 else "dep", "_", "_"))
        for i, line in enumerate(lines, start=1)
    ]
    return Sentence.from_conllu("\n".join(words) + "\n\n")


SENTENCES = [
    rows("Saw see VERB V Tense=Past|Number=Sing", "saw saw NOUN N Number=Sing", "dogs dog NOUN N Number=Plur"),
    rows("saw saw NOUN N Number=Sing", "of of ADP P _", "saw sawe NOUN N Case=Gen|Number[psor]=Sing|NumType=Card"),
]


@pytest.fixture(scope="module")
def parser(annotating_model):
    return ChartParser.load(annotating_model, device="cpu")


@pytest.fixture
def dev(small_treebanks):
    return list(read_conllu(small_treebanks[1]))


def bare(sentence):
    return Sentence.from_words(sentence.forms)


def test_values_and_classes():
    columns = Columns.from_sentences(SENTENCES)
    assert columns.upos == ("NOUN", "ADP", "VERB")
    assert columns.xpos == ("N", "P", "V")
    assert list(columns.attributes) == ["Case", "Number", "Number[psor]", "NumType", "Tense"]  # in UD's order
    assert columns.attributes["Number"] == ("Number=Sing", "Number=Plur")
    assert columns.known == set(COLUMNS)
    upos, xpos, feats, rules = columns.targets(SENTENCES[1]).T
    assert upos.tolist() == [0, 1, 0]
    assert xpos.tolist() == [0, 1, 0]
    which = [columns.classes.analyses.feats.tolist().index(index) for index in feats]
    assert [columns.analyses[k][2] for k in which] == ["Number=Sing", "_", "Case=Gen|Number[psor]=Sing|NumType=Card"]
    assert columns.rules[rules[2]] == lemma_rule("saw", "sawe")


def test_the_lexicon_has_what_is_unambiguous():
    lexicon = Columns.from_sentences(SENTENCES).lexicon
    assert lexicon["dogs\tNOUN"] == "dog"
    assert lexicon["Saw\tVERB"] == "see"
    assert "saw\tNOUN" not in lexicon
    assert lexicon["saw\tNOUN\tNumber=Sing"] == "saw"
    assert "dogs\tNOUN\tNumber=Plur" not in lexicon  # the shorter key suffices


def test_the_lemma_rule_of_most_words_is_the_first():
    columns = Columns.from_sentences([rows(*["dogs dog NOUN N _"] * 3, "of of ADP P _", "or or CONJ C _")])
    assert [rule.apply("cats") for rule in columns.rules] == ["cat", "cats"]


def test_what_an_analysis_consists_of():
    columns = Columns.from_sentences(SENTENCES)
    upos, xpos, feats, parts = columns.classes.analyses
    assert columns.analyses[:2] == (("NOUN", "N", "Number=Sing"), ("ADP", "P", "_"))
    assert upos[:2].tolist() == xpos[:2].tolist() == [0, 1]
    assert len(set(feats.tolist())) == len({analysis[2] for analysis in columns.analyses})
    classes = [
        *(("upos", tag) for tag in columns.upos),
        *(("xpos", tag) for tag in columns.xpos),
        *((name, value) for name, features in columns.attributes.items() for value in ("none", *features)),
    ]
    assert len(classes) == len(parts) == len(columns.upos) + columns.classes.xpos + columns.classes.feats
    none = [(name, "none") for name in columns.attributes]
    singular = [("upos", "NOUN"), ("xpos", "N"), none[0], ("Number", "Number=Sing"), *none[2:]]
    assert [classes[row] for row in np.flatnonzero(parts[:, 0])] == singular
    assert [classes[row] for row in np.flatnonzero(parts[:, 1])] == [("upos", "ADP"), ("xpos", "P"), *none]


def test_columns_that_the_treebank_does_not_have():
    sentence = SENTENCES[0].replace(xpos=["_"] * 3, lemmas=["_", "x", "_"], feats=["_"] * 3)
    columns = Columns.from_sentences([sentence])
    assert columns.known == {"upos", "lemmas"}
    assert columns.targets(sentence)[:, 1:].tolist() == [[IGNORED, 0, IGNORED], [IGNORED, 0, 0], [IGNORED, 0, IGNORED]]


FULL = rows("dogs dog NOUN N Number=Plur", "see see VERB V Tense=Pres", "us we PRON P Case=Acc", ". . PUNCT . _")


def hidden(sentence, **columns):
    """Return the sentence with columns replaced by values, or by "_" everywhere for None."""
    return sentence.replace(**{name: value or ["_"] * len(sentence) for name, value in columns.items()})


@pytest.mark.parametrize("column", ["feats", "xpos", "upos"])
def test_what_whole_sentences_lack_is_not_known(column):
    """Such a sentence adds no new analyses, of its forms either, and the column is no training target."""
    without = hidden(FULL, **{column: None})
    columns = Columns.from_sentences([FULL, without])
    full = Columns.from_sentences([FULL])
    assert columns.analyses == full.analyses
    assert columns.lexicon.items() >= full.lexicon.items()
    assert {form: pairs[::2] for form, pairs in columns.seen.items()} == {
        form: pairs[::2] for form, pairs in full.seen.items()
    }
    targets = columns.targets(without)
    at = ("upos", "xpos", "feats").index(column)
    assert (targets[:, at] == IGNORED).all()
    others = [k for k in range(4) if k != at]
    assert (targets[:, others] == columns.targets(FULL)[:, others]).all()


def test_a_sentence_without_features_has_none_if_that_is_likely():
    short = rows("oh oh INTJ I _", ". . PUNCT . _")
    nouns = [rows(*["x x NOUN N Number=Sing"] * 9, "y y NOUN N _"), rows(*["z z NOUN N _"] * 2)]
    for sentence, known in ((short, True), (nouns[1], False), (rows("z z NOUN N _"), True)):
        columns = Columns.from_sentences([FULL, rows("oh oh INTJ I _", "x x NOUN N Number=Sing"), nouns[0], sentence])
        assert (columns.targets(sentence)[:, 2] != IGNORED).all() == known
        assert ("NOUN", "N", "_") in columns.analyses  # 1 noun in 12 has no features
        assert ("z" in columns.seen) == (known and "z" in sentence.forms)
    assert len(Columns.from_sentences([short, short]).targets(short)) == 2  # no sentence has features
    assert (Columns.from_sentences([short, short]).targets(short)[:, 2] == 0).all()


def test_every_training_word_has_an_analysis_to_learn():
    """The first sentence lacks FEATS by the counts of sentences with features, but not by those of all sentences."""
    sentences = [
        rows("a a V b _", "b b V a _"),
        rows("c c N b _", "d d V b _", "e e N a _", "f f V a _"),
        rows("g g N a C=2", "h h V b C=2", "i i N b C=2"),
    ]
    columns = Columns.from_sentences(sentences)
    targets = torch.from_numpy(np.concatenate([columns.targets(one) for one in sentences]))
    assert Annotator(*ANNOTATOR, 4, columns.classes).loss(torch.zeros(len(targets), 4), targets).isfinite()


def test_what_goes_with_one_analysis_alone_counts_as_that():
    one = rows("us we PRON _ _", "dogs dog NOUN _ _")
    more = rows("ox ox NOUN N Number=Sing", "me I PRON P Case=Acc")
    columns = Columns.from_sentences([FULL, more, one])
    assert columns.seen["us"] == (columns.analyses.index(("PRON", "P", "Case=Acc")), 2)
    assert columns.seen["dogs"] == (columns.analyses.index(("NOUN", "N", "Number=Plur")), 1)  # NOUN is ambiguous
    assert sum(columns.by_relation["dep"][1::2]) == 4  # without the ambiguous word
    assert sum(columns.by_relation["root"][1::2]) == 3


def test_lemmas_of_words_whose_features_are_not_known_are_told_apart_by_known_ones_alone():
    without = rows("dogs doggy NOUN N _", "see see VERB V _", "us we PRON P _")
    lexicon = Columns.from_sentences([FULL, without]).lexicon
    assert {key: lemma for key, lemma in lexicon.items() if key.startswith("dogs")} == {
        "dogs\tNOUN\tNumber=Plur": "dog"
    }


def test_without_tags_all_words_say_whether_a_sentence_is_likely_to_have_features():
    """Three words in four of the first sentence have features: all four without is unlikely, one is not."""
    first, short, long = (
        rows(*(f"{form} x _ _ {feats}" for form, feats in words))
        for words in (
            [("a", "Case=Nom"), ("b", "Case=Acc"), ("c", "Case=Gen"), ("d", "_")],
            [("d", "_")],
            [("d", "_"), ("e", "_"), ("f", "_"), ("g", "_")],
        )
    )
    columns = Columns.from_sentences([first, short, long])
    assert (columns.targets(short)[:, 2] != IGNORED).all()
    assert (columns.targets(long)[:, 2] == IGNORED).all()


def test_tags_that_no_sentence_with_features_has_are_taken_for_any_word():
    shares = shares_without_features({("NOUN", "N", "Case=Nom"): 3, ("X", "x", "_"): 1})
    assert shares == {"NOUN": 0, "X": 1, "": 0.25}
    lacking = [lacks_features(Sentence(["a"] * n, upos=["ADV"] * n), shares) for n in (1, 2, 3)]
    assert lacking == [False, False, True]  # 1 / 64 is unlikely


def test_analyses_that_nothing_completes_stay():
    columns = Columns.from_sentences([FULL, rows("hm hm INTJ _ _", "dogs dog NOUN _ _")])
    assert set(columns.analyses) == {*Columns.from_sentences([FULL]).analyses, ("INTJ", "_", "_")}
    assert columns.targets(rows("hm hm INTJ _ _", ". . PUNCT . _"))[:, :3].tolist()[0][1] == IGNORED


def test_many_xpos_are_told_apart_by_their_characters(monkeypatch):
    monkeypatch.setattr(columns_module, "MOST_XPOS", 3)
    columns = Columns.from_sentences([rows(*(f"w w NOUN {tag} _" for tag in ("ab", "abc", "bb", "b")), "w w ADP _ _")])
    assert columns.known == {"upos", "xpos", "lemmas"}
    parts = columns.classes.analyses.parts
    assert len(parts) == 2 + columns.classes.xpos == 2 + 7  # by position: a, b; b, end; c, end; end
    of_tag = {xpos: set(np.flatnonzero(parts[2:, k])) for k, (_, xpos, _) in enumerate(columns.analyses)}
    assert {tag: len(own) for tag, own in of_tag.items()} == {"ab": 3, "abc": 4, "bb": 3, "b": 2, "_": 0}
    assert len(of_tag["ab"] & of_tag["abc"]) == 2
    assert len(of_tag["ab"] & of_tag["bb"]) == 2
    assert len(of_tag["bb"] & of_tag["b"]) == 1
    annotator = Annotator(*ANNOTATOR, 4, columns.classes)
    assert annotator(torch.randn(1, 4)).analyses.unique().numel() == len(columns.analyses)


def test_xpos_of_too_many_characters_is_the_commonest_one_that_goes_with_the_others(monkeypatch):
    monkeypatch.setattr(columns_module, "MOST_XPOS", 1)
    monkeypatch.setattr(columns_module, "MOST_XPOS_CLASSES", 3)
    columns = Columns.from_sentences(
        [*SENTENCES, rows(*["x x NOUN M Number=Sing"] * 2), rows("x x NOUN M Number=Sing")]
    )
    assert columns.classes.xpos == 0
    annotator = Annotator(*ANNOTATOR, 4, columns.classes)
    reader = ColumnReader(columns, annotator, torch.device("cpu"))
    assert reader.annotates == set(COLUMNS)
    sentence = rows("new _ NOUN _ _")
    scores = ColumnScores(annotator(torch.randn(1, 4)).analyses, None)
    scores.analyses[:, columns.classes.analyses.feats == columns.classes.analyses.feats[0]] += 100
    assert columns.analyses[reader.choose(scores, [sentence]).chosen.classes[0, 1]] == (
        "NOUN",
        "M",
        "Number=Sing",
    )


def test_how_often_forms_had_their_analyses():
    columns = Columns.from_sentences([*SENTENCES, *SENTENCES])
    seen = columns.occurrences
    singular, genitive = (
        columns.analyses.index(("NOUN", "N", feats))
        for feats in ("Number=Sing", "Case=Gen|Number[psor]=Sing|NumType=Card")
    )
    places, forms = seen.places(np.array([seen.numbers["saw"], seen.numbers["dogs"], seen.numbers["saw"]]))
    pairs = list(zip(forms.tolist(), seen.analyses[places].tolist(), seen.counts[places].tolist(), strict=True))
    assert [pair[1:] for pair in pairs if pair[0] == 0] == [pair[1:] for pair in pairs if pair[0] == 2]
    assert {analysis: count for form, analysis, count in pairs if form == 0} == {singular: 4, genitive: 2}
    assert [form for form, _, _ in pairs] == [0, 0, 1, 2, 2]
    assert columns.totals.sum() == 12


def test_what_a_form_had_in_training_counts_beside_the_scores():
    more = rows(
        *["saw saw NOUN N Number=Sing"] * 8, *["dogs dog NOUN N Number=Plur"] * 8, "paws paw NOUN N Number=Plur"
    )
    columns = Columns.from_sentences([*SENTENCES, more])
    annotator = Annotator(*ANNOTATOR, 4, columns.classes)
    reader = ColumnReader(columns, annotator, torch.device("cpu"))
    scores = ColumnScores(torch.zeros(4, len(columns.analyses)), None)
    sentence = rows("saw _ NOUN _ _", "dogs _ NOUN _ _", "paws _ NOUN _ _", "cats _ NOUN _ _")

    def chosen():
        return [columns.analyses[k][2] for k in reader.choose(scores, [sentence]).chosen.classes[:, 1]]

    assert chosen()[:3] == ["Number=Sing", "Number=Plur", "Number=Plur"]
    scores.analyses[:, columns.analyses.index(("NOUN", "N", "Number=Plur"))] = 50.0  # a confident network wins
    assert chosen() == ["Number=Plur"] * 4


def test_the_score_of_an_analysis_is_the_sum_of_those_of_its_parts():
    columns = Columns.from_sentences([*SENTENCES, rows("x x NOUN _ Number=Sing", "y y _ V _")])
    annotator = Annotator(*ANNOTATOR, 4, columns.classes)
    words = torch.randn(3, 4)
    upos, xpos, feats = (classifier(words) for classifier in (annotator.upos, annotator.xpos, annotator.feats))
    attributes = list(columns.attributes.values())
    starts = np.cumsum([0, *(len(features) + 1 for features in attributes)])
    assert len(columns.xpos) <= MOST_XPOS
    for k, (tag, other, features) in enumerate(columns.analyses):
        expected = upos[:, columns.upos.index(tag)] if tag != "_" else INCOMPLETE
        expected = expected + (xpos[:, columns.xpos.index(other)] if other != "_" else INCOMPLETE)
        for start, known in zip(starts[:-1], attributes, strict=True):
            (value,) = {1 + known.index(feature) for feature in features.split("|") if feature in known} or {0}
            expected = expected + feats[:, start + value]
        torch.testing.assert_close(annotator(words).analyses[:, k], expected)


def test_a_tag_is_as_probable_as_its_analyses_together():
    columns = Columns.from_sentences([rows("a a VERB A Number=Sing", "b b VERB A Number=Plur", "c c NOUN A _")])
    reader = ColumnReader(columns, Annotator(*ANNOTATOR, 4, columns.classes), torch.device("cpu"))
    (noun,) = (k for k, choice in enumerate(columns.analyses) if choice[0] == "NOUN")
    scores = ColumnScores(torch.zeros(2, 3), None)
    scores.analyses[:, noun] = torch.tensor([0.5, 1.0])  # the two analyses of VERB have 0: together ln 2
    upos, analyses, _ = reader.choose(scores, [rows("d _ _ _ _", "d _ _ _ _")]).chosen.classes.T
    assert [columns.upos[k] for k in upos] == ["VERB", "NOUN"]
    assert [columns.analyses[k][0] for k in analyses] == ["VERB", "NOUN"]


def test_relations_say_what_goes_with_them():
    seen = [rows("a a NOUN N _", *["b b ADJ A _"] * 3), rows(*["a a NOUN N _"] * 2, "c c DET D _")]
    columns = Columns.from_sentences(seen)
    analyses = {upos: k for k, (upos, _, _) in enumerate(columns.analyses)}
    assert columns.by_relation["root"] == (analyses["NOUN"], 2)
    found = columns.relation_probabilities(["root", "dep", "new"], 5.0)
    np.testing.assert_allclose(found.sum(0), 1, atol=1e-6)
    # 2 of 3 nouns and 2 of 7 words are roots; the analysis and its UPOS get 5 pseudo-occurrences each.
    upos = (2 + 5 * 2 / 7) / (3 + 5)
    assert found[0, analyses["NOUN"]] == pytest.approx((2 + 5 * upos) / (3 + 5))
    assert found[0, analyses["ADJ"]] < found[0, analyses["DET"]] < found[0, analyses["NOUN"]]
    assert not found[2].any()
    assert (replace(columns, by_relation={}).relation_probabilities(["root", "dep"], 5.0) == 1).all()

    reader = ColumnReader(columns, Annotator(*ANNOTATOR, 4, columns.classes), torch.device("cpu"), ["root", "dep"])
    scores = ColumnScores(torch.zeros(2, 3), None)
    scores.analyses[:, analyses["ADJ"]] = 0.3
    sentence = rows("d _ _ _ _", "d _ _ _ _")
    chosen = reader.choose(scores, [sentence], (), torch.tensor([0, 1])).chosen.classes
    assert [columns.upos[k] for k in chosen[:, 0]] == ["NOUN", "ADJ"]
    chosen = reader.choose(scores, [sentence], (), torch.tensor([2, 2])).chosen.classes  # 2 is no relation
    assert [columns.upos[k] for k in chosen[:, 0]] == ["ADJ", "ADJ"]


def test_words_without_a_relation_are_not_counted():
    sentence = rows("a a NOUN N _", "b b ADJ A _", "c c ADJ A _").replace(relations=["root", "_", "dep"])
    assert set(Columns.from_sentences([sentence]).by_relation) == {"root", "dep"}


def test_words_without_a_upos_have_relations_too():
    columns = Columns.from_sentences([rows("a a _ N _", "b b ADJ A _", "c c _ N _")])
    found = columns.relation_probabilities(["root", "dep"], 5.0)
    np.testing.assert_allclose(found.sum(0), 1, atol=1e-6)
    ColumnReader(columns, Annotator(*ANNOTATOR, 4, columns.classes), torch.device("cpu"), ["root", "dep"])


def test_columns_are_the_same_without_trees_and_with_several(parser, dev):
    words = [bare(sentence) for sentence in dev]
    expected = [one.upos for one in parser.predict(words)]
    assert [one.upos for one in parser.predict(words, predict="tags")] == expected
    assert [one.upos for one in parser.predict(words, k_best=3)] == expected
    assert all(one.heads is None for one in parser.predict(words, predict="tags"))


@pytest.mark.parametrize(("tag", "lead", "lemma"), [("NOUN", 3.0, "dog"), ("NOUN", 9.0, "DOGS"), ("VERB", 3.0, "DOGS")])
def test_rules_that_make_known_lemmas_of_new_forms_go_first(tag, lead, lemma):
    columns = Columns.from_sentences([*SENTENCES, rows("UN UN NOUN N _")])
    annotator = Annotator(*ANNOTATOR, 4, columns.classes)
    reader = ColumnReader(columns, annotator, torch.device("cpu"))
    of_rules = torch.zeros(3, len(columns.rules))
    of_rules[:, columns.rules.index(lemma_rule("UN", "UN"))] = 20.0
    of_rules[:, columns.rules.index(lemma_rule("dogs", "dog"))] = 20.0 - lead
    with torch.no_grad():
        scores = annotator(torch.zeros(3, 4))._replace(lemmas=of_rules)
    sentence = rows(f"DOGS _ {tag} _ _", "dogs _ NOUN _ _", f"DOGS _ {tag} _ _")  # the lexicon has the second one
    (values,) = reader.read(reader.choose(scores, [sentence]), [sentence], Request(predict="lemmas"))
    assert values["lemmas"] == (lemma, "dog", lemma)


def test_no_lemma_begins_or_ends_with_white_space():
    columns = Columns.from_sentences(SENTENCES)
    annotator = Annotator(*ANNOTATOR, 4, columns.classes)
    reader = ColumnReader(columns, annotator, torch.device("cpu"))
    of_rules = torch.zeros(1, len(columns.rules))
    of_rules[:, columns.rules.index(lemma_rule("dogs", "dog"))] = 20.0
    of_rules[:, columns.rules.index(lemma_rule("of", "of"))] = 10.0
    sentence = Sentence.from_words(["10\u00a0s"]).replace(upos=["NOUN"])
    with torch.no_grad():
        scores = annotator(torch.zeros(1, 4))._replace(lemmas=of_rules)
    (values,) = reader.read(reader.choose(scores, [sentence]), [sentence], Request(predict="lemmas"))
    assert values["lemmas"] == ("10\u00a0s",)


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u2028"])
def test_white_space_around_a_form_is_not_its_lemma(space):
    columns = Columns.from_sentences(SENTENCES)
    annotator = Annotator(*ANNOTATOR, 4, columns.classes)
    reader = ColumnReader(columns, annotator, torch.device("cpu"))
    # The lexicon has dogs; cats needs a rule.
    forms = [around.format(form) for form in ("dogs", "cats") for around in ("{}", space + "{}", "{}" + space)]
    sentence = Sentence.from_words(forms).replace(upos=["NOUN"] * len(forms))
    of_rules = torch.zeros(len(forms), len(columns.rules))
    of_rules[:, columns.rules.index(lemma_rule("dogs", "dog"))] = 20.0
    with torch.no_grad():
        scores = annotator(torch.zeros(len(forms), 4))._replace(lemmas=of_rules)
    (values,) = reader.read(reader.choose(scores, [sentence]), [sentence], Request(predict="lemmas"))
    assert values["lemmas"] == ("dog",) * 3 + ("cat",) * 3
    assert reader._lemma(space, "NOUN", "_", ([0], [0.0])) == space


def test_vocabularies_are_saved_as_json():
    vocabulary = Vocabulary.from_sentences(SENTENCES, annotates=True)
    assert checked(Vocabulary, json.dumps(asdict(vocabulary))) == vocabulary
    assert Vocabulary.from_sentences(SENTENCES).columns is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("analyses", [["NOUN", "", "_"]]),
        ("analyses", [["NO\tUN", "N", "_"]]),
        ("analyses", [["NOUN", "N"]]),
        ("lemma_rules", [["upper", 0, "", 0, ""]]),
        ("lemma_rules", [["lower", -1, "", 0, ""]]),
        ("lemma_rules", [["lower", 10**30, "", 0, ""]]),
        ("lemma_rules", [["lower", 0, "a\nb", 0, ""]]),
        ("lexicon", {"a\tX": "a\tb"}),
        ("seen", {"a": [0, 1, 1]}),
        ("seen", {"a": [0, 1, 99, 1]}),
        ("seen", {"a": [0, 0]}),
        ("by_relation", {"nsubj": [99, 1]}),
        ("agreement", {"nsubj\tNOUN\tCase": [1, 0]}),
        ("agreement", {"nsubj\tNOUN\tVERB\tNothing": [1, 0]}),
        ("agreement", {"nsubj\tNOUN\tVERB\tCase": [-1, 0]}),
        (
            "analyses",
            [["NOUN", "N", "|".join(f"{a}=1" for a in range(5000))], *(["X", "N", f"A={i}"] for i in range(5000))],
        ),
    ],
)
def test_damaged_vocabularies_are_refused(name, value):
    content = asdict(Columns.from_sentences(SENTENCES)) | {name: value}
    with pytest.raises(ValueError, match=name):
        checked(Columns, json.dumps(content))


def test_what_is_missing_is_predicted(parser, dev):
    assert parser.annotates == set(COLUMNS)
    for found in parser.parse([bare(sentence) for sentence in dev]):
        assert "_" not in found.upos + found.xpos + found.lemmas
        assert found.relations.count("_") == 0
        for feats in found.feats:
            names = [feature.partition("=")[0] for feature in feats.split("|")]
            assert len(set(names)) == len(names)
            assert names == sorted(names, key=str.lower)


@pytest.mark.parametrize(("column", "least"), [("upos", 0.9), ("xpos", 0.7), ("feats", 0.4), ("lemmas", 0.8)])
def test_columns_are_learnt(column, least, parser, small_treebanks):
    seen = list(read_conllu(small_treebanks[0]))
    found = parser.parse([bare(sentence) for sentence in seen], predict="all")
    right = [
        a == b
        for before, after in zip(seen, found, strict=True)
        for a, b in zip(getattr(before, column), getattr(after, column), strict=True)
    ]
    assert np.mean(right) > least


def test_what_is_given_stays(parser, dev):
    for before, after in zip(dev, parser.parse(dev), strict=True):
        assert all(getattr(before, name) == getattr(after, name) for name in COLUMNS)
        assert after.replace(heads=before.heads, relations=before.relations) == before
    strange = [sentence.replace(upos=["_", "QQ", *sentence.upos[2:]], xpos=["_"] * len(sentence)) for sentence in dev]
    for before, after in zip(strange, parser.parse(strange, predict="tags"), strict=True):
        assert after.upos[0] != "_"
        assert after.upos[1:] == before.upos[1:]
        assert "_" not in after.xpos
        assert after.feats == before.feats
        assert (after.heads == before.heads).all()


def test_features_go_with_the_tag_that_is_given(parser, dev):
    sentence = bare(dev[0]).replace(upos=["PUNCT"] * len(dev[0]))
    assert set(parser(sentence).feats) == {"_"}
    analyses = parser.vocabulary.columns.analyses
    assert set(parser(sentence).xpos) <= {xpos for upos, xpos, _ in analyses if upos == "PUNCT"}


def test_only_columns_that_are_asked_for_are_overwritten(parser, dev):
    """New values depend on the other given columns."""
    sentence = bare(dev[0]).replace(upos=["PUNCT"] * len(dev[0]))
    for columns in ("feats", "xpos", "lemmas", "feats,lemmas"):
        again = parser(sentence, predict=columns, overwrite=True)
        assert again == parser(sentence, predict=columns)
        assert again.upos == sentence.upos


def test_overwrite_predicts_again(parser, dev):
    wrong = [sentence.replace(upos=["X"] * len(sentence), lemmas=["?"] * len(sentence)) for sentence in dev]
    again = parser.parse(wrong, predict="upos,lemmas", overwrite=True)
    missing = [sentence.replace(upos=["_"] * len(sentence), lemmas=["_"] * len(sentence)) for sentence in dev]
    for before, after, expected in zip(dev, again, parser.parse(missing), strict=True):
        assert after.upos == expected.upos
        assert after.lemmas == expected.lemmas
        assert after.feats == before.feats
        assert (after.heads == before.heads).all()


def test_bytes_that_do_not_change(parser):
    text = (
        "# newdoc\r\n# text = vámonos ya\r\n1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\tx=y\r\n"
        "1\tvamos\t_\tVERB\t_\t_\t_\t_\t0:root\tA=b=c|d\r\n2\tnos\tnos\t_\t_\t_\t_\t_\t_\t_\r\n"
        "2.1\tø\t_\t_\t_\t_\t_\t_\t_\t_\r\n3\tya\t_\tX\t_\t_\t_\t_\t_\t_\r\n\r\n"
    )
    sentence = Sentence.from_conllu(text)
    parsed = parser(sentence)
    lines = parsed.to_bytes().decode().split("\r\n")
    assert lines[:3] == text.split("\r\n")[:3]
    assert lines[5] == text.split("\r\n")[5]
    assert lines[3].startswith("1\tvamos\t")
    assert lines[3].split("\t")[3:4] + lines[3].split("\t")[8:] == ["VERB", "0:root", "A=b=c|d"]
    assert lines[4].startswith("2\tnos\tnos\t")
    same = parsed.replace(**{name: getattr(sentence, name) for name in (*COLUMNS, "heads", "relations")})
    assert same.to_bytes() == text.encode()


def test_requests():
    assert Request().columns == {*COLUMNS, "heads"} == Request(predict="all").columns
    assert Request(predict="tags, lemmas").columns == set(COLUMNS)
    assert Request(predict=["heads"]).columns == {"heads"}
    with pytest.raises(ValueError, match="unknown column 'pos'; known: tags, all, upos"):
        Request(predict="pos")
    with pytest.raises(ValueError, match="no column is named"):
        Request(predict=[])


def test_a_model_says_what_it_does_not_predict(small_treebanks, small_model, tmp_path, caplog, dev):
    no_lemmas = [
        sentence.replace(lemmas=["_"] * len(sentence)) for sentence in read_conllu(small_treebanks[0], trees="required")
    ]
    config = changed(small_config("mst"), **ANNOTATING)
    parser = ChartParser(Definition.learn(changed(config, form_weight=0.75), no_lemmas), "cpu")
    assert parser.reader.weights == ColumnWeights(form_weight=0.75)
    assert parser.annotates == {"upos", "xpos", "feats"}
    with caplog.at_level(logging.WARNING, "mh4"):
        parsed = parser(bare(dev[0]), predict="all")
        assert "does not predict LEMMAS: the treebank" in caplog.text
        parser(bare(dev[1]), predict="all")
    assert len(caplog.records) == 1  # warned once
    assert set(parsed.lemmas) == {"_"}
    assert "_" not in parsed.upos
    with pytest.raises(ValueError, match="does not predict LEMMAS"):
        parser(bare(dev[0]), predict="lemmas")
    with pytest.raises(ValueError, match="UPOS, XPOS, FEATS: it was trained to predict heads"):
        load(small_model)(dev[0], predict="tags")


def test_greedy_parsers_annotate(small_treebanks, tmp_path, dev):
    config = changed(small_greedy_config(TransitionConfig("arc-hybrid"), max_steps=8), **ANNOTATING)
    train(*small_treebanks, tmp_path / "m", config, device="cpu")
    parsed = load(tmp_path / "m", device="cpu")(list(bare(dev[0]).forms))
    assert "_" not in parsed.upos + parsed.lemmas + parsed.relations


def test_ensembles_vote_on_columns(parser, small_model, dev):
    both = EnsembleParser([load(small_model, device="cpu"), parser])
    assert both.annotates == parser.annotates
    words = [bare(sentence) for sentence in dev]
    for one, other in zip(both.parse(words), parser.parse(words), strict=True):
        assert all(getattr(one, name) == getattr(other, name) for name in COLUMNS)
    for one, other in zip(both.parse(words, predict="upos"), words, strict=True):
        assert (one.heads == other.heads).all()
        assert one.feats == other.feats


def test_elected_values_go_together():
    def vote(upos, xpos, feats, lemmas):
        return Annotation(upos=upos and (upos,), xpos=xpos and (xpos,), feats=(feats,), lemmas=(lemmas,))

    votes = [
        vote("VERB", "V", "Mood=Ind", "a"),
        vote("NOUN", "N", "Case=Nom", "b"),
        vote("NOUN", "N2", "Mood=Ind", "a"),
    ]
    found = _elected(votes)
    assert found == {"upos": ("NOUN",), "xpos": ("N",), "feats": ("Case=Nom",), "lemmas": ("b",)}
    votes[1] = replace(votes[1], xpos=None)  # a model without XPOS
    assert _elected(votes) == {"upos": ("NOUN",), "xpos": ("N2",), "feats": ("Case=Nom",), "lemmas": ("b",)}
    assert _elected([Annotation(), Annotation()]) == {}


def test_given_heads_and_bad_sentences(parser, dev):
    known = [bare(sentence).replace(heads=[2, *[-1] * (len(sentence) - 1)]) for sentence in dev]
    cycle = bare(dev[0]).replace(heads=[2, 1, *[-1] * (len(dev[0]) - 2)])
    errors = []
    found = list(parser.parse([known[0], cycle, *known[1:]], keep_heads=True, errors=errors.append))
    assert len(errors) == 1
    assert isinstance(errors[0], DataError)
    for before, after in zip(known, found, strict=True):
        assert after.forms == before.forms
        assert after.heads[0] == 2
        assert "_" not in after.upos + after.xpos + after.lemmas


def test_taggers_without_a_weight_that_earlier_versions_saved_are_left_out(tmp_path):
    config = changed(small_config("mst"), **ANNOTATING, tagger_weight=0.0)
    definition = Definition.learn(config, SENTENCES)
    weights = ChartParser(definition, "cpu").network.state_dict()
    ModelFolder(tmp_path).write_definition(*definition)
    write_tensors(tmp_path / "weights.safetensors", {**weights, "taggers.0.output.bias": torch.zeros(3)})
    assert ChartParser.load(tmp_path, device="cpu").network.state_dict().keys() == weights.keys()


def test_columns_do_not_depend_on_the_batch(parser, dev):
    words = [bare(sentence) for sentence in dev]
    for one, together in zip(words, parser.predict(words), strict=True):
        assert replace(parser.predict([one])[0], score=None) == replace(together, score=None)


def test_the_loss_is_that_of_all_analyses_that_go_with_what_is_known(parser):
    annotator = parser.network.annotator
    words = torch.randn(4, SMALL_ENCODER.hidden + SMALL_ENCODER.word_size)
    scores = annotator(words)
    everything, rules = scores.analyses.log_softmax(1).exp(), scores.lemmas.log_softmax(1)
    upos, xpos, feats, _ = parser.vocabulary.columns.classes.analyses
    targets = torch.full((4, 4), IGNORED)
    targets[0, :3] = torch.tensor([upos[3], xpos[3], feats[3]])
    targets[1, 0] = upos[3]
    targets[2, 1:] = torch.tensor([xpos[5], feats[5], 1])
    right = [(upos == upos[3]) & (xpos == xpos[3]) & (feats == feats[3]), upos == upos[3]]
    right += [(xpos == xpos[5]) & (feats == feats[5]), upos == upos]
    expected = -sum(everything[i, torch.from_numpy(mask)].sum().log() for i, mask in enumerate(right)) - rules[2, 1]
    torch.testing.assert_close(annotator.loss(words, targets), expected)
