"""Settings by name, for `mh4 train --preset` and the experiments; what is not named keeps its default."""

from typing import Any

# Tags, features and lemmas, predicted from a lower layer, replace the published auxiliary tasks. Every word is spelt,
# words that occur twice have embeddings. Larger batches, averaged weights.
_RICHER: dict[str, Any] = {
    "tagger_weight": 0.0,
    "analysis_weight": 0.5,
    "lemma_weight": 0.5,
    "tagger_layer": 1,
    "characters": "all",
    "min_word_count": 2,
    "batch_words": 200,
    "learning_rate": 0.004,
    "evaluation_steps": 200,
    "patience_growth": 0.4,  # a treebank of ten times the words is waited for 2.5 times the steps
}

# Narrower MLPs and most of the spelling left out, which spares time; little dropout at first; one learning rate.
_QUICK: dict[str, Any] = {
    **_RICHER,
    "mlp": 160,
    "spelling_dropout": 0.7,
    "dropout_rise": 5000,
    "weight_average": 0.998,
    "decays": 0,
}

PRESETS: dict[str, dict[str, Any]] = {
    # Gómez-Rodríguez, Shi and Lee (2018): the defaults.
    "paper": {},
    # As good as that in a quarter of its time, and then an early end.
    "fast": {**_QUICK, "patience": 6},
    # The same until it has long stopped to improve.
    "balanced": {**_QUICK, "patience": 20},
    # Few large steps, for GPUs; two lower rates, each from the best weights before it.
    "large": {
        **_QUICK,
        "batch_words": 4000,
        "length_noise": 0.4,
        "learning_rate": 0.012,
        "warm_up": 20,
        "patience": 10,
        "decays": 2,
        "decay_factor": 0.3,
        "decay_from": "best",
        "max_epochs": 170,
        "evaluation_steps": 20,
        "dropout_rise": 250,
        "weight_average": 0.97,
    },
    # A wider BiLSTM, weights that decay, a long average, and two lower rates, each from the best weights before it.
    "best": {
        **_RICHER,
        "hidden": 320,
        "weight_decay": 0.1,
        "weight_average": 0.998,
        "patience": 8,
        "decays": 2,
        "decay_from": "best",
    },
    # Few epochs over which both learning rates fall to none; for a pretrained encoder, which has learnt before.
    "pretrained": {
        **_RICHER,
        "word_size": 200,
        "hidden": 320,
        "mlp": 160,
        "spelling_dropout": 0.7,
        "weight_decay": 0.1,
        "weight_average": 0.99,
        "warm_up": 50,
        "rate_fall": "linear",
        "max_epochs": 30,
        "patience": 1000,  # evaluations: the learning rate falls in any case
        "patience_growth": 0.0,
    },
}

DEFAULT_PRESET = "balanced"  # of those who train a parser; `paper` is to reproduce
PRETRAINED_PRESET = "pretrained"  # of those who train one with a pretrained encoder
