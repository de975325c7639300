"""Errors about a user's data, and the policy for errors about single sentences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Literal

__all__ = ["BadFileError", "DataError", "ErrorPolicy", "Errors"]

LONGEST_PATH, LONGEST_MESSAGE = 200, 1000  # characters


class DataError(ValueError):
    """Something is wrong with a user's file.

    The message is one line, ``FILE:LINE: sentence ID: what is wrong (what to do)``, with as much of the location
    as is known. It can be shown as it is, without a traceback.
    """

    def __init__(self, message: str) -> None:
        # Names from a file may hold line separators such as U+2028, or a terminal's control characters.
        message = shortened(message, LONGEST_MESSAGE)
        super().__init__("".join(character if character.isprintable() else " " for character in message))


class BadFileError(DataError):
    """Something is wrong with a whole file, so that skipping single sentences cannot help."""


def shortened(value: str, most: int = 60) -> str:
    """A value for a message, cut to ``most`` characters by removing the middle."""
    if len(value) <= most:
        return value
    end = most // 3
    return f"{value[: most - end - 1]}…{value[len(value) - end :]}"


def quote(value: str) -> str:
    """A value from a file for a message: cut to 40 characters, quoted and escaped."""
    return repr(value if len(value) <= 40 else value[:39] + "…")


def counted(number: int, noun: str) -> str:
    """``1 word``, ``2 words``."""
    return f"{number} {noun}" + "s" * (number != 1)


def located(source: str, line: int | None, name: str, problem: str) -> DataError:
    """A `DataError` that names file, line and sentence."""
    source = shortened(source, LONGEST_PATH)
    place = source if line is None else f"{source}:{line}"
    return DataError(f"{place}: {name}: {problem}")


ErrorPolicy = Literal["raise", "skip"] | Callable[[DataError], object]
"""The type of the argument ``errors`` of functions that read sentences; see `Errors.of`."""


class Errors:
    """Policy for errors about single sentences; call the object with each error.

    Parameters
    ----------
    policy : {"raise", "skip"} or callable
        "raise" stops at the first bad sentence. With "skip" or a function, bad sentences are left out; the function is
        called with the error of each.

    Attributes
    ----------
    count : int
        Bad sentences so far.
    first : DataError or None
        The first error.
    """

    def __init__(self, policy: ErrorPolicy = "raise") -> None:
        if policy not in ("raise", "skip") and not callable(policy):
            raise ValueError(f'errors must be "raise", "skip" or a function that takes an error, not {policy!r}')
        self.policy = policy
        self.count = 0
        self.first: DataError | None = None

    @classmethod
    def of(cls, errors: ErrorPolicy) -> Errors:
        """The `Errors` object for an argument ``errors``.

        ``"raise"`` stops at the first bad sentence; ``"skip"`` leaves bad sentences out, with a Python warning for
        each; a function is called with the error of each sentence left out. An `Errors` object is returned unchanged;
        its creator reports the errors that it counts.
        """
        if isinstance(errors, cls):
            return errors
        return cls(_warn if errors == "skip" else errors)

    @property
    def skips(self) -> bool:
        """Whether bad sentences are left out."""
        return self.policy.skips if isinstance(self.policy, Errors) else self.policy != "raise"

    @property
    def summary(self) -> str:
        """The number of sentences left out, and the first error."""
        return f"{counted(self.count, 'bad sentence')} skipped; the first: {self.first}"

    def __call__(self, error: DataError) -> None:
        """Count the error of a sentence; then raise it or pass it to the policy's function, if any."""
        if isinstance(error, BadFileError):
            raise error
        self.count += 1
        self.first = self.first or error
        if self.policy == "raise":
            raise error
        if callable(self.policy):
            self.policy(error)


def _warn(error: DataError) -> None:
    # Without the registry of `warnings.warn`, by which Python shows equal warnings only once per process.
    warnings.warn_explicit(f"{error}; sentence left out", UserWarning, "mh4", 0)
