"""Drawings of trees: text and pictures show every arc once, and mark exactly the crossed arcs."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import ROOT
from rich.cells import cell_len
from rich.text import Text

from mh4.data.confidence import Confidence
from mh4.data.conllu import read_conllu
from mh4.data.doubts import Doubt, doubts, svg_below
from mh4.data.drawing import LABEL_SIZE, Drawing, _extent, _label_place, draw_svg, draw_text, printable
from mh4.data.sample import write_sample
from mh4.decoders.trees import crossed_arcs

SVG = "{http://www.w3.org/2000/svg}"

FORMS = ["Te", "nofe", "hivon", "mihevode", "takomero", ",", "kve", "yeni", "zafante", "."]
HEADS = np.array([-1, 2, 4, 5, 0, 4, 9, 9, 9, 2, 4])
RELATIONS = ["det", "nsubj", "obj", "root", "xcomp", "punct", "nsubj", "obj", "acl:relcl", "punct"]
DRAWING = """\
    ╭───▶ Te        det
  ╒═╪═══▶ nofe      nsubj
  │ │ ╒═▶ hivon     obj
●═╪═│═│═▶ mihevode  root
  ├─│─┴─▶ takomero  xcomp
  │ │ ╭─▶ ,         punct
  │ │ ├─▶ kve       nsubj
  │ │ ├─▶ yeni      obj
  │ ╘═╧═▶ zafante   acl:relcl
  ╘═════▶ .         punct"""


@st.composite
def trees(draw, longest=14):
    """Draw any tree: in random order, words are attached to the root or to a word already attached."""
    n = draw(st.integers(1, longest))
    order = draw(st.permutations(range(1, n + 1)))
    heads = np.full(n + 1, -1)
    for i, d in enumerate(order):
        heads[d] = draw(st.sampled_from([0, *order[:i]]))
    return heads


def _read(drawing: str, n: int) -> tuple[list[int], list[bool]]:
    """Trace the lines of a drawing; return the head of each word, and whether its arc is a double line."""
    lines = drawing.split("\n")
    assert len(lines) == n
    heads, double = [-1], [False]
    for row, line in enumerate(lines):
        column = line.index("▶") - 1
        double.append(line[column] in "═╤╧╪")
        while line[column] in "─═│┬┴┼╤╧╪":
            column -= 1
        if line[column] == "●":
            heads.append(0)
            continue
        steps = {"╭": [1], "╒": [1], "╰": [-1], "╘": [-1], "├": [-1, 1], "╞": [-1, 1]}[line[column]]
        found = []
        for step in steps:
            at = row + step
            while lines[at][column] in "│├╞":
                at += step
            if lines[at][column] in "┬┴┼╤╧╪":
                found.append(at + 1)
            else:
                assert lines[at][column] in "╭╰╒╘"
        assert len(found) == 1
        heads.extend(found)
    return heads, double


def _words(n: int) -> list[str]:
    return [f"w{d}" for d in range(1, n + 1)]


def test_golden_drawing():
    assert draw_text(FORMS, HEADS, RELATIONS) == DRAWING


def test_a_copy_has_the_picture_too():
    drawing = Drawing("text", "<svg/>")
    for copied in (copy.deepcopy(drawing), pickle.loads(pickle.dumps(drawing))):
        assert copied == drawing
        assert copied.svg == drawing.svg


@settings(max_examples=300, deadline=None)
@given(trees(), st.sampled_from([None, 1]))
def test_tree_can_be_read_off_the_text(heads, width):
    n = len(heads) - 1
    read, double = _read(draw_text(_words(n), heads, width=width), n)
    assert read == heads.tolist()
    assert double == crossed_arcs(heads).tolist()


def test_a_long_sentence_is_drawn_at_once():
    before = time.thread_time()
    assert draw_text(["a"] * 10_000, [-1, 0, *[1] * 9999]).count("\n") == 9999
    assert time.thread_time() - before < 2


def test_time_grows_with_the_length_of_arcs():
    """The words of a binary tree: each head is in the middle of its words."""
    n = 2**12 - 1
    heads = [-1] + [d + (d & -d) * (1 if d & 2 * (d & -d) == 0 else -1) for d in range(1, n + 1)]
    heads[2**11] = 0
    confidence = Confidence(np.ones(n), np.arange(n, dtype=np.int32), np.ones(n), heads=np.full(n, 0.5))
    before = time.thread_time()
    assert draw_text(["a"] * n, heads, ["b"] * n).count("\n") == n - 1
    assert draw_svg(["a"] * n, heads, ["b"] * n, confidence).count('class="other"') > n // 2
    assert time.thread_time() - before < 2


def test_single_word():
    assert draw_text(["Nekoda"], [-1, 0], ["root"]) == "●─▶ Nekoda  root"


def test_several_words_under_the_root():
    assert draw_text(["a", "b", "c"], [-1, 0, 1, 0]) == "●─┬─▶ a\n  ╰─▶ b\n●───▶ c"


def test_width_is_kept():
    long_forms = [form * 5 for form in FORMS]
    for width in (60, 40, 30, 24):
        lines = draw_text(long_forms, HEADS, RELATIONS, width=width).split("\n")
        assert max(map(len, lines)) <= width
    assert "…" in draw_text(long_forms, HEADS, RELATIONS, width=30)
    assert "…" not in draw_text(long_forms, HEADS, RELATIONS)
    assert [line.partition("▶ ")[2] for line in draw_text(["abcdef", "ab"], [-1, 0, 1], width=1).split("\n")] == [
        "abc…",
        "ab",
    ]
    needed = max(map(len, DRAWING.split("\n")))
    assert draw_text(FORMS, HEADS, RELATIONS, width=80) == draw_text(FORMS, HEADS, RELATIONS, width=needed) == DRAWING


def test_wide_characters_keep_the_columns():
    lines = draw_text(["猫", "cats"], [-1, 2, 0], ["nsubj", "root"]).split("\n")
    assert [line.partition("▶")[2] for line in lines] == [" 猫    nsubj", " cats  root"]


@pytest.mark.parametrize("forms", [["หนังสือ", "ที่", "ดี"], ["किताबें", "अच्छी", "हैं"], ["👍🏽", "x", "می‌خواهم"]])
def test_marks_take_no_columns(forms):
    lines = draw_text(forms, [-1, 0, 1, 1], ["root", "dep", "dep"]).split("\n")
    assert len({cell_len(line) - cell_len(line.split()[-1]) for line in lines}) == 1  # relations start in one column


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("ver\u00adstehen", "verstehen"),
        ("\u200fسبب\u200e", "سبب"),
        ("a\u202eb\u202c\u2066c\u2069", "abc"),
        ("\ufeffខ្ញុំ\u200bនៅ", "ខ្ញុំនៅ"),
        ("🏴\U000e0067\U000e0062\U000e007f", "🏴\U000e0067\U000e0062\U000e007f"),  # a flag
        ("\u06dd\u0661", "\u06dd\u0661"),  # the end of a verse, around its number
        ("\u200b\u00ad", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_invisible_characters_are_left_out(form, shown):
    assert printable(form) == shown
    assert shown in str(draw_svg([form], [-1, 0]))


def test_joiners_and_spaces_stay():
    lines = draw_text(["क्\u200dष", "10\u00a0000", "a\tb"], [-1, 2, 0, 2]).split("\n")
    assert [line.partition("▶ ")[2] for line in lines] == ["क्\u200dष", "10 000", "a\N{REPLACEMENT CHARACTER}b"]


def test_markup_shows_the_same_text():
    forms = ["[bold]", "nofe", "[/]", "\\", *FORMS[4:]]
    marked = draw_text(forms, HEADS, RELATIONS, markup=True)
    parsed = Text.from_markup(marked)
    assert parsed.plain == draw_text(forms, HEADS, RELATIONS)
    coloured = [span for span in parsed.spans if "magenta" in str(span.style)]
    assert len(coloured) == crossed_arcs(HEADS).sum()


def test_markup_of_a_backslash_before_a_line_end():
    forms = ["a\\", "[b]\\"]
    marked = draw_text(forms, [-1, 2, 0], markup=True)
    assert Text.from_markup(marked).plain == draw_text(forms, [-1, 2, 0])


def _picture(*arguments) -> ElementTree.Element:
    return ElementTree.fromstring(draw_svg(*arguments))


def _with_class(picture: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [element for element in picture.iter() if name in element.get("class", "").split()]


@settings(max_examples=60, deadline=None)
@given(trees(40))
def test_picture_holds_words_and_arcs_once(heads):
    n = len(heads) - 1
    labels = [f"r{d}" for d in range(1, n + 1)]
    picture = _picture(_words(n), heads, labels)
    assert [text.text for text in _with_class(picture, "word")] == _words(n)
    assert [text.text for text in _with_class(picture, "label")] == labels
    arcs = [arc for arc in _with_class(picture, "arc") if arc.get("data-head")]
    assert [(int(arc.get("data-head")), int(arc.get("data-dependent"))) for arc in arcs] == [
        (heads[d], d) for d in range(1, n + 1)
    ]
    crossed = crossed_arcs(heads)
    assert ["crossed" in arc.get("class") for arc in arcs] == crossed[1:].tolist()
    assert ["crossed" in head.get("class") for head in _with_class(picture, "head")] == crossed[1:].tolist()
    assert len(_with_class(picture, "legend")) == crossed.any()


@settings(max_examples=60, deadline=None)
@given(trees(25))
def test_picture_stays_inside_its_frame_and_words_apart(heads):
    picture = _picture(_words(len(heads) - 1), heads, ["relation"] * (len(heads) - 1))
    width, height = float(picture.get("width")), float(picture.get("height"))
    assert picture.get("viewBox") == f"0 0 {width:.0f} {height:.0f}"
    for text in picture.iter(f"{SVG}text"):
        assert 0 < float(text.get("x")) < width
        assert 0 < float(text.get("y")) < height
    places = [float(text.get("x")) for text in _with_class(picture, "word")]
    assert all(b - a > 20 for a, b in itertools.pairwise(places))
    for arc in _with_class(picture, "arc"):
        foot, head = float(arc.get("d")[1:].split()[0]), int(arc.get("data-head", 0))
        assert head == 0 or min(places, key=lambda x: abs(x - foot)) == places[head - 1]


def test_legend_stays_inside_the_frame():
    picture = _picture(["a"] * 4, [-1, 0, 4, 1, 1])
    (legend,) = _with_class(picture, "legend")
    assert float(legend.get("x")) + _extent(legend.text, LABEL_SIZE) < float(picture.get("width"))


def test_legend_only_where_arcs_cross():
    assert "crossed by another arc" in draw_svg(FORMS, HEADS)
    assert "crossed by another arc" not in draw_svg(["a", "b"], [-1, 0, 1])


def test_picture_without_relations_has_no_labels():
    assert not _with_class(_picture(FORMS, HEADS), "label")


def test_no_label_stands_where_a_higher_arc_rises():
    """The arc 2 → 4 rises in the middle of 1 → 3."""
    picture = _picture(["wide" * 4] * 4, [-1, 0, 1, 1, 2], ["root", "a", "b", "c"])
    (label,) = (float(text.get("x")) for text in _with_class(picture, "label") if text.text == "b")
    (path,) = (arc.get("d") for arc in _with_class(picture, "arc") if arc.get("data-dependent") == "4")
    assert abs(label - float(path[1:].split()[0])) > 10


def test_a_label_makes_way_for_every_higher_arc():
    ports = {(1, 2, 1): 0.0, (1, 2, 2): 1000.0}
    arguments = 2, np.array([-1, 0, 1]), [0, 2, 1], ports
    assert _label_place(*arguments, np.array([[440.0, 2], [500.0, 2]]), ["", "", "b"]) == 560


def test_special_characters_in_pictures():
    forms, relations = ["<a&b>", '"q"', "c\x00\n\x1b", "]]>"], ["x<y", "&amp;", "root", "'"]
    picture = _picture(forms, [-1, 3, 3, 0, 3], relations)
    assert [text.text for text in _with_class(picture, "word")] == [
        "<a&b>",
        '"q"',
        "c\N{REPLACEMENT CHARACTER}" + "\N{REPLACEMENT CHARACTER}" * 2,
        "]]>",
    ]
    assert {text.text for text in _with_class(picture, "label")} == set(relations)
    assert picture.get("aria-label").startswith('<a&b> "q"')


def test_control_characters_do_not_break_lines():
    assert draw_text(["a\nb", "\x1b[31m"], [-1, 2, 0]).count("\n") == 1
    assert "\x1b" not in draw_text(["a\nb", "\x1b[31m"], [-1, 2, 0])


@pytest.mark.parametrize("draw", [draw_text, draw_svg])
@pytest.mark.parametrize(
    ("forms", "heads", "relations", "message"),
    [
        ([], [-1], None, "at least one word"),
        (["a", "b"], [-1, 0], None, "2 words need heads of shape"),
        (["a", "b"], [-1, 0, 1], ["root"], "2 words but 1 relations"),
        (["a", "b"], [-1, 2, 1], None, "not a tree"),
    ],
)
def test_errors(draw, forms, heads, relations, message):
    with pytest.raises(ValueError, match=message):
        draw(forms, heads, relations)


# A briefly trained parser's analysis of FORMS: two heads are wrong, and their confidence is low.
PARSED = np.array([-1, 2, 4, 2, 0, 4, 9, 9, 9, 3, 4])
PARSED_RELATIONS = [*RELATIONS[:2], "conj", *RELATIONS[3:]]
CONFIDENCE = Confidence(
    margins=np.array([11.2, 4.0, 0.3, 10.2, 3.2, 6.3, 9.8, 5.9, 0.3, 5.7]),
    runners_up=np.array([3, 3, 5, 10, 2, 4, 6, 7, 5, 2], np.int32),
    relations=np.full(10, 0.9),
    heads=np.where(np.isin(np.arange(1, 11), [3, 9]), 0.55, 0.99),
    words=np.full(10, 0.5),
)
DOUBTFUL = """\
    ╭─────▶ Te        det
  ╒═╪═════▶ nofe      nsubj
  │ ╰╌┬╌╌╌▶ hivon     conj        55%  ╌ takomero
●═╪═══│═══▶ mihevode  root
  ├───│───▶ takomero  xcomp
  │   │ ╭─▶ ,         punct
  │   │ ├─▶ kve       nsubj
  │   │ ├─▶ yeni      obj
  │   ╘═╧═▶ zafante   acl:relcl   55%  ╌ takomero
  ╘═══════▶ .         punct"""


def test_doubtful_heads_in_the_terminal():
    assert draw_text(FORMS, PARSED, PARSED_RELATIONS, confidence=CONFIDENCE) == DOUBTFUL
    marked = draw_text(FORMS, PARSED, PARSED_RELATIONS, markup=True, confidence=CONFIDENCE)
    assert Text.from_markup(marked).plain.replace(" \n", "\n").rstrip() == DOUBTFUL
    alone = Confidence(np.ones(1), np.zeros(1, np.int32), np.full(1, 0.5), heads=np.full(1, 0.5))
    assert draw_text(["a"], [-1, 0], confidence=alone) == "●╌▶ a   50%  ╌ ●"


def test_doubtful_heads_in_a_picture():
    tree = ElementTree.fromstring(draw_svg(FORMS, PARSED, PARSED_RELATIONS, CONFIDENCE))
    others = [path for path in tree.iter(f"{SVG}path") if path.get("data-head") and path.get("class") == "other"]
    assert [(path.get("data-head"), path.get("data-dependent")) for path in others] == [("5", "3"), ("5", "9")]
    arcs = [path for path in tree.iter(f"{SVG}path") if "arc" in path.get("class") and path.get("data-head")]
    assert [path.get("data-dependent") for path in arcs if path.get("style")] == ["3", "9"]
    notes = [text.text for text in tree.iter(f"{SVG}text") if text.get("class") == "note"]
    assert notes == ["55%", "55%"]
    assert "next best head" in "".join(tree.itertext())
    certain = Confidence(CONFIDENCE.margins, CONFIDENCE.runners_up, CONFIDENCE.relations)
    assert draw_svg(FORMS, PARSED, RELATIONS, certain) == draw_svg(FORMS, PARSED, RELATIONS)


@pytest.mark.parametrize(
    ("letter", "mirrored"), [("ש", True), ("س", True), ("7ש", True), ("שa", True), ("aש", False), ("7", False)]
)
def test_scripts_written_from_right_to_left_begin_on_the_right(letter, mirrored):
    def feet(letters):
        forms = [letters + "a" * (len(form) + 2 - len(letters)) for form in FORMS]
        tree = ElementTree.fromstring(draw_svg(forms, PARSED, PARSED_RELATIONS, CONFIDENCE))
        words = [*_with_class(tree, "word"), *_with_class(tree, "note")]
        paths = [path for path in tree.iter(f"{SVG}path") if path.get("data-head")]
        ends = [re.fullmatch(r"M([\d.]+) .*?(?:([\d.]+) \d+|V\d+)", path.get("d")).groups() for path in paths]
        directions = {word.get("direction") for word in _with_class(tree, "word")}
        places = [float(x) for x in [*(word.get("x") for word in words), *itertools.chain(*ends)] if x]
        return places, directions, float(tree.get("width"))

    from_left, _, width = feet("a" * len(letter))
    places, directions, _ = feet(letter)
    assert directions == ({"rtl"} if mirrored else {None})
    np.testing.assert_allclose(places, [width - x for x in from_left] if mirrored else from_left, atol=0.6)


def test_next_best_heads_lie_below_each_other():
    found = [Doubt(1, 0.5, 4), Doubt(2, 0.5, 3), Doubt(3, 0.4, 0), Doubt(4, 0.3, -1)]
    elements, bottom = svg_below(found, [0.0, 10.0, 60.0, 110.0, 160.0], 100.0)
    assert [re.search(r"(?:H|V)[-0-9.]+", element)[0][0] for element in elements if "other" in element] == [
        "H",
        "H",
        "V",
    ]
    depths = [float(re.search(r" (\d+)H", element)[1]) for element in elements if "H" in element]
    assert depths[0] > depths[1]
    assert bottom == max(depths)


def test_an_arc_from_the_root_has_room_below_the_words():
    elements, bottom = svg_below([Doubt(1, 0.5, 0)], [0.0, 10.0], 100.0)
    (path,) = (element for element in elements if "data-head" in element)
    assert float(re.search(r"M\S+ (\d+)V", path)[1]) == bottom


@pytest.mark.parametrize("apart", [((1, 2), (4, 5)), ((5, 4), (2, 1))])
def test_next_best_heads_apart_from_each_other_are_as_deep(apart):
    elements, _ = svg_below([Doubt(d, 0.5, h) for d, h in apart], [0.0, 10.0, 60.0, 110.0, 160.0, 210.0], 100.0)
    depths = {re.search(r" (\d+)H", element)[1] for element in elements if "H" in element}
    assert len(depths) == 1


@pytest.mark.parametrize("meeting", [((1, 2), (3, 2)), ((1, 3), (4, 3)), ((4, 2), (1, 2))])
def test_next_best_heads_that_meet_at_a_word_lie_below_each_other(meeting):
    elements, _ = svg_below([Doubt(d, 0.5, h) for d, h in meeting], [0.0, 10.0, 60.0, 110.0, 160.0], 100.0)
    assert len({re.search(r" (\d+)H", element)[1] for element in elements if "H" in element}) == 2


def test_picture_of_the_readme_is_a_sentence_of_the_sample(tmp_path):
    """docs/tree.svg is up to date with the code."""
    sentence = list(read_conllu(write_sample(tmp_path)["test"], trees="required"))[92]
    assert list(sentence.forms) == FORMS
    drawn = draw_svg(FORMS, PARSED, PARSED_RELATIONS, CONFIDENCE)
    assert (ROOT / "docs" / "tree.svg").read_text(encoding="utf-8") == drawn


def test_heads_of_just_enough_certainty_are_not_doubted():
    heads = np.array([0.9, 0.8999, np.nan])
    found = Confidence(np.ones(3), np.array([2, 0, -1]), np.ones(3), heads, heads)
    assert doubts(found) == [(2, 0.8999, 0)]
