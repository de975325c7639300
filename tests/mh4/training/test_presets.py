"""What the presets stand for."""

from dataclasses import asdict

from mh4.parsers.config import ChartConfig, make_config
from mh4.training.presets import DEFAULT_PRESET, PRESETS
from mh4.training.schedule import Progress, Schedule

# The settings of Gómez-Rodríguez, Shi and Lee (2018), from the paper and its published code.
PUBLISHED_ENCODER = {
    "kind": "bilstm",
    "word_size": 128,
    "character_size": 64,
    "character_hidden": 128,
    "character_layers": 2,
    "hidden": 192,
    "layers": 2,
    "lstm_dropout": 0.3,
    "block_dropout": 0.1,
    "tagger_layer": 0,
    "characters": "rare",
    "spelling_dropout": 0.0,
    "min_word_count": 5,
    "word_unknown": 2.5,
    "character_unknown": 0.25,
    "vectors": "",
    "vectors_keep": 200_000,
}
PUBLISHED_SCORERS = {"mlp": 192, "mlp_dropout": 0.3, "members": 1}
PUBLISHED_WEIGHTS = {
    "tagger_weight": 0.2,
    "labeler_weight": 1.0,
    **dict.fromkeys(("analysis_weight", "lemma_weight"), 0.0),
}
PUBLISHED_TRAINING = {
    "seed": 1,
    "learning_rate": 0.002,
    "beta1": 0.9,
    "beta2": 0.999,
    "epsilon": 1e-8,
    "weight_decay": 0.0,
    "gradient_clip": 5.0,
    "batch_words": 100,
    "part_cost": 0,
    "evaluation_steps": 500,
    "patience": 5,
    "patience_growth": 0.0,
    "decays": 3,
    "decay_factor": 0.25,
    "decay_from": "last",
    "max_steps": 100_000,
    "max_epochs": 0,
    "dropout_rise": 0,
    "weight_average": 0.0,
    "warm_up": 0,
    "rate_fall": "steps",
    "length_noise": 0.0,
    "precision": "fp32",
    "treebank_evenness": 0.5,
}


def test_paper_has_the_published_settings():
    config = make_config(ChartConfig, PRESETS["paper"])
    assert config == ChartConfig()
    assert asdict(config.encoder) == PUBLISHED_ENCODER
    assert asdict(config.scorers) == PUBLISHED_SCORERS
    assert asdict(config.weights) == PUBLISHED_WEIGHTS
    assert asdict(config.training) == PUBLISHED_TRAINING


def test_the_default_is_balanced():
    assert DEFAULT_PRESET == "balanced"
    assert set(PRESETS) == {"paper", "fast", "balanced", "large", "best", "pretrained"}


def test_large_steps_end_by_themselves_or_after_a_number_of_epochs():
    settings = make_config(ChartConfig, PRESETS["large"]).training
    assert (settings.batch_words, settings.learning_rate, settings.max_epochs) == (4000, 0.012, 170)
    assert (settings.rate_fall, settings.patience, settings.decays, settings.decay_factor) == ("steps", 10, 2, 0.3)
    assert settings.decay_from == "best"


def test_every_preset_but_the_published_one_waits_longer_on_larger_treebanks():
    def wait(preset, words):
        training = make_config(ChartConfig, PRESETS[preset]).training
        schedule = Schedule(training, words // training.batch_words)
        return schedule.patience * schedule.interval

    for preset in set(PRESETS) - {"paper", "pretrained"}:
        assert wait(preset, 20_000) < wait(preset, 35_000) < wait(preset, 200_000)
        assert wait(preset, 2_000_000) * PRESETS[preset]["batch_words"] <= 3 * 2_000_000  # three epochs
    assert wait("paper", 20_000) == wait("paper", 35_000) == 2500
    assert (wait("balanced", 20_000), wait("balanced", 35_000)) == (4000, 5000)
    assert (wait("best", 20_000), wait("best", 35_000)) == (2400, 3000)


def test_the_rate_of_pretrained_falls_to_its_end_on_any_treebank():
    training = make_config(ChartConfig, PRESETS["pretrained"]).training
    schedule = Schedule(training, 20_000)
    progress = Progress(step=20_000 * 30 - 1, epoch=29, batch=19_999, learning_rate=0.004)
    assert not schedule.is_over(progress)
    assert schedule.rate(progress) < 1e-6
    schedule.advance(progress, 20_000)
    assert schedule.is_over(progress)


def test_dropout_has_its_rate_after_as_many_words_in_small_batches_as_in_large_ones():
    rising = {name: own for name, own in PRESETS.items() if "dropout_rise" in own}
    assert set(rising) == {"fast", "balanced", "large"}
    assert {own["dropout_rise"] * own["batch_words"] for own in rising.values()} == {1_000_000}
