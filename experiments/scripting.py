"""What the command lines of all scripts share."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any


def run_script(main: Callable[..., None], *arguments: Any) -> int:
    """Run a script's ``main``; wrong arguments, files and folders give one line on standard error, not a traceback.

    Returns the exit status: 0, or 2 after such an error.
    """
    try:
        main(*arguments)
    except SystemExit as end:
        if not isinstance(end.code, str):
            raise
        message = end.code
    except (ValueError, OSError) as error:  # as the command `mh4` does
        message = " ".join(str(error).split())
    else:
        return 0
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    return 2


def positive(text: str) -> int:
    """The type of an argument that counts something: an integer, 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not an integer, 1 or more")
    return int(text)
