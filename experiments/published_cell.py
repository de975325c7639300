"""DyNet's LSTM cell or its Adam in place of ours: do they explain the cells of Table 4 that are missed?

    python experiments/published_cell.py UD/2.0/hu --decoders mst mh4-two 1ec --seeds 1 2 3 --work runs/published-cell

DyNet's coupled LSTM differs from `mh4.models.layers.BiLSTMLayer` in three ways: the forget gate is one minus the input
gate; the cell takes part in both gates, by full matrices (peepholes); and dropout is one mask for each sequence and
direction on input, state and, in the gates, cell (Gal and Ghahramani 2016), instead of one for both directions on the
input and DropConnect on the recurrent weights. DyNet's Adam (``--replace adam``, or ``--replace cell adam`` for both)
differs where the learning rate falls: it starts with new moments but keeps its count of steps, so that nothing corrects
for moments that start at 0 and the next thousand steps are longer. Trains with preset ``paper`` and writes UAS and LAS
on dev to ``experiments/results/published-cell``; runs that have a result are skipped. ``--report`` prints the table.

``--set length_noise=20 --set single_root=false --results FOLDER``, on treebanks without subtypes of relations, also
forms batches and reads trees as the toolkit does.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean
from typing import Any

from coupled_lstm import CoupledBiLSTM
from grid_results import write_result
from kept_results import describe_data, part_path, read_grouped, read_kept, shown
from provenance import made_with
from scripting import run_script

from mh4.api import configure
from mh4.models import bilstm_encoder, word_encoder
from mh4.parsers.config import parse_settings
from mh4.training.job import TrainingJob
from mh4.training.running import run_training
from mh4.training.schedule import Progress
from mh4.training.trainer import Trainer

FOLDER = Path(__file__).parent / "results" / "published-cell"


def use_published_cell() -> None:
    """Replace our BiLSTM in every model made afterwards."""
    for module in (bilstm_encoder, word_encoder):
        module.BiLSTM = CoupledBiLSTM  # type: ignore[attr-defined]


def use_published_adam() -> None:
    """Let every trainer made afterwards set Adam's moments to 0 when the learning rate falls."""
    make = Trainer.__init__

    def make_restarting(trainer: Trainer, *arguments: Any, **options: Any) -> None:
        make(trainer, *arguments, **options)
        move_on = trainer.schedule.move_on

        def restart(progress: Progress) -> bool:
            decays = move_on(progress)
            if decays:
                for state in trainer.optimizer.state.values():
                    for moment in ("exp_avg", "exp_avg_sq"):
                        state[moment].zero_()
            return decays

        trainer.schedule.move_on = restart  # type: ignore[method-assign]

    Trainer.__init__ = make_restarting  # type: ignore[method-assign]


REPLACED = {"cell": use_published_cell, "adam": use_published_adam}


def train(treebank: Path, decoder: str, seed: int, settings: dict[str, str], folder: Path) -> dict[str, Any]:
    """Do one run of ``paper``, resuming it if it was stopped."""
    config = configure(decoder=decoder, preset="paper", seed=seed, settings=settings)
    parts = (part_path(treebank, part) for part in ("train", "dev"))
    progress = run_training(TrainingJob(*parts, folder, config, device="cpu", threads=1, resume=True))
    return {
        "uas": round(progress.best_uas, 2),
        "las": round(progress.best_las, 2),
        "best step": progress.best_step,
        "steps": progress.step,
        "seconds": round(progress.seconds),
    }


def report(results: Path) -> str:
    """The table in Markdown, a row for each treebank and decoder."""
    rows = [
        f"| {treebank} | `{decoder}` | {len(own)} | {shown([run['uas'] for run in own])} "
        f"| {shown([run['las'] for run in own])} | {mean(run['steps'] for run in own):.0f} |"
        for (treebank, decoder), own in read_grouped(results, "treebank", "decoder").items()
    ]
    return "\n".join(["| treebank | decoder | seeds | UAS | LAS | steps |", "|---|---|---:|---|---|---:|", *rows])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebanks", type=Path, nargs="*", help="folders with train and dev files")
    parser.add_argument("--decoders", nargs="+", default=["mst"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--replace", nargs="+", choices=REPLACED, default=["cell"], help="what is DyNet's")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the model")
    parser.add_argument("--work", type=Path, default=Path("runs/published-cell"), help="models, outside the repository")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    if not (arguments.treebanks or arguments.report):
        parser.error("a treebank is needed to train")
    settings = parse_settings(arguments.set)
    for part in arguments.replace:
        REPLACED[part]()
    arguments.results.mkdir(parents=True, exist_ok=True)
    for treebank in arguments.treebanks:
        for decoder in arguments.decoders:
            for seed in arguments.seeds:
                name = f"{treebank.name}-{decoder}-{seed}"
                path = arguments.results / f"{name}.json"
                own = {"treebank": treebank.name, "decoder": decoder, "seed": seed, "settings": settings or None}
                own["replaced"] = None if arguments.replace == ["cell"] else arguments.replace
                data = describe_data(treebank, "train", "dev")
                if read_kept(path, own, data) is not None:
                    continue
                result = own | {"data": data} | train(treebank, decoder, seed, settings, arguments.work / name)
                write_result(path, {**result, **made_with("cpu")})
    if arguments.report:
        print(report(arguments.results))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
