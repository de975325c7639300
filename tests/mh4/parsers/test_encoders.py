"""Another encoder, with settings, IDs and files of its own, can replace the BiLSTM."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import pytest
import torch
from pydantic.dataclasses import dataclass
from safetensors.torch import load_file
from small import small_config, train
from torch import nn

from mh4.data.errors import DataError
from mh4.models.checked import STRICT, Positive
from mh4.models.encoder import Encoder, EncoderConfig, FileError, States
from mh4.models.encoders import ENCODERS
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import ChartConfig, as_dict, from_dict, make_config
from mh4.parsers.definition import Definition
from mh4.parsers.ensemble import EnsembleParser
from mh4.parsers.folder import ModelFolder
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold

TABLE, START = "table.json", "start.json"
LONG = 25


@dataclass(frozen=True, config=STRICT)
class PiecesConfig(EncoderConfig):
    kind: Literal["pieces"] = "pieces"
    piece: Positive = 3
    hidden: Positive = 12


class Pieces(NamedTuple):
    lengths: torch.Tensor
    pieces: torch.Tensor  # counts, (B, T + 1, rows); 0 for the root

    def to(self, device):
        return Pieces(self.lengths, self.pieces.to(device))


class PiecesEncoder(Encoder):
    """Sums up the vectors of a word's pieces: each is a frozen vector plus one learnt at half the rate."""

    config_type = PiecesConfig
    longest = LONG

    def __init__(self, config, files):
        super().__init__(config, files)
        self.config, self.size = config, config.hidden
        self.table = json.loads(files[TABLE])
        if not self.table:
            raise FileError(TABLE, "is empty")
        self.learnt = nn.Linear(len(self.table), config.hidden)
        if START in files:
            nn.init.constant_(self.learnt.bias, json.loads(files[START]))
        columns = np.arange(len(self.table))[None] + np.arange(config.hidden)[:, None]
        self.frozen = nn.Parameter(torch.from_numpy(np.cos(columns).astype(np.float32)), requires_grad=False)

    @classmethod
    def learn(cls, config, sentences, dev=(), on_reading=None, treebanks=()):
        pieces = sorted({piece for sentence in sentences for form in sentence.forms for piece in cut(form, config)})
        return {TABLE: json.dumps(pieces).encode(), START: b"0.25"}

    def files(self):
        return {TABLE: json.dumps(self.table).encode()}  # START is needed only at first

    def prepare(self, sentence, treebank=None):
        return [cut(form, self.config) for form in sentence.forms]  # strings instead of IDs

    def cost(self, sentence):
        return sum(map(len, self.prepare(sentence)))

    def collate(self, sentences):
        lengths = torch.tensor([len(words) for words in sentences])
        counts = torch.zeros(len(lengths), int(lengths.max()) + 1, len(self.table))
        for b, words in enumerate(sentences):
            for d, pieces in enumerate(words, start=1):
                for piece in set(pieces) & set(self.table):
                    counts[b, d, self.table.index(piece)] += 1
        return Pieces(lengths, counts)

    def forward(self, batch):
        states = torch.tanh(self.learnt(batch.pieces) + batch.pieces @ self.frozen.t())
        return States(states, states)

    def parameter_groups(self):
        return [{"params": list(self.learnt.parameters()), "factor": 0.5}]


def cut(form, config):
    return [form[i : i + config.piece] for i in range(0, len(form), config.piece)]


@pytest.fixture(autouse=True)
def another(monkeypatch):
    monkeypatch.setitem(ENCODERS, "pieces", PiecesEncoder)


def config_of(decoder="mst", **training):
    return replace(small_config(decoder, **training), encoder=PiecesConfig(piece=2))


@pytest.fixture
def model(small_treebanks, tmp_path):
    train(*small_treebanks, tmp_path / "m", config_of(max_steps=6, evaluation_steps=3), device="cpu")
    return tmp_path / "m"


def test_it_learns_and_parses_the_same_once_it_is_saved(small_treebanks, tmp_path):
    losses, config = [], config_of(max_steps=60, evaluation_steps=10, learning_rate=0.03)
    train(
        *small_treebanks, tmp_path / "m", config, device="cpu", on_evaluation=lambda line: losses.append(line["loss"])
    )
    assert losses[-1] < 0.8 * losses[0]
    parser = ChartParser.load(tmp_path / "m", device="cpu")
    assert parser.config == config
    words = [sentence.forms for sentence in read_gold(small_treebanks[1])]
    found = [parser(forms).to_conllu() for forms in words]
    parser.save(tmp_path / "again")
    again = ChartParser.load(tmp_path / "again", device="cpu")
    assert [again(forms).to_conllu() for forms in words] == found
    assert len(set(again(words[0]).heads.tolist())) > 2


def test_what_it_has_in_the_folder(model):
    assert [path.name for path in model.glob("encoder.*")] == [f"encoder.{TABLE}"]
    saved, parser = load_file(model / "weights.safetensors"), ChartParser.load(model, device="cpu")
    assert saved.keys() == parser.network.state_dict().keys()
    assert torch.equal(saved["learnt.weight"], parser.network.encoder.learnt.weight)  # named without "encoder."
    assert "frozen" not in saved
    assert not any(name.endswith("frozen") for name in load_file(model / "training.safetensors"))
    assert parser.network.encoder.frozen.std() > 0
    assert parser.network.encoder.learnt.bias.mean().item() == pytest.approx(0.25, abs=0.1)


def test_another_model_in_its_place_has_nothing_of_it(model, small_treebanks):
    train(*small_treebanks, model, small_config("mst", max_steps=1), device="cpu", overwrite=True)
    assert sorted(path.name for path in model.glob("encoder.*")) == ["encoder.words.json"]
    ChartParser.load(model, device="cpu").save(model, overwrite=True)
    assert sorted(path.name for path in model.glob("encoder.*")) == ["encoder.words.json"]


def test_files_that_are_missing_or_wrong_are_named(model, tmp_path):
    shutil.copytree(model, tmp_path / "wrong")
    ((tmp_path / "wrong") / "SHA256SUMS").unlink()
    path = tmp_path / "wrong" / f"encoder.{TABLE}"
    path.write_text("[]")
    with pytest.raises(DataError, match=rf"^{path}: is empty$"):
        ChartParser.load(tmp_path / "wrong", device="cpu")
    path.unlink()
    with pytest.raises(DataError, match=rf"^{path}: no such file"):
        ChartParser.load(tmp_path / "wrong", device="cpu")
    (model / f"encoder.{TABLE}").write_text("[1]")
    with pytest.raises(DataError, match="checksum"):
        ChartParser.load(model, device="cpu")


def test_training_goes_on_only_with_the_files_it_began_with(model, small_treebanks, tmp_path):
    config = config_of(max_steps=9, evaluation_steps=3)
    train(*small_treebanks, model, config, device="cpu", resume=True)
    train(*small_treebanks, tmp_path / "whole", config, device="cpu")
    one, other = (load_file(folder / "weights.safetensors") for folder in (model, tmp_path / "whole"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    other = tmp_path / "other.conllu"
    text = small_treebanks[0].read_text(encoding="utf-8")
    word = text.splitlines()[next(i for i, line in enumerate(text.splitlines()) if line.startswith("1\t"))]
    other.write_text(text.replace(word, word.replace("\t", "\tqx", 1), 1), encoding="utf-8")
    with pytest.raises(DataError, match="was trained on another treebank"):
        train(other, small_treebanks[1], model, replace(config), device="cpu", resume=True)


def test_it_learns_at_its_own_rate(small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(Definition.learn(config_of(learning_rate=0.03), sentences), "cpu")
    trainer = Trainer(parser, sentences, sentences, tmp_path)
    rates = {id(p): group["lr"] for group in trainer.optimizer.param_groups for p in group["params"]}
    for name, parameter in parser.network.named_parameters():
        expected = None if name == "encoder.frozen" else 0.015 if name.startswith("encoder.") else 0.03
        assert rates.get(id(parameter)) == expected, name


def test_it_decides_what_is_batched_together(small_treebanks, tmp_path, monkeypatch):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(Definition.learn(config_of(), sentences), "cpu")
    cost = parser.network.encoder.cost
    monkeypatch.setattr("mh4.parsers.network.BATCH_COST", 100)
    batches = list(parser.batches(sentences))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(cost(sentences[i]) for i in batch) <= 100
    order = [cost(sentences[i]) for batch in batches for i in batch]
    assert order == sorted(order)
    trainer = Trainer(parser, sentences, sentences, tmp_path)
    costs = [[cost(trainer.examples[i].sentence) for i in batch] for batch in trainer.batches(0)]
    ranges = sorted((min(of_batch), max(of_batch)) for of_batch in costs)
    assert all(high <= low for (_, high), (low, _) in pairwise(ranges))  # one window, so sorted by cost


def test_sentences_longer_than_it_takes_are_parsed_in_pieces(model, small_model, caplog):
    parser = ChartParser.load(model, device="cpu")
    assert len(parser(["Topebon", "rupo"] * LONG)) == 2 * LONG
    assert f"of {2 * LONG} words, more than {LONG}, is parsed in pieces of at most {LONG}," in caplog.text
    assert EnsembleParser([ChartParser.load(small_model, device="cpu"), parser]).longest == LONG


def test_its_settings_are_set_and_read_back():
    config = make_config(ChartConfig, {"encoder": "pieces", "piece": "2", "hidden": 5, "mlp": 7})
    assert config.encoder == PiecesConfig(piece=2, hidden=5)
    assert as_dict(config)["encoder"] == {"kind": "pieces", "piece": 2, "hidden": 5}
    assert from_dict(json.loads(json.dumps(as_dict(config)))) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "pieces", "layers": 2}, "encoder.layers: unknown option; known: kind, piece, hidden"),
        ({"encoder": "pieces", "piece": 0}, "encoder.piece: must be greater than or equal to 1; got 0"),
        ({"piece": 2}, "encoder.piece: unknown option; known: kind, word_size"),
        ({"encoder": "gru"}, "encoder: unknown encoder 'gru'; known: bilstm, transformer, pieces"),
    ],
)
def test_settings_that_it_does_not_have(settings, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        make_config(ChartConfig, settings)
    assert str(error.value).startswith(message)


def test_folders_of_format_3_had_words_and_characters_in_the_vocabulary(small_model, tmp_path):
    config, vocabulary, files = ModelFolder(small_model).definition(ChartConfig)
    shutil.copytree(small_model, tmp_path / "old")
    folder = tmp_path / "old"
    (folder / "SHA256SUMS").unlink()
    data = json.loads((folder / "vocab.json").read_bytes())
    words = json.loads((folder / "encoder.words.json").read_bytes())
    del data["spaced"]
    (folder / "vocab.json").write_text(json.dumps(words | data))
    (folder / "encoder.words.json").unlink()
    old = ModelFolder(folder).definition(ChartConfig)
    assert (old[:2], dict(old[2])) == ((config, vocabulary), dict(files))
    np.testing.assert_array_equal(
        ChartParser.load(folder, device="cpu").score([]), ChartParser.load(small_model, device="cpu").score([])
    )
    (folder / "vocab.json").write_text(json.dumps(words | data | {"words": {"a": -1}}))
    with pytest.raises(DataError, match=r"vocab\.json: words\.a: must be greater than or equal to 0; got -1"):
        ModelFolder(folder).definition(ChartConfig)
