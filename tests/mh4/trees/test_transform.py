import io
import threading
from decimal import Decimal

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mh4.cli import app
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.decoders import ChartTooLargeError
from mh4.decoders.one_endpoint_crossing import is_one_endpoint_crossing
from mh4.decoders.trees import is_projective, is_tree
from mh4.trees.closest import TREE_CLASSES, closest_tree
from mh4.trees.transform import _label, _marked, map_in_order, transform_file, transform_sentence

# hearing → on crosses root → is and is → today.
HEARING = """# newpar
# sent_id = hearing
# text = A hearing is scheduled on the issue today.
1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_
2\thearing\thearing\tNOUN\tNN\t_\t3\tsubj\t_\tGloss=x
3\tis\tbe\tAUX\tVBZ\t_\t0\troot\t0:root\t_
4-5\tscheduledon\t_\t_\t_\t_\t_\t_\t_\tA=1
4\tscheduled\tschedule\tVERB\tVBN\t_\t3\tvc\t_\t_
5\ton\ton\tADP\tIN\t_\t2\tnmod\t2:nmod\tGloss=y
5.1\tgap\t_\t_\t_\t_\t_\t_\t2:x\t_
6\tthe\tthe\tDET\tDT\t_\t7\tdet\t_\t_
7\tissue\tissue\tNOUN\tNN\t_\t5\tpc\t_\tSpaceAfter=No
8\ttoday\ttoday\tNOUN\tNN\t_\t3\ttmp\t_\t_

"""
# 3 → 1 crosses the arc from the root to 2; since the root has only that child, one of the two arcs must change.
ROOT_CROSSED = "1\ta\t_\t_\t_\t_\t3\tx\t_\t_\n2\tb\t_\t_\t_\t_\t0\troot\t_\t_\n3\tc\t_\t_\t_\t_\t2\ty\t_\t_\n\n"


def transform(tmp_path, text, *options, to="projective"):
    source, target = tmp_path / "in.conllu", tmp_path / "out.conllu"
    source.write_bytes(text.encode())
    result = CliRunner().invoke(app, ["transform", "--to", to, str(source), "-o", str(target), *options])
    assert result.exit_code == 0, result.output
    return target.read_bytes().decode(), result.stderr


def test_only_the_changed_arc_changes(tmp_path):
    text, totals = transform(tmp_path, HEARING)
    expected = HEARING.replace("issue today.\n", "issue today.\n# changed_arcs = 1\n")
    expected = expected.replace("\t2\tnmod\t2:nmod", "\t3\tnmod\t2:nmod")  # lifted to the head of its head
    assert text == expected
    assert totals == "1 sentence, 8 words; 1 arc changed in 1 sentence\n"


def test_arcs_are_marked_in_misc(tmp_path):
    text, _ = transform(tmp_path, HEARING, "--arcs")
    assert "\t3\tnmod\t2:nmod\tGloss=y|OldHead=2\n" in text
    assert text.count("Old") == 1


def test_a_second_transformation_keeps_the_first_old_head(tmp_path):
    marked = HEARING.replace("\tGloss=y", "\tOldHead=7").replace("# newpar", "# changed_arcs = 4")
    text, _ = transform(tmp_path, marked, "--arcs")
    assert "\t3\tnmod\t2:nmod\tOldHead=7\n" in text
    assert [line for line in text.splitlines() if "changed_arcs" in line] == ["# changed_arcs = 1"]


def test_a_second_transformation_notes_the_label_that_the_first_one_kept(tmp_path):
    heads = [2, 0, 1, 1, 1]  # word 2 gets another head
    lines = [f"{d}\tw\t_\t_\t_\t_\t{h}\t{'root' if h == 0 else 'x'}\t_\tOldHead=9" for d, h in enumerate(heads, 1)]
    text, _ = transform(tmp_path, "\n".join(lines) + "\n\n", "--arcs")
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    assert (rows[1][7], rows[1][9]) == ("dep", "OldHead=9|OldDeprel=root")


@pytest.mark.parametrize("to", ["mh4", "1ec"])
def test_trees_of_the_class_stay_byte_for_byte(tmp_path, to):
    text = "\n" + HEARING + ROOT_CROSSED.replace("\n", "\r\n")
    assert transform(tmp_path, text, "--arcs", to=to)[0] == text


def test_line_ends_stay(tmp_path):
    text, _ = transform(tmp_path, HEARING.replace("\n", "\r\n"), "--arcs")
    assert text.count("\r\n") == text.count("\n") == HEARING.count("\n") + 1
    mixed = HEARING.replace("\tGloss=y\n", "\tGloss=y\r\n")
    text, _ = transform(tmp_path, mixed, "--arcs")
    assert "\tGloss=y|OldHead=2\r\n" in text
    assert text.count("\r") == 1


def test_a_new_root_is_labelled_root_and_an_old_one_dep(tmp_path):
    heads = [2, 0, 1, 1, 1]  # the arcs from word 1 cross the root arc of word 2
    best = max(closest_count(tree, [-1, *heads]) for tree in naive.all_trees(5, True, True))
    lines = [f"{d}\tw\t_\t_\t_\t_\t{h}\t{'root' if h == 0 else 'x'}\t_\t_" for d, h in enumerate(heads, start=1)]
    text, _ = transform(tmp_path, "\n".join(lines) + "\n\n", "--arcs")
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    assert sum(row[6] == str(h) for row, h in zip(rows, heads, strict=True)) == best
    for row in rows:
        assert (row[6] == "0") == (row[7] == "root")
    old_root = rows[1]
    assert old_root[6] != "0"
    assert old_root[7] == "dep"
    assert "OldHead=0" in old_root[9]
    assert "OldDeprel=root" in old_root[9]


def closest_count(first, second):
    return int(np.count_nonzero(np.asarray(first)[1:] == np.asarray(second)[1:]))


BELONGS = {"projective": is_projective, "1ec": is_one_endpoint_crossing}


@given(st.sampled_from(sorted(BELONGS)), st.booleans(), st.data())
def test_closest_tree_is_the_best_of_all(tree_class, single_root, data):
    trees = naive.all_trees(5, single_root)
    heads = trees[data.draw(st.integers(0, len(trees) - 1))]
    best = max(closeness(tree, heads) for tree in candidates(tree_class, single_root))
    result = closest_tree(heads, tree_class, single_root)
    assert is_tree(result, single_root)
    assert BELONGS[tree_class](result)
    assert closeness(result, heads) == best


def closeness(tree, heads):
    """The number of arcs of a tree that it shares with a given one, and of those to a word above the given head."""
    above = [[] for _ in heads]
    for d in range(1, len(heads)):
        h = heads[d]
        while h > 0 and (h := heads[h]) > 0:
            above[d].append(h)
    return closest_count(tree, heads), sum(tree[d] in words for d, words in enumerate(above))


_CANDIDATES = {}


def candidates(tree_class, single_root):
    key = tree_class, single_root
    if key not in _CANDIDATES:
        _CANDIDATES[key] = [tree for tree in naive.all_trees(5, single_root) if BELONGS[tree_class](tree)]
    return _CANDIDATES[key]


@given(st.sampled_from(sorted(TREE_CLASSES)), st.integers(0, 1295))
def test_a_second_transformation_changes_nothing(tree_class, at):
    trees = naive.all_trees(5)
    once = closest_tree(trees[at % len(trees)], tree_class, single_root=False)
    assert closest_tree(once, tree_class, single_root=False).tolist() == once.tolist()


def test_several_roots_may_stay(tmp_path):
    text = ROOT_CROSSED.replace("\t2\ty", "\t0\troot")
    out, _ = transform(tmp_path, text)
    (tmp_path / "out.conllu").write_text(out, encoding="utf-8")
    (sentence,) = read_conllu(tmp_path / "out.conllu", trees="required")
    assert is_projective(sentence.padded_heads)
    assert 3 in sentence.roots


def test_unlabelled_trees_stay_unlabelled(tmp_path):
    text = ROOT_CROSSED.replace("\tx\t", "\t_\t").replace("\troot\t", "\t_\t").replace("\ty\t", "\t_\t")
    rows = [line.split("\t") for line in transform(tmp_path, text)[0].splitlines() if line[:1].isdigit()]
    assert [row[7] for row in rows] == ["_"] * 3


def test_standard_input_and_output():
    result = CliRunner().invoke(app, ["transform", "--to", "1ec"], input=HEARING)
    assert result.stdout == HEARING


def test_a_treebank_is_not_replaced(tmp_path):
    source, link = tmp_path / "in.conllu", tmp_path / "link.conllu"
    source.write_text(HEARING, encoding="utf-8")
    link.symlink_to(source)
    for target in (source, link):
        with pytest.raises(DataError, match=f"{target.name}: is the input and would be replaced"):
            transform_file(source, target, "mh4")
    transform_file(source, tmp_path / "out.conllu", "mh4")


def test_bad_and_too_long_sentences(tmp_path, monkeypatch):
    bad = ROOT_CROSSED.replace("\t0\troot", "\t3\troot")
    source, target = tmp_path / "in.conllu", tmp_path / "out.conllu"
    source.write_text(bad + HEARING, encoding="utf-8")
    with pytest.raises(DataError, match="cycle"):
        transform_file(source, target, "mh4")
    assert not target.exists()
    skipped = []
    totals = transform_file(source, target, "mh4", errors=skipped.append)
    assert (totals.sentences, len(skipped)) == (1, 1)
    assert target.read_text(encoding="utf-8") == HEARING

    def too_large(heads, tree_class, single_root):
        raise ChartTooLargeError("the chart takes too much")

    monkeypatch.setattr("mh4.trees.transform.closest_tree", too_large)
    source.write_text(HEARING, encoding="utf-8")
    with pytest.raises(DataError, match=r"in.conllu:1: sentence hearing: .*too long.*the chart takes too much"):
        transform_file(source, target, "mh4")
    with pytest.warns(UserWarning, match="left out"):
        assert transform_file(source, target, "mh4", errors="skip").sentences == 0


def test_optimal_projective_trees_are_counted(tmp_path):
    text, totals = transform(tmp_path, HEARING + ROOT_CROSSED + HEARING, "--count")
    first, second, third = read_comments(text)
    count, other = optimal_trees(HEARING), optimal_trees(ROOT_CROSSED)
    assert count > other == 1
    assert first == third
    assert first[-2:] == ["# changed_arcs = 1", f"# optimal_projective_trees = {count}"]
    assert second == ["# changed_arcs = 1", f"# optimal_projective_trees = {other}"]
    mean = (count * count * other) ** (1 / 3)
    assert totals.splitlines()[1] == (
        "several optimal projective trees: 2 sentences; "
        f"geometric mean of their number over all sentences: {Decimal(mean):.4g}"
    )


def read_comments(text):
    return [[line for line in block.splitlines() if line[0] == "#"] for block in text.split("\n\n")[:-1]]


def optimal_trees(text):
    """Count the projective trees with one root that differ from the tree of a sentence in one arc."""
    rows = [line.split("\t") for line in text.splitlines() if line.partition("\t")[0].isdecimal()]
    heads = np.array([-1, *(int(row[6]) for row in rows)])
    words = range(1, len(heads))
    changed = [np.where(np.arange(len(heads)) == d, h, heads) for d in words for h in (0, *words) if h != heads[d]]
    return sum(is_tree(tree, single_root=True) and is_projective(tree) for tree in changed)


def test_a_projective_sentence_is_counted_too_and_an_earlier_count_goes(tmp_path):
    once, _ = transform(tmp_path, HEARING, "--count")
    twice, totals = transform(tmp_path, once, "--count")
    assert read_comments(twice)[0][-2:] == ["# changed_arcs = 1", "# optimal_projective_trees = 1"]
    assert [line for line in twice.splitlines() if line[0:1] != "#"] == [
        line for line in once.splitlines() if line[0:1] != "#"
    ]
    assert "several optimal projective trees: 0 sentences; " in totals
    assert totals.endswith("over all sentences: 1\n")


@pytest.mark.parametrize("to", ["mh4", "1ec"])
def test_only_projective_trees_are_counted(tmp_path, to):
    source, target = tmp_path / "in.conllu", tmp_path / "out.conllu"
    source.write_text(HEARING, encoding="utf-8")
    result = CliRunner().invoke(app, ["transform", "--to", to, "--count", str(source), "-o", str(target)])
    assert isinstance(result.exception, ValueError)
    assert str(result.exception) == f"closest trees can be counted only for the class projective, not for {to}"
    assert not target.exists()
    (sentence,) = read_conllu(source, trees="required")
    with pytest.raises(ValueError, match="only for the class projective"):
        transform_sentence(sentence, to, count_trees=True)


def test_unknown_class(tmp_path):
    with pytest.raises(ValueError, match="unknown class of trees 'planar'; known: projective, mh4, 1ec"):
        transform_file(io.BytesIO(), tmp_path / "out", "planar")


def test_labels_of_the_root_are_for_the_root_alone():
    sentence = Sentence(["a", "b", "c", "d"], heads=[2, 0, 2, 2], relations=["root:x", "root", "_", "rooted"])
    assert [_label(sentence, word, 4) for word in (1, 2, 3)] == ["dep", "dep", "_"]
    assert _label(sentence, 4, 1) == "rooted"
    assert [_label(sentence, word, 0) for word in (1, 3)] == ["root", "_"]


def test_a_tree_with_two_roots_keeps_them():
    sentence = Sentence(["a", "b"], heads=[0, 0], relations=["root", "root"])
    found = transform_sentence(sentence, "projective")
    assert (found.changed, found.text) == (0, sentence.to_bytes())


def test_entries_with_longer_names_are_others():
    assert _marked("OldHeading=x|OldDeprels=y", 2, "a", "b") == "OldHeading=x|OldDeprels=y|OldHead=2|OldDeprel=a"


def test_output_that_is_not_conllu_and_no_threads_are_errors(tmp_path):
    source, target = tmp_path / "in.conllu", tmp_path / "out.json"
    source.write_text(HEARING, encoding="utf-8")
    with pytest.raises(ValueError, match="only CoNLL-U can be written here"):
        transform_file(source, target, "projective")
    with pytest.raises(ValueError, match="max_workers"):
        transform_file(source, tmp_path / "out.conllu", "projective", threads=0)


def test_little_is_read_ahead_and_what_nobody_waits_for_is_not_done():
    read, done, go_on = [], [], threading.Event()

    def do(item):
        done.append(item)
        if item:
            go_on.wait(10)

    found = map_in_order(do, (read.append(i) or i for i in range(1000)), threads=1)
    next(found)
    assert len(read) == 256
    threading.Timer(0.1, go_on.set).start()
    found.close()
    assert len(done) < 256
