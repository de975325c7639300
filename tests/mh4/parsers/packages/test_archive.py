"""Unpacking trusts nothing: whatever does not belong to a model is refused before it is written."""

import stat
import struct
import zipfile

import pytest

from mh4.data.errors import DataError
from mh4.parsers.packages.archive import MOST_FILES, pack, unpack


def zipped(path, *members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def refused(path, folder, problem):
    folder.mkdir(exist_ok=True)
    with pytest.raises(DataError, match=problem) as error:
        unpack(path, folder)
    assert str(error.value).startswith(path.name + ": ")
    return list(folder.iterdir())


def test_what_is_packed_is_unpacked(tmp_path):
    files = {"config.json": b"{}", "weights.safetensors": bytes(5000), "README.md": b"a", "SHA256SUMS": b""}
    pack(tmp_path / "a.zip", files.items())
    pack(tmp_path / "b.zip", files.items())
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    (tmp_path / "a").mkdir()
    unpack(tmp_path / "a.zip", tmp_path / "a")
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == files


@pytest.mark.parametrize(
    "name",
    ["../config.json", "/config.json", "a/config.json", "..\\config.json", "C:config.json", "a/", "weights.pkl",
     "weights.pt", "pytorch_model.bin", "run.py", ".json", "config.json\n", "конфиг.json", "config.json\0.md"],
)  # fmt: skip
def test_other_files_and_places_are_refused(name, tmp_path):
    path = zipped(tmp_path / "a.zip", ("README.md", "a"), ("x" * len(name.encode()), "b"))
    encoded = name.encode()
    content = path.read_bytes().replace(b"x" * len(encoded), encoded)
    if not name.isascii():  # set the flag for names in UTF-8
        content = content.replace(b"PK\x03\x04\x14\x00\x00\x00", b"PK\x03\x04\x14\x00\x00\x08")
    path.write_bytes(content)
    assert refused(path, tmp_path / "out", "which does not belong to a model") == []


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR])
def test_links_and_devices_are_refused(kind, tmp_path):
    info = zipfile.ZipInfo("config.json")
    info.external_attr = (kind | 0o777) << 16
    path = zipped(tmp_path / "a.zip", ("README.md", "a"), (info, "/etc/passwd"))
    assert refused(path, tmp_path / "out", "holds config.json as a link or device") == []


def test_too_many_files_and_files_twice_are_refused(tmp_path):
    many = zipped(tmp_path / "a.zip", *((f"{i}.json", "{}") for i in range(MOST_FILES + 1)))
    assert refused(many, tmp_path / "out", f"{MOST_FILES} at most") == []
    twice = zipped(tmp_path / "b.zip", ("a.json", "{}"), ("A.json", "{}"))
    assert refused(twice, tmp_path / "out", "holds a file twice") == []


def test_a_bomb_is_refused_by_the_size_that_it_declares(tmp_path):
    path = zipped(tmp_path / "a.zip", ("config.json", bytes(1 << 20)))
    assert refused(path, tmp_path / "out", "unpacks to 1048576 bytes, too many") == []


def test_a_bomb_that_declares_a_small_size_is_cut_there(tmp_path):
    size = 1 << 20
    path = zipped(tmp_path / "a.zip", ("config.json", bytes(size)))
    content = path.read_bytes()
    assert content.count(struct.pack("<L", size)) == 2  # in the local header and in the central directory
    path.write_bytes(content.replace(struct.pack("<L", size), struct.pack("<L", 100)))
    (written,) = refused(path, tmp_path / "out", "is not a complete package")
    assert written.stat().st_size <= 100


def test_other_compression_and_encryption_are_refused(tmp_path):
    path = zipped(tmp_path / "a.zip", ("config.json", "{}"), method=zipfile.ZIP_LZMA)
    assert refused(path, tmp_path / "out", "packed in an unknown way") == []
    path = zipped(tmp_path / "b.zip", ("config.json", "{}"))
    content = bytearray(path.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(header) + flags] |= 1
    path.write_bytes(content)
    assert refused(path, tmp_path / "out", "encrypted") == []


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other"])
def test_damaged_files_are_refused(damage, tmp_path):
    path = zipped(tmp_path / "a.zip", ("config.json", bytes(range(256))), method=zipfile.ZIP_STORED)
    content = path.read_bytes()
    changed = {"empty": b"", "cut": content[:-10], "flipped": content.replace(b"abc", b"abx"), "other": b"hello" * 99}
    path.write_bytes(changed[damage])
    refused(path, tmp_path / "out", "is not a complete package")
