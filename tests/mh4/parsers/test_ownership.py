"""Two trainings into one folder: the second is refused and does not affect the first; saving and packaging likewise."""

import subprocess
import sys

import pytest
from paths import GOLDEN_FOLDER
from small import small_config, train

import mh4
from mh4.data.errors import DataError
from mh4.parsers.config import PerceptronConfig
from mh4.parsers.ownership import sole_owner, without_owner
from mh4.parsers.packages.packaging import package

HOLD = """
import sys, time
from pathlib import Path
from mh4.parsers.ownership import sole_owner
with sole_owner(Path(sys.argv[1])):
    print("owned", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def owned(tmp_path):
    """A folder owned by another process, and the process."""
    folder = tmp_path / "m"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "owned\n"
        yield folder, process
        process.kill()


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
def test_a_second_training_is_told_who_owns_the_folder(options, owned, small_treebanks):
    folder, process = owned
    with pytest.raises(DataError, match=rf"m: process {process.pid} on .* is working on the model in this folder"):
        train(*small_treebanks, folder, small_config(), device="cpu", **options)
    with pytest.raises(DataError, match="is working on"):
        train(*small_treebanks, folder, PerceptronConfig(iterations=1), overwrite=True)
    assert not (folder / "config.json").exists()


def test_the_folder_of_a_killed_training_is_free_at_once(owned):
    folder, process = owned
    process.kill()
    process.wait()
    with sole_owner(folder):
        pass


def test_threads_of_one_process_are_two_trainings_as_well(tmp_path):
    with (
        sole_owner(tmp_path / "m"),
        pytest.raises(DataError, match="is working on"),
        sole_owner(tmp_path / "m"),
    ):
        pass


def test_a_training_that_comes_to_nothing_leaves_no_folder(small_treebanks, tmp_path):
    (tmp_path / "empty.conllu").write_text("")
    with pytest.raises(DataError, match="holds no sentences"):
        train(tmp_path / "empty.conllu", small_treebanks[1], tmp_path / "a" / "m", small_config(), device="cpu")
    assert not (tmp_path / "a").exists()


def test_only_folders_that_were_made_for_nothing_are_removed(tmp_path):
    (tmp_path / "own").mkdir()
    for folder in (tmp_path / "own", tmp_path / "own" / "new" / "m"):
        with sole_owner(folder):
            assert folder.is_dir()
        assert [path.name for path in tmp_path.rglob("*")] == ["own"]


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file: no model can be written here"), sole_owner(tmp_path / "file"):
        pass
    (tmp_path / "m" / ".owner").mkdir(parents=True)  # as in a folder that may be read only
    with pytest.raises(DataError, match="m: no model can be written here"), sole_owner(tmp_path / "m"):
        pass


def test_a_model_is_neither_replaced_nor_packaged_while_it_is_trained(tmp_path):
    folder = tmp_path / "m"
    parser = mh4.load(GOLDEN_FOLDER / "models" / "chart")
    parser.save(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with sole_owner(folder):
        with pytest.raises(DataError, match="is working on the model in this folder"):
            parser.save(folder, overwrite=True)
        with pytest.raises(DataError, match="is working on the model in this folder"):
            package(folder, tmp_path / "m.mh4.zip")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not (tmp_path / "m.mh4.zip").exists()


def test_those_who_only_read_a_folder_do_not_exclude_each_other(tmp_path):
    with without_owner(tmp_path), without_owner(tmp_path), pytest.raises(DataError), sole_owner(tmp_path):
        pass
    with sole_owner(tmp_path):
        pass
