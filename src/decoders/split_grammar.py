"""Split grammars: context-free grammars that define which dependency trees over a string of symbols are allowed.

A grammar is written as in the papers, rules separated by semicolons or line ends::

    grammar = SplitGrammar("(S, S) → a ; S → (S, S) ; (_, S) → (_, S) S ; (S, _) → S (S, _)", start="S")

==========================  ========================================================================================
``(B, C) → a``              a node with symbol a begins in left state B and right state C
``(B', _) → A (B, _)``      a node in left state B takes a left child that is an A, and then is in left state B'
``(_, C') → (_, C) A``      a node in right state C takes a right child that is an A, and then is in right state C'
``A → (B, C)``              a node that ends in left state B and right state C is an A; the root must be a start symbol
==========================  ========================================================================================

Left children are attached regardless of the right state, and vice versa: the grammar is "split" in the sense of Eisner
and Satta (1999), which makes parsing cubic.

References
----------
Nederhof (2019), "Calculating the optimal step in shift-reduce dependency parsing: from cubic to linear time",
section 3.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

PLACEHOLDER = "_"
MAX_TERMINALS = 128  # codes are int8

_SYMBOL = r"[^\s(),;→]+"
_PAIR = rf"\(\s*({_SYMBOL})\s*,\s*({_SYMBOL})\s*\)"
_FORMS = {
    "initial": re.compile(rf"{_PAIR}\s*→\s*({_SYMBOL})"),
    "complete": re.compile(rf"({_SYMBOL})\s*→\s*{_PAIR}"),
    "left": re.compile(rf"{_PAIR}\s*→\s*({_SYMBOL})\s*{_PAIR}"),
    "right": re.compile(rf"{_PAIR}\s*→\s*{_PAIR}\s*({_SYMBOL})"),
}


class SplitArrays(NamedTuple):
    """A grammar as arrays. The states that a node can be in are numbered for each terminal, 0 being the initial one.

    Attributes
    ----------
    left_states, right_states : int32 (T,)
        Number of left and of right states that a node with terminal t can be in.
    left_first : int32 (T · T + 1,), left_rules : int32 (rows, 4)
        Rows ``left_first[a * T + b]`` to ``left_first[a * T + b + 1] - 1`` say how a node with terminal b takes a left
        child with terminal a: right state of the child, left state of the parent, left state of the parent after it,
        left state of the child.
    right_first, right_rules
        Rows of ``a * T + b`` say how a node with terminal a takes a right child with terminal b: right state of the
        parent, left state of the child, right state of the parent after it, right state of the child.
    start_first : int32 (T + 1,), start_states : int32
        Rows of terminal t: right states in which it can be the root, with its initial left state.
    """

    left_states: np.ndarray
    right_states: np.ndarray
    left_first: np.ndarray
    left_rules: np.ndarray
    right_first: np.ndarray
    right_rules: np.ndarray
    start_first: np.ndarray
    start_states: np.ndarray


@dataclass(frozen=True)
class _Rules:
    initial: dict[str, tuple[str, str]]  # terminal: (left state, right state)
    complete: list[tuple[str, str, str]]  # (nonterminal, left state, right state)
    left: list[tuple[str, str, str]]  # (new state, child, old state)
    right: list[tuple[str, str, str]]  # (new state, old state, child)


class SplitGrammar:
    """A split grammar, checked and compiled.

    Parameters
    ----------
    rules : str
        Rules separated by semicolons or line ends; ``->`` may be written for ``→``.
    start : str
        The nonterminal of the root.

    Attributes
    ----------
    rules, terminals : tuple of str
        Rules as given, stripped; terminals in the order of their codes, which is the order of their rules.
    arrays : SplitArrays
        For the kernels of `mh4.decoders.tabular`.

    Raises
    ------
    ValueError
        A rule has none of the four forms or occurs twice, a terminal has several initial rules, an attachment rule
        constrains both sides, or a symbol is used that no rule defines.
    """

    def __init__(self, rules: str, start: str) -> None:
        text = rules.replace("->", "→")
        self.rules = tuple(rule for rule in map(str.strip, re.split(r"[;\n]", text)) if rule)
        self.start = start
        parsed = _parse(self.rules)
        _check(parsed, start)
        self.terminals = tuple(parsed.initial)
        self._codes = {terminal: code for code, terminal in enumerate(self.terminals)}
        self.arrays = _compile(parsed, start)

    def __repr__(self) -> str:
        return f"<split grammar, {len(self.rules)} rules, terminals {', '.join(self.terminals)}>"

    def code(self, symbol: str) -> int:
        """The code of a terminal; for an unknown one, a ValueError that lists the terminals of the grammar."""
        if symbol not in self._codes:
            raise ValueError(f"unknown terminal {symbol!r}; known: {', '.join(self.terminals)}")
        return self._codes[symbol]

    def encode(self, symbols: str | Iterable[str]) -> np.ndarray:
        """Codes of terminals, int8 (m,), given one by one or in one string with spaces between; errors as in `code`."""
        symbols = symbols.split() if isinstance(symbols, str) else symbols
        return np.array([self.code(symbol) for symbol in symbols], np.int8)


def _parse(rules: Iterable[str]) -> _Rules:
    parsed = _Rules({}, [], [], [])
    seen = set()
    parts: Any  # two to five symbols
    for rule in rules:
        form, match = next(((f, m) for f, p in _FORMS.items() if (m := p.fullmatch(rule))), (None, None))
        if match is None:
            raise ValueError(
                f"not a rule of a split grammar: {rule!r}; the forms are (B, C) → a, A → (B, C), "
                "(B', _) → A (B, _) and (_, C') → (_, C) A"
            )
        parts = match.groups()
        if (form, parts) in seen:
            raise ValueError(f"the rule {rule!r} occurs twice")
        seen.add((form, parts))
        if form in ("initial", "complete"):
            if PLACEHOLDER in parts:
                raise ValueError(f"{rule!r}: only rules that attach a child have the placeholder {PLACEHOLDER}")
            if form == "complete":
                parsed.complete.append(parts)
            elif parts[2] in parsed.initial:
                raise ValueError(f"{rule!r}: the terminal {parts[2]} has another initial rule; it must have just one")
            else:
                parsed.initial[parts[2]] = parts[:2]
            continue
        if form == "left":
            new, other, child, old, other_old = parts
            named = (new, child, old)
        else:
            other, new, other_old, old, child = parts
            named = (new, old, child)
        if (other, other_old) != (PLACEHOLDER, PLACEHOLDER) or PLACEHOLDER in named:
            raise ValueError(
                f"{rule!r}: attaching a {form} child must not depend on the other side of the node, "
                f"which is written {PLACEHOLDER} on both sides of the rule, and there only"
            )
        (parsed.left if form == "left" else parsed.right).append(named)
    return parsed


def _check(rules: _Rules, start: str) -> None:
    """ValueError if no rule makes a symbol that is used: a misspelt one would otherwise just make trees impossible."""
    if not rules.initial:
        raise ValueError("the grammar has no rule (B, C) → a")
    if len(rules.initial) > MAX_TERMINALS:
        raise ValueError(f"the grammar has {len(rules.initial)} terminals; {MAX_TERMINALS} is the limit")
    nonterminals = {a for a, _, _ in rules.complete}
    if both := nonterminals & set(rules.initial):
        raise ValueError(f"terminal and nonterminal at once: {', '.join(sorted(both))}")
    if start not in nonterminals:
        raise ValueError(f"the start symbol {start} has no rule {start} → (B, C)")
    lefts = {left for left, _ in rules.initial.values()} | {new for new, _, _ in rules.left}
    rights = {right for _, right in rules.initial.values()} | {new for new, _, _ in rules.right}
    used = [(child, nonterminals, "nonterminal") for _, child, _ in rules.left]
    used += [(child, nonterminals, "nonterminal") for _, _, child in rules.right]
    used += [(old, lefts, "left state") for _, _, old in rules.left]
    used += [(old, rights, "right state") for _, old, _ in rules.right]
    used += [(left, lefts, "left state") for _, left, _ in rules.complete]
    used += [(right, rights, "right state") for _, _, right in rules.complete]
    for symbol, defined, what in used:
        if symbol not in defined:
            raise ValueError(f"no rule makes the {what} {symbol}, which others use")


def _states(initial: str, steps: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Number the states that steps (old, new) can reach from an initial one, which is 0."""
    steps = list(steps)
    found = [initial]
    for state in found:  # grows during the loop
        found += dict.fromkeys(new for old, new in steps if old == state and new not in found)
    return {state: number for number, state in enumerate(found)}


def _compile(rules: _Rules, start: str) -> SplitArrays:
    left_steps = [(old, new) for new, _, old in rules.left]
    right_steps = [(old, new) for new, old, _ in rules.right]
    lefts = [_states(left, left_steps) for left, _ in rules.initial.values()]
    rights = [_states(right, right_steps) for _, right in rules.initial.values()]
    pairs = [(a, b) for a in range(len(lefts)) for b in range(len(lefts))]
    # Rules that differ only in the nonterminal of the child give equal rows; counting needs all of them.
    left_rows = [
        [
            (rights[a][right], lefts[b][old], lefts[b][new], lefts[a][left])
            for new, child, old in rules.left
            for nonterminal, left, right in rules.complete
            if nonterminal == child and old in lefts[b] and left in lefts[a] and right in rights[a]
        ]
        for a, b in pairs
    ]
    right_rows = [
        [
            (rights[a][old], lefts[b][left], rights[a][new], rights[b][right])
            for new, old, child in rules.right
            for nonterminal, left, right in rules.complete
            if nonterminal == child and old in rights[a] and left in lefts[b] and right in rights[b]
        ]
        for a, b in pairs
    ]
    start_rows = [
        [
            (rights[t][right],)
            for nonterminal, left, right in rules.complete
            if nonterminal == start and lefts[t].get(left) == 0 and right in rights[t]
        ]
        for t in range(len(lefts))
    ]
    start_first, start_states = _grouped(start_rows, 1)
    return SplitArrays(
        np.array([len(states) for states in lefts], np.int32),
        np.array([len(states) for states in rights], np.int32),
        *_grouped(left_rows, 4),
        *_grouped(right_rows, 4),
        start_first,
        start_states[:, 0].copy(),
    )


def _grouped(groups: Sequence[Sequence[tuple[int, ...]]], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each group begins, and the rows of all groups."""
    first = np.cumsum([0, *(len(group) for group in groups)])
    rows = np.array([row for group in groups for row in group], np.int32).reshape(-1, width)
    return first.astype(np.int32), rows
