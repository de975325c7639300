"""Settings by name, for `mh4 train --preset` and the experiments; what is not named keeps its default."""

PRESETS: dict[str, tuple[str, ...]] = {
    # Gómez-Rodríguez, Shi and Lee (2018): the defaults.
    "paper": (),
    # More to learn from every word, batches of twice the size, an average of the weights instead of a rate that falls.
    "fast": (
        "feature_weight=0.1",
        "tagger_layer=1",
        "batch_words=200",
        "learning_rate=0.004",
        "weight_average=0.995",
        "evaluation_steps=200",
        "patience=4",
        "decays=0",
    ),
    # The same with every word spelt, embeddings of all that occur twice, and much longer training, at rates that fall
    # while the weights are averaged.
    "best": (
        "feature_weight=0.1",
        "tagger_layer=1",
        "characters=all",
        "min_word_count=2",
        "batch_words=200",
        "learning_rate=0.004",
        "weight_average=0.998",
        "evaluation_steps=200",
        "patience=10",
        "decays=2",
        "decay_from=best",
    ),
}
