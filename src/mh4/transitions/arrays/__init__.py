"""Transition systems in flat arrays, all compiled: what the scorers of greedy parsers choose among.

One compiled loop serves every system; the system is an integer, and `systems` passes each call on to the kernels of its
module. The parts:

- `state`: the `State` of a sentence, the `Candidates` to choose from, and what all systems do with arcs.
- `arc_standard`, `arc_eager`, …: one module a system, with four or five kernels and a `System` that describes it.
- `systems`: the table of systems.
- `templates`: features of sparse scorers, written as text and turned into arrays.
- `training_tree`: the gold tree, or one in its place where a system cannot build it.

How to add a system. Write a module with these kernels, all ``@njit(cache=True, nogil=True)`` and free of Python
objects; n is the number of words, ``state.counters[WORDS]``:

``initialize(state)``
    Make the initial configuration. `state.reset` has been called: there are no arcs, and all counters but n are 0.
    `State.own` and the counters from `OWN` on are for whatever the system needs.
``list_candidates(state, candidates)``
    List the legal transitions: their number is returned together with the number of *contexts*; no candidate means
    that the configuration is final. Row c of ``candidates.rows`` is (context, transition, argument, head, dependent):
    the argument is k in la_k, and free otherwise; head and dependent are those of the arc that the transition decides
    on, whose relation is part of the action, or −1. A context is a set of token addresses, on which the features are
    computed: row i of ``candidates.tokens`` has a position, or −1, for each of `System.tokens`, the first two of which
    are the words whose distance is ``d``. Systems whose features depend on the configuration only have one context;
    LR-spine parsing has one for each candidate. Contexts with different ``candidates.groups[i]`` share no weights
    (transition types, where a context belongs to a transition; else 0).
``apply(state, transition, argument, relation)``
    Take a step. Arcs are made by `state.add_arc`, which keeps dependents, valencies and sets of relations.
``prepare(state, oracle, gold)``, unless `state.note_children` says enough
    Before the first step in training: fill ``state.oracle`` with what the oracle needs to know of a gold tree.
``costs(state, oracle, gold, candidates, count)``
    Fill ``candidates.costs``: for each candidate how many gold arcs are lost by it, or any other numbers of which the
    smallest mark the optimal candidates. Relations are no matter: where the arc of an optimal candidate is in the gold
    tree, its relation has to be right, elsewhere it is free. A static oracle gives 0 to one candidate, 1 to others.

Then add the module to `systems`: a code, a branch in each of the functions, an entry in `SYSTEMS`. Words that have no
head in the end are attached by the parsers. Numba's cache notices a changed file, not a changed callee in another file:
while working on a system, set NUMBA_CACHE_DIR to a folder that is emptied after each change.
"""
