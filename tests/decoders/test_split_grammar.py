import numpy as np
import pytest

from mh4.decoders.split_grammar import SplitGrammar

# Nederhof (2019), Table 4.
SHIFT_REDUCE = """
    (P, P) → p
    (S, S) → s
    P → (P, P) ; S → (P, S) ; S → (S, S)
    (S, _) → P (S, _) ; (S, _) → S (S, _) ; (S, _) → P (P, _)
    (_, S) → (_, P) S ; (_, S) → (_, S) S
"""


def rows(first, table, a, b, terminals):
    pair = a * terminals + b
    return sorted(map(tuple, table[first[pair] : first[pair + 1]].tolist()))


def test_terminals_and_codes():
    grammar = SplitGrammar(SHIFT_REDUCE, start="S")
    assert grammar.terminals == ("p", "s")
    assert grammar.encode("p p s").tolist() == grammar.encode(["p", "p", "s"]).tolist() == [0, 0, 1]
    assert grammar.encode("p").dtype == np.int8
    assert grammar.code("s") == 1
    assert len(grammar.rules) == 10
    assert repr(grammar) == "<split grammar, 10 rules, terminals p, s>"
    with pytest.raises(ValueError, match="unknown terminal 'x'; known: p, s"):
        grammar.encode("p x")


def test_states_are_those_a_symbol_can_reach():
    arrays = SplitGrammar(SHIFT_REDUCE, start="S").arrays
    # p: P, then S; s: S only
    assert arrays.left_states.tolist() == [2, 1]
    assert arrays.right_states.tolist() == [2, 1]
    # s below p: S → (P, S) cannot use s, S → (S, S) can; p is in right state P or S before, in S after.
    assert rows(arrays.right_first, arrays.right_rules, 0, 1, 2) == [(0, 0, 1, 0), (1, 0, 1, 0)]
    # p below s: P → (P, P), S → (P, S) and S → (S, S)
    assert rows(arrays.left_first, arrays.left_rules, 0, 1, 2) == [(0, 0, 0, 0), (1, 0, 0, 0), (1, 0, 0, 1)]
    # The root is p, by S → (P, S), or s.
    assert arrays.start_first.tolist() == [0, 1, 2]
    assert arrays.start_states.tolist() == [1, 0]


def test_rules_that_differ_in_the_nonterminal_alone_stay_two():
    grammar = SplitGrammar("(S, S) → a ; X → (S, S) ; Y → (S, S) ; (_, S) → (_, S) X ; (_, S) → (_, S) Y", start="X")
    assert grammar.arrays.right_rules.tolist() == [[0, 0, 0, 0]] * 2


def test_plain_arrows_and_line_ends():
    first = SplitGrammar("(S,S) -> a; S->(S,S)\n(_,S) -> (_,S)S\n\n", start="S")
    second = SplitGrammar("(S, S) → a ; S → (S, S) ; (_, S) → (_, S) S", start="S")
    for ours, theirs in zip(first.arrays, second.arrays, strict=True):
        assert ours.tolist() == theirs.tolist()


GOOD = "(S, S) → a ; S → (S, S) ;"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (GOOD + "S → S S", r"not a rule of a split grammar: 'S → S S'; the forms are"),
        (GOOD + "(S, _) → S (S, _) (S, _)", "not a rule"),
        (GOOD + "S → (S, S)", r"the rule 'S → \(S, S\)' occurs twice"),
        (GOOD + "(T, S) → a", "the terminal a has another initial rule"),
        (GOOD + "(S, S) → S (S, S)", "attaching a left child must not depend on the other side of the node"),
        (GOOD + "(_, S) → (S, S) S", "attaching a right child must not depend on the other side"),
        (GOOD + "(S, _) → _ (S, _)", "and there only"),
        (GOOD + "(_, _) → (_, S) S", "and there only"),
        (GOOD + "(S, _) → b", "only rules that attach a child have the placeholder _"),
        (GOOD + "S → (S, _)", "only rules that attach a child have the placeholder _"),
        (GOOD + "(S, S) → S", "terminal and nonterminal at once: S"),
        (GOOD + "(S, _) → T (S, _)", "no rule makes the nonterminal T"),
        (GOOD + "(_, S) → (_, S) T", "no rule makes the nonterminal T"),
        (GOOD + "(S, _) → S (T, _)", "no rule makes the left state T"),
        (GOOD + "(_, S) → (_, T) S", "no rule makes the right state T"),
        (GOOD + "S → (T, S)", "no rule makes the left state T"),
        (GOOD + "(_, T) → (_, S) S ; S → (S, T) ; T → (T, S)", "no rule makes the left state T"),
        ("(T, T) → a ; T → (T, T)", r"the start symbol S has no rule S → \(B, C\)"),
        ("S → (S, S)", r"the grammar has no rule \(B, C\) → a"),
        (GOOD + ";".join(f"(S, S) → b{i}" for i in range(128)), "the grammar has 129 terminals; 128 is the limit"),
    ],
)
def test_what_is_no_split_grammar(rules, message):
    with pytest.raises(ValueError, match=message):
        SplitGrammar(rules, start="S")
