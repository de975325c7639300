"""A parser with word vectors from a file: trained, resumed, saved, and loaded from its folder alone."""

import json
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small import (
    ANNOTATING,
    SMALL_ENCODER,
    changed,
    check_everything_is_predicted,
    log_of,
    same_weights,
    small_config,
    small_greedy_config,
    train,
)
from tiny_bert import make_bert
from tiny_vectors import make_vectors

import mh4
from mh4.cli.bench.stages import time_parsing, time_training
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.models.randomness import Randomness
from mh4.models.transformer_config import TransformerConfig
from mh4.models.word_vectors import TABLE, WORDS, WordVectors
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import TransitionConfig
from mh4.parsers.definition import Definition
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold
from mh4.trees.evaluation import attachment_scores

STEPS = {"max_steps": 6, "evaluation_steps": 3}


def forms_of(*treebanks):
    return [form for path in treebanks for sentence in read_gold(path) for form in sentence.forms]


@pytest.fixture(scope="module")
def vectors(small_treebanks, tmp_path_factory):
    """Vectors of two other words, listed first as the most frequent, and of every second word of the treebanks."""
    words = ["Haus", "straße", *sorted(set(forms_of(*small_treebanks)))[::2]]
    return make_vectors(tmp_path_factory.mktemp("vectors") / "tiny.vec", words)


def config_of(vectors, decoder="mst", **settings):
    return small_config(decoder, vectors=str(vectors), vectors_keep=2, **{**STEPS, **settings})


@pytest.fixture(scope="module")
def model(vectors, small_treebanks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "m"
    train(*small_treebanks, folder, config_of(vectors), device="cpu")
    return folder


def test_reading_the_file_is_reported(vectors, small_treebanks, tmp_path):
    told, size = [], vectors.stat().st_size
    config = config_of(vectors, max_steps=1)
    train(*small_treebanks, tmp_path, config, device="cpu", on_reading=lambda *now: told.append(now))
    assert told
    assert all(0 < done <= total == size for done, total in told)


def source_of(files, **settings):
    return WordVectors(replace(SMALL_ENCODER, **settings), files)


def learnt(path, *words, dev=(), **settings):
    sentences = [[Sentence.from_words(own)] if own else [] for own in (words, dev)]
    config = replace(SMALL_ENCODER, vectors=str(path), **settings)
    return WordVectors.learn(config, *sentences, lambda done, total: None)


def parses(folder, treebank):
    parser = ChartParser.load(folder, device="cpu")
    return [parser(sentence.forms).to_conllu() for sentence in read_gold(treebank)]


def made_up(path, words, sentences, rng):
    """Write sentences of four nouns and a verb that heads them, in random order; return the path."""
    lines = []
    for _ in range(sentences):
        own = [next(words) for _ in range(5)]
        verb = rng.randrange(5)
        for i, word in enumerate(own):
            head, relation = (0, "root") if i == verb else (verb + 1, "dep")
            lines.append(f"{i + 1}\t{word}\t_\t{'VERB' if i == verb else 'NOUN'}\t_\t_\t{head}\t{relation}\t_\t_\n")
        lines.append("\n")
    path.write_text("".join(lines))
    return path


def test_numbers_too_small_for_float16_are_no_error_in_a_strict_program(tmp_path):
    path = tmp_path / "small.vec"
    path.write_text("2 2\na 1 0.0000001\nb -1 0\n")
    with np.errstate(all="raise"):
        assert learnt(path, "a", "b")


def test_unseen_words_are_known_by_their_vectors(tmp_path):
    """Each word occurs once, so that only its vector tells verbs from nouns."""
    rng = random.Random(1)
    words = iter(sorted({"".join(rng.choices("abcdefgh", k=8)) for _ in range(1_000)}, key=lambda word: rng.random()))
    sizes = {"train": 40, "dev": 12, "test": 24}
    parts = [made_up(tmp_path / f"{name}.conllu", words, count, rng) for name, count in sizes.items()]
    lines = [
        f"{word.form} {(word.upos == 'VERB') + rng.gauss(0, 0.1):.3f} {rng.gauss(0, 1):.3f}\n"
        for path in parts
        for sentence in read_gold(path)
        for word in sentence.words
    ]
    (tmp_path / "pos.vec").write_text("".join(lines))
    settings = {"learning_rate": 0.02, "max_steps": 60, "evaluation_steps": 20}
    kinds = {
        "all": {"vectors": str(tmp_path / "pos.vec")},
        "treebanks": {"vectors": str(tmp_path / "pos.vec"), "vectors_keep": 0},
        "without": {},
    }
    on_dev, on_test = {}, {}
    for name, own in kinds.items():
        train(*parts[:2], tmp_path / name, small_config("mst", **settings, **own), device="cpu")
        test = read_gold(parts[2])
        on_test[name], _ = attachment_scores(test, ChartParser.load(tmp_path / name, device="cpu").predict(test))
        on_dev[name] = max(line["dev_uas"] for line in log_of(tmp_path / name))
    assert min(on_dev["all"], on_dev["treebanks"], on_test["all"]) > 90  # words of dev keep their vectors
    assert max(on_dev["without"], on_test["treebanks"], on_test["without"]) < 60


def test_resumed_training_is_the_same(vectors, small_treebanks, tmp_path):
    config = config_of(vectors, weight_average=0.9)
    train(*small_treebanks, tmp_path / "m", config, device="cpu")
    longer = changed(config, max_steps=12)
    train(*small_treebanks, tmp_path / "m", longer, device="cpu", resume=True)
    train(*small_treebanks, tmp_path / "whole", longer, device="cpu")
    assert same_weights(tmp_path / "m", tmp_path / "whole")
    assert [line["loss"] for line in log_of(tmp_path / "m")] == [line["loss"] for line in log_of(tmp_path / "whole")]
    for name in (TABLE, WORDS):
        ours, theirs = ((tmp_path / folder / f"encoder.{name}").read_bytes() for folder in ("m", "whole"))
        assert ours == theirs


def test_training_goes_on_with_the_same_vectors_only(model, vectors, small_treebanks, tmp_path):
    shutil.copytree(model, tmp_path / "m")
    config = config_of(vectors, max_steps=12)
    content = vectors.read_text()
    make_vectors(vectors, [line.split()[0] for line in content.splitlines()[1:]], seed=2)
    try:
        with pytest.raises(DataError, match=rf", or with other vectors or encoder: {TABLE} would differ$"):
            train(*small_treebanks, tmp_path / "m", config, device="cpu", resume=True)
    finally:
        vectors.write_text(content)
    train(*small_treebanks, tmp_path / "m", config, device="cpu", resume=True)


def test_it_is_loaded_with_nothing_but_its_folder(model, vectors, small_treebanks, tmp_path):
    dev = small_treebanks[1]
    expected = parses(model, dev)
    shutil.copytree(model, tmp_path / "moved")
    vectors.rename(vectors.with_name("gone"))
    try:
        assert parses(tmp_path / "moved", dev) == expected
        ChartParser.load(model, device="cpu").save(tmp_path / "saved")
    finally:
        vectors.with_name("gone").rename(vectors)
    assert parses(tmp_path / "saved", dev) == expected
    for name in (TABLE, WORDS):
        assert (tmp_path / "saved" / f"encoder.{name}").read_bytes() == (model / f"encoder.{name}").read_bytes()


def test_rows_are_neither_learnt_nor_averaged_nor_kept_twice(model, vectors, small_treebanks, tmp_path):
    names = {"vectors.linear.weight", "vectors.linear.bias", "vectors.unknown"}
    assert {name for name in load_file(model / "weights.safetensors") if name.startswith("vectors.")} == names
    state = load_file(model / "training.safetensors")
    rows = load_file(model / f"encoder.{TABLE}")["vectors"]
    assert not [name for name, own in state.items() if rows.shape[0] in own.shape]
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(Definition.learn(config_of(vectors), sentences), "cpu")
    table = parser.network.encoder.vectors.table.rows.clone()
    trainer = Trainer(parser, sentences, sentences, tmp_path)
    before = {name: own.clone() for name, own in parser.network.encoder.vectors.named_parameters()}
    trainer.step(trainer.collate(range(8)))
    assert torch.equal(parser.network.encoder.vectors.table.rows, table)
    for name, own in parser.network.encoder.vectors.named_parameters():
        assert not torch.equal(own, before[name]), name


def test_first_words_of_the_file_and_those_of_the_treebanks_are_kept(tmp_path):
    words = ["und", "der", "Maus", "haus", "katze", "im", "00", "Dev", "selten"]
    path = make_vectors(tmp_path / "v.vec", words)
    files = learnt(path, "HAUS", "Katze", "23", "Wald", dev=["Dev"], vectors_keep=2)
    assert json.loads(files[WORDS]) == {
        "words": ["und", "der", "haus", "katze", "00", "Dev"],
        "counts": {"00": 1, "haus": 1, "katze": 1},
        "coverage": 1.0,
    }
    source = source_of(files)
    known = dict(zip(["und", "der", "haus", "katze", "00", "Dev"], range(1, 7), strict=True))
    forms = ["HAUS", "haus", "Katze", "DEV", "Dev", "77", "00", "Und", "selten", "Wald"]
    expected = [known.get(form) or known.get(form.lower(), 0) for form in forms]
    expected[5] = known["00"]
    assert source.table.ids(forms).tolist() == expected
    assert set(json.loads(learnt(path, "HAUS", vectors_keep=4)[WORDS])["words"]) == {"und", "der", "Maus", "haus"}


def test_a_word_as_it_is_written_goes_before_one_in_lower_case(tmp_path):
    source = source_of(learnt(make_vectors(tmp_path / "v.vec", ["essen", "Essen", "mp3"]), "Essen"))
    assert source.table.ids(["Essen", "essen", "ESSEN", "MP3", "MP4"]).tolist() == [2, 1, 1, 3, 0]


def test_vectors_are_centred_and_equally_long(tmp_path):
    words = [f"w{i}" for i in range(9_000)]  # more than one block of normalisation
    path = make_vectors(tmp_path / "v.vec", words, size=5)
    rows = np.array([line.split()[1:] for line in path.read_text().splitlines()[1:]], np.float64)
    table = source_of(learnt(path, "w1")).table.rows
    centred = rows - rows.mean(0)
    expected = centred / np.linalg.norm(centred, axis=1)[:, None]
    assert not table[0].any()
    np.testing.assert_allclose(table[1:], expected, atol=1e-3)
    same = tmp_path / "same.vec"
    same.write_text("a 1 2\nb 1 2\n")
    assert not source_of(learnt(same, "a")).table.rows.any()


def test_words_without_a_vector_have_a_learnt_one(tmp_path):
    files = learnt(make_vectors(tmp_path / "v.vec", ["a", "b"]), "a")
    source = source_of(files, block_dropout=0.5)
    source.randomness = Randomness(1)
    sentences = [Sentence.from_words(own) for own in (["a", "x", "b"], ["b"])]
    batch = source.collate([source.prepare(one) for one in sentences])
    source.eval()
    vectors = source(batch)
    assert vectors.shape == (2, 3, SMALL_ENCODER.word_size)
    torch.testing.assert_close(vectors[0, 1], source.unknown)
    expected = source.linear(source.table.rows[1:].float())
    torch.testing.assert_close(vectors[[0, 0, 1], [0, 2, 0]], expected[[0, 1, 1]])
    before = torch.get_rng_state()
    source.train()
    dropped = torch.stack([(source(batch) == source.unknown).all(2) for _ in range(200)]).float().mean(0)
    assert ((dropped[0, [0, 2]] - 0.5).abs() < 0.15).all()
    assert dropped[0, 1] == 1
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("dev", "coverage"),
    [
        (["new", "rare", "often"], 0.0),
        (["other", "New", "new", "new"], 0.25),
        (["other", "new", "often", "often"], 0.5),  # only unseen words count
        (["other"], 1.0),
        (["RARE"], 1.0),
    ],
)
def test_rare_words_do_without_as_far_as_unseen_words_lack_vectors(tmp_path, dev, coverage):
    path = make_vectors(tmp_path / "v.vec", ["often", "rare", "other"])
    files = learnt(path, *["Often"] * 3, "often", "Rare", dev=dev)
    data = json.loads(files[WORDS])
    assert (data["counts"], data["coverage"]) == ({"often": 4, "rare": 1}, coverage)
    source = source_of(files, word_unknown=2.0, block_dropout=0.2)
    unknown = (1 - coverage) * np.sqrt([0, 2 / 6, 2 / 3, 0])  # row 0 is for words without a vector
    np.testing.assert_allclose(source.hidden, 1 - 0.8 * (1 - unknown), rtol=1e-5)
    source.randomness = Randomness(1)
    batch = source.collate([source.prepare(Sentence.from_words(["often", "rare", "other"]))])
    dropped = torch.stack([(source(batch) == source.unknown).all(2)[0] for _ in range(400)]).float().mean(0)
    np.testing.assert_allclose(dropped, source.hidden[1:], atol=0.1)


@pytest.mark.parametrize("kind", ["mh4-hybrid", "greedy"])
def test_everything_is_predicted_with_them(vectors, small_treebanks, tmp_path, kind):
    settings = {"vectors": str(vectors), "max_steps": 3, "evaluation_steps": 3, **ANNOTATING}
    greedy = small_greedy_config(TransitionConfig(system="arc-hybrid"), **settings)
    config = small_config(kind, **settings) if kind != "greedy" else greedy
    train(*small_treebanks, tmp_path / "m", config, device="cpu")
    check_everything_is_predicted(tmp_path / "m", small_treebanks[1], exact=kind != "greedy")


def test_their_speed_is_measured(vectors, model, small_treebanks):
    sizes = {"hidden": 16, "mlp": 8, "word_size": 12, "character_hidden": 8, "batch_words": 60}
    trained = time_training(small_treebanks[0], "mst", 2, "cpu", 1, {**sizes, "vectors": str(vectors)})
    assert trained["words"] > 60
    assert time_parsing(model, small_treebanks[1], "mst", 1, "cpu", 1)["share"]["encode"] > 0


def test_models_with_the_same_vectors_have_them_in_memory_once(model, small_treebanks):
    ensemble = mh4.load(model, model, device="cpu")
    one, other = (parser.network.encoder.vectors.table for parser in ensemble.members)
    assert one is other
    assert len(list(ensemble.parse(small_treebanks[1]))) == len(read_gold(small_treebanks[1]))


def test_they_join_a_transformer(vectors, small_treebanks, tmp_path):
    bert = make_bert(tmp_path / "bert", [sentence.text for sentence in read_gold(small_treebanks[0])])
    sizes = {name: own for name, own in vars(SMALL_ENCODER).items() if name != "kind"}
    built_on = {"pretrained": str(bert), "encoder_layers": 2, "vectors": str(vectors)}
    encoder = TransformerConfig(**{**sizes, **built_on})
    train(*small_treebanks, tmp_path / "m", replace(small_config("mst", **STEPS), encoder=encoder), device="cpu")
    parser = ChartParser.load(tmp_path / "m", device="cpu")
    encoder = parser.network.encoder
    sentence = read_gold(small_treebanks[1])[0]
    batch = encoder.collate([encoder.prepare(sentence)])
    with torch.no_grad():
        apart = [source(own) for source, own in zip(encoder.sources, batch.batches, strict=True)]
        torch.testing.assert_close(encoder.words_of(batch), sum(apart))
    assert [type(source).__name__ for source in encoder.sources] == ["WordEncoder", "WordVectors", "TransformerStates"]
    assert parses(tmp_path / "m", small_treebanks[1])


def test_files_that_cannot_be_built_on(small_treebanks, tmp_path):
    path = tmp_path / "v.vec"
    for content, message in (
        ("Haus 1 2\nder 1 2 3\n", f"{path}: line 2: has 3 numbers where 2 are expected"),
        ("Haus 1 2\n", f"{path}: has no word of the treebank (is it of another language?)"),
    ):
        path.write_text(content)
        with pytest.raises(DataError) as error:
            train(*small_treebanks, tmp_path / "m", config_of(path), device="cpu")
        assert str(error.value) == message
    assert not (tmp_path / "m" / "config.json").exists()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (WORDS, None, "no such file"),
        (TABLE, None, "no such file"),
        (TABLE, lambda content: content[:-9], "not a complete safetensors file: "),
        (WORDS, lambda content: b"{}", "words: is missing"),
        (WORDS, lambda content: content[:-20], "not valid JSON"),
        (
            WORDS,
            lambda content: content.replace(b'"counts": {', b'"counts": {"Wort": 2,'),
            "counts: 'Wort' is not a",
        ),
        (WORDS, lambda content: content.replace(b'"Haus",', b""), r"vectors is float16 \(\d+, 6\) where float16 \("),
        (WORDS, lambda content: content.replace(b'"Haus"', '"straße"'.encode()), "vectors is float16"),
        (TABLE, lambda content: {"vectors": torch.zeros(3)}, r"vectors is float32 \(3,\) where float16"),
        (TABLE, lambda content: {"rows": torch.zeros(3)}, "holds rows where vectors is expected"),
    ],
)
def test_broken_model_folders(model, tmp_path, name, change, message):
    shutil.copytree(model, tmp_path / "m")
    (tmp_path / "m" / "SHA256SUMS").unlink()
    path = tmp_path / "m" / f"encoder.{name}"
    content = path.read_bytes()
    path.unlink()
    if change is not None:
        broken = change(content)
        save_file(broken, path) if isinstance(broken, dict) else path.write_bytes(broken)
    file = TABLE if "float16" in message else name
    with pytest.raises(DataError, match=rf"encoder\.{file}: {message}") as error:
        mh4.load(tmp_path / "m", device="cpu")
    assert "\n" not in str(error.value)


def test_settings_of_the_api(vectors):
    config = mh4.api.configure(decoder="mst", vectors=vectors, settings={"vectors_keep": "7"})
    assert (config.encoder.vectors, config.encoder.vectors_keep) == (str(vectors), 7)
    assert config.training.patience == 20  # of the default preset
    with pytest.raises(ValueError, match="word vectors are for networks; the perceptron has none"):
        mh4.api.configure(vectors=vectors, system="arc-eager", scorer="perceptron")
