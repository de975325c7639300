"""Pretrained models of many architectures: read as transformers computes them, or refused in one line."""

import json
from contextlib import suppress
from types import SimpleNamespace

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_bert import make_bert, make_tokenizer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from mh4.models import pretrained
from mh4.models.encoder import UnusableError
from mh4.models.pretrained import FILES, UNLIMITED, read_pretrained
from mh4.models.pretrained_files import MODEL, SETTINGS, TABLE, Settings, packed_weights, read_weights
from mh4.models.transformer import TransformerStates
from mh4.models.transformer_config import TransformerConfig
from mh4.models.word_pieces import TOKENIZER, PieceVocabulary

TEXTS = ["der Hund bellt", "die Hunde bellen"] * 3
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
OWN = {
    "canine": {},
    "deberta": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0},
    "fnet": {},
    "gemma2": {"num_key_value_heads": 2, "head_dim": 8},
    "longformer": {"attention_window": 8},
    "mra": {},
    "rembert": {"input_embedding_size": 8},
    "squeezebert": {
        "embedding_size": 16,
        **{f"{name}_groups": 2 for name in ("q", "k", "v", "intermediate", "output")},
    },
    "xlnet": {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24},
}


def make(kind, folder):
    """Save a model of this architecture with random weights, and return it."""
    tokenizer = make_tokenizer(TEXTS)
    sizes = {} if kind == "xlnet" else {**SIZES, "max_position_embeddings": 40}
    ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = AutoModel.from_config(
            AutoConfig.for_model(kind, vocab_size=len(tokenizer), **sizes, **ids, **OWN[kind])
        )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.eval()


def read(folder, frozen=False):
    return read_pretrained(str(folder), torch.float32, frozen)


def refused(folder):
    with pytest.raises(UnusableError) as error:
        read(folder)
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{folder}")


@pytest.mark.parametrize("kind", ["deberta", "gemma2", "mra", "rembert", "squeezebert", "xlnet"])
def test_states_are_those_of_the_architecture(kind, tmp_path):
    """DeBERTa changes products in place; Gemma scales its table; MRA has integers among its weights; RemBERT's table
    has a width of its own; SqueezeBERT always has a pooler; XLNet has no limit on positions."""
    model = make(kind, tmp_path)
    config = TransformerConfig(encoder_storage="float32", encoder_layers=2)
    source = TransformerStates(config, read(tmp_path)).eval()
    words = source.pieces.pieces(["der", "Hund", "bellt"])
    batch = source.collate([words, source.pieces.pieces(["die"])])
    ids = [*source.pieces.before, *words.ids, *source.pieces.after]
    with torch.no_grad():
        layers = model(torch.tensor([ids]), output_hidden_states=True).hidden_states[-2:]
        found = source._states(batch)
    start = 1
    for own, count in zip(found, words.counts, strict=False):
        wanted = torch.stack(layers, 2)[0, start : start + count].mean(0)
        torch.testing.assert_close(own, wanted, atol=1e-5, rtol=1e-4)
        start += count
    source.train()(batch).sum().backward()
    assert all(own.grad.isfinite().all() for own in source.model.parameters() if own.grad is not None)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("canine", "it has no table of vectors of pieces"),
        ("fnet", "its states depend on padding, or not on the vectors of pieces alone"),
        ("longformer", "The size of tensor "),
    ],
)
def test_architectures_that_cannot_be_built_on(kind, problem, tmp_path):
    make(kind, tmp_path)
    message = refused(tmp_path)
    assert message.startswith(f"/config.json: {kind} is not supported: {problem}")
    assert message.endswith("(take a BERT, RoBERTa, XLM-R, ELECTRA, DeBERTa, ModernBERT or a relative of these)")


def test_weights_that_are_not_numbers(tmp_path):
    path = make_bert(tmp_path, TEXTS) / "model.safetensors"
    weights = load_file(path)
    weights["encoder.layer.1.output.dense.bias"][3] = torch.nan
    save_file(weights, path, {"format": "pt"})
    assert refused(tmp_path) == ": encoder.layer.1.output.dense.bias holds NaN or infinity"


def test_weights_of_an_adapter_alone(tmp_path):
    make_bert(tmp_path, TEXTS)
    (tmp_path / "model.safetensors").rename(tmp_path / "adapter_model.safetensors")
    assert refused(tmp_path) == ": no model.safetensors"


def test_models_that_read_too_few_pieces_at_a_time(tmp_path):
    make_bert(tmp_path, TEXTS, max_position_embeddings=8)
    assert refused(tmp_path).startswith("/config.json: the model or its tokenizer reads at most 8 pieces at a time")


CODE = {"attn_implementation": "someone/kernel", "auto_map": {"AutoModel": "code.Model"}}


def test_a_configuration_names_no_code(tmp_path):
    """A kernel of the hub would be downloaded and run."""
    path = make_bert(tmp_path, TEXTS) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | CODE))
    settings = json.loads(read(tmp_path)[SETTINGS])
    assert not settings["config"].keys() & CODE.keys()
    settings["config"] |= CODE
    model = Settings(json.dumps(settings).encode()).model
    assert model._attn_implementation is None
    assert not hasattr(model, "auto_map")


def test_words_are_split_as_after_a_space(tmp_path):
    """Gemma's tokenizer adds no space before a text."""
    pieces = {piece: index for index, piece in enumerate(["<pad>", "<unk>", "▁", "a", "b", "▁a", "▁ab"])}
    tokenizer = Tokenizer(models.BPE(pieces, [("▁", "a"), ("▁a", "b")], unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>")
    make_bert(tmp_path, TEXTS, vocab_size=7)
    fast.save_pretrained(tmp_path)
    vocabulary = PieceVocabulary(read(tmp_path)[TOKENIZER], 1)
    assert vocabulary.pieces(["ab", "a", "b"]).ids.tolist() == [6, 5, 2, 4]


def test_words_are_always_split_the_same_way(tmp_path):
    """Whatever the tokenizer was last used with: dropout of merges (BPE-dropout), truncation, padding."""
    pieces = {piece: index for index, piece in enumerate(["<pad>", "<unk>", "a", "b", "ab", "abab"])}
    tokenizer = Tokenizer(models.BPE(pieces, [("a", "b"), ("ab", "ab")], unk_token="<unk>", dropout=1.0))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_truncation(1)
    tokenizer.enable_padding(pad_token="<pad>", length=8)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>")
    make_bert(tmp_path, TEXTS, vocab_size=6)
    fast.save_pretrained(tmp_path)
    vocabulary = PieceVocabulary(read(tmp_path)[TOKENIZER], 1)
    assert vocabulary.pieces(["abab", "aba"]).ids.tolist() == [5, 4, 2]


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json", "a shard", ""])
def test_a_cached_copy_of_a_part_is_fetched_again(missing, tmp_path, monkeypatch):
    """Such as a tokenizer that another program has used, or what an interrupted download has left."""
    part, whole = make_bert(tmp_path / "part", TEXTS), make_bert(tmp_path / "whole", TEXTS, seed=2)
    if missing == "a shard":
        (part / "model.safetensors").rename(part / "model-00001-of-00002.safetensors")
    elif missing:
        (part / missing).unlink()
    asked = []

    def download(name, *, local_files_only, **options):
        asked.append(local_files_only)
        return str(part if local_files_only else whole)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert read_pretrained("some/bert", torch.float32, frozen=False) == read(whole if missing else part)
    assert asked == [True, False] if missing else [True]


@pytest.mark.parametrize(
    ("stated", "tokenized", "longest"),
    [(100, 10**30, 40), (30, 10**30, 30), (100, 20, 20), (-1, 10**30, 40), (None, 10**30, 40)],
)
def test_the_smallest_limit_on_pieces_counts(stated, tokenized, longest):
    model = torch.nn.Module()
    model.position_embeddings = torch.nn.Embedding(42, 2, padding_idx=1)  # positions begin at 2
    config, tokenizer = SimpleNamespace(max_position_embeddings=stated), SimpleNamespace(model_max_length=tokenized)
    assert pretrained._longest(model, config, tokenizer) == longest
    model.position_embeddings = torch.nn.Embedding(42, 2)
    expected = min(42, tokenized, UNLIMITED if stated in (-1, None) else stated)
    assert pretrained._longest(model, config, tokenizer) == expected


@pytest.mark.parametrize(
    ("pieces", "own", "wanted", "problem"),
    [
        (100, 0, 0, None),
        (90, None, 0, None),
        (95, 1, None, None),
        (89, 0, 0, "has 89 pieces, where the model has vectors of 100"),
        (101, 0, 0, "has 101 pieces"),
        (100, 1, 0, "pads with piece 1, where the model does with 0"),
    ],
)
def test_pieces_of_another_model_are_refused(pieces, own, wanted, problem, tmp_path):
    class Pieces:
        pad_token_id = own

        def __len__(self):
            return pieces

    arguments = tmp_path, Pieces(), SimpleNamespace(pad_token_id=wanted), 100
    if problem is None:
        pretrained._check_vocabulary(*arguments)
        return
    with pytest.raises(UnusableError, match=problem):
        pretrained._check_vocabulary(*arguments)


def test_a_model_keeps_no_trace_of_where_it_came_from():
    entries = {"_name_or_path": "/home/me", "architectures": ["X"], "hidden_size": 3, **CODE}
    config = SimpleNamespace(to_json_string=lambda: json.dumps(entries), model_type="bert")
    assert pretrained._portable(config) == {"hidden_size": 3, "model_type": "bert"}


def test_tokenizers_cut_nothing_off():
    tokenizer = make_tokenizer(TEXTS)
    tokenizer.backend_tokenizer.enable_truncation(2)
    tokenizer.backend_tokenizer.enable_padding()
    found = json.loads(pretrained._portable_tokenizer(tokenizer))
    assert found["truncation"] is found["padding"] is None


@pytest.mark.parametrize("shown", [True, False])
def test_messages_of_the_package_are_as_before(shown):
    state = {"level": 7, "bar": shown}
    logging = SimpleNamespace(
        CRITICAL=50,
        get_verbosity=lambda: state["level"],
        set_verbosity=lambda level: state.update(level=level),
        is_progress_bar_enabled=lambda: state["bar"],
        enable_progress_bar=lambda: state.update(bar=True),
        disable_progress_bar=lambda: state.update(bar=False),
    )
    with suppress(KeyError), pretrained._quiet(SimpleNamespace(logging=logging)):
        assert state == {"level": 50, "bar": False}
        raise KeyError
    assert state == {"level": 7, "bar": shown}


def test_the_hub_is_asked_only_for_what_is_not_here(monkeypatch, tmp_path):
    asked, here = [], True
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).touch()

    def snapshot_download(name, allow_patterns, local_files_only):
        asked.append((name, tuple(allow_patterns), local_files_only))
        if not here:
            raise OSError("not here" if local_files_only else "no network")
        return str(tmp_path)

    monkeypatch.setattr(pretrained, "require", lambda *_: SimpleNamespace(snapshot_download=snapshot_download))
    assert pretrained._folder("a/b") == tmp_path
    here = False
    with pytest.raises(UnusableError, match=r"it cannot be fetched from the hub: no network$"):
        pretrained._folder("a/b")
    assert asked == [("a/b", FILES, offline) for offline in (True, True, False)]


def test_the_table_stays_small_in_memory():
    model = {"w": torch.ones(2, dtype=torch.float16), "n": torch.arange(2)}
    found = read_weights(packed_weights(torch.ones(3, 2), model, torch.float16))
    kinds = {name: own.dtype for name, own in found.items()}
    assert kinds == {TABLE: torch.float16, MODEL + "w": torch.float32, MODEL + "n": torch.int64}
