"""Models of earlier versions load and parse as before; their folders hold models and output of version 0.1.0."""

import json
import shutil
from operator import eq

import pytest
import torch
from paths import GOLDEN_FOLDER

from mh4.data.conllu import read_conllu
from mh4.parsers.config import as_dict, from_dict
from mh4.parsers.folder import ModelFolder
from mh4.parsers.model_files import CONFIG, WEIGHTS, write_json, write_tensors
from mh4.parsers.registry import load


@pytest.mark.parametrize("kind", ["chart", "greedy", "perceptron"])
def test_models_of_earlier_versions_parse_as_they_did(kind, tmp_path):
    folder = GOLDEN_FOLDER / "models" / kind
    load(folder, device="cpu", threads=1).parse_file(folder / "dev.conllu", tmp_path / "out.conllu")
    assert (tmp_path / "out.conllu").read_bytes() == (folder / "dev.conllu").read_bytes()


def test_a_model_with_a_weight_for_each_column_finds_the_same_trees_and_fills_every_column(tmp_path):
    """Format 2; its UPOS were chosen before the analyses, so some values differ from its output."""
    folder = GOLDEN_FOLDER / "models" / "annotating"
    parser = load(folder, device="cpu", threads=1)
    assert parser.annotates == {"upos", "xpos", "feats", "lemmas"}
    parser.parse_file(folder / "dev.conllu", tmp_path / "out.conllu", overwrite=True)
    same = 0
    for found, expected in zip(read_conllu(tmp_path / "out.conllu"), read_conllu(folder / "dev.conllu"), strict=True):
        assert found.heads.tolist() == expected.heads.tolist()
        assert found.relations == expected.relations
        assert "_" not in found.upos + found.xpos + found.lemmas
        same += sum(map(eq, found.feats, expected.feats))
    assert same > 100  # of 188 words


@pytest.mark.parametrize("kind", ["chart", "greedy"])
def test_features_as_an_auxiliary_task_are_of_no_account_to_parsing(kind, tmp_path):
    """Its weight is in the single part of settings up to format 3, and among the loss weights in early format 4."""
    source = GOLDEN_FOLDER / "models" / kind
    folder = ModelFolder(shutil.copytree(source, tmp_path / "m"))
    features = {"features.hidden.linear.bias": torch.zeros(3)}
    write_tensors(folder / WEIGHTS, folder.weights() | features)
    data = json.loads((folder / CONFIG).read_bytes())
    data["network"]["feature_weight"] = 0.1
    write_json(folder / CONFIG, data)
    parser = load(folder.path, device="cpu", threads=1)
    parser.parse_file(source / "dev.conllu", tmp_path / "out.conllu")
    assert (tmp_path / "out.conllu").read_bytes() == (source / "dev.conllu").read_bytes()
    today = as_dict(parser.config)
    assert "feature_weight" not in today["weights"]
    assert from_dict(today | {"weights": today["weights"] | {"feature_weight": 0.1}}) == parser.config
