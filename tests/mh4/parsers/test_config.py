"""Configurations: checked when made, read back from JSON of this version and of earlier ones."""

import json
from dataclasses import asdict, replace

import pytest
from paths import GOLDEN_FOLDER

from mh4.models.bilstm_config import BiLSTMConfig
from mh4.models.network_config import LossWeights, ScorerConfig
from mh4.parsers.column_weights import ColumnWeights
from mh4.parsers.config import (
    COLUMNS_UP_TO_3,
    KINDS,
    ChartConfig,
    GreedyConfig,
    PerceptronConfig,
    TrainingConfig,
    TransitionConfig,
    as_dict,
    from_dict,
    make_config,
    parse_settings,
)


@pytest.mark.parametrize(
    "config",
    [
        ChartConfig("mst", single_root=False, training=TrainingConfig(seed=4)),
        GreedyConfig(TransitionConfig("mh4", positions="s2,s1,s0,b0"), BiLSTMConfig(hidden=8), ScorerConfig(mlp=9)),
        PerceptronConfig("arc-standard", "static", iterations=3, tag_column="xpos"),
    ],
    ids=KINDS,
)
def test_configurations_are_read_back(config):
    saved = as_dict(config)
    assert (saved["format"], saved["kind"]) == (4, config.kind)
    assert from_dict(json.loads(json.dumps(saved))) == config
    for name in ("encoder", "scorers", "training", "iterations"):
        saved.pop(name, None)
    assert type(from_dict(saved)) is type(config)  # missing parts have defaults


@pytest.mark.parametrize("kind", KINDS)
def test_configurations_of_format_1_had_no_kind(kind):
    data = json.loads((GOLDEN_FOLDER / "models" / kind / "config.json").read_bytes())
    assert data["format"] == 1
    assert "kind" not in data
    config = from_dict(data)
    assert type(config) is KINDS[kind]
    kept = as_dict(config)
    parts = [part for part in kept.values() if isinstance(part, dict)]
    for name in {"transitions", "network", "training"} & data.keys():
        for setting, value in data[name].items() - {("feature_weight", 0.0)}:
            assert [part[setting] for part in parts if setting in part] == [value], setting


def test_configurations_of_format_2_had_a_weight_for_each_column():
    network = {"upos_weight": 0.0, "xpos_weight": 0.2, "feats_weight": 0.3, "lemma_weight": 0.5, "hidden": 8}
    data = {"format": 2, "kind": "chart", "decoder": "mst"}
    wanted = ChartConfig(
        "mst", encoder=BiLSTMConfig(hidden=8), weights=LossWeights(analysis_weight=0.2, lemma_weight=0.5)
    )
    assert from_dict(data | {"network": network}) == wanted
    assert from_dict(data) == ChartConfig("mst")
    with pytest.raises(ValueError, match="analysis_weight"):
        from_dict(data | {"network": network | {"upos_weight": "much"}})
    with pytest.raises(ValueError, match="upos_weight"):
        from_dict(data | {"format": 3, "network": network})


def test_configurations_of_format_3_had_one_part_for_the_network():
    network = {"encoder": "bilstm", "hidden": 8, "mlp": 9, "tagger_weight": 0.0, "spelling_dropout": 0.5}
    training = {"min_word_count": 2, "word_unknown": 0.5, "character_unknown": 0.1, "seed": 4}
    data = {"format": 3, "kind": "greedy", "transitions": {"system": "mh4"}, "network": network, "training": training}
    assert from_dict(data) == GreedyConfig(
        TransitionConfig("mh4"),
        BiLSTMConfig(hidden=8, spelling_dropout=0.5, min_word_count=2, word_unknown=0.5, character_unknown=0.1),
        ScorerConfig(mlp=9),
        LossWeights(tagger_weight=0.0),
        TrainingConfig(seed=4),
    )
    with pytest.raises(ValueError, match="network: unknown option"):
        from_dict(data | {"format": 4})


def test_weights_of_columns_are_saved_and_older_models_keep_theirs(monkeypatch):
    weights = as_dict(ChartConfig())["columns"]
    assert weights == COLUMNS_UP_TO_3 == asdict(ColumnWeights())
    edited = {name: 2 * value for name, value in weights.items()}
    for kind in ("chart", "greedy"):
        data = {"format": 4, "kind": kind, "columns": edited}
        assert asdict(from_dict(data).columns) == edited
        assert asdict(from_dict({"format": 3, "kind": kind}).columns) == weights
    monkeypatch.setitem(COLUMNS_UP_TO_3, "form_weight", 0.25)  # as if the default had changed since
    assert from_dict({"format": 3, "kind": "chart"}).columns == ColumnWeights(form_weight=0.25)
    assert from_dict({"format": 4, "kind": "chart"}).columns == ColumnWeights()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"format": 99}, "model format 99; this version reads formats 1 to 4"),
        ({}, "model format None"),
        ({"format": 2}, "unknown kind of model None; known: chart, greedy, perceptron"),
        ({"format": 2, "kind": ["chart"]}, "unknown kind of model ['chart']"),
        (
            {"format": 1, "decoders": "mst"},
            "decoders: unknown option; known: decoder, single_root, encoder, scorers, weights",
        ),
        ({"format": 1, "decoder": "mh5"}, "decoder: unknown decoder 'mh5'; known: mst"),
        ({"format": 1, "training": {"batch_words": 0}}, "training.batch_words: must be greater than or equal to 1; g"),
        ({"format": 1, "training": {"seed": True}}, "training.seed: must be a valid integer; got True"),
        ({"format": 1, "network": {"hidden": "12"}}, "encoder.hidden: must be a valid integer; got '12'"),
        ({"format": 1, "network": {"hiden": 12}}, "unknown setting 'hiden'; known: agreement_weight, "),
        ({"format": 1, "network": 3}, "network: must be an object; got 3"),
        ({"format": 1, "network": {"layers": 1, "tagger_layer": 2}}, "encoder: tagger_layer must be from 0 to 1; got"),
        ({"format": 2, "kind": "greedy", "transitions": {"systm": "mh4"}}, "transitions.systm: unknown option"),
        ({"format": 2, "kind": "perceptron", "tag_column": "x"}, "tag_column: must be 'upos' or 'xpos'; got 'x'"),
    ],
)
def test_errors_say_where_and_what_would_be_right(data, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        from_dict(data)
    assert str(error.value).startswith(message)


def test_settings_are_named_without_their_part():
    config = make_config(ChartConfig, {"decoder": "mh3", "hidden": "64", "learning_rate": "0.001", "seed": 5})
    assert config == ChartConfig(
        "mh3", encoder=BiLSTMConfig(hidden=64), training=TrainingConfig(learning_rate=0.001, seed=5)
    )
    config = make_config(GreedyConfig, {"system": "mh4", "positions": "s2,s1,s0,b0", "exploration": "0.5", "mlp": 64})
    assert config.transitions.position_names == ["s2", "s1", "s0", "b0"]
    assert (config.scorers.mlp, config.transitions.exploration) == (64, 0.5)
    config = make_config(PerceptronConfig, {"system": "arc-standard", "oracle": "static", "exploration": "0.5"})
    assert config == PerceptronConfig("arc-standard", "static", exploration=0.5)


@pytest.mark.parametrize(
    ("config_type", "settings", "message"),
    [
        (ChartConfig, {"lr": 1}, "unknown setting 'lr'; write learning_rate; known: .*batch_words"),
        (ChartConfig, {"system": "mh4"}, "'system'; write system=\"arc-eager\", which makes .*greedy;"),
        (ChartConfig, {"oracle": "static"}, '\'oracle\'; write oracle="static" with system="arc-eager"; known'),
        (PerceptronConfig, {"epochs": 2}, "unknown setting 'epochs'; write epochs=30; known: exploration"),
        (ChartConfig, {"rarity_penalty": "1e308"}, "columns.rarity_penalty: must be less than .*0; got '1e308'"),
        (ChartConfig, {"form_smoothing": 1e39}, "columns.form_smoothing: must be less than .*0; got 1e"),
        (GreedyConfig, {"word_unknown": "1e39"}, "encoder.word_unknown: must be less than .*0; got '1e39'"),
        (ChartConfig, {"hidden": "big"}, "encoder.hidden: must be a valid integer, .*; got 'big'"),
        (ChartConfig, {"hidden": 191}, "encoder.hidden: must be a multiple of 2; got 191"),
        (ChartConfig, {"learning_rate": "nan"}, "training.learning_rate: must be a finite number; got 'nan'"),
        (ChartConfig, {"batch_words": 0, "patience": 0}, "batch_words: must .* 1; got 0; training.patience: must"),
        (ChartConfig, {"characters": "none"}, "characters: must be 'rare' or 'all'"),
        (ChartConfig, {"tagger_layer": -1}, "encoder.tagger_layer: must be greater than or equal to 0; got -1"),
        (ChartConfig, {"encoder": "gru"}, "unknown encoder 'gru'; known: bilstm"),
        (GreedyConfig, {"system": "arc-cubic"}, "unknown system 'arc-cubic'; known: arc-standard"),
        (GreedyConfig, {"oracle": "magic"}, "unknown oracle 'magic' of arc-hybrid; known: static, dynamic"),
        (GreedyConfig, {"positions": "s0,s9,,b0"}, "unknown positions 's9', ''; arc-hybrid has: s0, b0"),
        (GreedyConfig, {"near_exploration": 2}, "transitions.near_exploration: must be less than or equal to 1"),
        (GreedyConfig, {"form": "bilinear"}, "unknown form 'bilinear'; known: concatenated, biaffine"),
        (GreedyConfig, {"system": "mh4", "positions": "s2,s1,b0", "form": "biaffine"}, "of two positions, not of s2,"),
        (PerceptronConfig, {"speed": 1}, "unknown setting 'speed'; known: exploration"),
        (
            PerceptronConfig,
            {"oracle": "x"},
            "unknown oracle 'x' of arc-eager; known: static, dynamic, exact, approximate",
        ),
        (PerceptronConfig, {"iterations": 0}, "iterations: must be greater than or equal to 1; got 0"),
        (PerceptronConfig, {"seed": 2**63}, "seed: must be less than"),
    ],
)
def test_wrong_settings(config_type, settings, message):
    with pytest.raises(ValueError, match=message):
        make_config(config_type, settings)


def test_settings_on_the_command_line():
    assert parse_settings(["hidden=3", "positions=s0,b0", "hidden=4"]) == {"hidden": "4", "positions": "s0,b0"}
    with pytest.raises(ValueError, match="a setting has the form NAME=VALUE, not 'hidden'"):
        parse_settings(["hidden"])


def test_what_a_greedy_parser_looks_at_and_is_told_depends_on_its_system():
    assert TransitionConfig("covington").oracle == "dynamic"
    assert TransitionConfig("mh4").oracle == "static"
    assert TransitionConfig("mh4").exploration_at(9) == 0.0
    assert replace(TransitionConfig("mh4", positions="s2,s1,s0,b0"), positions="").positions == "s1,s0,b0"
    assert TransitionConfig("arc-hybrid").form == "biaffine"
    for system, positions in (("mh4", ""), ("mh4", "s0,b0"), ("arc-hybrid", "s1,s0,b0")):
        assert TransitionConfig(system, positions=positions).form == "concatenated"
    assert PerceptronConfig("arc-standard", "static", exploration=0.5).exploration_at(9) == 0
    assert [PerceptronConfig(exploration_start=2).exploration_at(e) for e in range(3)] == [0, 0, 0.9]


def test_exploration_begins_in_some_epoch_with_both_of_its_probabilities():
    config = TransitionConfig("arc-hybrid", exploration_start=2, exploration=0.8, near_exploration=0.3)
    assert [config.explorations_at(epoch) for epoch in range(4)] == [(0, 0), (0, 0), (0.8, 0.3), (0.8, 0.3)]
    assert replace(config, exploration=0.0).explorations_at(9) == (0, 0)
    assert TransitionConfig("arc-hybrid", "static", near_exploration=0.3).explorations_at(9) == (0, 0)
