"""Optimal steps: what the best tree still attainable after each transition is worth.

A system's oracle has these functions, as far as there are algorithms for them:

``optimal_step(configuration, gold, …)``
    The score of every transition and the best ones, an `OptimalStep`.
``step_scores_batch(…, golds, …)``
    The same for many configurations in arrays, of one or several sentences, in one compiled loop that releases the GIL:
    int32 (B, T), in the order of the system's transitions, `UNREACHABLE` where one does not apply or no tree can be
    reached.
``loss(configuration, gold)``
    The least number of wrong heads in any tree that can be reached.
``optimal_computation(gold, …)``
    Transitions from the initial configuration to a tree with as many gold arcs as any has: a static oracle.

Their arguments, where a function does not say otherwise:

gold : int (n + 1,)
    Heads of the gold tree, projective or not, −1 at 0.
golds, sentences : sequence of int (n + 1,), int (B,)
    Gold trees, and which of them each configuration has. Those of one sentence are best kept side by side.
policy, algorithm : str
    One of the system's ``POLICIES``, which restricts the step and what follows it; one of the oracle's ``ALGORITHMS``.
single_root : bool
    Only trees with one word below the root.

They raise a ValueError for gold heads that are no tree, or one of another number of words than the configuration; for
an unknown policy or algorithm, or two that do not go together (the message lists the known ones); for what is no
configuration of its sentence; and for arrays whose lengths do not fit together.
"""
