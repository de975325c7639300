"""The origin of a model: the meta.json in its folder, for people and for other programs."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mh4 import __version__
from mh4.data.licences import find_licence
from mh4.parsers.model_files import META, write_json

from .treebanks import Treebank

_UD_FILE = re.compile(r"([a-z]{2,3})(_[a-z0-9]+)?-ud-")

OnEvaluation = Callable[[dict[str, Any]], None]


def noting_origin(
    folder: Path,
    train: Sequence[Treebank],
    dev: Sequence[Treebank],
    command: str | None,
    on_evaluation: OnEvaluation | None,
) -> OnEvaluation:
    """A callback that writes meta.json when an evaluation is the best so far, and then calls ``on_evaluation``.

    The file holds ``language`` (if the treebanks are named as in UD and all have the same, else null), ``licence``
    (from files beside the treebanks, else null; "in part unknown" if only some have one), ``treebank`` (file, sentences
    and words of train and dev; lists with a name for each treebank if there are several), ``dev`` (UAS and LAS, means
    over the treebanks), ``version`` (of mh4), ``command`` (of ``mh4 train``; null in Python, where the arguments of the
    program may be private) and ``created``.
    """
    languages = {named and named[1] for named in (_UD_FILE.match(Path(one.path).name) for one in train)}
    licences = dict.fromkeys(find_licence(one.path) for one in train)
    licence = " and ".join(filter(None, licences))
    origin = {
        "language": languages.pop() if len(languages) == 1 else None,
        "licence": f"{licence}, in part unknown" if licence and None in licences else licence or None,
        "treebank": {part: _described(treebanks) for part, treebanks in (("train", train), ("dev", dev))},
        "version": __version__,
        "command": command,
    }

    def note(report: dict[str, Any]) -> None:
        if report["best"]:
            scores = {name: round(report[f"dev_{name}"], 2) for name in ("uas", "las")}
            now = datetime.now(UTC).isoformat(timespec="seconds")
            write_json(folder / META, {**origin, "dev": scores, "created": now})
        if on_evaluation is not None:
            on_evaluation(report)

    return note


def _described(treebanks: Sequence[Treebank]) -> Any:
    all_of_them = [
        ({} if name is None else {"name": name})
        | {"file": Path(path).name, "sentences": len(sentences), "words": sum(map(len, sentences))}
        for name, path, sentences in treebanks
    ]
    return all_of_them[0] if treebanks[0].name is None else all_of_them
