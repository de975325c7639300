"""A segmenter is trained before the parser, on the text of its treebank."""

import os
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from small import small_config, train

import mh4
from mh4.data.document import Document
from mh4.data.text import text_of
from mh4.models.atoms import FEATURES, script_of
from mh4.training import segmenter as training
from mh4.training.segmentation import cut_runs, gold_text
from mh4.training.segmenter import Recipe, make_reader, train_segmenter

QUICK = Recipe(size=16, hidden=8, epochs=8, dropout=0.0, learning_rate=0.02)


def sentence(*words, comments=()):
    """CoNLL-U of words, each a form or a form with MISC."""
    rows = [(word, "_") if isinstance(word, str) else word for word in words]
    lines = [f"{i}\t{form}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t{misc}" for i, (form, misc) in enumerate(rows, start=1)]
    return "\n".join([*comments, *lines]) + "\n\n"


def gold(*sentences):
    return gold_text(Document.from_conllu("".join(sentences)))


def spans(text):
    whole = "".join(text.paragraphs)
    return [whole[start:stop] for start, stop in zip(text.starts.tolist(), text.stops.tolist(), strict=True)]


def test_a_network_gets_one(small_treebanks, tmp_path, caplog):
    caplog.set_level("INFO", "mh4")
    train(*small_treebanks, tmp_path / "n", small_config(max_steps=2), device="cpu", segmenter=True)
    assert [line for line in caplog.messages if line.startswith("segmenter: dev tokens ")]
    document = mh4.load(tmp_path / "n", device="cpu")("Zub ulv. Tor teg.")
    assert "".join(document.text.split()) == "Zubulv.Torteg."
    assert all(len(sentence.roots) == 1 for sentence in document)


def test_a_perceptron_gets_none_as_text_has_no_tags(small_treebanks, tmp_path):
    options = {"system": "arc-eager", "scorer": "perceptron", "epochs": 1}
    parser = mh4.train(*small_treebanks, tmp_path / "p", **options)
    assert parser.segmenter is None
    assert not (tmp_path / "p" / "segmenter.json").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_treebanks_that_can_be_read_only_once_teach_a_segmenter_too(small_treebanks, tmp_path):
    """Standard input and the shell's <(…) are empty when they are read again."""
    pipes = [tmp_path / "train.pipe", tmp_path / "dev.pipe"]
    for pipe in pipes:
        os.mkfifo(pipe)

    def write():
        for pipe, treebank in zip(pipes, small_treebanks, strict=True):
            pipe.write_bytes(treebank.read_bytes())

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    config = small_config(max_steps=2)
    train(*pipes, tmp_path / "piped", config, device="cpu", segmenter=True)
    writer.join()
    train(*small_treebanks, tmp_path / "files", config, device="cpu", segmenter=True)
    models = [(tmp_path / name / "segmenter.safetensors").read_bytes() for name in ("piped", "files")]
    assert models[0] == models[1]


def test_the_parser_is_the_same_with_a_segmenter_and_without(small_treebanks, tmp_path):
    for name, segmenter in (("with", True), ("without", False)):
        train(*small_treebanks, tmp_path / name, small_config(max_steps=3), device="cpu", segmenter=segmenter)
    one, other = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("with", "without"))
    assert one == other


def test_a_model_that_is_replaced_loses_its_segmenter(text_model, small_treebanks, tmp_path):
    (tmp_path / "m").mkdir()
    for path in text_model.iterdir():
        (tmp_path / "m" / path.name).write_bytes(path.read_bytes())
    train(*small_treebanks, tmp_path / "m", small_config(max_steps=1), device="cpu", overwrite=True)
    assert not list((tmp_path / "m").glob("segmenter.*"))


def test_a_seed_is_one_segmenter(small_treebanks):
    train, dev = (list(mh4.read_conllu(path)) for path in small_treebanks)
    one, again, other = (train_segmenter(train, dev, seed, replace(QUICK, epochs=1, dropout=0.3)) for seed in (1, 1, 2))
    assert one.files == again.files
    assert one.files != other.files


def test_it_has_the_seed_of_the_parser_and_both_treebanks(small_treebanks, tmp_path, monkeypatch):
    seen, whole = [], training.train_segmenter

    def note(train, dev, seed):
        seen.append((len(train), len(dev), seed))
        return whole(train, dev, seed)

    monkeypatch.setattr("mh4.training.running.train_segmenter", note)
    for seed in (1, 7):
        config = small_config(max_steps=1, seed=seed)
        train(*small_treebanks, tmp_path / str(seed), config, device="cpu", segmenter=True)
    assert seen == [(40, 12, 1), (40, 12, 7)]


def test_the_loss_falls(small_treebanks, monkeypatch):
    losses, whole = [], training._loss
    monkeypatch.setattr(training, "_loss", lambda *given: losses.append(whole(*given)) or losses[-1])
    train, dev = (list(mh4.read_conllu(path)) for path in small_treebanks)
    train_segmenter(train, dev, 1, QUICK)
    losses = [float(loss.detach()) for loss in losses]
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])


def test_the_rate_rises_and_then_falls_in_a_line(small_treebanks, monkeypatch):
    rates, step = [], torch.optim.Adam.step

    def note(self):
        rates.append(self.param_groups[0]["lr"])
        step(self)

    monkeypatch.setattr(torch.optim.Adam, "step", note)
    train, dev = (list(mh4.read_conllu(path)) for path in small_treebanks)
    recipe = replace(QUICK, warmup=6)
    train_segmenter(train, dev, 1, recipe)
    shares = np.array(rates) / recipe.learning_rate
    falls = -np.diff(shares[recipe.warmup :])
    assert falls == pytest.approx(falls[0])
    line = 1 - falls[0] * np.arange(1, len(shares) + 1)
    rise = np.minimum(1, np.arange(1, len(shares) + 1) / recipe.warmup)
    assert shares == pytest.approx(rise * line)


def test_the_network_has_its_dropout_and_in_the_end_its_average(small_treebanks, monkeypatch):
    networks, averages, fit, average = [], [], training._fit, training.WeightAverage

    def note(network, *others):
        networks.append((network, network.bilstm.dropout.rate))
        fit(network, *others)

    monkeypatch.setattr(training, "_fit", note)
    monkeypatch.setattr(training, "WeightAverage", lambda *of: averages.append(average(*of)) or averages[-1])
    train, dev = (list(mh4.read_conllu(path)) for path in small_treebanks)
    train_segmenter(train, dev, 1, replace(QUICK, epochs=1, dropout=0.4, average=0.5))
    ((network, dropout),), (kept,) = networks, averages
    assert dropout == 0.4
    assert kept.decay == 0.5
    assert all(torch.equal(own, kept.averages[name]) for name, own in network.named_parameters())
    assert not network.training


@pytest.mark.parametrize(("unknown", "all_unknown"), [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
def test_features_are_taken_for_unknown(unknown, all_unknown):
    text = gold(sentence("a", "b"), sentence("a", "b"))
    reader, *_ = make_reader(text, Recipe(min_count=1, min_pair_count=1))
    examples, seen = training.Examples.of(reader, text), []

    def network(ids, lengths):
        seen.append(ids.numpy())
        return torch.zeros(len(ids), 3), [torch.zeros(len(ids), count) for count in text.classes]

    count = len(examples.ids)
    recipe = Recipe(unknown=unknown, all_unknown=all_unknown)
    training._loss(network, examples, [(0, count)], recipe, np.random.default_rng(1))
    letters = np.isin(np.arange(len(FEATURES)), training._LETTERS)
    hidden = np.full(len(FEATURES), bool(unknown)) | (letters & bool(all_unknown))
    assert (examples.ids[:, letters] >= len(FEATURES)).any()
    np.testing.assert_array_equal(seen[0], np.where(hidden, np.arange(len(FEATURES)), examples.ids))


def test_dev_decides_on_the_odds(small_treebanks, monkeypatch):
    texts, whole = [], training._with_best_odds
    monkeypatch.setattr(training, "_with_best_odds", lambda own, text: texts.append(text) or whole(own, text))
    train, dev = (list(mh4.read_conllu(path)) for path in small_treebanks)
    train_segmenter(train, dev, 1, replace(QUICK, epochs=1))
    assert texts[0].paragraphs == gold_text(dev).paragraphs


def test_odds_are_those_that_are_best_on_dev(small_treebanks):
    train, dev = (list(mh4.read_conllu(path)) for path in small_treebanks)
    segmenter = train_segmenter(train, dev, 1, QUICK)
    text = gold_text(dev)
    best, tokens, sentences = training._with_best_odds(segmenter.with_odds(9.0, 9.0), text)
    assert best.settings == segmenter.settings
    found = list(best.cut("".join(text_of(dev))))
    scores = mh4.evaluate(dev, found).scores
    assert (tokens, sentences) == pytest.approx((scores["Tokens"].f1, scores["Sentences"].f1))


ODD = """\
# newpar
1-2\tal\t_\t_\t_\t_\t_\t_\t_\tX
1\ta\tx y\tX\ty\t_\t0\troot\t_\tSpacesAfter=abc
2\tel\t_\tX\t_\t_\t1\tdep\t_\t_
2.1\tnada\t_\t_\t_\t_\t_\t_\t1:obl\t_
3\t mar \t_\tX\t_\t_\t1\tdep\t_\tSpacesAfter=xyz|SpacesBefore=!
4\tb\t_\tX\t_\t_\t1\tdep\t_\tSpacesInToken=\\s|SpaceAfter=No
5\tc d\t_\tX\t_\t_\t1\tdep\t_\tSpacesInToken=c\\n\\n\\nd
6\t\ufeff\t_\tX\t_\t_\t_\t_\t_\tSpacesAfter=\\n\\n

"""


def test_whatever_is_odd_about_a_sentence_its_text_is_learnt():
    document = Document.from_conllu(ODD)
    text = gold_text(document)
    assert spans(text) == ["al", "mar", "b", "c d", "\ufeff"]
    assert text.ends_sentence.tolist() == [False, False, False, False, True]
    assert text.several.tolist() == [True, False, False, False, False]
    assert text.multiword == [("al", ("a", "el"))]
    assert text.spaces_in_words
    train_segmenter(document, document, 1, QUICK)


def test_documents_and_paragraphs_are_paragraphs():
    text = gold(
        sentence("A", ("b", "SpaceAfter=No"), "."),
        sentence("C", comments=["# newpar"]),
        sentence(("D", r"SpacesAfter=\n\n")),
        sentence("E", comments=["# newdoc id = x"]),
        sentence(("F", r"SpacesAfter=\n"), "g"),
    )
    assert [one.strip() for one in text.paragraphs] == ["A b.", "C D", "E F\ng"]
    assert spans(text) == ["A", "b", ".", "C", "D", "E", "F", "g"]
    assert text.ends_sentence.tolist() == [False, False, True, True, True, True, False, True]
    assert not text.spaces_in_words


def test_long_paragraphs_keep_their_places():
    words = [f"w{i}" for i in range(20_000)]
    text = gold(*(sentence(*words[i : i + 10]) for i in range(0, len(words), 10)), sentence("x", comments=["# newdoc"]))
    assert len(text.paragraphs) == 2
    assert spans(text) == [*words, "x"]


def test_single_features_have_to_be_commoner_than_pairs():
    """ "x" comes three times, "y" twice; "a x" as a pair twice, "x b" three times."""
    text = gold(sentence("a", "x", "b"), sentence("a", "x", "b"), sentence("x", "b", "y"), sentence("y", "c"))

    def known(recipe):
        reader, *_ = make_reader(text, recipe)
        _, ids = reader(["a x b", "c y c"])
        names = {"lowered": [1, 2, 4], "with_previous": [1, 2, 4]}
        return {name: (ids[rows, FEATURES.index(name)] >= len(FEATURES)).tolist() for name, rows in names.items()}

    assert known(Recipe()) == {"lowered": [True, True, False], "with_previous": [True, True, False]}
    assert known(Recipe(min_count=4)) == {"lowered": [False, False, False], "with_previous": [True, True, False]}
    assert known(Recipe(min_pair_count=3)) == {"lowered": [True, True, False], "with_previous": [False, True, False]}


def test_columns_are_learnt_along():
    text = gold(sentence("A", "b", "c"))
    assert text.classes == [1, 1, 1, 2]
    assert text.values[:, 2].tolist() == [-1, -1, -1]
    assert text.values[:, 3].tolist() == [0, 0, 1]  # arcs from b to A and from c to b cross one end each


def test_arcs_across_ends_are_known_where_all_heads_are():
    whole = sentence("A", "b", "c")
    text = gold(whole, whole.replace("\t0\tdep", "\t_\t_"))
    assert text.values[:, 3].tolist() == [0, 0, 1, -1, -1, -1]


def test_runs_are_cut_where_training_cuts_them():
    text = gold(*[sentence(("Can", "SpaceAfter=No"), "not", "canoe")] * 3)
    scripts, cuts = cut_runs(text)
    assert scripts == ()
    assert list(cuts.values()) == [1 << 3]
    segmenter = train_segmenter(
        Document.from_conllu(sentence(("can", "SpaceAfter=No"), "not", "do", ".") * 50),
        Document.from_conllu(sentence(("can", "SpaceAfter=No"), "not", "do", ".") * 3),
        1,
        QUICK,
    )
    (found, *_) = segmenter.cut("cannot do .")
    assert found.forms == ("can", "not", "do", ".")


def test_scripts_without_spaces_have_no_runs():
    rng = np.random.default_rng(1)
    letters = [chr(code) for code in range(0x4E00, 0x4E00 + 60)]
    words = ["".join(rng.choice(letters, size)) for size in rng.integers(1, 4, 200)]

    def some(count):
        drawn = (rng.choice(words, 6) for _ in range(count))
        return "".join(
            sentence(*((str(word), "SpaceAfter=No") for word in one), ("。", "SpaceAfter=No")) for one in drawn
        )

    train, dev = (Document.from_conllu(some(count)) for count in (300, 20))
    assert cut_runs(gold_text(train))[0] == (script_of(letters[0]),)
    segmenter = train_segmenter(train, dev, 1, replace(QUICK, hidden=32, size=32, epochs=15))
    scores = mh4.evaluate(dev, segmenter.cut("".join(text_of(dev)))).scores
    assert scores["Sentences"].f1 > 0.99
    assert scores["Words"].f1 > 0.8
