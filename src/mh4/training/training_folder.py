"""The folder into which a training writes its model; an earlier model stays until a new one replaces it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mh4.machine import Terminated
from mh4.parsers.checksums import remove_files, write_file
from mh4.parsers.folder import ModelFolder
from mh4.parsers.model_files import CALIBRATION, STATE, WEIGHTS

_NEEDED_FOR = {CALIBRATION: "a calibration for confidence"}


class TrainingFolder:
    """Writes models, each better than the one before; the first replaces an earlier model once it is complete.

    Parameters
    ----------
    path : Path
    outdated : collection of str
        Files of another training, which the first model replaces.
    define : callable, optional
        Writes the files that are fixed before training starts into the folder that it is called with; called just
        before the first model is written.
    wanted : collection of str
        Files that are written when training ends, and without which a model lacks a function.
    goes_on : bool
        Whether an interrupted training can be resumed.
    """

    def __init__(
        self,
        path: Path,
        outdated: Collection[str] = (),
        define: Callable[[ModelFolder], None] | None = None,
        wanted: Collection[str] = (),
        goes_on: bool = True,
    ) -> None:
        self.path, self.goes_on = path, goes_on
        self._outdated, self._define, self._wanted = tuple(outdated), define, set(wanted)
        self._kept: Mapping[str, bytes] = {}
        self._earlier = self._weights() if WEIGHTS in self._outdated else None

    @property
    def holds_another(self) -> bool:
        """Whether the folder holds the model of another training, which has yet to be replaced."""
        return self._earlier is not None and self._weights() == self._earlier

    def _weights(self) -> tuple[int, int] | None:
        """What tells the present file of weights from its successor; None if there is none."""
        try:
            found = (self.path / WEIGHTS).stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def keep(self, files: Mapping[str, bytes]) -> None:
        """Write files beside the model, but not before the first model of this training."""
        if self._define is not None or self._outdated:
            self._kept = files
        else:
            _write(files, self.path)

    def save(self, write: Callable[[ModelFolder], None]) -> None:
        """Write the best model so far by calling ``write``; the calibration of an earlier model is removed."""
        folder = ModelFolder(self.path)
        if self._define is None and not self._outdated:
            remove_files(self.path, {CALIBRATION})
            write(folder)
            return
        with folder.renewed((*self._outdated, CALIBRATION)) as place:
            if self._define is not None:
                self._define(place)
            _write(self._kept, place.path)
            write(place)
        self._outdated, self._define, self._kept = (), None, {}

    def state(self) -> str:
        """Describe the contents of the folder, for messages."""
        if self.holds_another:
            return f"{self.path} holds the model that was there before"
        if not (self.path / WEIGHTS).exists():
            return "no model has been saved yet"
        missing = [needed for name, needed in _NEEDED_FOR.items() if name in self._wanted and self._lacks(name)]
        without = f", without {' and '.join(missing)}" if missing else ""
        return f"the best model so far is in {self.path}{without}"

    def _lacks(self, name: str) -> bool:
        return not (self.path / name).exists()

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Add a note to an interruption that says what the folder holds, and how to go on."""
        try:
            yield
        except (KeyboardInterrupt, Terminated) as interruption:
            if self.holds_another or self._lacks(WEIGHTS):
                how = "start again"
            elif not self.goes_on:
                how = "start again with overwrite=True"
            else:
                how = "start over with resume=True" if self._lacks(STATE) else "continue with resume=True"
            interruption.add_note(f"{self.state()}; {how}")
            raise


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        write_file(folder / name, content)
