"""The one compiled form of each transition system, for its oracles and for greedy parsers.

A module has the transitions as the paper has them, on the arrays of a stack (``applies``, ``move``), where oracles try
them out, and kernels on a `State`, the configuration of a whole sentence with its arcs, which parsers choose from. A
constant is the number of what goes by the same name in the module that defines the system, in `mh4.transitions`.

How to add a system. Define it in `mh4.transitions`, and add it to the `registry`. Then write, all of them
``@njit(cache=True, nogil=True)`` and free of Python objects:

1. Here, a module with the names of `TOKENS` and these kernels:

   ``initialize(state)``
       Make the initial configuration. `state.reset` has been called: there are no arcs, and all counters but the number
       of words are 0. `State.own` and the counters from `OWN` on are for whatever the system needs.
   ``list_candidates(state, candidates)``
       List the legal transitions; returns how many there are, none if the configuration is final, and the number of
       *contexts*. Row c of ``candidates.rows`` is (context, transition, argument, head, dependent): the argument is k
       in la_k, and free otherwise; head and dependent are those of the arc that the transition decides on, whose
       relation is part of the action, or −1. A context is a set of tokens, from which features are computed: row i of
       ``candidates.tokens`` has a position, or −1, for each of `TOKENS`, the first two of which are the words whose
       distance is ``d``. Systems whose features depend on the configuration only have one context. Contexts with
       different ``candidates.groups[i]`` share no weights.
   ``apply(state, transition, argument, relation)``
       Take a step. Arcs are made by `state.add_arc`.
   ``finish(state, candidates)``, if words may be left without a head
       Name the next arc that a tree with one word below the root takes; False if there is none.

2. In `mh4.oracles`:

   ``costs(state, oracle, gold, candidates, count)``
       Fill ``candidates.costs``: see `mh4.oracles.costs`.
   ``prepare(state, oracle, gold)``, unless `mh4.oracles.costs.note_children` says enough
       Before the first step in training, fill ``state.oracle`` with what the oracle needs to know of a gold tree.
   ``follow(state, oracle, transition)``, if it keeps anything up to date
       Before each step.

3. In `mh4.parsers.systems`, a type with both modules, and an entry in `GREEDY_SYSTEMS`; in
   `mh4.parsers.template_sets`, templates.

Numba's cache notices a changed file, not a changed callee in another file: while working on a system, set
NUMBA_CACHE_DIR to a folder that is emptied after each change.
"""
