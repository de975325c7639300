"""The sample treebank: reproducible, valid, and with the crossing arcs that it is designed for."""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from pathlib import Path

import conllu
import numpy as np
import pytest
from ulvari import LENGTHS, SPLITS, Ulvari, generate_sample
from ulvari_grammar import GRAMMAR, STOCK, phrase_blocks, stem_stocks, word_classes

from mh4.data.conllu import read_conllu
from mh4.data.sample import read_sample, write_sample
from mh4.data.sentence import Sentence
from mh4.decoders import get_decoder
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import crossed_arcs, is_tree

CHECKSUMS = {
    "train": "2226b8f4bbe0e861dae4f9a044948396239c2be1b0e4c84afad9a93c17958ea0",
    "dev": "23790f257486fddf70ab4202b6f8a56d03961a9273e5a8aacd0da10abad6e83a",
    "test": "b3851ee920ece1c1569f14851eebb33e8a2a9a7b655de68ee22cc74a476f85c7",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_sample(tmp_path_factory.mktemp("sample") / "new folder")


@pytest.fixture(scope="module")
def splits(files: dict[str, Path]) -> dict[str, list[Sentence]]:
    return {split: list(read_conllu(path, trees="required")) for split, path in files.items()}


@pytest.fixture(scope="module")
def sentences(splits: dict[str, list[Sentence]]) -> list[Sentence]:
    return [sentence for split in splits.values() for sentence in split]


def _features(sentence: Sentence, word: int) -> dict[str, str]:
    feats = sentence.feats[word - 1]
    return {} if feats == "_" else dict(pair.split("=") for pair in feats.split("|"))


def test_same_bytes_everywhere(files):
    assert {split: hashlib.sha256(path.read_bytes()).hexdigest() for split, path in files.items()} == CHECKSUMS


def test_same_seed_same_sentences():
    first = generate_sample(7)
    assert generate_sample(7) == first
    assert generate_sample(8) != first


def test_files_hold_the_generated_sentences(files):
    assert read_sample() == generate_sample(1)
    for split, blocks in read_sample().items():
        assert files[split].name == f"sample-{split}.conllu"
        assert files[split].read_text(encoding="utf-8") == "".join(blocks)


def test_quick():
    start = time.process_time()
    generate_sample(3)
    assert time.process_time() - start < 2


def test_sizes(splits, sentences):
    assert {split: len(content) for split, content in splits.items()} == SPLITS
    lengths = [len(sentence.forms) for sentence in sentences]
    assert min(lengths) >= LENGTHS.start
    assert max(lengths) < LENGTHS.stop
    assert 11 <= np.mean(lengths) <= 14


def test_no_sentence_twice(sentences):
    assert len({sentence.forms for sentence in sentences}) == len(sentences)


def test_one_root_and_a_tree(sentences):
    for sentence in sentences:
        assert is_tree(sentence.padded_heads, single_root=True), sentence.name
        assert sentence.relations[list(sentence.heads).index(0)] == "root"
        assert sentence.relations.count("root") == 1


def test_relations_of_universal_dependencies(sentences):
    counts = Counter(relation for sentence in sentences for relation in sentence.relations)
    core = ("nsubj", "obj", "iobj", "obl", "xcomp", "ccomp", "advcl", "acl:relcl", "conj")
    for relation in (
        *core,
        "amod",
        "nmod",
        "det",
        "nummod",
        "flat",
        "case",
        "mark",
        "advmod",
        "aux",
        "cop",
        "cc",
        "punct",
    ):
        assert counts[relation] >= 20, relation


def test_valid_for_the_reference_validator(files):
    api = pytest.importorskip("udtools", reason="the validator of Universal Dependencies is part of the dev extra")
    for path in files.values():
        state = api.Validator(lang="ud", level=2).validate_files([str(path)])
        assert state.passed(), str(state)


def test_round_trip_through_conllu(files):
    for path in files.values():
        text = path.read_text(encoding="utf-8")
        assert "".join(tokens.serialize() for tokens in conllu.parse(text)) == text


def test_text_comment_is_the_tokens_with_their_spaces(files):
    for tokens in conllu.parse(files["train"].read_text(encoding="utf-8")):
        covered = {
            i
            for t in tokens
            if isinstance(t["id"], tuple) and t["id"][1] == "-"
            for i in range(t["id"][0], t["id"][2] + 1)
        }
        text = ""
        for token in tokens:
            if token["id"] in covered or (isinstance(token["id"], tuple) and token["id"][1] == "."):
                continue
            text += token["form"] + ("" if (token["misc"] or {}).get("SpaceAfter") == "No" else " ")
        assert tokens.metadata["text"] == text.rstrip()


def test_multiword_tokens_and_empty_nodes(files):
    kinds: Counter[str] = Counter()
    for path in files.values():
        for tokens in conllu.parse(path.read_text(encoding="utf-8")):
            kinds.update(token["id"][1] for token in tokens if isinstance(token["id"], tuple))
            for token in tokens:
                if isinstance(token["id"], tuple) and token["id"][1] == "-":
                    parts = [t["form"] for t in tokens if t["id"] in (token["id"][0], token["id"][2])]
                    assert token["form"] == "".join(parts)
    assert kinds["-"] >= 4
    assert kinds["."] >= 2


def test_a_third_is_non_projective(splits):
    for split, content in splits.items():
        share = np.mean([crossed_arcs(sentence.padded_heads).any() for sentence in content])
        assert 0.2 <= share <= 0.42, split


def test_a_few_trees_beyond_mh4_and_1ec(sentences):
    decoder = get_decoder("mh4-hybrid")
    beyond_mh4 = beyond_1ec = 0
    for sentence in sentences:
        if crossed_arcs(sentence.padded_heads).any():
            beyond_mh4 += not np.array_equal(closest_tree(sentence.padded_heads, decoder), sentence.padded_heads)
            beyond_1ec += not _one_endpoint_crossing(sentence.padded_heads)
    assert 0.02 <= beyond_mh4 / len(sentences) <= 0.04
    assert 0.02 <= beyond_1ec / len(sentences) <= 0.04


def _one_endpoint_crossing(heads: np.ndarray) -> bool:
    """Whether, for every arc, all arcs that cross it share an endpoint."""
    arcs = [(min(h, d), max(h, d)) for d, h in enumerate(heads.tolist()) if d]
    for a, b in arcs:
        crossing = [{c, d} for c, d in arcs if a < c < b < d or c < a < d < b]
        if crossing and not set.intersection(*crossing):
            return False
    return True


def test_crossing_arcs_come_from_the_displaced_dependents(sentences):
    counts: Counter[str] = Counter()
    for sentence in sentences:
        crossed = crossed_arcs(sentence.padded_heads)
        counts.update(sentence.relations[d - 1] for d in range(1, len(crossed)) if crossed[d])
    assert all(counts[relation] >= 10 for relation in ("acl:relcl", "obj", "amod", "nmod")), counts


def test_verb_chain_puts_objects_in_the_order_of_the_verbs():
    """The order N₁ N₂ N₃ V₁ V₂ V₃ is outside both MH4 and 1EC."""
    #                 0   1  2  3  4  5  6
    heads = np.array([-1, 4, 5, 6, 0, 4, 5], np.int32)
    assert not np.array_equal(closest_tree(heads, "mh4", single_root=True), heads)
    assert not _one_endpoint_crossing(heads)
    grammar = Ulvari(random.Random(3))
    for _ in range(2000):
        words = grammar.sentence()
        by_class = {word.xpos: word for word in words}
        if "infinitive.help" in by_class and {"obj"} == {w.relation for w in words if w.destination}:
            verbs = [w for w in words if w.upos == "VERB" and w.xpos in ("control", "infinitive.help")]
            verbs.append(next(w for w in words if w.xpos == "infinitive" and w.head is verbs[-1]))
            nouns = [next(w for w in words if w.head is verb and w.relation in ("nsubj", "obj")) for verb in verbs]
            positions = [words.index(w) for w in nouns + verbs]
            if verbs[1].head is verbs[0] and all(noun.destination == "field" for noun in nouns[1:]):
                assert positions == sorted(positions)
                return
    pytest.fail("no chain among 2000 sentences")


def test_dependents_agree_with_their_heads_wherever_they_stand(sentences):
    checked: Counter[tuple[str, bool]] = Counter()
    for sentence in sentences:
        crossed = crossed_arcs(sentence.padded_heads)
        for d, relation in enumerate(sentence.relations, 1):
            head, own = _features(sentence, int(sentence.padded_heads[d])), _features(sentence, d)
            if relation in ("amod", "det", "acl:relcl"):
                names = {"Gender": "Gender", "Number": "Number", "Case": "Case"}
            elif relation == "nmod":
                names = {f"{name}[psed]": name for name in ("Gender", "Number", "Case")}
            elif relation == "nsubj" and sentence.upos[sentence.padded_heads[d] - 1] == "VERB" and "Case" not in head:
                names = {"Gender": "Gender", "Number": "Number"}
            else:
                continue
            assert {name: own[name] for name in names} == {name: head[of] for name, of in names.items()}, sentence.name
            checked[relation, bool(crossed[d])] += 1
    assert all(checked[relation, True] for relation in ("amod", "nmod", "acl:relcl"))


def test_endings_tell_the_case(sentences):
    """The last consonant of a nominal ending marks the case, so it is recognisable even with unseen stems."""
    for sentence in sentences:
        for word, (form, xpos) in enumerate(zip(sentence.forms, sentence.xpos, strict=True), 1):
            if xpos in ("noun", "adjective", "determiner"):
                ending = form.removesuffix("i") if _features(sentence, word)["Number"] == "Plur" else form
                case = {"n": "Acc", "k": "Dat", "r": "Loc"}.get(ending[-1], "Nom")
                assert case == _features(sentence, word)["Case"], form


def test_many_test_words_are_unseen(splits):
    known = {form.lower() for sentence in splits["train"] for form in sentence.forms}
    unseen = [form.lower() not in known for sentence in splits["test"] for form in sentence.forms]
    assert 0.35 <= np.mean(unseen) <= 0.5
    lemmas = {lemma for sentence in splits["train"] for lemma in sentence.lemmas}
    unseen_lemmas = [lemma not in lemmas for sentence in splits["test"] for lemma in sentence.lemmas]
    assert 0.12 <= np.mean(unseen_lemmas) <= 0.25


def test_stems():
    stems = stem_stocks()
    for name, size in STOCK.items():
        assert len(set(stems[name])) == size
    everything = [stem for stock in stems.values() for stem in stock]
    assert len(set(everything)) == len(everything)
    assert all(stem[-1] in "bfgkmpvz" for name in STOCK for stem in stems[name])


def test_grammar_is_closed():
    """Every phrase and word class is defined and used, and every move has a site of its name."""
    grammar, words = phrase_blocks(), word_classes()
    lines = [line for blocks in grammar.values() for block in blocks for line in block.lines]
    used = {line.phrase for line in lines if line.relation not in ("HEAD", "site")}
    used |= {block.base for blocks in grammar.values() for block in blocks} | {"Main"}
    assert used == set(grammar) | set(words)
    sites = {line.phrase for line in lines if line.relation == "site"}
    assert {site for line in lines for site, _ in line.moves} <= sites
    assert all(sum(chance for _, chance in line.moves) <= 1 for line in lines)
    assert len(lines) == sum(line.startswith(" ") and bool(line.strip()) for line in GRAMMAR.splitlines())
    for blocks in grammar.values():
        for block in blocks:
            assert not block.lines or sum(line.relation == "HEAD" for line in block.lines) == 1


def test_move_without_a_site_is_an_error(monkeypatch):
    monkeypatch.setattr(
        "ulvari_grammar.GRAMMAR", "Main 1 : transitive\n  HEAD\n  obj  noun  Case=Acc  → nowhere 100%\n"
    )
    phrase_blocks.cache_clear()
    try:
        with pytest.raises(ValueError, match="no site 'nowhere'"):
            Ulvari(random.Random(1)).sentence()
    finally:
        phrase_blocks.cache_clear()
