"""Checks of the types and ranges of user options; error messages name the option."""

import reprlib
from operator import index
from typing import Any

import numpy as np


def check_flag(name: str, value: Any) -> None:
    """TypeError unless an option is True or False: a string such as "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {reprlib.repr(value)}")


def check_number(name: str, value: Any) -> int:
    """Return an option as an int; a TypeError or ValueError unless it is a whole number of at least 1."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a whole number; got {reprlib.repr(value)}")
    if number < 1:
        raise ValueError(f"{name} must be at least 1; got {number}")
    return number
