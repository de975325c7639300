import numpy as np
import pytest

from mh4.parsers.systems import GREEDY_SYSTEMS
from mh4.parsers.template_sets import MERGED, ZHANG_NIVRE, select
from mh4.parsers.templates import compile_templates, feature_keys
from mh4.transitions.arrays.state import add_arc, new_state, reset

TOKENS = ("a", "b", "c")
TEMPLATES = ("a.w", "b.w", "a.w a.p", "a.w b.w d", "b.l c.vl", "c.vr a.sl", "c.sr", "a.p b.p c.p")


def naive_features(templates, words, state, tokens, group):
    """Return each feature as a tuple of its template, its group and its values."""
    features = []
    for template in templates:
        values, exists = [], False
        for atom in template.split():
            name, _, attribute = atom.partition(".")
            if atom == "d":
                a, b = tokens[:2]
                exists |= a >= 0 or b >= 0
                distance = abs(a - b)
                bucket = distance if distance < 5 else 5 if distance <= 10 else 6
                values.append(bucket if a >= 0 and b >= 0 else None)
                continue
            token = tokens[TOKENS.index(name)]
            exists |= token >= 0
            if token < 0:
                values.append(None)
                continue
            deps = [d for d in range(len(state.heads)) if state.heads[d] == token]
            sides = {"l": [d for d in deps if d < token], "r": [d for d in deps if d > token]}
            match attribute:
                case "w" | "p":
                    values.append(int(words["wp".index(attribute), token]))
                case "l":
                    values.append(int(state.relations[token]))
                case "vl" | "vr":
                    values.append(len(sides[attribute[1]]))
                case _:
                    values.append(frozenset(int(state.relations[d]) for d in sides[attribute[1]]))
        if exists:
            features.append((template, group, tuple(values)))
    return features


def test_keys_are_equal_where_features_are():
    rng = np.random.default_rng(3)
    templates = compile_templates(TEMPLATES, TOKENS)
    values, keys = np.zeros(len(templates.atoms), np.int64), np.zeros(len(TEMPLATES), np.int64)
    key_of, feature_of = {}, {}
    for _ in range(400):
        n = int(rng.integers(1, 16))
        state = new_state(n)
        reset(state, n)
        state.heads[n + 1 :] = state.relations[n + 1 :] = -1
        words = rng.integers(0, 3, (2, 5 + n + 1)).astype(np.int32)
        for d in range(1, n + 1):
            head = int(rng.integers(0, n + 1))
            if head != d and rng.random() < 0.6:
                add_arc(state, head, d, int(rng.integers(3)))
        tokens, group = rng.integers(-1, n + 1, 3).astype(np.int32), int(rng.integers(2))
        expected = naive_features(TEMPLATES, words[:, 5:], state, tokens, group)
        count = feature_keys(templates, words, 5, state, tokens, group, values, keys)
        assert count == len(expected)
        for feature, key in zip(expected, keys[:count].tolist(), strict=True):
            assert key != 0
            assert key_of.setdefault(feature, key) == key
            assert feature_of.setdefault(key, feature) == feature
    assert len(key_of) > 300


@pytest.mark.parametrize("system", GREEDY_SYSTEMS.values(), ids=GREEDY_SYSTEMS)
def test_templates_of_systems_compile(system):
    templates = system.compiled_templates()
    assert len(templates.conjunctions) == len(system.templates)
    used = {system.tokens[token] for token in templates.atoms[:, 0]}
    neural = {"arc-eager": {"s1"}}  # tokens that only ``positions`` of a neural scorer or other templates read
    assert used == set(system.tokens) - neural.get(system.name, set())


def test_published_sets():
    assert len(ZHANG_NIVRE) == 72
    assert "s2.w s2.p s1.w s1.p" in MERGED
    assert "gp.p s2.p s1.p" in MERGED
    assert not [template for template in select(MERGED, ("s1", "s2")) if "gp" in template or "q1" in template]
    assert "s2.w s1.w d" in select(MERGED, ("s1", "s2"))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("x.w", "unknown atom 'x.w'.*known tokens: a, b, c"),
        ("a.q", "attributes: w, p, l"),
        ("a", "unknown atom"),
        ("", "1 to 4 atoms"),
        ("a.w a.p b.w b.p c.w", "1 to 4 atoms"),
        ("a.p a.w", "given twice"),
    ],
)
def test_mistakes_in_templates(template, message):
    with pytest.raises(ValueError, match=message):
        compile_templates(("a.w a.p", template), TOKENS)
