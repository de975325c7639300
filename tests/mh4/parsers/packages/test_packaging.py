"""Packages, their cards, and the index of their folder."""

import hashlib
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from paths import GOLDEN_FOLDER

import mh4
from mh4.data.errors import DataError
from mh4.parsers.model_files import write_json
from mh4.parsers.packages.card import make_card
from mh4.parsers.packages.index import INDEX, add_to_index, read_index
from mh4.parsers.packages.packaging import measure, package


def card_of(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read("README.md").decode()


def test_a_package_holds_what_loading_needs_and_checksums_of_it(model, tmp_path):
    entry = package(model, tmp_path / "other.mh4.zip")
    path = tmp_path / entry.file
    assert (entry.name, entry.size) == ("other", path.stat().st_size)
    assert entry.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    expected = {"config.json", "vocab.json", "weights.safetensors", "meta.json", "SHA256SUMS", "README.md"}
    assert files.keys() == expected
    assert entry.unpacked == sum(map(len, files.values()))
    sums = dict(reversed(line.split("  ")) for line in files["SHA256SUMS"].decode().splitlines())
    assert sums == {
        name: hashlib.sha256(content).hexdigest()
        for name, content in files.items()
        if name not in ("SHA256SUMS", "README.md")
    }
    assert all(
        f"| {name} | {len(files[name]):,} | `{digest}` |" in files["README.md"].decode()
        for name, digest in sums.items()
    )
    assert not (tmp_path / INDEX).exists()


def test_equal_models_are_equal_packages(model, tmp_path):
    assert package(model, tmp_path / "a").sha256 == package(model, tmp_path / "b").sha256


def test_a_damaged_model_is_not_packaged(model, tmp_path):
    write_json(model / "config.json", json.loads((model / "config.json").read_text()))
    (model / "config.json").write_text("{}")
    with pytest.raises(DataError, match=r"config\.json: is damaged"):
        package(model, tmp_path / "a.mh4.zip")
    assert not (tmp_path / "a.mh4.zip").exists()


def test_scores_are_measured_as_asked_for(model, small_treebanks, tmp_path, monkeypatch):
    loaded, measured = [], []
    monkeypatch.setattr(
        "mh4.parsers.packages.packaging.load", lambda *of, **options: loaded.append((*of, options)) or "it"
    )
    monkeypatch.setattr("mh4.parsers.packages.packaging.measure", lambda _, path: measured.append(path) or {})
    monkeypatch.setattr("mh4.parsers.packages.packaging.make_card", lambda *_: b"")
    entry = package(model, tmp_path / "a", gold=small_treebanks, device="cpu", threads=2)
    assert loaded == [(model, {"device": "cpu", "threads": 2})]
    assert measured == [*small_treebanks]
    assert entry.meta["evaluation"] == [{}, {}]


def test_a_file_in_place_of_the_folder_is_named(model, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(DataError, match=r"out: no package can be written here"):
        package(model, tmp_path / "out")


def test_a_folder_of_packages_has_an_index(model, tmp_path):
    package(model, tmp_path / "zoo", name="b")
    package(model, tmp_path / "zoo", name="a", licence="CC BY 4.0")
    package(model, tmp_path / "zoo", name="b", licence="CC BY-NC 4.0")
    first, second = read_index(tmp_path / "zoo").models
    assert (first.name, first.licence, first.non_commercial) == ("a", "CC BY 4.0", False)
    assert (second.name, second.licence, second.non_commercial) == ("b", "CC BY-NC 4.0", True)
    assert (second.file, second.languages, second.meta["command"]) == ("b.mh4.zip", ("xx",), "mh4 train a b")


def test_models_that_are_packaged_at_once_are_all_in_the_index(model, tmp_path):
    entry = package(model, tmp_path / "zoo")
    with ThreadPoolExecutor(4) as pool:
        names = [f"m{i:02}" for i in range(20)]
        list(pool.map(lambda name: add_to_index(tmp_path / "zoo", replace(entry, name=name)), names))
    assert [one.name for one in read_index(tmp_path / "zoo").models] == [*names, "xx"]


def test_names_and_outputs_that_are_none(model, tmp_path):
    with pytest.raises(ValueError, match=r"'a b' is not a name for a package, .*name="):
        package(model, tmp_path, name="a b")
    with pytest.raises(ValueError, match=r"a package must be named NAME\.mh4\.zip"):
        package(model, tmp_path / "a.zip")
    with pytest.raises(DataError, match=r"the folder .* does not exist"):
        package(model, tmp_path / "nowhere" / "a.mh4.zip")
    with pytest.raises(DataError, match=r"nowhere/config\.json: no such file"):
        package(tmp_path / "nowhere", tmp_path)


@pytest.mark.parametrize(
    ("licence", "metadata", "words"),
    [
        ("CC BY-SA 4.0", "license: cc-by-sa-4.0", "is CC BY-SA 4.0.\n"),
        ("CC BY-NC-SA 3.0", "license: cc-by-nc-sa-3.0", "is CC BY-NC-SA 3.0. It forbids commercial use"),
        ("GPL 3", "license: gpl-3.0", "is GPL 3.\n"),
        ("Ask: us", 'license: other\nlicense_name: "Ask: us"', "is Ask: us.\n"),
        (None, "license: unknown", "is unknown: ask its authors"),
    ],
)
def test_a_card_says_what_the_licence_allows(licence, metadata, words, model, tmp_path):
    entry = package(model, tmp_path / "a.mh4.zip", licence=licence)
    card = card_of(tmp_path / "a.mh4.zip")
    assert f"\n{metadata}\n" in card.partition("\n---\n")[0] + "\n"
    assert f"The licence of the treebank {words}" in card
    assert entry.licence == licence


def test_a_licence_is_not_lost_on_the_way(model, tmp_path):
    package(model, tmp_path / "a.mh4.zip", licence="CC BY-NC 4.0")
    (tmp_path / "m").mkdir()
    with zipfile.ZipFile(tmp_path / "a.mh4.zip") as archive:
        archive.extractall(tmp_path / "m")
    assert package(tmp_path / "m", tmp_path / "b.mh4.zip").non_commercial
    parser = mh4.load(tmp_path / "m", device="cpu")
    assert parser.meta["licence"] == "CC BY-NC 4.0"
    parser.save_pretrained(tmp_path / "saved")
    assert "It forbids commercial use" in (tmp_path / "saved" / "README.md").read_text()


def test_a_card_has_scores_with_intervals(text_model, small_treebanks, tmp_path):
    dev = small_treebanks[1]
    entry = package(text_model, tmp_path / "zoo", name="ul", gold=[dev], device="cpu")
    (evaluation,) = entry.meta["evaluation"]
    expected = mh4.load(text_model, device="cpu").evaluate(dev)
    uas, low, high = evaluation["tokens"]["UAS"]
    assert uas == round(expected.uas, 2)
    assert low <= uas <= high
    assert evaluation["words"] == sum(map(len, mh4.read_conllu(dev)))
    assert evaluation["words_per_second"] > 0
    assert "Words" not in evaluation["tokens"]
    assert evaluation["text"]["Words"][0] > 50
    assert "UPOS" not in evaluation["tokens"]  # the model does not predict it
    card = card_of(tmp_path / "zoo" / "ul.mh4.zip")
    assert f"| UAS | {uas:.2f} ({low:.2f}–{high:.2f}) | {evaluation['text']['UAS'][0]:.2f} (" in card
    assert f"| Words | – | {evaluation['text']['Words'][0]:.2f}" in card
    assert (
        f"Speed: {evaluation['words_per_second']:,} words per second of processor time ({evaluation['processor']}"
        in card
    )
    assert f"on train.conllu (40 sentences, {entry.meta['treebank']['train']['words']:,} words)" in card
    assert "## Training" not in card  # trained in Python, without a command
    assert 'parser = mh4.load("ul")' in card


def test_a_model_that_needs_tags_is_given_those_of_the_gold_file(small_treebanks, segmenter, monkeypatch, tmp_path):
    monkeypatch.setattr("mh4.parsers.perceptron.parser.PerceptronParser.segmenter", segmenter)
    dev = small_treebanks[1]
    entry = package(GOLDEN_FOLDER / "models" / "perceptron", tmp_path / "a.mh4.zip", gold=[dev], device="cpu")
    (evaluation,) = entry.meta["evaluation"]
    expected = mh4.load(GOLDEN_FOLDER / "models" / "perceptron", device="cpu").evaluate(dev, given="upos")
    assert evaluation["tokens"].keys() == {"UAS", "LAS", "CLAS"}
    assert evaluation["tokens"]["LAS"][0] == round(expected.las, 2)
    assert "text" not in evaluation
    assert "| | gold tokens, UPOS |" in card_of(tmp_path / "a.mh4.zip")


def test_a_card_without_measurements_has_the_scores_of_training():
    meta = {"dev": {"uas": 81.5, "las": 77.25}, "version": "0.1.0", "command": "mh4 train a b", "created": "today"}
    card = make_card("a", meta, {}).decode()
    assert "UAS 81.5, LAS 77.25" in card
    assert "on unknown data" in card
    assert "```bash\nmh4 train a b\n```\n\nFinished today." in card


def test_scores_need_sentences(model, tmp_path):
    (tmp_path / "empty.conllu").write_text("")
    with pytest.raises(DataError, match=r"empty\.conllu: holds no sentences"):
        measure(mh4.load(GOLDEN_FOLDER / "models" / "chart", device="cpu"), tmp_path / "empty.conllu")
