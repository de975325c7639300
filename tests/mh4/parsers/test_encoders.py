"""Another encoder can take the place of the BiLSTM, in training and in parsing."""

from typing import NamedTuple

import pytest
import torch
from safetensors.torch import load_file
from small import small_config
from torch import nn

from mh4.models.encoder import Encoder, States
from mh4.parsers import network
from mh4.parsers.chart import ChartParser
from mh4.parsers.vocabulary import Vocabulary
from mh4.training.trainer import Trainer, train
from mh4.training.treebanks import read_gold


class Bytes(NamedTuple):
    lengths: torch.Tensor
    counts: torch.Tensor  # (B, T + 1, 256), the root's being 0

    def to(self, device):
        return Bytes(*(tensor.to(device) for tensor in self))


class BytesEncoder(Encoder):
    """Sums of vectors of bytes; half as fast to learn as the rest of the network."""

    size = 12

    def __init__(self):
        super().__init__()
        self.bytes = nn.Linear(256, self.size)

    def collate(self, sentences):
        lengths = torch.tensor([len(sentence.forms) for sentence in sentences])
        counts = torch.zeros(len(lengths), int(lengths.max()) + 1, 256)
        for b, sentence in enumerate(sentences):
            for d, form in enumerate(sentence.forms, start=1):
                counts[b, d] = torch.bincount(torch.tensor([*form.encode()]), minlength=256)
        return Bytes(lengths, counts)

    def forward(self, batch):
        states = torch.tanh(self.bytes(batch.counts))
        return States(states, states)

    def parameter_groups(self):
        return [{"params": list(self.parameters()), "factor": 0.5}]


@pytest.fixture
def another(monkeypatch):
    monkeypatch.setitem(network.ENCODERS, "bilstm", lambda config, vocabulary: BytesEncoder())


def test_it_learns_and_parses(another, small_treebanks, tmp_path):
    config = small_config("mst", max_steps=60, evaluation_steps=10, learning_rate=0.03)
    losses = []
    train(
        *small_treebanks, tmp_path / "m", config, device="cpu", on_evaluation=lambda line: losses.append(line["loss"])
    )
    assert losses[-1] < 0.8 * losses[0]
    parser = ChartParser.load(tmp_path / "m", device="cpu")
    assert len(parser(["Topebon", "rupo"])) == 2
    saved = load_file(tmp_path / "m" / "weights.safetensors")
    assert saved.keys() == parser.network.state_dict().keys()
    assert torch.equal(saved["bytes.weight"], parser.network.encoder.bytes.weight)  # named without "encoder."


def test_it_learns_at_its_own_rate(another, small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(small_config("mst", learning_rate=0.03), Vocabulary.from_sentences(sentences), "cpu")
    trainer = Trainer(parser, sentences, sentences, tmp_path)
    rates = {id(p): group["lr"] for group in trainer.optimizer.param_groups for p in group["params"]}
    assert len(rates) == len(list(parser.network.parameters()))
    for name, parameter in parser.network.named_parameters():
        assert rates[id(parameter)] == (0.015 if name.startswith("encoder.") else 0.03), name
