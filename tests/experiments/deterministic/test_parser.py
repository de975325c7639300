"""Greedy parsing of many sentences at once, against transition systems on one configuration at a time."""

import numpy as np
import pytest
import torch
from deterministic.parser import ABSENT, ANY_RELATION, DeterministicParser, visited_configurations
from deterministic.states import ARRAY_SYSTEMS, NO_RELATION, TaggedText
from deterministic.word_vectors import WordVectors
from hypothesis import given, settings
from hypothesis import strategies as st

from mh4.data.sentence import Sentence
from mh4.parsers.vocabulary import Vocabulary
from mh4.training.treebanks import read_gold
from mh4.transitions.arc_eager import LABELS, ArcEager
from mh4.transitions.arc_standard import ArcStandard

FRIENDLY = {system.name: system for system in (ArcStandard(), ArcEager())}
RELATIONS, TAGS = ("punct", "root", "nsubj", "obj"), ("X", "NOUN", "VERB")
NAMES = sorted(ARRAY_SYSTEMS)
both_systems = pytest.mark.parametrize("system", NAMES)


def untrained(system, seed=1, words=("dog", "the"), relations=RELATIONS):
    torch.manual_seed(seed)
    vectors = WordVectors({word: row for row, word in enumerate(words)}, np.ones((len(words), 3), np.float32))
    return DeterministicParser(system, Vocabulary(relations, TAGS, ()), vectors, hidden=16)


def random_text(generator, lengths):
    """Random ids in the form that `DeterministicParser.encode` returns."""
    offsets = np.cumsum([0, *(n + 1 for n in lengths)], dtype=np.int64)
    words = generator.integers(2, 5, offsets[-1]).astype(np.int32)
    tags = generator.integers(2, 6, offsets[-1]).astype(np.int32)
    words[offsets[:-1]] = tags[offsets[:-1]] = 1
    return TaggedText(offsets, words, tags)


def random_computation(generator, system, n):
    """The configurations of a random computation, including the final one, and its transitions."""
    configurations, steps = [system.initial(n)], []
    while not system.is_final(configurations[-1]):
        steps.append(generator.choice(system.legal(configurations[-1])))
        configurations.append(system.apply(configurations[-1], steps[-1]))
    return configurations, steps


def naive_description(configuration, text, s, relations, labelled):
    """The words and symbols that describe a configuration, the symbols without the offsets of their slots."""
    base = text.offsets[s]
    positions = [*reversed(configuration.stack[-3:]), None, None, None][:3]
    remaining = range(configuration.front, configuration.n + 1)
    positions += [*remaining[:3], None, None, None][:3]
    words = [0 if p is None else text.words[base + p] for p in positions]
    symbols = [0 if p is None else text.tags[base + p] for p in positions]
    for top in positions[:2]:
        left = [d for h, d in configuration.arcs if h == top and d < h]
        right = [d for h, d in configuration.arcs if h == top and d > h]
        symbols.append(1 + relations[base + min(left)] if left else 0)
        symbols.append(1 + relations[base + max(right)] if right else 0)
    if labelled:
        labels = [1 + LABELS.index(label) for label in reversed(configuration.labels[-2:])]
        symbols += [*labels, 0][:2]
    return words, symbols


@settings(max_examples=30)
@given(st.sampled_from(NAMES), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 10**6))
def test_replay_equals_the_transition_system(name, lengths, seed):
    generator = np.random.default_rng(seed)
    system, parser = FRIENDLY[name], untrained(name)
    text = random_text(generator, lengths)
    relations = generator.integers(0, len(RELATIONS), text.offsets[-1]).astype(np.int32)
    computations = [random_computation(generator, system, n) for n in lengths]
    transitions = np.array([system_steps(name).index(step) for _, steps in computations for step in steps], np.int8)
    described, flat = parser.replay(text, transitions, relations)
    row = 0
    for s, (configurations, _) in enumerate(computations):
        assert len(configurations) == 2 * lengths[s] + 1
        for configuration in configurations[:-1]:
            elements = slice(flat.offsets[row], flat.offsets[row + 1])
            assert tuple(flat.stacks[elements]) == configuration.stack
            assert (flat.fronts[row], flat.sentences[row]) == (configuration.front, s)
            words, symbols = naive_description(configuration, text, s, relations, name == "arc-eager")
            if name == "arc-eager":
                assert "".join(LABELS[label] for label in flat.labels[elements]) == configuration.labels
            assert described.words[row].tolist() == words
            assert (described.symbols[row] - parser.starts).tolist() == symbols
            code = sum(1 << t for t, step in enumerate(system_steps(name)) if step in system.legal(configuration))
            assert described.codes[row] == code + (len(configuration.stack) == 2) * (1 << len(system_steps(name)))
            row += 1
    assert row == len(flat.fronts) == text.step_offsets[-1]


def system_steps(name):
    """The names of the transitions, in the order of their numbers."""
    return ARRAY_SYSTEMS[name].transitions


@settings(max_examples=12)
@given(st.sampled_from(NAMES), st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(0, 10**6))
def test_lockstep_takes_the_best_legal_step_of_every_configuration(name, lengths, seed):
    """Replayed with the transition system, each step is legal and has the best score, and the trees are the same."""
    generator = np.random.default_rng(seed)
    system, parser = FRIENDLY[name], untrained(name, seed)
    text = random_text(generator, lengths)
    transitions, states = parser.run(text)
    described, _ = parser.replay(text, transitions, states.relations)
    scores = parser.classifier(torch.from_numpy(described.words), torch.from_numpy(described.symbols)).detach()
    scores = scores.masked_fill(~parser.steps.allowed[torch.from_numpy(described.codes)], -torch.inf)
    chosen = scores.gather(1, classes_taken(parser, text, transitions, states)[:, None]).squeeze(1)
    torch.testing.assert_close(chosen, scores.amax(1))
    for s, n in enumerate(lengths):
        steps = [system_steps(name)[t] for t in transitions[text.step_offsets[s] : text.step_offsets[s + 1]]]
        *_, last = system.run(n, steps)
        assert system.is_final(last)
        word = slice(text.offsets[s], text.offsets[s + 1])
        np.testing.assert_array_equal(states.heads[word], system.heads(last))
        np.testing.assert_array_equal(states.heads[word] == 0, states.relations[word] == RELATIONS.index("root"))


def classes_taken(parser, text, transitions, states):
    """The class of each step: its transition and the relation of the word that it attaches."""
    taken = []
    for s in range(len(text.offsets) - 1):
        system = FRIENDLY[parser.system.name]
        configuration = system.initial(text.offsets[s + 1] - text.offsets[s] - 1)
        for t in transitions[text.step_offsets[s] : text.step_offsets[s + 1]]:
            following = system.apply(configuration, parser.system.transitions[t])
            new = following.arcs - configuration.arcs
            relation = states.relations[text.offsets[s] + next(iter(new))[1]] if new else NO_RELATION
            [step] = np.flatnonzero((parser.steps.transitions == t) & (parser.steps.relations == relation))
            taken.append(step)
            configuration = following
    return torch.tensor(taken)


@both_systems
def test_allowed_steps_keep_the_root_relation_to_the_root(system):
    steps = untrained(system).steps
    names = system_steps(system)
    count = len(names)
    arcs = sum(name not in ("shift", "right_arc") for name in names)
    assert len(steps) == count - arcs + arcs * len(RELATIONS)
    for code, allowed in enumerate(steps.allowed.tolist()):
        for step, may in enumerate(allowed):
            name, relation = names[steps.transitions[step]], steps.relations[step]
            below_root = bool(code >> count & 1) and name in ("reduce_left", "reduce")
            fits = relation == NO_RELATION or (RELATIONS[relation] == "root") == below_root
            assert may == (bool(code >> int(steps.transitions[step]) & 1) and fits)


def test_without_a_root_relation_every_relation_may_be_below_the_root():
    steps = untrained("shift-reduce", relations=("a", "b")).steps
    assert steps.allowed[0b1111].all()


@settings(max_examples=30)
@given(st.sampled_from(NAMES), st.integers(1, 8), st.integers(0, 10**6))
def test_targets_are_the_best_transitions_with_the_gold_relation(name, n, seed):
    generator = np.random.default_rng(seed)
    system, parser = FRIENDLY[name], untrained(name)
    names, steps = system_steps(name), parser.steps
    text = random_text(generator, [n])
    relations = np.array([NO_RELATION, *generator.integers(0, len(RELATIONS), n)], np.int32)
    configurations, taken = random_computation(generator, system, n)
    _, flat = parser.replay(text, np.array([names.index(step) for step in taken], np.int8), relations)
    legal = np.array([[step in system.legal(c) for step in names] for c in configurations[:-1]])
    best = legal & (generator.random(legal.shape) < 0.6)
    targets = torch.from_numpy(steps.targets(text, flat, best, relations))
    kinds = targets - torch.arange(len(names)) * (len(RELATIONS) + 2)
    right = steps.right[targets].any(1)
    for row, configuration in enumerate(configurations[:-1]):
        expected = np.zeros(len(steps), bool)
        for t in np.flatnonzero(best[row]):
            new = system.apply(configuration, names[t]).arcs - configuration.arcs
            possible = np.array([True])
            if new:
                [(head, dependent)] = new
                gold = relations[dependent]
                impossible = (RELATIONS[gold] == "root") != (head == 0)
                possible = np.array([impossible or relation == gold for relation in range(len(RELATIONS))])
                assert kinds[row, t] == (ANY_RELATION if impossible else 2 + gold)
            expected[steps.transitions == t] = possible
        assert (kinds[row][~torch.from_numpy(best[row])] == ABSENT).all()
        assert right[row].tolist() == expected.tolist()


def test_words_and_tags_as_numbers():
    parser = untrained("shift-reduce")
    one, two = Sentence.from_words(["The", "dog", "barks"]), Sentence.from_words(["dog"])
    object.__setattr__(one, "upos", ("X", "NOUN", "ADV"))
    text = parser.encode([one, two])
    assert text.offsets.tolist() == [0, 4, 6]
    assert text.words.tolist() == [1, 4, 3, 2, 1, 3]  # 0: none, 1: root, 2: unknown
    assert text.tags.tolist() == [1, 3, 4, 2, 1, 2]
    assert parser.classifier.vectors.tolist() == [[0.0] * 3] * 3 + [[1.0] * 3] * 2


@both_systems
def test_visited_configurations_are_two_a_word(system, small_treebanks):
    sentences = read_gold(small_treebanks[1])
    parser = DeterministicParser(system, Vocabulary.from_sentences(sentences), WordVectors.none())
    configurations = visited_configurations(parser, sentences)
    assert len(configurations.fronts) == 2 * sum(map(len, sentences))
    assert np.bincount(configurations.sentences).tolist() == [2 * len(sentence) for sentence in sentences]


def test_unknown_system():
    with pytest.raises(ValueError, match="arc-standard, arc-eager"):
        untrained("covington")


def test_nothing_to_parse():
    assert untrained("arc-eager").predict([]) == []
