"""meta.json: the origin of a model, recorded in its folder."""

import json
from datetime import datetime

import pytest
from small import small_config, train

import mh4
from mh4.data.errors import DataError
from mh4.data.licences import is_non_commercial
from mh4.parsers.config import PerceptronConfig
from mh4.parsers.registry import load
from mh4.training.origin import noting_origin
from mh4.training.treebanks import Treebank


def trained(kind, treebanks, folder, **options):
    if kind == "perceptron":
        train(*treebanks, folder, PerceptronConfig("arc-eager", iterations=2), **options)
    else:
        train(*treebanks, folder, small_config("mst"), device="cpu", **options)
    return load(folder, device="cpu")


@pytest.mark.parametrize("kind", ["chart", "perceptron"])
def test_a_model_knows_where_it_comes_from(kind, small_treebanks, tmp_path):
    treebanks = [tmp_path / f"hu_szeged-ud-{part}.conllu" for part in ("train", "dev")]
    for path, copy in zip(small_treebanks, treebanks, strict=True):
        copy.write_bytes(path.read_bytes())
    (tmp_path / "README.md").write_text("License: CC BY-NC-SA 3.0\n")
    reports = []
    options = {"on_evaluation": reports.append, "command": "mh4 train x"}
    meta = trained(kind, treebanks, tmp_path / "m", **options).meta
    assert meta == json.loads((tmp_path / "m" / "meta.json").read_text())
    assert meta["language"] == "hu"
    assert meta["licence"] == "CC BY-NC-SA 3.0"
    assert meta["treebank"]["train"]["sentences"] == 40
    assert meta["treebank"]["dev"]["file"] == "hu_szeged-ud-dev.conllu"
    assert meta["version"] == mh4.__version__
    assert meta["command"] == "mh4 train x"
    assert datetime.fromisoformat(meta["created"]).utcoffset() is not None
    best = [report for report in reports if report["best"]][-1]
    assert meta["dev"] == {"uas": round(best["dev_uas"], 2), "las": round(best["dev_las"], 2)}


def test_arguments_of_the_host_program_are_not_recorded(small_treebanks, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["host.py", "--token", "secret"])
    options = {"system": "arc-eager", "scorer": "perceptron", "iterations": 1}
    parser = mh4.train(*small_treebanks, tmp_path / "m", **options)
    parser.save_pretrained(tmp_path / "shared")
    assert parser.meta["command"] is None
    assert not [path for path in tmp_path.rglob("*.*") if path.is_file() and b"secret" in path.read_bytes()]


def test_a_model_without_it_loads_and_a_new_model_has_its_own(small_treebanks, tmp_path):
    path = tmp_path / "m" / "meta.json"
    meta = trained("perceptron", small_treebanks, tmp_path / "m").meta
    assert (meta["language"], meta["licence"]) == (None, None)
    path.unlink()
    assert load(tmp_path / "m").meta == {}
    path.write_text("[")
    (tmp_path / "m" / "SHA256SUMS").unlink()
    with pytest.raises(DataError, match=r"meta\.json: not valid JSON"):
        load(tmp_path / "m")
    assert trained("perceptron", small_treebanks, tmp_path / "m", overwrite=True).meta["dev"]


def test_a_treebank_whose_name_is_not_utf8(small_treebanks, tmp_path):
    odd = tmp_path / b"a\xff.conllu".decode(errors="surrogateescape")
    odd.write_bytes(small_treebanks[0].read_bytes())
    assert (
        trained("perceptron", (odd, small_treebanks[1]), tmp_path / "m").meta["treebank"]["train"]["file"]
        == "a?.conllu"
    )


@pytest.mark.parametrize(("second", "language"), [("hu_other", "hu"), ("got_proiel", None), ("other", None)])
def test_a_model_has_a_language_if_all_treebanks_are_of_it(second, language, tmp_path):
    treebanks = [Treebank(name, tmp_path / f"{name}-ud-train.conllu", []) for name in ("hu_szeged", second)]
    noting_origin(tmp_path, treebanks, treebanks, None, None)({"best": True, "dev_uas": 80.0, "dev_las": 70.0})
    assert json.loads((tmp_path / "meta.json").read_text())["language"] == language


@pytest.mark.parametrize(
    ("licences", "recorded"),
    [
        (["CC BY 4.0", None], "CC BY 4.0, in part unknown"),
        (["CC BY 4.0", None, "CC BY-NC 4.0"], "CC BY 4.0 and CC BY-NC 4.0, in part unknown"),
        (["CC BY 4.0", "CC BY 4.0"], "CC BY 4.0"),
        ([None, None], None),
    ],
)
def test_an_unknown_licence_is_not_passed_over(licences, recorded, tmp_path):
    treebanks = []
    for number, licence in enumerate(licences):
        folder = tmp_path / str(number)
        folder.mkdir()
        if licence is not None:
            (folder / "README.md").write_text(f"License: {licence}\n")
        treebanks.append(Treebank(str(number), folder / "train.conllu", []))
    noting_origin(tmp_path, treebanks, treebanks, None, None)({"best": True, "dev_uas": 80.0, "dev_las": 70.0})
    assert json.loads((tmp_path / "meta.json").read_text())["licence"] == recorded
    assert is_non_commercial(recorded or "") == ("CC BY-NC 4.0" in licences)
