"""The kernels of a system on one sentence, and the defined systems, adapted to behave like their kernels."""

from computations import all_trees

from mh4.decoders.trees import is_projective
from mh4.oracles.costs import STATIC
from mh4.oracles.mh4 import is_derivable
from mh4.parsers.systems import apply, find_costs, get_system, initialize, list_candidates, prepare
from mh4.transitions.arc_eager import REDUCE, RIGHT_ARC, SHIFT, ArcEager
from mh4.transitions.arc_hybrid import ArcHybrid
from mh4.transitions.arc_standard import REDUCE_LEFT, ArcStandard
from mh4.transitions.arrays.state import DEPENDENT, DEPTH, FRONT, TRANSITION, new_candidates, new_state
from mh4.transitions.mh4 import MH4


class RootLast:
    """A system of `mh4.transitions`, limited to arcs from the root in the last step, with automatic forced shifts."""

    def __init__(self, system):
        self.system, self.heads, self.is_final = system, system.heads, system.is_final

    def _after_shifts(self, configuration):
        while self.legal(configuration) == (SHIFT,):
            configuration = self.system.apply(configuration, SHIFT)
        return configuration

    def initial(self, n):
        return self._after_shifts(self.system.initial(n))

    def legal(self, configuration):
        if configuration.front > configuration.n:
            return tuple(self.system.legal(configuration))
        from_root = {1: [RIGHT_ARC], 2: [REDUCE, REDUCE_LEFT]}.get(len(configuration.stack), [])
        return tuple(transition for transition in self.system.legal(configuration) if transition not in from_root)

    def apply(self, configuration, transition):
        return self._after_shifts(self.system.apply(configuration, transition))


FRIENDLY = {
    "arc-standard": RootLast(ArcStandard()),
    "arc-eager": RootLast(ArcEager()),
    "arc-hybrid": ArcHybrid(single_root=True),
    "mh4": MH4(single_root=True),
}


def has_one_root(gold):
    return (gold[1:] == 0).sum() == 1


def trees_of(name, n):
    """Every tree of n words that a system can build."""
    system = get_system(name)
    trees = [tree for tree in all_trees(n) if has_one_root(tree) or not system.single_root]
    if system.trees == "projective":
        return [tree for tree in trees if is_projective(tree)]
    return [tree for tree in trees if system.trees == "all" or is_derivable(tree)]


class Kernels:
    """The kernels of one system on one sentence."""

    def __init__(self, name, n, longest=None):
        self.system = get_system(name)
        self.state = new_state(longest or n)
        self.candidates = new_candidates(len(self.system.tokens), longest or n)
        self.initialize(n)

    def initialize(self, n):
        initialize(self.system.kernels, self.state, n)
        self.list()

    def list(self):
        self.count, self.contexts = list_candidates(self.system.kernels, self.state, self.candidates)

    @property
    def rows(self):
        return self.candidates.rows[: self.count]

    @property
    def legal(self):
        return [self.system.transitions[row[TRANSITION]] for row in self.rows]

    @property
    def friendly(self):
        """Names of the legal transitions in `mh4.transitions`."""
        return tuple("reduce" if name == "reduce_correct" else name for name in self.legal)

    def token(self, name):
        return self.candidates.tokens[0, self.system.tokens.index(name)]

    def step(self, c, relation=0):
        _, transition, argument, _, _ = self.rows[c]
        apply(self.system.kernels, self.state, transition, argument, relation)
        self.list()

    def go_to(self, configuration):
        """Set the state to a configuration of `mh4.transitions`, without its arcs."""
        initialize(self.system.kernels, self.state, configuration.n)
        depth = len(configuration.stack)
        self.state.stack[:depth] = configuration.stack
        self.state.labels[:depth] = ["RLN".index(label) for label in getattr(configuration, "labels", "R" * depth)]
        self.state.counters[[DEPTH, FRONT]] = depth, configuration.front
        self.list()

    def prepare(self, oracle, gold):
        prepare(self.system.kernels, self.state, oracle, gold)

    def costs(self, oracle, gold):
        find_costs(self.system.kernels, self.state, oracle, gold, self.candidates, self.count)
        return self.candidates.costs[: self.count].tolist()

    def follow_static(self, gold, relations):
        """Follow the static oracle; return heads and relations."""
        self.initialize(len(gold) - 1)
        self.prepare(STATIC, gold)
        while self.count:
            costs = self.costs(STATIC, gold)
            assert sorted(costs)[:2] in ([0], [0, 1])
            c = costs.index(0)
            self.step(c, relations[self.rows[c][DEPENDENT]])
        return self.state.heads[: len(gold)], self.state.relations[: len(gold)]
