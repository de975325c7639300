"""Where a model comes from: the meta.json of its folder, for people and for other programs."""

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mh4 import __version__
from mh4.data.licences import find_licence
from mh4.data.sentence import Sentence
from mh4.parsers.model_files import META, write_json

_UD_FILE = re.compile(r"([a-z]{2,3})(_[a-z0-9]+)?-ud-")

OnEvaluation = Callable[[dict[str, Any]], None]
Treebank = tuple[str | Path, Sequence[Sentence]]


def noting_origin(folder: Path, train: Treebank, dev: Treebank, on_evaluation: OnEvaluation | None) -> OnEvaluation:
    """A callback for evaluations that writes meta.json whenever the model is the best so far, then calls another.

    The file holds ``language`` (of a treebank named as in UD, else null), ``licence`` (as files beside the treebank
    say, else null), ``treebank`` (file, sentences and words of train and dev), ``dev`` (UAS and LAS), ``version`` (of
    mh4), ``command`` and ``created``.
    """
    named = _UD_FILE.match(Path(train[0]).name)
    program, *arguments = sys.argv
    origin = {
        "language": named and named[1],
        "licence": find_licence(train[0]),
        "treebank": {part: _describe(*treebank) for part, treebank in (("train", train), ("dev", dev))},
        "version": __version__,
        "command": shlex.join([Path(program).name, *arguments]),
    }

    def note(report: dict[str, Any]) -> None:
        if report["best"]:
            scores = {name: round(report[f"dev_{name}"], 2) for name in ("uas", "las")}
            now = datetime.now(UTC).isoformat(timespec="seconds")
            write_json(folder / META, {**origin, "dev": scores, "created": now})
        if on_evaluation is not None:
            on_evaluation(report)

    return note


def _describe(path: str | Path, sentences: Sequence[Sentence]) -> dict[str, Any]:
    return {"file": Path(path).name, "sentences": len(sentences), "words": sum(map(len, sentences))}
