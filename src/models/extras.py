"""Packages that only an extra of mh4 installs."""

from importlib import import_module
from typing import Any

from .encoder import UnusableError


def transformers_module(name: str) -> Any:
    """A module that comes with the extra ``transformers``.

    UnusableError: It is not installed; the message says how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise  # it is installed, and misses something itself
        raise UnusableError(
            f"a pretrained encoder needs {error.name}, which is not installed: pip install 'mh4[transformers]'"
        ) from None
