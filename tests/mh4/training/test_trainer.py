"""The training loop: it learns, repeats itself exactly, and survives being killed."""

import gc
import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small
import torch
from safetensors.torch import load_file
from small import small_config

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.decoders import decoder_names
from mh4.parsers.chart import ChartParser
from mh4.parsers.vocabulary import Vocabulary
from mh4.training.batches import WINDOW
from mh4.training.checkpoint import Checkpoint
from mh4.training.trainer import Trainer, train
from mh4.training.treebanks import read_gold

RUN = """
import sys, time
sys.path.insert(0, sys.argv[1])
from small import small_config
from mh4.training.checkpoint import Checkpoint
from mh4.training.trainer import train
train(sys.argv[2], sys.argv[3], sys.argv[4], small_config(max_steps=40), device="cpu", resume=True,
      on_step=lambda *_: time.sleep(float(sys.argv[5])))
"""


def log_of(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def same_weights(one, other):
    one, other = load_file(one / "weights.safetensors"), load_file(other / "weights.safetensors")
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


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


def test_morphological_features_are_learnt_where_they_have_a_weight(small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    vocabulary = Vocabulary.from_sentences(sentences)
    config = small_config()
    assert ChartParser(config, vocabulary, device="cpu").network.features is None
    config = replace(config, network=replace(config.network, feature_weight=0.5))
    parser = ChartParser(config, vocabulary, device="cpu")
    trainer = Trainer(parser, sentences, [], tmp_path)
    batch = trainer.collate(range(3))
    words = [feats for sentence in sentences[:3] for feats in sentence.feats]
    for row, feats in zip(batch.features, words, strict=True):
        names = {vocabulary.features[i] for i in row.nonzero()[:, 0]}
        assert names == set() if feats == "_" else names == set(feats.split("|"))
    parser.network.eval()
    states = parser.network.encode(batch.words).states[batch.sentence_of, batch.dependent]
    probabilities = torch.sigmoid(parser.network.features(states))
    right = torch.where(batch.features, probabilities, 1 - probabilities)
    both = trainer.batch_loss(batch, 0)
    trainer.batch_loss.weights = replace(config.network, feature_weight=0.0)
    trees_and_tags = trainer.batch_loss(batch, 0)
    torch.testing.assert_close(both - trees_and_tags, -0.5 * right.log().sum(), rtol=1e-4, atol=1e-3)
    trainer.batch_loss.weights = config.network
    trainer.step(batch)
    assert all(parameter.grad.abs().sum() > 0 for parameter in parser.network.features.parameters())


def test_weight_decay_takes_its_share_of_every_weight(small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    rate, decay = 0.01, 0.3
    after = []
    for weight_decay in (0.0, decay):
        torch.manual_seed(1)
        config = small_config(learning_rate=rate, weight_decay=weight_decay)
        parser = ChartParser(config, Vocabulary.from_sentences(sentences), device="cpu")
        trainer = Trainer(parser, sentences, [], tmp_path)
        before = [parameter.detach().clone() for parameter in parser.network.parameters()]
        trainer.step(trainer.collate(range(3)))
        after.append([parameter.detach() for parameter in parser.network.parameters()])
    for start, plain, decayed in zip(before, *after, strict=True):
        torch.testing.assert_close(plain - decayed, rate * decay * start, atol=1e-6, rtol=0)


def test_dropout_rises_to_its_rate(small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(small_config(dropout_rise=4), Vocabulary.from_sentences(sentences), device="cpu")
    trainer = Trainer(parser, sentences, [], tmp_path)
    rates = parser.config.network.lstm_dropout, parser.config.network.mlp_dropout
    assert min(rates) > 0.0
    for share in (0.0, 0.25, 0.5, 0.75, 1.0, 1.0):
        trainer.step(trainer.collate(range(3)))
        trainer.progress.step += 1
        network = parser.network
        in_force = network.sentence.lstm.dropout.current, network.scorer.mlp.dropout.current
        assert in_force == pytest.approx([rate * share for rate in rates])


def test_same_seed_same_model(small_treebanks, small_model, tmp_path):
    train(*small_treebanks, tmp_path / "again", small_config(), device="cpu")
    train(*small_treebanks, tmp_path / "other", small_config(seed=2), device="cpu")
    assert same_weights(small_model, tmp_path / "again")
    assert not same_weights(small_model, tmp_path / "other")


def test_rare_words_may_have_embeddings(small_treebanks, tmp_path):
    train(*small_treebanks, tmp_path, small_config(min_word_count=2, max_steps=1), device="cpu")
    words = json.loads((tmp_path / "vocab.json").read_text())["words"]
    assert min(words.values()) == 2
    assert len(load_file(tmp_path / "weights.safetensors")["words.words.weight"]) == len(words) + 1


def test_resume_after_sigkill_equals_an_uninterrupted_run(small_treebanks, tmp_path):
    """Killed at an arbitrary moment, then resumed: weights and log are those of a quiet run."""
    train(*small_treebanks, tmp_path / "quiet", small_config(max_steps=40), device="cpu")
    folder = tmp_path / "killed"

    def command(pause):
        arguments = [str(p) for p in (Path(small.__file__).parent, *small_treebanks, folder, pause)]
        return [sys.executable, "-c", RUN, *arguments]

    with subprocess.Popen(command(0.05)) as process:
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and process.poll() is None:
            if (folder / "log.jsonl").exists() and len(log_of(folder)) >= 2:
                break
            time.sleep(0.02)
        assert process.poll() is None, "finished before it could be killed"
        process.send_signal(signal.SIGKILL)
    ChartParser.load(folder, device="cpu")  # the last good model is whole
    subprocess.run(command(0), check=True, timeout=200)
    assert same_weights(tmp_path / "quiet", folder)
    keys = ("step", "loss", "dev_uas", "dev_las", "learning_rate", "best")
    assert [[r[k] for k in keys] for r in log_of(folder)] == [[r[k] for k in keys] for r in log_of(tmp_path / "quiet")]


def test_moving_averages_are_resumed(small_treebanks, tmp_path):
    config = small_config("mst", weight_average=0.9)
    train(*small_treebanks, tmp_path / "quiet", config, device="cpu")

    def interrupt(report):
        if report["step"] == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, tmp_path / "resumed", config, device="cpu", on_evaluation=interrupt)
    train(*small_treebanks, tmp_path / "resumed", config, device="cpu", resume=True)
    quiet, resumed = (load_file(tmp_path / name / "training.safetensors") for name in ("quiet", "resumed"))
    assert all(torch.equal(quiet[name], resumed[name]) for name in quiet)
    assert same_weights(tmp_path / "quiet", tmp_path / "resumed")
    weights = load_file(tmp_path / "quiet" / "weights.safetensors")
    assert any((weights[name] != quiet[f"network/{name}"]).any() for name in weights)  # those of the average


def test_gradients_are_clipped(small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    norms = []
    for limit in (1e6, 0.5):
        torch.manual_seed(1)
        config = small_config("mst", gradient_clip=limit)
        parser = ChartParser(config, Vocabulary.from_sentences(sentences), device="cpu")
        trainer = Trainer(parser, sentences, [], tmp_path)
        trainer.step(trainer.collate(range(3)))
        gradients = [p.grad for p in parser.network.parameters() if p.grad is not None]
        norms.append(torch.cat([gradient.flatten() for gradient in gradients]).norm().item())
    assert norms[0] > 1.0
    assert norms[1] == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize(("setting", "quarter"), [(1, True), (9, False)])
def test_evaluation_is_not_more_frequent_than_every_quarter_of_an_epoch(setting, quarter, small_treebanks, tmp_path):
    config = small_config("mst", batch_words=16, evaluation_steps=setting, max_steps=20)
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(config, Vocabulary.from_sentences(sentences), device="cpu")
    trainer = Trainer(parser, sentences, sentences[:2], tmp_path)
    epoch = len(trainer.batches(0))
    interval = -(-epoch // 4) if quarter else setting
    assert epoch // 4 > 1
    trainer.run()
    assert [report["step"] for report in log_of(tmp_path)] == [*range(interval, 20, interval), 20]


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


def test_a_log_ahead_of_the_state_is_cut(small_treebanks, tmp_path, monkeypatch):
    def fail(self, progress):
        raise OSError("disk full")

    config = small_config(max_steps=20)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", fail)
        with pytest.raises(OSError, match="disk full"):
            train(*small_treebanks, tmp_path, config, device="cpu")
    first = log_of(tmp_path)
    train(*small_treebanks, tmp_path, config, device="cpu", resume=True)
    steps = [report["step"] for report in log_of(tmp_path)]
    assert steps == sorted(set(steps))
    assert steps[0] == first[0]["step"]


def test_diverging_training_stops(small_treebanks, tmp_path):
    def break_weights(report):
        with torch.no_grad():
            trainer.parser.network.labeler.output.weight.fill_(torch.nan)

    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(small_config(), Vocabulary.from_sentences(sentences), device="cpu")
    trainer = Trainer(parser, sentences, sentences[:3], tmp_path, on_evaluation=break_weights)
    with pytest.raises(ValueError, match="diverged"):
        trainer.run()
    assert all(tensor.isfinite().all() for tensor in load_file(tmp_path / "weights.safetensors").values())


def test_scores_that_are_no_numbers_stop_training(small_treebanks, tmp_path):
    """Weights may be lost in an update of finite gradients."""
    for steps, message in ((20, "scores are no numbers"), (1, "weights are no numbers after step 1 ")):
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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.jsonl", b"garbage\n", r"log\.jsonl:1: not a line of this log"),
        ("log.jsonl", b"{}\n", r"log\.jsonl:1: not a line of this log"),
        ("training.safetensors", None, r"training\.safetensors: holds no state of training"),
        ("weights.safetensors", b"", r"weights\.safetensors: not a whole safetensors file"),
    ],
)
def test_damaged_files_are_not_gone_on_from(name, content, message, small_treebanks, small_model, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(small_model, folder)
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


def test_garbage_is_collected_again_after_training(small_treebanks, tmp_path):
    train(*small_treebanks, tmp_path, small_config(max_steps=1), device="cpu")
    assert gc.get_freeze_count() == 0


def test_schedule(small_treebanks, tmp_path, monkeypatch):
    """No improvement for `patience` evaluations: decay; after the last decay, stop."""
    monkeypatch.setattr(Trainer, "dev_scores", lambda self: (50.0, 40.0))
    config = small_config(patience=2, decays=2, evaluation_steps=2, max_steps=1000)
    config = replace(config, training=replace(config.training, decay_factor=0.5))
    progress = train(*small_treebanks, tmp_path / "m", config, device="cpu")
    interval = log_of(tmp_path / "m")[0]["step"]  # a quarter epoch may be longer than two steps
    assert progress.step == interval * (1 + 2 * 3)
    assert [report["learning_rate"] for report in log_of(tmp_path / "m")] == [0.01] * 3 + [0.005] * 2 + [0.0025] * 2
    assert progress.best_step == interval


def test_a_decay_may_go_back_to_the_best_weights(small_treebanks, tmp_path, monkeypatch):
    """The first evaluation is the best one here; with an interruption after it as without."""
    monkeypatch.setattr(Trainer, "dev_scores", lambda self: (50.0, 40.0 if self.progress.best_step == 0 else 30.0))
    config = small_config(patience=2, decays=2, decay_from="best", weight_average=0.9, max_steps=1000)
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(config, Vocabulary.from_sentences(sentences), device="cpu")
    distances = []

    def note_distance(report):
        best = load_file(tmp_path / "weights.safetensors")
        distances.append(max((best[name] - p).abs().max().item() for name, p in parser.network.named_parameters()))

    Trainer(parser, sentences, sentences, tmp_path, on_evaluation=note_distance).run()
    assert [distance == 0.0 for distance in distances] == [False, False, True, False, True, False, True]

    def interrupt(report):
        raise KeyboardInterrupt

    train(*small_treebanks, tmp_path / "quiet", config, device="cpu")
    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, tmp_path / "resumed", config, device="cpu", on_evaluation=interrupt)
    train(*small_treebanks, tmp_path / "resumed", config, device="cpu", resume=True)
    quiet, resumed = (load_file(tmp_path / name / "training.safetensors") for name in ("quiet", "resumed"))
    assert all(torch.equal(quiet[name], resumed[name]) for name in quiet)


def test_gold_trees_outside_the_class_are_replaced_once(small_treebanks):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(small_config("eisner"), Vocabulary.from_sentences(sentences), device="cpu")
    trainer = Trainer(parser, sentences, sentences, small_treebanks[0].parent)
    changed = [e for e in trainer.examples if (e.heads != e.sentence.heads).any()]
    assert changed
    for example in changed:
        np.testing.assert_array_equal(example.heads, parser.decoder.closest_tree(example.sentence.heads))


def test_sentences_too_long_for_the_chart_are_left_out_with_a_warning(small_treebanks, caplog):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(small_config("mh4-two"), Vocabulary.from_sentences(sentences), device="cpu")
    parser.decoder.memory_limit = parser.decoder.chart_bytes(12)
    trainer = Trainer(parser, sentences, sentences, small_treebanks[0].parent)
    long = sum(len(sentence) > 12 for sentence in sentences)
    assert 0 < long == len(sentences) - len(trainer.examples)
    assert f"{long} training sentences are left out" in caplog.text


def test_training_from_python(small_treebanks, tmp_path):
    parser = ChartParser.train(*small_treebanks, tmp_path / "m", config=small_config("eisner"), device="cpu")
    assert len(parser(["Topebon", "rupo"]).relations) == 2


def test_batches_hold_every_sentence_once_an_epoch(small_treebanks):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(small_config("mst"), Vocabulary.from_sentences(sentences), device="cpu")
    trainer = Trainer(parser, sentences, sentences, small_treebanks[0].parent)
    for epoch in range(2):
        batches = trainer.batches(epoch)
        assert sorted(i for batch in batches for i in batch) == list(range(len(sentences)))
        words = [sum(len(sentences[i]) for i in batch) for batch in batches]
        longest = max(map(len, sentences))
        assert max(words) < 60 + longest
        assert sum(count < 60 for count in words) <= -(-len(sentences) // WINDOW)  # the last batch of each window
    assert trainer.batches(0) != trainer.batches(1)
    assert trainer.batches(0) == trainer.batches(0)


def test_folder_is_not_overwritten_by_accident(small_treebanks, small_model):
    with pytest.raises(DataError, match="--resume"):
        train(*small_treebanks, small_model, small_config(), device="cpu")
    with pytest.raises(DataError, match="other settings"):
        train(*small_treebanks, small_model, small_config(seed=9), device="cpu", resume=True)
    with pytest.raises(DataError, match="another treebank"):
        train(small_treebanks[1], small_treebanks[1], small_model, small_config(), device="cpu", resume=True)


def test_several_roots_and_bad_sentences_are_counted(small_treebanks, tmp_path, caplog):
    good = small_treebanks[0].read_text(encoding="utf-8")
    two_roots = "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n2\tb\tb\tX\t_\t_\t0\troot\t_\t_\n\n"
    cycle = "1\ta\ta\tX\t_\t_\t2\tdep\t_\t_\n2\tb\tb\tX\t_\t_\t1\tdep\t_\t_\n\n"
    path = tmp_path / "t.conllu"
    path.write_text(good + two_roots + cycle, encoding="utf-8")
    with pytest.raises(DataError, match=r"t\.conllu:\d+: sentence 42"):
        read_gold(path)
    assert len(read_gold(path, errors="skip")) == len(list(read_conllu(small_treebanks[0], trees="required"))) + 1
    assert "1 bad sentences skipped" in caplog.text
    assert "1 of 41 sentences have several roots" in caplog.text


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_training_on_cuda(small_treebanks, tmp_path):
    progress = train(*small_treebanks, tmp_path / "m", small_config(), device="cuda")
    assert progress.step == 12
    on_cuda = ChartParser.load(tmp_path / "m", device="cuda")(["a", "b", "c"])
    on_cpu = ChartParser.load(tmp_path / "m", device="cpu")(["a", "b", "c"])
    np.testing.assert_array_equal(on_cuda.heads, on_cpu.heads)
