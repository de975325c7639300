"""Pretrained transformers from a folder or the hub, checked and turned into the files of a new encoder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mh4.machine import reason_of, require

from .encoder import UnusableError
from .pretrained_files import CODE, SETTINGS, WEIGHTS, packed_weights, settings_content, stored, without_ends
from .word_pieces import TOKENIZER

# Files to download from the hub: no code, and no pickles.
FILES = ("*.json", "*.safetensors", "*.txt", "*.model")
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
SPARE = 0.1  # largest share of unused rows in the table; some tables are filled up to a round number
UNLIMITED = 1 << 20  # pieces, for models without a limit on positions
SHORTEST = 16  # pieces that a model must be able to read at a time
TRIAL = 5, 11  # pieces of the sentences of a trial batch
CLOSE = 1e-3  # largest difference between equal states, as a share of their size
SUITABLE = "take a BERT, RoBERTa, XLM-R, ELECTRA, DeBERTa, ModernBERT or a relative of these"


def read_pretrained(name: str, storage: torch.dtype, frozen: bool) -> dict[str, bytes]:
    """The files of a new encoder that starts from a pretrained transformer.

    Parameters
    ----------
    name
        A folder as `save_pretrained` of the package transformers writes it or, if there is none, a name on the hub.
    storage
        Type of the weights that will not change: the table and, if ``frozen``, all others.

    Raises
    ------
    UnusableError
        Something is missing or does not fit together; the message names it in one line.
    """
    transformers = require("transformers", "transformers")
    folder = _folder(name)
    if not (folder / "config.json").exists():
        raise UnusableError(f"{folder}: no config.json (name a folder that save_pretrained of transformers wrote)")
    if not [*folder.glob("model*.safetensors")]:
        if pickles := [path.name for pattern in PICKLES for path in folder.glob(pattern)]:
            raise UnusableError(
                f"{folder / min(pickles)}: is a pickle, which may run code and is not read (save it as safetensors)"
            )
        raise UnusableError(f"{folder}: no model.safetensors")
    local: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    with _quiet(transformers):
        with _located(folder / "config.json"):
            config = transformers.AutoConfig.from_pretrained(folder, **local)
            config._attn_implementation = None  # may name a kernel on the hub, which would be run
        if getattr(config, "is_encoder_decoder", False) or type(config) not in transformers.MODEL_MAPPING:
            raise UnusableError(f"{folder / 'config.json'}: {config.model_type} is not an encoder-only model")
        tokenizer = _tokenizer(transformers, folder, local)
        with _located(folder / "model.safetensors"):
            model, found = transformers.AutoModel.from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                use_safetensors=True,
                output_loading_info=True,
                **local,
            )
    if missing := sorted(key for key in found["missing_keys"] if not key.startswith("pooler.")):
        raise UnusableError(f"{folder}: {missing[0]} is missing: the weights are not those of a {config.model_type}")
    table = _table(folder, model, config)
    _check_vocabulary(folder, tokenizer, config, len(table))
    longest = _longest(model, config, tokenizer)
    if longest < SHORTEST:
        problem = f"the model or its tokenizer reads at most {longest} pieces at a time, where {SHORTEST} are needed"
        raise UnusableError(f"{folder / 'config.json'}: {problem}")
    if broken := [name for name, own in model.named_parameters() if not bool(own.isfinite().all())]:
        raise UnusableError(f"{folder}: {broken[0]} holds NaN or infinity")
    with _quiet(transformers):
        model = _checked(folder, model, config, table, sorted({*range(len(tokenizer))} - {*tokenizer.all_special_ids}))
    weights = {key: stored(own, storage) if frozen else own for key, own in model.state_dict().items()}
    return {
        SETTINGS: settings_content(_portable(config), longest, tokenizer.unk_token_id or 0),
        TOKENIZER: _portable_tokenizer(tokenizer),
        WEIGHTS: packed_weights(table, weights, storage),
    }


def _folder(name: str) -> Path:
    """The folder with this name, or a local copy of the repository with this name on the hub."""
    path = Path(name)
    if name and path.is_dir():
        return path
    if not name or path.exists():
        raise UnusableError(f"{name or 'encoder'}: no folder with a pretrained model")
    hub = require("huggingface_hub", "transformers")
    reasons = []
    for offline in (True, False):
        try:
            found = Path(hub.snapshot_download(name, allow_patterns=list(FILES), local_files_only=offline))
        except Exception as error:  # no such name, no network, no access, or whatever network libraries raise
            reasons.append(reason_of(error))
        else:
            if not offline or _is_whole(found):
                return found
    raise UnusableError(f"{name}: no such folder, and it cannot be fetched from the hub: {reasons[-1]}")


def _is_whole(folder: Path) -> bool:
    """Whether a copy of a repository holds all that is needed; some hold a tokenizer alone, or part of the weights."""
    weights = [path.name for path in folder.glob("model*.safetensors")]
    of = re.search(r"-of-([0-9]+)\.", max(weights, default=""))  # weights may be in several files
    has_weights = len(weights) >= (int(of[1]) if of else 1)
    return has_weights and (folder / "config.json").exists() and _has_vocabulary(folder)


def _has_vocabulary(folder: Path) -> bool:
    return any([*folder.glob(pattern)] for pattern in VOCABULARIES)


def _tokenizer(transformers: Any, folder: Path, local: dict[str, Any]) -> Any:
    if not _has_vocabulary(folder):
        raise UnusableError(f"{folder}: no tokenizer (tokenizer.json is missing)")
    with _located(folder / TOKENIZER):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
    if not getattr(tokenizer, "is_fast", False):
        raise UnusableError(
            f"{folder}: its tokenizer, {type(tokenizer).__name__}, is a slow one, which does not report where "
            "pieces are; one with a tokenizer.json is needed"
        )
    return tokenizer


def _table(folder: Path, model: Any, config: Any) -> Tensor:
    """The vectors of all pieces as the model reads them; some models scale those in their table."""
    try:
        own = model.get_input_embeddings()
        rows: Tensor = own.weight.detach()
    except (AttributeError, NotImplementedError):
        raise _unsupported(folder, config, "it has no table of vectors of pieces") from None
    with torch.no_grad():
        scaled = isinstance(own, nn.Embedding) and type(own) is not nn.Embedding
        return own(torch.arange(len(rows))) if scaled else rows


def _checked(folder: Path, model: Any, config: Any, table: Tensor, pieces: Sequence[int]) -> nn.Module:
    """The model without its ends, if from vectors of pieces, in a padded batch, it computes what it does from pieces.

    Some architectures read vectors of letters or pages besides, only certain numbers of pieces, or padding as well.
    """
    few, many = TRIAL
    ids = torch.tensor([pieces[place % len(pieces)] for place in range(many)])
    inside = (torch.arange(many) < torch.tensor([[many], [few]])).long()
    try:
        with torch.no_grad():
            wanted = model(input_ids=ids[None, :few], output_hidden_states=True).hidden_states
            model = without_ends(model)
            padded = ids * inside  # like a `PieceBatch`
            found = model(
                inputs_embeds=table[padded].float(), attention_mask=inside, output_hidden_states=True
            ).hidden_states
        shapes = len(found), found[-1].shape[2]
        if shapes != (config.num_hidden_layers + 1, config.hidden_size):
            raise ValueError(f"its layers and units are {shapes}, not as its configuration says")
        pairs = [(own[1, :few], right[0]) for own, right in zip(found, wanted, strict=True)]
    except Exception as error:  # architectures that cannot be used so fail in all kinds of ways
        raise _unsupported(folder, config, reason_of(error)) from None
    if not all((own - right).abs().mean() <= CLOSE * right.abs().mean() for own, right in pairs):
        raise _unsupported(folder, config, "its states depend on padding, or not on the vectors of pieces alone")
    return model


def _unsupported(folder: Path, config: Any, problem: str) -> UnusableError:
    return UnusableError(f"{folder / 'config.json'}: {config.model_type} is not supported: {problem} ({SUITABLE})")


def _check_vocabulary(folder: Path, tokenizer: Any, config: Any, rows: int) -> None:
    own, wanted = tokenizer.pad_token_id, getattr(config, "pad_token_id", None)
    if not (1 - SPARE) * rows <= len(tokenizer) <= rows:
        problem = f"has {len(tokenizer)} pieces, where the model has vectors of {rows}"
    elif own is not None and wanted is not None and own != wanted:
        problem = f"pads with piece {own}, where the model does with {wanted}"
    else:
        return
    raise UnusableError(f"{folder / TOKENIZER}: {problem}: it is the tokenizer of another model")


def _longest(model: nn.Module, config: Any, tokenizer: Any) -> int:
    """The largest number of pieces that the model reads at a time."""
    places = [own for name, own in model.named_modules() if name.endswith("position_embeddings")]
    stated = getattr(config, "max_position_embeddings", None) or UNLIMITED  # XLNet has -1
    longest = min(int(tokenizer.model_max_length), stated if stated > 0 else UNLIMITED)
    for own in places:
        if isinstance(own, nn.Embedding):  # some models number positions from ``padding_idx + 1`` on
            longest = min(longest, own.num_embeddings - (0 if own.padding_idx is None else own.padding_idx + 1))
    return longest


def _portable(config: Any) -> dict[str, Any]:
    """A configuration as a dict, without traces of its origin."""
    left_out = CODE | {"_name_or_path", "transformers_version", "dtype", "torch_dtype", "architectures"}
    return {name: value for name, value in json.loads(config.to_json_string()).items() if name not in left_out} | {
        "model_type": config.model_type
    }


def _portable_tokenizer(tokenizer: Any) -> bytes:
    """The JSON of a tokenizer that takes one word at a time, truncates nothing and leaves nothing to chance."""
    data = json.loads(tokenizer.backend_tokenizer.to_str())
    data |= {"truncation": None, "padding": None}
    data["model"].pop("dropout", None)  # of merges, for training: each call would split a word differently
    cutter = data.get("pre_tokenizer") or {}
    for own in cutter.get("pretokenizers", [cutter]):
        if own.get("type") == "ByteLevel":  # the pieces that the word has after a space, where nearly all words are
            own["add_prefix_space"] = True
    cut = tokenizer.backend_tokenizer.from_str(json.dumps(data))
    alone, after_space, two = (cut.encode(text, add_special_tokens=False).ids for text in ("a", " a", "a a"))
    if alone != after_space == two[len(alone) :]:  # the same for others than ByteLevel, such as Gemma's
        normalizers = [data["normalizer"]] if data.get("normalizer") else []
        first = {"type": "Prepend", "prepend": " "}
        data["normalizer"] = {"type": "Sequence", "normalizers": [first, *normalizers]}
    return json.dumps(data, ensure_ascii=False).encode()


@contextmanager
def _located(path: Path) -> Iterator[None]:
    """Turn any error of the package about a file into an UnusableError of one line."""
    try:
        yield
    except UnusableError:
        raise
    except Exception as error:
        raise UnusableError(f"{path}: cannot be used: {reason_of(error)}") from None


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Inside, the package logs nothing, and the random numbers of the host program are left alone."""
    logging = transformers.logging
    before, shown = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        logging.set_verbosity(before)
        if shown:
            logging.enable_progress_bar()
