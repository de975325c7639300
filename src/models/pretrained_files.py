"""The files of a transformer in a model folder: settings, pieces and weights. Nothing in them is run or unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from mh4.machine import reason_of, require

from .checked import as_json
from .devices import HOST
from .encoder import FileError
from .frozen import read_tensors, shared

SETTINGS, WEIGHTS = "transformer.json", "transformer.safetensors"
TABLE = "pieces"  # name of the vectors of pieces among the weights
MODEL = "model."  # prefix of the names of all other weights

# Entries of a configuration that name code to run, from the hub or compiled, instead of that in transformers.
CODE = frozenset({"auto_map", "attn_implementation", "_attn_implementation", "_attn_implementation_internal"})

_DRAWN = frozenset({"normal_", "uniform_", "trunc_normal_", "kaiming_uniform_", "kaiming_normal_"})


class FrozenWeights(dict[str, Tensor]):
    """Tensors of a file, in a dict that weak references can point to, as `shared` needs."""


def read_weights(content: bytes) -> FrozenWeights:
    """The weights in a file; equal files share them (`shared`).

    The table and integers keep their stored types, all others become float32.
    """
    return shared(_read_weights, content)


def _read_weights(content: bytes) -> FrozenWeights:
    found = read_tensors(WEIGHTS, content)
    if TABLE not in found:
        raise FileError(WEIGHTS, f"{TABLE} is missing")
    kept = {name for name, own in found.items() if name == TABLE or not own.is_floating_point()}  # the rest: weights
    return FrozenWeights({name: own if name in kept else own.float() for name, own in found.items()})


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
            self.model = kind.from_dict({name: own for name, own in data["config"].items() if name not in CODE})
        except Exception as error:  # configurations raise all kinds of errors for bad values
            raise FileError(SETTINGS, f"not the settings of a transformer: {reason_of(error)}") from None
        self.content = content

    def outline(self) -> tuple[nn.Module, int]:
        """Build the model without its table, and without memory for its weights; also the width of the table."""
        transformers = require("transformers", "transformers")
        config = self.model
        # The model's table is replaced by ours, but some models need it to have the row of padding, perhaps row 1.
        config.vocab_size = max(2, (getattr(config, "pad_token_id", None) or 0) + 1)
        for name in vars(config):
            if "dropout" in name and "attention" in name:
                setattr(config, name, 0.0)
        try:
            with HOST, _Outline():
                made = transformers.AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
            width = int(made.get_input_embeddings().weight.shape[1])
        except Exception as error:
            raise FileError(SETTINGS, f"not the settings of a transformer: {reason_of(error)}") from None
        return without_ends(made), width


def settings_content(config: Mapping[str, Any], longest: int, unknown: int) -> bytes:
    """The content of ``transformer.json``, as `Settings` reads it."""
    return as_json({"config": dict(config), "longest": longest, "unknown": unknown})


def without_ends(model: Any) -> nn.Module:
    """A model whose table of pieces and pooler are replaced by modules that change nothing and have no weights."""
    model.set_input_embeddings(nn.Identity())
    if getattr(model, "pooler", None) is not None:
        model.pooler = nn.Identity()
    made: nn.Module = model
    return made
