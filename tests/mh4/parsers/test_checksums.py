"""Checksums find damage to any file of a model folder, and stay valid whenever a process is killed."""

import hashlib
import os
import random
import shutil
from pathlib import Path

import pytest

from mh4.api import load
from mh4.data.errors import DataError
from mh4.parsers import checksums
from mh4.parsers.checksums import SUMS, move_files, read_file, remove_files, write_file
from mh4.parsers.model_files import LOG, META, STATE, VOCABULARY, WEIGHTS, read_tensors


@pytest.fixture
def folder(small_model, tmp_path):
    return shutil.copytree(small_model, tmp_path / "model")


@pytest.mark.parametrize("name", ["config.json", VOCABULARY, WEIGHTS, META])
def test_a_flipped_bit_is_found(name, folder):
    whole = (folder / name).read_bytes()
    for seed in range(5):
        bit = random.Random(seed).randrange(8 * len(whole))
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        (folder / name).write_bytes(damaged)
        with pytest.raises(DataError, match=rf"model/{name}: is damaged or was changed"):
            load(folder, device="cpu")
    (folder / name).write_bytes(whole)
    assert load(folder, device="cpu")(["A", "kutya", "ugat"]).root


def test_the_state_of_training_has_a_checksum_too(folder):
    whole = (folder / STATE).read_bytes()
    (folder / STATE).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(DataError, match=r"training\.safetensors: is damaged"):
        read_tensors(folder / STATE)


def test_folders_of_older_versions_have_none(folder):
    (folder / SUMS).unlink()
    assert load(folder, device="cpu")(["A", "kutya", "ugat"]).root


def test_the_list_is_that_of_sha256sum(folder):
    lines = (folder / SUMS).read_text().splitlines()
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    assert len(listed) == len(lines)
    assert set(listed) == {path.name for path in folder.iterdir()} - {LOG, SUMS}
    assert {"config.json", VOCABULARY, WEIGHTS, META, STATE} <= set(listed)
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for name, digest in listed.items())


@pytest.mark.parametrize("form", ["{} *{}\n", "{} *./{}\r\n", "{}  ./{}\n"])
def test_lists_of_other_programs_are_read(form, folder):
    names = [path.name for path in folder.iterdir() if path.name not in (LOG, SUMS)]
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    (folder / SUMS).write_text("".join(form.format(digest.upper(), name) for name, digest in digests.items()))
    assert load(folder, device="cpu")(["A", "kutya", "ugat"]).root
    (folder / WEIGHTS).write_bytes(b"other")
    with pytest.raises(DataError, match=r"weights\.safetensors: is damaged"):
        load(folder, device="cpu")


@pytest.mark.parametrize("written", range(4))
def test_a_process_may_be_killed_between_any_two_files(written, tmp_path, monkeypatch):
    path = tmp_path / "weights"
    write_file(path, b"old")
    count, replace = 0, os.replace

    def replace_some(source, target):
        nonlocal count
        if count == written:
            raise KeyboardInterrupt
        count += 1
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace_some)
        try:
            write_file(path, b"new")
        except KeyboardInterrupt:
            assert written < 3
    assert read_file(path) == (b"old" if written < 2 else b"new")
    path.write_bytes(b"bad")
    with pytest.raises(DataError, match="damaged"):
        read_file(path)


def test_a_reader_may_come_while_a_file_is_replaced(tmp_path, monkeypatch):
    path = tmp_path / "weights"
    write_file(path, b"old")
    read = checksums._read

    def read_late(one):
        if one == path:
            write_file(path, b"new")
            monkeypatch.setattr(checksums, "_read", read)
        return read(one)

    monkeypatch.setattr(checksums, "_read", read_late)
    assert read_file(path) == b"new"


def test_removed_files_are_forgotten(tmp_path):
    write_file(tmp_path / "one", b"1")
    write_file(tmp_path / "two", b"2")
    remove_files(tmp_path, ["one", "three"])
    (tmp_path / "one").write_bytes(b"another")
    assert read_file(tmp_path / "one") == b"another"
    assert read_file(tmp_path / "two") == b"2"


def test_files_move_with_their_checksums(tmp_path):
    folder, source = tmp_path / "folder", tmp_path / "source"
    for path in (folder, source):
        path.mkdir()
        write_file(path / "both", path.name.encode())
    for name in ("outdated", "other"):
        write_file(folder / name, b"old")
    write_file(source / "new", b"new")
    move_files(source, folder, ["outdated", "missing"], last="new")
    assert [path.name for path in source.iterdir()] == [SUMS]
    listed = dict(checksums.listed_files(folder))
    assert listed == {"both": b"source", "new": b"new", "other": b"old"}
    assert {path.name for path in folder.iterdir()} == {*listed, SUMS}


@pytest.mark.parametrize("killed_at", range(9))
def test_a_process_may_be_killed_while_files_move(killed_at, tmp_path, monkeypatch):
    """The folder holds either model, or none, which the missing ``config.json`` shows; no file looks damaged."""
    folder, source = tmp_path / "folder", tmp_path / "source"
    outdated = ["config.json", "both", "outdated"]
    for path, names in ((folder, [*outdated, "other"]), (source, ["both", "config.json", "new"])):
        path.mkdir()
        for name in names:
            write_file(path / name, path.name.encode())
    old = dict(checksums.listed_files(folder))
    new = dict(checksums.listed_files(source)) | {"other": old["other"]}
    count = 0

    def some(function):
        def call(*arguments, **options):
            nonlocal count
            count += 1
            if count > killed_at:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", some(os.replace))
        patched.setattr(Path, "unlink", some(Path.unlink))
        if killed_at < 8:
            with pytest.raises(KeyboardInterrupt):
                move_files(source, folder, outdated, last="config.json")
        else:
            move_files(source, folder, outdated, last="config.json")
    left = {path.name: read_file(path) for path in folder.iterdir() if path.name != SUMS and path.suffix != ".tmp"}
    if killed_at in (0, 1):
        assert left == old
    elif killed_at in (7, 8):
        assert left == new
    else:
        assert "config.json" not in left
        assert left.items() <= old.items() | new.items()


def test_empty_lines_are_ignored(folder):
    path = folder / SUMS
    path.write_text("".join(f"{line}\n \n" for line in path.read_text().splitlines()))
    load(folder, device="cpu")


def test_a_damaged_list(folder):
    (folder / SUMS).write_text("garbage\n")
    with pytest.raises(DataError, match=rf"{SUMS}:1: is not a line with a checksum"):
        load(folder, device="cpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"hidden": 24', '"hidden": 24000000'), r"config\.json: encoder\.hidden: .*less than or equal to 65536"),
        (('"layers": 1,', '"layers": 1000000000,'), r"config\.json: encoder\.(character_)?layers: .* equal to 100"),
        (('"mlp": 16', '"mlp": 65536'), r"weights\.safetensors: does not fit .*config\.json: .* is expected"),
        (('"hidden": 24', '"hidden": 65536'), r"weights\.safetensors: does not fit .*config\.json: .* is expected"),
    ],
)
def test_huge_sizes_are_refused_before_anything_is_made(change, message, folder):
    (folder / SUMS).unlink()
    text = (folder / "config.json").read_text()
    assert change[0] in text
    (folder / "config.json").write_text(text.replace(*change))
    with pytest.raises(DataError, match=message) as error:
        load(folder, device="cpu")
    assert "\n" not in str(error.value)
