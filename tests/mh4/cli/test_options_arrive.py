"""What is given on the command line arrives where the work is done: none is dropped, none exchanged for another."""

import pytest
from typer.testing import CliRunner

from mh4.cli import app
from mh4.parsers.base import Count
from mh4.training.schedule import Progress


def run(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def trained(monkeypatch):
    """The calls of both training functions."""
    calls = []

    def of_network(*paths, **options):
        calls.append((*paths, options))
        return Progress()

    monkeypatch.setattr("mh4.training.trainer.train", of_network)
    monkeypatch.setattr("mh4.training.perceptron.train", lambda *paths, **options: calls.append((*paths, options)))
    return calls


def test_of_training_a_network(trained, small_treebanks, tmp_path):
    train, dev = small_treebanks
    options = ["--decoder", "eisner", "--seed", 7, "--many-roots", "--epochs", 3, "--max-steps", 11, "--preset", "fast"]
    options += ["--loss", "crf", "--precision", "bf16", "--set", "hidden=24", "--set", "mlp=9", "--no-segmenter"]
    options += ["--device", "cpu", "--threads", 2, "--overwrite", "--skip-bad", "--output", tmp_path / "m"]
    run("train", train, "--dev", dev, *options)
    ((*paths, config, found),) = trained
    assert paths == [train, dev, tmp_path / "m"]
    assert (config.decoder, config.single_root, config.loss) == ("eisner", False, "crf")
    training = config.training
    assert (training.seed, training.max_epochs, training.max_steps, training.precision) == (7, 3, 11, "bf16")
    assert (training.patience, config.encoder.hidden, config.scorers.mlp) == (6, 24, 9)
    assert (found["device"], found["threads"], found["resume"], found["overwrite"]) == ("cpu", 2, False, True)
    assert found["segmenter"] is None
    assert found["errors"].policy == "skip"


def test_of_going_on(trained, small_treebanks, tmp_path):
    train, dev = small_treebanks
    run("train", train, "--dev", dev, "--resume", "--segmenter-settings", "epochs=2", "-o", tmp_path / "m")
    ((_, _, _, _, found),) = trained
    assert (found["resume"], found["overwrite"], found["threads"], found["device"]) == (True, False, None, "auto")
    assert found["segmenter"].startswith("epochs=2")
    assert found["errors"].policy == "raise"


def test_of_training_greedy_parsers(trained, small_treebanks, tmp_path):
    train, dev = small_treebanks
    command = ["train", train, "--dev", dev, "--system", "covington", "--oracle", "static", "--seed", 5, "--epochs", 4]
    run(*command, "--no-segmenter", "-o", tmp_path / "g")
    run(*command, "--scorer", "perceptron", "--overwrite", "--skip-bad", "-o", tmp_path / "p")
    (*_, greedy, _), (*paths, perceptron, found) = trained
    assert (greedy.kind, greedy.transitions.system, greedy.transitions.oracle) == ("greedy", "covington", "static")
    assert (greedy.training.seed, greedy.training.max_epochs) == (5, 4)
    assert paths == [train, dev, tmp_path / "p"]
    assert (perceptron.kind, perceptron.system, perceptron.oracle) == ("perceptron", "covington", "static")
    assert (perceptron.seed, perceptron.iterations) == (5, 4)
    assert found["overwrite"] is True
    assert found["errors"].policy == "skip"


class Recorder:
    """Stands in for a parser."""

    calls: list

    def __init__(self, *folders, **options):
        self.calls.append((folders, options))

    def parse_file(self, source, target, **options):
        self.calls.append((str(source), str(target), options))
        return Count(1, 2)


PARSING = {
    "keep_heads": True,
    "predict": "heads,upos",
    "overwrite": True,
    "unique": "obj",
    "among": 3,
    "k_best": 2,
    "confidence": False,
    "min_confidence": None,
}
COMMAND = ["--keep-heads", "--predict", "heads,upos", "--overwrite", "--unique", "obj", "--among", 3, "--k-best", 2]


def test_of_parsing(small_treebanks, tmp_path, monkeypatch):
    monkeypatch.setattr("mh4.api.Parser", Recorder)
    monkeypatch.setattr(Recorder, "calls", [], raising=False)
    source, out = small_treebanks[1], tmp_path / "out.conllu"
    loading = ["--device", "cpu", "--search", "beam:3", "--threads", 2]
    run("parse", tmp_path, source, "-o", out, *loading, *COMMAND, "--batch-words", 77, "--skip-bad")
    loaded, (path, target, found) = Recorder.calls
    assert loaded == ((str(tmp_path),), {"device": "cpu", "search": "beam:3", "threads": 2})
    assert (path, target) == (str(source), str(out))
    assert found.pop("errors").policy == "skip"
    assert callable(found.pop("on_progress"))
    assert found == {**PARSING, "format": "conllu", "batch_words": 77}

    Recorder.calls.clear()
    run("parse", tmp_path, source, "-o", out, "--confidence", "--min-confidence", 0.25, "--input", "vertical")
    found = Recorder.calls[1][2]
    assert (found["confidence"], found["min_confidence"], found["format"]) == (True, 0.25, "vertical")
    assert not any(found[name] for name in ("keep_heads", "overwrite", "unique", "batch_words"))
    assert found["errors"].policy == "raise"


def test_of_parsing_on_a_cluster(small_treebanks, tmp_path, monkeypatch):
    calls = []

    def parse_files(model, inputs, folder, address, **options):
        calls.append((str(model), [str(path) for path in inputs], str(folder), address, options))
        return Count(1, 2)

    monkeypatch.setattr("mh4.service.cluster.parse_files", parse_files)
    loading = ["--device", "cpu", "--search", "greedy", "--threads", 2, "--cluster", "tcp://127.0.0.1:1"]
    command = [*loading, *COMMAND, "--input", "horizontal", "--skip-bad"]
    run("parse", tmp_path, *small_treebanks, "-o", tmp_path / "out", *command)
    ((model, inputs, folder, address, found),) = calls
    assert (model, inputs) == (str(tmp_path), [str(path) for path in small_treebanks])
    assert (folder, address) == (str(tmp_path / "out"), "tcp://127.0.0.1:1")
    assert found.pop("errors").policy == "skip"
    assert callable(found.pop("on_progress"))
    assert found == {**PARSING, "form": "horizontal", "device": "cpu", "search": "greedy", "threads": 2}
