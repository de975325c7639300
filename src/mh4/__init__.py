"""mh4: exact global dependency parsing."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import machine

if TYPE_CHECKING:
    from mh4.parsers.chart import ChartParser as Parser

machine.prepare()

__version__ = "0.1.0"

IMPORTED_AT = time.perf_counter()  # start-up time, for the command line, counts from here

_LAZY = {"Parser": ("mh4.parsers.chart", "ChartParser")}  # `import mh4.decoders` must stay free of PyTorch

__all__ = ["Parser", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'mh4' has no attribute {name!r}")
