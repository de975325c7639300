"""A model on disk: a folder of JSON and safetensors files, each replaced as a whole. Loading runs no code from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from mh4.data.errors import DataError
from mh4.data.files import atomic_output, failure_reason

from .config import Config
from .transition_config import SCORER as BILSTM
from .transition_config import TransitionConfig
from .vocabulary import Vocabulary

CONFIG, VOCABULARY, WEIGHTS, STATE, LOG = (
    "config.json",
    "vocab.json",
    "weights.safetensors",
    "training.safetensors",
    "log.jsonl",
)
_METADATA = "state"

T = TypeVar("T")


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically."""
    with atomic_output(path) as stream:
        stream.write((json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read JSON; a missing or damaged file is a `DataError` that names it."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path}: no such file (is {path.parent} a model folder?)") from None
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, numbers too long, nested too deeply
        raise DataError(f"{path}: not valid JSON: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {failure_reason(error)}") from None


def read_as(path: Path, from_dict: Callable[[dict[str, Any]], T]) -> T:
    """What a JSON object stands for; whatever is wrong with it is a `DataError` that names the file."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise DataError(f"{path}: not a JSON object")
    try:
        return from_dict(data)
    except KeyError as error:
        raise DataError(f"{path}: {error} is missing") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: {error}") from None


def write_tensors(path: Path, tensors: dict[str, Tensor], state: dict[str, Any] | None = None) -> None:
    """Write tensors, and JSON in the header, atomically as one safetensors file."""
    metadata = None if state is None else {_METADATA: json.dumps(state)}
    payload = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, metadata)
    with atomic_output(path) as stream:
        stream.write(payload)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file; a missing or damaged file is a `DataError` that names it."""
    try:
        tensors = load_file(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file (is {path.parent} a model folder?)") from None
    except SafetensorError as error:
        raise DataError(f"{path}: not a whole safetensors file: {error}") from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise DataError(f"{path}: {name} holds values that are no numbers")
    return tensors


def read_state(path: Path) -> dict[str, Any]:
    """The JSON in the header of a file that `write_tensors` wrote with a state."""
    with safe_open(path, "pt") as stream:
        return json.loads((stream.metadata() or {}).get(_METADATA, "{}"))


def write_definition(folder: Path, config: Config | TransitionConfig, vocabulary: Vocabulary) -> None:
    """Write what is fixed before training starts."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / VOCABULARY, vocabulary.as_dict())
    write_json(folder / CONFIG, config.as_dict())  # the last one: where it is, there is a model


def read_config(folder: Path) -> Config | TransitionConfig:
    """Read the configuration of a parser with the network's scores."""
    return read_as(
        folder / CONFIG, lambda data: (TransitionConfig if "transitions" in data else Config).from_dict(data)
    )


def read_definition(folder: Path) -> tuple[Config | TransitionConfig, Vocabulary]:
    """Read configuration and vocabulary of a parser with the network's scores."""
    return read_config(folder), read_as(folder / VOCABULARY, Vocabulary.from_dict)


def read_scorer(folder: Path) -> str:
    """What scores the trees of a model: ``bilstm`` or ``perceptron``; a missing or damaged file is a `DataError`."""
    config = read_json(folder / CONFIG)
    return config.get("scorer", BILSTM) if isinstance(config, dict) else BILSTM
