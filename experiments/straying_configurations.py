"""Arc-eager configurations like those of an imperfect parser, but without a parser; for the other experiments."""

import random
from collections.abc import Sequence

import numpy as np

from mh4.oracles.arc_eager import optimal_step
from mh4.oracles.arc_eager.batch import flat_configurations
from mh4.transitions.arc_eager import ArcEager, Configuration


def straying_walk(gold: np.ndarray, policy: str, share: float, generator: random.Random) -> list[Configuration]:
    """Configurations of a computation of best steps or, with probability ``share``, any steps that lead to a tree.

    Among several best steps, one is drawn at random. The final configuration is left out.
    """
    system = ArcEager()
    configuration = system.initial(len(gold) - 1)
    visited = []
    while not system.is_final(configuration):
        visited.append(configuration)
        step = optimal_step(configuration, gold, policy)
        possible = [transition for transition, score in step.scores.items() if score is not None]
        transition = generator.choice(possible if generator.random() < share else step.best)
        configuration = system.apply(configuration, transition)
    return visited


def straying_configurations(
    golds: Sequence[np.ndarray], policy: str, share: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Configurations of one walk per gold tree, as arguments of `mh4.oracles.arc_eager.step_scores_batch`."""
    generator = random.Random(seed)
    return flat_configurations(
        (configuration, sentence)
        for sentence, gold in enumerate(golds)
        for configuration in straying_walk(gold, policy, share, generator)
    )
