"""Coverage against cost of MH_k for k = 3, 4, 5 and more, beside 1-endpoint-crossing and the MH4 transition system.

    python experiments/mh_k_coverage.py UD/2.0/*/*-ud-train.conllu UD/2.0/*/*-ud-dev.conllu

Writes results/mh4-class/coverage.json and prints the tables of MH4_CLASS.md: the number of trees in each treebank by
the number of heads they need, trees that k = 5 covers and k = 4 does not, and the cost of a chart. A tree may have any
number of words below the root, as in Table 3 of Gómez-Rodríguez, Shi and Lee (2018), and arcs from the root can be
crossed.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from grid_results import write_result
from mh_k import best_tree, chart_size, heads_needed
from provenance import made_today
from scripting import run_script

from mh4.data.conllu import read_conllu
from mh4.decoders import get_decoder
from mh4.decoders.one_endpoint_crossing import is_one_endpoint_crossing
from mh4.oracles.mh4 import is_derivable

OUTPUT = Path(__file__).parent / "results" / "mh4-class" / "coverage.json"
COMPARED = (3, 4, 5)  # heads
LENGTHS = (10, 20, 40)  # words, for chart sizes
TIMED_PLAIN, TIMED_COMPILED = 12, 40  # words
DECODERS = {3: "mh3", 4: "mh4-two", "1EC": "1ec-first-order"}


def coverage(path: str) -> dict[str, Any]:
    """Counts for one treebank, and the names of sentences that are in one class but not in another."""
    needed: Counter[int] = Counter()
    words = one_endpoint = derivable = 0
    names: dict[str, list[str]] = {"needs 5": [], "needs more": [], "transitions only": [], "chart only": []}
    joint: Counter[str] = Counter()
    for sentence in read_conllu(path, trees="required"):
        heads = sentence.padded_heads
        least, crossing, built = heads_needed(heads), is_one_endpoint_crossing(heads), is_derivable(heads)
        words += len(sentence)
        needed[least] += 1
        one_endpoint += crossing
        derivable += built
        joint[f"{'in' if least <= 4 else 'out of'} MH4, {'in' if crossing else 'out of'} 1EC"] += 1
        joint[f"{'in' if least <= 5 else 'out of'} MH5, {'in' if crossing else 'out of'} 1EC"] += 1
        if least > 4:
            names["needs 5" if least == 5 else "needs more"].append(sentence.label)
        if built != (least <= 4):
            names["transitions only" if built else "chart only"].append(sentence.label)
    return {
        "sentences": needed.total(),
        "words": words,
        "heads_needed": {str(k): needed[k] for k in sorted(needed)},
        "1EC": one_endpoint,
        "transition_system": derivable,
        "joint": dict(sorted(joint.items())),
        "names": names,
    }


def fastest(run: Any, repeats: int = 5) -> float:
    """Milliseconds of the fastest of several calls, after a first one for compilation."""
    run()
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return 1000 * min(times)


def costs() -> dict[str, Any]:
    """Chart sizes, and times of the plain chart for each k and of the compiled decoders."""
    arcs = np.random.default_rng(0).normal(size=(TIMED_COMPILED + 2, TIMED_COMPILED + 2))
    plain = arcs[: TIMED_PLAIN + 1, : TIMED_PLAIN + 1]
    found: dict[str, Any] = {}
    for k in COMPARED:
        sizes = {str(n): dict(zip(("items", "steps"), chart_size(n, k), strict=True)) for n in LENGTHS}
        found[f"MH{k}"] = {"chart": sizes, "plain_ms": fastest(lambda k=k: best_tree(plain, k))}
    for k, name in DECODERS.items():
        decoder = get_decoder(name, single_root=False)
        scores = np.zeros((len(decoder.channels), *arcs.shape), np.float32)
        bonus = arcs.astype(np.float32)
        row = found.setdefault(f"MH{k}" if isinstance(k, int) else k, {})
        row["decoder"] = name
        row["decoder_ms"] = fastest(lambda d=decoder, s=scores, b=bonus: d.decode(s, b), 20)
    return found


def markdown(result: dict[str, Any]) -> str:
    """The tables of the page."""
    lines = [
        "| % of sentences in | sentences | k = 3 | k = 4 | k = 5 | k = 6 | 1EC | MH4 by transitions | most heads |"
    ]
    lines += ["| :-- |" + " --: |" * 8]
    for name, row in result["treebanks"].items():
        needed = {int(k): count for k, count in row["heads_needed"].items()}
        within = [sum(count for least, count in needed.items() if least <= k) for k in (3, 4, 5, 6)]
        counts = [*within, row["1EC"], row["transition_system"]]
        shares = " | ".join(f"{100 * count / row['sentences']:.2f}" for count in counts)
        lines.append(f"| {name} | {row['sentences']} | {shares} | {max(needed)} |")
    lines += ["", "| sentences | outside MH4 | of these in MH5 | of these in 1EC | outside 1EC, in MH4 | outside MH5 |"]
    lines[-1] += " outside 1EC, in MH5 | in MH5, outside 1EC and MH4 |"
    lines += ["| :-- |" + " --: |" * 7]
    for name, row in result["treebanks"].items():
        joint = {key: row["joint"].get(key, 0) for key in _JOINT}
        five = row["heads_needed"].get("5", 0)
        mh4_only, mh5_only = joint["in MH4, out of 1EC"], joint["in MH5, out of 1EC"]
        outside4 = joint["out of MH4, in 1EC"] + joint["out of MH4, out of 1EC"]
        outside5 = joint["out of MH5, in 1EC"] + joint["out of MH5, out of 1EC"]
        cells = (outside4, five, joint["out of MH4, in 1EC"], mh4_only, outside5, mh5_only, mh5_only - mh4_only)
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    lines += ["", "| | time | " + " | ".join(f"steps, {n} words" for n in LENGTHS)]
    lines[-1] += f" | plain chart, {TIMED_PLAIN} words | compiled decoder, {TIMED_COMPILED} words |"
    lines += ["| :-- | :-- |" + " --: |" * (len(LENGTHS) + 2)]
    for name, row in result["costs"].items():
        steps = [f"{row['chart'][str(n)]['steps']:,}" if "chart" in row else "" for n in LENGTHS]
        plain = f"{row['plain_ms']:.0f} ms" if "plain_ms" in row else ""
        compiled = f"{row['decoder_ms']:.2f} ms (`{row['decoder']}`)" if "decoder" in row else ""
        exponent = name[-1] if name.startswith("MH") else "4"
        lines.append(f"| {name} | O(n^{exponent}) | {' | '.join(steps)} | {plain} | {compiled} |")
    return "\n".join(lines) + "\n"


_JOINT = [f"{a} MH{k}, {b} 1EC" for k in (4, 5) for a in ("in", "out of") for b in ("in", "out of")]


def main() -> None:
    """Count, time, write the result and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebanks", nargs="+", metavar="TREEBANK", help="CoNLL-U files with gold trees")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT, help="default: %(default)s")
    options = parser.parse_args()
    result = {
        **made_today(),
        "costs": costs(),
        "treebanks": {Path(path).stem: coverage(path) for path in options.treebanks},
    }
    write_result(options.output, result)
    print(markdown(result), end="")


if __name__ == "__main__":
    raise SystemExit(run_script(main))
