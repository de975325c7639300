"""mh4: exact global dependency parsing."""

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import machine

if TYPE_CHECKING:
    from mh4.api import Parser, Request, compare, download, draw, evaluate, load, read_conllu, train, write_conllu
    from mh4.data.document import Document
    from mh4.data.errors import DataError
    from mh4.data.sentence import Sentence
    from mh4.data.word import Word

machine.prepare()

__version__ = "0.1.0"

IMPORTED_AT = time.perf_counter()  # start-up time, for the command line, counts from here

# Where each public name lives. They are looked up when they are used: `import mh4.decoders` stays free of PyTorch.
_HOMES = {
    "mh4.api": ("Parser", "Request", "compare", "download", "draw", "evaluate", "load", "train"),
    "mh4.data.conllu": ("read_conllu", "write_conllu"),
    "mh4.data.errors": ("DataError",),
    "mh4.data.document": ("Document",),
    "mh4.data.sentence": ("Sentence",),
    "mh4.data.word": ("Word",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "DataError",
    "Document",
    "Parser",
    "Request",
    "Sentence",
    "Word",
    "__version__",
    "compare",
    "download",
    "draw",
    "evaluate",
    "load",
    "read_conllu",
    "train",
    "write_conllu",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    from mh4.data.guesses import MODULE, hint

    raise AttributeError(f"module 'mh4' has no attribute {name!r}{hint(MODULE, [name])} (it has {', '.join(__all__)})")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
