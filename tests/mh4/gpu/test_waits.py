"""A training step hardly waits for a GPU: only for the scores and for the report of the previous step."""

import pytest
from on_gpu import CONFIGS, certain, trainer_on
from pretend_gpu import PretendGPU
from small import changed, log_of, train

MOST_WAITS = 2  # per step


@pytest.mark.parametrize("name", CONFIGS)
def test_a_step_waits_twice_at_most(name, small_treebanks, tmp_path):
    with PretendGPU() as gpu:
        trainer = trainer_on("cuda", CONFIGS[name], small_treebanks, tmp_path)
        first, *others = trainer.batches(0)[:4]
        trainer.step(trainer.collate(first))
        gpu.waits.clear()
        for indices in others:
            trainer.step(trainer.collate(indices))
        assert len(others) <= sum(gpu.waits.values()) <= MOST_WAITS * len(others), gpu.waits


def test_evaluation_does_not_wait_for_every_parameter(small_treebanks, tmp_path):
    columns = dict.fromkeys(("analysis_weight", "lemma_weight"), 0.0)  # columns would add waits of their own
    best, seen = CONFIGS["preset best"], []
    config = changed(best, **columns)
    with PretendGPU() as gpu:
        trainer = trainer_on("cuda", config, small_treebanks, tmp_path)
        gpu_waits = gpu.waits
        trainer.on_step = lambda *_: gpu_waits.clear()
        trainer.on_evaluation = lambda _: seen.append(sum(gpu_waits.values()))
        trainer.run()
    assert len(list(trainer.parser.network.parameters())) > 20
    assert len(seen) == 2
    assert max(seen) <= 8  # last loss, check that weights are finite, two per batch of dev, two files


def test_the_log_is_that_of_the_cpu(small_treebanks, tmp_path):
    """Losses arrive a step late, but all are logged."""
    config = certain(CONFIGS["preset balanced"])
    train(*small_treebanks, tmp_path / "cpu", config, device="cpu")
    with PretendGPU():
        train(*small_treebanks, tmp_path / "cuda", config, device="cuda")
    for ours, theirs in zip(log_of(tmp_path / "cuda"), log_of(tmp_path / "cpu"), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-3)
        assert ours["step"] == theirs["step"]
