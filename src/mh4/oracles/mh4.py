"""A static oracle of the MH4 transition system: whether a tree can be built, and how.

A word is removed as soon as it is *complete*, with all its gold dependents, and its gold head is within reach; the next
word is shifted when no word can be removed. This builds every tree that can be built at all. Proof: suppose that a
computation leads to the gold tree from a configuration in which a word can be removed. Remove the word at once, and
then follow the same computation without the step that removes it. This works because the word gets no more dependents,
and without it all other words are at least as near to the top of the stack, so their steps still apply. So removing a
word never does harm, and if two words can be removed, their order is irrelevant; here the topmost one comes first.

A gold tree that cannot be built is replaced by the closest one that can, found by exact search (`mh4_search`). If this
would take too long, the closest tree of the chart decoder is used, with a warning; the chart covers nearly all trees of
the system (Gómez-Rodríguez, Shi and Lee 2018, section 3.2). If the chart does not fit into memory either, it is the
tree of a beam or the closest projective one, whichever keeps more arcs.
"""

import logging
from contextlib import suppress

import numpy as np
from numba import njit

from mh4.decoders import ChartTooLargeError, InfeasibleError, get_decoder
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import arc_matrix, checked_tree
from mh4.transitions.arrays.mh4 import REDUCES
from mh4.transitions.arrays.state import DEPTH, FRONT
from mh4.transitions.mh4 import MH4

from .arc_hybrid import static_computation, static_costs
from .costs import CHART_ORDER, ORACLE_NAMES, note_children, write_static_costs
from .mh4_chart_order import LONGEST, chart_computation
from .mh4_search import CONFIGURATIONS, search_closest

log = logging.getLogger("mh4")

POLICIES = ("reduce-before-shift", ORACLE_NAMES[CHART_ORDER])

BEAM = "beam:64"  # search if the chart is too large for memory


@njit(cache=True, nogil=True)
def prepare(state, oracle, gold):
    """Note how many dependents each token has or, for ``chart-order``, each transition of the computation.

    Sentences longer than `LONGEST` have the computation of ``static`` instead.
    """
    if oracle != CHART_ORDER:
        note_children(gold, state.oracle)
        return
    n = gold.shape[0] - 1
    if n <= LONGEST:
        transitions = chart_computation(gold)
    else:
        transitions = np.empty(2 * n, np.int64)
        static_computation(REDUCES, gold, transitions)
    for step in range(2 * n):
        state.oracle[step % 2, step // 2] = transitions[step]


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Fill the costs of the candidates, for a gold tree that can be built with one word below the root.

    With ``chart-order``, for a tree of `closest_in_chart`.
    """
    if oracle != CHART_ORDER:
        static_costs(REDUCES, state, gold, candidates, count)
        return
    shifts, held = state.counters[FRONT] - 1, state.counters[DEPTH] - 1
    step = 2 * shifts - held  # every word that was shifted and is no longer on the stack took two steps
    write_static_costs(candidates, count, state.oracle[step % 2, step // 2])


def is_derivable(heads: np.ndarray, single_root: bool = False) -> bool:
    """Return whether the system can build a tree, in O(n); ``heads`` is int (n + 1,). For ``single_root`` see `MH4`.

    ValueError: ``heads`` is not a tree.
    """
    gold = np.ascontiguousarray(checked_tree(heads), np.int32)
    if single_root and np.count_nonzero(gold == 0) != 1:
        return False
    return bool(static_computation(REDUCES, gold, np.empty(2 * len(gold), np.int8)))


def closest_derivable(heads: np.ndarray, single_root: bool = False) -> np.ndarray:
    """The tree itself if the system can build it, else a tree that it can build with most arcs in common.

    If the search gives up, after `CONFIGURATIONS` configurations, the closest tree of the chart decoder is returned,
    with a warning in the log. For sentences too long for that chart, it is the tree found by beam search (`BEAM`) or
    the closest projective one, whichever keeps more arcs.

    Returns
    -------
    int32 (n + 1,)
        A new array.

    Raises
    ------
    InfeasibleError
        ``single_root`` is set, and the sentence has no words.
    ValueError
        ``heads``, int (n + 1,), is not a tree.
    """
    heads = checked_tree(heads)
    if is_derivable(heads, single_root):
        return np.array(heads, np.int32)
    if len(heads) == 1:
        raise InfeasibleError("a sentence without words has no tree")
    closest = search_closest(heads, single_root)
    if closest is not None:
        return closest
    try:
        closest, which = closest_tree(heads, "mh4", single_root), "the closest one of the MH4 chart"
    except ChartTooLargeError:
        closest, which = _closest_without_chart(heads, single_root), "the closest projective one or one found by a beam"
    log.warning(
        "a tree of %d words is replaced by %s, which need not be the closest one of MH4 parsing: an exact search would "
        "visit more than %d configurations",
        *(len(heads) - 1, which, CONFIGURATIONS),
    )
    return closest


def _closest_without_chart(heads: np.ndarray, single_root: bool) -> np.ndarray:
    """The tree of a beam or, if it keeps more arcs of ``heads`` and its own chart fits, the closest projective one."""
    beam = get_decoder("mh4-two", single_root, search=BEAM)
    arcs = arc_matrix(heads)
    trees = [beam.decode(np.zeros((len(beam.channels), *arcs.shape), np.float32), arcs).heads]
    with suppress(ChartTooLargeError):
        trees.append(closest_tree(heads, "projective", single_root))
    return max(trees, key=lambda tree: np.count_nonzero(tree == heads))


def closest_in_chart(heads: np.ndarray, single_root: bool = False) -> np.ndarray:
    """The tree to train on with ``chart-order``: the closest one in the chart's class, int32 (n + 1,).

    For sentences longer than `LONGEST`, and with the same errors, `closest_derivable`.
    """
    if len(heads) - 1 > LONGEST:
        return closest_derivable(heads, single_root)
    return closest_tree(heads, "mh4", single_root)


def optimal_computation(gold: np.ndarray, single_root: bool = False, policy: str = POLICIES[0]) -> tuple[str, ...]:
    """Transitions to the tree of `closest_derivable`, removing words as soon as possible; with the same errors.

    With the policy ``chart-order``, the computation that a chart finds (`mh4_chart_order`), to the closest tree of the
    chart; a ChartTooLargeError for sentences that are too long for it.
    """
    if policy == POLICIES[1]:
        if len(gold) - 1 > LONGEST:
            raise ChartTooLargeError(f"{policy} is for sentences of up to {LONGEST} words: {len(gold) - 1}")
        tree = closest_tree(gold, "mh4", single_root) if single_root else checked_tree(gold)
        return tuple(MH4.transitions[move] for move in chart_computation(np.asarray(tree, np.int64)))
    heads = closest_derivable(gold, single_root)
    transitions = np.empty(2 * (len(heads) - 1), np.int8)
    static_computation(REDUCES, heads, transitions)
    return tuple(MH4.transitions[transition] for transition in transitions)
