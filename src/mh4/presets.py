"""Settings by name, for `mh4 train --preset` and the experiments; what is not named keeps its default."""

PRESETS: dict[str, tuple[str, ...]] = {
    # Gómez-Rodríguez, Shi and Lee (2018): the defaults.
    "paper": (),
    # Larger batches, and a learning rate that falls all the time instead of waiting for dev to stop improving.
    "fast": ("batch_words=400", "learning_rate=0.004", "anneal_steps=3000", "evaluation_steps=200"),
}
