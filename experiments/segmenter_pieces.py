"""Whether the word pieces of a pretrained encoder help our segmenter.

    python experiments/segmenter_pieces.py UD/2.0/vi --encoder runs/e5 -o experiments/results/segmentation/pieces

Each atom also gets a frozen vector of the piece with its last character, through a learnt projection: no vector, the
piece's embedding in the encoder, or the mean of the encoder's last four layers. Reports F1 of tokens and sentences on
the development set, as training measures them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from provenance import made_with
from scripting import run_script
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoModel

from mh4.data.conllu import read_conllu
from mh4.data.files import atomic_output
from mh4.models.atoms import FEATURES_OF_FORMAT
from mh4.models.layers import Linear
from mh4.models.randomness import Initial, Random, Randomness
from mh4.models.segmenter import SegmenterNetwork, _Summed
from mh4.parsers.multiword import MultiwordTokens
from mh4.parsers.segmenter import SegmenterSettings
from mh4.training.segmentation import gold_text
from mh4.training.segmenter import RECIPE, Examples, _fit, best_odds, make_reader

WAYS = ("none", "table", "layers")
LAYERS, LONGEST = 4, 500


class Pieces:
    """Vectors of atoms, float32 (A, E + 1): the piece's vector, and whether the piece ends with the atom."""

    def __init__(self, folder: Path, way: str) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._model, self._way = AutoModel.from_pretrained(folder).float().eval(), way

    @torch.inference_mode()
    def __call__(self, paragraphs: Sequence[str], stops: np.ndarray) -> Tensor:
        found, ends, begin = [], [], 0
        for text in paragraphs:
            encoded = self._tokenizer.encode(text, add_special_tokens=False)
            ids = torch.tensor([encoded.ids])
            if self._way == "table":
                found.append(self._model.get_input_embeddings()(ids)[0])
            else:
                for part in ids.split(LONGEST, dim=1):
                    states = self._model(part, output_hidden_states=True).hidden_states[-LAYERS:]
                    found.append(torch.stack(states).mean(0)[0])
            ends += [begin + stop for _, stop in encoded.offsets]
            begin += len(text)
        vectors, last = torch.cat(found), np.array(ends)
        piece = np.minimum(np.searchsorted(last, stops), len(last) - 1)
        at_end = torch.from_numpy((last[piece] == stops).astype(np.float32))
        return torch.cat([nn.functional.normalize(vectors[piece], dim=1) * 10, at_end[:, None]], dim=1)


class Network(SegmenterNetwork):
    """The segmenter's network, which also reads a vector per atom; the last id of an atom is the vector's row."""

    def __init__(self, width: int, *sizes: object) -> None:
        super().__init__(*sizes)  # type: ignore[arg-type]
        self.project, self.vectors = Linear(width, self.table.shape[1]), torch.zeros(0)

    def show(self, vectors: Tensor, ids: np.ndarray) -> np.ndarray:
        """Set the vectors; return ``ids`` with their rows. Ids that training makes unknown mean a vector of zeros."""
        features = ids.shape[1]
        self.vectors = torch.cat([vectors.new_zeros(features + 1, vectors.shape[1]), vectors])
        rows = np.arange(len(ids), dtype=np.int32)[:, None] + features + 1
        return np.concatenate([ids, rows], axis=1)

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, list[Tensor]]:
        x = _Summed.apply(self.table, ids[:, :-1].contiguous())
        x = x + self.project(self.bilstm.dropout(self.vectors[ids[:, -1].long()]))
        states = self.bilstm.dropout(self.bilstm(x, lengths)[0][-1])
        return self.output(torch.cat([states, self.bilstm.dropout(x)], dim=1)), [f(states) for f in self.columns]


def measure(train: Path, dev: Path, encoder: Path, way: str, seed: int) -> dict[str, float]:
    """Train a segmenter and score it."""
    gold, held_out = (gold_text(list(read_conllu(path))) for path in (train, dev))
    reader, _, _ = make_reader(gold, RECIPE)
    examples, dev_examples = Examples.of(reader, gold), Examples.of(reader, held_out)
    atoms, dev_atoms = reader(gold.paragraphs)[0], reader(held_out.paragraphs)[0]
    pieces = Pieces(encoder, way) if way != "none" else lambda _, stops: torch.zeros(len(stops), 1)
    vectors, dev_vectors = pieces(gold.paragraphs, atoms.stops), pieces(held_out.paragraphs, dev_atoms.stops)
    randomness = Randomness(seed)
    with Initial(randomness):
        sizes = reader.vectors, RECIPE.size, RECIPE.hidden, RECIPE.layers, RECIPE.dropout, gold.classes
        network = Network(vectors.shape[1], *sizes)
    for module in network.modules():
        if isinstance(module, Random):
            module.randomness = randomness
    shown = examples._replace(ids=network.show(vectors, examples.ids))
    _fit(network, shown, RECIPE, np.random.default_rng(seed))
    ids = network.show(dev_vectors, dev_examples.ids)
    with torch.inference_mode():
        odds = network(torch.from_numpy(ids), torch.from_numpy(dev_examples.counts))[0].numpy()
    settings = SegmenterSettings(max(FEATURES_OF_FORMAT), 0.0, 0.0, gold.spaces_in_words, (), MultiwordTokens.learn([]))
    *_, tokens, sentences = best_odds(dev_atoms, odds, settings, held_out)
    return {"tokens": 100 * tokens, "sentences": 100 * sentences}


def main() -> None:
    """Do the missing measurements."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("treebanks", nargs="+", type=Path)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of results")
    arguments = parser.parse_args()
    for treebank in arguments.treebanks:
        (train,), (dev,) = treebank.glob("*train.conllu"), treebank.glob("*dev.conllu")
        for seed in arguments.seeds:
            for way in arguments.ways:
                path = arguments.output / f"{treebank.name}-{way}-{seed}.json"
                if path.exists():
                    continue
                result = measure(train, dev, arguments.encoder, way, seed)
                made = made_with("cpu")
                arguments.output.mkdir(parents=True, exist_ok=True)
                with atomic_output(path) as stream:
                    stream.write((json.dumps({**result, **made}, indent=1) + "\n").encode())
                print(path.stem, result)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
