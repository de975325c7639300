"""Greedy transition-based parsing with the network's scores (Gómez-Rodríguez, Shi & Lee 2018, sections 3.1 and 5)."""

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from mh4.data.sentence import Sentence
from mh4.decoders import Derivation
from mh4.models.network import Encoded
from mh4.models.transition_scorer import BiaffineArrays, BiaffineTransitionScorer, ScorerArrays, TransitionScorer
from mh4.transitions.arrays.state import Candidates, State, new_candidates, new_state

from .config import GreedyConfig
from .definition import Definition
from .network import NetworkParser
from .network_loops import parse_sentence
from .prediction import Found
from .request import Request
from .runtime import check_greedy
from .systems import get_system

_NO_PARTS = np.empty((0, 3), np.int32)


class GreedyParser(NetworkParser[GreedyConfig, TransitionScorer | BiaffineTransitionScorer], kind=GreedyConfig.kind):
    """A greedy transition-based parser: in each step it takes the transition that the network scores highest.

    Attributes
    ----------
    system : mh4.parsers.systems.GreedySystem
    roles : int32 (R,)
        The tokens whose vectors are read, as indices into ``system.tokens``.
    """

    config_type = GreedyConfig

    def __init__(
        self,
        definition: Definition[GreedyConfig],
        device: str = "auto",
        search: str = "greedy",
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        check_greedy(search)
        config = definition.config
        self.system = get_system(config.transitions.system)
        names = config.transitions.position_names
        self.roles = np.array([self.system.tokens.index(name) for name in names], np.int32)
        transitions = len(self.system.transitions)

        hidden, dropout = config.scorers.mlp, config.scorers.mlp_dropout

        def make_scorer(size: int) -> TransitionScorer | BiaffineTransitionScorer:
            if config.transitions.form == "biaffine":
                return BiaffineTransitionScorer(size, transitions, hidden, dropout)
            return TransitionScorer(size, len(names), transitions, hidden, dropout)

        super().__init__(definition, device, make_scorer, weights)

    def __repr__(self) -> str:
        return f"<GreedyParser: {self.config.transitions.system}>"

    def new_room(self, longest: int) -> tuple[State, Candidates, np.ndarray]:
        """Buffers for state, candidates and scores of sentences of up to this many words."""
        candidates = new_candidates(len(self.system.tokens), longest)
        scores = np.empty((len(candidates.groups), len(self.system.transitions)), np.float32)
        return new_state(longest), candidates, scores

    def start_scores(self, encoded: Encoded) -> ScorerArrays | BiaffineArrays:
        return self.network.scorer.arrays(encoded.roles)

    def find_heads(
        self, scores: ScorerArrays | BiaffineArrays, sentences: Sequence[Sentence], request: Request
    ) -> list[Found]:
        trees = []
        room = self.new_room(max(map(len, sentences)))
        for i, sentence in enumerate(sentences):
            heads = np.empty(len(sentence) + 1, np.int32)
            parse_sentence(self.system.kernels, scores, i, len(sentence), self.roles, *room, heads)
            trees.append(Found([Derivation(heads, _NO_PARTS, np.nan)]))
        return trees
