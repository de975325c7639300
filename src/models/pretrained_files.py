"""The files of a transformer in a model folder: settings, pieces and weights. Nothing in them is run or unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from mh4.machine import require

from .checked import as_json
from .devices import HOST
from .encoder import FileError
from .frozen import read_tensors, shared

SETTINGS, WEIGHTS = "transformer.json", "transformer.safetensors"
TABLE = "pieces"  # name of the vectors of pieces among the weights
MODEL = "model."  # prefix of the names of all other weights

_DRAWN = frozenset({"normal_", "uniform_", "trunc_normal_", "kaiming_uniform_", "kaiming_normal_"})


class FrozenWeights(dict[str, Tensor]):
    """Tensors of a file, in a dict that weak references can point to, as `shared` needs."""


def read_weights(content: bytes) -> FrozenWeights:
    """The weights in a file: the table in its stored type, all others as float32; equal files share them (`shared`)."""
    return shared(_read_weights, content)


def _read_weights(content: bytes) -> FrozenWeights:
    found = read_tensors(WEIGHTS, content)
    if TABLE not in found:
        raise FileError(WEIGHTS, f"{TABLE} is missing")
    return FrozenWeights({name: own if name == TABLE else own.float() for name, own in found.items()})


def packed_weights(table: Tensor, model: Mapping[str, Tensor], storage: torch.dtype) -> bytes:
    """The content of a file with a table, converted to ``storage``, and a model's weights, in their own types."""
    named = {TABLE: stored(table, storage), **{MODEL + name: own for name, own in model.items()}}
    return save({name: own.detach().cpu().contiguous() for name, own in named.items()})


def stored(weight: Tensor, storage: torch.dtype) -> Tensor:
    """A weight as a model folder stores it: rounded to ``storage``, unless a number would overflow."""
    if not weight.is_floating_point():
        return weight
    rounded = weight.to(storage)
    return rounded if bool(rounded.isfinite().all()) else weight


class _Outline(TorchFunctionMode):
    """Inside, parameters are created without memory or initial values; computed buffers are created as usual."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in _DRAWN:
            return args[0] if args else kwargs["tensor"]
        if name == "empty":
            return func(*args, **{**kwargs, "device": "meta"})
        return func(*args, **kwargs)


class Settings:
    """The settings in ``transformer.json``.

    Attributes
    ----------
    model : the configuration of the package transformers
    content : bytes
    longest : int
        The largest number of pieces that the model reads at a time.
    unknown : int
        Id of the unknown piece.
    """

    def __init__(self, content: bytes) -> None:
        transformers = require("transformers", "transformers")
        try:
            data = json.loads(content)
            self.longest, self.unknown = int(data["longest"]), int(data["unknown"])
            kind = transformers.CONFIG_MAPPING[data["config"]["model_type"]]
            self.model = kind.from_dict(data["config"])
        except Exception as error:  # configurations raise all kinds of errors for bad values
            raise FileError(SETTINGS, f"not the settings of a transformer: {_line(error)}") from None
        self.content = content

    def outline(self) -> nn.Module:
        """Build the model without its table, and without memory for its weights."""
        transformers = require("transformers", "transformers")
        config = self.model
        # The model's table is replaced by ours, but some models need it to have the row of padding, perhaps row 1.
        config.vocab_size = max(2, (getattr(config, "pad_token_id", None) or 0) + 1)
        for name in vars(config):
            if "dropout" in name and "attention" in name:
                setattr(config, name, 0.0)
        try:
            with HOST, _Outline():
                made: nn.Module = transformers.AutoModel.from_config(
                    config, dtype=torch.float32, **without_pooler(config)
                )
        except Exception as error:
            raise FileError(SETTINGS, f"not the settings of a transformer: {_line(error)}") from None
        made.set_input_embeddings(nn.Identity())  # type: ignore[operator]
        return made


def settings_content(config: Mapping[str, Any], longest: int, unknown: int) -> bytes:
    """The content of ``transformer.json``, as `Settings` reads it."""
    return as_json({"config": dict(config), "longest": longest, "unknown": unknown})


def without_pooler(config: Any) -> dict[str, bool]:
    """Keyword arguments that make a model of this configuration without its pooler, which is not used here."""
    transformers = require("transformers", "transformers")
    made = transformers.MODEL_MAPPING[type(config)].__init__
    return {"add_pooling_layer": False} if "add_pooling_layer" in made.__code__.co_varnames else {}


def _line(error: Exception) -> str:
    """The first line of an error's message, or else its type."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
