"""Packages a model folder with its card, and adds the package to the index of its folder."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.files import check_output, failure_reason
from mh4.data.folders import is_folder_name
from mh4.data.licences import is_non_commercial
from mh4.data.sentence import Sentence
from mh4.data.text import text_of
from mh4.machine import processor
from mh4.models.checked import as_json
from mh4.trees.significance import compare

from ..base import Parser
from ..checksums import SUMS, digest, listing, read_file
from ..folder import ENCODER, ModelFolder
from ..model_files import CALIBRATION, CONFIG, META, VOCABULARY, WEIGHTS
from ..ownership import without_owner
from ..registry import load
from ..segmenter import SEGMENTER_FILES
from ..sources import words_alone
from .archive import pack
from .cache import find_model
from .card import CARD, SHOWN, make_card
from .index import NAME, SUFFIX, Entry, add_to_index

_OF_SEGMENTERS = {"Tokens", "Sentences", "Words"}
_COLUMNS = {"UPOS": "upos", "XPOS": "xpos", "UFeats": "feats", "Lemmas": "lemmas", "MLAS": "feats", "BLEX": "lemmas"}


def package(
    model: str | Path,
    output: str | Path,
    *,
    name: str | None = None,
    licence: str | None = None,
    gold: Sequence[str | Path] = (),
    device: str = "auto",
    threads: int | None = None,
) -> Entry:
    """Package a model for others.

    Parameters
    ----------
    model
        The model folder, or the name of a downloaded model.
    output
        A file ``NAME.mh4.zip``, or a folder, whose ``index.json`` then lists the package.
    name : str, optional
        Name of the package; by default that of the output file or, if the output is a folder, of the model folder.
    licence : str, optional
        Licence of the treebank; by default the one that was found beside the treebank in training.
    gold : sequence of paths
        CoNLL-U files with gold trees, for the scores on the card.
    device, threads
        See `mh4.load`; used only for scoring.

    Returns
    -------
    Entry
        The package's entry in an index.

    Raises
    ------
    DataError
        The model or a treebank is missing or damaged, the model is being trained, or the output cannot be written.
    ValueError
        The name of the package or of its file is invalid.
    """
    folder = ModelFolder(find_model(model))
    _ = folder.config
    listed = is_folder_name(str(output)) or not Path(output).suffix
    if not (listed or str(output).endswith(SUFFIX)):
        raise ValueError(f"{output}: a package must be named NAME{SUFFIX} (or name a folder)")
    output = Path(output)
    name = name or (Path(model).resolve().name if listed else output.name.removesuffix(SUFFIX))
    if not re.fullmatch(NAME, name):
        known = "letters, digits, '_', '.', '+' and '-'"
        raise ValueError(f'{name!r} is not a name for a package, which may have {known}, as in name="hu"')
    if listed:
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{output}: no package can be written here: {failure_reason(error)}") from None
        output /= name + SUFFIX
    check_output(output)
    with without_owner(folder.path):
        files = dict(_contents(folder))
        parser = load(folder.path, device=device, threads=threads) if gold else None
    meta = {**folder.meta, "licence": licence or folder.meta.get("licence")}
    if parser is not None:
        meta["evaluation"] = [measure(parser, path) for path in gold]
    files[META] = as_json(meta)
    card = make_card(name, meta, files)
    files |= {SUMS: listing({file: [digest(content)] for file, content in files.items()}), CARD: card}
    pack(output, files.items())
    with output.open("rb") as stream:
        whole = hashlib.file_digest(stream, "sha256").hexdigest()
    language = meta.get("language")
    entry = Entry(
        name,
        output.name,
        output.stat().st_size,
        sum(map(len, files.values())),
        whole,
        meta["licence"],
        is_non_commercial(meta["licence"] or ""),
        (language,) if language else (),
        meta,
    )
    if listed:
        add_to_index(output.parent, entry)
    return entry


def _contents(folder: ModelFolder) -> Iterator[tuple[str, bytes]]:
    """The files of a model folder that loading needs, without META; the rest serves only to resume training."""
    known = {CONFIG, VOCABULARY, WEIGHTS, CALIBRATION, *SEGMENTER_FILES}
    for path in sorted(folder.path.iterdir()):
        if path.name in known or path.name.startswith(ENCODER):
            yield path.name, read_file(path)


def measure(parser: Parser, gold: str | Path) -> dict[str, Any]:
    """Score a parser on the words of a gold file and on its text: F1 in percent with intervals, and speed.

    A parser that needs tags is given the gold ones, and not scored on text.

    DataError: The file is missing, has no sentences, or lacks tags that the parser needs.
    """
    trees = list(read_conllu(gold))
    if not trees:
        raise DataError(f"{gold}: holds no sentences")
    given = sorted(parser.needs)
    bare = list(words_alone(trees, given or None))
    parser.attempt(bare[:1])  # compiles kernels before time is measured
    start = time.process_time()
    systems = {"tokens": list(parser.parse(bare))}
    seconds = time.process_time() - start
    if parser.segmenter is not None and not given:
        systems["text"] = list(parser("".join(text_of(trees))))
    words = sum(map(len, trees))
    blind = {metric for metric, column in _COLUMNS.items() if column not in parser.annotates}
    return {
        "file": Path(gold).name,
        "words": words,
        "given": given,
        "tokens": _scores(trees, systems["tokens"], blind | _OF_SEGMENTERS),
        **{way: _scores(trees, system, blind) for way, system in systems.items() if way == "text"},
        "words_per_second": round(words / seconds),
        "processor": processor(),
        "measured": datetime.now(UTC).date().isoformat(),
    }


def _scores(trees: list[Sentence], system: list[Sentence], unknown: set[str]) -> dict[str, list[float]]:
    compared = compare(trees, {"": system})[""]
    return {
        metric: [round(100 * value, 2) for value in (compared.evaluation.rows[metric].f1, *compared.intervals[metric])]
        for metric in SHOWN
        if metric in compared.intervals and metric not in unknown
    }
