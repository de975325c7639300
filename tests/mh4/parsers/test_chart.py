"""Chart parsers in Python: parsing files, given heads, sentences of every length."""

import json
import logging
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small import small_config

from mh4.data.conllu import read_conllu
from mh4.data.document import Document
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.decoders import InfeasibleError, decoder_names, get_decoder
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import given_heads_bonus, is_tree
from mh4.parsers import network as network_parser
from mh4.parsers.base import Count
from mh4.parsers.chart import ChartParser
from mh4.parsers.definition import Definition
from mh4.parsers.model_files import CONFIG, VOCABULARY, WEIGHTS
from mh4.parsers.network import BATCH_COST, prediction_batches
from mh4.parsers.request import Request


@pytest.fixture(scope="module")
def parser(small_model):
    return ChartParser.load(small_model, device="cpu")


@pytest.fixture(scope="module")
def dev(small_treebanks):
    return list(read_conllu(small_treebanks[1], trees="required"))


def test_parsing_replaces_head_and_relation_only(parser, small_treebanks, tmp_path):
    parser.parse_file(small_treebanks[1], tmp_path / "out.conllu")
    before = small_treebanks[1].read_text(encoding="utf-8").splitlines()
    after = (tmp_path / "out.conllu").read_text(encoding="utf-8").splitlines()
    assert len(before) == len(after)
    changed = 0
    for one, other in zip(before, after, strict=True):
        if not one.partition("\t")[0].isdigit():
            assert one == other
            continue
        columns, others = one.split("\t"), other.split("\t")
        assert columns[:6] + columns[8:] == others[:6] + others[8:]
        changed += columns[6:8] != others[6:8]
    assert changed
    assert len(list(read_conllu(tmp_path / "out.conllu", trees="required"))) == 12


def test_batching_does_not_change_trees(parser, dev):
    together = parser.predict(dev)
    for sentence, prediction in zip(dev, together, strict=True):
        np.testing.assert_array_equal(parser.predict([sentence])[0].heads, prediction.heads)


def test_scoring_records_no_gradients(parser, dev, monkeypatch):
    modes, start = [], parser.start_scores
    monkeypatch.setattr(
        parser, "start_scores", lambda encoded: modes.append(torch.is_inference_mode_enabled()) or start(encoded)
    )
    parser.score(dev)
    parser.predict(dev)
    assert len(modes) >= 2
    assert all(modes)


def test_the_score_of_a_tree_is_that_of_its_best_derivation(parser, dev):
    for sentence, scores, prediction in zip(dev, parser.score(dev), parser.predict(dev), strict=True):
        assert scores.shape == (len(parser.decoder.channels), len(sentence) + 2, len(sentence) + 2)
        derivation = parser.decoder.decode(scores)
        np.testing.assert_array_equal(derivation.heads, prediction.padded_heads)
        assert prediction.score == pytest.approx(derivation.score, rel=1e-5)
    (alone,) = parser.score(dev[:1])
    np.testing.assert_allclose(alone, parser.score(dev)[0], rtol=1e-4, atol=1e-5)
    assert next(parser.parse(dev[:1])).score == pytest.approx(parser.decoder.decode(alone).score, rel=1e-5)


@pytest.mark.parametrize("ahead", [1, 3])
def test_scoring_ahead_does_not_change_trees(parser, dev, ahead, monkeypatch):
    monkeypatch.setattr(network_parser, "BATCH_COST", 30)
    order = []
    monkeypatch.setattr(parser, "_score", noted(parser._score, order, "scores"))
    monkeypatch.setattr(parser, "_find_trees", noted(parser._find_trees, order, "trees"))
    expected = parser.predict(dev)
    batches = len(order) // 2
    assert order == ["scores", "trees"] * batches
    assert batches > ahead
    order.clear()
    monkeypatch.setattr(parser, "ahead", ahead)
    for one, other in zip(parser.predict(dev), expected, strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
        assert one.relations == other.relations
    rest = ["scores", "trees"] * (batches - ahead)
    assert order == ["scores"] * ahead + rest + ["trees"] * ahead


def test_errors_of_the_thread_that_finds_trees_come_through(parser, dev, monkeypatch):
    monkeypatch.setattr(parser, "ahead", 1)
    impossible = dev[0].replace(heads=[*[-1] * (len(dev[0]) - 2), 0, 0])
    with pytest.raises(DataError, match="both have HEAD 0"):
        parser.predict([*(Sentence.from_words(sentence.forms) for sentence in dev[1:]), impossible], keep_heads=True)


def noted(function, order, name):
    def call(*arguments):
        order.append(name)
        return function(*arguments)

    return call


def test_prediction_batches_cover_everything_once():
    lengths = [5, 300, 1, 7, 2000, 7, 40] * 40
    batches = list(prediction_batches(lengths, lengths, 20_000))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= BATCH_COST


def test_root_relation_belongs_to_the_root(parser, dev):
    for prediction in parser.predict(dev):
        for head, relation in zip(prediction.heads, prediction.relations, strict=True):
            assert (head == 0) == (relation == "root")


def test_words_become_a_sentence_and_lists_of_words_a_document(parser):
    document = parser([["Topebon", "rupo"], ["ju"]])
    assert isinstance(document, Document)
    one, other = document
    assert is_tree(one.padded_heads, single_root=True)
    np.testing.assert_array_equal(other.heads, [0])
    assert other.relations == ("root",)
    for words in (["Topebon", "rupo"], ("Topebon", "rupo"), iter(["Topebon", "rupo"]), Sentence.from_words(one.forms)):
        sentence = parser(words)
        assert isinstance(sentence, Sentence)
        assert sentence.to_bytes() == one.to_bytes()
    assert [s.to_bytes() for s in parser([one, ["ju"]])] == [s.to_bytes() for s in document]
    assert [s.to_bytes() for s in parser.parse([["Topebon", "rupo"], other])] == [s.to_bytes() for s in document]


def test_calls_keep_heads(parser):
    sentence = Sentence.from_words(["a", "b", "c"]).replace(heads=[3, -1, -1])
    assert parser(sentence, keep_heads=True).heads[0] == 3
    assert parser([sentence], keep_heads=True)[0].heads[0] == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda parser: parser("A kutya ugat."), r"the model cannot split text: .* or give words: parser\(\[…\]\)"),
        (lambda parser: parser(Path("hu.conllu")), r"write parser.parse\('hu.conllu'\) for a file"),
        (lambda parser: parser.parse("A kutya"), r"is not a file; write parser\('A kutya'\) to parse text"),
        (lambda parser: parser.parse("missing.conllu"), r"missing.conllu: no such file"),
        (lambda parser: parser.parse(["A", "kutya"]), r"'A' is a string where a sentence is expected; write parser\("),
        (lambda parser: parser([["A"], "kutya"]), r"'kutya' is a string where a sentence is expected"),
        (lambda parser: parser(["A", ""]), r"words: sentence 1: word 2 \(''\) is empty"),
    ],
)
def test_wrong_guesses_say_what_to_write(parser, call, message):
    with pytest.raises(ValueError, match=message):
        list(call(parser))


def test_progress_is_told_after_every_sentence(parser, small_treebanks, tmp_path):
    counts = []
    total = parser.parse_file(small_treebanks[1], tmp_path / "out.conllu", on_progress=counts.append)
    assert [count.sentences for count in counts] == list(range(1, total.sentences + 1))
    assert counts[-1] == total


def test_nothing_in_nothing_out(parser, tmp_path):
    (tmp_path / "empty.conllu").write_text("")
    parser.parse_file(tmp_path / "empty.conllu", tmp_path / "out.conllu")
    assert (tmp_path / "out.conllu").read_bytes() == b""
    assert len(parser([])) == 0
    with pytest.raises(DataError, match="is the input and would be replaced"):
        parser.parse_file(tmp_path / "out.conllu", tmp_path / "out.conllu")


def test_all_heads_given_come_back(small_treebanks, dev):
    """With mst every tree is possible, so keeping all heads reproduces the gold trees and their relations."""
    parser = ChartParser(Definition.learn(small_config("mst"), dev), device="cpu")
    for sentence, prediction in zip(dev, parser.predict(dev, keep_heads=True), strict=True):
        np.testing.assert_array_equal(prediction.heads, sentence.heads)
        assert prediction.relations == sentence.relations


@pytest.mark.parametrize("decoder", decoder_names())
def test_some_heads_given_are_kept_and_the_rest_is_optimal(decoder, dev):
    parser = ChartParser(Definition.learn(small_config(decoder), dev), device="cpu")
    generator = np.random.default_rng(1)
    for sentence in dev:
        tree = closest_tree(sentence.padded_heads, get_decoder(decoder))
        known = np.where(generator.random(len(tree)) < 0.3, tree, -1)
        partial = given(sentence.forms, known)
        heads = parser.predict([partial], keep_heads=True)[0].padded_heads
        assert (heads[known >= 0] == known[known >= 0]).all()
        assert is_tree(heads, single_root=True)


def test_given_heads_that_no_tree_has_are_an_error_that_names_the_sentence(parser, tmp_path):
    path = tmp_path / "cycle.conllu"
    fine = "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    cycle = "# sent_id = bad\n1\ta\t_\t_\t_\t_\t2\t_\t_\t_\n2\tb\t_\t_\t_\t_\t1\t_\t_\t_\n\n"
    path.write_text(fine + cycle)
    with pytest.raises(DataError, match=r"cycle\.conllu:4: sentence bad: .* 1 \('a'\) → 2 .* form a cycle"):
        parser.parse_file(path, tmp_path / "out.conllu", keep_heads=True)
    assert not (tmp_path / "out.conllu").exists()
    assert parser.parse_file(path, tmp_path / "out.conllu") == Count(sentences=2, words=3)
    skipped = []
    arguments = {"keep_heads": True, "errors": skipped.append}
    assert parser.parse_file(path, tmp_path / "out.conllu", **arguments) == Count(sentences=1, words=1)
    (error,) = skipped
    assert "sentence bad: no word has HEAD 0, and the heads of words 1 ('a') → 2 ('b') → 1 ('a')" in str(error)


def test_of_given_heads_the_first_bad_sentence_of_the_file_is_reported(parser, tmp_path):
    rows = "".join(f"{d}\tw\t_\t_\t_\t_\t{h}\t_\t_\t_\n" for d, h in enumerate([2, 3, 1, 0], start=1))
    path = tmp_path / "several.conllu"
    path.write_text(f"# sent_id = long\n{rows}\n# sent_id = short\n1\ta\t_\t_\t_\t_\t1\t_\t_\t_\n\n")
    with pytest.raises(DataError, match=r"sentence long: the heads of words 1 .* form a cycle"):
        parser.parse_file(path, tmp_path / "out.conllu", keep_heads=True)
    with pytest.raises(DataError, match=r"sentence short: word 1 .* is its own head"):
        parser.predict([Sentence.from_words(["a"]), list(read_conllu(path))[1]], keep_heads=True)
    assert list(parser.attempt(list(read_conllu(path)), Request(keep_heads=True)).errors) == [0, 1]


def given(forms, heads):
    """Return a sentence with heads (n + 1,), −1 where none is given; entry 0, of the root, is ignored."""
    return Sentence.from_words(forms).replace(heads=np.array(heads)[1:])


def test_heads_outside_the_class_are_kept_by_no_parser_of_it(small_model):
    crossing = given(["a"] * 4, [-1, 3, 4, 0, 3])
    with pytest.raises(DataError, match="cannot all be kept: no mh3 derivation"):
        ChartParser(Definition.learn(small_config("mh3"), [crossing]), device="cpu").predict(
            [crossing], keep_heads=True
        )


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_given_heads_are_kept_where_only_a_beam_fits(share, dev):
    """A beam that did not look ahead would keep configurations that cannot lead to the given heads."""
    parser = ChartParser(Definition.learn(small_config("mh4-hybrid"), dev), device="cpu")
    rng = np.random.default_rng(1)
    tree = get_decoder("eisner").decode(rng.normal(size=(1, 82, 82)).astype(np.float32)).heads
    known = np.where(rng.random(81) < share, tree, -1)
    sentence = given(["Topebon"] * 80, known)
    parser.decoder.memory_limit = parser.decoder.chart_bytes(40)
    found = parser.predict([sentence], keep_heads=True)[0].padded_heads
    assert (found[known >= 0] == known[known >= 0]).all()
    assert is_tree(found, single_root=True)


@pytest.mark.parametrize("search", ["greedy", "beam:2"])
def test_given_heads_that_a_beam_loses_are_kept_by_the_chart(search, small_model, dev):
    parser, exact = (
        ChartParser.load(small_model, device="cpu", search=search),
        ChartParser.load(small_model, device="cpu"),
    )
    lost = 0
    for sentence in dev:
        partial = sentence.replace(heads=closest_tree(sentence.padded_heads, exact.decoder)[1:])
        scores = np.zeros((13, len(sentence) + 2, len(sentence) + 2), np.float32)
        try:
            parser.decoder.decode(scores, given_heads_bonus([partial.padded_heads], len(sentence) + 2)[0])
        except InfeasibleError:
            lost += 1
        assert (parser.predict([partial], keep_heads=True)[0].heads == partial.heads).all()
    assert lost


@pytest.mark.parametrize(
    ("decoder", "instead"), [("mh4-hybrid", "beam:16"), ("mh3", "beam:16"), ("1ec", "mst"), ("1ec-first-order", "mst")]
)
def test_too_long_for_the_chart_falls_back_with_one_warning(decoder, instead, dev, caplog):
    parser = ChartParser(Definition.learn(small_config(decoder), dev), device="cpu")
    parser.decoder.memory_limit = parser.decoder.chart_bytes(100)
    sentence = Sentence.from_words(["Topebon", "rupo"] * 60, source="long.txt", number=7)
    with caplog.at_level(logging.WARNING):
        heads = parser.predict([Sentence.from_words(["ju"]), sentence])[1].padded_heads
    assert is_tree(heads, single_root=True)
    assert [record.message for record in caplog.records] == [
        f"long.txt: sentence 7: the exact {decoder} chart of 120 words would not fit into memory; parsed with {instead}"
    ]


def test_a_beam_that_does_not_fit_is_named_in_the_warning(small_model):
    parser = ChartParser.load(small_model, device="cpu", search="beam:99999999")
    (warning,) = parser.attempt([Sentence.from_words(["ju"], source="a.txt")]).warnings
    expected = "a.txt: sentence 1: a beam of 99,999,999 configurations for 1 word would not fit into memory; parsed "
    assert warning == expected + "with the exact chart"
    parser.limit_charts(1)
    assert parser.attempt([Sentence.from_words(["ju"], source="a.txt")]).warnings == [expected + "with beam:16"]


@pytest.mark.parametrize("length", [1, 300, 2000])
def test_any_length(parser, length):
    sentence = parser(["Topebon", "rupo", "ju", "ya"] * (length // 4) or ["ju"])
    assert is_tree(sentence.padded_heads, single_root=True)


@pytest.mark.parametrize("search", ["greedy", "beam:4"])
def test_approximate_search(small_model, dev, search):
    parser = ChartParser.load(small_model, device="cpu", search=search)
    assert parser.decoder.fits(100_000)  # needs no chart
    assert all(is_tree(prediction.padded_heads, single_root=True) for prediction in parser.predict(dev))


def test_damaged_model_folders(small_model, tmp_path):
    with pytest.raises(DataError, match="model folder"):
        ChartParser.load(tmp_path)
    for name in (CONFIG, VOCABULARY, WEIGHTS, "encoder.words.json"):
        (tmp_path / name).write_bytes((small_model / name).read_bytes())
    (tmp_path / WEIGHTS).write_bytes((small_model / WEIGHTS).read_bytes()[:5000])
    with pytest.raises(DataError, match=r"weights\.safetensors: not a complete"):
        ChartParser.load(tmp_path)
    (tmp_path / CONFIG).write_text((small_model / CONFIG).read_text().replace('"hidden": 24', '"hidden": 30'))
    (tmp_path / WEIGHTS).write_bytes((small_model / WEIGHTS).read_bytes())
    with pytest.raises(DataError, match="does not fit"):
        ChartParser.load(tmp_path)
    (tmp_path / CONFIG).write_text('{"format": 99}')
    with pytest.raises(DataError, match="format 99"):
        ChartParser.load(tmp_path)
    for config, message in {
        '{"format": 1, "decoders": "mst"}': "config.json: decoders: unknown option; known: decoder",
        '{"format": 1, "decoder": "mh5"}': "unknown decoder 'mh5'",
        '{"format": 1, "network": {"hidden": "12"}}': "config.json: encoder.hidden: must be a valid integer",
        '{"format": 1, "network": 3}': "config.json: ",
        "[]": "config.json: not a JSON object",
    }.items():
        (tmp_path / CONFIG).write_text(config)
        with pytest.raises(DataError, match=re.escape(message)):
            ChartParser.load(tmp_path)
    (tmp_path / CONFIG).write_bytes((small_model / CONFIG).read_bytes())
    vocabulary = json.loads((small_model / VOCABULARY).read_bytes())
    for change, message in (
        ({"spaced": 3}, "spaced: must be a valid boolean"),
        ({"relations": 3}, "relations: must be a valid array"),
        ({"relations": [None]}, "relations.0: must be a valid string"),
        ({"tags": ["a\tb"]}, "tags.0: must match pattern"),
        ({"tag": []}, "tag: unknown option; known: relations, "),
    ):
        (tmp_path / VOCABULARY).write_text(json.dumps(vocabulary | change))
        with pytest.raises(DataError, match=rf"vocab\.json: .*{message}"):
            ChartParser.load(tmp_path)
    for text in ("[" * 100_000, '{"words": 9', "{"):
        (tmp_path / VOCABULARY).write_text(text)
        with pytest.raises(DataError, match=r"vocab\.json: not valid JSON"):
            ChartParser.load(tmp_path)
    (tmp_path / VOCABULARY).write_bytes((small_model / VOCABULARY).read_bytes())
    words = json.loads((small_model / "encoder.words.json").read_bytes())
    for change, message in (
        ({"words": ["a"]}, "words: must be an object"),
        ({"characters": {"a": "many"}}, "characters.a: must be a valid integer"),
    ):
        (tmp_path / "encoder.words.json").write_text(json.dumps(words | change))
        with pytest.raises(DataError, match=rf"encoder\.words\.json: {message}"):
            ChartParser.load(tmp_path)
    (tmp_path / "encoder.words.json").write_bytes((small_model / "encoder.words.json").read_bytes())
    tensors = load_file(small_model / WEIGHTS)
    tensors["labeler.output.bias"][0] = torch.nan
    save_file(tensors, tmp_path / WEIGHTS)
    with pytest.raises(DataError, match=r"weights\.safetensors: labeler\.output\.bias holds NaN or infinity"):
        ChartParser.load(tmp_path)
    with pytest.raises(DataError, match=r"config\.json: is a file, not a model folder"):
        ChartParser.load(tmp_path / CONFIG)


def test_one_long_word_does_not_make_others_long(parser):
    sentences = [Sentence.from_words(["a" * 20_000]), *(Sentence.from_words([f"w{i}"]) for i in range(5_000))]
    encoder = parser.network.encoder
    (batch,) = encoder.collate([encoder.prepare(sentence) for sentence in sentences]).batches
    assert len(batch.characters) == 1_002 + sum(len(f"w{i}") + 2 for i in range(5_000))
