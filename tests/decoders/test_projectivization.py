import json
import os
import subprocess
import sys
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import ROOT
from paths import UD as TREEBANKS

from mh4.decoders import InfeasibleError
from mh4.decoders.closest import closest_tree
from mh4.decoders.projectivization import count_optimal_trees
from mh4.decoders.trees import is_projective, is_tree


def kept_arcs(first, second):
    return int(np.count_nonzero(np.asarray(first)[1:] == np.asarray(second)[1:]))


def random_tree(n, rng):
    """A random tree: words are attached in random order, each to a position attached before."""
    order = [0, *(rng.permutation(n) + 1)]
    heads = np.full(n + 1, -1)
    for at in range(1, n + 1):
        heads[order[at]] = order[rng.integers(0, at)]
    return heads


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_every_tree_against_every_projective_tree(n, single_root):
    projective = naive.all_trees(n, single_root, projective=True)
    known = set(map(tuple, projective.tolist()))
    # Only every fifth tree of 6 words with one root, to save time; all other cases are complete.
    for heads in naive.all_trees(n)[:: 5 if single_root and n == 6 else 1]:
        kept = (projective == heads)[:, 1:].sum(axis=1)
        assert count_optimal_trees(heads, single_root) == (kept.max(), (kept == kept.max()).sum())
        result = closest_tree(heads, "projective", single_root)
        assert tuple(result.tolist()) in known
        assert kept_arcs(result, heads) == kept.max()


@given(st.integers(1, 60), st.integers(0, 2**32 - 1), st.booleans())
def test_the_closest_tree_keeps_as_many_arcs_as_are_counted(n, seed, single_root):
    heads = random_tree(n, np.random.default_rng(seed))
    result = closest_tree(heads, "projective", single_root)
    assert is_tree(result, single_root)
    assert is_projective(result)
    kept, count = count_optimal_trees(heads, single_root)
    assert kept_arcs(result, heads) == kept
    assert count >= 1
    if np.count_nonzero(heads == 0) == 1:
        assert kept == count_optimal_trees(heads, not single_root)[0]


def test_projective_trees_stay():
    heads = np.array([-1, 2, 0, 2, 5, 3], np.int64)
    result = closest_tree(heads, "projective", single_root=False)
    assert result.dtype == np.int32
    assert result.tolist() == heads.tolist()
    result[1] = 9  # the result is a new array
    assert heads[1] == 2
    assert count_optimal_trees(heads) == (5, 1)


def test_no_words():
    assert count_optimal_trees(np.array([-1])) == (0, 1)
    with pytest.raises(InfeasibleError, match="without words"):
        count_optimal_trees(np.array([-1]), single_root=True)


def test_a_cycle_is_no_tree():
    with pytest.raises(ValueError, match="not a tree"):
        count_optimal_trees(np.array([-1, 2, 1]))


@pytest.mark.skipif(not TREEBANKS.is_dir(), reason="needs the UD 2.0 treebanks beside the repository")
@pytest.mark.parametrize(("language", "percent"), [("hu", 98.51), ("got", 97.04), ("cu", 97.22), ("el", 99.32)])
def test_published_edge_coverage(language, percent):
    """Projective coverage in Gómez-Rodríguez, Shi and Lee (2018), Table 3."""
    path = TREEBANKS / language / f"{language}-ud-train.conllu"
    words = kept = 0
    heads = [-1]
    for line in path.read_text(encoding="utf-8").splitlines():
        columns = line.split("\t")
        if columns[0].isdecimal():
            heads.append(int(columns[6]))
        elif not line:
            tree = np.array(heads)
            result = closest_tree(tree, "projective", single_root=False)
            assert is_projective(result)
            words += len(tree) - 1
            kept += kept_arcs(result, tree)
            heads = [-1]
    assert round(100 * kept / words, 2) == percent


@pytest.fixture
def treebank(tmp_path):
    """A file named as German, with two projective sentences of 2 words and one of 4 words that must lose an arc."""
    path = tmp_path / "de_gsd-ud-train.conllu"
    trees = [[2, 0], [3, 4, 0, 3], [0, 1]]
    path.write_text(
        "".join(
            "".join(f"{d}\tw\t_\t_\t_\t_\t{h}\tx\t_\t_\n" for d, h in enumerate(heads, start=1)) + "\n"
            for heads in trees
        ),
        encoding="utf-8",
    )
    return path


def run_experiment(name, *arguments):
    command = [sys.executable, ROOT / "experiments" / name, *arguments]
    return subprocess.run(
        command, env={**os.environ, "COLUMNS": "150"}, capture_output=True, text=True, check=True
    ).stdout


def test_table_of_accuracies(treebank, tmp_path):
    written = tmp_path / "table6.json"
    row = run_experiment("table6_projectivization.py", treebank, "-o", written).splitlines()[-1].split()
    expected = ["de_gsd-ud-train", "3", "8", "33.33", "87.50", "*", "98.97", "87.50", "*", "98.89"]
    assert row[:-1] == expected
    assert 0 < float(row[-1]) < 100
    result = json.loads(written.read_text(encoding="utf-8"))
    assert {"date", "commit", "machine"} < set(result)
    assert result["treebanks"]["de_gsd-ud-train"]["kept"] == {"optimal": 7, "pseudo": 7}


def test_figure_of_numbers_of_trees(treebank, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the plots extra")
    arguments = treebank, "-o", tmp_path / "figure", "--width", "2", "--least", "1"
    written = run_experiment("figure8_optimal_trees.py", *arguments).split()
    assert [Path(path).suffix for path in written] == [".json", ".png", ".svg"]
    assert all(Path(path).stat().st_size for path in written)
    _, count = count_optimal_trees(np.array([-1, 3, 4, 0, 3]))
    assert count > 1
    result = json.loads((tmp_path / "figure.json").read_text(encoding="utf-8"))
    assert result["settings"] == {"treebanks": [Path(treebank).name], "width": 2, "least": 1}
    assert {"date", "commit", "machine"} < set(result)
    records = result["numbers"]["de_gsd-ud-train"]
    assert [(r["shortest"], r["longest"], r["sentences"]) for r in records] == [(1, 2, 2), (3, 4, 1)]
    assert [r["geometric_mean"] for r in records] == pytest.approx([1, count])
