"""The command line: a one-line message and an exit status for every mistake, and work on files and pipes."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from threading import Thread

import pytest
import typer
from command_line import fails_with_one_line
from paths import GOLDEN_FOLDER
from small import log_of
from typer.testing import CliRunner

import mh4
from mh4.cli import app
from mh4.cli.options import check_conllu, in_options, named_files, output
from mh4.data.conllu import read_conllu
from mh4.decoders import decoder_names

GOOD = "# sent_id = s1\n1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_\n2\tdog\tdog\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"
NETWORK = [f"--set={s}" for s in ("hidden=24", "layers=1", "word_size=16", "character_hidden=16", "mlp=16")]
NETWORK.append("--no-segmenter")


def commands(group, *path):
    """Yield the path of every command below a group, and whether the command has a help text."""
    for name, command in group.commands.items():
        yield (*path, name), bool(command.help)
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "m: holds a model (continue with resume=True, or overwrite=True)",
            "m: holds a model (continue with --resume, or --overwrite)",
        ),
        ('use device="cpu" or device="auto"', "use --device cpu or --device auto"),
        ('as in unique="nsubj,obj", among=10', "as in --unique nsubj,obj, --among 10"),
        ('words: format="horizontal" (with keep_heads=True)', "words: --input horizontal (with --keep-heads)"),
        ('as in encoder="FOLDER"', "as in --encoder FOLDER"),
        ('tabs; raw text needs format="text"', "tabs; raw text needs mh4 parse --text"),
        ("a.conllu:3: FEATS 'Foo_resume=True' is bad", "a.conllu:3: FEATS 'Foo_resume=True' is bad"),
        ("learning_rate=1 is out of range", "learning_rate=1 is out of range"),
        ("runs/epochs=30/config.json: no such file", "runs/epochs=30/config.json: no such file"),
        ("epochs=3.conllu and seed_name=1/m: no such file", "epochs=3.conllu and seed_name=1/m: no such file"),
        ("name=1/m: holds a model, as index=3.", "name=1/m: holds a model, as --index 3."),
    ],
)
def test_messages_about_arguments_speak_of_options(message, shown):
    assert in_options(message) == shown


def test_what_is_drawn_holds_no_control_characters(run, tmp_path):
    (tmp_path / "a.conllu").write_text(GOOD.replace("s1", "\x1b[2J\x07"), encoding="utf-8")
    drawn = run("draw", tmp_path / "a.conllu")
    assert drawn.stdout.startswith("\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}: A dog\n".encode())


def test_every_command_has_help():
    listed = dict(commands(typer.main.get_command(app)))
    names = [
        "train",
        "parse",
        "eval",
        "calibrate",
        "uncertain",
        "draw",
        "serve",
        "package",
        "download",
        "coverage",
        "transform",
        "oracle",
        "sample",
        "demo",
        "warm-up",
        "bench",
    ]
    assert [words[0] for words in listed if len(words) == 1] == names
    assert all(listed.values())
    for words in ((), *listed):
        result = CliRunner().invoke(app, [*words, "--help"])
        assert result.exit_code == 0
        assert all(name in result.output for *parents, name in listed if parents == list(words))


def test_help_and_version_are_quick():
    script = "import sys; from mh4.cli import main; sys.argv = ['mh4', '--version']\ntry: main()\n"
    script += "finally: assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == f"mh4 {mh4.__version__}\n"


def test_parse_from_pipe_to_pipe_with_windows_line_ends(small_model):
    text = GOOD.replace("\n", "\r\n").replace("\t2\tdet", "\t_\t_").replace("\t0\troot", "\t_\t_").encode()
    command = [sys.executable, "-m", "mh4", "parse", small_model, "-", "-o", "-"]
    result = subprocess.run(command, input=text, capture_output=True)
    assert result.returncode == 0
    lines = result.stdout.decode().split("\r\n")
    assert lines[0] == "# sent_id = s1"
    assert lines[1].split("\t")[:6] == ["1", "A", "a", "DET", "DT", "_"]
    assert {lines[1].split("\t")[6], lines[2].split("\t")[6]} in ({"0", "1"}, {"0", "2"})
    assert b"1 sentence, 2 words" in result.stderr


def test_a_file_called_like_standard_input_is_parsed(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_text(GOOD)
    model = GOLDEN_FOLDER / "models" / "perceptron"
    found = run("parse", model, "./-")
    assert found.stdout.count(b"\t") == 18, found.stderr
    assert run("parse", model, stdin=GOOD.encode()).stdout == found.stdout
    assert b"is the input" in run("parse", model, "./-", "-o", "./-").stderr
    assert run("parse", model, "-", "-o", "./-", stdin=GOOD.encode()).returncode == 0
    assert (tmp_path / "-").read_bytes() == found.stdout
    assert (named_files(["./-"]), named_files(["a=./-"])) == (tmp_path / "-", {"a": tmp_path / "-"})


def test_empty_input(small_model, run):
    result = run("parse", small_model, stdin=b"")
    assert (result.returncode, result.stdout) == (0, b"")


BAD_GOLD = {
    "head out of range": (GOOD.replace("\t2\tdet", "\t7\tdet"), ":2:", "s1", "7"),
    "head not a number": (GOOD.replace("\t2\tdet", "\tx\tdet"), ":2:", "s1", "x"),
    "cycle": (GOOD.replace("\t0\troot", "\t1\troot"), "s1", "cycle"),
    "self loop": (GOOD.replace("\t2\tdet", "\t1\tdet"), "s1"),
    "missing columns": (GOOD.replace("\tDET\tDT", "\tDET"), ":2:", "s1", "columns"),
    "bad utf-8": (GOOD.encode().replace(b"dog", b"d\xffg"), ":3:", "UTF-8"),
    "empty file": ("", "no sentences"),
}


@pytest.mark.parametrize("mistake", BAD_GOLD)
def test_bad_gold_files_are_one_line(mistake, tmp_path, run):
    text, *words = BAD_GOLD[mistake]
    bad, good = tmp_path / "bad.conllu", tmp_path / "good.conllu"
    bad.write_bytes(text if isinstance(text, bytes) else text.encode())
    good.write_text(GOOD)
    fails_with_one_line(run("eval", good, bad), "bad.conllu", *words)
    message = fails_with_one_line(run("train", bad, "--dev", good, "-o", tmp_path / "m"), "bad.conllu", *words)
    assert message.startswith("mh4: ")
    assert not (tmp_path / "m").exists()


def test_skip_bad_counts(small_model, tmp_path, run):
    bad = GOOD.replace("\tDET\tDT", "\tDET")
    result = run("parse", small_model, "--skip-bad", stdin=(bad + GOOD).encode())
    assert result.returncode == 0
    assert b"1 bad sentence skipped; the first: standard input:2" in result.stderr
    assert result.stdout.count(b"sent_id") == 1
    fails_with_one_line(run("parse", small_model, "-o", tmp_path / "out", stdin=(GOOD + bad).encode()), "columns")
    assert os.listdir(tmp_path) == []


def test_other_mistakes_are_one_line(small_model, small_treebanks, tmp_path, run):
    fails_with_one_line(run("parse", tmp_path / "nowhere", stdin=GOOD.encode()), "nowhere", "model folder")
    fails_with_one_line(run("parse", small_model, tmp_path / "nothing.conllu"), "nothing.conllu", "no such file")
    fails_with_one_line(run("parse", small_model, "--search", "beam:0", stdin=GOOD.encode()), "beam")
    fails_with_one_line(run("train", *small_treebanks[:1], "--dev", small_treebanks[1], "--set", "lr=1"), "known:")
    for setting in ("hidden=191", "batch_words=0", "lstm_dropout=1", "layers=0", "weight_average=1.5", "patience=0"):
        train = ("train", small_treebanks[0], "--dev", small_treebanks[1], "-o", tmp_path / "m")
        fails_with_one_line(run(*train, "--set", setting), setting.split("=")[0], "must be")
    assert not (tmp_path / "m").exists()
    fails_with_one_line(run("train", small_treebanks[0], "--dev", small_treebanks[1], "-o", small_model), "--resume")
    result = run("train", small_treebanks[0], "--dev", small_treebanks[1], "--decoder", "mh5")
    assert result.returncode == 2
    assert b"mh4-hybrid" in result.stderr


def test_train_eval_round_trip(small_treebanks, tmp_path, run):
    train, dev = small_treebanks
    model = tmp_path / "m[hu][/b]"  # brackets that are not Rich markup
    result = run("train", train, "--dev", dev, "--decoder", "mst", "-o", model, "--max-steps", 3, *NETWORK)
    assert result.returncode == 0, result.stderr.decode()
    assert "best: UAS" in result.stderr.decode()
    assert f"model in {model}" in result.stderr.decode()
    command = json.loads((model / "meta.json").read_text())["command"]
    assert shlex.split(command)[:4] == ["mh4", "train", str(train), "--dev"]
    assert run("parse", model, dev, "-o", tmp_path / "out.conllu").returncode == 0
    evaluation = run("eval", dev, tmp_path / "out.conllu", "--json")
    scores = json.loads(evaluation.stdout)["scores"]
    assert scores["Words"]["f1"] == scores["UPOS"]["f1"] == 1.0
    log = json.loads((model / "log.jsonl").read_text().splitlines()[-1])
    assert 100 * scores["UAS"]["f1"] == pytest.approx(log["dev_uas"], abs=0.006)
    assert 100 * scores["LAS"]["f1"] == pytest.approx(log["dev_las"], abs=0.006)
    table = run("eval", dev, tmp_path / "out.conllu").stdout.decode()
    assert "LAS" in table
    assert "precision over the system's arcs of that class, recall over the gold ones" in table


def test_names_are_not_replaced_by_emoji(run, tmp_path):
    fails_with_one_line(run("coverage", tmp_path / ":dog:.conllu"), ":dog:.conllu: no such file")
    treebank = tmp_path / ":cat:.conllu"
    treebank.write_text("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    assert ":cat:" in run("coverage", treebank).stdout.decode()


def test_keep_heads(small_model, tmp_path, run):
    outside = tmp_path / "outside.conllu"  # outside the tree class of mh4
    heads = (3, 1, 4, 0, 2)
    outside.write_text(
        "".join(f"{d}\tw\t_\t_\t_\t_\t{head}\tx\t_\t_\n" for d, head in enumerate(heads, start=1)) + "\n"
    )
    fails_with_one_line(run("parse", small_model, outside, "--keep-heads"), "outside.conllu", "given heads")
    text = GOOD.replace("\t2\tdet", "\t0\t_").replace("\t0\troot", "\t_\t_")
    kept = run("parse", small_model, "--keep-heads", stdin=text.encode()).stdout.decode()
    assert "1\tA\ta\tDET\tDT\t_\t0\troot" in kept
    assert "2\tdog\tdog\tNOUN\tNN\t_\t1\t" in kept


def test_columns_to_predict(annotating_model, small_model, run):
    text = GOOD.replace("\tDET\tDT\t", "\t_\t_\t")
    result = run("parse", annotating_model, "--predict", "upos", stdin=text.encode())
    first, second = (line.split("\t") for line in result.stdout.decode().splitlines()[1:3])
    assert first[3] != "_"
    assert first[:3] + first[4:] == ["1", "A", "a", "_", "_", "2", "det", "_", "_"]
    assert "\t".join(second) == GOOD.splitlines()[2]
    result = run("parse", small_model, "--predict", "all", stdin=text.encode())
    assert result.stderr.decode().startswith("mh4: the model does not predict UPOS, XPOS, FEATS, LEMMAS")
    fails_with_one_line(run("parse", small_model, "--predict", "stem"), "unknown column 'stem'", "lemmas, heads")


def test_sample(tmp_path):
    result = CliRunner().invoke(app, ["sample", str(tmp_path / "s")])
    assert result.exit_code == 0
    assert len(result.output.split()) == 3
    assert all(len(list(read_conllu(path, trees="required"))) >= 100 for path in result.output.split())


def test_bench_decoders():
    result = CliRunner().invoke(app, ["bench", "decoders", "--lengths", "3,6", "--repeats", "3", "--json"])
    assert result.exit_code == 0, result.output
    decoders = json.loads(result.stdout)["decoders"]
    assert set(decoders) == set(decoder_names())
    for row in decoders.values():
        assert set(row["milliseconds"]) == {"3", "6"}
        assert min(row["milliseconds"].values()) > 0


@pytest.mark.parametrize(
    "command",
    [
        ["train", "--steps", "2"],
        ["train", "--steps", "2", "--preset", "fast", "--set", "hidden=8"],
        ["parse", "--repeats", "1"],
    ],
)
def test_bench_stages(command, small_treebanks, small_model):
    name, *options = command
    arguments = [small_treebanks[0]] if name == "train" else [small_model, small_treebanks[0]]
    result = CliRunner().invoke(app, ["bench", name, *map(str, arguments), *options, "--device", "cpu", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["words_per_second"] == pytest.approx(report["words"] / report["seconds"])
    assert sum(report["share"].values()) == pytest.approx(1.0)
    assert "decode" in report["share"]


def test_nothing_to_bench(run, small_model, tmp_path):
    (tmp_path / "empty.conllu").write_text("")
    fails_with_one_line(run("bench", "parse", small_model, tmp_path / "empty.conllu"), "empty.conllu", "no sentences")


@pytest.mark.parametrize(
    "options",
    [
        ["--system", "arc-standard", "--scorer", "perceptron", "--oracle", "static", "--epochs", 1, "--no-segmenter"],
        ["--system", "mh4", "--epochs", 1, *NETWORK],
    ],
)
def test_a_transition_system_is_trained_and_parses(options, run, small_treebanks, tmp_path):
    train, dev = small_treebanks
    model = tmp_path / "model"
    result = run("train", train, "--dev", dev, "-o", model, *options)
    assert result.returncode == 0, result.stderr.decode()
    assert log_of(model)[-1]["epoch"] == 1
    parsed = run("parse", model, dev)
    assert parsed.returncode == 0
    assert len(parsed.stdout.splitlines()) == len(dev.read_bytes().splitlines())
    assert run("parse", model, dev, "--search", "greedy").stdout == parsed.stdout
    measured = run("bench", "parse", model, dev, "--repeats", 1)
    assert (measured.returncode == 0) == ("perceptron" not in options), measured.stderr.decode()
    fails_with_one_line(run("parse", model, dev, "--search", "beam:4"), "greedy")
    fails_with_one_line(run("parse", model, dev, "--keep-heads"), "heads")
    fails_with_one_line(run("train", train, "--dev", dev, "-o", model, *options), "--overwrite")
    fails_with_one_line(run("train", train, "--dev", dev, "--decoder", "mst", *options), "decoder", "system")
    resumed = run("train", train, "--dev", dev, "-o", model, "--resume", *NETWORK)
    fails_with_one_line(resumed, "parser, not a chart parser (resume with the options that it was trained with)")


def test_closed_streams_are_errors_only_where_they_are_needed(small_model, small_treebanks, tmp_path):
    command = f"{sys.executable} -m mh4 parse {small_model}"
    done = subprocess.run(f"{command} {small_treebanks[1]} -o {tmp_path / 'out'} >&-", shell=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    for redirected, name in ((f"{small_treebanks[1]} >&-", b"standard output"), ("<&-", b"standard input")):
        failed = subprocess.run(f"{command} {redirected}", shell=True, capture_output=True)
        assert failed.returncode == 2
        assert failed.stderr.splitlines() == [b"mh4: " + name + b": is closed (name a file)"]


def test_given_heads_that_no_tree_has_are_skipped_on_demand(run, small_model):
    cycle = GOOD.replace("s1", "bad").replace("\t0\troot", "\t1\troot")
    text = (cycle + GOOD).encode()
    fails_with_one_line(run("parse", small_model, "--keep-heads", stdin=text), "sentence bad", "cycle")
    result = run("parse", small_model, "--keep-heads", "--skip-bad", stdin=text)
    assert result.returncode == 0
    assert result.stdout == GOOD.encode()
    assert b"1 bad sentence skipped; the first: standard input:" in result.stderr


def test_an_ensemble_parses(run, small_model, small_treebanks, tmp_path):
    train, dev = small_treebanks
    other = tmp_path / "mst"
    assert (
        run("train", train, "--dev", dev, "--decoder", "mst", "-o", other, "--max-steps", 3, *NETWORK).returncode == 0
    )
    alone = run("parse", small_model, dev)
    assert run("parse", "--ensemble", small_model, dev).stdout == alone.stdout
    assert run("parse", "--ensemble", small_model, other, small_model, dev).stdout == alone.stdout  # outvoted
    together = run("parse", "--ensemble", small_model, other, stdin=dev.read_bytes())
    assert len(together.stdout.splitlines()) == len(dev.read_bytes().splitlines())
    for wish in (("--confidence",), ("--min-confidence", 0.5), ("--k-best", 2)):
        fails_with_one_line(run("parse", "--ensemble", small_model, other, dev, *wish), "use one of its models")
    fails_with_one_line(run("parse", "--ensemble", dev), "not a folder")
    fails_with_one_line(run("parse", "--ensemble", small_model, "nope", dev), "nope: is not a folder")
    fails_with_one_line(run("parse", "--ensemble", small_model, other, dev, "--search", "greedy"), "mst", "beam")


def test_coverage_into_a_pipe_is_not_cut(run, small_treebanks, tmp_path):
    path = tmp_path / f"{'long-name-' * 12}[x].conllu"
    path.write_bytes(small_treebanks[1].read_bytes())
    table = run("coverage", path).stdout.decode()
    header, first, *rest = table.splitlines()
    assert "% arcs" in header
    assert first.split()[0] == path.stem
    assert all(re.search(r"\d\.\d\d\b", line) for line in (first, *rest))


def test_coverage_measures_no_file_twice(run, small_treebanks):
    first, second = small_treebanks
    for options in ((), ("--per-sentence",)):
        fails_with_one_line(run("coverage", first, second, first, *options), f"{first}: is named twice")
        stdin = first.read_bytes()
        for other in ("-", "/dev/stdin"):
            fails_with_one_line(run("coverage", "-", other, *options, stdin=stdin), "only one of the files")


def test_several_inputs_need_a_folder(run, small_model, small_treebanks, tmp_path):
    fails_with_one_line(run("parse", small_model, *small_treebanks), "2 inputs", "--output FOLDER")
    output = ("-o", tmp_path / "all.conllu")
    fails_with_one_line(run("parse", small_model, *small_treebanks, *output), "all.conllu is the name of a file")
    fails_with_one_line(run("parse", small_model, "A kutya ugat."), "no such file (for text", "--text -")
    fails_with_one_line(run("parse", small_model, small_treebanks[0].parent), "is a folder", "--output FOLDER")
    on_cluster = ("parse", small_model, small_treebanks[0], "--cluster", "local")
    fails_with_one_line(run(*on_cluster), "--output")
    fails_with_one_line(run(*on_cluster, "-o", "json"), "--output")
    for name in ("out.json", "out.jsonl.gz", "o.conllu"):
        fails_with_one_line(run(*on_cluster, "-o", tmp_path / name), f"{name} is the name of a file")
    both = ("--ensemble", "--cluster", "local", "-o", tmp_path)
    fails_with_one_line(run("parse", small_model, small_treebanks[0], *both), "one model")


def test_several_inputs_are_parsed_into_a_folder(run, small_model, small_treebanks, tmp_path):
    names = [path.name for path in small_treebanks]
    expected = [run("parse", small_model, path).stdout for path in small_treebanks]
    told = run("parse", small_model, *small_treebanks, "-o", tmp_path / "new" / "out")
    assert told.returncode == 0, told.stderr
    assert [(tmp_path / "new" / "out" / name).read_bytes() for name in names] == expected
    assert told.stderr.startswith(b"52 sentences, ")
    run("parse", small_model, small_treebanks[0].parent, "-o", tmp_path / "of a folder")
    assert [(tmp_path / "of a folder" / name).read_bytes() for name in names] == expected
    for folder in (f"{tmp_path}/one/", tmp_path / "new"):  # a new folder and an existing one
        assert run("parse", small_model, small_treebanks[1], "-o", folder).returncode == 0
    assert (tmp_path / "one" / names[1]).read_bytes() == (tmp_path / "new" / names[1]).read_bytes() == expected[1]
    both = ("--ensemble", small_model, small_model, *small_treebanks, "-o", tmp_path / "voted")
    assert run("parse", *both).returncode == 0
    assert [(tmp_path / "voted" / name).read_bytes() for name in names] == expected


def test_progress_of_several_inputs_adds_up(run, small_model, small_treebanks, tmp_path, monkeypatch):
    counts = []
    monkeypatch.setattr("mh4.cli.parsing.words_bar", lambda *_: nullcontext(counts.append))
    run("parse", small_model, *small_treebanks, "-o", tmp_path / "out")
    assert [count.sentences for count in counts] == list(range(1, 53))
    assert [count.words for count in counts] == sorted(count.words for count in counts)


def test_nothing_is_loaded_where_files_are_wrong(run, small_treebanks, tmp_path, monkeypatch):
    monkeypatch.setattr("mh4.api.Parser", None)
    twin = tmp_path / "in" / small_treebanks[0].name
    twin.parent.mkdir()
    twin.write_bytes(b"")
    parse = ("parse", tmp_path)
    fails_with_one_line(run(*parse, small_treebanks[0], twin, "-o", tmp_path / "out"), "would both be written")
    fails_with_one_line(run(*parse, small_treebanks[0], twin, "-o", twin), "is a file, not a folder")
    fails_with_one_line(run(*parse, twin, "-o", twin.parent), "is an input and would be replaced")
    fails_with_one_line(run(*parse, twin, "-o", twin), "is the input and would be replaced")
    fails_with_one_line(run(*parse, "-o", f"{tmp_path}/out/"), "standard input: has no name")
    fails_with_one_line(run(*parse, "my file.conllu"), "mh4: my file.conllu: no such file (check the path)")
    fails_with_one_line(run(*parse, twin, "none.conllu", "-o", tmp_path / "out"), "none.conllu: no such file")
    fails_with_one_line(run(*parse, twin.parent, "-o", tmp_path / "out", "--input", "text"), "that end in .txt")
    fails_with_one_line(run("transform", "--to", "mh4", twin, "-o", f"{tmp_path}/out/"), "is the name of a folder")
    for form in ("text", "horizontal", "vertical"):
        fails_with_one_line(run(*parse, "none.txt", "--input", form), "none.txt: no such file")
    for command in (("transform", "--to", "mh4"), ("oracle",)):
        fails_with_one_line(
            run(*command, small_treebanks[0], "-o", tmp_path / "x.json"), "only CoNLL-U can be written here"
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "start", ["", "\n", "\u00a0\n", "# a heading\n", f"# {70000 * '#'}\n", "\ufeff", "\ufeff\ufeff"], ids=len
)
@pytest.mark.parametrize("text", ["The dog barks.", "Barks", "1984 was a year.", "12 men"])
def test_text_is_known_before_the_model_is_loaded(start, text, run, tmp_path, monkeypatch):
    monkeypatch.setattr("mh4.api.Parser", None)
    path = tmp_path / "article.txt"
    path.write_text(start + text + "\n", encoding="utf-8")
    line = 1 + start.count("\n")
    fails_with_one_line(run("parse", tmp_path, path), f"article.txt:{line}: is not CoNLL-U (--text {path} parses text")


@pytest.mark.parametrize("start", ["\u00a0\n", f"# {200000 * 'é'}\n", "\ufeff\ufeff"], ids=len)
def test_conllu_is_known_whatever_comes_before_its_first_word(start, tmp_path):
    path = tmp_path / "long.conllu"
    path.write_text(start + GOOD, encoding="utf-8")
    check_conllu(path, "advice")


def test_what_may_be_conllu_is_left_to_its_reader(run, small_model, tmp_path):
    path = tmp_path / "spaces.conllu"
    path.write_text(GOOD.replace("\t", " "))
    fails_with_one_line(run("parse", small_model, path), "columns are separated by tabs, not spaces")
    path.write_text("A dog.\n\n" + GOOD)
    assert run("parse", small_model, path, "--skip-bad").stdout.count(b"sent_id") == 1
    for empty in ("", "\n\n", "# only\n"):
        path.write_text(empty)
        assert "--text" not in run("parse", small_model, path).stderr.decode()
    os.mkfifo(tmp_path / "pipe")
    writer = Thread(target=(tmp_path / "pipe").write_text, args=(GOOD,))  # can be read only once
    writer.start()
    assert run("parse", small_model, tmp_path / "pipe").stdout.count(b"sent_id") == 1
    writer.join()


def test_a_cluster_does_not_tell_of_its_connections(small_model, small_treebanks, tmp_path):
    pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    command = [sys.executable, "-m", "mh4", "parse", small_model, small_treebanks[1], "--cluster", "local"]
    done = subprocess.run([*command, "-o", tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 0
    assert re.fullmatch(r"\d+ sentences, \d+ words, [^\n]*\n", done.stderr), done.stderr


def test_an_interrupted_cluster_leaves_nothing_and_says_nothing(small_model, small_treebanks, tmp_path):
    """Like Ctrl-C in a terminal, the signal reaches the workers, too."""
    pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    (tmp_path / "long.conllu").write_bytes(3000 * small_treebanks[1].read_bytes())
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-m", "mh4", "parse", small_model, tmp_path / "long.conllu", "--cluster", "local"]
    environment = os.environ | {"TMPDIR": str(scratch)}
    with subprocess.Popen(
        [*command, "-o", out], stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        deadline = time.monotonic() + 200
        while not list(out.glob(".mh4-parts-*/*.conllu")) and process.poll() is None:  # until workers have started
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "distributed" not in said
    assert list(out.iterdir()) == list(scratch.glob("mh4-*")) == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("parse", "mh4 parse: missing argument 'MODEL [INPUT]' (see mh4 parse --help)"),
        ("parse m x --threads 0", "mh4 parse: invalid value for '--threads'"),
        ("parse m x --k-best 99999999999999999999", "mh4 parse: invalid value for '--k-best'"),
        ("parse m x --unique nsubj --among 99999999", "mh4 parse: invalid value for '--among'"),
        ("parse m x --min-confidence nan", "mh4 parse: invalid value for '--min-confidence'"),
        ("parse m x --device meta", "is not one of 'auto', 'cpu', 'cuda' (see mh4 parse --help)"),
        ("parse m x --text", "option '--text' requires an argument"),
        ("parse m x --keephead", "mh4 parse: no such option: --keephead"),
        ("train x", "mh4 train: missing option '--dev' (see mh4 train --help)"),
        ("bench nothing", "mh4 bench: no such command 'nothing' (see mh4 bench --help)"),
        ("nothing", "mh4: no such command 'nothing' (see mh4 --help)"),
        ("--nothing", "mh4: no such option: --nothing (see mh4 --help)"),
    ],
)
def test_a_wrong_command_is_one_line(command, said, run):
    line = fails_with_one_line(run(*command.split()), said)
    assert line.count("mh4") == 1 + line.count("(see mh4")
    assert "Input should" not in line
    assert "Value error" not in line


@pytest.mark.parametrize("command", [(), ("bench",)])
def test_an_incomplete_command_shows_what_there_is(command, run):
    result = run(*command)
    assert (result.returncode, result.stderr) == (2, b"")
    assert b"Usage: " in result.stdout


def test_a_removed_working_folder(run, small_treebanks, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    fails_with_one_line(run("coverage", small_treebanks[1]), "the current folder has been removed")


@pytest.mark.parametrize(
    "command",
    ["parse m ?", "parse m x -o ?", "parse ? x", "train ? --dev x", "eval x --model ?", "sample ?", "train x -o ?"],
)
def test_an_empty_argument_is_not_the_working_folder(command, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fails_with_one_line(run(*("" if word == "?" else word for word in command.split())), "an argument is empty")
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_go_together_is_found_before_anything_is_loaded(run, small_model, small_treebanks, monkeypatch):
    monkeypatch.setattr("mh4.api.Parser", None)
    parse = ("parse", small_model, small_treebanks[1])
    fails_with_one_line(run(*parse, "--text", "-", "--input", "vertical"), "--text is for raw text")
    fails_with_one_line(run(*parse, "--predict", "heads,stem"), "unknown column 'stem'")
    fails_with_one_line(run(*parse, "--among", "3"), "--unique")
    fails_with_one_line(run(*parse, "--confidence", "--k-best", "2"), "not both")
    fails_with_one_line(run("parse", small_treebanks[1], small_model), "is a model folder, not an input")
    fails_with_one_line(run("parse", small_model, small_model, "-o", "folder/"), "is a model folder, not an input")
    fails_with_one_line(run("uncertain", small_model, "nothing.conllu"), "nothing.conllu: no such file")


def test_every_input_is_looked_at_before_the_first_one_is_measured(run, small_treebanks, small_model, tmp_path):
    listed = run("coverage", small_treebanks[1], tmp_path / "nothing.conllu", "--per-sentence")
    fails_with_one_line(listed, "nothing.conllu: no such file")
    assert listed.stdout == b""
    fails_with_one_line(run("sample", small_treebanks[1]), "dev.conllu: is a file, not a folder (choose another name)")
    assert list(tmp_path.iterdir()) == []


def test_very_long_names_are_errors_like_others(run, small_model, small_treebanks):
    long = "x" * 5000
    for command in (
        ("parse", small_model, long),
        ("parse", long, small_treebanks[1]),
        ("parse", small_model, small_treebanks[1], long, "-o", "folder/"),
        ("parse", small_model, small_treebanks[1], "-o", long),
        ("parse", "--ensemble", small_model, long),
        ("eval", long, long),
        ("coverage", long),
    ):
        assert len(fails_with_one_line(run(*command), "file name too long")) < 1100


def test_options_that_do_not_go_together(run, small_treebanks):
    train = ("train", small_treebanks[0], "--dev", small_treebanks[1])
    fails_with_one_line(run(*train, "--resume", "--overwrite"), "choose one")
    fails_with_one_line(run(*train, "--system", "arc-lazy"), "covington")
    fails_with_one_line(run(*train, "--system", "mh4", "--oracle", "dynamic"), "static")
    fails_with_one_line(run(*train, "--system", "arc-eager", "--scorer", "perceptron", "--resume"), "--resume")
    fails_with_one_line(run(*train, "--system", "arc-eager", "--scorer", "perceptron", "--preset", "fast"), "preset")
    fails_with_one_line(run(*train, "--scorer", "perceptron"), "--system")
    fails_with_one_line(run(*train, "--system", "mh4", "--many-roots"), "--many-roots")
    fails_with_one_line(run(*train, "--system", "mh4", "--members", 2), "--members cannot be used with --system")
    fails_with_one_line(run(*train, "--system", "mh4", "--loss", "crf"), "--loss")
    fails_with_one_line(run(*train, "--decoder", "1ec", "--loss", "crf"), "which 1ec does not support")


def test_oracle_writes_sequences(run, small_treebanks):
    result = run("oracle", "--system", "arc-eager", "--sequences", small_treebanks[1])
    assert result.returncode == 0
    assert b"attainable accuracy" in result.stderr
    assert all(line.count(b"\t") == 3 for line in result.stdout.splitlines())
    assert result.stdout.startswith(b"sample-dev-1\t")
    fails_with_one_line(run("oracle", "--policy", "any", small_treebanks[1]), "left-before-right")


def test_sigterm_ends_training_like_an_interruption(small_treebanks, tmp_path):
    train, dev = small_treebanks
    command = [sys.executable, "-m", "mh4", "train", train, "--dev", dev, "-o", tmp_path / "m", "--decoder", "mst"]
    command.append("--no-segmenter")
    small = [f"--set={name}=16" for name in ("hidden", "word_size", "character_size", "character_hidden", "mlp")]
    with subprocess.Popen(
        [*command, *small, "--set=evaluation_steps=20"], stderr=subprocess.PIPE, text=True
    ) as process:
        first = process.stderr.readline()
        process.terminate()
        rest = process.stderr.read()
    assert first.startswith("step"), first + rest
    assert process.returncode == 143
    assert "interrupted; the best model so far is in" in rest
    assert "Traceback" not in rest
    assert not list(tmp_path.rglob("*.tmp"))
    assert not (tmp_path / "m" / ".owner").exists()


def test_sigterm_leaves_no_half_of_an_output(small_model, tmp_path):
    command = [sys.executable, "-m", "mh4", "parse", small_model, "-o", tmp_path / "out.conllu"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 100
        while not list(tmp_path.glob(".mh4-*.tmp")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.terminate()
        assert process.wait(60) == 143
        assert "Traceback" not in process.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_how_sure_a_parser_is(small_model, small_treebanks, tmp_path, run):
    gold, sure = small_treebanks[1], tmp_path / "sure.conllu"
    assert run("calibrate", small_model, gold).returncode == 0
    assert run("parse", small_model, gold, "--confidence", "-o", sure).returncode == 0
    plot = tmp_path / "plot.svg"
    told = run("eval", "--calibration", gold, sure, "--plot", plot)
    assert (told.returncode, told.stderr) == (0, b"")
    assert b"heads and relations: ECE" in told.stdout
    assert "Reliability" in plot.read_text(encoding="utf-8")
    report = json.loads(run("eval", "--calibration", "--json", gold, sure).stdout)
    assert report["heads"]["words"] == sum(map(len, read_conllu(gold)))
    fails_with_one_line(run("eval", gold, sure, "--plot", plot), "--calibration")
    fails_with_one_line(run("eval", "--calibration", gold, gold), "mh4 parse --confidence")
    fails_with_one_line(run("eval", "--calibration", gold, sure, "--plot", tmp_path / "plot.doc"), ".svg")
    listed = [json.loads(line) for line in run("uncertain", small_model, gold, "-n", 7, "--json").stdout.splitlines()]
    assert len(listed) == 7
    assert [word["confidence"] for word in listed] == sorted(word["confidence"] for word in listed)
    line = gold.read_text(encoding="utf-8").splitlines()[listed[0]["line"] - 1].split("\t")
    assert line[:2] == [str(listed[0]["id"]), listed[0]["form"]]
    table = run("uncertain", small_model, gold, "-n", 7).stdout.decode().splitlines()
    assert len(table) == 8
    assert listed[0]["form"] in table[1]
    assert run("uncertain", small_model, gold, "--keep-heads", "--json").stdout == b""  # every head is given


def test_uncertain_words_can_be_found_on_narrow_terminals(small_model, small_treebanks, tmp_path, run, monkeypatch):
    path = tmp_path / f"a-treebank-with-a-name-of-many-letters-{'x' * 60}.conllu"
    rows = [f"1\t{'long' * 300}\t_\t_\t_\t_\t_\t_\t_\t_", "2\ta\u2028b\x1b[31m\u0085\t_\t_\t_\t_\t_\t_\t_\t_"]
    path.write_text(f"# sent_id = {'s' * 2000}\n" + "\n".join(rows) + "\n\n", encoding="utf-8")
    assert run("calibrate", small_model, small_treebanks[1]).returncode == 0
    monkeypatch.setattr(output, "_width", 80)
    header, *table = run("uncertain", small_model, path).stdout.decode().rstrip("\n").split("\n")
    assert sorted(line.split()[0] for line in table) == [f"{path}:2", f"{path}:3"]
    assert "next head" in header
    long, short = sorted(table)
    assert f" {'long' * 7}l… " in long
    assert "a\ufffdb\ufffd[31m\ufffd" in short
    assert not any(character in long + short for character in "\x1b\u2028\u0085")


def test_several_trees_and_words_left_out(small_model, small_treebanks, tmp_path, run):
    gold, out = small_treebanks[1], tmp_path / "out.conllu"
    assert run("parse", small_model, gold, "--k-best", 3, "--unique", "nsubj,obj", "-o", out).returncode == 0
    assert [one.comments[-2] for one in read_conllu(out)][:4] == [
        "# rank = 1",
        "# rank = 2",
        "# rank = 3",
        "# rank = 1",
    ]
    assert run("parse", small_model, gold, "--min-confidence", 1, "-o", out).returncode == 0
    assert {word.head for one in read_conllu(out) for word in one} == {None}
    again = run("parse", small_model, out, "--keep-heads", "--unique", "nsubj", "--among", 2)
    assert again.returncode == 0
    fails_with_one_line(run("parse", small_model, gold, "--confidence", "--k-best", 2), "not both")
    fails_with_one_line(run("parse", small_model, gold, "--unique", "nosuch"), "none of the relations nosuch")
