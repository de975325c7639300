"""Covington parsing on arrays, against the reference system and its oracle, which have their own tests."""

import numpy as np
from computations import random_tree
from hypothesis import given
from hypothesis import strategies as st

from mh4.oracles.costs import ALL_PAIRS, DYNAMIC, STATIC
from mh4.oracles.covington import optimal_computation, optimal_step
from mh4.oracles.covington.costs import costs, follow, prepare
from mh4.transitions.arrays import covington
from mh4.transitions.arrays.state import DEPENDENT, HEAD, NONE, TRANSITION, new_candidates, new_state, reset
from mh4.transitions.covington import SHIFT, TRANSITIONS, Covington

SYSTEM = Covington()


def context(configuration):
    """The tokens of Gómez-Rodríguez and Fernández-González (2015), Table 1, taken literally."""
    i, j, n = configuration.left, configuration.right, configuration.n
    head = {d: h for h, d in configuration.arcs}
    left = {word: sorted(d for h, d in configuration.arcs if h == word and d < h) for word in (i, j)}
    right = sorted(d for h, d in configuration.arcs if h == i and d > h)
    between = [word for word in range(i + 1, j) if not i <= head.get(word, 0) <= j]
    tokens = {
        "L0": i,
        "R0": j,
        "L1": i - 1 if i > 1 else None,
        "R1": j + 1 if j + 1 <= n else None,
        "R2": j + 2 if j + 2 <= n else None,
        "L0h": head.get(i),
        "L0h2": head.get(head.get(i)),
        "L0l": left[i][0] if left[i] else None,
        "L0l'": left[i][-1] if left[i] else None,
        "L0r": right[-1] if right else None,
        "L0r'": right[0] if right else None,
        "R0l": left[j][0] if left[j] else None,
        "R0l'": left[j][-1] if left[j] else None,
        "CL": between[0] if between else None,
        "CR": between[-1] if between else None,
    }
    return [NONE if tokens[name] is None else tokens[name] for name in covington.TOKENS]


def with_words_read(configuration):
    """The configuration after all automatic shifts."""
    while configuration.left == 0 and not SYSTEM.is_final(configuration):
        configuration = SYSTEM.apply(configuration, SHIFT)
    return configuration


@given(n=st.integers(1, 10), seed=st.integers(0, 2**32 - 1), oracle=st.sampled_from([STATIC, DYNAMIC, ALL_PAIRS]))
def test_kernels_do_what_the_system_and_its_oracles_do(n, seed, oracle):
    """Computations follow the static oracles; with the dynamic one, half of the steps are random."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n)
    state, room = new_state(12), new_candidates(len(covington.TOKENS), 12)
    state.own[:], state.oracle[:] = 99, 99  # leftovers of another sentence
    reset(state, n)
    covington.initialize(state)
    prepare(state, oracle, tree)
    configuration, steps = with_words_read(SYSTEM.initial(n)), []
    while True:
        count, contexts = covington.list_candidates(state, room)
        names = tuple(TRANSITIONS[row[TRANSITION]] for row in room.rows[:count])
        assert names == SYSTEM.legal(configuration)
        if not count:
            break
        assert contexts == 1
        assert room.tokens[0].tolist() == context(configuration)
        costs(state, oracle, tree, room, count)
        found = dict(zip(names, room.costs[:count].tolist(), strict=True))
        step = optimal_step(configuration, tree)
        if oracle == DYNAMIC:
            loss = n - step.score
            assert found == {name: n - loss - step.scores[name] for name in names}
            best = [name for name in names if found[name] == 0]
        else:
            best = [name for name in names if found[name] == 0]
            assert len(best) == 1
            assert best[0] in step.best
            steps.append(best[0])
        options = names if oracle == DYNAMIC and rng.random() < 0.5 else best
        transition = options[rng.integers(len(options))]
        number = TRANSITIONS.index(transition)
        row = room.rows[names.index(transition)].tolist()
        following = SYSTEM.apply(configuration, transition)
        assert [*following.arcs - configuration.arcs] == ([(row[HEAD], row[DEPENDENT])] if number > 1 else [])
        follow(state, oracle, number)
        covington.apply(state, number, 0, 3)
        configuration = with_words_read(following)
        assert state.heads[: n + 1].tolist() == configuration.heads().tolist()
    if oracle != DYNAMIC:
        assert SYSTEM.heads(configuration).tolist() == tree.tolist()
    if oracle == ALL_PAIRS:
        assert len(steps) == n * (n - 1) // 2
        assert SHIFT not in steps
    if oracle == STATIC:
        configuration, without_asking = SYSTEM.initial(n), []
        for transition in optimal_computation(tree):
            if configuration.left > 0:
                without_asking.append(transition)
            configuration = SYSTEM.apply(configuration, transition)
        assert steps == without_asking
