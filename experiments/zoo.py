"""Train, score and package a model for every treebank of a release of Universal Dependencies.

    python experiments/zoo.py UD_FOLDER -o zoo --preset fast --threads 1
    python experiments/zoo.py UD_FOLDER -o zoo --cluster tcp://host:8786 --licence hu="CC BY-NC-SA 3.0"

Options that are not listed by ``--help`` are those of `mh4 train`. A treebank is a set of files in any folder below
UD_FOLDER, ``NAME-ud-train.conllu``, ``-dev`` and perhaps ``-test``; training sets in several files are joined. Each
model is calibrated on its development set and scored on it and on the test set, from gold tokens and from raw text.
The output folder then holds packages and the ``index.json`` that `mh4 download` reads; ``--results`` gets ``zoo.json``
and a page with the table. Finished models are not trained again; interrupted trainings resume, even after SIGKILL.
Treebanks without FORMs, training or development sets are skipped, and the page says why. Workers of a cluster need one
thread each, and the folders under the same paths.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provenance import made_with
from scripting import run_script

from mh4.cli import app
from mh4.data.files import atomic_output, open_input
from mh4.data.licences import find_licence
from mh4.models.checked import as_json
from mh4.parsers.model_files import LOG, write_json
from mh4.parsers.packages.index import Entry, read_index
from mh4.parsers.packages.packaging import package
from mh4.service.cluster import connect, silence_dask

_FILE = re.compile(r"(?P<name>.+?)(?:-ud)?-(?P<part>train|dev|test)(?P<piece>-[\w-]+)?\.conllu(?:\.(?:gz|xz|bz2))?")
_FORM = 1
_COLUMNS = 10
FEW = 0.5  # least share of words with a FORM; treebanks below it are distributed without their text


@dataclass(frozen=True)
class Treebank:
    """The files of a treebank."""

    name: str
    train: tuple[Path, ...] = ()
    dev: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()

    @property
    def size(self) -> int:
        """The size of the training files in bytes."""
        return sum(path.stat().st_size for path in self.train)


@dataclass(frozen=True)
class Options:
    """Options for all treebanks."""

    output: Path
    training: tuple[str, ...]  # options of `mh4 train`
    licences: dict[str, str]

    def model(self, treebank: Treebank) -> Path:
        """The model folder of a treebank."""
        return self.output / "models" / treebank.name

    def command(self, treebank: Treebank) -> list[str]:
        """The training command of a treebank; several training sets are joined in the output folder."""
        (train, *more), (dev, *_) = treebank.train, treebank.dev
        train = self.output / "treebanks" / f"{treebank.name}-ud-train.conllu" if more else train
        return ["mh4", "train", str(train), "--dev", str(dev), "-o", str(self.model(treebank)), *self.training]


def find_treebanks(folder: Path) -> list[Treebank]:
    """All treebanks below a folder; SystemExit if two have the same name, or a file is there twice."""
    found: dict[str, dict[str, list[Path]]] = {}
    homes: dict[str, Path] = {}
    files: dict[tuple[str, ...], Path] = {}
    for path in sorted(folder.rglob("*.conllu*")):
        if matched := _FILE.fullmatch(path.name):
            name = matched["name"]
            if homes.setdefault(name, path.parent) != path.parent:
                raise SystemExit(f"two treebanks are called {name}: {homes[name]} and {path.parent}")
            if (other := files.setdefault(matched.groups(), path)) != path:
                raise SystemExit(f"{other} and {path} are the same part of {name} (remove one)")
            found.setdefault(name, {}).setdefault(matched["part"], []).append(path.resolve())
    return [Treebank(name, **{part: tuple(paths) for part, paths in parts.items()}) for name, parts in found.items()]


def why_not(treebank: Treebank) -> str | None:
    """The reason why a treebank cannot be used for training; None if it can."""
    if not treebank.train:
        return "no training set"
    if len(treebank.dev) != 1:
        return "no development set" if not treebank.dev else "several development sets"
    words = forms = 0
    with open_input(treebank.train[0]) as stream:
        for line in stream:
            columns = line.split(b"\t")
            if len(columns) == _COLUMNS:
                words += 1
                forms += columns[_FORM] != b"_"
    return None if forms > FEW * words else "its words are not in its files (FORM is _)"


def is_done(treebank: Treebank, options: Options) -> bool:
    """Whether the package of a treebank exists; SystemExit if it was trained by another command."""
    for entry in read_index(options.output).models:
        if entry.name == treebank.name and (options.output / entry.file).is_file():
            if entry.meta.get("command") != shlex.join(options.command(treebank)):
                raise SystemExit(
                    f"{entry.file}: was made by {entry.meta.get('command')} (choose another output folder)"
                )
            return True
    return False


def complete(treebank: Treebank, options: Options) -> str:
    """Train, or resume, and package; return an error message, or ""."""
    command = options.command(treebank)
    before = sys.argv
    try:
        if len(treebank.train) > 1:
            _join(treebank.train, Path(command[2]))
        sys.argv = command  # recorded in the model as its origin
        app([*command[1:], "--resume"], standalone_mode=False)
        licence = options.licences.get(treebank.name) or find_licence(treebank.train[0])
        gold = [*treebank.dev, *treebank.test]
        package(options.model(treebank), options.output, name=treebank.name, licence=licence, gold=gold)
        write_json(_provenance(options.output, treebank.name), made_with("cpu"))
    except ValueError as error:
        return " ".join(str(error).split())
    finally:
        sys.argv = before
    return ""


def _provenance(output: Path, name: str) -> Path:
    """The file that tells which code made a model, and on which machine; models of earlier versions have none."""
    return output / "models" / f"{name}.json"


def _join(paths: Sequence[Path], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(target) as output:
        for path in paths:
            with open_input(path) as stream:
                output.writelines(stream)


def run(treebanks: Sequence[Treebank], options: Options, cluster: str | None) -> Iterator[tuple[Treebank, str]]:
    """Complete treebanks, here or on a cluster; yield each with its error message, if any."""
    if cluster is None:
        for treebank in sorted(treebanks, key=lambda one: one.size):
            yield treebank, complete(treebank, options)
        return
    from distributed import as_completed

    silence_dask()
    with connect(cluster) as client:
        largest_first = sorted(treebanks, key=lambda one: -one.size)
        futures = {client.submit(complete, one, options, pure=False): one for one in largest_first}
        for future in as_completed(futures):
            error = future.exception()
            yield futures[future], future.result() if error is None else f"{type(error).__name__}: {error}"


def write_results(folder: Path, output: Path, names: set[str], left_out: dict[str, str]) -> None:
    """Write zoo.json and the page, README.md."""
    models = [_summary(entry, output) for entry in read_index(output).models if entry.name in names]
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_output(folder / "zoo.json") as stream:
        stream.write(as_json({"models": models, "left_out": left_out}))
    with atomic_output(folder / "README.md") as stream:
        stream.write("\n".join(_page(models, left_out)).encode())


def _summary(entry: Entry, output: Path) -> dict[str, Any]:
    log = (output / "models" / entry.name / LOG).read_text(encoding="utf-8").splitlines()
    options = shlex.split(entry.meta["command"])
    provenance = _provenance(output, entry.name)
    return {
        "name": entry.name,
        "licence": entry.licence,
        "size": entry.size,
        "options": options[options.index("-o") + 2 :],
        "version": entry.meta["version"],
        "minutes": round(json.loads(log[-1])["seconds"] / 60, 1),
        "train_words": entry.meta["treebank"]["train"]["words"],
        "evaluation": entry.meta["evaluation"],
        **(json.loads(provenance.read_text(encoding="utf-8")) if provenance.exists() else {}),
    }


def _page(models: Sequence[dict[str, Any]], left_out: dict[str, str]) -> Iterator[str]:
    yield "# Models of a release of Universal Dependencies"
    yield ""
    yield "Made by `python experiments/zoo.py`. F1 with its 95 % interval (bootstrap over sentences), from gold tokens"
    yield "and from raw text; words per second of processor time."
    columns = ("model", "licence of the treebank", "training words", "minutes", "MB", "file", "UAS", "LAS", "UPOS")
    of_text = ("words of text", "sentences of text", "LAS of text", "words/s", "measured")
    yield ""
    yield f"| {' | '.join([*columns, *of_text])} |"
    yield f"|---|---|{'---:|' * 3}---|{'---:|' * 7}---|"
    for model in models:
        size, licence = f"{model['size'] / 1e6:.1f}", model["licence"] or "unknown"
        row = [model["name"], licence, f"{model['train_words']:,}", str(model["minutes"]), size]
        for scores in model["evaluation"]:
            text = scores.get("text", {})
            row += [scores["file"], *(_cell(scores["tokens"].get(metric)) for metric in ("UAS", "LAS", "UPOS"))]
            row += [_cell(text.get(metric)) for metric in ("Words", "Sentences", "LAS")]
            speed = f"{scores['words_per_second']:,}"
            yield f"| {' | '.join([*row, speed, scores['measured']])} |"
            row = [""] * 5
    yield ""
    if left_out:
        yield from ("Without a model:", "", *(f"- {name}: {reason}" for name, reason in left_out.items()), "")


def _cell(score: list[float] | None) -> str:
    return "–" if score is None else "{:.2f} ({:.2f}–{:.2f})".format(*score)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the missing parts of the zoo."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("folder", type=Path, metavar="UD_FOLDER")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for models, packages and their index")
    parser.add_argument("--results", type=Path, help="folder for zoo.json and the page; default: the output folder")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these treebanks only")
    parser.add_argument("--cluster", metavar="local|ADDRESS", help="several treebanks at once, on Dask workers")
    parser.add_argument(
        "--licence", action="append", default=[], metavar="NAME=LICENCE", help="where no file beside a treebank says it"
    )
    given, training = parser.parse_known_args(arguments)
    if not all("=" in one for one in given.licence):
        parser.error("--licence needs NAME=LICENCE")
    licences = dict(one.split("=", 1) for one in given.licence)
    options = Options(given.output.resolve(), tuple(training), licences)
    treebanks = [one for one in find_treebanks(given.folder) if not given.only or one.name in given.only]
    if not treebanks:
        named = " of these names" if given.only else ""
        raise SystemExit(f"{given.folder}: holds no treebanks{named} (files NAME-ud-train.conllu)")
    left_out = {one.name: reason for one in treebanks if (reason := why_not(one))}
    for name, reason in left_out.items():
        print(f"{name}: skipped: {reason}", flush=True)
    wanted = [one for one in treebanks if one.name not in left_out]
    missing = [one for one in wanted if not is_done(one, options)]
    results = given.results or given.output
    for treebank, problem in run(missing, options, given.cluster):
        print(f"{treebank.name}: {problem or 'done'}", flush=True)
        if problem:
            left_out[treebank.name] = problem
        write_results(results, options.output, {one.name for one in wanted}, left_out)
    write_results(results, options.output, {one.name for one in wanted}, left_out)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
