"""Equal seeds give equal models, even on busy cores and with any settings of a host program."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
import torch
from on_gpu import CONFIGS, trainer_on
from safetensors.torch import load_file
from small import ANNOTATING, changed, same_weights
from torch.utils._python_dispatch import TorchDispatchMode

import mh4
from mh4.cli import app

SIZES = {"hidden": 16, "mlp": 8, "word_size": 8, "character_size": 4, "character_hidden": 8, "batch_words": 60}
SETTINGS = SIZES | {"evaluation_steps": 3, "max_steps": 6, "device": "cpu", "segmenter": False}
KINDS = {
    "chart": {"decoder": "eisner", "preset": "balanced"},
    "crf": {"decoder": "mst", "preset": "paper", "loss": "crf"},
    "greedy": {"system": "arc-hybrid", "preset": "paper"},
}
# Trains twice from one seed on two threads, beside a process that keeps a core busy; prints if weights agree.
TRAIN_AGAIN = """
import json, subprocess, sys
from pathlib import Path
import torch
import mh4
from safetensors.torch import load_file
train, dev, folder, settings = *map(Path, sys.argv[1:4]), json.loads(sys.argv[4])
assert torch.get_num_threads() == 2
busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
try:
    for name in "ab":
        mh4.train(train, dev, folder / name, threads=2, **settings)
finally:
    busy.kill()
    busy.wait()
first, second = (load_file(folder / name / "weights.safetensors") for name in "ab")
print(all(torch.equal(first[name], second[name]) for name in first))
"""


class Accumulations(TorchDispatchMode):
    """Counts the operators that, on the CPU, accumulate in an order that depends on its threads."""

    def __init__(self):
        super().__init__()
        self.count = self.all = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func._schema.name in ("aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::put_"):
            self.count += bool(kwargs.get("accumulate", args[3] if len(args) > 3 else False))
        self.all += 1
        return func(*args, **kwargs)


LEARNING = {
    **CONFIGS,
    "columns": changed(CONFIGS["mst"], **ANNOTATING, characters="all"),
    "crf": replace(CONFIGS["mst"], loss="crf"),
}


def test_accumulations_are_noticed():
    with Accumulations() as noticed:
        torch.zeros(3, requires_grad=True)[torch.tensor([1, 1])].sum().backward()
    assert noticed.count == 1


@pytest.mark.parametrize("name", LEARNING)
def test_a_step_adds_up_in_one_order(name, small_treebanks, tmp_path):
    trainer = trainer_on("cpu", LEARNING[name], small_treebanks, tmp_path)
    batch = trainer.collate(trainer.batches(0)[0])
    with Accumulations() as noticed:
        trainer.step(batch)
    assert noticed.all > 100
    assert noticed.count == 0


def test_equal_seeds_give_equal_models_under_load(small_treebanks, tmp_path):
    settings = KINDS["chart"] | {"batch_words": 400, "max_steps": 2, "device": "cpu", "segmenter": False}
    arguments = [*map(str, small_treebanks), str(tmp_path), json.dumps(settings)]
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    finished = subprocess.run(
        [sys.executable, "-c", TRAIN_AGAIN, *arguments], env=environment, capture_output=True, text=True, timeout=300
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split() == ["True"]


@pytest.fixture(scope="module", params=KINDS)
def trained(request, small_treebanks, tmp_path_factory):
    """A function that trains a kind of parser, and a folder with a model trained undisturbed."""
    folder = tmp_path_factory.mktemp("quiet")

    def train(name, **options):
        return mh4.train(*small_treebanks, folder / name, **{**SETTINGS, **KINDS[request.param], **options})

    train("quiet")
    return train, folder


def test_random_numbers_of_a_host_program_stay_its_own(trained):
    train, folder = trained
    torch.manual_seed(7)
    before = torch.get_rng_state()
    train("seeded", on_step=lambda *_: mh4.load(folder / "quiet", device="cpu"))
    assert torch.equal(torch.get_rng_state(), before)
    assert same_weights(folder / "quiet", folder / "seeded")


def test_neither_other_draws_nor_other_trainings_change_a_model(trained):
    train, folder = trained
    over = threading.Event()

    def draw():
        while not over.is_set():
            torch.rand(3)

    names = ["first", "second", "third"]
    threads = [threading.Thread(target=train, args=[name]) for name in names]
    drawing = threading.Thread(target=draw)
    for thread in (drawing, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    drawing.join()
    for name in names:
        assert same_weights(folder / "quiet", folder / name)


@contextlib.contextmanager
def float64_by_default():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def another_device_by_default():
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextlib.contextmanager
def deterministic_algorithms():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


HOSTS = {
    "float64": float64_by_default,
    "device": another_device_by_default,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "deterministic": deterministic_algorithms,
}


@pytest.mark.parametrize("host", HOSTS)
def test_settings_of_a_host_program_change_nothing(host, trained, small_treebanks):
    train, folder = trained
    quiet = mh4.load(folder / "quiet", device="cpu")
    options = {"confidence": "all"} if quiet.can_keep_heads else {}
    dev = list(mh4.read_conllu(small_treebanks[1]))
    expected = [sentence.to_dict() for sentence in quiet(dev, **options)]
    name = f"under {host}"
    with HOSTS[host]():
        train(name, max_steps=3, overwrite=True)
        train(name, resume=True)
        inside = [sentence.to_dict() for sentence in quiet(dev, **options)]
        loaded = mh4.load(folder / "quiet", device="cpu")
    assert same_weights(folder / "quiet", folder / name)
    assert load_file(folder / name / "training.safetensors").keys() == (
        load_file(folder / "quiet" / "training.safetensors").keys()
    )
    assert inside == expected
    assert [sentence.to_dict() for sentence in loaded(dev, **options)] == expected


def test_threads_mean_the_same_everywhere(small_treebanks, tmp_path, monkeypatch):
    seen = []
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for threads in (1, 2, None):
            mh4.train(
                *small_treebanks,
                tmp_path / f"api-{threads}",
                threads=threads,
                on_step=lambda *_: seen.append(torch.get_num_threads()),
                **SETTINGS | {"max_steps": 1},
                **KINDS["chart"],
            )
            assert torch.get_num_threads() == 2
        options = [word for name, size in SIZES.items() for word in ("--set", f"{name}={size}")]
        files = [str(small_treebanks[0]), "--dev", str(small_treebanks[1]), "-o", str(tmp_path / "cli")]
        limits = ["--decoder", "eisner", "--max-steps", "1", "--no-segmenter", "--device", "cpu", "--threads", "1"]
        app(["train", *files, *limits, *options], standalone_mode=False)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen[:2] == [1, 2]
    assert 1 <= seen[2] <= 2  # at most what the process may use
    assert same_weights(tmp_path / "api-1", tmp_path / "cli")
