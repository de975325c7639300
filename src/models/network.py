"""The whole network: encoder, scorer, labeler, taggers as auxiliary tasks, and annotator, trained jointly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from .annotator import Annotator, Classes
from .dropout import Dropout
from .encoder import Batch, Encoder
from .layers import Classifier
from .network_config import LossWeights, ScorerConfig
from .randomness import Random, Randomness
from .rows import take_cells
from .scorer import ChannelScorer
from .transition_scorer import BiaffineTransitionScorer, TransitionScorer

_ENCODER = "encoder."
_TOGETHER = {"cpu": 2**18, "cuda": 2**26}  # numbers in hidden layers of arcs at once; fit into a CPU's cache

S = TypeVar("S", bound=ChannelScorer | TransitionScorer | BiaffineTransitionScorer)


class Encoded(NamedTuple):
    """The result of encoding a batch of sentences: context vectors and role vectors."""

    states: Tensor  # (B, T + 1, hidden)
    tagger_states: Tensor  # (B, T + 1, hidden), context vectors for tags
    roles: Tensor  # (B, T + 2, R, …), the scorer's ``role_vectors``
    words: Tensor | None  # (B, T, word_size), see `States`


class ParserNetwork(nn.Module, Generic[S]):
    """Scores parts or transitions, relations of arcs and, as auxiliary tasks, tags.

    Parameters
    ----------
    encoder : Encoder
    config : ScorerConfig
    weights : LossWeights
    make_scorer : callable
        Makes the scorer of a decoder's channels or of transitions, given the size of the context vectors.
    relations, tags, tag_pairs : int
        Numbers of relations, of UPOS tags and of UPOS|XPOS pairs; the auxiliary tags are predicted only if their loss
        has a weight.
    columns : Classes, optional
        The classes of the columns to annotate, if any.
    """

    def __init__(
        self,
        encoder: Encoder[Any, Any],
        config: ScorerConfig,
        weights: LossWeights,
        make_scorer: Callable[[int], S],
        relations: int,
        tags: int,
        tag_pairs: int,
        columns: Classes | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.scorer = make_scorer(encoder.size)
        self.labeler = Classifier(2 * encoder.size, config.mlp, relations, config.mlp_dropout, config.members)
        self.taggers = nn.ModuleList(
            Classifier(encoder.size, config.mlp, classes, config.mlp_dropout)
            for classes in ((tags, tag_pairs) if weights.tagger_weight else ())
        )
        self.annotator = (
            None if columns is None else Annotator(config, weights, encoder.size + encoder.word_size, columns)
        )

        self.register_state_dict_post_hook(_shorten_names)
        self.register_load_state_dict_pre_hook(_lengthen_names)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The optimizer groups of all parameters that learn; see `Reader.parameter_groups`."""
        groups = self.encoder.parameter_groups()
        grouped = {parameter for group in groups for parameter in group["params"]}
        rest = [own for own in self.parameters() if own.requires_grad and own not in grouped]
        return [{"params": rest}, *groups]

    def encode(self, batch: Batch) -> Encoded:
        """Context and role vectors of a batch."""
        states, tagger_states, words = self.encoder(batch)
        return Encoded(states, tagger_states, self.scorer.role_vectors(states, batch.lengths), words)

    def kept_weights(self) -> dict[str, Tensor]:
        """`state_dict` as a model folder stores it: some weights in half precision, unless a number would overflow."""
        halved = self.encoder.halved()
        return {
            name: half if name in halved and bool((half := weight.half()).isfinite().all()) else weight
            for name, weight in self.state_dict().items()
        }

    def draw_from(self, randomness: Randomness) -> None:
        """Draw all random numbers of training from ``randomness``."""
        for module in self.modules():
            if isinstance(module, Random):
                module.randomness = randomness

    def scale_dropout(self, share: float) -> None:
        """Multiply the rates of all `Dropout` modules by ``share``, from 0 to 1."""
        for module in self.modules():
            if isinstance(module, Dropout):
                module.share = share

    def label_scores(self, states: Tensor, sentences: Tensor, heads: Tensor, dependents: Tensor) -> Tensor:
        """Scores (M, relations) of the relations of M arcs, given as int64 (M,) each."""
        return self.labeler(self.arc_vectors(states, sentences, heads, dependents))

    @staticmethod
    def arc_vectors(states: Tensor, sentences: Tensor, heads: Tensor, dependents: Tensor) -> Tensor:
        """The vectors of M arcs from which relations are predicted, (M, 2 · hidden)."""
        return torch.cat([take_cells(states, sentences, heads), take_cells(states, sentences, dependents)], dim=-1)

    def all_label_logs(self, states: Tensor, penalties: Tensor) -> Tensor:
        """Log-probability (B, T + 1, T + 1) of the most probable relation of every arc [head, dependent].

        The labeler's dropout is off even in training, so that `label_logs` agrees. ``penalties`` (2, relations) are
        added to the scores, −inf for a relation that is ruled out: row 0 for arcs from words, row 1 for arcs from the
        root.
        """
        heads, dependents = self._label_halves(states)
        rows = max(1, _TOGETHER[states.device.type] // dependents.numel())
        stops = [1, *range(1 + rows, heads.shape[1] + rows, rows)]
        logs = []
        for start, stop in zip([0, *stops], stops, strict=False):
            hidden = (heads[:, start:stop, None] + dependents[:, None]).tanh_()
            logs.append(self._best_label_logs(hidden, penalties[int(start == 0)]))
        return torch.cat(logs, 1)

    def label_logs(
        self, states: Tensor, penalties: Tensor, sentences: Tensor, heads: Tensor, dependents: Tensor
    ) -> Tensor:
        """`all_label_logs` (M,) of M arcs, given as int64 (M,) each."""
        of_heads, of_dependents = self._label_halves(states)
        hidden = (take_cells(of_heads, sentences, heads) + take_cells(of_dependents, sentences, dependents)).tanh_()
        return self._best_label_logs(hidden, penalties[(heads == 0).long()])

    def _label_halves(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """The contributions of positions to an arc's hidden layer, as head and as dependent, (B, T + 1, mlp) each."""
        layer, states = self.labeler.hidden.linear, states.float()
        of_heads, of_dependents = layer.weight.chunk(2, 1)
        return linear(states, of_heads, layer.bias), linear(states, of_dependents)

    def _best_label_logs(self, hidden: Tensor, penalties: Tensor) -> Tensor:
        output = self.labeler.output
        scores = linear(hidden, output.weight / self.labeler.members, output.bias) + penalties
        return scores.log_softmax(-1).amax(-1)

    def tagger_vectors(self, encoded: Encoded, sentences: Tensor, words: Tensor) -> Tensor:
        """The vectors of M words from which tags are predicted, (M, hidden).

        ``sentences`` and ``words``, int64 (M,), give the words, counted from 1.
        """
        return take_cells(encoded.tagger_states, sentences, words)

    def annotation_vectors(self, encoded: Encoded, sentences: Tensor, words: Tensor) -> Tensor:
        """The vectors of M words from which columns are predicted, (M, size); for words see `tagger_vectors`."""
        vectors = self.tagger_vectors(encoded, sentences, words)
        if encoded.words is None:
            return vectors
        return torch.cat([vectors, take_cells(encoded.words, sentences, words - 1)], 1)


def _shorten_names(network: ParserNetwork[Any], state: dict[str, Any], prefix: str, metadata: Any) -> None:
    """Keep learnt weights only, without "encoder." in their names, as in the files of model folders."""
    for name in _frozen(network):
        del state[prefix + name]
    for name in [name for name in state if name.startswith(prefix)]:  # all names, to keep their order
        state[prefix + name.removeprefix(prefix).removeprefix(_ENCODER)] = state.pop(name)


def _lengthen_names(network: ParserNetwork[Any], state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Inverse of `_shorten_names`."""
    for name in network.encoder.state_dict():
        if prefix + name in state:
            state[prefix + _ENCODER + name] = state.pop(prefix + name)
    for name, parameter in _frozen(network).items():
        state[prefix + name] = parameter


def _frozen(network: ParserNetwork[Any]) -> dict[str, nn.Parameter]:
    """The frozen parameters, which come from the files of the encoder, by name."""
    return {name: own for name, own in network.named_parameters() if not own.requires_grad}
