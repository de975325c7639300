"""Settings by name, for `mh4 train --preset` and the experiments; settings not listed keep their defaults."""

from typing import Any

# Tags, features and lemmas, predicted from a lower layer, replace the published auxiliary tasks. All words
# have vectors from their characters, and words that occur twice have embeddings. Larger batches.
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
    "patience_growth": 0.4,  # ten times the words: 2.5 times the patience, in steps
}

# Faster: narrower MLPs, and most character-based vectors left out. Dropout rises from 0; one learning rate; averaged
# weights.
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
    # As good as "paper" in a quarter of its time; stops early.
    "fast": {**_QUICK, "patience": 6},
    # The same, but stops only long after the last improvement.
    "balanced": {**_QUICK, "patience": 20},
    # Few large steps, for GPUs; the learning rate falls twice, each time from the best weights so far.
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
    # A wider BiLSTM, weight decay, and a long average; the learning rate falls twice, each time from the best weights.
    "best": {
        **_RICHER,
        "hidden": 320,
        "weight_decay": 0.1,
        "weight_average": 0.998,
        "patience": 12,
        "decays": 2,
        "decay_from": "best",
    },
    # For a pretrained encoder: few epochs, over which both learning rates fall to 0.
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
        "max_steps": 10_000_000,  # never reached, either: the rate must fall to its end on large treebanks, too
        "patience": 1000,  # evaluations, never reached: the learning rate falls in any case
        "patience_growth": 0.0,
    },
}

DEFAULT_PRESET = "balanced"  # for training a parser; `paper` is for reproduction
PRETRAINED_PRESET = "pretrained"  # for training one with a pretrained encoder
