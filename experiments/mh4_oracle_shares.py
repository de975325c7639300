"""Shares of the reductions in the computations of two MH4 oracles, beside a re-implementation of the published one.

python experiments/mh4_oracle_shares.py UD/2.0/hu/hu-ud-train.conllu -o experiments/results/mh4-oracle.json
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from provenance import made_with
from scripting import run_script

from mh4.data.files import atomic_output
from mh4.oracles.mh4 import POLICIES, optimal_computation
from mh4.training.treebanks import read_gold

PUBLISHED = {"la": 32, "la'": 28, "ra": 24, "ra2": 14}  # per cent, Hungarian, up to 25 words
LONGEST = 25


def shares(path: Path, policy: str) -> dict[str, float]:
    """The share of each reduction, in per cent."""
    counts = Counter(
        transition
        for sentence in read_gold(path)
        if len(sentence) <= LONGEST
        for transition in optimal_computation(sentence.padded_heads, policy=policy)
    )
    del counts["shift"]
    return {transition: round(100 * count / counts.total(), 1) for transition, count in counts.most_common()}


def main() -> None:
    """Count, print and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    found = {policy: shares(options.treebank, policy) for policy in POLICIES}
    result = {"treebank": options.treebank.name, **made_with("cpu"), "published": PUBLISHED, **found}
    text = json.dumps(result, indent=1, ensure_ascii=False)
    print(text)
    if options.output:
        with atomic_output(options.output) as stream:
            stream.write(text.encode())


if __name__ == "__main__":
    raise SystemExit(run_script(main))
