"""Two trainings into one folder: the second is refused and does not affect the first."""

import subprocess
import sys

import pytest
from small import small_config, train

from mh4.data.errors import DataError
from mh4.parsers.config import PerceptronConfig
from mh4.training.ownership import sole_owner

HOLD = """
import sys, time
from pathlib import Path
from mh4.training.ownership import sole_owner
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
    with pytest.raises(
        DataError, match=rf"m: process {process.pid} on .* is training or calibrating a model in this folder"
    ):
        train(*small_treebanks, folder, small_config(), device="cpu", **options)
    with pytest.raises(DataError, match="is training or calibrating"):
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
        pytest.raises(DataError, match="is training or calibrating"),
        sole_owner(tmp_path / "m"),
    ):
        pass


def test_a_training_that_comes_to_nothing_leaves_no_folder(small_treebanks, tmp_path):
    (tmp_path / "empty.conllu").write_text("")
    with pytest.raises(DataError, match="holds no sentences"):
        train(tmp_path / "empty.conllu", small_treebanks[1], tmp_path / "m", small_config(), device="cpu")
    assert not (tmp_path / "m").exists()


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file: no model can be written here"), sole_owner(tmp_path / "file"):
        pass
    (tmp_path / "m" / ".owner").mkdir(parents=True)  # as in a folder that may be read only
    with pytest.raises(DataError, match="m: no model can be written here"), sole_owner(tmp_path / "m"):
        pass
