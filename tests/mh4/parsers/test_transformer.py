"""A parser on a pretrained transformer: trained, resumed, saved, and loaded from its folder alone."""

import json
import shutil
import socket
from dataclasses import replace

import pytest
import torch
from on_gpu import CERTAIN
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
from tiny_bert import make_bert, make_tokenizer
from transformers import AutoConfig, AutoModel

import mh4
from mh4 import machine
from mh4.cli.bench.stages import time_parsing, time_training
from mh4.data.errors import DataError
from mh4.models.transformer import StateBatch
from mh4.models.transformer_config import TransformerConfig
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import TransitionConfig
from mh4.parsers.definition import Definition
from mh4.training.presets import PRESETS
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold


@pytest.fixture(scope="module")
def texts(small_treebanks):
    return [sentence.text for sentence in read_gold(small_treebanks[0])]


@pytest.fixture(scope="module")
def bert(texts, tmp_path_factory):
    """The folder of a tiny BERT with random weights."""
    return make_bert(tmp_path_factory.mktemp("bert") / "tiny", texts)


def encoder_of(bert, **settings):
    sizes = {name: getattr(SMALL_ENCODER, name) for name in vars(SMALL_ENCODER) if name != "kind"}
    return TransformerConfig(
        **{**sizes, "pretrained": str(bert), "encoder_layers": 2, "encoder_rate": 1e-3, **settings}
    )


def config_of(bert, decoder="mst", **settings):
    own = {name: settings.pop(name) for name in [*settings] if name.startswith("encoder_")}
    config = replace(small_config(decoder, max_steps=6, evaluation_steps=3), encoder=encoder_of(bert, **own))
    return changed(config, **settings)


@pytest.fixture(scope="module", params=[False, True], ids=["fine-tuned", "frozen"])
def frozen(request):
    return request.param


@pytest.fixture(scope="module")
def model(bert, frozen, small_treebanks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "m"
    train(*small_treebanks, folder, config_of(bert, encoder_freeze=frozen), device="cpu")
    return folder


def new_parser(bert, sentences, **settings):
    return ChartParser(Definition.learn(config_of(bert, **settings), sentences), "cpu")


def parses(folder, treebank):
    parser = ChartParser.load(folder, device="cpu")
    return [parser(sentence.forms).to_conllu() for sentence in read_gold(treebank)]


def test_it_beats_chance(bert, frozen, small_treebanks, tmp_path):
    sizes = {"hidden": 48, "word_size": 24, "mlp": 32, "batch_words": 100, "evaluation_steps": 80, "max_steps": 80}
    config = config_of(bert, encoder_freeze=frozen, learning_rate=0.01, **sizes, **CERTAIN)
    train(small_treebanks[0], small_treebanks[0], tmp_path / "m", config, device="cpu")
    assert log_of(tmp_path / "m")[-1]["dev_uas"] > 30  # random trees have 15


@pytest.mark.parametrize("decays", [{}, {"patience": 1, "decays": 9, "decay_from": "best", "evaluation_steps": 1}])
def test_resumed_training_is_the_same(bert, frozen, small_treebanks, tmp_path, decays):
    config = config_of(bert, encoder_freeze=frozen, weight_average=0.9, **decays)
    train(*small_treebanks, tmp_path / "m", config, device="cpu")
    longer = changed(config, max_steps=12)
    train(*small_treebanks, tmp_path / "m", longer, device="cpu", resume=True)
    torch.rand(3)  # draws of a host program have no effect
    train(*small_treebanks, tmp_path / "whole", longer, device="cpu")
    assert same_weights(tmp_path / "m", tmp_path / "whole")
    assert [line["loss"] for line in log_of(tmp_path / "m")] == [line["loss"] for line in log_of(tmp_path / "whole")]


def test_weights_that_training_goes_back_to_are_those_of_the_folder(bert, small_treebanks, tmp_path):
    """Resumed training reads weights in half precision from the folder; uninterrupted training must not differ."""
    how = {"patience": 1, "decays": 9, "decay_from": "best", "evaluation_steps": 1, "learning_rate": 1.0}
    config = config_of(bert, max_steps=8, **how)
    train(*small_treebanks, tmp_path / "m", config, device="cpu")
    train(*small_treebanks, tmp_path / "m", changed(config, max_steps=14), device="cpu", resume=True)
    train(*small_treebanks, tmp_path / "whole", changed(config, max_steps=14), device="cpu")
    ours, theirs = log_of(tmp_path / "m"), log_of(tmp_path / "whole")
    later = [line for line in ours if line["step"] > 8]
    assert not any(line["best"] for line in later)
    assert len({line["learning_rate"] for line in later}) > 1  # decayed, thus went back
    states = [load_file(tmp_path / folder / "training.safetensors") for folder in ("m", "whole")]
    assert all(torch.equal(own, states[1][name]) for name, own in states[0].items())
    assert [line["loss"] for line in ours] == [line["loss"] for line in theirs]


def test_fine_tuning_changes_no_other_model(bert, small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    frozen, tuned = (
        new_parser(bert, sentences, encoder_freeze=freeze, encoder_storage="float32") for freeze in (True, False)
    )
    before = {name: own.clone() for name, own in frozen.network.named_parameters()}
    trainer = Trainer(tuned, sentences, sentences, tmp_path)
    trainer.step(*trainer.prepare(range(4)))
    assert all(torch.equal(own, before[name]) for name, own in frozen.network.named_parameters())


def test_no_random_number_of_a_host_program_is_drawn(bert, small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    before = torch.get_rng_state()
    parser = new_parser(bert, sentences)
    trainer = Trainer(parser, sentences, sentences, tmp_path)
    trainer.step(trainer.collate(range(8)))
    assert torch.equal(torch.get_rng_state(), before)
    source = parser.network.encoder.transformer.train()
    batch = source.collate([source.prepare(sentences[0])])
    assert not torch.equal(source(batch), source(batch))  # dropout
    source.eval()
    assert torch.equal(source(batch), source(batch))


def test_it_is_loaded_with_nothing_but_its_folder(model, bert, small_treebanks, tmp_path, monkeypatch):
    def no_network(*_):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    dev = small_treebanks[1]
    expected = parses(model, dev)
    shutil.copytree(model, tmp_path / "moved")
    bert.rename(bert.with_name("gone"))
    try:
        assert parses(tmp_path / "moved", dev) == expected
        ChartParser.load(model, device="cpu").save(tmp_path / "saved")
        assert parses(tmp_path / "saved", dev) == expected
    finally:
        bert.with_name("gone").rename(bert)


def test_weights_are_kept_in_half_precision_unless_asked_otherwise(bert, model, frozen, small_treebanks, tmp_path):
    config = config_of(bert, encoder_freeze=frozen, encoder_storage="float32")
    train(*small_treebanks, tmp_path / "m", config, device="cpu")
    for folder, precise in ((model, False), (tmp_path / "m", True)):
        wanted = torch.float32 if precise else torch.float16
        learnt, fixed = (
            load_file(folder / name) for name in ("weights.safetensors", "encoder.transformer.safetensors")
        )
        names = {name.removeprefix("transformer.") for name in learnt if name.startswith("transformer.model.")}
        assert names | fixed.keys() > {"pieces", "model.encoder.layer.0.output.dense.weight"}
        assert (fixed.keys() == {"pieces"}) != frozen
        assert bool(names) != frozen
        assert {own.dtype for own in fixed.values()} == {wanted}
        assert {learnt[f"transformer.{name}"].dtype for name in names} <= {wanted}
        assert learnt["transformer.linear.weight"].dtype is torch.float32
        parser = ChartParser.load(folder, device="cpu")
        assert {own.dtype for own in parser.network.parameters() if own.requires_grad} == {torch.float32}


def test_a_weight_too_large_for_half_precision_is_kept_whole(bert, model, frozen, tmp_path):
    if frozen:
        pytest.skip("nothing of it changes")
    parser = ChartParser.load(model, device="cpu")
    bias = parser.network.encoder.transformer.model.encoder.layer[0].output.dense.bias
    with torch.no_grad():
        bias[0] = 1e5
    parser.save(tmp_path / "m")
    again = ChartParser.load(tmp_path / "m", device="cpu").network.encoder.transformer
    assert again.model.encoder.layer[0].output.dense.bias[0] == 1e5


def test_a_frozen_one_is_asked_once_for_each_sentence(bert, small_treebanks, tmp_path, monkeypatch):
    train_sentences, dev = map(read_gold, small_treebanks)
    fresh, parsing = (new_parser(bert, train_sentences, encoder_freeze=True, encoder_dropout=0.5) for _ in range(2))
    sentences = [*train_sentences[:9], *dev]
    source = parsing.network.encoder.transformer.eval()
    prepared = [source.prepare(sentence) for sentence in sentences]
    with torch.no_grad():
        computed = source(source.collate(prepared))
    trainer, source = Trainer(fresh, train_sentences, dev, tmp_path), fresh.network.encoder.transformer
    assert not [*tmp_path.iterdir()]  # the cache is an unnamed file
    monkeypatch.setattr(source, "_states", None)
    batch = source.collate(prepared)
    assert isinstance(batch, StateBatch)
    with torch.no_grad():
        torch.testing.assert_close(source(batch), computed, atol=2e-3, rtol=2e-3)
    trainer.step(trainer.collate(range(4)))
    trainer.dev_scores()
    assert source.cost(sentences[0]) == len(sentences[0])
    monkeypatch.undo()
    other = dev[0].replace(forms=["Q" * 30] * len(dev[0]))
    assert not isinstance(source.collate([*prepared, source.prepare(other)]), StateBatch)


def test_in_parsing_the_states_of_a_frozen_one_are_rounded_as_in_training(bert, small_treebanks):
    sentences = read_gold(small_treebanks[1])[:2]
    source = new_parser(bert, sentences, encoder_freeze=True).network.encoder.transformer.eval()
    pieces = source.collate([source.prepare(sentence) for sentence in sentences])
    with torch.no_grad():
        states = source._states(pieces)
        assert torch.equal(source(pieces), source(StateBatch(pieces.lengths, states.half())))


def test_it_learns_at_a_rate_of_its_own_and_is_clipped_by_itself(bert, small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    how = {"encoder_rate": 0.5, "encoder_warm_up": 4, "encoder_clip": 1e-3, "warm_up": 2, "decay_factor": 0.1}
    parser = new_parser(bert, sentences, **how, learning_rate=0.25, gradient_clip=1e-2)
    trainer = Trainer(parser, sentences, sentences, tmp_path)
    rest, own = trainer.optimizer.param_groups
    assert {id(weight) for weight in own["params"]} == {
        id(weight)
        for name, weight in parser.network.named_parameters()
        if name.startswith("encoder.transformer.model.")
    }
    assert (rest["lr"], own["lr"]) == (0.125, 0.125)
    trainer.step(trainer.collate(range(8)))
    for group, limit in ((rest, 1e-2), (own, 1e-3)):
        gradients = [weight.grad for weight in group["params"] if weight.grad is not None]
        assert torch.nn.utils.get_total_norm(gradients).item() == pytest.approx(limit, rel=1e-3)
    trainer.progress.step, trainer.progress.decays, trainer.progress.learning_rate = 8, 1, 0.025
    trainer._set_learning_rates()
    assert (rest["lr"], own["lr"]) == (0.025, pytest.approx(0.05))
    assert not any(
        weight is parser.network.encoder.transformer.table for group in (rest, own) for weight in group["params"]
    )


LAYERS = {  # how many of the two layers are above a weight, by the prefix of its name
    "bert": {"encoder.layer.0.": 1, "encoder.layer.1.": 0, "embeddings.": 2},
    "distilbert": {"transformer.layer.0.": 1, "transformer.layer.1.": 0, "embeddings.": 2},
    "modernbert": {"layers.0.": 1, "layers.1.": 0, "embeddings.": 2, "final_norm.": 0},
    "deberta-v2": {"encoder.layer.0.": 1, "encoder.layer.1.": 0, "embeddings.": 2, "encoder.rel_embeddings.": 2, "": 0},
    "albert": {"embeddings.": 2, "encoder.embedding_hidden_mapping_in.": 2, "": 0},  # all layers share their weights
}


@pytest.mark.parametrize("kind", LAYERS)
def test_each_layer_learns_at_a_rate_of_its_own(kind, texts, small_treebanks, tmp_path):
    make_other(kind, tmp_path / "model", texts)
    sentences = read_gold(small_treebanks[0])
    how = {"encoder_rate": 0.5, "encoder_layer_decay": 0.5, "encoder_warm_up": 4, "encoder_clip": 1e-3}
    parser = new_parser(tmp_path / "model", sentences, **how)
    trainer = Trainer(parser, sentences, sentences, tmp_path)
    rates = {id(own): group["lr"] for group in trainer.optimizer.param_groups for own in group["params"]}
    model = dict(parser.network.encoder.transformer.model.named_parameters())
    found = set()
    for name, own in model.items():
        above = next(layers for start, layers in LAYERS[kind].items() if name.startswith(start))
        found.add(above)
        assert rates[id(own)] == pytest.approx(0.125 * 0.5**above), name
    assert found == set(LAYERS[kind].values())
    trainer.step(trainer.collate(range(8)))
    gradients = [own.grad for own in model.values() if own.grad is not None]
    assert torch.nn.utils.get_total_norm(gradients).item() == pytest.approx(1e-3, rel=1e-3)  # of all layers together


def test_a_batch_in_parts_has_the_same_gradient(bert, small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    gradients = []
    for limit in (0, 60):
        parser = new_parser(bert, sentences, encoder_dropout=0.0, part_cost=limit, gradient_clip=1e9, **CERTAIN)
        trainer = Trainer(parser, sentences, sentences, tmp_path)
        parts = trainer.parts(range(8))
        costs = [[trainer.examples[i].cost for i in part] for part in parts]
        assert sorted(i for part in parts for i in part) == [*range(8)]
        assert len(parts) == 1 if not limit else len(parts) > 1
        assert all(len(own) == 1 or len(own) * max(own) <= (limit or 10_000) for own in costs)
        trainer.step(*map(trainer.collate, parts))
        gradients.append([own.grad.clone() for own in parser.network.parameters() if own.grad is not None])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def test_a_batch_is_measured_in_pieces(bert, small_treebanks):
    sentences = read_gold(small_treebanks[0])
    encoder = new_parser(bert, sentences).network.encoder
    for sentence in sentences[:5]:
        assert encoder.cost(sentence) == sum(
            len(encoder.transformer.pieces.pieces([form]).ids) for form in sentence.forms
        )
    assert encoder.cost(sentences[0]) > len(sentences[0])


def test_words_of_a_long_sentence_have_the_states_of_the_window_around_them(bert, small_treebanks):
    sentences = read_gold(small_treebanks[0])
    source = new_parser(bert, sentences, encoder_window=18).network.encoder.transformer.eval()
    forms = [form for sentence in sentences for form in sentence.forms if len(source.pieces.pieces([form]).ids) == 1][
        :40
    ]

    @torch.no_grad()
    def states(*sentences):
        return source(source.collate([source.pieces.pieces(own) for own in sentences]))

    (whole, alone) = states(forms, forms[:16])
    torch.testing.assert_close(states(forms[:16])[0], alone[:16], atol=1e-5, rtol=1e-5)  # as in the batch
    for start, words in ((0, range(12)), (8, range(12, 20)), (16, range(20, 28)), (24, range(28, 40))):
        own = states(forms[start : start + 16])[0]
        for word in words:
            torch.testing.assert_close(whole[word], own[word - start], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("frozen", [False, True])
def test_more_windows_than_fit_into_memory_are_read_in_parts(bert, frozen, small_treebanks, monkeypatch):
    sentences = read_gold(small_treebanks[0])
    source = new_parser(bert, sentences, encoder_window=18, encoder_freeze=frozen).network.encoder.transformer.eval()
    forms = [form for sentence in sentences[:6] for form in sentence.forms]
    batch = source.collate([source.pieces.pieces(own) for own in ([*forms[:20], 40 * "ab"], forms[:3], forms[20:50])])
    sizes = []
    read = source.model.forward
    monkeypatch.setattr(source.model, "forward", lambda **of: sizes.append(len(of["inputs_embeds"])) or read(**of))
    with torch.no_grad():
        whole = source(batch)
        monkeypatch.setattr("mh4.models.transformer.MOST_PIECES", 3 * 18 + 1)
        parts = source(batch)
    assert sizes[0] == sum(sizes[1:]) > 3 >= max(sizes[1:])
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=1e-5)


def make_other(kind, folder, texts):
    """Save a model of another architecture with random weights to a folder, and return it."""
    tokenizer = make_tokenizer(texts)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    common = {**sizes, "vocab_size": len(tokenizer), "max_position_embeddings": 40, "pad_token_id": 0}
    special = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    relative = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
    own = {
        "electra": {"embedding_size": 8},
        "albert": {"embedding_size": 8},
        "modernbert": special,
        "deberta-v2": {"type_vocab_size": 0, **relative},
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = AutoModel.from_config(AutoConfig.for_model(kind, **common, **own.get(kind, {})))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.eval()


@torch.no_grad()
@pytest.mark.parametrize("kind", ["xlm-roberta", "electra", "deberta-v2", "modernbert", "mpnet"])
def test_states_are_those_of_the_model_in_transformers(kind, texts, small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])
    model = make_other(kind, tmp_path, texts)
    source = new_parser(tmp_path, sentences, encoder_storage="float32").network.encoder.transformer.eval()
    assert source.settings.longest in (39, 38, 40)  # RoBERTa and MPNet number positions from the padding index
    assert not any(type(module) is torch.nn.Linear for module in source.model.modules())  # all replaced by mh4's
    before, after = [2], [3]
    for sentence in [own for own in sentences if source.cost(own) <= 34][:2]:
        batch = source.collate([source.prepare(sentence)])
        words = [source.pieces.pieces([form]).ids.tolist() for form in sentence.forms]
        ids = before + [i for own in words for i in own] + after
        layers = torch.stack(model(torch.tensor([ids]), output_hidden_states=True).hidden_states[-2:], 2)[0]
        start = 1
        for own, found in zip(words, source._states(batch), strict=True):
            torch.testing.assert_close(found, layers[start : start + len(own)].mean(0), atol=1e-5, rtol=1e-4)
            start += len(own)


def test_a_model_without_a_head_gives_its_states_to_the_scorers(bert, small_treebanks, tmp_path):
    config = config_of(bert, encoder_head="none", **ANNOTATING)
    train(*small_treebanks, tmp_path / "m", config, device="cpu")
    names = load_file(tmp_path / "m" / "weights.safetensors").keys()
    assert "sentence.root" in names
    assert not [name for name in names if name.startswith("sentence.lstm")]
    assert parses(tmp_path / "m", small_treebanks[1])


@pytest.mark.parametrize("kind", ["mh4-hybrid", "greedy"])
def test_everything_is_predicted_with_it(bert, small_treebanks, tmp_path, kind):
    settings = {"max_steps": 3, "evaluation_steps": 3, **ANNOTATING}
    greedy = small_greedy_config(TransitionConfig(system="arc-hybrid"), **settings)
    config = small_config(kind, **settings) if kind != "greedy" else greedy
    train(*small_treebanks, tmp_path / "m", replace(config, encoder=encoder_of(bert)), device="cpu")
    check_everything_is_predicted(tmp_path / "m", small_treebanks[1], exact=kind != "greedy")


def test_its_speed_is_measured(bert, model, small_treebanks):
    sizes = {"hidden": 16, "mlp": 8, "word_size": 12, "character_hidden": 8, "batch_words": 60, "part_cost": 80}
    settings = {**PRESETS["pretrained"], **sizes, "encoder": "transformer", "pretrained": str(bert)}
    trained = time_training(small_treebanks[0], "mst", 2, "cpu", 1, settings)
    parsed = time_parsing(model, small_treebanks[1], "mst", 1, "cpu", 1)
    assert trained["words"] > 60
    assert parsed["share"]["encode"] > 0


def test_models_with_the_same_table_have_it_in_memory_once(model, small_treebanks):
    ensemble = mh4.load(model, model, device="cpu")
    one, other = ensemble.members
    assert len(list(ensemble.parse(small_treebanks[1]))) == len(read_gold(small_treebanks[1]))
    tables = [parser.network.encoder.transformer.table for parser in (one, other)]
    assert tables[0].data_ptr() == tables[1].data_ptr()


BERT_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def no_config(folder, texts):
    (folder / "config.json").unlink()


def a_pickle(folder, texts):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def no_weights(folder, texts):
    (folder / "model.safetensors").unlink()


def no_tokenizer(folder, texts):
    for path in folder.glob("tokenizer*"):
        path.unlink()


def half_a_tokenizer(folder, texts):
    path = folder / "tokenizer.json"
    path.write_bytes(path.read_bytes()[:200])


def half_the_weights(folder, texts):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def other_shapes(folder, texts):
    edit(folder / "config.json", intermediate_size=28)


def another_architecture(folder, texts):
    path = folder / "model.safetensors"
    weights = load_file(path)
    save_file({name.replace("layer.1.", "block.1."): own for name, own in weights.items()}, path, {"format": "pt"})


def an_unknown_architecture(folder, texts):
    edit(folder / "config.json", model_type="gru")


def code_of_its_own(folder, texts):
    edit(folder / "config.json", model_type="gru", auto_map={"AutoConfig": "code.C", "AutoModel": "code.M"})
    (folder / "code.py").write_text("raise SystemExit('code of a model was run')")


def another_vocabulary(folder, texts):
    make_tokenizer(texts, size=60).save_pretrained(folder)


def edit(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (no_config, r"{folder}: no config\.json \(name a folder"),
        (a_pickle, r"{folder}/pytorch_model\.bin: is a pickle, which may run code"),
        (no_weights, r"{folder}: no model\.safetensors$"),
        (no_tokenizer, r"{folder}: no tokenizer \(tokenizer\.json is missing\)$"),
        (half_a_tokenizer, r"{folder}/tokenizer\.json: cannot be used: "),
        (half_the_weights, r"{folder}/model\.safetensors: cannot be used: "),
        (other_shapes, r"{folder}/model\.safetensors: cannot be used: "),
        (another_architecture, r"{folder}: encoder\.layer\.1\.\S+ is missing: the weights are not those of a bert$"),
        (an_unknown_architecture, r"{folder}/config\.json: cannot be used: .*gru"),
        (code_of_its_own, r"{folder}/config\.json: cannot be used: "),
        (
            another_vocabulary,
            r"{folder}/tokenizer\.json: has \d+ pieces, where the model has vectors of \d+: ",
        ),
    ],
)
def test_folders_that_cannot_be_built_on(bert, texts, small_treebanks, tmp_path, break_it, message):
    folder = tmp_path / "bert"
    shutil.copytree(bert, folder)
    break_it(folder, texts)
    with pytest.raises(DataError, match=message.format(folder=folder)) as error:
        train(*small_treebanks, tmp_path / "m", config_of(folder), device="cpu")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["", "no/such/folder", "nowhere"])
def test_names_that_nothing_has(small_treebanks, tmp_path, name, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(socket.socket, "connect", lambda *_: (_ for _ in ()).throw(OSError("no network")))
    with pytest.raises(
        DataError, match=r"no folder with a pretrained model$|no such folder, and it cannot be fetched"
    ) as error:
        train(*small_treebanks, tmp_path / "m", config_of(name), device="cpu")
    assert "\n" not in str(error.value)


def test_a_slow_tokenizer_is_refused(bert, small_treebanks, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.PreTrainedTokenizerFast.is_fast", False)
    with pytest.raises(DataError, match=r"its tokenizer, \w+, is a slow one"):
        train(*small_treebanks, tmp_path / "m", config_of(bert), device="cpu")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("transformer.json", lambda content: b"{}", "not the settings of a transformer: "),
        (
            "transformer.json",
            lambda content: content.replace(b'"bert"', b'"gru"'),
            "not the settings of a transformer: ",
        ),
        (
            "transformer.json",
            lambda content: content.replace(b": 16,", b": 14,"),
            r"is .* where \(…, 14\) is expected|14",
        ),
        ("tokenizer.json", lambda content: b"{}", "is not a tokenizer: "),
        ("transformer.safetensors", lambda content: content[:-9], "not a complete safetensors file: "),
        ("transformer.safetensors", None, "no such file"),
        ("tokenizer.json", None, "no such file"),
    ],
)
def test_broken_model_folders(model, tmp_path, name, change, message):
    shutil.copytree(model, tmp_path / "m")
    (tmp_path / "m" / "SHA256SUMS").unlink()
    path = tmp_path / "m" / f"encoder.{name}"
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=message) as error:
        mh4.load(tmp_path / "m", device="cpu")
    assert "\n" not in str(error.value)


def test_weights_and_settings_of_two_models(model, frozen, texts, tmp_path):
    other = make_bert(tmp_path / "other", texts, num_hidden_layers=1)
    shutil.copytree(model, tmp_path / "m")
    (tmp_path / "m" / "SHA256SUMS").unlink()
    path = tmp_path / "m" / "encoder.transformer.json"
    data = json.loads(path.read_text())
    data["config"] |= json.loads((other / "config.json").read_text())
    path.write_text(json.dumps(data))
    with pytest.raises(DataError, match=r"model\.encoder\.layer\.1\.\S+ (is \(\S+ where none is|stands for nothing)"):
        mh4.load(tmp_path / "m", device="cpu")


def test_without_the_extra_one_line_says_what_to_install(bert, model, small_treebanks, tmp_path, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(machine, "import_module", missing)
    with pytest.raises(DataError, match=r"^transformers is not installed: pip install 'mh4\[transformers\]'$"):
        train(*small_treebanks, tmp_path / "m", config_of(bert), device="cpu")
    with pytest.raises(machine.MissingPackageError, match=r"pip install 'mh4\[transformers\]'$"):
        mh4.load(model, device="cpu")


def test_settings_of_the_api(bert, small_treebanks):
    config = mh4.api.configure(decoder="mst", encoder=bert, settings={"encoder_freeze": "1", "encoder_head": "none"})
    assert (config.encoder.pretrained, config.encoder.encoder_freeze) == (str(bert), True)
    assert (config.encoder.encoder_head, config.training.rate_fall) == ("none", "linear")
    for wrong, message in (
        ({"preset": "pretrained"}, "preset pretrained is for a pretrained encoder"),
        ({"encoder": bert, "system": "arc-eager", "scorer": "perceptron"}, "a pretrained encoder is for networks"),
        (
            {"settings": {"encoder_freeze": True}},
            'encoder_freeze is a setting of pretrained encoders; name one, as in encoder="FOLDER"',
        ),
        ({"settings": {"encoder_frozen": True}}, "unknown setting 'encoder_frozen'.*; known: "),
    ):
        with pytest.raises(ValueError, match=message):
            mh4.api.configure(**wrong)
