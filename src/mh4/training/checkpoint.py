"""Files that training writes beside the model: its state, to resume from, and its log."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mh4.data.errors import DataError
from mh4.data.files import atomic_output
from mh4.data.sentence import Sentence
from mh4.models.checked import checked
from mh4.models.randomness import Randomness
from mh4.models.weight_average import WeightAverage
from mh4.parsers.model_files import LOG, STATE, misfit, read_state, read_tensors, write_tensors

from .schedule import Progress, check_progress

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # AdamW's state of a parameter


class Checkpoint:
    """Saves and restores the whole state of training, as one file, and keeps the log in step with it.

    The tensors are named ``network/NAME``, ``optimizer/MOMENT/NAME``, ``average/NAME`` and ``random/DEVICE``, where
    NAME is the name of a parameter; the header holds the `Progress` and a digest of the treebanks.
    """

    def __init__(
        self,
        folder: Path,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        average: WeightAverage,
        randomness: Randomness,
        treebanks: Sequence[Sentence],
    ) -> None:
        self.state, self.log = folder / STATE, folder / LOG
        self.network, self.optimizer, self.average = network, optimizer, average
        self.randomness = randomness
        digest = hashlib.sha256()
        for sentence in treebanks:
            digest.update(sentence.to_bytes())
        self.treebanks = digest.hexdigest()

    def save(self, progress: Progress) -> None:
        """Write the state as it is now."""
        sections: dict[str, dict[str, Tensor]] = {
            "network": self.network.state_dict(),
            "average": self.average.averages,
            "random": self.randomness.states(),
        }
        moments = self.optimizer.state_dict()["state"]
        for index, name in enumerate(self._optimized()):
            for moment, value in moments.get(index, {}).items():
                sections.setdefault(f"optimizer/{moment}", {})[name] = torch.as_tensor(value)
        tensors = {f"{part}/{name}": tensor for part, section in sections.items() for name, tensor in section.items()}
        write_tensors(self.state, tensors, {"treebanks": self.treebanks, **asdict(progress)})

    def load(self) -> Progress:
        """Restore the state that was saved last, and return the progress.

        DataError: The file is missing, damaged, or does not fit the model, or it belongs to other sentences.
        """
        path = self.state
        tensors, header = read_tensors(path), read_state(path)
        if "treebanks" not in header:
            raise DataError(f"{path}: holds no training state (start again with overwrite=True)")
        treebanks = header.pop("treebanks")
        try:
            if unknown := header.keys() - vars(Progress()).keys():
                raise ValueError(f"{min(unknown)}: unknown to this version")
            progress = checked(Progress, json.dumps(header))
            check_progress(progress)
        except ValueError as error:
            raise DataError(f"{path}: {error} (start again with overwrite=True)") from None
        if treebanks != self.treebanks:
            raise DataError(f"{path}: was trained or evaluated on other sentences; resume with the same treebanks")
        sections: dict[str, dict[str, Tensor]] = defaultdict(dict)
        for name, tensor in tensors.items():
            part, _, name = name.rpartition("/")
            sections[part][name] = tensor
        if problem := self._problem(sections):
            raise DataError(f"{path}: does not fit the model: {problem} (start again with overwrite=True)")
        try:
            self.randomness.restore(sections["random"])
        except (RuntimeError, TypeError):
            raise DataError(f"{path}: holds no state of the random numbers (start again with overwrite=True)") from None
        self.network.load_state_dict(sections["network"])
        for name, average in self.average.averages.items():
            average.copy_(sections["average"][name])
        state = self.optimizer.state_dict() | {"state": {}}
        numbers = {name: index for index, name in enumerate(self._optimized())}
        for moment in MOMENTS:
            for name, value in sections[f"optimizer/{moment}"].items():
                state["state"].setdefault(numbers[name], {})[moment] = value
        self.optimizer.load_state_dict(state)
        return progress

    def _problem(self, sections: Mapping[str, Mapping[str, Tensor]]) -> str | None:
        """The first tensor that is missing, superfluous, or of a wrong shape or type, and why; None if all fit."""
        wanted: dict[str, Mapping[str, Tensor]] = {
            "network": self.network.state_dict(),
            "average": self.average.averages,
            "random": {"cpu": self.randomness.on().get_state()},
        }
        parameters = dict(self.network.named_parameters())
        moved = sections.get(f"optimizer/{MOMENTS[0]}", {})  # a parameter that never had a gradient has no moments
        for moment in MOMENTS:
            wanted[f"optimizer/{moment}"] = {
                name: torch.zeros((), dtype=torch.float32) if moment == "step" else parameters[name]
                for name in moved
                if name in parameters
            }
        for part, section in wanted.items():
            found = {name: tensor for name, tensor in sections.get(part, {}).items() if name != "cuda"}
            if problem := misfit(found, section):
                return f"{part}/{problem}"
        return None

    def append(self, report: dict[str, Any]) -> None:
        """Add a line to the log. Call it before `save`: a log that is ahead of the state can be cut by `cut_log`."""
        with open(self.log, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(report) + "\n")

    def cut_log(self, last: int) -> None:
        """Drop the lines of the log beyond step ``last``; DataError if a line is not one of a log."""
        if not self.log.exists():
            return
        kept = []
        for number, line in enumerate(self.log.read_bytes().splitlines(keepends=True), start=1):
            if not line.endswith(b"\n"):  # training was interrupted while writing it
                break
            try:
                is_kept = json.loads(line)["step"] <= last
            except (ValueError, TypeError, KeyError, RecursionError):
                raise DataError(f"{self.log}:{number}: not a line of this log (remove it)") from None
            if is_kept:
                kept.append(line)
        with atomic_output(self.log) as stream:
            stream.write(b"".join(kept))

    def _optimized(self) -> list[str]:
        """Names of the parameters, in the order in which the optimizer numbers them."""
        names = {parameter: name for name, parameter in self.network.named_parameters()}
        return [names[parameter] for group in self.optimizer.param_groups for parameter in group["params"]]
