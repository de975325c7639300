"""A tiny BERT with random weights and its word pieces, as a folder for `--encoder`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def make_tokenizer(texts: Iterable[str], size: int = 150) -> PreTrainedTokenizerFast:
    """A tokenizer of letters and frequent words; unlike a trained one, it breaks ties the same way each time."""
    cut = pre_tokenizers.BertPreTokenizer()
    words = Counter(word for text in texts for word, _ in cut.pre_tokenize_str(normalizers.NFC().normalize_str(text)))
    letters = sorted(set("".join(words)))
    pieces = dict.fromkeys([*SPECIAL, *letters, *(f"##{letter}" for letter in letters)])
    whole = sorted((word for word in words if word not in pieces), key=lambda word: (-words[word], word))
    vocabulary = [*pieces, *whole[: max(0, size - len(pieces))]]
    own = {piece: index for index, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(own, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = cut
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def make_bert(folder: Path, texts: Iterable[str], seed: int = 1, **settings: int) -> Path:
    """Write the folder of the model."""
    tokenizer = make_tokenizer(texts)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 40,
    }
    config = BertConfig(**{"vocab_size": len(tokenizer), **sizes, **settings})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
