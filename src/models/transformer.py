"""The states of a pretrained transformer as vectors of words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from .devices import send, send_together
from .dropout import Dropout
from .encoder import FileError, HostBatch, OnReading, Words
from .layers import Linear, with_our_products
from .pretrained import read_pretrained
from .pretrained_files import MODEL, SETTINGS, TABLE, WEIGHTS, Settings, packed_weights, read_weights, stored
from .remembered_states import RememberedStates
from .rows import Rearranged
from .transformer_config import TransformerConfig
from .word_pieces import TOKENIZER, PieceBatch, PieceVocabulary, WordPieces
from .word_source import WordSource

_LAYER = re.compile(r"(?:^|\.)layers?\.(\d+)\.")  # number of a layer in the names of weights, in all architectures

FILL_COST = 2_000  # pieces in a batch when states are computed in advance
MOST_PIECES = 1 << 13  # read at once without gradients; a sentence of long words may have a million


@dataclass(frozen=True)
class StateBatch(HostBatch):
    """The states of B sentences, computed in advance."""

    lengths: Tensor  # int64 (B,): words of each sentence
    states: Tensor  # float16 (M, K, H): states of all words in K layers


class _Float32Attention(TorchFunctionMode):
    """Inside, attention is computed in float32: on a CPU, its gradient in bfloat16 would take six times as long."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not scaled_dot_product_attention:
            return func(*args, **kwargs)
        with torch.autocast("cpu", enabled=False):
            return func(*map(_as_float32, args), **{name: _as_float32(own) for name, own in kwargs.items()})


def _as_float32(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.is_floating_point() else value


class TransformerStates(WordSource[WordPieces, "PieceBatch | StateBatch"]):
    """Word vectors from a pretrained transformer: means over pieces, a learnt mix of the last layers, a linear layer.

    In training only our own dropout modules are active in the transformer, so that nothing is drawn from PyTorch's
    global generator.
    """

    def __init__(self, config: TransformerConfig, files: Mapping[str, bytes]) -> None:
        super().__init__(config, files)
        self.config = config
        self.storage = getattr(torch, config.encoder_storage)
        self.settings = Settings(files[SETTINGS])
        self.pieces = PieceVocabulary(files[TOKENIZER], self.settings.unknown)
        self.window = min(config.encoder_window, self.settings.longest)
        self.layers = min(config.encoder_layers, self.settings.model.num_hidden_layers + 1)
        self.model, self.width = self.settings.outline()
        self._take_weights(files[WEIGHTS])
        for module in [*self.model.modules()]:
            for name, child in module.named_children():
                if type(child) is nn.Dropout and child.p:
                    setattr(module, name, Dropout(config.encoder_dropout))
        with_our_products(self.model)
        size = self.settings.model.hidden_size
        self.mix = nn.Parameter(torch.zeros(self.layers, dtype=torch.float32))
        self.norm = nn.LayerNorm(size, dtype=torch.float32)
        self.linear = Linear(size, config.word_size)
        self._remembered: RememberedStates | None = None
        self.train()  # so that a frozen transformer has no dropout from the start, when its states are computed

    def _take_weights(self, content: bytes) -> None:
        """Load the table and, if the model is new or frozen, all other weights; else these are among the parser's."""
        weights = read_weights(content)
        table = weights[TABLE]
        if table.dim() != 2 or table.shape[1] != self.width:
            raise FileError(WEIGHTS, f"{TABLE} is {tuple(table.shape)} where (…, {self.width}) is expected")
        if len(table) < len(self.pieces):
            problem = f"has {len(self.pieces)} pieces, where the model has vectors of {len(table)}"
            raise FileError(TOKENIZER, f"{problem}: it is the tokenizer of another model")
        self.table = nn.Parameter(table, requires_grad=False)
        own = {name.removeprefix(MODEL): weight for name, weight in weights.items() if name != TABLE}
        wanted = self.model.state_dict()
        if own or self.config.encoder_freeze:
            for name in sorted(wanted.keys() | own.keys()):
                found, expected = (tuple(where[name].shape) if name in where else None for where in (own, wanted))
                if found != expected:
                    problem = "is missing" if found is None else f"is {found} where {expected or 'none'} is expected"
                    raise FileError(WEIGHTS, f"{MODEL}{name} {problem}")
            frozen = self.config.encoder_freeze
            self.model.load_state_dict({name: own[name] if frozen else own[name].clone() for name in own}, assign=True)
        self._shared = weights if self.config.encoder_freeze or not own else None  # for other models to share them
        self.model.requires_grad_(not self.config.encoder_freeze)

    @classmethod
    def learn(
        cls, config: TransformerConfig, train: Sequence[Words], dev: Sequence[Words], on_reading: OnReading
    ) -> dict[str, bytes]:
        return read_pretrained(config.pretrained, getattr(torch, config.encoder_storage), config.encoder_freeze)

    def files(self) -> dict[str, bytes]:
        model = self.model.state_dict() if self.config.encoder_freeze else {}
        model = {name: stored(own, self.storage) for name, own in model.items()}
        return {
            SETTINGS: self.settings.content,
            TOKENIZER: self.pieces.content,
            WEIGHTS: packed_weights(self.table, model, self.storage),
        }

    def halved(self) -> set[str]:
        if self.storage is torch.float32:
            return set()
        return {f"{MODEL}{name}" for name, own in self.model.named_parameters() if own.requires_grad}

    def parameter_groups(self) -> list[dict[str, Any]]:
        if self.config.encoder_freeze:
            return []
        config = self.config
        how = {"warm_up": config.encoder_warm_up, "clip": config.encoder_clip}
        by_rate: dict[float, list[nn.Parameter]] = {}
        for name, own in self.model.named_parameters():
            rate = config.encoder_rate * config.encoder_layer_decay ** self._layers_above(name)
            by_rate.setdefault(rate, []).append(own)
        return [{"params": own, "rate": rate, **how} for rate, own in by_rate.items()]

    def _layers_above(self, name: str) -> int:
        """The number of layers above the layer of a weight; embeddings are below all layers."""
        count = self.settings.model.num_hidden_layers
        if found := _LAYER.search(name):
            return count - 1 - int(found[1])
        return count if "embedding" in name else 0  # 0 for a final norm, or for layers that share weights

    def train(self, mode: bool = True) -> Self:
        """See `torch.nn.Module.train`; in the transformer, only our own dropout follows, unless it is frozen."""
        super().train(mode)
        for module in self.model.modules():
            module.training = module.training and isinstance(module, Dropout) and not self.config.encoder_freeze
        return self

    def cost(self, sentence: Words) -> int:
        if self._remembered is not None:
            return len(sentence)
        return len(self.prepare(sentence).ids)

    def prepare(self, sentence: Words) -> WordPieces:
        return self.pieces.pieces(sentence.forms)

    def collate(self, sentences: Sequence[WordPieces]) -> PieceBatch | StateBatch:
        if self._remembered is not None and (states := self._remembered.of(sentences)) is not None:
            return StateBatch(torch.tensor([len(one.counts) for one in sentences]), states)
        return PieceBatch.of(self.pieces, sentences, self.window)

    def remember(self, sentences: Sequence[Words], folder: Path) -> None:
        """Compute all states of a frozen transformer once, and keep them in an unnamed file in ``folder``."""
        if not self.config.encoder_freeze:
            return
        distinct = {own.key: own for own in map(self.prepare, sentences)}
        ordered = sorted(distinct.values(), key=lambda own: (len(own.ids), own.key))  # for the same batches every time
        shape = sum(len(own.counts) for own in ordered), self.layers, self.settings.model.hidden_size
        remembered = RememberedStates(folder, shape)
        while ordered:
            count = max(1, min(len(ordered), FILL_COST // (len(ordered[-1].ids) + 2)))
            batch, ordered = ordered[-count:], ordered[:-count]
            with torch.no_grad():
                states = self._states(PieceBatch.of(self.pieces, batch, self.window).to(self.table.device))
            remembered.add(batch, states.half().cpu())
        self._remembered = remembered

    def forward(self, batch: PieceBatch | StateBatch) -> Tensor:
        lengths, device = batch.lengths, batch.device
        if isinstance(batch, StateBatch):
            states = send(batch.states, device)
        elif self.config.encoder_freeze:
            with torch.no_grad():
                states = self._states(batch).half()  # rounded like states computed in advance
        else:
            states = self._states(batch)
        mixed = (states.float() * self.mix.softmax(0)[:, None]).sum(1)
        vectors = self.linear(self.norm(mixed))
        inside = (torch.arange(int(lengths.max())) < lengths[:, None]).flatten()
        rows = torch.where(inside, inside.cumsum(0) - 1, len(vectors))
        rows, places = send_together([rows, inside.nonzero().squeeze(1)], device)
        return Rearranged.apply(vectors, rows, places).view(len(lengths), -1, vectors.shape[1])

    def _states(self, batch: PieceBatch) -> Tensor:
        """The states of all words in the last K layers, (M, K, H): the mean over the pieces of each word."""
        inside = torch.arange(batch.ids.shape[1]) < batch.sizes[:, None]
        whole = bool(inside.all())
        ids, inside, places, counts = send_together([batch.ids, inside, batch.places, batch.counts], batch.device)
        mask = None if whole else inside.long()
        if torch.is_grad_enabled() or ids.numel() <= MOST_PIECES:
            of_pieces = self._states_of_pieces(ids, mask).index_select(0, places)
            of_words = torch.segment_reduce(of_pieces.float(), "mean", lengths=counts, axis=0, unsafe=True)
        else:
            of_words = self._means_in_parts(ids, mask, places, counts)
        return of_words.unflatten(1, (self.layers, -1))

    def _means_in_parts(self, ids: Tensor, mask: Tensor | None, places: Tensor, counts: Tensor) -> Tensor:
        """The means for more windows than fit into memory at once, (M, K · H)."""
        words = torch.arange(len(counts), device=ids.device).repeat_interleave(counts)
        sums = torch.zeros(
            len(counts), self.layers * self.settings.model.hidden_size, dtype=torch.float32, device=ids.device
        )
        together = max(1, MOST_PIECES // ids.shape[1])
        for start in range(0, len(ids), together):
            part = slice(start, start + together)
            of_pieces = self._states_of_pieces(ids[part], None if mask is None else mask[part])
            here = places - start * ids.shape[1]
            own = (here >= 0) & (here < len(of_pieces))
            sums.index_add_(0, words[own], of_pieces[here[own]].float())
        return sums / counts[:, None]

    def _states_of_pieces(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """The states of pieces in windows, int64 (R, L), in the last K layers: (R · L, K · H)."""
        vectors = self.table.index_select(0, ids.flatten()).float().view(*ids.shape, -1)
        with _Float32Attention() if torch.is_autocast_enabled("cpu") else nullcontext():
            layers = self.model(inputs_embeds=vectors, attention_mask=mask, output_hidden_states=True).hidden_states
        return torch.cat([layer.flatten(0, 1) for layer in layers[-self.layers :]], 1)
