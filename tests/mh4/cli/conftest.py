"""The command line, called within this process."""

import io
import sys
from types import SimpleNamespace

import pytest

from mh4 import cli


@pytest.fixture
def run(monkeypatch, capfdbinary):
    """Call the program within this process, as ``python -m mh4 ARGUMENTS`` would, but announce no compilation."""
    monkeypatch.setattr(cli, "_announce_compiling", lambda: None)  # what is compiled depends on the tests before

    def call(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["mh4", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capfdbinary.readouterr()
        return SimpleNamespace(returncode=stop.value.code, stdout=captured.out, stderr=captured.err)

    return call
