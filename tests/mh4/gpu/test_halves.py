"""While a GPU scores one half of a batch, the CPU decodes the other; losses and gradients do not change."""

from dataclasses import replace

import pytest
from on_gpu import CONFIGS, assert_close, certain, loss_and_gradients, trainer_on
from pretend_gpu import PretendGPU

from mh4.training import objectives

CHARTS = {
    **{name: CONFIGS[name] for name in ("mst", "mh4-two", "1ec", "preset paper", "preset best")},
    "crf": replace(CONFIGS["mh4-hybrid"], loss="crf"),
    "relations": replace(CONFIGS["mh4-hybrid"], label_bonus=0.5),
    "crf, relations": replace(CONFIGS["mst"], loss="crf", label_bonus=0.5),
}
WHOLE, HALVES = 1000, 2  # values of FEWEST_HALVED for whole and for halved batches


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("chance", [True, False], ids=["dropout", "certain"])
def test_losses_and_gradients_are_those_of_the_whole_batch(name, chance, gpu, small_treebanks, tmp_path, monkeypatch):
    config = CHARTS[name] if chance else certain(CHARTS[name])
    computed = []
    for fewest in (WHOLE, HALVES):
        monkeypatch.setattr(objectives, "FEWEST_HALVED", fewest)
        computed.append(loss_and_gradients("cuda", config, small_treebanks, tmp_path, range(7)))
    assert_close(*reversed(computed), gpu.tolerance)


def noted(trainer, monkeypatch):
    """Return the order in which a training step scores, labels and decodes."""
    done, network = [], trainer.parser.network

    def note(patch, owner, name, what):
        function = getattr(owner, name)

        def noting(*arguments):
            done.append(what)
            return function(*arguments)

        patch.setattr(owner, name, noting)

    with monkeypatch.context() as patch:
        note(patch, network.scorer, "products_and_scores", "score")
        note(patch, network, "arc_vectors", "label")
        note(patch, objectives, "find_violations", "decode")
        trainer.step(trainer.collate(range(7)))
    return done


def test_a_gpu_has_work_while_trees_are_found(gpu, small_treebanks, tmp_path, monkeypatch):
    trainer = trainer_on("cuda", CONFIGS["mh4-hybrid"], small_treebanks, tmp_path)
    assert noted(trainer, monkeypatch) == ["score", "label", "decode"]
    monkeypatch.setattr(objectives, "FEWEST_HALVED", 7)
    trainer = trainer_on("cuda", CONFIGS["mh4-hybrid"], small_treebanks, tmp_path)
    assert noted(trainer, monkeypatch) == ["score", "score", "label", "decode", "decode"]


def test_the_cpu_decodes_whole_batches(small_treebanks, tmp_path, monkeypatch):
    monkeypatch.setattr(objectives, "FEWEST_HALVED", HALVES)
    trainer = trainer_on("cpu", CONFIGS["mh4-hybrid"], small_treebanks, tmp_path)
    assert noted(trainer, monkeypatch) == ["score", "decode", "label"]


@pytest.mark.parametrize("name", CHARTS)
def test_a_step_waits_for_each_half(name, small_treebanks, tmp_path, monkeypatch):
    """It does not wait for the loss of the previous step, which arrives no later than the scores."""
    monkeypatch.setattr(objectives, "FEWEST_HALVED", HALVES)
    with PretendGPU() as gpu:
        trainer = trainer_on("cuda", CHARTS[name], small_treebanks, tmp_path)
        trainer.step(trainer.collate(range(7)))
        gpu.waits.clear()
        for first in (0, 7):
            trainer.step(trainer.collate(range(first, first + 7)))
        assert sum(gpu.waits.values()) == 4, gpu.waits
