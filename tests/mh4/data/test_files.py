import bz2
import fcntl
import gzip
import io
import lzma
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest

from mh4.data.errors import DataError
from mh4.data.files import atomic_output, check_output, is_standard_input, named_path, open_input
from mh4.data.sentence import Sentence

posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes of POSIX systems")
not_superuser = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="the superuser may read and write everything"
)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def write_and_raise(path, exception):
    with atomic_output(path) as stream:
        stream.write(b"half of the n" * 100_000)
        stream.flush()
        raise exception


def test_output_appears_only_when_the_block_ends(tmp_path):
    path = tmp_path / "out.conllu"
    with atomic_output(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["out.conllu"]


@pytest.mark.parametrize("exception", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path, exception):
    path = tmp_path / "out.conllu"
    path.write_bytes(b"old")
    with pytest.raises(exception):
        write_and_raise(str(path), exception)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["out.conllu"]


def test_an_exception_leaves_no_new_file(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write_and_raise(tmp_path / "out.conllu", ZeroDivisionError)
    assert names(tmp_path) == []


def test_a_failing_rename_removes_the_temporary_file(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"), atomic_output(tmp_path / "out.conllu") as stream:
        stream.write(b"new")
    assert names(tmp_path) == []


@posix
def test_a_process_killed_while_writing_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "out.conllu"
    path.write_bytes(b"old")
    script = (
        "import sys, time\n"
        "from mh4.data.files import atomic_output\n"
        "with atomic_output(sys.argv[1]) as stream:\n"
        "    stream.write(b'half of the n')\n"
        "    stream.flush()\n"
        "    print('written', flush=True)\n"
        "    time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"written\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


def test_a_file_can_be_rewritten_from_itself(tmp_path):
    path = tmp_path / "both.conllu"
    path.write_bytes(b"one\ntwo\n")
    with open_input(path) as source, atomic_output(path) as target:
        for line in source:
            target.write(line.upper())
    assert path.read_bytes() == b"ONE\nTWO\n"


@posix
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "out.conllu"
    path.write_bytes(b"old")
    path.chmod(mode)
    with atomic_output(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_new_file_gets_the_permissions_of_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        with atomic_output(tmp_path / "out.conllu") as stream:
            stream.write(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.conllu").stat().st_mode) == 0o666 & ~umask


@posix
def test_a_symbolic_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target.conllu", tmp_path / "link.conllu"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with atomic_output(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path / "there") == ["target.conllu"]


@posix
def test_a_device_is_written_directly():
    with atomic_output("/dev/null") as stream:
        stream.write(b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="no /dev/fd on this system")
def test_a_pipe_given_by_its_descriptor_is_written_directly():
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as result:
        with atomic_output(f"/dev/fd/{writer}") as stream:
            stream.write(b"through a pipe")
        os.close(writer)
        assert result.read() == b"through a pipe"


@posix
@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="no /dev/fd on this system")
def test_a_file_given_by_its_descriptor_is_added_to(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"precious\n")
    with open(path, "ab") as log, atomic_output(f"/dev/fd/{log.fileno()}") as stream:
        stream.write(b"and more\n")
    assert path.read_bytes() == b"precious\nand more\n"
    with pytest.raises(DataError, match="cannot be written"), atomic_output("/dev/fd/999"):
        pass


def test_a_dangling_link_creates_its_target(tmp_path):
    (tmp_path / "link.conllu").symlink_to(tmp_path / "target.conllu")
    with atomic_output(tmp_path / "link.conllu") as stream:
        stream.write(b"new")
    assert (tmp_path / "target.conllu").read_bytes() == b"new"
    assert names(tmp_path) == ["link.conllu", "target.conllu"]


def test_a_very_long_file_name(tmp_path):
    path = tmp_path / ("a" * 240 + ".conllu")
    with atomic_output(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("path", ["-", "/dev/stdout"])
def test_standard_output_stays_open(monkeypatch, path):
    raw = io.BytesIO()
    fake = io.TextIOWrapper(raw, encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", fake)
    fake.write("before ")
    with atomic_output(path) as stream:
        stream.write(b"inside ")
    fake.write("after")
    fake.flush()
    assert raw.getvalue() == b"before inside after"


def test_dash_is_standard_input_and_stays_open(monkeypatch):
    raw = io.BytesIO(b"text")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=raw))
    with open_input("-") as stream:
        assert stream.read() == b"text"
    assert not raw.closed


def test_standard_streams_may_be_streams_of_text_alone(monkeypatch):
    """As in notebooks, and under `contextlib.redirect_stdout`."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        sys.stdout.write("first\n")
        with atomic_output("-") as stream:
            for byte in "é\r\n€".encode():
                stream.write(bytes([byte]))
        sys.stdout.write(".\n")
    assert printed.getvalue() == "first\né\r\n€.\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("é\n\ud800"))
    with open_input("-") as stream:
        assert stream.read() == b"\xc3\xa9\n\xed\xa0\x80"  # a lone surrogate, which readers report as no UTF-8


def test_input_is_closed_afterwards(tmp_path):
    path = tmp_path / "in.conllu"
    path.write_bytes(b"text")
    with open_input(path) as stream:
        assert stream.read() == b"text"
    assert stream.closed


def test_an_error_of_the_block_is_not_taken_for_one_of_the_file(tmp_path):
    path = tmp_path / "in.conllu"
    path.write_bytes(b"text")
    with pytest.raises(FileNotFoundError), open_input(path):
        raise FileNotFoundError


def message_of(operation, path) -> str:
    with pytest.raises(DataError) as caught, operation(path):
        pass
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_input_messages(tmp_path):
    assert "no such file" in message_of(open_input, tmp_path / "missing.conllu")
    assert "is a folder" in message_of(open_input, tmp_path)
    (tmp_path / "file").write_bytes(b"")
    assert "cannot be read: not a directory" in message_of(open_input, tmp_path / "file" / "inside.conllu")


@pytest.mark.parametrize("words", [2, 5000])
def test_text_in_place_of_a_path_is_named_as_such(words):
    text = "1\tKutya\t_\t_\t_\t_\t0\troot\t_\t_\n" * words
    with pytest.raises(DataError, match=r"^'1.tKutya.*…' is text, not a path .*from_conllu"), open_input(text):
        pass


def test_output_messages(tmp_path):
    assert "is a folder" in message_of(atomic_output, tmp_path)
    assert f"{tmp_path / 'missing'} does not exist" in message_of(atomic_output, tmp_path / "missing" / "out.conllu")
    assert "cannot be written: file name too long" in message_of(atomic_output, tmp_path / ("x" * 300))
    assert names(tmp_path) == []


@posix
@not_superuser
def test_permissions_are_respected(tmp_path):
    path = tmp_path / "protected.conllu"
    path.write_bytes(b"old")
    path.chmod(0o400)
    assert "write-protected" in message_of(atomic_output, path)
    assert path.read_bytes() == b"old"
    path.chmod(0o000)
    assert "cannot be read: permission denied" in message_of(open_input, path)


def test_write_protection_is_asked_for_before_writing(tmp_path, monkeypatch):
    path = tmp_path / "protected.conllu"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda target, mode: False)
    assert "write-protected" in message_of(atomic_output, path)
    assert path.read_bytes() == b"old"


def test_data_errors_are_one_printable_line():
    assert str(DataError("a\u2028b\x1b[31mc\r\nd")) == "a b [31mc  d"


TEXT = b"1\tForm\t_\t_\t_\t_\t0\troot\t_\t_\n\n" * 3000


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_compressed_input_is_unpacked(pack, tmp_path, monkeypatch):
    path = tmp_path / "whatever.conllu"
    path.write_bytes(pack(TEXT))
    with open_input(path) as stream:
        assert b"".join(stream) == TEXT
    with open(path, "rb") as opened:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(opened))
        with open_input("-") as stream:
            assert stream.read() == TEXT


@pytest.mark.parametrize(
    ("suffix", "unpack"),
    [(".gz", gzip.decompress), (".xz", lzma.decompress), (".bz2", bz2.decompress), (".GZ", gzip.decompress)],
)
def test_output_is_compressed_as_its_name_says(suffix, unpack, tmp_path):
    path = tmp_path / f"a.conllu{suffix}"
    for content in (b"", b"1\ta\n" * 1000):
        with atomic_output(path) as stream:
            stream.write(content)
        assert unpack(path.read_bytes()) == content
        with open_input(path) as stream:
            assert stream.read() == content
    with pytest.raises(TypeError), atomic_output(path) as stream:
        stream.writelines([b"x" * 10**6, None])
    assert unpack(path.read_bytes()) == content
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data[:30] + b"\x55" * 20 + data[50:]])
def test_damaged_compressed_input_is_named(pack, damage, tmp_path):
    path = tmp_path / "damaged.gz"
    path.write_bytes(damage(pack(TEXT)))
    with pytest.raises(DataError, match=r"damaged.gz: is compressed and damaged"), open_input(path) as stream:
        stream.read()


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"PK\x03\x04", "ZIP archive"),
        (b"\x28\xb5\x2f\xfd", "Zstandard"),
        ("\ufeff1\tA".encode("utf-16-le"), "UTF-16 text"),
        ("\ufeff1\tA".encode("utf-32-le"), "UTF-32 text"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "binary file"),
    ],
)
def test_what_is_no_text_is_called_what_it_is(start, message, tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(start + b"abc" * 10)
    with pytest.raises(DataError, match=f"model.bin: is .*{message}"), open_input(path):
        pass


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\ufeff1\tA".encode("utf-16-le"), "is UTF-16 text"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "is a binary file"),
        (gzip.compress(TEXT, mtime=0), "is compressed twice"),
    ],
)
def test_what_was_packed_is_text(pack, content, message, tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(pack(content))
    with pytest.raises(DataError, match=f"a.gz: {message}"), open_input(path):
        pass


@pytest.mark.parametrize("start", [b"BZhang", b"A dog.\n\nIt\0did.\n\n"])
def test_what_looks_like_a_binary_file_is_read(start, tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(start)
    with open_input(path) as stream:
        assert stream.read() == start


def test_what_a_killed_process_left_behind_is_removed_by_the_next(tmp_path):
    left, young, locked = (tmp_path / f".mh4-{name}.tmp" for name in ("left", "young", "locked"))
    for path in (left, young, locked):
        path.write_text("half")
    long_ago = time.time() - 3600
    for path in (left, locked):
        os.utime(path, (long_ago, long_ago))
    with open(locked) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with atomic_output(tmp_path / "out.conllu") as stream:
            stream.write(b"whole")
    assert names(tmp_path) == [".mh4-locked.tmp", ".mh4-young.tmp", "out.conllu"]


def test_an_output_without_a_name_is_refused(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    for refuse in (check_output, lambda path: atomic_output(path).__enter__()):
        with pytest.raises(DataError, match="the output has no name"):
            refuse("")
    assert [path.name for path in tmp_path.rglob("*")] == ["inner"]
    with pytest.raises(DataError, match="the input has no name"), open_input(""):
        pass
    for use in (open_input, atomic_output):
        with pytest.raises(DataError, match=r"'a\\x00b': holds NUL"), use("a\0b"):
            pass


def test_only_a_path_is_standard_input():
    class Sentences(list):
        def __str__(self):  # takes time for many sentences, and a writer asks about each
            raise AssertionError

    assert not is_standard_input(Sentences())
    assert not is_standard_input(Sentence(["-"]))
    assert is_standard_input("-")
    assert is_standard_input(Path("/dev/stdin"))


@pytest.mark.parametrize("name", ["./-", ".//-", "././-"])
def test_a_file_called_like_standard_input_can_be_named(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(tmp_path, "-").write_bytes(b"here")
    with open_input(named_path(name)) as stream:
        assert stream.read() == b"here"
    assert named_path("-") == Path("-")
    assert named_path("./a") == Path("a")


@pytest.mark.parametrize("name", ["old.conllu", "new.conllu"])
def test_a_write_protected_folder_is_refused_before_work_begins(name, tmp_path, monkeypatch):
    (tmp_path / "old.conllu").write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda target, mode: target != tmp_path)
    for refuse in (check_output, lambda path: atomic_output(path).__enter__()):
        with pytest.raises(DataError, match=f"{name}: the folder {tmp_path} is write-protected"):
            refuse(tmp_path / name)
    check_output("/dev/null")
    assert names(tmp_path) == ["old.conllu"]
