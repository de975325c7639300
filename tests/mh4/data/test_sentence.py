"""Sentences, their words, replacing parts of them, and documents."""

import json
import pickle
import time

import conllu
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mh4.data import edits
from mh4.data.annotation import Annotation
from mh4.data.document import Document
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence, share_strings
from mh4.data.word import Token

EXAMPLE = (
    "# sent_id = dev-s1\n"
    "# a comment without the sign\n"
    "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tTypo=Yes\n"
    "1\tDo\tdo\tAUX\tVB\tMood=Imp|VerbForm=Fin\t3\taux\t3:aux\t_\n"
    "2\tn't\tnot\tPART\tRB\tPolarity=Neg\t3\tadvmod\t_\t_\n"
    "3\tgo  away\tgo\tVERB\tVB\t_\t0\troot\t0:root|3.1:x\tRef=a=b|SpaceAfter=No|Yes\n"
    "3.1\t_\t_\tPRON\t_\t_\t_\t_\t3:nsubj\t_\n"
    "4\t.\t_\tPUNCT\t_\t_\t_\t_\t_\t_\n"
    "\n"
)


def word(i, form="w", head="_", relation="_"):
    return f"{i}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"


def tree(*heads, comments=""):
    return comments + "".join(word(i, f"w{i}", head) for i, head in enumerate(heads, start=1)) + "\n"


@pytest.fixture
def sentence():
    return Sentence.from_conllu(EXAMPLE)


# A sentence and its words.


def test_a_sentence_is_a_sequence_of_words(sentence):
    assert [str(word) for word in sentence] == ["Do", "n't", "go  away", "."]
    assert [(word.id, word.index) for word in sentence] == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert sentence[0] == sentence[-4] == next(iter(sentence))
    assert sentence[0] in sentence
    assert [word.form for word in sentence[1:3]] == ["n't", "go  away"]
    with pytest.raises(IndexError):
        sentence[4]


def test_words_say_what_is_in_their_columns(sentence):
    do, _, away, stop = sentence
    assert (do.form, do.lemma, do.upos, do.xpos, do.deprel, do.head) == ("Do", "do", "AUX", "VB", "aux", 3)
    assert do.feats == {"Mood": "Imp", "VerbForm": "Fin"}
    assert do.deps == [("aux", 3)]
    assert away.deps == [("root", 0), ("x", (3, ".", 1))]
    assert away.misc == {"Ref": "a=b", "SpaceAfter": "No", "Yes": None}
    assert (stop.lemma, stop.xpos, stop.deprel, stop.head, stop.feats, stop.deps) == (None, None, None, None, {}, [])
    assert away.head == 0


def test_words_lead_to_each_other(sentence):
    do, nt, away, stop = sentence
    assert do.parent == nt.parent == away == sentence.root
    assert away.children == (do, nt)
    assert away.parent is None
    assert stop.parent is None
    assert do.children == ()
    assert sentence.roots == (3,)
    assert sentence.arcs() == [(3, 1, "aux"), (3, 2, "advmod"), (0, 3, "root")]


def test_words_are_equal_with_their_sentences(sentence):
    same, other = Sentence.from_conllu(EXAMPLE), sentence.replace(heads=[0, 1, 1, 1])
    assert sentence[0] == same[0]
    assert hash(sentence[0]) == hash(same[0])
    assert sentence[0] != sentence[1]
    assert sentence[0] != other[0]
    assert repr(sentence[0]) == "<Word 1 'Do': aux of 3>"
    assert repr(sentence[3]) == "<Word 4 '.': _ of _>"


def test_tokens_and_text(sentence):
    first, away, stop = sentence.tokens
    assert first == Token(1, 2, "Don't", space_after=True, misc="Typo=Yes", start=0, end=5)
    assert away == Token(3, 3, "go  away", space_after=False, misc=sentence.misc[2], start=6, end=14)
    assert stop == Token(4, 4, ".", space_after=True, misc="_", start=14, end=15)
    assert sentence.text == "Don't go  away."
    assert [word.space_after for word in sentence] == [False, True, False, True]
    assert sentence.with_comment("text", "Do not!").text == "Do not!"


def test_no_space_is_an_entry_of_its_own():
    columns = {"misc": ["CorrectSpaceAfter=No", "SpaceAfter=Nope", "A=1|SpaceAfter=No", "SpaceAfter=No|Z=1", "_"]}
    sentence = Sentence(["a", "b", "c", "d", "e"], **columns)
    assert sentence.text == "a b cde"
    assert [token.space_after for token in sentence.tokens] == [True, True, False, False, True]
    one = Sentence(["a", "b"], multiword_tokens=[(1, 2, "ab", True, "CorrectSpaceAfter=No")])
    assert one.tokens[0].space_after


def places(sentence):
    """Return the slices of the text at the offsets of the words, and of the tokens."""
    text = sentence.text
    return [text[word.start : word.end] for word in sentence], [
        text[token.start : token.end] for token in sentence.tokens
    ]


def test_words_and_tokens_know_their_place_in_the_text(sentence):
    tokens = ["Don't", "go  away", "."]
    assert places(sentence) == (["Don't", *tokens], tokens)
    spaced = sentence.with_comment("text", "Don't\u00a0 go  away .")
    assert places(spaced) == (["Don't", *tokens], tokens)
    assert [(token.start, token.end) for token in spaced.tokens] == [(0, 5), (7, 15), (16, 17)]
    other = sentence.with_comment("text", "Do not!")  # does not match the tokens: ignored
    assert [(token.start, token.end) for token in other.tokens] == [(0, 5), (6, 14), (14, 15)]
    assert places(Sentence([" a", "b ", "\U0001f600", "c"], misc=["_", "SpaceAfter=No", "_", "_"]))[1] == [
        " a",
        "b ",
        "\U0001f600",
        "c",
    ]
    assert places(Sentence(["a", "a", "a"]))[0] == ["a", "a", "a"]


def test_a_sentence_is_shown_in_short(sentence):
    assert str(sentence) == "Don't go  away."
    assert repr(sentence) == '<Sentence dev-s1: 4 words, "Don\'t go  away.">'
    assert len(repr(Sentence.from_words(["word"] * 1000))) < 80


def test_equal_content_is_equal(sentence):
    again = Sentence.from_conllu("\n\n" + EXAMPLE.replace("\n", "\r\n"), source="elsewhere")
    assert again == sentence
    assert len({again, sentence}) == 1
    assert pickle.loads(pickle.dumps(sentence)) == sentence
    assert sentence.replace(score=1.5) == sentence
    for other in (sentence.with_comment("a", 1), sentence.replace(xpos=["_"] * 4), sentence.replace(heads=[-1] * 4)):
        assert other != sentence
    assert sentence != EXAMPLE


def test_a_sentence_does_not_change(sentence):
    with pytest.raises(AttributeError, match=r"sentence.replace\(heads=…\)"):
        sentence.heads = [-1, 0]


def test_projectivity():
    assert Sentence.from_conllu(tree(2, 0, 2)).is_projective
    assert not Sentence.from_conllu(tree(3, 4, 0, 3)).is_projective
    with pytest.raises(ValueError, match="tree"):
        _ = Sentence.from_conllu(tree("_")).is_projective


def test_pictures():
    sentence = Sentence.from_conllu(tree(2, 0))
    assert "w1" in sentence.draw()
    assert str(sentence.draw(np.int64(20))) == str(sentence.draw(20))
    assert sentence._repr_svg_().startswith("<svg")
    assert Sentence.from_words(["a"])._repr_svg_() is None
    with pytest.raises(ValueError, match="tree"):
        Sentence.from_words(["a"]).draw()


# Other formats.


def test_conllu_as_text(sentence):
    assert sentence.to_conllu() == EXAMPLE
    windows = Sentence.from_conllu("\ufeff" + EXAMPLE.replace("\n", "\r\n"))
    mixed = Sentence.from_conllu(EXAMPLE.replace("\n", "\r\n", 4))
    assert windows.to_conllu() == mixed.to_conllu() == EXAMPLE
    assert mixed.misc == sentence.misc
    assert mixed.comments == sentence.comments


def test_objects_of_the_conllu_library():
    text = EXAMPLE.replace("  ", " ")
    found, expected = Sentence.from_conllu(text).to_tokenlist(), conllu.parse(text)[0]
    assert (found, found.metadata) == (expected, expected.metadata)
    assert found.serialize() == expected.serialize()


def test_several_spaces_in_a_value_stay_in_objects_of_the_conllu_library():
    line = "1\ta  b\tc  d\tX\tx\tA=b\t0\troot\t0:root\tE=f  g|H=  i"
    found = Sentence.from_conllu(f"# text = a  b\n{line}\n").to_tokenlist()
    assert [found[0][name] for name in ("id", "form", "lemma", "xpos")] == [1, "a  b", "c  d", "x"]
    assert [found[0][name] for name in ("head", "deps", "misc")] == [0, [("root", 0)], {"E": "f  g", "H": "  i"}]
    assert Sentence.from_conllu(found.serialize()).lines == ("# text = a  b", line)


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
def test_json_has_no_infinite_numbers(sentence, score):
    scored = sentence.replace(heads=sentence.heads, score=score)
    assert "score" not in json.loads(scored.to_json(), parse_constant=pytest.fail)
    assert "score" not in json.loads(Document([scored]).to_json(), parse_constant=pytest.fail)[0]
    assert json.loads(sentence.replace(score=np.float32(0.5)).to_json())["score"] == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "holds 0 sentences"), (EXAMPLE * 2, "holds 2 sentences"), (tree(7), "text:1: sentence 1: HEAD 7")],
)
def test_texts_that_are_no_sentence(text, message):
    with pytest.raises(DataError, match=message):
        Sentence.from_conllu(text)


def test_documents(sentence):
    document = Document.from_conllu(EXAMPLE + tree(2, 0))
    assert len(document) == 2
    assert document[0] == sentence
    assert document[1].number == 2
    assert document[:1] == Document([sentence])
    assert hash(document[:1]) == hash(Document([sentence]))
    assert document != [*document]
    assert document.text == str(document) == "Don't go  away.\nw1 w2"
    assert repr(document) == "<Document: 2 sentences, 6 words>"
    assert repr(Document([Sentence(["w1"])])) == "<Document: 1 sentence, 1 word>"
    assert document.to_conllu() == EXAMPLE + tree(2, 0)
    assert json.loads(document.to_json()) == [json.loads(s.to_json()) for s in document]
    assert pickle.loads(pickle.dumps(document)) == document


def test_documents_in_a_notebook(sentence):
    html = Document([sentence, *[Sentence.from_conllu(tree(2, 0))] * 21])._repr_html_()
    assert html.count("<svg") == 19
    assert html.startswith("<div>Don&#x27;t go  away.</div>")
    assert "… and 2 more sentences" in html
    assert "more" not in Document([sentence] * 20)._repr_html_()


def test_errors_of_documents_name_the_source_and_the_item(sentence):
    with pytest.raises(DataError, match=r"page:2: U\+DC80 is a lone surrogate"):
        Document.from_conllu("# a\n# \udc80\n", source="page")
    with pytest.raises(TypeError, match="item 2 is 3, not a sentence"):
        Document([sentence, 3])


# Replacing.


def test_only_the_given_columns_of_words_are_replaced(sentence):
    lines = EXAMPLE.split("\n")
    lines[3] = lines[3].replace("\t3\taux", "\t0\troot").replace("AUX\tVB", "X1\tY1")
    lines[4] = lines[4].replace("\t3\tadvmod", "\t1\tdep").replace("PART\tRB", "X2\tY2")
    lines[5] = lines[5].replace("\t0\troot", "\t_\tflat", 1).replace("VERB\tVB", "X3\tY3")
    lines[7] = word(4, ".", 3, "punct")[:-1].replace("_\t_\t_\t3", "X4\tY4\t_\t3")
    result = sentence.replace(
        heads=np.array([0, 1, -1, 3]),
        relations=["root", "dep", "flat", "punct"],
        upos=["X1", "X2", "X3", "X4"],
        xpos=("Y1", "Y2", "Y3", "Y4"),
    )
    assert result.to_conllu() == "\n".join(lines)
    assert result.heads.tolist() == [0, 1, -1, 3]
    assert result.heads.dtype == np.int32
    assert sentence.to_conllu() == EXAMPLE


def test_values_may_be_mappings_or_unknown(sentence):
    new = sentence.replace(feats=[{"Case": "Nom", "Number": "Sing"}, {}, None, "Foreign=Yes"], lemmas=[None] * 4)
    assert new.feats == ("Case=Nom|Number=Sing", "_", "_", "Foreign=Yes")
    assert new.lemmas == ("_",) * 4
    assert new.replace(feats=[word.feats for word in sentence], lemmas=sentence.lemmas) == sentence


ENTRIES = st.dictionaries(
    st.text(min_size=1, max_size=3), st.none() | st.text(max_size=3) | st.integers() | st.floats(), max_size=3
)


@given(ENTRIES, st.sampled_from(["feats", "misc"]))
@example({"Gloss": ""}, "misc")
@example({"Gloss": None}, "misc")
@example({"a\rb": None}, "misc")
@example({"_": None}, "misc")
@example({"_": None, "a": "_"}, "misc")
def test_mappings_read_back_as_they_were_or_are_refused(entries, column):
    """Otherwise an entry could silently be written as several, or as none."""
    texts = [key if value is None else f"{key}={value}" for key, value in entries.items()]
    together = "|".join(texts)
    spaces = together if column == "feats" else together[:1] + together[-1:]
    if (
        any("|" in text or "=" in key for key, text in zip(entries, texts, strict=True))
        or together == "_"
        or any(character.isspace() for character in spaces)
        or not {*"\t\n\r\0"}.isdisjoint(together)
        or any("\ud800" <= character <= "\udfff" for character in together)
    ):
        with pytest.raises(ValueError, match=r"^(FEATS|MISC) may not (be|hold)"):
            Sentence(["a"], **{column: [entries]})
        return
    sentence = Sentence(["a"], **{column: [entries]})
    expected = {key: value if value is None else str(value) for key, value in entries.items()}
    (again,) = Document.from_conllu(sentence.to_conllu())
    assert getattr(sentence[0], column) == getattr(again[0], column) == expected
    assert again.replace(**{column: [getattr(again[0], column)]}) == sentence


def test_entries_of_files_are_written_as_they_were():
    text = "1\ta\t_\t_\t_\tA=\t_\t_\t_\tGloss=|Yes|=x|A=b=c| d =e\n\n"
    sentence = Sentence.from_conllu(text)
    assert sentence[0].feats == {"A": ""}
    assert sentence[0].misc == {"Gloss": "", "Yes": None, "": "x", "A": "b=c", " d ": "e"}
    again = sentence.replace(feats=[word.feats for word in sentence], misc=[word.misc for word in sentence])
    assert again.to_conllu() == text


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        ({"misc": [{"Gloss": "a|b"}]}, ValueError, r"MISC may not hold 'Gloss=a\|b': entries may not contain \|"),
        ({"misc": [{"a=b": "c"}]}, ValueError, "MISC may not hold 'a=b=c': .* their names ="),
        ({"feats": [{"a|b": "c"}]}, ValueError, r"FEATS may not hold 'a\|b=c'"),
        ({"misc": [{"": None}]}, ValueError, "MISC may not hold ''"),
        ({"misc": [{"A": ["b"]}]}, TypeError, r"MISC must map names to strings, not {'A': \['b'\]}"),
        ({"feats": [{1: "b"}]}, TypeError, "FEATS must map names to strings"),
        ({"feats": [["Case=Nom"]]}, TypeError, r"FEATS takes a mapping, a string or None, not \['Case=Nom'\]"),
        ({"lemmas": [{"a": "b"}]}, TypeError, "LEMMA takes a string or None"),
        ({"xpos": [1]}, TypeError, "XPOS takes a string or None, not 1"),
        ({"deps": [{2: "det"}]}, TypeError, r"DEPS takes a list such as \[\('nsubj', 4\)\], a string or None"),
        ({"deps": [["nsubj"]]}, ValueError, r"DEPS takes relations with their heads, such as \('nsubj', 4\), not"),
        *(
            ({"deps": [[one]]}, ValueError, "DEPS takes relations with their heads")
            for one in [
                ("a|b", 1),
                ("", 1),
                ("a", True),
                ("a", -1),
                ("a", 1.0),
                ("a", (1, "-", 2)),
                (2, "a"),
                ("a", "1:b"),
            ]
        ),
    ],
)
def test_values_that_are_none_are_refused(columns, kind, message):
    with pytest.raises(kind, match=message):
        Sentence(["a"], **columns)


def test_enhanced_relations_read_back_as_they_were(sentence):
    assert sentence.replace(deps=[word.deps for word in sentence]) == sentence
    new = sentence.replace(deps=[[("det", 2)], [], None, [("nmod:of", np.int64(3)), ("x", (3, ".", 1))]])
    assert new.deps == ("2:det", "_", "_", "3:nmod:of|3.1:x")
    assert new[3].deps == [("nmod:of", 3), ("x", (3, ".", 1))]


@pytest.mark.parametrize("deps", ["det", "2", "2:det|", "x:det", "1-2:det", "01:det", "2:", "9" * 5000 + ":det"])
def test_malformed_enhanced_relations_are_an_error_when_they_are_asked_for(deps):
    text = tree(0, 1, comments="# sent_id = s\n").replace("1\t_\t_\t_", f"1\t_\t{deps}\t_")
    sentence = Sentence.from_conllu(text, source="f")
    assert sentence.deps[1] == deps
    assert sentence.to_conllu() == text
    with pytest.raises(
        DataError, match=r"f:3: sentence s: DEPS of word 2: '.*' does not look like 4:nsubj\|5\.1:obj"
    ) as caught:
        _ = sentence[1].deps
    assert deps[:39] in str(caught.value)


def test_a_text_with_a_lone_surrogate_is_no_sentence():
    for read in (Sentence.from_conllu, Document.from_conllu):
        with pytest.raises(DataError, match=r"^text:3: U\+D83D is a lone surrogate"):
            read(tree(0) + "1\t\ud83d")
        with pytest.raises(TypeError, match="expected a string in CoNLL-U format, not b'1'"):
            read(b"1")


def test_annotations(sentence):
    heads = np.array([0, 1, 1, 1], np.int32)
    annotation = Annotation(heads, relations=("a", "b", "c", "d"), upos=("U",) * 4, lemmas=("l",) * 4, score=2.5)
    new = sentence.annotated(annotation)
    assert new == sentence.replace(heads=heads, relations=["a", "b", "c", "d"], upos=["U"] * 4, lemmas=["l"] * 4)
    assert new.score == 2.5
    assert sentence.annotated(Annotation()) == sentence


def test_a_score_belongs_to_its_heads(sentence):
    scored = sentence.replace(heads=sentence.heads, score=2.5)
    assert scored.replace(upos=["X"] * 4).score == scored.with_comment("a", 1).score == 2.5
    assert scored.replace(heads=sentence.heads).score is None


def test_equal_annotations_are_equal():
    one, same = (Annotation(np.array([-1, 0]), ("root",), score=1.0) for _ in range(2))
    assert one == same
    for other in (Annotation(np.array([-1]), ("root",), score=1.0), Annotation(score=1.0), Annotation(one.heads)):
        assert one != other


def test_annotations_without_a_tree():
    with pytest.raises(ValueError, match="holds no tree"):
        _ = Annotation(heads=np.array([0])).tree


def test_comments(sentence):
    assert sentence.comments == tuple(EXAMPLE.split("\n")[:2])
    new = sentence.with_comment("b", "1\t2").with_comment("a", "1 = 2").with_comment("b", 3)
    assert new.comments == (*sentence.comments, "# a = 1 = 2", "# b = 3")
    assert new.replace(comments=sentence.comments) == sentence
    assert new.replace(comments=["# sent_id = x"]).name == "sentence x"
    assert sentence.replace(comments=[]).lines == sentence.lines[2:]
    lines = Sentence.from_conllu(EXAMPLE.replace("\n", "\r\n")).replace(
        comments=["# a"], multiword_tokens=[(1, 2, "x")]
    )
    assert all(line.endswith(b"\r") for line in lines.to_bytes().split(b"\n")[:-1])


def test_a_comment_replaces_none_of_a_similar_name():
    sentence = Sentence.from_conllu(tree(0, comments="# a.b = 1\n# axb = 2\n# t[x] = 3\n# tx = 4\n"))
    changed = sentence.with_comment("a.b", 5).with_comment("t[x]", 6)
    assert list(changed.comments) == ["# axb = 2", "# tx = 4", "# a.b = 5", "# t[x] = 6"]


@pytest.mark.parametrize("n", [4095, 4096, 4097])
def test_heads_of_very_long_sentences(n):
    heads = [n] * (n - 1) + [0]
    headed = Sentence(["w"] * n, heads=heads)
    assert [line.split("\t")[6] for line in headed.to_conllu().splitlines() if line] == [str(head) for head in heads]


def test_a_comment_is_added_to_very_many():
    sentence = Sentence(["a"], comments=["# x"] * 100_000)
    before = time.thread_time()
    assert sentence.with_comment("b", 1).comments[-1] == "# b = 1"
    assert time.thread_time() - before < 1


def test_comments_among_the_words():
    sentence = Sentence.from_conllu("# a = 1\n" + word(1) + "# a = 2\n# c\n" + word(2) + "\n")
    assert sentence.with_comment("a", 3).to_conllu() == "# a = 3\n" + word(1) + "# c\n" + word(2) + "\n"
    assert sentence.error("is odd", 2).args == ("text:5: sentence 1: is odd",)


def test_a_comment_has_the_line_end_of_the_line_after_it():
    for text in (tree(0, 1).replace("\n", "\r\n", 1), EXAMPLE.replace("\n", "\r\n", 3)):
        lines = Sentence.from_conllu(text).with_comment("a", 1).to_bytes().split(b"\n")
        assert lines[lines.index(b"# a = 1\r") + 1].endswith(b"\r")
    assert b"# a = 1\n1\t" in Sentence.from_conllu(tree(0, 1)[:-1] + "\r\n").with_comment("a", 1).to_bytes()


def test_line_ends_and_odd_values_stay_where_other_values_are_replaced():
    text = "1\ta\u2028b\t_\t_\t_\t_\t_\t_\t_\t_\r\n" + word(2) + "\n"
    sentence = Sentence.from_conllu(text)
    assert sentence.misc == ("_", "_")
    new = sentence.replace(forms=[sentence.forms[0], "c"], misc=["X=1", "Y=2"])
    assert new.to_bytes().decode() == text.replace("\tw", "\tc").replace("_\r\n", "X=1\r\n").replace("_\n\n", "Y=2\n\n")


def test_multiword_tokens(sentence):
    new = sentence.replace(multiword_tokens=[(1, 2, "Don't"), (3, 4, "go!", False)])
    assert new.tokens == (Token(1, 2, "Don't", True, "_", 0, 5), Token(3, 4, "go!", False, "SpaceAfter=No", 6, 9))
    assert new.lines[2] == word("1-2", "Don't")[:-1]
    assert new.lines[5] == "3-4\tgo!" + "\t_" * 7 + "\tSpaceAfter=No"
    assert new.replace(multiword_tokens=new.tokens) == new
    assert sentence.replace(multiword_tokens=sentence.tokens) == sentence  # including MISC
    assert new.replace(multiword_tokens=[]).lines == tuple(line for line in sentence.lines if line[:2] != "1-")


def test_a_multiword_token_keeps_its_features():
    words = Sentence(["de", "le"], multiword_tokens=[(1, 2, "dou", False)]).to_conllu()
    typo = Sentence.from_conllu(words.replace("dou\t_\t_\t_\t_", "dou\t_\t_\t_\tTypo=Yes"))
    assert typo.replace(multiword_tokens=typo.tokens) == typo
    assert typo.replace(multiword_tokens=[(1, 2, "du", False)]).to_conllu() == words.replace("dou", "du")


def test_every_line_keeps_its_place(sentence):
    """Errors name lines of the file, counting the other lines before and between the words."""
    assert [sentence.error("is odd", word.id).args[0].split(":")[1] for word in sentence] == ["4", "5", "6", "8"]


def test_windows_line_ends_stay_where_a_column_is_replaced():
    content = tree(0, 1).replace("\n", "\r\n")
    sentence = Sentence.from_conllu(content)
    assert sentence.replace(heads=[2, 0]).to_bytes() == tree(2, 0).replace("\n", "\r\n").encode()


def test_mixed_line_ends_stay_where_a_column_is_replaced():
    sentence = Sentence.from_conllu(tree(0, 1).replace("\n", "\r\n", 1))
    assert sentence.replace(heads=[2, 0]).to_bytes() == tree(2, 0).replace("\n", "\r\n", 1).encode()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": [-1, 0, 1]}, r"2 integers.*heads\[1:\]"),
        ({"heads": [0]}, "2 integers, the ID.*got .0.$"),
        ({"heads": [0.0, 1.0]}, "2 integers, the ID.*got .0.0, 1.0."),
        ({"heads": [0, 3]}, "-1…2"),
        ({"heads": [0, -2]}, "-1…2"),
        ({"relations": ["root"]}, "DEPREL needs one value for each of 2 words"),
        ({"upos": "NV"}, "UPOS needs one value"),
        ({"upos": None}, "UPOS needs one value"),
        ({"upos": (value for value in "NV")}, "UPOS needs one value"),
        ({"upos": ["", "X"]}, "UPOS may not be ''"),
        ({"xpos": ["A", "B\tC"]}, "XPOS may not be"),
        ({"relations": ["root", "dep\n"]}, "DEPREL may not be"),
        ({"lemmas": ["a", "\ud800"]}, "LEMMA may not be .* not valid Unicode"),
        ({"comments": ["no sign"]}, "'no sign' is not a comment"),
        ({"comments": ["# a\n1"]}, "is not a comment"),
        ({"multiword_tokens": [(0, 1, "a")]}, "0-1 overlaps another or reaches beyond"),
        ({"multiword_tokens": [(1, 3, "abc")]}, "1-3 overlaps another or reaches beyond the words, 2"),
        ({"multiword_tokens": [(1, 2, "ab"), (2, 2, "b")]}, "2-2 overlaps"),
        ({"multiword_tokens": [(1, 2, "ab", True, {"A": "|"})]}, r"MISC may not hold 'A=\|'"),
        ({"multiword_tokens": [(1, 2, " ")]}, "form of 1-2 may not be ' ', which is white space alone"),
        ({"multiword_tokens": [(1, 2, "ab", True, "A=1 ")]}, "MISC of 1-2 may not be 'A=1 ', which begins or ends"),
        ({"lemmas": ["", "_"]}, "LEMMA may not be '', which is empty"),
        ({"feats": ["_", ""]}, "FEATS may not be '', which is empty"),
        ({"deps": ["_", " "]}, "DEPS may not be ' ', which is white space alone"),
        ({"misc": ["_ ", "_"]}, "MISC may not be '_ ', which begins or ends with white space"),
        ({"relations": ["nsubj pass", "_"]}, "DEPREL may not be 'nsubj pass', which holds white space"),
        ({"lemmas": ["a b", "a\u00a0"]}, "LEMMA may not be .* which begins or ends with white space"),
    ],
)
def test_columns_that_would_break_the_file_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Sentence.from_words(["a", "b"]).replace(**options)


def test_a_value_that_was_written_once_is_checked_in_other_columns(monkeypatch):
    monkeypatch.setattr(edits, "_MOST_KEPT", 3)
    words = Sentence.from_words(["a", "b"])
    for forms in (["a b", "c"], ["d", "e"], ["a b", "f"]):
        assert words.replace(forms=forms).replace(lemmas=forms).lemmas == tuple(forms)
        with pytest.raises(ValueError, match="UPOS may not be 'a b', which holds white space"):
            words.replace(upos=["a b", forms[1]])
    with pytest.raises(ValueError, match="LEMMA may not be ' '"):
        words.replace(lemmas=[" ", "b"])


def test_few_and_short_values_are_kept_in_memory(monkeypatch):
    kept = {}
    monkeypatch.setattr(edits, "_SOUND", kept)
    monkeypatch.setattr(edits, "_MOST_KEPT", 3)
    words = Sentence.from_words(["a", "b"])
    for i in range(9):
        words.replace(lemmas=[f"a{i}", "b" * 1000])
        (values,) = kept.values()
        assert 0 < len(values) <= 3
        assert "b" * 1000 not in values


@pytest.mark.parametrize(
    "token", [(True, 2, "x"), (1, np.True_, "x"), (1.0, 2, "x"), ("1", "2", "x"), (1, 2), 1, "12x"]
)
def test_multiword_tokens_are_two_places_and_a_form(token):
    """``True-2``, for example, could be written but not read."""
    with pytest.raises(TypeError, match=r"expected a multiword token as \(first word, last word, form\); got"):
        Sentence(["a", "b"], multiword_tokens=[token])
    with pytest.raises(TypeError, match="the form of 1-2 is 5, not a string"):
        Sentence(["a", "b"], multiword_tokens=[(1, 2, 5)])
    new = Sentence(["a", "b"], multiword_tokens=[(np.int32(1), np.int64(2), "ab", True, {"A": "b"})])
    assert new.lines[0] == word("1-2", "ab")[:-2] + "A=b"


def test_comments_are_lines():
    for comments in ("# a", [1]):
        with pytest.raises(TypeError, match=r"comments must be a list of lines|a comment must be a string"):
            Sentence(["a"], comments=comments)


def test_unknown_columns_are_refused(sentence):
    with pytest.raises(TypeError, match=r"no column 'deprel'; write relations=.*; known: heads, forms, lemmas"):
        sentence.replace(deprel=["x"] * 4)


def test_from_words():
    sentence = Sentence.from_words(["Der", "Hund\u00a0X", "New York"])
    text = word(1, "Der") + word(2, "Hund\u00a0X") + word(3, "New York") + "\n"
    assert sentence.to_bytes() == text.encode()
    assert sentence.heads.tolist() == [-1] * 3
    assert sentence == Sentence.from_conllu(text)
    assert b"1\tDer\t_\t_\t_\t_\t2\t_\t_\t_\n" in sentence.replace(heads=[2, 0, 2]).to_bytes()


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "words: sentence 1: holds no words"),
        (["a", ""], r"word 2 \(''\) is empty"),
        (["  "], "is white space alone"),
        (["\u3000"], "is white space alone"),
        (["\x1f"], "is white space alone"),
        (["a\tb"], "holds a tab, a line break or NUL"),
        (["a\n"], "holds a tab, a line break or NUL"),
        (["a\rb"], "holds a tab, a line break or NUL"),
        (["a\0b"], "holds a tab, a line break or NUL"),
        (["\ud800"], "is not valid Unicode"),
    ],
)
def test_bad_words_are_refused(tokens, message):
    with pytest.raises(DataError, match=message):
        Sentence.from_words(tokens)


def test_from_words_locates_its_errors():
    with pytest.raises(DataError, match=r"^raw.txt: sentence 7: word 1"):
        Sentence.from_words([""], source="raw.txt", number=7)


def test_from_words_refuses_one_string():
    with pytest.raises(TypeError, match="sequence of words such as"):
        Sentence.from_words("Hund")


# No line ends or tabs, which end fields, and no surrogates, which UTF-8 cannot encode.
VALUES = (
    st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), max_size=6)
    .map(lambda text: "".join(text.split()))
    .filter(bool)
)
COLUMNS = ("forms", "lemmas", "upos", "xpos", "feats", "relations", "deps", "misc")


@given(
    st.sampled_from([EXAMPLE, EXAMPLE.replace("\n", "\r\n"), EXAMPLE.replace("\n", "\r\n", 5), " \n" + EXAMPLE]),
    st.dictionaries(st.sampled_from(COLUMNS), st.lists(VALUES, min_size=4, max_size=4)),
    st.none() | st.lists(st.integers(-1, 4), min_size=4, max_size=4),
)
def test_replaced_columns_are_read_again_and_all_else_stays(text, columns, heads):
    old = Document.from_conllu(text)[0]
    new = old.replace(heads=heads, **columns)
    written = new.to_bytes()
    (again,) = Document.from_conllu(written.decode())
    for name in COLUMNS:
        expected = tuple(columns.get(name, getattr(old, name)))
        assert getattr(new, name) == getattr(again, name) == expected
    expected_heads = old.heads.tolist() if heads is None else heads
    assert new.heads.tolist() == again.heads.tolist() == expected_heads
    assert new.padded_heads.tolist() == again.padded_heads.tolist() == [-1, *expected_heads]
    assert again == new
    back = again.replace(heads=old.heads, **{name: getattr(old, name) for name in columns})
    assert back.to_bytes() == old.to_bytes() == text.encode()


def test_strings_can_be_shared():
    first, second = Document.from_conllu((tree(0) + tree(0)).replace("w1", "long word"))
    assert first.forms[0] is not second.forms[0]
    first, second = share_strings(Document.from_conllu((tree(0) + tree(0)).replace("w1", "long word")))
    assert first.forms[0] is second.forms[0]
    assert first.to_conllu() == tree(0).replace("w1", "long word")


def test_strings_of_numpy_become_plain_strings():
    words, tags, comments = (np.array([value, value]) for value in ("a", "X", "# c"))
    sentence = Sentence(words, upos=tags, lemmas=words, feats=tags, misc=words, comments=comments)
    sentence = sentence.with_comment(np.str_("key"), np.str_("value"))
    for values in (sentence.forms, sentence.upos, sentence.lemmas, sentence.feats, sentence.misc, sentence.comments):
        assert {type(value) for value in values} == {str}
    with pytest.raises(TypeError, match="word 2 of sentence 1 is 3, not a string"):
        Sentence(["a", 3])
