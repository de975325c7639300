"""Contents of batches and epochs."""

import numpy as np
from small import small_config

from mh4.data.conllu import read_conllu
from mh4.decoders.closest import closest_tree
from mh4.parsers.chart import ChartParser
from mh4.parsers.definition import Definition
from mh4.training.batches import WINDOW, shuffled_batches
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold

NOT_PROJECTIVE = [2, 0, 1, 1]


def test_labels_are_learnt_on_gold_heads_and_trees_on_their_replacements(tmp_path):
    path = tmp_path / "t.conllu"
    rows = [f"{d}\tw{d}\t_\tX\t_\t_\t{head}\tr{d}\t_\t_\n" for d, head in enumerate(NOT_PROJECTIVE, start=1)]
    path.write_text("".join([*rows, "\n", *rows[:2], "\n"]), encoding="utf-8")
    sentences = list(read_conllu(path, trees="required"))
    parser = ChartParser(Definition.learn(small_config("eisner"), sentences), device="cpu")
    vocabulary = parser.vocabulary
    batch = Trainer(parser, sentences, [], tmp_path).collate([1, 0])
    assert batch.heads[0].tolist() == [-1, 2, 0]
    assert batch.heads[1].tolist() == closest_tree(sentences[0].padded_heads, parser.decoder).tolist()
    assert batch.heads[1].tolist() != sentences[0].padded_heads.tolist()
    assert batch.arc_sentence.tolist() == batch.sentence_of.tolist()
    assert batch.arc_dependent.tolist() == batch.dependent.tolist()
    assert batch.arc_head.tolist() == [2, 0, *NOT_PROJECTIVE]
    assert batch.sentence_of.tolist() == [0, 0, 1, 1, 1, 1]
    assert batch.dependent.tolist() == [1, 2, 1, 2, 3, 4]
    assert [vocabulary.relations[i] for i in batch.relations] == ["r1", "r2", "r1", "r2", "r3", "r4"]
    assert batch.words.lengths.tolist() == [2, 4]
    assert batch.tags.tolist() == batch.tag_pairs.tolist() == [0] * 6


def test_only_known_arcs_with_relations_are_labelled(tmp_path):
    path = tmp_path / "t.conllu"
    columns = [("_", "r4"), ("0", "root"), ("2", "_"), ("3", "r4")]
    rows = [f"{d}\tw\t_\tX\t_\t_\t{head}\t{name}\t_\t_\n" for d, (head, name) in enumerate(columns, start=1)]
    path.write_text("".join([*rows, "\n"]), encoding="utf-8")
    sentences = read_gold(path, trees="partial")
    parser = ChartParser(Definition.learn(small_config("eisner"), sentences), device="cpu")
    vocabulary = parser.vocabulary
    assert sorted(vocabulary.relations) == ["r4", "root"]
    batch = Trainer(parser, sentences, [], tmp_path).collate([0, 0])
    assert batch.heads[0].tolist() == [-1, -1, 0, 2, 3]
    assert batch.arc_sentence.tolist() == [0, 0, 1, 1]
    assert batch.arc_head.tolist() == [0, 3, 0, 3]
    assert batch.arc_dependent.tolist() == [2, 4, 2, 4]
    assert [vocabulary.relations[i] for i in batch.relations] == ["root", "r4"] * 2
    assert batch.dependent.tolist() == [1, 2, 3, 4] * 2
    assert len(batch.tags) == 8


def test_batches_hold_every_sentence_once_an_epoch(small_treebanks):
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(Definition.learn(small_config("mst"), sentences), device="cpu")
    trainer = Trainer(parser, sentences, sentences, small_treebanks[0].parent)
    for epoch in range(2):
        batches = trainer.batches(epoch)
        assert sorted(i for batch in batches for i in batch) == list(range(len(sentences)))
        words = [sum(len(sentences[i]) for i in batch) for batch in batches]
        longest = max(map(len, sentences))
        assert max(words) < 60 + longest
        assert sum(count < 60 for count in words) <= -(-len(sentences) // WINDOW)  # at most one per window
        by_length = sorted(sorted(len(sentences[i]) for i in batch) for batch in batches)
        assert [n for lengths in by_length for n in lengths] == sorted(map(len, sentences))  # one window, sorted
        assert by_length != [sorted(len(sentences[i]) for i in batch) for batch in batches]
    assert trainer.batches(0) != trainer.batches(1)
    assert trainer.batches(0) == trainer.batches(0)


def test_sentences_of_similar_cost_are_batched_together(small_treebanks, monkeypatch):
    """Sentences of many pieces would otherwise be padded to the longest of many words."""
    sentences = read_gold(small_treebanks[0])
    parser = ChartParser(Definition.learn(small_config("mst"), sentences), device="cpu")
    monkeypatch.setattr(parser.network.encoder, "cost", lambda sentence: len(sentence.forms[0]))
    trainer = Trainer(parser, sentences, sentences, small_treebanks[0].parent)
    costs = sorted(sorted(len(sentences[i].forms[0]) for i in batch) for batch in trainer.batches(0))
    assert len(costs) > 2
    assert [cost for own in costs for cost in own] == sorted(len(sentence.forms[0]) for sentence in sentences)


def test_a_window_makes_up_eight_batches():
    """All sentences are equally long, so that only the last batch of a window can be short."""
    for batch_words, window in ((10, 128), (1000, 800)):
        batches = shuffled_batches([10] * 2000, [10] * 2000, batch_words, [1])
        rest = [len(batch) for batch in batches if 10 * len(batch) < batch_words]
        full = max(1, batch_words // 10)
        assert len(batches) == sum(-(-min(window, 2000 - start) // full) for start in range(0, 2000, window))
        assert len(rest) == sum(min(window, 2000 - start) % full > 0 for start in range(0, 2000, window))


def test_with_noise_large_batches_are_not_always_the_same():
    lengths = np.random.default_rng(5).integers(1, 60, 300).tolist()

    def batches(epoch, noise):
        return {frozenset(batch) for batch in shuffled_batches(lengths, lengths, 2000, [1, epoch], noise)}

    plain, noisy = ([batches(epoch, noise) for epoch in range(2)] for noise in (0.0, 0.4))
    words = [[sum(lengths[i] for i in batch) for batch in batches] for batches in noisy]
    for epoch in range(2):
        assert sorted(i for batch in noisy[epoch] for i in batch) == list(range(300))
        assert min(words[epoch]) >= 1000
        spreads = [np.std([lengths[i] for i in batch]) for batch in noisy[epoch]]
        assert np.mean(spreads) < 0.8 * np.std(lengths)
    shared = [sum(len(one & other) ** 2 for one in batches[0] for other in batches[1]) for batches in (plain, noisy)]
    assert shared[1] < 0.7 * shared[0]


def test_with_noise_less_than_half_a_batch_goes_into_the_one_before():
    for count, sizes in ((120, [50, 70]), (125, [25, 50, 50]), (130, [30, 50, 50])):
        batches = shuffled_batches([1] * count, [1] * count, 50, [1], 0.4)
        assert sorted(map(len, batches)) == sizes
