"""Parsers are pickled as the paths of their folders, and parse in order in other processes."""

import multiprocessing
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import pytest
from paths import ROOT

import mh4
from mh4.data.errors import DataError
from mh4.parsers.registry import new_parser

GOLDEN = ROOT / "tests" / "golden" / "models"
START_METHODS = [name for name in ("fork", "spawn") if name in multiprocessing.get_all_start_methods()]
WORDS = ["Te", "nofe", "mihevode", "Zvai", "te", "Kve", "yeni", "takomero"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model folder with checksums."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    mh4.load(GOLDEN / "chart", device="cpu").save(folder)
    return folder


def test_a_process_loads_a_model_once(model):
    parser = mh4.load(model, device="cpu", threads=1, search="beam:3")
    pickled = pickle.dumps(parser)
    assert len(pickled) < 1000
    again = pickle.loads(pickled)
    assert again is pickle.loads(pickle.dumps(again)) is pickle.loads(pickled)
    assert (again.threads, again.decoder.width, again.device.type) == (1, 3, "cpu")
    assert again(WORDS) == parser(WORDS)
    assert pickle.loads(pickle.dumps(mh4.load(model, threads=2))) is not again


def test_a_new_process_needs_nothing_else_of_the_package(model):
    pickled = pickle.dumps(mh4.load(model, device="cpu"))
    program = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()))"
    ended = subprocess.run([sys.executable, "-c", program], input=pickled, capture_output=True, check=True)
    assert ended.stdout.startswith(b"<ChartParser")


def test_ensembles_travel_by_the_folders_of_their_models(model):
    ensemble = mh4.load(model, model, combine="scores")
    again = pickle.loads(pickle.dumps(ensemble))
    assert (again.combine, len(again.members), again.decoder.name) == ("scores", 2, "mst")
    assert all(one is again.members[0] for one in again.members)


def test_a_process_loads_each_member_of_a_large_ensemble_once(model, tmp_path):
    folders = [shutil.copytree(model, tmp_path / str(number)) for number in range(5)]
    pickled = pickle.dumps(mh4.load(*folders))
    first, again = pickle.loads(pickled), pickle.loads(pickled)
    assert all(one is other for one, other in zip(first.members, again.members, strict=True))


def test_a_parser_without_its_folder_does_not_travel(model, tmp_path):
    with pytest.raises(TypeError, match=r"has no folder, which pickling needs; write parser.save\(folder\)"):
        pickle.dumps(new_parser(mh4.load(model).definition, "cpu"))
    shutil.copytree(model, tmp_path / "model")
    pickled = pickle.dumps(mh4.load(tmp_path / "model"))
    mh4.load(GOLDEN / "greedy").save(tmp_path / "model", overwrite=True)
    with pytest.raises(DataError, match="model: does not hold the model of the parser that"):
        pickle.loads(pickled)
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(DataError, match=r"model: no such model here \(a parser is pickled as the path of its folder;"):
        pickle.loads(pickled)


@pytest.mark.parametrize("method", START_METHODS)
def test_four_processes_answer_a_thousand_texts_in_order(method, text_model):
    parser = mh4.load(text_model, device="cpu", threads=1)
    texts = [" ".join(WORDS[i % 8 : i % 8 + 1 + i % 3]) + f" {i}." for i in range(1000)]
    expected = list(parser.pipe(texts))
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context(method)) as pool:
        found = list(pool.map(parser, texts, chunksize=10, timeout=300))
    assert found == expected
    assert [document.text.split()[-1].rstrip(".") for document in found] == [str(i) for i in range(1000)]
