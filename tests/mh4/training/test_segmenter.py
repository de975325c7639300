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
from mh4.models.atoms import FEATURES, LAST_PLACE, script_of
from mh4.models.segmenter import SegmenterNetwork
from mh4.training import segmentation
from mh4.training import segmenter as training
from mh4.training.segmentation import cut_runs, gold_text
from mh4.training.segmenter import Recipe, make_reader, train_segmenter

QUICK = Recipe(size=16, hidden=8, epochs=8, dropout=0.0, learning_rate=0.02)


def sentence(*words, comments=()):
    """Return CoNLL-U for words given as FORM or (FORM, MISC)."""
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
    assert 0.5 < falls[0] * len(shares) < 1
    line = 1 - falls[0] * np.arange(1, len(shares) + 1)
    rise = np.minimum(1, np.arange(1, len(shares) + 1) / recipe.warmup)
    assert shares == pytest.approx(rise * line)


def test_what_is_drawn_at_random_is_drawn_by_the_seed(small_treebanks, monkeypatch):
    """The initial weights, dropout and the order of windows; PyTorch's global random state stays unchanged."""
    drawn = []

    def note(network, examples, recipe, draw):
        masks = network.bilstm.dropout.train()(torch.ones(99)), network.bilstm.layers[0].dropout.train()(torch.ones(99))
        drawn.append((network.table.tolist(), [mask.tolist() for mask in masks], draw.random(3).tolist()))

    monkeypatch.setattr(training, "_fit", note)
    treebank = list(mh4.read_conllu(small_treebanks[1]))
    before = torch.get_rng_state()
    for seed in (1, 1, 2):
        train_segmenter(treebank, treebank, seed, replace(QUICK, dropout=0.5))
    assert torch.equal(torch.get_rng_state(), before)
    one, again, other = drawn
    assert one == again
    assert all(mine != theirs for mine, theirs in zip(one, other, strict=True))


@pytest.fixture
def examples():
    """Training examples of 20 sentences of 4 atoms each, in 4 paragraphs."""
    sentences = [sentence("a", "b", "c", ".", comments=["# newpar"] * (i % 5 == 0)) for i in range(20)]
    text = gold(*sentences)
    reader, *_ = make_reader(text, Recipe())
    return training.Examples.of(reader, text)


def fitted(examples, monkeypatch, **recipe):
    """Return the windows of each batch, and the gradient norms that the optimizer gets if losses are scaled by 1e6."""
    batches, norms, whole, step = [], [], training._loss, torch.optim.Adam.step

    def loss(network, examples, windows, recipe, draw):
        batches.append(list(windows))
        return 1e6 * whole(network, examples, windows, recipe, draw)

    def note(self):
        gradients = [own.grad for group in self.param_groups for own in group["params"] if own.grad is not None]
        norms.append(float(torch.stack([own.norm() for own in gradients]).norm()))
        step(self)

    monkeypatch.setattr(training, "_loss", loss)
    monkeypatch.setattr(torch.optim.Adam, "step", note)
    network = SegmenterNetwork(1000, 16, 8, 1, 0.0, [1, 1, 1, 3])
    training._fit(network, examples, replace(QUICK, **recipe), np.random.default_rng(1))
    return batches, norms


@pytest.mark.parametrize(("most_atoms", "epochs"), [(1, 1), (160, 2), (239, 2), (10_000, 4)])
def test_a_large_treebank_is_passed_over_less_often(most_atoms, epochs, examples, monkeypatch):
    assert len(examples.ids) == 80
    batches, _ = fitted(examples, monkeypatch, epochs=4, most_atoms=most_atoms)
    seen = sorted(i for batch in batches for first, stop in batch for i in range(first, stop))
    assert seen == sorted([*range(80)] * epochs)


def test_a_small_treebank_has_smaller_batches_and_no_gradient_is_large(examples, monkeypatch):
    batches, norms = fitted(examples, monkeypatch, epochs=1, window=4, batch=1000, min_batches=5)
    assert 4 <= len(batches) <= 6
    few, _ = fitted(examples, monkeypatch, epochs=1, window=4, batch=10, min_batches=1)
    assert 2 <= len(few) <= 3
    assert max(norms) == pytest.approx(1, abs=1e-3)


def test_windows_begin_anywhere_and_come_in_any_order():
    counts, found = np.array([3, 20, 8, 0, 9]), []
    ends = np.cumsum(counts).tolist()
    for seed in range(60):
        windows = list(training._windows(counts, 8, np.random.default_rng(seed)))
        assert sorted(i for first, stop in windows for i in range(first, stop)) == [*range(40)]
        assert all(stop - first <= 8 for first, stop in windows)
        assert not any(first < end < stop for first, stop in windows for end in ends)  # no window spans two paragraphs
        assert {(0, 3), (23, 31)} <= {*windows}  # short paragraphs stay whole
        found.append(windows)
    assert {min(stop for first, stop in windows if first == 3) - 3 for windows in found} == {*range(1, 9)}
    assert len({windows.index((0, 3)) for windows in found}) > 2


def test_batches_have_so_many_atoms_at_least():
    windows = [(0, 5), (5, 6), (6, 16), (16, 17), (17, 21), (21, 23)]
    found = list(training._batches(iter(windows), 6))
    assert found == [windows[:2], windows[2:3], windows[3:6]]
    assert list(training._batches(iter(windows[:5]), 6))[-1] == windows[3:5]  # the rest is a batch, too


@pytest.mark.parametrize("weight", [0.0, 0.5, 2.0])
def test_the_loss_is_that_of_an_atom_and_columns_have_a_weight(weight):
    """With zero scores, each of three decisions costs log 2, and each known value the log of its number of classes."""
    text = gold(sentence("a", "b"), sentence("a", "b,", "c"))
    reader, *_ = make_reader(text, Recipe())
    examples = training.Examples.of(reader, text)
    counts = [5, 1, 4, 3]

    def network(ids, lengths):
        assert lengths.tolist() == [2, 3]
        return torch.zeros(len(ids), 3), [torch.zeros(len(ids), count) for count in counts]

    loss = training._loss(
        network, examples, [(0, 2), (2, 5)], Recipe(column_weight=weight), np.random.default_rng(1)
    ).item()
    known = (examples.columns[:5] >= 0).sum(0)
    assert known.tolist() == [4, 4, 0, 4]  # an atom that ends no token has no values
    assert loss == pytest.approx(3 * np.log(2) + weight * float(known @ np.log(counts)) / 5, rel=1e-5)


def test_of_odds_that_are_as_good_the_smallest_are_taken(small_treebanks):
    text = gold(sentence("a", "b", "."), sentence("c", "."))
    atoms, _ = make_reader(text, Recipe())[0](text.paragraphs)
    settings = training.SegmenterSettings(1, 0.0, 0.0, True, (), training.MultiwordTokens.learn([]))
    sure = np.full((5, 3), -9.0, np.float32)
    sure[:, 0] = 9.0
    sure[[2, 4], 1] = 9.0
    assert training.best_odds(atoms, sure, settings, text) == (0.0, 0.0, 1.0, 1.0)
    cautious = sure.copy()
    cautious[1, 0], cautious[3, 0] = -0.7, -0.6  # "b" and "c" do end tokens
    cautious[0, 1], cautious[2, 1] = 0.3, 0.8  # "a" does not end a sentence
    assert training.best_odds(atoms, cautious, settings, text) == (-1.0, 0.5, 1.0, 1.0)


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


def test_a_word_that_is_hidden_keeps_its_beginning_and_its_end():
    reader, *_ = make_reader(gold(sentence("a")), QUICK)
    one, other = (reader.atoms([word])[1][0] for word in ("zubonul", "zubinul"))
    assert np.flatnonzero(one != other).tolist() == sorted(training._LETTERS)


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
    settings = train_segmenter(document, document, 1, QUICK).settings
    assert settings.spaces_in_words
    assert settings.multiword.known == {"al": ("a", "el")}


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
    """Counts: 3 times "x", twice "y"; twice the pair "a x", 3 times the pair "x b"."""
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
    assert text.values[:, 3].tolist() == [0, 0, 1]  # 1 arc crosses the end of A, and 1 the end of b


def test_a_multiword_token_has_the_values_of_its_first_word():
    text = gold("1-2\tal\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta\t_\tB\tX\tF=1\t0\tr\t_\t_\n2\tel\t_\tC\tY\t_\t1\ts\t_\t_\n"
                "3\tx\t_\tC\t_\t_\t1\tt\t_\t_\n\n")  # fmt: skip
    assert text.values.tolist() == [[0, 0, 0, 1], [1, 1, -1, 0]]
    assert text.classes == [2, 2, 1, 2]


def test_more_arcs_than_some_across_an_end_count_as_so_many():
    lines = (f"{i}\tw\t_\t_\t_\t_\t{int(i > 1)}\tdep\t_\t_\n" for i in range(1, 9))
    text = gold("".join(lines) + "\n")
    assert text.classes[3] == segmentation.MOST_CROSSED + 1 == 5
    assert len(set(text.values[:4, 3].tolist())) == 1  # 7, 6, 5 and 4 arcs are one class
    assert len(set(text.values[3:, 3].tolist())) == 5


def test_rare_values_are_not_learnt(monkeypatch):
    monkeypatch.setattr(segmentation, "MOST_VALUES", 2)
    lines = (f"{i}\tw\t_\t{tag}\t_\t_\t0\tdep\t_\t_\n" for i, tag in enumerate("CBBAC_", start=1))
    text = gold("".join(lines) + "\n")
    assert text.classes[0] == 2
    assert text.values[:, 0].tolist() == [1, 0, 0, -1, 1, -1]  # B and C in alphabetical order; A is too rare


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


def test_places_of_runs_do_not_depend_on_capitals_and_a_few_runs_say_nothing_of_a_script():
    text = gold(sentence(("Can", "SpaceAfter=No"), "not"), sentence(("cann", "SpaceAfter=No"), "ot"))
    scripts, cuts = cut_runs(text)
    assert scripts == ()
    assert list(cuts.values()) == [1 << 3 | 1 << 4]
    assert cut_runs(gold(sentence(("can", "SpaceAfter=No"), "not")))[0] == ()


@pytest.mark.parametrize("run", ["İyidir", "ΚΑΛΟΣ"])
def test_places_of_runs_are_found_whatever_the_lower_case_of_the_whole_run(run):
    """Python makes two characters of İ, and another letter of Σ at the end."""
    words = sentence((run[:3], "SpaceAfter=No"), run[3:], "do", ".")
    segmenter = train_segmenter(Document.from_conllu(words * 50), Document.from_conllu(words * 3), 1, QUICK)
    (found, *_) = segmenter.cut(f"{run} do .")
    assert found.forms == (run[:3], run[3:], "do", ".")


def test_a_treebank_begins_a_paragraph():
    first, second = (sentence(("a", "SpaceAfter=No"), (".", "SpaceAfter=No")) for _ in range(2))
    one, other = (Document.from_conllu(text, source=name) for name, text in (("x", first), ("y", second)))
    assert gold_text([*one, *other]).paragraphs == ["a.\n\n", "a."]
    assert gold_text([*one, *one]).paragraphs == ["a.a."]


@pytest.mark.parametrize(("words", "lone"), [(70, True), (9, False)])
def test_a_script_without_any_space_has_no_runs_even_in_one_paragraph(words, lone):
    text = gold(sentence(*((chr(0x4E00 + i % 40), "SpaceAfter=No") for i in range(words + 1))))
    assert len(text.paragraphs) == 1
    assert cut_runs(text)[0] == (script_of("一"),) * lone


@pytest.mark.parametrize("size", [62, 63, 100])
def test_runs_are_cut_after_so_many_letters_at_most(size):
    _, cuts = cut_runs(gold(sentence(("a" * size, "SpaceAfter=No"), "b")))
    assert list(cuts.values()) == [1 << size] * (size <= LAST_PLACE)


@pytest.mark.parametrize(("times", "others", "lone"), [(1, 4000, 1), (1, 7000, 0), (2, 4000, 0)])
def test_a_script_has_runs_unless_many_of_its_runs_would_be_cut_where_nobody_knows(times, others, lone):
    words = [sentence((chr(ord("a") + i) * 2, "SpaceAfter=No"), "x") for i in range(10)] * times
    scripts, _ = cut_runs(gold(*words, sentence(*["b"] * others)))
    assert len(scripts) == lone


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
