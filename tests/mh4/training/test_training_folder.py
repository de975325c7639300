"""Contents of a model's folder at every stage of training, and messages about them."""

import errno
import json
import logging
import os
import shutil
import signal
import time

import pytest
from safetensors.torch import load_file
from small import ANNOTATING, changed, log_of, same_weights, small_config, train

import mh4
from mh4.data.errors import DataError
from mh4.parsers import checksums
from mh4.parsers.chart import ChartParser
from mh4.parsers.checksums import write_file
from mh4.parsers.config import ChartConfig, PerceptronConfig
from mh4.parsers.registry import load
from mh4.training import running, trainer
from mh4.training.training_folder import TrainingFolder

QUICK = "epochs=1;dimension=16;segment_size=20"


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def older(small_model, tmp_path):
    """A folder with a complete model that has its own segmenter."""
    folder = tmp_path / "older"
    shutil.copytree(small_model, folder)
    (folder / "segmenter.udpipe").write_bytes(b"of the older model")
    return folder


def interrupt_at(step):
    def interrupt(progress, _):
        if progress.step == step:
            raise KeyboardInterrupt

    return interrupt


def test_an_older_model_stays_until_there_is_a_new_one(older, small_treebanks):
    before, config = content(older), small_config("mst")
    with pytest.raises(KeyboardInterrupt) as interruption:
        train(*small_treebanks, older, config, device="cpu", overwrite=True, on_step=interrupt_at(3))
    assert content(older) == before
    assert interruption.value.__notes__ == [f"{older} holds the model that was there before; start again"]
    with pytest.raises(KeyboardInterrupt) as interruption:
        train(*small_treebanks, older, config, device="cpu", overwrite=True, on_step=interrupt_at(5))
    assert ChartParser.load(older, device="cpu").config == config
    assert [report["step"] for report in log_of(older)] == [4]
    assert not (older / "segmenter.udpipe").exists()
    assert not (older / "calibration.json").exists()
    note = f"the best model so far is in {older}, without a calibration for confidence; continue with resume=True"
    assert interruption.value.__notes__ == [note]


@pytest.mark.parametrize("config", [ChartConfig(), PerceptronConfig()])
def test_an_older_model_outlives_a_training_that_fails(config, older, small_treebanks):
    before = content(older)
    train_file, dev = small_treebanks
    with pytest.raises(DataError):
        train(train_file, dev.parent / "missing.conllu", older, config, overwrite=True)
    assert content(older) == before


SAVING = {
    "network": {"max_steps": 3, "evaluation_steps": 1},
    "perceptron": {"system": "arc-eager", "scorer": "perceptron", "epochs": 1},
}


def train_over(treebanks, folder, kind):
    return mh4.train(*treebanks, folder, overwrite=True, segmenter=False, **SAVING[kind])


@pytest.mark.parametrize("name", ["vocab.json", "config.json", "weights.safetensors"])
@pytest.mark.parametrize("kind", SAVING)
def test_an_older_model_stays_if_the_new_one_cannot_be_written(kind, name, older, small_treebanks, monkeypatch):
    before, write = content(older), checksums.atomic_output

    def fail(path):
        if path.name == name:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path)

    monkeypatch.setattr(checksums, "atomic_output", fail)
    with pytest.raises(DataError, match=r"older: no model can be written here: no space left on device$"):
        train_over(small_treebanks, older, kind)
    assert content(older) == before


@pytest.mark.parametrize("kind", SAVING)
@pytest.mark.parametrize("step", ["written", "moved"])
def test_ctrl_c_while_the_first_model_is_saved(step, kind, older, small_treebanks, monkeypatch):
    """Either model is complete, and the message tells which one."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore Ctrl-C
    before, write, move = content(older), checksums.atomic_output, os.replace

    def interrupt_writing(path):
        if path.name == "weights.safetensors":
            signal.raise_signal(signal.SIGINT)
        return write(path)

    def interrupt_moving(source, target):
        if target == older / "vocab.json":
            signal.raise_signal(signal.SIGINT)
        return move(source, target)

    if step == "written":
        monkeypatch.setattr(checksums, "atomic_output", interrupt_writing)
    else:
        monkeypatch.setattr(checksums.os, "replace", interrupt_moving)
    with pytest.raises(KeyboardInterrupt) as interruption:
        train_over(small_treebanks, older, kind)
    (note,) = interruption.value.__notes__
    if step == "written":
        assert note == f"{older} holds the model that was there before; start again"
        assert content(older) == before
    else:
        assert note.startswith(f"the best model so far is in {older}")
        assert not (older / "segmenter.udpipe").exists()
        load(older, device="cpu")


def test_resuming_what_is_not_there_is_noted(small_treebanks, tmp_path, caplog, monkeypatch):
    """The name of the folder may be mistyped."""
    monkeypatch.setattr(trainer.Trainer, "run", lambda self: self.progress)
    with caplog.at_level(logging.INFO):
        train(*small_treebanks, tmp_path / "m", small_config("mst"), device="cpu", resume=True)
    assert f"{tmp_path / 'm'}: holds no model to continue; training starts from the beginning" in caplog.messages


def test_an_interruption_before_the_first_evaluation_of_a_resumed_training(older, small_treebanks, caplog):
    """Its weights are of the same training, so they replace the earlier ones."""
    (older / "training.safetensors").unlink()
    (older / "meta.json").unlink()
    with pytest.raises(KeyboardInterrupt) as interruption:
        train(*small_treebanks, older, small_config(), device="cpu", resume=True, on_step=interrupt_at(3))
    assert "start over with resume=True" in interruption.value.__notes__[0]
    assert "holds no state of an interrupted training, training.safetensors; training starts" in caplog.text
    assert not (older / "log.jsonl").exists()
    assert (older / "segmenter.udpipe").read_bytes() == b"of the older model"
    assert not (older / "calibration.json").exists()


def test_a_finished_model_without_a_state_is_not_replaced_by_resuming(older, small_treebanks):
    (older / "training.safetensors").unlink()
    before = content(older)
    with pytest.raises(DataError, match=r"holds a model, but no state .* instead of resume=True\)$"):
        train(*small_treebanks, older, small_config(), device="cpu", resume=True)
    assert content(older) == before


DIVERGING = {
    "rate": {"learning_rate": 1e36},
    "clip": {"gradient_clip": 1e30, "learning_rate": 1e36, "evaluation_steps": 1, "batch_words": 1000},  # shows on dev
    "decay": {"weight_decay": 1e30, "evaluation_steps": 1},
}


@pytest.mark.parametrize("name", DIVERGING)
def test_diverged_training_says_what_is_left(name, older, small_treebanks, tmp_path):
    before, config = content(older), small_config("eisner", **DIVERGING[name])
    with pytest.raises(ValueError, match=r"^training diverged: .* \(lower learning_rate; ") as error:
        train(*small_treebanks, older, config, device="cpu", overwrite=True)
    assert str(error.value).endswith(f"{older} holds the model that was there before)")
    assert content(older) == before
    with pytest.raises(ValueError, match=r"^training diverged: .*no model has been saved yet\)$"):
        train(*small_treebanks, tmp_path / "a" / "new", config, device="cpu")
    assert not (tmp_path / "a").exists()


def test_what_diverges_late_leaves_the_best_model(small_treebanks, tmp_path, monkeypatch):
    def diverge(report):
        if report["step"] == 4:
            trainers[0].optimizer.param_groups[0]["lr"] = 0.0
            trainers[0].progress.learning_rate = 1e38

    trainers = []
    run = trainer.Trainer.run
    monkeypatch.setattr(trainer.Trainer, "run", lambda self: trainers.append(self) or run(self))
    with pytest.raises(ValueError, match=r"the best model so far is in .*m, without a calibration"):
        train(*small_treebanks, tmp_path / "m", small_config("mst"), device="cpu", on_evaluation=diverge)
    load(tmp_path / "m", device="cpu")


def test_an_older_model_gives_way_to_another_kind(older, small_treebanks):
    config = PerceptronConfig(iterations=1)
    train(*small_treebanks, older, config, overwrite=True)
    assert load(older).config == config
    assert not (older / "segmenter.udpipe").exists()
    train(*small_treebanks, older, small_config("mst"), device="cpu", overwrite=True)
    assert load(older, device="cpu").config == small_config("mst")


def test_a_calibration_that_is_missing_comes_on_resumption(small_treebanks, tmp_path):
    folder = tmp_path / "m"
    train(*small_treebanks, folder, small_config("mst"), device="cpu")
    calibration = (folder / "calibration.json").read_bytes()
    (folder / "calibration.json").unlink()
    train(*small_treebanks, folder, small_config("mst"), device="cpu", resume=True)
    assert (folder / "calibration.json").read_bytes() == calibration


def test_the_segmenter_comes_with_the_first_model(older, small_treebanks, monkeypatch):
    """It is not trained again when training resumes."""
    trained, whole = [], running.train_segmenter
    monkeypatch.setattr(running, "train_segmenter", lambda *given: trained.append(given) or whole(*given))
    config = small_config(evaluation_steps=4, max_steps=9)
    options = {"device": "cpu", "segmenter": True}
    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, older, config, overwrite=True, on_step=interrupt_at(3), **options)
    assert (older / "segmenter.udpipe").exists()  # the older model is still complete
    assert not (older / "segmenter.json").exists()
    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, older, config, overwrite=True, on_step=interrupt_at(6), **options)
    assert not (older / "segmenter.udpipe").exists()
    before = (older / "segmenter.safetensors").read_bytes()
    assert len(trained) == 2
    train(*small_treebanks, older, config, resume=True, **options)
    assert len(trained) == 2
    assert (older / "segmenter.safetensors").read_bytes() == before


def test_a_training_that_goes_on_learns_to_cut_text_if_it_had_not(small_treebanks, tmp_path):
    folder = tmp_path / "m"
    train(*small_treebanks, folder, small_config(max_steps=4), device="cpu")
    weights = (folder / "weights.safetensors").read_bytes()
    train(*small_treebanks, folder, small_config(max_steps=4), device="cpu", resume=True, segmenter=True)
    assert load(folder, device="cpu").segmenter is not None
    assert (folder / "weights.safetensors").read_bytes() == weights


def test_no_calibration_is_that_of_other_weights(small_treebanks, tmp_path, monkeypatch):
    """A finished training is resumed, saves better weights, and is interrupted before it calibrates them."""
    scores = iter([(50.0, 50.0), (60.0, 60.0), (55.0, 55.0)])
    monkeypatch.setattr(trainer.Trainer, "dev_scores", lambda self: {None: next(scores)})
    train(*small_treebanks, tmp_path, small_config("mst", max_steps=4), device="cpu")
    assert (tmp_path / "calibration.json").exists()
    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, tmp_path, small_config("mst"), device="cpu", resume=True, on_step=interrupt_at(11))
    assert not (tmp_path / "calibration.json").exists()


def test_weights_that_stay_keep_their_calibration(small_treebanks, tmp_path, monkeypatch):
    scores = iter([(50.0, 50.0), (40.0, 40.0), (45.0, 45.0)])
    monkeypatch.setattr(trainer.Trainer, "dev_scores", lambda self: {None: next(scores)})
    train(*small_treebanks, tmp_path, small_config("mst", max_steps=4), device="cpu")
    own = json.loads((tmp_path / "calibration.json").read_bytes())
    train(*small_treebanks, tmp_path, small_config("mst"), device="cpu", resume=True)
    assert json.loads((tmp_path / "calibration.json").read_bytes()) == own


def test_an_interrupted_perceptron_says_what_is_left(small_treebanks, tmp_path):
    def interrupt(report):
        raise KeyboardInterrupt

    folder = tmp_path / "m"
    with pytest.raises(KeyboardInterrupt) as interruption:
        train(*small_treebanks, folder, PerceptronConfig(), on_evaluation=interrupt)
    note = f"the best model so far is in {folder}; start again with overwrite=True"
    assert interruption.value.__notes__ == [note]
    assert len(load_file(folder / "weights.safetensors")) > 0


@pytest.mark.parametrize("options", [{}, {"system": "arc-eager", "scorer": "perceptron"}])
def test_a_folder_without_a_name_is_none(options, small_treebanks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="the model folder has no name"):
        mh4.train(*small_treebanks, "", segmenter=False, **options)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="the model folder has no name"):
        mh4.load("")


def test_a_model_may_be_trained_in_the_working_folder(small_model, small_treebanks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train(*small_treebanks, ".", small_config(), device="cpu")
    assert same_weights(tmp_path, small_model)
    TrainingFolder(tmp_path).save(lambda _: None)
    assert not (tmp_path / "calibration.json").exists()


def test_folders_of_killed_trainings_are_removed(older, small_treebanks):
    left, young = older / ".mh4-left", older / ".mh4-young"
    for folder in (left, young):
        folder.mkdir()
        (folder / "weights.safetensors").touch()
    os.utime(left, (time.time() - 4000,) * 2)
    train_over(small_treebanks, older, "perceptron")
    assert young.exists()
    assert not left.exists()


def test_a_training_that_an_earlier_version_began_says_so(small_treebanks, tmp_path):
    config = changed(small_config("mst"), **ANNOTATING)
    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, tmp_path / "m", config, device="cpu", on_step=interrupt_at(5))
    vocabulary = tmp_path / "m" / "vocab.json"
    write_file(vocabulary, vocabulary.read_bytes().replace(b'"lowered"', b'"lower"'))
    with pytest.raises(DataError, match=r"m: was begun by an earlier version of mh4 .finish it with that one"):
        train(*small_treebanks, tmp_path / "m", config, device="cpu", resume=True)
