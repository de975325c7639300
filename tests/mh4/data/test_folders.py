"""Which files of a folder are read, and where their output is written."""

import errno
import os
from pathlib import Path

import pytest

from mh4.data.errors import DataError
from mh4.data.folders import is_folder_name, pair_files


@pytest.fixture
def corpus(tmp_path):
    """A folder with files of all kinds, some in subfolders."""
    folder = tmp_path / "corpus"
    names = (
        "b.conllu",
        "a.conllu.gz",
        "read.me",
        ".hidden.conllu",
        "c.txt",
        "x/c.txt.xz",
        "x/y/d.conllu",
        "x/.ipynb_checkpoints/d.conllu",
        ".git/e.conllu",
        "conllu",
        "z/",
    )
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(b"")
    return folder


def places(pairs, folder):
    return [str(target.relative_to(folder)) for _, target in pairs]


def test_files_keep_their_places_below_a_folder(corpus, tmp_path):
    out = tmp_path / "out"
    pairs = pair_files([corpus], out)
    assert [source.relative_to(corpus) for source, _ in pairs] == list(
        map(Path, ("a.conllu.gz", "b.conllu", "x/y/d.conllu"))
    )
    assert places(pairs, out) == ["a.conllu", "b.conllu", "x/y/d.conllu"]
    for form in ("text", "horizontal", "vertical"):
        assert places(pair_files([corpus], out, form), out) == ["c.conllu", "x/c.conllu"]
    assert not out.exists()


def test_files_are_in_the_order_of_their_names(corpus, tmp_path, monkeypatch):
    """File systems list them in any order."""
    walk = os.walk

    def backwards(*arguments, **options):
        for parent, folders, names in walk(*arguments, **options):
            folders.sort(reverse=True)
            yield parent, folders, sorted(names, reverse=True)

    (corpus / "w").mkdir()
    (corpus / "w" / "f.conllu").touch()
    monkeypatch.setattr(os, "walk", backwards)
    out = tmp_path / "out"
    assert places(pair_files([corpus], out), out) == ["a.conllu", "b.conllu", "w/f.conllu", "x/y/d.conllu"]


def test_a_hidden_folder_that_is_named_is_read(corpus, tmp_path):
    out = tmp_path / "out"
    assert places(pair_files([corpus / ".git", corpus / "x" / ".ipynb_checkpoints" / "d.conllu"], out), out) == [
        "e.conllu",
        "d.conllu",
    ]


def test_links_to_folders_are_followed_but_not_in_circles(corpus, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "e.conllu").write_bytes(b"")
    (corpus / "link").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(corpus)
    (corpus / "x" / "up").symlink_to("..")
    out = tmp_path / "out"
    assert places(pair_files([corpus], out), out) == ["a.conllu", "b.conllu", "link/e.conllu", "x/y/d.conllu"]


def test_capitals_in_endings(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("A.CoNLLU", "B.TXT.GZ", "c.Txt"):
        (folder / name).write_bytes(b"")
    assert places(pair_files([folder], tmp_path / "out"), tmp_path / "out") == ["A.CoNLLU"]
    assert places(pair_files([folder], tmp_path / "out", "text"), tmp_path / "out") == ["B.conllu", "c.conllu"]


def test_a_file_that_is_named_may_be_called_anything(corpus, tmp_path):
    files = [corpus / name for name in ("read.me", ".hidden.conllu", "conllu")]
    assert places(pair_files(files, tmp_path), tmp_path) == ["read.me", ".hidden.conllu", "conllu"]
    texts = [tmp_path / name for name in ("a.txt", "b.txt.xz", "c.v2", "d.conllu", ".gz")]
    for text in texts:
        text.write_bytes(b"")
    names = places(pair_files(texts, tmp_path / "out", "text"), tmp_path / "out")
    assert names == ["a.conllu", "b.conllu", "c.v2.conllu", "d.conllu.conllu", ".gz.conllu"]


def test_what_an_earlier_run_wrote_is_no_input(corpus):
    (corpus / "out").mkdir()
    (corpus / "out" / "b.conllu").write_bytes(b"")
    assert places(pair_files([corpus], corpus / "out"), corpus / "out") == ["a.conllu", "b.conllu", "x/y/d.conllu"]
    (corpus / "out" / "b.conllu").unlink()
    (corpus / "out" / "b.conllu").symlink_to(corpus / "b.conllu")
    with pytest.raises(DataError, match=r"out/b\.conllu: is an input and would be replaced"):
        pair_files([corpus], corpus / "out")


def test_files_that_cannot_go_together(corpus, tmp_path):
    b = corpus / "b.conllu"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.conllu").write_bytes(b"")
    (tmp_path / "taken" / "b.conllu").mkdir(parents=True)
    for files, folder, message in (
        ([b, tmp_path / "other" / "b.conllu"], "out", "other/b.conllu and .*corpus/b.conllu would both be written"),
        ([corpus, tmp_path / "other"], "out", "would both be written"),
        ([b, b], "out", "corpus/b.conllu: is named twice"),
        ([b], "corpus", "is an input and would be replaced"),
        ([b], "taken", "taken/b.conllu: is a folder"),
        ([b], "corpus/b.conllu", "is a file, not a folder"),
        (["-"], "out", "standard input: has no name"),
        (["/dev/stdin"], "out", "standard input: has no name"),
        (["/dev/fd/0"], "out", "/dev/fd/0: has no name"),
        ([tmp_path / "none.conllu"], "out", "none.conllu: no such file"),
        ([corpus / "z"], "out", r"z: holds no files that end in \.conllu"),
    ):
        with pytest.raises(DataError, match=message):
            pair_files(files, tmp_path / folder)
    assert not (tmp_path / "out").exists()


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "p")
    assert places(pair_files([tmp_path / "p"], tmp_path / "out"), tmp_path / "out") == ["p"]


def test_what_names_a_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert is_folder_name(str(tmp_path))
    assert is_folder_name("new/")
    assert not is_folder_name("new")
    assert not is_folder_name(str(tmp_path / "file"))
    assert not is_folder_name("-")


def test_what_cannot_be_read_below_a_folder_is_named(corpus, tmp_path, monkeypatch):
    link = corpus / "x" / "link.conllu"
    link.symlink_to(tmp_path / "nowhere.conllu")
    with pytest.raises(DataError, match=rf"^{link}: cannot be read: no such file"):
        pair_files([corpus], tmp_path / "out")
    link.unlink()

    def refuse(folder):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataError, match=rf"^{corpus}: cannot be read: permission denied"):
        pair_files([corpus], tmp_path / "out")


def test_files_called_like_standard_input_are_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "-").write_bytes(b"")
    (tmp_path / "in" / "-").write_bytes(b"")
    assert pair_files(["./-"], "out") == [(tmp_path / "-", Path("out/-"))]
    (tmp_path / "-").unlink()
    assert pair_files(["in/-"], ".") == [(Path("in/-"), tmp_path / "-")]
