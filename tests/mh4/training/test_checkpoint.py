"""Training survives being killed, and resumes only from its own state."""

import shutil
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import small
import torch
from safetensors.torch import load_file
from small import log_of, same_weights, small_config, train

from mh4.data.errors import DataError
from mh4.models.randomness import Randomness
from mh4.models.weight_average import WeightAverage
from mh4.parsers.chart import ChartParser
from mh4.parsers.checksums import SUMS
from mh4.parsers.definition import Definition
from mh4.parsers.folder import ModelFolder
from mh4.parsers.model_files import read_state, write_tensors
from mh4.training.checkpoint import Checkpoint
from mh4.training.schedule import Progress
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold

RUN = """
import sys, time
sys.path.insert(0, sys.argv[1])
from small import small_config, train
train(sys.argv[2], sys.argv[3], sys.argv[4], small_config(max_steps=40), device="cpu", resume=True,
      on_step=lambda *_: time.sleep(0.1))
"""


def test_resume_after_sigkill_equals_an_uninterrupted_run(small_treebanks, tmp_path):
    """Killed at an arbitrary moment and resumed, training gives the weights and the log of an undisturbed run."""
    train(*small_treebanks, tmp_path / "quiet", small_config(max_steps=40), device="cpu")
    folder = tmp_path / "killed"

    arguments = [str(path) for path in (Path(small.__file__).parent, *small_treebanks, folder)]
    with subprocess.Popen([sys.executable, "-c", RUN, *arguments]) as process:
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and process.poll() is None:
            if (folder / "log.jsonl").exists() and len(log_of(folder)) >= 2:
                break
            time.sleep(0.02)
        assert process.poll() is None, "finished before it could be killed"
        process.send_signal(signal.SIGKILL)
    ChartParser.load(folder, device="cpu")  # the best model so far is complete
    train(*small_treebanks, folder, small_config(max_steps=40), device="cpu", resume=True)
    assert same_weights(tmp_path / "quiet", folder)
    keys = ("step", "loss", "dev_uas", "dev_las", "learning_rate", "best")
    assert [[r[k] for k in keys] for r in log_of(folder)] == [[r[k] for k in keys] for r in log_of(tmp_path / "quiet")]


def test_averages_batches_and_seconds_are_resumed_within_an_epoch(small_treebanks, tmp_path, monkeypatch):
    config = small_config("mst", weight_average=0.9)

    def train(*job, **options):
        monkeypatch.setattr("mh4.training.trainer.time", SimpleNamespace(perf_counter=count(5.0).__next__))
        small.train(*job, **options)

    train(*small_treebanks, tmp_path / "quiet", config, device="cpu")

    def interrupt(report):
        if report["step"] == 4:
            assert report["epoch"] == 0.5
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, tmp_path / "resumed", config, device="cpu", on_evaluation=interrupt)
    train(*small_treebanks, tmp_path / "resumed", config, device="cpu", resume=True)
    quiet, resumed = (load_file(tmp_path / name / "training.safetensors") for name in ("quiet", "resumed"))
    assert all(torch.equal(quiet[name], resumed[name]) for name in quiet)
    assert same_weights(tmp_path / "quiet", tmp_path / "resumed")
    for name in ("quiet", "resumed"):
        assert [(report["step"], report["seconds"]) for report in log_of(tmp_path / name)] == [(4, 4), (8, 8), (12, 12)]
    weights = load_file(tmp_path / "quiet" / "weights.safetensors")
    assert any((weights[name] != quiet[f"network/{name}"]).any() for name in weights)  # weights are averages


def test_interruption_keeps_a_model_and_resumption_starts_again(small_treebanks, small_model, tmp_path):
    def interrupt(progress, _):
        if progress.step == 2:  # before the first evaluation
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, tmp_path / "m", small_config(), device="cpu", on_step=interrupt)
    ChartParser.load(tmp_path / "m", device="cpu")
    train(*small_treebanks, tmp_path / "m", small_config(), device="cpu", resume=True)
    assert same_weights(tmp_path / "m", small_model)
    assert [report["step"] for report in log_of(tmp_path / "m")] == [report["step"] for report in log_of(small_model)]


def test_an_interruption_leaves_the_best_model_alone(small_treebanks, tmp_path):
    best = []

    def interrupt(progress, _):
        if progress.step == 6:
            raise KeyboardInterrupt

    def note(report):
        best.append((tmp_path / "weights.safetensors").read_bytes())

    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, tmp_path, small_config("mst"), device="cpu", on_step=interrupt, on_evaluation=note)
    assert [(tmp_path / "weights.safetensors").read_bytes()] == best


def test_before_the_first_step_there_is_no_model(small_treebanks, tmp_path, monkeypatch):
    def interrupt(self, batch):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, tmp_path, small_config(), device="cpu")
    assert not (tmp_path / "weights.safetensors").exists()


def test_half_a_line_at_the_end_of_the_log_is_cut(small_treebanks, small_model, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(small_model, folder)
    whole = (folder / "log.jsonl").read_bytes()
    (folder / "log.jsonl").write_bytes(whole + whole[:20])
    train(*small_treebanks, folder, small_config(), device="cpu", resume=True)
    assert (folder / "log.jsonl").read_bytes() == whole


def test_limits_may_change_on_resumption(small_treebanks, small_model, tmp_path):
    """The first limit is at a step where training without it evaluates, too."""
    for limit in ({"max_steps": 8}, {"max_epochs": 1}, {}):
        progress = train(*small_treebanks, tmp_path, small_config("mh4-hybrid", **limit), device="cpu", resume=True)
        assert progress.finished
        assert progress.step == len(log_of(tmp_path)) * 4
        assert ModelFolder(tmp_path).config == small_config("mh4-hybrid", **limit)
    assert progress.step == 12
    assert same_weights(tmp_path, small_model)


@pytest.mark.parametrize("failing", [4, 8])
def test_a_log_ahead_of_the_state_is_cut(failing, small_treebanks, tmp_path, monkeypatch):
    save = Checkpoint.save

    def fail(self, progress):
        if progress.step == failing:
            raise OSError("disk full")
        save(self, progress)

    config = small_config("mst")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", fail)
        with pytest.raises(OSError, match="disk full"):
            train(*small_treebanks, tmp_path, config, device="cpu")
    first = log_of(tmp_path)
    train(*small_treebanks, tmp_path, config, device="cpu", resume=True)
    steps = [report["step"] for report in log_of(tmp_path)]
    assert [report["step"] for report in first] == [*range(4, failing + 1, 4)]
    assert steps == [4, 8, 12]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.jsonl", b"garbage\n", r"log\.jsonl:1: not a line of this log"),
        ("log.jsonl", b"{}\n", r"log\.jsonl:1: not a line of this log"),
        ("training.safetensors", None, r"training\.safetensors: holds no training state"),
        ("weights.safetensors", b"", r"weights\.safetensors: not a complete safetensors file"),
    ],
)
def test_damaged_files_are_not_gone_on_from(name, content, message, small_treebanks, small_model, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(small_model, folder)
    (folder / SUMS).unlink()
    (folder / name).write_bytes((folder / "weights.safetensors").read_bytes() if content is None else content)
    with pytest.raises(DataError, match=message):
        train(*small_treebanks, folder, small_config(), device="cpu", resume=True)


def test_resumption_wants_the_same_sentences(small_treebanks, small_model, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(small_model, folder)
    train_file, dev_file = small_treebanks
    sentences = train_file.read_text(encoding="utf-8").strip("\n").split("\n\n")
    other = tmp_path / "other.conllu"
    other.write_text("\n\n".join(sentences[::-1]) + "\n\n", encoding="utf-8")
    for treebanks in ((other, dev_file), (train_file, other)):
        with pytest.raises(DataError, match="other sentences"):
            train(*treebanks, folder, small_config(), device="cpu", resume=True)


def test_a_decay_may_go_back_to_the_best_weights(small_treebanks, tmp_path, monkeypatch):
    """The first evaluation is the best one here; interruptions before and after a decay change nothing."""
    monkeypatch.setattr(
        Trainer, "dev_scores", lambda self: {None: (50.0, 40.0 if self.progress.best_step == 0 else 30.0)}
    )
    config = small_config(patience=2, decays=2, decay_from="best", weight_average=0.9, max_steps=1000)
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(Definition.learn(config, sentences), device="cpu")
    distances, restarted = [], []

    def note_distance(report):
        best = load_file(tmp_path / "weights.safetensors")
        now = parser.network.state_dict()
        distances.append(max((best[name] - p).abs().max().item() for name, p in now.items()))
        averages = trainer.average.averages
        restarted.append(all(torch.equal(averages[name], p) for name, p in parser.network.named_parameters()))

    trainer = Trainer(parser, sentences, sentences, tmp_path, on_evaluation=note_distance)
    trainer.run()
    assert [distance == 0.0 for distance in distances] == restarted == [False, False, True, False, True, False, True]

    train(*small_treebanks, tmp_path / "quiet", config, device="cpu")
    quiet = load_file(tmp_path / "quiet" / "training.safetensors")
    for line in (0, 2):  # before and after the first decay
        folder = tmp_path / str(line)

        def interrupt(report, folder=folder, line=line):
            if len(log_of(folder)) > line:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(*small_treebanks, folder, config, device="cpu", on_evaluation=interrupt)
        assert len(log_of(folder)) == line + 1
        train(*small_treebanks, folder, config, device="cpu", resume=True)
        resumed = load_file(folder / "training.safetensors")
        assert all(torch.equal(quiet[name], resumed[name]) for name in quiet)


def test_the_state_is_by_name(tmp_path):
    """Parameters may be in other groups, and in another order, than when they were saved."""

    def new(seed, groups):
        torch.manual_seed(seed)
        network = torch.nn.ModuleDict({name: torch.nn.Linear(3, 3) for name in ("first", "second", "unused")})
        parameters = [{"params": [p for name in names for p in network[name].parameters()]} for names in groups]
        optimizer = torch.optim.AdamW(parameters, fused=True)
        average = WeightAverage(network, 0.9)
        randomness = Randomness(seed)
        checkpoint = Checkpoint(tmp_path, network, optimizer, average, randomness, [])
        return network, optimizer, average, randomness, checkpoint

    def step(network, optimizer, average, randomness):
        x = torch.rand(4, 3, generator=randomness.on())
        optimizer.zero_grad()
        network["second"](network["first"](x)).pow(2).sum().backward()
        optimizer.step()
        average.update(5)

    *trained, checkpoint = new(1, [["first"], ["second", "unused"]])
    step(*trained)
    checkpoint.save(Progress(step=5, learning_rate=0.5))
    step(*trained)
    *other, checkpoint = new(2, [["unused", "second"], ["first"]])
    assert checkpoint.load() == Progress(step=5, learning_rate=0.5)
    step(*other)
    for one, another in zip(trained[0].parameters(), other[0].parameters(), strict=True):
        torch.testing.assert_close(one, another, rtol=0, atol=0)
    for one, another in zip(trained[2].averages.values(), other[2].averages.values(), strict=True):
        torch.testing.assert_close(one, another, rtol=0, atol=0)
    names = load_file(tmp_path / "training.safetensors")
    assert {"network/first.weight", "optimizer/exp_avg/first.weight", "average/first.weight", "random/cpu"} < set(names)
    assert "optimizer/exp_avg/unused.weight" not in names


def without(name):
    return lambda tensors, header: tensors.pop(name)


def into(name, tensor):
    return lambda tensors, header: tensors.update({name: tensor})


def header_with(**values):
    return lambda tensors, header: header.update(values)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (header_with(batch=10**9), r"batch, epoch|cannot be beyond step"),
        (header_with(batch=11), "batch 11 of an epoch that has"),
        (header_with(step=-1), "step must not be negative"),
        (header_with(step="many"), "step: must be a valid integer"),
        (header_with(learning_rate=float("nan")), "learning_rate"),
        (header_with(seed=3), "seed: unknown to this version"),
        (without("random/cpu"), "random/cpu is missing"),
        (into("random/cpu", torch.zeros(7)), r"random/cpu is float32 \(7,\) where uint8"),
        (without("network/scorer.0.weight"), "network/.* is missing"),
        (into("network/extra", torch.zeros(2)), "network/extra stands for nothing"),
        (into("optimizer/exp_avg/extra", torch.zeros(2)), "optimizer/exp_avg/extra stands for nothing"),
        (into("optimizer/exp_avg/labeler.output.bias", torch.zeros(1, 1)), r"labeler.output.bias is float32 \(1, 1\)"),
        (into("optimizer/step/labeler.output.bias", torch.zeros(3)), r"labeler.output.bias is float32 \(3,\) where"),
    ],
)
def test_a_state_that_does_not_fit_is_one_line(damage, message, small_treebanks, small_model, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(small_model, folder)
    (folder / SUMS).unlink()
    tensors, header = load_file(folder / "training.safetensors"), read_state(folder / "training.safetensors")
    if message.startswith("network/.*"):
        damage = without(next(name for name in tensors if name.startswith("network/")))
    damage(tensors, header)
    write_tensors(folder / "training.safetensors", tensors, header)
    before = (folder / "weights.safetensors").read_bytes()
    with pytest.raises(DataError, match=rf"training\.safetensors: .*({message}).*start again") as error:
        train(*small_treebanks, folder, small_config(), device="cpu", resume=True)
    assert "\n" not in str(error.value)
    assert (folder / "weights.safetensors").read_bytes() == before
