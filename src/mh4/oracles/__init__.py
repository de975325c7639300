"""Optimal steps: the score of the best tree that can still be reached after each transition.

The oracle of each system provides the following functions, if there is an algorithm for them:

``optimal_step(configuration, gold, …)``
    The score of every transition and the best ones, an `OptimalStep`.
``step_scores_batch(…, golds, …)``
    The same for many configurations in arrays, of one or several sentences, in one compiled loop that releases the GIL:
    int32 (B, T), in the order of the system's transitions, `UNREACHABLE` where one does not apply or no tree can be
    reached.
``loss(configuration, gold)``
    The smallest number of wrong heads in any tree that can be reached.
``optimal_computation(gold, …)``
    Transitions from the initial configuration to a tree with as many gold arcs as possible: a static oracle.

Arguments, unless a function says otherwise:

gold : int (n + 1,)
    Heads of the gold tree, projective or not, −1 at 0.
golds, sentences : sequence of int (n + 1,), int (B,)
    Gold trees, and the index of the gold tree of each configuration. Group configurations by sentence for speed.
policy, algorithm : str
    One of the system's ``POLICIES``, which restricts the step and what follows it; one of the oracle's ``ALGORITHMS``.
single_root : bool
    Whether to consider only trees with one word below the root.

A ValueError is raised if the gold heads are not a tree, or have another number of words than the configuration; for an
unknown policy or algorithm (the message lists the known ones), or two that cannot be combined; for an invalid
configuration; and for arrays of inconsistent lengths.
"""
