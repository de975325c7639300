"""``--treebank NAME=FILE`` and ``--as NAME``."""

import json

from command_line import fails_with_one_line

import mh4


def test_several_treebanks_from_training_to_parsing(run, small_treebanks, small_model, tmp_path):
    train, dev = small_treebanks
    named = [f"--treebank=a={train}", f"--treebank=b={train}", f"--dev=a={dev}", f"--dev=b={dev}"]
    sizes = [f"--set={name}=16" for name in ("hidden", "word_size", "mlp")]
    model = tmp_path / "m"
    done = run("train", *named, *sizes, "--max-steps=4", "--decoder=mst", "--no-segmenter", "-o", model)
    assert done.returncode == 0, done.stderr
    told = done.stderr.decode()
    best = mh4.load(model).meta["dev"]
    assert f"best: UAS {best['uas']:.2f}, LAS {best['las']:.2f} on {dev}, {dev} at step" in told
    assert " (a " in told
    assert "; b " in told
    assert run("parse", model, dev, "--as", "a").returncode == 0
    said = fails_with_one_line(run("parse", model, dev, "--as", "hu"))
    assert said == "mh4: unknown treebank 'hu'; those of the model: a, b\n"
    fails_with_one_line(run("parse", small_model, dev, "--as", "a"), "the model does not tell treebanks apart")
    evaluate = ("eval", dev, "--model", model, "--json")
    found = [json.loads(run(*evaluate, *options).stdout) for options in (["--as", "a"], ["--as", "b"], [])]
    parser = mh4.load(model, device="cpu")
    assert found == [parser.evaluate(dev, treebank=name).as_dict() for name in ("a", "b", None)]
    assert found[0] != found[1]
    assert fails_with_one_line(run(*evaluate, "--as", "hu")) == said.replace(": ", f": {model}: ", 1)
    several = run(*evaluate, "--model", small_model, "--as", "a")
    fails_with_one_line(several, f"mh4: {small_model}: unknown treebank 'a'; the model does not tell treebanks apart")
    fails_with_one_line(run("eval", dev, dev, "--as", "a"), "--as, --device and --threads are for --model")
    assert run("calibrate", model, f"a={dev}", f"b={dev}").returncode == 0
    assert run("uncertain", model, dev, "--as", "a").stdout != run("uncertain", model, dev, "--as", "b").stdout
    files = ["parse", model, dev, "--cluster", "local", "-o", tmp_path / "out"]
    fails_with_one_line(run(*files, "--as", "hu"), "unknown treebank 'hu'")


def test_treebanks_that_are_named_wrongly(run, small_treebanks):
    train, dev = small_treebanks
    for arguments in (["--dev", dev], [train, f"--treebank=a={train}", "--dev", f"a={dev}"]):
        fails_with_one_line(run("train", *arguments), "one training treebank, TRAIN, or several, as in --treebank got=")
    fails_with_one_line(run("train", "--treebank", train, "--dev", dev), f"(for one alone: mh4 train {train})")
    named = [f"--treebank=a={train}", f"--treebank=b={train}"]
    fails_with_one_line(run("train", *named, "--dev", dev, "--dev", f"b={dev}"), f"as NAME=FILE, not '{dev}'")
    fails_with_one_line(run("train", "--treebank=a=", f"--dev=a={dev}"), "as NAME=FILE, not 'a='")
    fails_with_one_line(run("train", *named, f"--dev=a={dev}", f"--dev=a={dev}"), "the treebank 'a' is named twice")
    fails_with_one_line(run("train", *named, "--dev", dev), "development treebanks: one without a name")


def test_a_file_with_an_equals_sign_in_its_name(run, small_treebanks, tmp_path):
    train, dev = (tmp_path / f"a={path.name}" for path in small_treebanks)
    for path, own in zip((train, dev), small_treebanks, strict=True):
        path.write_bytes(own.read_bytes())
    sizes = [f"--set={name}=16" for name in ("hidden", "word_size", "mlp")]
    done = run("train", train, "--dev", dev, *sizes, "--max-steps=2", "--no-segmenter", "-o", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    assert mh4.load(tmp_path / "m").treebanks == ()
