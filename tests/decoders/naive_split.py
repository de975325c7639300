"""The recursive equations of Nederhof (2019), Table 2, taken literally, over any semiring."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import ClassVar, NamedTuple


class Rules(NamedTuple):
    """The rules of a split grammar."""

    initial: dict  # a: (B, C) for (B, C) → a
    complete: list  # (A, B, C) for A → (B, C)
    left: list  # (B', A, B) for (B', _) → A (B, _)
    right: list  # (C', C, A) for (_, C') → (_, C) A

    def text(self):
        return ";".join(
            [f"({b}, {c}) → {a}" for a, (b, c) in self.initial.items()]
            + [f"{a} → ({b}, {c})" for a, b, c in self.complete]
            + [f"({new}, _) → {a} ({b}, _)" for new, a, b in self.left]
            + [f"(_, {new}) → (_, {c}) {a}" for new, c, a in self.right]
        )


class Trees:
    """Semiring whose values list all derivations: multisets of sets of edges."""

    zero: ClassVar = Counter()
    one: ClassVar = Counter({frozenset(): 1})

    @staticmethod
    def plus(x, y):
        return x + y

    @staticmethod
    def times(x, y):
        product = Counter()
        for a, count in x.items():
            for b, other in y.items():
                product[a | b] += count * other
        return product

    @staticmethod
    def weight(i, j, w):
        return Trees.zero if w is None else Counter({frozenset([(i, j)]): 1})


class MaxCount:
    """Semiring whose values are (best score, number of derivations with it); a score of None means −∞."""

    zero = (None, 0)
    one = (0, 1)

    @staticmethod
    def plus(x, y):
        if x[0] is None or y[0] is None:
            return y if x[0] is None else x
        best = max(x[0], y[0])
        return best, sum(count for score, count in (x, y) if score == best)

    @staticmethod
    def times(x, y):
        return MaxCount.zero if x[0] is None or y[0] is None else (x[0] + y[0], x[1] * y[1])

    @staticmethod
    def weight(i, j, w):
        return (w, int(w is not None))


def table2(rules, start, string, weights, semiring):
    """W of Table 2 for a whole string; ``weights[i][j]`` is a number, or None if the edge is forbidden."""

    def total(values):
        result = semiring.zero
        for value in values:
            result = semiring.plus(result, value)
        return result

    def product(*factors):
        result = semiring.one
        for factor in factors:
            result = semiring.times(result, factor)
        return result

    def w(i, j):
        return semiring.weight(i, j, weights[i][j])

    @cache
    def meet(b, c, i, j):
        return total(product(right(b, i, k), left(c, k + 1, j)) for k in range(i, j))

    @cache
    def left(new, i, j):
        if i == j:
            return semiring.one if rules.initial[string[i]][0] == new else semiring.zero
        return total(
            product(left(d, i, k), meet(b, c, k, j), w(j, k))
            for made, child, c in rules.left
            if made == new
            for a, d, b in rules.complete
            if a == child
            for k in range(i, j)
        )

    @cache
    def right(new, i, j):
        if i == j:
            return semiring.one if rules.initial[string[i]][1] == new else semiring.zero
        return total(
            product(meet(b, c, i, k), w(i, k), right(d, k, j))
            for made, b, child in rules.right
            if made == new
            for a, c, d in rules.complete
            if a == child
            for k in range(i + 1, j + 1)
        )

    return total(product(left(b, 0, 0), right(c, 0, len(string) - 1)) for a, b, c in rules.complete if a == start)
