"""Packages that only an extra of mh4 installs."""

from importlib import import_module
from typing import Any

from .encoder import UnusableError

PURPOSES = {"transformers": "a pretrained encoder", "vectors": "a model of fastText"}


def extra_module(name: str, extra: str) -> Any:
    """A module that comes with one of the extras `PURPOSES`.

    UnusableError: It is not installed; the message says how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise  # it is installed, and misses something itself
        missing = f"{PURPOSES[extra]} needs {error.name}, which is not installed"
        raise UnusableError(f"{missing}: pip install 'mh4[{extra}]'") from None


def transformers_module(name: str) -> Any:
    """A module that comes with the extra ``transformers``; see `extra_module`."""
    return extra_module(name, "transformers")
