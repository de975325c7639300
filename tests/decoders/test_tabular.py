import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_split import MaxCount, Rules, Trees, table2

from mh4.decoders.split_grammar import SplitGrammar
from mh4.decoders.tabular import FORBIDDEN, best_score, count_best, inside_score

PROJECTIVE = Rules({"a": ("S", "S")}, [("S", "S", "S")], [("S", "S", "S")], [("S", "S", "S")])
seeds = st.integers(0, 2**32 - 1)


def compiled(rules, start="X"):
    return SplitGrammar(rules.text(), start)


def random_grammar(rng):
    """A grammar with up to 3 symbols of each kind and a random share of all possible rules; start symbol X."""
    lefts, rights, nonterminals = (
        "DEF"[: rng.integers(1, 4)],
        "GHI"[: rng.integers(1, 4)],
        "XYZ"[: rng.integers(1, 4)],
    )
    initial = {t: (str(rng.choice([*lefts])), str(rng.choice([*rights]))) for t in "ab"[: rng.integers(1, 3)]}

    def some(*symbols):
        share = rng.uniform(0.2, 0.8)
        return [rule for rule in itertools.product(*symbols) if rng.random() < share]

    rules = Rules(
        initial, some(nonterminals, lefts, rights), some(lefts, nonterminals, lefts), some(rights, rights, nonterminals)
    )
    if not any(a == "X" for a, _, _ in rules.complete):
        rules.complete.append(("X", *next(iter(initial.values()))))
    while True:  # drop rules with symbols that no rule produces
        made = {a for a, _, _ in rules.complete}
        made |= {symbol for pair in initial.values() for symbol in pair}
        made |= {new for new, _, _ in rules.left + rules.right}
        fine = Rules(initial, *([rule for rule in part if made.issuperset(rule)] for part in rules[1:]))
        if fine == rules:
            break
        rules = fine
    if not any(a == "X" for a, _, _ in rules.complete):
        rules.complete.append(("X", *next(iter(initial.values()))))
    return rules


def random_problem(seed, longest):
    """A random grammar, a string of its terminals, and weights so small that many trees tie, as array and as lists."""
    rng = np.random.default_rng(seed)
    rules = random_grammar(rng)
    m = int(rng.integers(1, longest + 1))
    string = rng.choice(list(rules.initial), size=m)
    weights = rng.integers(-1, 2, size=(m, m))
    weights[rng.random((m, m)) < rng.choice([0, 0.3])] = FORBIDDEN
    readable = [[None if w == FORBIDDEN else int(w) for w in row] for row in weights]
    return rules, string, weights, readable


def edges(heads):
    return frozenset((int(h), d) for d, h in enumerate(heads) if d > 0)


@given(seeds)
def test_every_derivation_listed(seed):
    rules, string, weights, readable = random_problem(seed, 5)
    derivations = table2(rules, "X", string, readable, Trees)
    grammar = compiled(rules)
    problem = grammar, grammar.encode(string), weights
    if not derivations:
        assert best_score(*problem) is None
        assert count_best(*problem) == (None, 0)
        return
    scores = {tree: sum(readable[i][j] for i, j in tree) for tree in derivations}
    best = max(scores.values())
    assert best_score(*problem) == best
    assert count_best(*problem) == (best, sum(derivations[tree] for tree in scores if scores[tree] == best))


@given(seeds)
def test_longer_strings(seed):
    """Strings longer than a vector is wide."""
    rules, string, weights, readable = random_problem(seed, 24)
    score, count = table2(rules, "X", string, readable, MaxCount)
    grammar = compiled(rules)
    problem = grammar, grammar.encode(string), weights
    assert count_best(*problem) == (score, count)
    assert best_score(*problem) == score


def test_random_grammars_are_of_some_use():
    """The problems above are varied enough: some have no tree, and many have several best ones."""
    counts = [table2(*random_problem_of(seed), MaxCount)[1] for seed in range(200)]
    assert sum(count == 0 for count in counts) > 20
    assert sum(count > 1 for count in counts) > 50


def random_problem_of(seed):
    rules, string, _, readable = random_problem(seed, 6)
    return rules, "X", string, readable


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
def test_one_derivation_for_each_projective_tree(n):
    """The grammar of Table 3."""
    zeros = [[0] * (n + 1)] * (n + 1)
    derivations = table2(PROJECTIVE, "S", "a" * (n + 1), zeros, Trees)
    assert set(derivations) == {edges(tree) for tree in naive.all_trees(n, projective=True)}
    assert set(derivations.values()) == {1}


@pytest.mark.parametrize("n", [10, 23, 60])
def test_numbers_of_any_size(n):
    grammar = compiled(PROJECTIVE, "S")
    zeros = np.zeros((n + 1, n + 1), np.int32)
    score, count = count_best(grammar, grammar.encode(["a"] * (n + 1)), zeros)
    assert (score, count) == (0, math.comb(3 * n, n) // (2 * n + 1))
    assert count > 2**64 or n < 60


def test_a_bound_saves_primes_only():
    grammar = compiled(PROJECTIVE, "S")
    problem = grammar, grammar.encode(["a"] * 31), np.zeros((31, 31), np.int32)
    expected = count_best(*problem)
    assert count_best(*problem, bound=expected[1]) == expected
    # A bound that is too low means too few primes: the count is only right modulo their product.
    assert count_best(*problem, bound=1)[1] == expected[1] % (2**31 - 1)


def test_kernels_and_what_they_do_not_read():
    rng = np.random.default_rng(3)
    grammar = compiled(PROJECTIVE, "S")
    string = grammar.encode(["a"] * 12)
    weights = rng.integers(-9, 10, size=(12, 12)).astype(np.int32)
    score = inside_score(grammar.arrays, string, weights)
    assert score == best_score(grammar, string, weights)
    np.fill_diagonal(weights, 99)
    weights[:, 0] = 99
    assert inside_score(grammar.arrays, string, weights) == score
    weights[:, 1:] = FORBIDDEN
    assert inside_score(grammar.arrays, string, weights) == FORBIDDEN


def test_any_integers_in_any_memory():
    grammar = compiled(PROJECTIVE, "S")
    weights = np.array([[0, 1, 0], [0, 0, 0], [0, 5, 0]], np.int64).T
    weights.flags.writeable = False
    assert best_score(grammar, grammar.encode("a a a"), weights) == 5
    largest = np.array([[0, 2**24 - 1], [0, 0]])
    assert best_score(grammar, grammar.encode("a a"), largest) == 2**24 - 1
    assert best_score(grammar, grammar.encode("a a"), -largest) == 1 - 2**24


@pytest.mark.parametrize(
    ("string", "weights", "message"),
    [
        (np.zeros(0, int), np.zeros((0, 0), int), r"the string must be integers \(m,\), the root at least; got int64"),
        ([[0]], np.zeros((1, 1), int), r"got int64 of shape \(1, 1\)"),
        ([0.0], np.zeros((1, 1), int), "got float64"),
        ([0, 256], np.zeros((2, 2), int), "codes of symbols are 0 to 0; got 0 to 256"),
        ([0, 1], np.zeros((2, 2), int), "codes of symbols are 0 to 0; got 0 to 1"),
        ([0, -1], np.zeros((2, 2), int), "codes of symbols are 0 to 0; got -1 to 0"),
        ([0, 0], np.zeros((2, 3), int), r"weights must be integers of shape \(2, 2\); got int64 of shape \(2, 3\)"),
        ([0, 0], np.zeros((2, 2)), "got float64"),
        ([0, 0, 0], np.full((3, 3), 2**23), "weight of a tree may reach 16777216; the limit is 16777215"),
        ([0, 0], np.full((2, 2), np.iinfo(np.int64).min), "may reach 9223372036854775808"),
        ([0, 0], np.full((2, 2), 2**64 - 1, np.uint64), "may reach 18446744073709551616"),
    ],
)
def test_what_cannot_be_parsed(string, weights, message):
    grammar = compiled(PROJECTIVE, "S")
    for function in (best_score, count_best):
        with pytest.raises(ValueError, match=message):
            function(grammar, np.array(string), weights)


def test_weights_of_no_edge_are_not_read():
    weights = np.full((3, 3), 2**40)
    weights[0, 1] = weights[0, 2] = weights[1, 2] = weights[2, 1] = 1
    assert best_score(compiled(PROJECTIVE, "S"), np.zeros(3, np.int8), weights) == 2
