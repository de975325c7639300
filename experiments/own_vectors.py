"""What word vectors of the training text alone change: accuracy on dev with `--vectors` and without.

    python experiments/own_vectors.py UD/2.0/hu --work runs/own-vectors --seeds 1 2

The vectors are positive pointwise mutual information, reduced by a singular value decomposition (Levy, Goldberg and
Dagan 2015). They cover no word that the parser does not learn anyway, so accuracy should neither rise nor fall; only
vectors from far more text are worthwhile.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from grid_results import write_result
from kept_results import part_path
from provenance import made_with
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from scripting import positive, run_script

from mh4.api import configure
from mh4.data.conllu import read_conllu
from mh4.parsers.model_files import LOG
from mh4.training.job import TrainingJob
from mh4.training.running import run_training

FOLDER = Path(__file__).parent / "results" / "own-vectors"
WINDOW = 3  # words to each side
SMOOTHING = 0.75  # exponent of the counts of contexts


def vectors_of(sentences: Sequence[Sequence[str]], size: int) -> tuple[list[str], np.ndarray]:
    """The words, the most frequent first, and their vectors, (N, size)."""
    words = [word for word, _ in Counter(word for sentence in sentences for word in sentence).most_common()]
    index = {word: i for i, word in enumerate(words)}
    pairs: Counter[tuple[int, int]] = Counter()
    for sentence in sentences:
        ids = [index[word] for word in sentence]
        for i, word in enumerate(ids):
            pairs.update((word, other) for other in ids[max(0, i - WINDOW) : i] + ids[i + 1 : i + 1 + WINDOW])
    (rows, columns), counts = np.array([*pairs]).T, np.array([*pairs.values()], float)
    of_words, of_contexts = (np.bincount(own, counts, len(words)) for own in (rows, columns))
    contexts = of_contexts**SMOOTHING / (of_contexts**SMOOTHING).sum()
    information = np.log(counts / (of_words[rows] * contexts[columns]))
    matrix = csr_array((np.maximum(information, 0), (rows, columns)), shape=(len(words), len(words)))
    left, values, _ = svds(matrix, size, v0=np.ones(len(words)))
    return words, left * np.sqrt(values)


def write_vectors(path: Path, treebank: Path, size: int) -> None:
    """Write a file of vectors for the lower-cased words of a treebank."""
    sentences = [[form.lower() for form in sentence.forms] for sentence in read_conllu(treebank)]
    words, vectors = vectors_of(sentences, size)
    with path.open("w", encoding="utf-8") as stream:
        print(len(words), size, file=stream)
        for word, vector in zip(words, vectors, strict=True):
            print(word, *(f"{number:.5f}" for number in vector), file=stream)


def run(treebank: Path, work: Path, preset: str, seed: int, steps: int, vectors: Path | None) -> dict[str, Any]:
    """Train, or resume; return the best dev scores, and UAS and LAS at each evaluation."""
    config = configure(preset=preset, seed=seed, vectors=vectors, settings={"max_steps": steps})
    folder = work / f"{treebank.name}-{preset}-{seed}-{'without' if vectors is None else 'with'}"
    train, dev = (part_path(treebank, part) for part in ("train", "dev"))
    progress = run_training(TrainingJob(train, dev, folder, config, threads=1, resume=True))
    reports = [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]
    return {
        "uas": progress.best_uas,
        "las": progress.best_las,
        "step": progress.best_step,
        "curve": [[report[key] for key in ("step", "dev_uas", "dev_las")] for report in reports],
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebanks", nargs="+", type=Path, metavar="TREEBANK", help="folders with train and dev files")
    parser.add_argument("--work", type=Path, default=Path("runs/own-vectors"), help="models, outside the repository")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--size", type=positive, default=50, help="of the vectors")
    parser.add_argument("--steps", type=positive, default=100_000, help="at most")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    arguments = parser.parse_args()
    for treebank in arguments.treebanks:
        arguments.work.mkdir(parents=True, exist_ok=True)
        path = arguments.work / f"{treebank.name}-{arguments.size}.vec"
        write_vectors(path, part_path(treebank, "train"), arguments.size)
        for seed in arguments.seeds:
            result = {
                "treebank": treebank.name,
                "preset": arguments.preset,
                "seed": seed,
                "size": arguments.size,
                "steps": arguments.steps,
                "with": run(treebank, arguments.work, arguments.preset, seed, arguments.steps, path),
                "without": run(treebank, arguments.work, arguments.preset, seed, arguments.steps, None),
                **made_with("cpu"),
            }
            write_result(arguments.results / f"{treebank.name}-{arguments.preset}-{seed}.json", result)
            print(json.dumps({key: result[key] for key in ("treebank", "seed", "with", "without")}))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
