"""The compiled form of each transition system, shared by its oracles and the greedy parsers.

Each module has the transitions as in the paper, on plain stack arrays (``applies``, ``move``), with which oracles try
out steps; and kernels on a `State`, a full configuration with its arcs, for the parsers. Constants such as ``SHIFT``
number the transitions and labels of the same names in `mh4.transitions`.

How to add a system. Define it in `mh4.transitions`, and add it to the `registry`. Then write, all of them
``@njit(cache=True, nogil=True)`` and free of Python objects:

1. Here, a module with the names of `TOKENS` and these kernels:

   ``initialize(state)``
       Make the initial configuration. `state.reset` has been called: there are no arcs, and all counters but the number
       of words are 0. `State.own` and the counters from `OWN` on are free for the system to use.
   ``list_candidates(state, candidates)``
       List the legal transitions; return their number, 0 if the configuration is final, and the number of
       *contexts*. Row c of ``candidates.rows`` is (context, transition, argument, head, dependent): the argument is k
       in la_k, and free otherwise; head and dependent belong to the arc that the transition decides on, whose relation
       is chosen with it, and are −1 if there is none. A context is a set of tokens from which features are computed:
       row i of ``candidates.tokens`` has a position, or −1, for each of `TOKENS`; the first two of them are the words
       whose distance is ``d``. Systems whose features depend only on the configuration have one context. Contexts with
       different ``candidates.groups[i]`` share no weights.
   ``apply(state, transition, argument, relation)``
       Take a step. Arcs are made by `state.add_arc`.
   ``finish(state, candidates)``, if words may be left without a head
       List the next arc that completes a tree with one word below the root; return False once the tree is complete.

2. In `mh4.oracles`:

   ``costs(state, oracle, gold, candidates, count)``
       Fill ``candidates.costs``: see `mh4.oracles.costs`.
   ``prepare(state, oracle, gold)``, unless `mh4.oracles.costs.note_children` suffices
       Fill ``state.oracle`` with the oracle's notes on the gold tree; called before the first step in training.
   ``follow(state, oracle, transition)``, if the notes change along a computation
       Update them; called before each step.

3. In `mh4.parsers.systems`, a type with both modules, and an entry in `GREEDY_SYSTEMS`; in
   `mh4.parsers.template_sets`, templates.

Numba's cache notices a changed file, not a changed callee in another file: while working on a system, set
NUMBA_CACHE_DIR to a folder that is emptied after each change.
"""
