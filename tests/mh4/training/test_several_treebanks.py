"""One model learns from several treebanks and can parse as any of them."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from small import ANNOTATING, changed, log_of, same_weights, small_config, small_greedy_config, train

import mh4
from mh4.data.errors import DataError
from mh4.data.sample import read_sample
from mh4.parsers.calibration import Calibration
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import PerceptronConfig, TransitionConfig
from mh4.parsers.definition import Definition
from mh4.parsers.ensemble import EnsembleParser
from mh4.training import trainer
from mh4.training.batches import evened
from mh4.training.calibrating import calibrate
from mh4.training.treebanks import read_gold


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Two treebanks with the same words and different trees, and a model of both: only names tell them apart.

    Treebank "one" has the trees of the sample; those of "other" are chains with a relation of their own.
    """
    folder = tmp_path_factory.mktemp("several")
    sample = read_sample()
    files: dict[str, dict[str, Path]] = {"train": {}, "dev": {}}
    for part, count in (("train", 40), ("dev", 12)):
        text = "".join(sample[part][:count])
        for name in ("one", "other"):
            files[part][name] = folder / f"{name}-{part}.conllu"
        files[part]["one"].write_text(text, encoding="utf-8")
        sentences = list(mh4.read_conllu(files[part]["one"]))
        mh4.write_conllu([_chained(one) for one in sentences], files[part]["other"])
    certain = {"mlp_dropout": 0.0, "lstm_dropout": 0.0, "block_dropout": 0.0, "word_unknown": 0.0}
    config = small_config("mst", max_steps=160, evaluation_steps=80, learning_rate=0.02, **certain)
    model = folder / "model"
    train(files["train"], files["dev"], model, config, device="cpu")
    return SimpleNamespace(**files, config=config, model=model)


def _chained(sentence):
    """Return the sentence as a chain: each word depends on the one before, with the relation "next"."""
    return sentence.replace(heads=[*range(len(sentence))], relations=["root"] + ["next"] * (len(sentence) - 1))


def test_it_parses_as_the_treebank_that_is_asked_for(several):
    parser = mh4.load(several.model, device="cpu")
    assert parser.treebanks == ("one", "other")
    scores = {
        (gold, name): parser.evaluate(several.dev[gold], treebank=name)
        for gold in ("one", "other")
        for name in ("one", "other", None)
    }
    las = {key: own.las for key, own in scores.items()}
    assert las["one", "one"] > las["one", "other"] + 20
    assert las["other", "other"] > las["other", "one"] + 20
    sentences = [sentence.forms for sentence in read_gold(several.dev["other"])]
    as_one, as_other = ([parser(own, treebank=name).heads.tolist() for own in sentences] for name in ("one", "other"))
    assert as_one != as_other
    for name, trees in (("one", as_one), ("other", as_other)):
        assert [own.heads.tolist() for own in parser.pipe(sentences, treebank=name)] == trees
        assert [parser.k_best(own, 2, treebank=name)[0].heads.tolist() for own in sentences] == trees


def test_without_a_name_it_mixes_them_evenly(several):
    parser = ChartParser.load(several.model, device="cpu")
    vectors = parser.network.encoder.of_treebank.vectors.detach()
    sentences = read_gold(several.dev["one"])[:2]
    mixed = parser.score(sentences)
    vectors[:] = vectors.mean(0)
    for name in ("one", "other"):
        for own, expected in zip(parser.score(sentences, name), mixed, strict=True):
            np.testing.assert_allclose(own, expected, atol=1e-5)


def test_scores_are_those_of_the_treebank_that_is_asked_for(several):
    """Scores are those of the trees that parsing as the same treebank finds."""
    parser = ChartParser.load(several.model, device="cpu")
    sentences = read_gold(several.dev["one"])[:4]
    found = {name: parser.predict(sentences, treebank=name) for name in ("one", "other", None)}
    for name, trees in found.items():
        best = [tree.score for tree in trees]
        assert parser.tree_scores(sentences, name).tolist() == pytest.approx(best, abs=1e-4)
        for own, tree in zip(parser.score(sentences, name), trees, strict=True):
            heads = tree.padded_heads[1:]
            assert own[0, heads, np.arange(1, len(heads) + 1)].sum() == pytest.approx(tree.score, abs=1e-4)
    assert len({tuple(tree.score for tree in trees) for trees in found.values()}) == 3


def test_the_best_model_has_the_best_mean_and_each_score_is_logged(several, monkeypatch, tmp_path):
    lines = log_of(several.model)
    for line in lines:
        for name in ("uas", "las"):
            assert line[f"dev_{name}"] == pytest.approx(sum(one[name] for one in line["dev"].values()) / 2, abs=0.011)
        assert line["dev"].keys() == {"one", "other"}
    parser = mh4.load(several.model, device="cpu")
    best = [line for line in lines if line["best"]][-1]
    for name, own in best["dev"].items():
        gold = read_gold(several.dev[name])
        assert trainer.attachment_scores(gold, parser.predict(gold, predict="heads", treebank=name)) == pytest.approx(
            (own["uas"], own["las"]), abs=0.011
        )
    scores = iter([{"one": (0, 60.0), "other": (0, 10.0)}, {"one": (0, 40.0), "other": (0, 40.0)}])
    monkeypatch.setattr(trainer.Trainer, "dev_scores", lambda self: next(scores))
    config = changed(several.config, max_steps=4, evaluation_steps=2, batch_words=2000)
    train(several.train, several.dev, tmp_path, config, device="cpu")
    assert [line["best"] for line in log_of(tmp_path)] == [True, True]


def test_equal_seeds_give_equal_models_also_after_an_interruption(several, tmp_path):
    config = changed(several.config, max_steps=24, evaluation_steps=6)
    train(several.train, several.dev, tmp_path / "whole", config, device="cpu")
    train(several.train, several.dev, tmp_path / "cut", changed(config, max_steps=12), device="cpu")
    train(several.train, several.dev, tmp_path / "cut", config, device="cpu", resume=True)
    assert same_weights(tmp_path / "whole", tmp_path / "cut")
    renamed = [{"one": files["one"], "else": files["other"]} for files in (several.train, several.dev)]
    with pytest.raises(DataError, match="another treebank"):
        train(*renamed, tmp_path / "cut", config, device="cpu", resume=True)
    unnamed = several.train["one"], several.dev["one"]
    train(*unnamed, tmp_path / "alone", changed(config, max_steps=1), device="cpu")
    named = [{"one": path} for path in unnamed]
    for treebanks, folder in ((unnamed, "cut"), (named, "alone")):
        with pytest.raises(DataError, match="another treebank"):
            train(*treebanks, tmp_path / folder, config, device="cpu", resume=True)


def test_confidences_are_calibrated_on_all_of_them(several):
    calibration = several.model / "calibration.json"
    own = calibration.read_bytes()
    words = sum(len(one) for path in several.dev.values() for one in read_gold(path))
    assert json.loads(own)["words"] == words
    calibrate(several.model, several.dev, device="cpu")
    assert calibration.read_bytes() == own
    with pytest.raises(ValueError, match="unknown treebank 'third'; those of the model: one, other"):
        calibrate(several.model, {"third": several.dev["one"]}, device="cpu")
    assert calibration.read_bytes() == own
    parser = ChartParser.load(several.model, device="cpu")
    golds = {name: read_gold(path) for name, path in several.dev.items()}
    predictions = [one for name, gold in golds.items() for one in parser.predict_with_margins(gold, name)]
    expected = Calibration.fit(predictions, [one for gold in golds.values() for one in gold])
    assert parser.calibration == expected
    sentence = read_gold(several.dev["other"])[0]
    certain, confused = (parser(sentence.forms, confidence=True, treebank=name) for name in ("other", None))
    assert np.mean(certain.confidence.margins) > np.mean(confused.confidence.margins)


def test_smaller_treebanks_are_seen_more_often():
    names = ["large"] * 90 + ["small"] * 10
    lengths = [10] * 100
    for evenness, expected in ((0.0, 10), (0.5, 30), (1.0, 90)):
        seen = Counter(evened(names, lengths, evenness, [1, 2]).tolist())
        assert sum(seen[i] for i in range(90, 100)) == expected
        assert all(seen[i] == 1 for i in range(90))
    parts = [evened(names, [10] * 90 + [40] * 10, 0.5, [1, epoch])[90:].tolist() for epoch in range(3)]
    assert {len(own) for own in parts} == {15}  # 10 sentences × sqrt(900 words / 400 words)
    assert all(set(own) == {*range(90, 100)} for own in parts)
    assert parts[0] != parts[1]
    assert evened([None] * 5, [3, 1, 4, 1, 5], 0.5, [1]).tolist() == [0, 1, 2, 3, 4]


def test_batches_mix_treebanks_and_follow_the_setting(several, tmp_path):
    sentences = {name: read_gold(path) for name, path in several.train.items()}
    sentences["other"] = sentences["other"][:10]
    for evenness, times in ((0.0, 1), (1.0, 3)):
        config = changed(several.config, treebank_evenness=evenness, batch_words=200)
        everything = [one for own in sentences.values() for one in own]
        parser = ChartParser(Definition.learn(config, everything, treebanks=[*sentences]), device="cpu")
        own = trainer.Trainer(parser, sentences, {}, tmp_path)
        batches = own.batches(0)
        seen = Counter(own.examples[i].treebank for batch in batches for i in batch)
        assert seen["one"] == 40
        assert seen["other"] >= 10 * times
        assert sum(len({own.examples[i].treebank for i in batch}) == 2 for batch in batches) > len(batches) / 2


def test_every_epoch_and_every_seed_sees_other_sentences_of_smaller_treebanks(several, tmp_path):
    sentences = {name: read_gold(path) for name, path in several.train.items()}
    sentences["other"] = sentences["other"][:25]
    everything = [one for own in sentences.values() for one in own]

    def seen(seed, epoch):
        config = changed(several.config, seed=seed)
        parser = ChartParser(Definition.learn(config, everything, treebanks=[*sentences]), device="cpu")
        return Counter(i for batch in trainer.Trainer(parser, sentences, {}, tmp_path).batches(epoch) for i in batch)

    assert seen(1, 0) == seen(1, 0)
    assert seen(1, 0) != seen(1, 1)
    assert seen(1, 0) != seen(2, 0)


def test_every_column_and_every_kind_of_network_knows_treebanks(several, tmp_path):
    chart = changed(several.config, max_steps=6, **ANNOTATING)
    greedy = changed(small_greedy_config(TransitionConfig("arc-hybrid")), max_steps=6)
    for name, config in (("chart", chart), ("greedy", greedy)):
        train(several.train, several.dev, tmp_path / name, config, device="cpu")
        parser = mh4.load(tmp_path / name, device="cpu")
        parsed = list(parser.parse(several.dev["one"], treebank="other", overwrite=True))
        assert len(parsed) == 12
        parser.save(tmp_path / f"{name}-saved")
        again = mh4.load(tmp_path / f"{name}-saved", device="cpu")
        assert again.treebanks == ("one", "other")
        assert list(again.parse(several.dev["one"], treebank="other", overwrite=True)) == parsed
    parser = ChartParser.load(tmp_path / "chart", device="cpu")
    parser.network.encoder.of_treebank.vectors.data *= 50  # so that they matter after so few steps
    gold = read_gold(several.dev["one"])
    columns = [parser.predict(gold, treebank=name, overwrite=True) for name in parser.treebanks]
    assert [one.lemmas for one in columns[0]] != [one.lemmas for one in columns[1]]
    twins = EnsembleParser([parser, parser])
    for name, own in zip(parser.treebanks, columns, strict=True):
        voted = twins.predict(gold, treebank=name, overwrite=True)
        assert [(one.upos, one.lemmas) for one in voted] == [(one.upos, one.lemmas) for one in own]


def test_ensembles_hand_the_name_to_the_members_that_know_it(several, small_model):
    for combine, others in (("votes", [small_model]), ("scores", [])):
        twins = mh4.load(several.model, several.model, *others, device="cpu", combine=combine)
        assert twins.treebanks == ("one", "other")
        right = {name: twins.evaluate(several.dev["other"], treebank=name).las for name in twins.treebanks}
        assert right["other"] > right["one"] + 20
    assert mh4.load(small_model, small_model, device="cpu").treebanks == ()


def test_names_that_nobody_knows(several, small_model):
    with pytest.raises(ValueError, match=r"^unknown treebank 'hu'; those of the model: one, other$"):
        mh4.load(several.model, device="cpu")(["a"], treebank="hu")
    with pytest.raises(ValueError, match=r"^unknown treebank 'one'; the model does not tell treebanks apart$"):
        mh4.load(small_model, device="cpu")(["a"], treebank="one")
    with pytest.raises(TypeError, match="treebank is a name; got 3"):
        mh4.load(several.model, device="cpu")(["a"], treebank=3)


def test_treebanks_that_do_not_go_together(several, small_treebanks, tmp_path):
    def refused(train_files, dev_files, message, config=several.config, error=ValueError):
        with pytest.raises(error, match=message):
            train(train_files, dev_files, tmp_path / "m", config)

    path = small_treebanks[0]
    refused({"a": path, "b": path}, {"a": path}, "training treebanks: a, b; development treebanks: a; give")
    refused({"a": path}, path, "training treebanks: a; development treebanks: one without a name; give")
    refused({}, {}, "training treebanks: none; development treebanks: none")
    refused({"a b": path}, {"a b": path}, "no white space")
    refused({"a\x1bb": path}, {"a\x1bb": path}, "or control characters; got 'a.x1bb'$")
    refused({"a": [1]}, {"a": path}, "a treebank is a file, not a list", error=TypeError)
    refused({"a": path}, {"a": path}, "a perceptron learns from a single treebank", PerceptronConfig("arc-eager"))


def test_where_the_model_comes_from(several):
    meta = json.loads((several.model / "meta.json").read_bytes())
    assert [one["name"] for one in meta["treebank"]["train"]] == ["one", "other"]
    assert [one["file"] for one in meta["treebank"]["dev"]] == ["one-dev.conllu", "other-dev.conllu"]


def test_the_segmenter_learns_from_all(several, tmp_path, monkeypatch):
    seen = []
    nothing = SimpleNamespace(files={})
    monkeypatch.setattr("mh4.training.running.train_segmenter", lambda *given: seen.append(given) or nothing)
    config = changed(several.config, max_steps=2, evaluation_steps=2)
    train(several.train, several.dev, tmp_path, config, device="cpu", segmenter=True)
    (learnt, tried, _), *_ = seen
    assert learnt == [one for path in several.train.values() for one in read_gold(path)]
    assert tried == [one for path in several.dev.values() for one in read_gold(path)]


def test_files_of_an_encoder_that_name_treebanks_wrongly(several, tmp_path):
    parser = mh4.load(several.model, device="cpu")
    parser.save(tmp_path)
    for content, problem in ((b'{"treebanks": []}', "at least 1"), (b'{"treebanks": ["a", "a"]}', "named twice")):
        (tmp_path / "SHA256SUMS").unlink(missing_ok=True)
        (tmp_path / "encoder.treebanks.json").write_bytes(content)
        with pytest.raises(DataError, match=rf"encoder.treebanks.json: treebanks: .*{problem}"):
            mh4.load(tmp_path, device="cpu")
