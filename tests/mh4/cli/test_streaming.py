"""``mh4 parse`` on standard input: answers without delay, and messages when something goes wrong."""

import os
import select
import signal
import subprocess
import sys
import time

import pytest

from mh4 import cli
from mh4.cli.progress import TrainingDisplay, words_bar
from mh4.data.sentence import Sentence
from mh4.machine import Terminated

SENTENCE = Sentence.from_words(["A", "kutya", "ugat", "."]).to_conllu()


def start(*arguments):
    program = [sys.executable, "-m", "mh4", "parse", *map(str, arguments)]
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def answer(process, seconds, sentences=1):
    """Return the output up to the blank line of the last sentence, or None if it takes longer than ``seconds``."""
    found, end = b"", time.monotonic() + seconds
    while found.count(b"\n\n") < sentences:
        if not select.select([process.stdout], [], [], max(0, end - time.monotonic()))[0]:
            return None
        found += os.read(process.stdout.fileno(), 1 << 16)
    return found.decode()


@pytest.fixture
def process(small_model):
    process = start(small_model, "--device", "cpu", "--threads", 1)
    with process:
        yield process
        process.kill()


def test_a_sentence_is_answered_when_its_blank_line_has_come(process):
    for beginning in (b"", SENTENCE[:20].encode()):  # alone, or with part of the next sentence
        process.stdin.write(
            SENTENCE.encode()[len(beginning) :] if beginning else SENTENCE.encode() + SENTENCE[:20].encode()
        )
        process.stdin.flush()
        found = answer(process, 60)
        assert found is not None
        assert found.count("\n") == 5
        assert Sentence.from_conllu(found).root
    process.stdin.close()
    assert process.wait(30) == 0
    assert b"2 sentences, 8 words" in process.stderr.read()


def test_several_sentences_that_have_come_are_answered(process):
    process.stdin.write(3 * SENTENCE.encode())
    process.stdin.flush()
    assert answer(process, 60, 3).count("\n\n") == 3


def test_batch_words_wait(small_model):
    process = start(small_model, "--device", "cpu", "--threads", 1, "--batch-words", 8)
    with process:
        process.stdin.write(SENTENCE.encode())
        process.stdin.flush()
        assert answer(process, 7) is None
        process.stdin.write(SENTENCE.encode())
        process.stdin.flush()
        assert answer(process, 60, 2).count("\n\n") == 2
        process.stdin.write(SENTENCE.encode())
        process.stdin.close()
        assert answer(process, 60).count("\n\n") == 1


@pytest.mark.parametrize("error", [RuntimeError("line 1\nline 2"), KeyError("x"), AssertionError()])
def test_an_unexpected_error_is_a_short_report(error, monkeypatch, capsys):
    def broken(**_):
        raise error

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith(f"mh4: unexpected {type(error).__name__}: ")
    assert "test_streaming.py" in said
    assert said.count("\n") == 1
    assert "mh4 --debug" in said


def test_debug_shows_the_traceback(tmp_path):
    program = [sys.executable, "-m", "mh4", "--debug", "eval", str(tmp_path / "a"), str(tmp_path / "b")]
    shown = subprocess.run(program, capture_output=True, text=True, check=False)
    assert "Traceback" in shown.stderr
    shown = subprocess.run([*program[:3], *program[4:]], capture_output=True, text=True, check=False)
    assert shown.returncode == 2
    assert shown.stderr.count("\n") == 1


def test_running_out_of_memory_is_said(monkeypatch, capsys):
    def greedy(**_):
        raise MemoryError("Unable to allocate 3 TiB")

    monkeypatch.setattr(cli, "app", greedy)
    with pytest.raises(SystemExit):
        cli.main()
    assert "out of memory: Unable to allocate 3 TiB" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_one_line(small_model, small_treebanks):
    program = [sys.executable, "-m", "mh4", "parse", str(small_model), str(small_treebanks[1]), "-o", "/dev/full"]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert ended.stderr == "mh4: /dev/full: no space left on device\n"


def test_an_output_folder_that_is_not_there_is_found_before_the_model_is_loaded(tmp_path):
    program = [sys.executable, "-m", "mh4", "parse", "no-model", "no-input", "-o", str(tmp_path / "x" / "y.conllu")]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "y.conllu: the folder" in ended.stderr
    assert "does not exist" in ended.stderr


@pytest.mark.parametrize(
    ("handle", "raised"),
    [(lambda: cli._terminate(), Terminated), (lambda: cli._interrupt(signal.SIGINT, None), KeyboardInterrupt)],
)
def test_a_signal_that_came_inside_a_destructor_is_not_lost(handle, raised, monkeypatch):
    """Python only prints an exception raised in a destructor, so training would go on."""

    class Unlucky:
        def __del__(self):
            handle()

    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    unlucky = [Unlucky()]
    unlucky.clear()
    assert Terminated.asked
    with pytest.raises(raised), words_bar(["-"]) as show:
        show((1, 1))
    with TrainingDisplay() as display, pytest.raises(raised):
        display.on_step(None, None)


@pytest.mark.parametrize("seconds", [0.1, 0.4, 1.0])
def test_ctrl_c_while_modules_are_imported_shows_no_traceback(seconds):
    program = [
        sys.executable,
        "-c",
        "from mh4.__main__ import main; print(flush=True); main()",
        "parse",
        "m",
        "no-file",
    ]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert "Traceback" not in said
    assert process.returncode in (-signal.SIGINT, 130, 2, 1)  # 2: it had already failed


def ended_by_ctrl_c():
    """The exit status of the command line, which is interrupted."""
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def test_ctrl_c_while_commands_are_put_together_shows_no_traceback(monkeypatch):
    """After all modules are imported, and before a command begins."""
    monkeypatch.setattr(cli, "app", lambda **_: signal.raise_signal(signal.SIGINT))
    assert ended_by_ctrl_c() == 130


def test_ctrl_c_while_an_error_is_reported_shows_no_traceback(monkeypatch):
    monkeypatch.setattr(cli, "say", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(sys, "argv", ["mh4", ""])
    assert ended_by_ctrl_c() == 130


def test_ctrl_c_at_exit_shows_no_traceback(tmp_path):
    """While functions registered with atexit run."""
    program = "import atexit, signal; from mh4.__main__ import main; atexit.register(signal.raise_signal, 2); main()"
    process = subprocess.run(
        [sys.executable, "-c", program, "parse", tmp_path / "none", "no-file"], capture_output=True, text=True
    )
    assert process.returncode == -signal.SIGINT
    assert "Traceback" not in process.stderr
