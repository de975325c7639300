"""Training of a deterministic parser in two passes (Nederhof 2019, section 8).

1. *Gold computations.* The classifier learns the steps that lead to projective trees: the trees of the projective
   sentences (``subset``), or of all sentences after optimal projectivization (``all``).
2. *Visited configurations.* The trained classifier parses the training sentences. For each configuration that it
   visits, right or wrong, the optimal steps are calculated, and a new classifier is trained on these configurations
   together with those of the first pass. As in Choi and Palmer (2011), on whom the paper models the two passes, the
   training of the first classifier is not continued: the new one starts from scratch, with more data.

If several transitions are optimal, the target is their set (`step_classifier.target_set_loss`). The relation of a step
that makes an arc is the gold relation of the dependent, whatever its head.

Vocabulary and word vectors come from the whole training text under every condition, so conditions differ only in their
configurations. As published: 256 hidden units, batches of 100, 20 epochs. The paper does not name an optimiser; here it
is Adam, at a learning rate with which 20 epochs do not overfit the smallest treebanks much (0.001 does).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from deterministic.parser import DeterministicParser
from deterministic.states import NO_RELATION, Configurations, Described
from deterministic.step_classifier import HIDDEN, target_set_loss
from deterministic.word_vectors import WordVectors, learn_word_vectors
from mh4.data.sentence import Sentence
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_projective
from mh4.oracles import arc_eager, arc_standard
from mh4.oracles.optimal_step import best_transitions
from mh4.oracles.registry import get_oracle
from mh4.parsers.vocabulary import Vocabulary
from mh4.transitions.arc_eager import ArcEager

log = logging.getLogger("mh4")


@dataclass(frozen=True)
class Condition:
    """The training data of the two passes.

    Attributes
    ----------
    sentences : {"subset", "all"}
        Projective sentences only, or all of them, projectivized in the first pass.
    second_pass : {None, "projectivized", "original"}
        Gold trees of the second pass; None to skip it. With projectivized trees, optimal steps take linear time; with
        original ones, they take cubic time if a tree is not projective.
    """

    sentences: str
    second_pass: str | None = None

    def __post_init__(self) -> None:
        for value, known in (
            (self.sentences, ("subset", "all")),
            (self.second_pass, (None, "projectivized", "original")),
        ):
            if value not in known:
                raise ValueError(f"unknown condition {value!r}; known: {', '.join(map(str, known))}")

    @property
    def first(self) -> Condition:
        """The condition with the first pass alone."""
        return replace(self, second_pass=None)


CONDITIONS = {
    1: Condition("subset"),
    2: Condition("all"),
    3: Condition("subset", "projectivized"),
    4: Condition("all", "projectivized"),
    5: Condition("all", "original"),
}
"""The columns of Nederhof (2019), Table 7."""


@dataclass(frozen=True)
class Settings:
    """Training settings; the defaults are the published ones where the paper states them.

    Attributes
    ----------
    system : {"arc-standard", "arc-eager"}
        Or "shift-reduce", the paper's name for arc-standard.
    policy : str, optional
        One of the system's policies, by default its first: left-before-right or shift-before-reduce.
    vector_size : int
        Dimensions of the word vectors; 0 for none, as in Nederhof (2021), section 6.
    hidden, epochs, batch_size, learning_rate, seed
    """

    system: str = "shift-reduce"
    policy: str | None = None
    vector_size: int = 100
    hidden: int = HIDDEN
    epochs: int = 20
    batch_size: int = 100
    learning_rate: float = 0.0003
    seed: int = 1


class Examples(NamedTuple):
    """B configurations with the steps to learn.

    Attributes
    ----------
    words, symbols, codes : int32 tensors
        As in `deterministic.states.Described`.
    targets : int32 (B, T)
        Rows of `deterministic.parser.Steps.right`.
    """

    words: Tensor
    symbols: Tensor
    codes: Tensor
    targets: Tensor

    @classmethod
    def of(cls, described: Described, targets: np.ndarray) -> Examples:
        """Make examples from arrays."""
        return cls(*(torch.from_numpy(array) for array in (*described, targets)))

    def __add__(self, other: Examples) -> Examples:  # type: ignore[override]
        """The examples of both, concatenated."""
        return Examples(*(torch.cat(pair) for pair in zip(self, other, strict=True)))

    def take(self, rows: Tensor) -> Examples:
        """The examples in the given rows, int64, in this order."""
        return Examples(*(tensor[rows] for tensor in self))


def projective_trees(sentences: Sequence[Sentence]) -> list[np.ndarray]:
    """For each sentence, a projective tree that keeps as many arcs as possible."""
    return [closest_tree(sentence.padded_heads, "projective", single_root=False) for sentence in sentences]


def optimal_transitions(
    system: str,
    configurations: Configurations,
    golds: Sequence[np.ndarray],
    policy: str | None = None,
    algorithm: str | None = None,
) -> np.ndarray:
    """The best transitions of many configurations, bool (B, T); a row is empty if no transition leads to a tree.

    Parameters
    ----------
    system : {"arc-standard", "arc-eager"}
    configurations : Configurations
    golds : sequence of int (n + 1,)
        The gold tree of each sentence.
    policy : str, optional
        See `Settings`.
    algorithm : str, optional
        One of the oracle's algorithms; by default linear for projective trees and exact for others.

    Raises
    ------
    ValueError
        An unknown name, or an algorithm that does not support a tree or the policy.
    """
    _, policy = get_oracle(system, policy)
    stacks, labels, offsets, fronts, sentences = configurations
    if system == ArcEager.name:
        scores = arc_eager.step_scores_batch(
            stacks, labels, offsets, fronts, sentences, golds, policy=policy, algorithm=algorithm
        )
    else:
        scores = arc_standard.step_scores_batch(
            stacks, offsets, fronts, sentences, golds, policy=policy, algorithm=algorithm
        )
    return best_transitions(scores)


def _gold_relations(parser: DeterministicParser, sentences: Sequence[Sentence]) -> np.ndarray:
    numbers = parser.vocabulary.relation_index
    return np.array(
        [
            number
            for sentence in sentences
            for number in (NO_RELATION, *(numbers[relation] for relation in sentence.relations))
        ],
        np.int32,
    )


def gold_examples(
    parser: DeterministicParser, sentences: Sequence[Sentence], trees: Sequence[np.ndarray], policy: str | None = None
) -> Examples:
    """The configurations of the computations that build projective trees, each with the next step as only target.

    Parameters
    ----------
    parser : DeterministicParser
        Trained or not.
    sentences : sequence of Sentence
    trees : sequence of int (n + 1,)
        A projective tree for each sentence.
    policy : str, optional
        See `Settings`.
    """
    oracle, policy = get_oracle(parser.system.name, policy)
    number = {transition: t for t, transition in enumerate(parser.system.transitions)}
    steps = [number[transition] for tree in trees for transition in oracle.computation(tree, policy)]
    transitions = np.array(steps, np.int8)
    text, relations = parser.encode(sentences), _gold_relations(parser, sentences)
    described, configurations = parser.replay(text, transitions, relations)
    best = transitions[:, None] == np.arange(len(number))
    return Examples.of(described, parser.steps.targets(text, configurations, best, relations))


def visited_examples(
    parser: DeterministicParser, sentences: Sequence[Sentence], trees: Sequence[np.ndarray], policy: str | None = None
) -> Examples:
    """The configurations that a trained parser visits, each with its optimal steps.

    Parameters
    ----------
    parser : DeterministicParser
    sentences : sequence of Sentence
    trees : sequence of int (n + 1,)
        The gold tree of each sentence, projective or not.
    policy : str, optional
        See `Settings`.
    """
    text = parser.encode(sentences)
    transitions, states = parser.run(text)
    described, configurations = parser.replay(text, transitions, states.relations)
    best = optimal_transitions(parser.system.name, configurations, trees, policy)
    targets = parser.steps.targets(text, configurations, best, _gold_relations(parser, sentences))
    return Examples.of(described, targets).take(torch.from_numpy(np.flatnonzero(best.any(1))))


def fit(parser: DeterministicParser, examples: Examples, settings: Settings) -> list[float]:
    """Train the classifier; returns the mean loss of each epoch."""
    classifier, steps = parser.classifier, parser.steps
    optimizer = torch.optim.Adam(classifier.parameters(), lr=settings.learning_rate, fused=True)
    generator = torch.Generator().manual_seed(settings.seed)
    count = len(examples.codes)
    losses = []
    classifier.train()
    for epoch in range(settings.epochs):
        shuffled = examples.take(torch.randperm(count, generator=generator))
        total = 0.0
        for words, symbols, codes, targets in zip(
            *(tensor.split(settings.batch_size) for tensor in shuffled), strict=True
        ):
            scores = classifier(words, symbols)
            loss = target_set_loss(scores, steps.allowed[codes], steps.right[targets].any(1))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(codes)
        losses.append(total / count)
        log.info("epoch %d of %d: loss %.4f", epoch + 1, settings.epochs, losses[-1])
    classifier.eval()
    return losses


def train_condition(
    sentences: Sequence[Sentence],
    condition: Condition,
    settings: Settings | None = None,
    first: DeterministicParser | None = None,
) -> DeterministicParser:
    """Train a parser under one condition.

    Parameters
    ----------
    sentences : sequence of Sentence
        All training sentences, with gold trees.
    condition : Condition
    settings : Settings, optional
    first : DeterministicParser, optional
        The parser trained under ``condition.first`` with the same sentences and settings, if available.

    Raises
    ------
    ValueError
        An unknown system or policy; no sentence is left; word vectors without gensim.
    """
    settings = settings or Settings()
    _, policy = get_oracle(settings.system, settings.policy)
    chosen = [
        sentence for sentence in sentences if condition.sentences == "all" or is_projective(sentence.padded_heads)
    ]
    if not chosen:
        raise ValueError(f"none of {len(sentences)} training sentences is projective; train on all of them")
    if first is None:
        vectors = WordVectors.none()
        if settings.vector_size:
            forms = [sentence.forms for sentence in sentences]
            vectors = learn_word_vectors(forms, settings.vector_size, settings.seed)
        vocabulary = Vocabulary.from_sentences(sentences)
    else:
        vectors, vocabulary = first.vectors, first.vocabulary

    def untrained() -> DeterministicParser:
        torch.manual_seed(settings.seed)
        return DeterministicParser(settings.system, vocabulary, vectors, settings.hidden)

    projective = projective_trees(chosen)
    parser = untrained()
    examples = gold_examples(parser, chosen, projective, policy)
    if condition.second_pass is None or first is None:
        fit(parser, examples, settings)
        first = parser
    if condition.second_pass is None:
        return parser
    trees = projective if condition.second_pass == "projectivized" else [sentence.padded_heads for sentence in chosen]
    parser = untrained()
    fit(parser, examples + visited_examples(first, chosen, trees, policy), settings)
    return parser
