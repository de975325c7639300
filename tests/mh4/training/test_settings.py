"""Every training setting takes effect."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from pretend_gpu import PretendGPU
from safetensors.torch import load_file
from small import changed, small_config

from mh4.data.sentence import Sentence
from mh4.models.devices import send_together
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import TrainingConfig
from mh4.parsers.definition import Definition
from mh4.training.batches import shuffled_batches
from mh4.training.losses import BatchLoss
from mh4.training.objectives import make_objective
from mh4.training.schedule import Progress, Schedule
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold


def trainer_of(config, treebanks, folder):
    sentences = read_gold(treebanks[0])
    parser = ChartParser(Definition.learn(config, sentences), device="cpu")
    return Trainer(parser, sentences, read_gold(treebanks[1]), folder)


@pytest.mark.parametrize(("loss", "wrong"), [("crf", 1.0), ("softmax-margin", np.e**2)])
def test_only_one_of_the_losses_over_all_trees_is_augmented(loss, wrong):
    """With zero scores, the wrong one of the two trees of two words counts exp(cost) in softmax-margin, 1 in crf."""
    sentence = Sentence.from_words(["a", "b"])
    parser = ChartParser(Definition.learn(replace(small_config("mst"), loss=loss), [sentence]), device="cpu")
    with torch.no_grad():
        parser.network.scorer.matrices.zero_()
    value = make_objective(parser).loss(parser.encode([sentence]), [np.array([-1, 2, 0])], 0)
    assert value.item() == pytest.approx(np.log(1 + wrong), abs=1e-5)


def test_the_optimiser_has_its_settings(small_treebanks, tmp_path):
    settings = {"beta1": 0.5, "beta2": 0.7, "epsilon": 0.01, "weight_decay": 0.2, "learning_rate": 0.03}
    trainer = trainer_of(small_config("mst", **settings), small_treebanks, tmp_path)
    for group in trainer.optimizer.param_groups:
        assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.5, 0.7), 0.01, 0.2)
        assert group["lr"] == 0.03


def test_groups_have_their_factors(small_treebanks, tmp_path):
    trainer = trainer_of(small_config("mst", learning_rate=0.03), small_treebanks, tmp_path)
    (group,) = trainer.optimizer.param_groups
    group["factor"] = 0.5
    trainer._set_learning_rates()
    assert group["lr"] == 0.015


def test_interrupted_training_keeps_the_averaged_weights(small_treebanks, tmp_path):
    def interrupt(progress, _):
        if progress.step == 2:  # before the first evaluation
            raise KeyboardInterrupt

    trainer = trainer_of(small_config("mst", weight_average=0.9), small_treebanks, tmp_path)
    trainer.on_step = interrupt
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    own = {name: weight.clone() for name, weight in trainer.parser.network.kept_weights().items()}
    with trainer.average.applied():
        averages = trainer.parser.network.kept_weights()
        saved = load_file(tmp_path / "weights.safetensors")
        assert all(torch.equal(saved[name], averages[name]) for name in saved)
        assert not all(torch.equal(saved[name], own[name]) for name in saved)


def test_batches_have_their_settings(small_treebanks, tmp_path):
    settings = {"length_noise": 0.4, "batch_words": 50, "seed": 3}
    trainer = trainer_of(small_config("mst", **settings), small_treebanks, tmp_path)
    lengths = [len(example.sentence) for example in trainer.examples]
    for epoch in (0, 2):
        assert trainer.batches(epoch) == shuffled_batches(lengths, lengths, 50, [3, epoch], 0.4)
        assert trainer.batches(epoch) != shuffled_batches(lengths, lengths, 50, [3, epoch], 0.0)


@pytest.mark.parametrize(("count", "words"), [(24, [100, 140]), (25, [50, 100, 100]), (26, [60, 100, 100])])
def test_a_rest_of_half_a_batch_is_a_batch_of_its_own(count, words):
    batches = shuffled_batches([10] * count, [10] * count, 100, [1], 0.4)
    assert sorted(10 * len(batch) for batch in batches) == words


def test_the_linear_rate_never_falls_below_that_of_the_epoch_s_end():
    """After resuming with other batches, an epoch may have more batches than the schedule assumes."""
    schedule = Schedule(TrainingConfig(rate_fall="linear", max_epochs=4), 2)
    assert schedule.rate(Progress(learning_rate=0.1, epoch=1, batch=3)) == pytest.approx(0.05)


def test_the_encoder_computes_in_the_precision_of_training(small_treebanks, tmp_path):
    trainer = trainer_of(small_config("mst"), small_treebanks, tmp_path)
    network, inside, seen = trainer.parser.network, [], []

    @contextmanager
    def precision():
        inside.append(True)
        yield
        inside.pop()

    for module in (network.encoder, network.scorer.mlp, network.labeler, *network.taggers):
        module.register_forward_pre_hook(lambda *_: seen.append(bool(inside)))
    BatchLoss(network, trainer.objective, trainer.parser.config.weights, precision)(trainer.collate(range(3)), 0)
    assert seen
    assert all(seen)


def test_tags_are_predicted_from_their_layer(small_treebanks, tmp_path):
    config = changed(small_config("mst"), layers=2, tagger_layer=1, labeler_weight=0.0)
    trainer = trainer_of(config, small_treebanks, tmp_path)
    network = trainer.parser.network.eval()
    batch = trainer.collate(range(4))
    encoded = network.encode(batch.words)
    assert not torch.equal(encoded.states, encoded.tagger_states)
    seen = []
    for module in network.taggers:
        module.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    trainer.batch_loss._others(encoded, batch)
    assert len(seen) == 2
    for words in seen:
        assert torch.equal(words, encoded.tagger_states[batch.sentence_of, batch.dependent])


def test_after_a_return_to_the_best_weights_the_average_begins_with_them(small_treebanks, tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "dev_scores", lambda self: {None: (50.0, 50.0 - self.progress.step)})
    settings = {"patience": 1, "decays": 3, "decay_from": "best", "weight_average": 0.9}
    trainer = trainer_of(small_config("mst", **settings), small_treebanks, tmp_path)
    seen = []

    def compare(report):
        own = dict(trainer.parser.network.named_parameters())
        equal = [torch.equal(average, own[name]) for name, average in trainer.average.averages.items()]
        seen.append(all(equal))

    trainer.on_evaluation = compare
    trainer.run()
    assert seen == [False, True, True]


def test_tensors_that_travel_together_begin_at_multiples_of_16_bytes():
    tensors = [torch.tensor([True, False, True]), torch.arange(2), torch.ones(3, dtype=torch.float32), torch.arange(1)]
    with PretendGPU():
        sent = send_together(tensors, torch.device("cuda"))
        for own, there in zip(tensors, sent, strict=True):
            assert there.is_cuda
            assert there.storage_offset() * there.element_size() % 16 == 0
            assert there.cpu().tolist() == own.tolist()
