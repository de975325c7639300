"""What is MH4? The smallest trees that it excludes, what its class is closed under, and its neighbours.

    python experiments/what_is_mh4.py --longest 7

Gómez-Rodríguez, Shi and Lee (2018, section 6) leave a definition of MH4 without derivations open; MH4_CLASS.md has one,
which `mh_k.heads_needed` decides. This script looks at all trees of up to 7 words, with any number of words below the
root, and writes results/mh4-class/small-trees.json, with drawings of the smallest excluded trees beside it.

These operations make a tree smaller by one word:

========  =============================================================================================
leaf      a word without dependents is deleted
linked    two neighbours, one the head of the other, become one word; the root and the first word, too
siblings  two neighbouring words with the same head become one word
removed   any word is deleted, and its dependents attached to its head
========  =============================================================================================

A tree outside a class is *minimal* if each of the first three operations, wherever it applies, leads into the class.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from grid_results import write_result
from mh_k import heads_needed
from provenance import made_today
from scripting import run_script

from mh4.data.drawing import draw_svg, draw_text
from mh4.data.files import atomic_output
from mh4.decoders.one_endpoint_crossing import is_one_endpoint_crossing
from mh4.decoders.trees import gap_degree, is_planar, is_tree, is_well_nested
from mh4.oracles.mh4 import is_derivable

OUTPUT = Path(__file__).parent / "results" / "mh4-class"
WAYS = ("leaf", "linked", "siblings", "removed")
CLOSED_WAYS = WAYS[:3]
CLASSES: dict[str, Callable[[np.ndarray], bool]] = {
    "MH3": lambda heads: heads_needed(heads) <= 3,
    "MH4": lambda heads: heads_needed(heads) <= 4,
    "MH4 by transitions": is_derivable,
    "MH5": lambda heads: heads_needed(heads) <= 5,
    "1EC": is_one_endpoint_crossing,
    "planar": is_planar,
    "well-nested, ≤ 1 gap": lambda heads: gap_degree(heads) <= 1 and is_well_nested(heads),
    "well-nested": is_well_nested,
}
LETTERS = "abcdefgh"
Tree = tuple[int, ...]
Members = dict[Tree, frozenset[str]]


def trees_of(n: int) -> Iterator[Tree]:
    """Every tree of n words, as heads."""
    for heads in product(range(n + 1), repeat=n):
        if all(head != word for word, head in enumerate(heads, start=1)) and is_tree(np.array((-1, *heads))):
            yield (-1, *heads)


def merged(heads: Tree, kept: int, word: int) -> Tree:
    """The tree with ``word`` merged into position ``kept``: its head, its dependent or its sibling."""
    above = [kept if head == word else head for head in heads]
    if above[kept] == kept:  # the word was the head of ``kept``
        above[kept] = above[word]
    return tuple(head - (head > word) for position, head in enumerate(above) if position != word)


def smaller(heads: Tree) -> Iterator[tuple[str, Tree]]:
    """Every tree that one operation makes out of ``heads``, with the operation's name."""
    for word in range(1, len(heads)):
        without = merged(heads, heads[word], word)
        if word not in heads:
            yield "leaf", without
        yield "removed", without
        before = word - 1
        if heads[word] == before or heads[before] == word:
            yield "linked", merged(heads, before, word)
        elif heads[word] == heads[before]:
            yield "siblings", merged(heads, before, word)


def mirrored(heads: Tree) -> Tree:
    """The tree with its words in reverse order; the root stays at the left."""
    n = len(heads) - 1
    turned = [head if head <= 0 else n + 1 - head for head in heads]
    return (-1, *reversed(turned[1:]))


def members(longest: int) -> list[Members]:
    """For each number of words, all trees and the classes of each."""
    found: list[Members] = []
    for n in range(longest + 1):
        trees = {tree: np.array(tree) for tree in trees_of(n)}
        found.append({key: frozenset(c for c, within in CLASSES.items() if within(t)) for key, t in trees.items()})
    return found


def closure(found: list[Members]) -> dict[str, dict[str, list[int] | None]]:
    """For each class and operation, the first tree in the class that it makes into one outside; None if none exists."""
    leaving: dict[str, dict[str, list[int] | None]] = {name: dict.fromkeys(WAYS) for name in CLASSES}
    for n in range(2, len(found)):
        for tree, inside in found[n].items():
            for way, small in smaller(tree):
                for name in inside - found[n - 1][small]:
                    if leaving[name][way] is None:
                        leaving[name][way] = list(tree)
    return leaving


def minimal_trees(found: list[Members], name: str, ways: tuple[str, ...]) -> list[list[Tree]]:
    """For each number of words, the trees outside a class that the operations ``ways`` only make into trees inside."""
    return [
        [
            tree
            for tree, inside in of_length.items()
            if name not in inside and all(name in found[n - 1][small] for way, small in smaller(tree) if way in ways)
        ]
        for n, of_length in enumerate(found)
    ]


def counts(of_length: Members) -> dict[str, Any]:
    """The number of trees of one length in each class, and how MH4 relates to the other classes."""
    mh4 = [(tree, inside) for tree, inside in of_length.items() if "MH4" in inside]
    return {
        "trees": len(of_length),
        "in": {name: sum(name in inside for inside in of_length.values()) for name in CLASSES},
        "in MH4 and": {name: sum(name in inside for _, inside in mh4) for name in CLASSES},
        "largest gap degree in MH4": max(gap_degree(np.array(tree)) for tree, _ in mh4),
        "in MH4, mirrored not": sum("MH4" not in of_length[mirrored(tree)] for tree, _ in mh4),
    }


def one_root(trees: list[Tree]) -> int:
    """The number of trees with exactly one word below the root."""
    return sum(tree.count(0) == 1 for tree in trees)


def study(longest: int) -> dict[str, Any]:
    """The content of the result: counts, closure, minimal trees."""
    found = members(longest)
    lengths = range(1, longest + 1)
    minimal = {}
    for name in ("MH3", "MH4", "MH4 by transitions", "MH5"):
        for title, ways in (("leaf", ("leaf",)), ("all", CLOSED_WAYS)):
            trees = minimal_trees(found, name, ways)
            minimal[f"{name}, {title}"] = {str(n): [len(trees[n]), one_root(trees[n])] for n in lengths}
    first = next((trees for trees in minimal_trees(found, "MH4", CLOSED_WAYS) if trees), [])
    beyond = next((t for t in found if any("MH4 by transitions" in i and "MH4" not in i for i in t.values())), {})
    return {
        "longest": longest,
        "counts": {str(n): counts(found[n]) for n in lengths},
        "leaving": closure(found),
        "minimal": minimal,
        "smallest excluded": [list(tree) for tree in first],
        "smallest of transitions alone": [
            list(tree) for tree, i in beyond.items() if "MH4 by transitions" in i and "MH4" not in i
        ],
    }


def drawings(trees: list[list[int]]) -> str:
    """Trees as text, side by side."""
    blocks = [draw_text(LETTERS[: len(tree) - 1], tree).splitlines() for tree in trees]
    widths = [max(map(len, block)) for block in blocks]
    rows = zip(*blocks, strict=True)
    return "\n".join("    ".join(line.ljust(w) for line, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown(result: dict[str, Any]) -> str:
    """The tables of the page."""
    lengths = list(result["counts"])
    longest = lengths[-1]
    lines = ["| trees of … words | " + " | ".join(lengths) + " |", "| :-- |" + " --: |" * len(lengths)]
    rows: dict[str, Callable[[dict[str, Any]], Any]] = {"all": lambda c: c["trees"]}
    rows |= {f"in {name}": lambda c, name=name: c["in"][name] for name in CLASSES}
    rows |= {
        f"in MH4 and {name}": lambda c, name=name: c["in MH4 and"][name]
        for name in ("1EC", "planar", "well-nested, ≤ 1 gap", "well-nested")
    }
    rows |= {name: lambda c, name=name: c[name] for name in ("largest gap degree in MH4", "in MH4, mirrored not")}
    for name, value in rows.items():
        lines.append(f"| {name} | " + " | ".join(f"{value(result['counts'][n]):,}" for n in lengths) + " |")
    lines += ["", "| stays in when made smaller | " + " | ".join(WAYS) + " |", "| :-- |" + " :-- |" * len(WAYS)]
    for name, ways in result["leaving"].items():
        cells = [
            f"no: {' '.join(map(str, tree[1:]))}" if tree else f"yes, to {longest} words" for tree in ways.values()
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "| minimal trees of … words | " + " | ".join(lengths) + " |", "| :-- |" + " --: |" * len(lengths)]
    for name, row in result["minimal"].items():
        lines.append(f"| {name} | " + " | ".join(f"{row[n][0]:,} ({row[n][1]:,})" for n in lengths) + " |")
    for name in ("smallest excluded", "smallest of transitions alone"):
        lines += ["", "```text", drawings(result[name]), "```"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Enumerate, write the result and the drawings, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--longest", type=int, default=7, choices=range(4, 9), help="words (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT, help="a folder (default: %(default)s)")
    options = parser.parse_args()
    result = made_today() | study(options.longest)
    write_result(options.output / "small-trees.json", result)
    for tree in result["smallest excluded"]:
        with atomic_output(options.output / f"excluded-{''.join(map(str, tree[1:]))}.svg") as stream:
            stream.write(draw_svg(LETTERS[: len(tree) - 1], tree).encode())
    print(markdown(result), end="")


if __name__ == "__main__":
    raise SystemExit(run_script(main))
