"""Standard streams that are full or closed."""

import os
import subprocess
import sys

import pytest

from mh4 import cli
from mh4.cli import options
from mh4.cli.announcing import COMPILING

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")


def mh4(arguments, redirected, unbuffered=False):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    if unbuffered:
        environment["PYTHONUNBUFFERED"] = "1"
    command = f'"{sys.executable}" -m mh4 {arguments} {redirected}'
    return subprocess.run(command, shell=True, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("arguments", ["--help", "eval {0} {0} --json", "coverage {0}"])
@pytest.mark.parametrize(
    ("redirected", "problem"), [(">/dev/full", "no space left on device"), (">&-", "is closed (name a file)")]
)
def test_standard_output_is_named(arguments, redirected, problem, small_treebanks):
    ended = mh4(arguments.format(small_treebanks[1]), redirected, unbuffered="--help" in arguments)
    told = ended.stderr.removeprefix(f"{COMPILING}\n")  # comes first unless an earlier test used the same kernels
    assert told == f"mh4: standard output: {problem}\n"
    assert ended.returncode == 2


@pytest.mark.parametrize("redirected", ["2>/dev/full", "2>&-"])
def test_work_is_done_although_nobody_can_be_told(redirected, small_treebanks, tmp_path):
    command = f"transform --to mh4 {small_treebanks[1]} -o {tmp_path / 'out.conllu'}"
    assert mh4(command, redirected).returncode == 0
    assert (tmp_path / "out.conllu").read_bytes().count(b"\n\n") == small_treebanks[1].read_bytes().count(b"\n\n")
    assert mh4("eval nothing nothing", redirected).returncode == 2


def test_files_do_not_become_standard_streams(tmp_path):
    """What a library prints into a closed stream would otherwise end up in the next file that is opened."""
    program = (
        "import os; from mh4.cli import _open_what_is_closed; _open_what_is_closed(); print(os.open('x', 65), file=out)"
    )
    program = f"out = open({str(tmp_path / 'told')!r}, 'w', closefd=True); {program}"
    subprocess.run(f'"{sys.executable}" -c "{program}" <&- >&- 2>&-', shell=True, cwd=tmp_path, check=True)
    assert int((tmp_path / "told").read_text()) > 2


def test_other_failures_are_not_those_of_standard_output(monkeypatch, capsys):
    def broken(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "mh4: [Errno 28] No space left on device\n"
    options.say("[b]still[/b] here")
    assert capsys.readouterr().err == "[b]still[/b] here\n"
