"""Every option of the command line reaches the code that uses it: none is dropped or confused with another."""

import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

import mh4.api  # noqa: F401 (imported before tests replace what it imports)
from mh4.cli import app
from mh4.cli.options import set_threads
from mh4.data.errors import DataError
from mh4.parsers.base import Count
from mh4.parsers.request import Request
from mh4.training.presets import PRESETS
from mh4.training.schedule import Progress
from mh4.trees.reliability import CalibrationReport, Reliability

# Commands whose network runs in this process, unless on a cluster.
WITH_NETWORK = {"parse", "eval", "calibrate", "uncertain", "serve", "package", "bench"}


def run(*arguments):
    with patch("torch.set_num_threads") as set_threads:
        result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    if arguments[0] in WITH_NETWORK and "--cluster" not in arguments and "--threads" in arguments:
        set_threads.assert_called_once_with(arguments[arguments.index("--threads") + 1])
    return result


@pytest.fixture
def trained(monkeypatch):
    """The training jobs that commands start; none is run."""
    jobs = []

    def run_training(job):
        jobs.append(job)
        return Progress()

    monkeypatch.setattr("mh4.training.running.run_training", run_training)
    return jobs


def test_of_training_a_network(trained, small_treebanks, tmp_path):
    train, dev = small_treebanks
    options = ["--decoder", "eisner", "--seed", 7, "--many-roots", "--epochs", 3, "--max-steps", 11, "--preset", "fast"]
    options += [
        "--loss",
        "crf",
        "--members",
        3,
        "--precision",
        "bf16",
        "--set",
        "hidden=24",
        "--set",
        "mlp=9",
        "--no-segmenter",
    ]
    options += ["--device", "cpu", "--threads", 2, "--overwrite", "--skip-bad", "--output", tmp_path / "m"]
    run("train", train, "--dev", dev, *options)
    (job,) = trained
    config = job.config
    assert (job.train, job.dev, job.folder) == (train, dev, tmp_path / "m")
    assert (config.decoder, config.single_root, config.loss, config.scorers.members) == ("eisner", False, "crf", 3)
    training = config.training
    assert (training.seed, training.max_epochs, training.max_steps, training.precision) == (7, 3, 11, "bf16")
    assert (training.patience, config.encoder.hidden, config.scorers.mlp) == (6, 24, 9)
    assert (job.device, job.threads, job.resume, job.overwrite) == ("cpu", 2, False, True)
    assert job.segmenter is False
    assert job.errors.policy == "skip"
    assert all(map(callable, (job.on_step, job.on_evaluation, job.on_preparation)))


def test_of_a_pretrained_encoder(trained, small_treebanks, tmp_path):
    train, dev = small_treebanks
    run("train", train, "--dev", dev, "--encoder", "some/model", "--set", "encoder_freeze=1", "--set", "part_cost=900")
    config = trained[0].config
    assert (config.encoder.kind, config.encoder.pretrained, config.encoder.encoder_freeze) == (
        "transformer",
        "some/model",
        True,
    )
    assert (config.training.part_cost, config.training.rate_fall, config.training.max_epochs) == (900, "linear", 30)


def test_of_word_vectors(trained, small_treebanks, tmp_path):
    train, dev = small_treebanks
    command = ["train", train, "--dev", dev, "--vectors-keep", 9]
    run(*command, "--vectors", "some/file.vec")
    (job,) = trained
    encoder = job.config.encoder
    assert (encoder.kind, encoder.vectors, encoder.vectors_keep) == ("bilstm", "some/file.vec", 9)
    assert job.on_reading.__name__ == "on_reading"
    with pytest.raises(ValueError, match="--vectors-keep needs --vectors"):
        run(*command)


def test_of_going_on(trained, small_treebanks, tmp_path):
    train, dev = small_treebanks
    run("train", train, "--dev", dev, "--resume", "-o", tmp_path / "m")
    (job,) = trained
    assert (job.resume, job.overwrite, job.threads, job.device) == (True, False, None, "auto")
    assert job.segmenter is True
    assert job.errors.policy == "raise"


def test_of_training_greedy_parsers(trained, small_treebanks, tmp_path):
    train, dev = small_treebanks
    command = ["train", train, "--dev", dev, "--system", "covington", "--oracle", "static", "--seed", 5, "--epochs", 4]
    run(*command, "--no-segmenter", "-o", tmp_path / "g")
    run(*command, "--scorer", "perceptron", "--overwrite", "--skip-bad", "-o", tmp_path / "p")
    greedy, job = trained[0].config, trained[1]
    assert (greedy.kind, greedy.transitions.system, greedy.transitions.oracle) == ("greedy", "covington", "static")
    assert (greedy.training.seed, greedy.training.max_epochs) == (5, 4)
    assert (job.train, job.dev, job.folder) == (train, dev, tmp_path / "p")
    assert (job.config.kind, job.config.system, job.config.oracle) == ("perceptron", "covington", "static")
    assert (job.config.seed, job.config.iterations) == (5, 4)
    assert job.overwrite is True
    assert job.errors.policy == "skip"


def test_of_the_folder(trained, small_treebanks):
    train, dev = small_treebanks
    run("train", train, "--dev", dev, "--seed", 3, "--no-segmenter")
    run("train", train, "--dev", dev, "--decoder", "mst", "--no-segmenter")
    run("train", train, "--dev", dev, "--system", "mh4", "--scorer", "perceptron")
    run("train", train, "--dev", dev, "--set", "seed=4", "--set", "decoder=mst")
    run("train", train, "--dev", dev, "--system", "arc-eager")
    names = ["mh4-hybrid-3", "mst-1", "mh4-perceptron-1", "mst-4", "arc-eager-bilstm-1"]
    assert [str(job.folder) for job in trained] == [f"models/train-{name}" for name in names]
    with pytest.raises(ValueError, match="the model folder has no name"):
        run("train", train, "--dev", dev, "-o", "", "--no-segmenter")


class Recorder:
    """A stand-in for parsers that records its calls."""

    calls: list

    def __init__(self, *folders, **options):
        self.calls.append((folders, options))

    def parse_file(self, source, target, **options):
        self.calls.append((str(source), str(target), options))
        return Count(1, 2)

    def parse(self, source, **options):
        self.calls.append((str(source), options))
        return []


ASKED = Request(keep_heads=True, predict="heads,upos", overwrite=True, unique="obj", among=3, k_best=2)
PARSING = {**ASKED.options, "min_confidence": None}
COMMAND = ["--keep-heads", "--predict", "heads,upos", "--overwrite", "--unique", "obj", "--among", 3, "--k-best", 2]


def test_of_parsing(small_treebanks, tmp_path, monkeypatch):
    monkeypatch.setattr("mh4.parsers.registry.load", Recorder)
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

    shown = run("parse", tmp_path, *small_treebanks, "-o", tmp_path / "folder").output
    assert shown.startswith("2 sentences, 4 words, ")  # of both files
    text = tmp_path / "text.txt"
    text.write_text("A dog barks.\n")
    run("parse", tmp_path, text, "-o", out, "--skip-bad")
    with pytest.raises(DataError, match="is not CoNLL-U"):
        run("parse", tmp_path, text, "-o", out)


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


def test_of_evaluating_models(small_treebanks, tmp_path, monkeypatch):
    calls = []

    class Echo(Recorder):
        def check(self, request):
            calls.append(request)

        def parse(self, source, treebank):
            calls.append(treebank)
            return [sentence.replace(heads=[*range(len(sentence))]) for sentence in source]

    monkeypatch.setattr("mh4.parsers.registry.load", Echo)
    monkeypatch.setattr(Recorder, "calls", calls, raising=False)
    monkeypatch.setattr("mh4.parsers.folder.ModelFolder.find", lambda model: SimpleNamespace(config=None))
    command = ["eval", small_treebanks[1], "--model", "m", "--json"]
    plain = json.loads(run(*command).stdout)
    given = json.loads(run(*command, "--given", "upos", "--as", "a", "--device", "cpu", "--threads", 2).stdout)
    assert calls == [
        ((Path("m"),), {"device": "auto", "threads": None}),
        None,
        ((Path("m"),), {"device": "cpu"}),
        Request(treebank="a"),
        ((Path("m"),), {"device": "cpu", "threads": 2}),
        "a",
    ]
    assert given["scores"]["UPOS"]["f1"] == 1 > plain["scores"]["UPOS"]["f1"]


def test_without_a_number_of_threads_there_are_no_more_than_before():
    for own, available, expected in ((3, 8, 3), (8, 3, 3)):
        with (
            patch("torch.get_num_threads", lambda own=own: own),
            patch("mh4.cli.options.available_threads", lambda available=available: available),
            patch("torch.set_num_threads") as set_number,
        ):
            set_threads(None)
        set_number.assert_called_once_with(expected)


def test_of_calibrating(small_treebanks, tmp_path, monkeypatch):
    calls = []

    def calibrate(model, treebank, **options):
        calls.append((model, treebank, options))
        return SimpleNamespace(words=30), None

    monkeypatch.setattr("mh4.training.calibrating.calibrate", calibrate)
    train, dev = small_treebanks
    run("calibrate", tmp_path, f"a={train}", f"b={dev}", "--device", "cpu", "--threads", 2, "--skip-bad")
    run("calibrate", tmp_path, dev)
    (model, files, found), (_, file, usual) = calls
    assert (model, files, file) == (tmp_path, {"a": train, "b": dev}, dev)
    assert (found.pop("errors").policy, usual.pop("errors").policy) == ("skip", "raise")
    assert found == {"device": "cpu", "threads": 2}
    assert usual == {"device": "auto", "threads": None}


def test_of_measured_calibration(small_treebanks, tmp_path, monkeypatch):
    before, heads, both = (Reliability(30, 0.5, ece, []) for ece in (0.5, 0.25, 0.125))
    report = CalibrationReport(before, heads, both, {0.1: 0.2}, {0.1: 0.4})
    monkeypatch.setattr("mh4.training.calibrating.calibrate", lambda *_, **__: (SimpleNamespace(words=30), report))
    monkeypatch.setattr("mh4.trees.reliability.measure_calibration", lambda gold, system: report)
    train, dev = small_treebanks
    shown = run("calibrate", tmp_path, dev).output
    assert "error of heads 50.00% → 25.00%, of heads and relations 12.50% " in shown
    shown = run("eval", "--calibration", train, dev).output.split()
    assert [float(part.strip("%")) for part in shown if "%" in part][-3:] == [10, 20, 40]


def test_of_uncertain_words(small_treebanks, tmp_path, monkeypatch):
    monkeypatch.setattr("mh4.parsers.registry.load", Recorder)
    monkeypatch.setattr(Recorder, "calls", [], raising=False)
    source = small_treebanks[1]
    options = ["--keep-heads", "--as", "a", "--device", "cpu", "--threads", 2, "--skip-bad"]
    run("uncertain", tmp_path, source, *options)
    run("uncertain", tmp_path, source)
    loaded, (path, found), usually_loaded, (_, usual) = Recorder.calls
    assert loaded == ((tmp_path,), {"device": "cpu", "threads": 2})
    assert usually_loaded == ((tmp_path,), {"device": "auto", "threads": None})
    assert path == str(source)
    assert (found.pop("errors").policy, usual.pop("errors").policy) == ("skip", "raise")
    assert found == {"keep_heads": True, "predict": "heads", "confidence": True, "treebank": "a"}
    assert usual == {"keep_heads": False, "predict": "heads", "confidence": True, "treebank": None}


def test_of_serving(tmp_path, monkeypatch):
    calls = []

    class Served:
        models = ()

        def __init__(self, given, most, **loading):
            calls.append((given, most, loading))

        def warm_up(self):
            calls.append("warm")

    class Service:
        def __init__(self, models):
            assert isinstance(models, Served)

        def app(self, hosts):
            return hosts

    at = SimpleNamespace(getsockname=lambda: ("0.0.0.0", 81))
    monkeypatch.setattr("mh4.service.served_models.ServedModels", Served)
    monkeypatch.setattr("mh4.service.web.Service", Service)
    monkeypatch.setattr("mh4.service.server.listening", lambda *where: calls.append(where) or at)
    monkeypatch.setattr("mh4.service.server.serve", lambda hosts, at, announce: calls.append(hosts) or announce())
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    options = ["--max-models", 3, "--search", "beam:4", "--device", "cpu", "--threads", 2]
    run("serve", "a=A", "b=B", "--host", "0.0.0.0", "--port", 81, *options)
    loading = {"device": "cpu", "search": "beam:4", "threads": 2}
    assert calls == [("0.0.0.0", 81), (["a=A", "b=B"], 3, loading), "warm", None]
    calls.clear()
    run("serve", "A")
    loading = {"device": "auto", "search": "exact", "threads": None}
    own_names = ["127.0.0.1", "localhost", "::1", "[::1]"]
    assert calls == [("127.0.0.1", 8001), (["A"], None, loading), "warm", own_names]
    assert not opened
    run("serve", "A", "--open")
    assert opened == ["http://127.0.0.1:81"]


def test_of_packaging(small_treebanks, tmp_path, monkeypatch):
    calls = []

    def package(*arguments, **options):
        calls.append((arguments, options))
        return SimpleNamespace(file="m", size=1, sha256="0", licence="CC0", non_commercial=False)

    monkeypatch.setattr("mh4.parsers.packages.packaging.package", package)
    gold = small_treebanks[1]
    options = ["--name", "hu", "--licence", "CC0", "--gold", gold, "--device", "cpu", "--threads", 2]
    run("package", tmp_path, "-o", "out", *options)
    ((arguments, found),) = calls
    assert arguments == (tmp_path, "out")
    assert found == {"name": "hu", "licence": "CC0", "gold": [str(gold)], "device": "cpu", "threads": 2}


def test_of_downloading(tmp_path, monkeypatch):
    calls = []

    def download(name, index, on_progress):
        calls.append((name, index, callable(on_progress)))
        return tmp_path

    monkeypatch.setattr("mh4.parsers.packages.download.download", download)
    monkeypatch.setattr("mh4.parsers.packages.cache.installed", lambda name: None)
    run("download", "hu", "--index", tmp_path)
    assert calls == [("hu", str(tmp_path), True)]


def leave_out(errors):
    """Report a bad tree where such are left out."""
    if errors.policy == "skip":
        errors(DataError("a bad tree"))


def test_of_measuring_coverage(small_treebanks, monkeypatch):
    calls = []

    def iterate(path, threads, errors):
        calls.append((path, threads, errors.policy))
        leave_out(errors)
        return ()

    def measure(path, threads, errors):
        iterate(path, threads, errors)
        return SimpleNamespace(as_dict=dict)

    monkeypatch.setattr("mh4.trees.coverage.iterate_coverage", iterate)
    monkeypatch.setattr("mh4.trees.coverage.measure_coverage", measure)
    path = str(small_treebanks[1])
    for how in ("--json", "--per-sentence"):
        assert "a bad tree" in run("coverage", path, how, "--threads", 2, "--skip-bad").stderr
        run("coverage", path, how)
    assert calls == [(path, 2, "skip"), (path, None, "raise")] * 2


def test_of_transforming_trees(small_treebanks, monkeypatch):
    calls = []

    def transform_file(*arguments, **options):
        calls.append((arguments, options | {"errors": options["errors"].policy}))
        leave_out(options["errors"])
        return SimpleNamespace(
            sentences=1, words=2, changed_arcs=3, changed_sentences=1, log_mean_trees=0, ambiguous_sentences=0
        )

    monkeypatch.setattr("mh4.trees.transform.transform_file", transform_file)
    path = str(small_treebanks[1])
    told = run("transform", "--to", "projective", path, "-o", "out", "--count", "--threads", 2, "--skip-bad").stderr
    assert "a bad tree" in told
    assert "3 arcs changed in 1 sentence\n" in told
    run("transform", "--to", "mh4", path, "--arcs")
    (first, found), (second, usual) = calls
    assert (first, second) == ((path, "out", "projective"), (path, "-", "mh4"))
    assert found == {"mark_arcs": False, "count_trees": True, "threads": 2, "errors": "skip"}
    assert usual == {"mark_arcs": True, "count_trees": False, "threads": None, "errors": "raise"}


def test_of_oracles(small_treebanks, monkeypatch):
    calls = []

    def write_computations(*arguments, sequences_only, errors):
        calls.append((*arguments, sequences_only, errors.policy))
        leave_out(errors)
        return SimpleNamespace(sentences=1, words=2, transitions=4, accuracy=100.0)

    monkeypatch.setattr("mh4.trees.computations.write_computations", write_computations)
    path = str(small_treebanks[1])
    command = ["oracle", path, "-o", "out", "--system", "arc-eager", "--policy", "any", "--sequences", "--skip-bad"]
    assert "a bad tree" in run(*command).stderr
    run("oracle", path)
    assert calls == [
        (path, "out", "arc-eager", "any", True, "skip"),
        (path, "-", "arc-standard", None, False, "raise"),
    ]


def test_of_benchmarks(monkeypatch):
    calls = []

    def record(where):
        name = where.rpartition(".")[2]
        monkeypatch.setattr(f"mh4.cli.bench.{where}", lambda *arguments: calls.append((name, *arguments)) or {})

    for where in (
        *("decoders.measure_decoders", "certainty.measure_certainty", "stages.time_training", "stages.time_parsing"),
        *("text.measure_text", "serving.measure_serving"),
    ):
        record(where)
    timing = ["--lengths", "3,6", "--decoders", "mst,mh3", "--repeats", 5, "--seconds", 0.5, "--json"]
    run("bench", "decoders", *timing)
    run("bench", "certainty", *timing)
    where = ["--device", "cpu", "--threads", 2, "--json"]
    chosen = ["--decoder", "mst", *where]
    run("bench", "train", "t", "--preset", "fast", "--set", "patience=99", "--steps", 7, *chosen)
    run("bench", "parse", "m", "t", "--repeats", 4, *where)
    run("bench", "parse", *chosen)
    run("bench", "text", "m", "t", "--copies", 6, *where)
    run("bench", "text", *chosen)
    run("bench", "serve", "m", "t", "--clients", "2,4", "--seconds", 0.5, *where)
    settings = {**PRESETS["fast"], "patience": "99"}
    assert "patience" in PRESETS["fast"]
    model, treebank = Path("m"), Path("t")
    assert calls == [
        ("measure_decoders", ["mst", "mh3"], [3, 6], 5, 0.5),
        ("measure_certainty", ["mst", "mh3"], [3, 6], 5, 0.5),
        ("time_training", treebank, "mst", 7, "cpu", 2, settings),
        ("time_parsing", model, treebank, "mh4-hybrid", 4, "cpu", 2),
        ("time_parsing", None, None, "mst", 3, "cpu", 2),
        ("measure_text", model, treebank, "mh4-hybrid", 6, "cpu", 2),
        ("measure_text", None, None, "mst", 8, "cpu", 2),
        ("measure_serving", model, treebank, [2, 4], 0.5, "cpu", 2),
    ]
