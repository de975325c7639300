"""Results are used again only for the treebank that they were made from."""

import json
from datetime import date

import covington_dynamic
import exact_training
import lr_spine_table2
import mh4_oracle_shares
import provenance
import pytest
import table7_training_conditions as table7
import which_projectivization
from kept_results import describe_data, read_kept

from mh4.data.sample import read_sample
from mh4.oracles.mh4 import POLICIES


def write_part(folder, part, sentences):
    folder.mkdir(exist_ok=True)
    (folder / f"x-ud-{part}.conllu").write_text("".join(sentences), encoding="utf-8")


@pytest.fixture
def treebanks(tmp_path):
    """A treebank, one with fewer training sentences, and one with the same sizes but another word."""
    sample = {part: read_sample()[part][:8] for part in ("train", "dev")}
    word = sample["train"][0].split("\t")[1]
    others = {"whole": sample["train"], "cut": sample["train"][:5]}
    others["changed"] = [sample["train"][0].replace(f"\t{word}\t", f"\t{word}x\t", 1), *sample["train"][1:]]
    for name, train in others.items():
        (tmp_path / name).mkdir()
        write_part(tmp_path / name / "x", "train", train)
        write_part(tmp_path / name / "x", "dev", sample["dev"])
    return {name: tmp_path / name / "x" for name in others}


def kept(tmp_path, result, folder):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result))
    return read_kept(path, {"seed": 1}, describe_data(folder, "train", "dev"))


def test_results_of_other_data_are_refused(treebanks, tmp_path):
    result = {"seed": 1, "data": describe_data(treebanks["whole"], "train", "dev")}
    assert kept(tmp_path, result, treebanks["whole"]) == result
    assert kept(tmp_path, result, tmp_path / "missing") == result  # tables need no treebank
    for name in ("cut", "changed"):
        with pytest.raises(SystemExit, match=r"result\.json: was made from other train data"):
            kept(tmp_path, result, treebanks[name])


def test_results_without_data_are_refused_if_what_they_tell_differs(treebanks, tmp_path):
    data = describe_data(treebanks["whole"], "train", "dev")
    train, dev = data["train"], data["dev"]
    percent = 100 * train["not_projective"] / train["sentences"]
    of_table7 = {"seed": 1, "sentences": train["sentences"], "tokens": train["words"], "nonprojective_percent": percent}
    scored = {"seed": 1, "scored": "dev", "words": dev["words"], "UAS": [0] * dev["sentences"]}
    for result in ({"seed": 1}, of_table7, scored, scored | {"not_projective": train["not_projective"]}):
        assert kept(tmp_path, result, treebanks["whole"]) == result
    for result, part in (
        (of_table7 | {"tokens": 1}, "train"),
        (of_table7 | {"nonprojective_percent": percent + 20}, "train"),
        (scored | {"words": 1}, "dev"),
        (scored | {"UAS": [0]}, "dev"),
        (scored | {"not_projective": 99}, "train"),
    ):
        with pytest.raises(SystemExit, match=f"other {part} data"):
            kept(tmp_path, result, treebanks["whole"])


@pytest.mark.parametrize(
    ("script", "options"),
    [
        (covington_dynamic, ["--iterations", "1", "--seeds", "1", "--oracles", "static"]),
        (exact_training, ["--iterations", "1", "--seeds", "1", "--ties", "best"]),
        (lr_spine_table2, ["--iterations", "1", "--rows", "arc-eager"]),
        (table7, ["--epochs", "1", "--seeds", "1", "--conditions", "1"]),
        (which_projectivization, ["--iterations", "1", "--seeds", "1"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_scripts_tell_the_data_and_the_code_of_their_results(script, options, treebanks, tmp_path, monkeypatch):
    def call(name):
        arguments = ["script", str(treebanks[name]), "-o", str(tmp_path / "results"), *options]
        monkeypatch.setattr("sys.argv", arguments)
        script.main()

    call("whole")
    for path in (tmp_path / "results").iterdir():
        result = json.loads(path.read_text())
        assert result["data"]["train"]["sentences"] == result["data"]["dev"]["sentences"] == 8
        assert result.keys() >= {"commit", "hardware"}
    with pytest.raises(SystemExit, match="other train data"):
        call("cut")


def test_shares_of_an_oracle_tell_their_provenance(treebanks, tmp_path, monkeypatch):
    output = tmp_path / "shares.json"
    monkeypatch.setattr("sys.argv", ["script", str(treebanks["whole"] / "x-ud-train.conllu"), "-o", str(output)])
    mh4_oracle_shares.main()
    assert json.loads(output.read_text()).keys() >= {"commit", "versions", "hardware", *POLICIES}


def test_computed_numbers_tell_when_and_by_what_they_were_made():
    made, machine = provenance.made_today(), provenance.describe_hardware("cpu")
    assert made == {"date": date.today().isoformat(), "commit": provenance.describe_commit(), "machine": machine}
