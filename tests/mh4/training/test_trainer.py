"""The training loop: it learns, and repeats itself exactly."""

import gc
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small import log_of, same_weights, small_config, train

from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.decoders import decoder_names
from mh4.decoders.closest import closest_tree
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import GreedyConfig
from mh4.parsers.definition import Definition
from mh4.training.objectives import make_objective
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold


@pytest.mark.parametrize("decoder", decoder_names())
def test_every_decoder_learns(decoder, small_treebanks, tmp_path):
    config = small_config(decoder, max_steps=60, evaluation_steps=20, learning_rate=0.02)
    progress = train(*small_treebanks, tmp_path / "m", config, device="cpu")
    reports = log_of(tmp_path / "m")
    assert [report["step"] for report in reports] == [20, 40, 60]
    assert reports[-1]["loss"] < reports[0]["loss"]
    assert progress.best_las == pytest.approx(max(report["dev_las"] for report in reports), abs=0.01)
    parser = ChartParser.load(tmp_path / "m", device="cpu")
    for sentence in parser.parse(small_treebanks[1]):
        assert len(sentence.roots) == 1


def test_weight_decay_takes_its_share_of_every_weight(small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    rate, decay = 0.01, 0.3
    after = []
    for weight_decay in (0.0, decay):
        config = small_config(learning_rate=rate, weight_decay=weight_decay)
        parser = ChartParser(Definition.learn(config, sentences), device="cpu")
        trainer = Trainer(parser, sentences, [], tmp_path)
        before = [parameter.detach().clone() for parameter in parser.network.parameters()]
        trainer.step(trainer.collate(range(3)))
        after.append([parameter.detach() for parameter in parser.network.parameters()])
    for start, plain, decayed in zip(before, *after, strict=True):
        torch.testing.assert_close(plain - decayed, rate * decay * start, atol=1e-6, rtol=0)


def test_dropout_rises_to_its_rate(small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(Definition.learn(small_config(dropout_rise=4), sentences), device="cpu")
    trainer = Trainer(parser, sentences, [], tmp_path)
    rates = parser.config.encoder.lstm_dropout, parser.config.scorers.mlp_dropout
    assert min(rates) > 0.0
    for share in (0.0, 0.25, 0.5, 0.75, 1.0, 1.0):
        trainer.step(trainer.collate(range(3)))
        trainer.progress.step += 1
        network = parser.network
        in_force = network.encoder.sentence.lstm.dropout.current, network.scorer.mlp.dropout.current
        assert in_force == pytest.approx([rate * share for rate in rates])


def test_the_average_counts_steps_from_1(small_treebanks, tmp_path, monkeypatch):
    sentences, steps = read_gold(small_treebanks[0]), []
    trainer = Trainer(
        ChartParser(Definition.learn(small_config("mst"), sentences), device="cpu"), sentences, [], tmp_path
    )
    monkeypatch.setattr(trainer.average, "update", steps.append)
    for _ in range(2):
        trainer.step(trainer.collate(range(3)))
        trainer.progress.step += 1
    assert steps == [1, 2]


def test_the_log_tells_of_the_steps_since_the_line_before(small_treebanks, tmp_path):
    words, losses = {}, {}

    def note(progress, recent):
        words[progress.step], losses[progress.step] = recent.words, recent.loss

    train(*small_treebanks, tmp_path, small_config("mst"), device="cpu", on_step=note)
    assert [words[step] > words[step - 1] for step in range(2, 13)] == [(step - 1) % 4 != 0 for step in range(2, 13)]
    assert [report["loss"] for report in log_of(tmp_path)] == [round(losses[s] / words[s], 4) for s in (4, 8, 12)]


def test_a_batch_is_decoded_on_the_given_number_of_threads(small_treebanks, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(Trainer, "run", lambda self: seen.append(self.parser.threads))
    for threads in (None, 3):
        train(*small_treebanks, tmp_path, small_config(), device="cpu", threads=threads, overwrite=True)
    assert seen == [None, 3]


def test_same_seed_same_model(small_treebanks, small_model, tmp_path):
    train(*small_treebanks, tmp_path / "again", small_config(), device="cpu")
    train(*small_treebanks, tmp_path / "other", small_config(seed=2), device="cpu")
    assert same_weights(small_model, tmp_path / "again")
    assert not same_weights(small_model, tmp_path / "other")


def test_rare_words_may_have_embeddings(small_treebanks, tmp_path):
    train(*small_treebanks, tmp_path, small_config(min_word_count=2, max_steps=1), device="cpu")
    words = json.loads((tmp_path / "encoder.words.json").read_text())["words"]
    assert min(words.values()) == 2
    assert len(load_file(tmp_path / "weights.safetensors")["words.words.weight"]) == len(words) + 1


def test_gradients_are_clipped(small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    norms = []
    for limit in (1e6, 0.5, 0):  # 0: no limit
        config = small_config("mst", gradient_clip=limit)
        parser = ChartParser(Definition.learn(config, sentences), device="cpu")
        trainer = Trainer(parser, sentences, [], tmp_path)
        trainer.step(trainer.collate(range(3)))
        gradients = [p.grad for p in parser.network.parameters() if p.grad is not None]
        norms.append(torch.cat([gradient.flatten() for gradient in gradients]).norm().item())
    assert norms[0] == norms[2] > 1.0
    assert norms[1] == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize(("epochs", "ended"), [(0, []), (1, []), (9, ["3 steps (max_steps), in epoch 2 of 9"])])
def test_training_says_if_steps_end_it_before_its_epochs(epochs, ended, small_treebanks, tmp_path, caplog):
    config = small_config("mst", batch_words=200, max_epochs=epochs, max_steps=3)
    train(*small_treebanks, tmp_path / "m", config, device="cpu")
    told = [message for message in caplog.messages if message.startswith("training ended after")]
    assert [message.removeprefix("training ended after ") for message in told] == ended


def test_without_a_loss_of_relations_the_best_model_has_the_best_heads(small_treebanks, tmp_path):
    treebanks = [read_gold(path) for path in small_treebanks]
    for weight, best in ((0.0, [True, False, True]), (1.0, [True, True, False])):
        parser = ChartParser(Definition.learn(small_config(labeler_weight=weight), treebanks[0]), device="cpu")
        trainer = Trainer(parser, *treebanks, tmp_path)
        found = []
        for scores in ((50.0, 10.0), (40.0, 20.0), (60.0, 5.0)):
            trainer.dev_scores = lambda scores=scores: {None: scores}
            trainer.recent.words = 1
            trainer.evaluate()
            found.append(log_of(tmp_path)[-1]["best"])
        assert found == best
        assert (trainer.progress.best_uas, trainer.progress.best_las) == ((60.0, 5.0), (40.0, 20.0))[int(weight)]


def test_diverging_training_stops(small_treebanks, tmp_path):
    def break_weights(report):
        with torch.no_grad():
            trainer.parser.network.labeler.output.weight.fill_(torch.nan)

    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(Definition.learn(small_config(), sentences), device="cpu")
    trainer = Trainer(parser, sentences, sentences[:3], tmp_path, on_evaluation=break_weights)
    with pytest.raises(ValueError, match="training diverged: no finite gradient in step 5 "):
        trainer.run()
    assert all(tensor.isfinite().all() for tensor in load_file(tmp_path / "weights.safetensors").values())


def test_scores_that_are_no_numbers_stop_training(small_treebanks, tmp_path):
    """Even an update with finite gradients can make weights NaN or infinite."""
    for steps, message in ((20, "scores are no numbers"), (1, "weights are NaN or infinite after step 1 ")):
        config = small_config(epsilon=0.0, evaluation_steps=steps, max_steps=steps)
        with pytest.raises(ValueError, match=f"training diverged: {message}"):
            train(*small_treebanks, tmp_path / str(steps), config, device="cpu")


@pytest.mark.parametrize("device", ["cuda", "nowhere"])
def test_what_cannot_be_trained_leaves_an_older_model_as_it_was(device, small_treebanks, small_model, tmp_path):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("a CUDA device is here")
    folder = tmp_path / "m"
    shutil.copytree(small_model, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match="device"):
        train(*small_treebanks, folder, small_config(), device=device, overwrite=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with pytest.raises(ValueError, match="device"):
        train(*small_treebanks, tmp_path / "new", small_config(), device=device)
    assert not (tmp_path / "new").exists()


def test_garbage_is_collected_again_after_training(small_treebanks, tmp_path):
    train(*small_treebanks, tmp_path, small_config(max_steps=1), device="cpu")
    assert gc.get_freeze_count() == 0


def test_gold_trees_outside_the_class_are_replaced_once(small_treebanks):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(Definition.learn(small_config("eisner"), sentences), device="cpu")
    trainer = Trainer(parser, sentences, sentences, small_treebanks[0].parent)
    changed = [e for e in trainer.examples if (e.heads != e.sentence.padded_heads).any()]
    assert changed
    for example in changed:
        np.testing.assert_array_equal(example.heads, closest_tree(example.sentence.padded_heads, parser.decoder))


def test_half_of_the_heads_are_learnt_from(small_treebanks, tmp_path):
    """A chart parser learns from every other head; a greedy one refuses missing heads."""
    sentences = list(read_conllu(small_treebanks[0]))
    partial = [s.replace(heads=np.where(np.arange(1, len(s) + 1) % 2, -1, s.heads)) for s in sentences]
    write_conllu(partial, tmp_path / "partial.conllu")
    config = small_config("mh4-hybrid", max_steps=40)
    start = small_config("mh4-hybrid", max_steps=1)
    before = train(tmp_path / "partial.conllu", small_treebanks[1], tmp_path / "1", start, device="cpu")
    after = train(tmp_path / "partial.conllu", small_treebanks[1], tmp_path / "40", config, device="cpu")
    assert after.best_uas > before.best_uas + 10
    with pytest.raises(DataError, match="HEAD of word 1 is missing"):
        train(tmp_path / "partial.conllu", small_treebanks[1], tmp_path / "greedy", GreedyConfig())


def test_known_heads_outside_the_class_become_unknown(small_treebanks):
    definition = Definition.learn(small_config("eisner"), list(read_conllu(small_treebanks[0])))
    objective = make_objective(ChartParser(definition, device="cpu"))

    def learnt(*heads):
        sentence = Sentence.from_words(["w"] * len(heads)).replace(heads=[*heads])
        return objective.training_tree(sentence).tolist()[1:]

    assert learnt(2, 0, -1, 3) == [2, 0, -1, 3]
    kept = learnt(3, 4, 0, -1)  # 1 ← 3 and 2 ← 4 cross, and the root's arc to 3 crosses the second, too
    assert kept == [3, -1, 0, -1]
    assert sorted(learnt(0, 0, -1)) == [-1, -1, 0]  # only one root


def test_sentences_too_long_for_the_chart_are_left_out_with_a_warning(small_treebanks, caplog):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(Definition.learn(small_config("mh4-two"), sentences), device="cpu")
    parser.decoder.memory_limit = parser.decoder.chart_bytes(12)
    trainer = Trainer(parser, sentences, sentences, small_treebanks[0].parent)
    long = sum(len(sentence) > 12 for sentence in sentences)
    assert 0 < long == len(sentences) - len(trainer.examples)
    why = "they have more than 2000 words, or their charts would not fit into memory"
    assert f"{long} training sentences are left out: {why}" in caplog.messages


def test_folder_is_not_overwritten_by_accident(small_treebanks, small_model):
    with pytest.raises(DataError, match="resume=True"):
        train(*small_treebanks, small_model, small_config(), device="cpu")
    with pytest.raises(DataError, match=r"other settings: seed=\d+ \(resume"):
        train(*small_treebanks, small_model, small_config(seed=9), device="cpu", resume=True)
    with pytest.raises(DataError, match="another treebank"):
        train(small_treebanks[1], small_treebanks[1], small_model, small_config(), device="cpu", resume=True)


def test_preparation_reports_every_sentence(small_treebanks, tmp_path):
    told = []
    config = small_config("mst", max_steps=1)
    train(*small_treebanks, tmp_path, config, device="cpu", on_preparation=lambda *now: told.append(now))
    assert [total for _, total in told] == [80] * 80
    assert [done for done, _ in told] == [*range(40), *range(41, 81)]
