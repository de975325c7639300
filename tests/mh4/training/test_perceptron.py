import json
import subprocess
import sys
from dataclasses import asdict, replace
from itertools import groupby

import numpy as np
import pytest
from small import train

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sample import read_sample
from mh4.data.sentence import Sentence
from mh4.models.checked import checked
from mh4.oracles.costs import DYNAMIC, STATIC
from mh4.parsers.checksums import SUMS
from mh4.parsers.config import PerceptronConfig
from mh4.parsers.folder import ModelFolder
from mh4.parsers.perceptron.loops import score_contexts
from mh4.parsers.perceptron.parser import PerceptronParser
from mh4.parsers.perceptron.vocabulary import PerceptronVocabulary
from mh4.parsers.systems import apply, find_costs, follow, initialize, list_candidates, prepare
from mh4.training.perceptron import PerceptronTrainer, fit
from mh4.training.treebanks import read_gold
from mh4.transitions.arrays.state import ARGUMENT, CONTEXT, DEPENDENT, HEAD, TRANSITION
from mh4.trees.evaluation import attachment_scores


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The training and the dev sentences of the sample."""
    folder = tmp_path_factory.mktemp("sample")
    parts = []
    for part in ("train", "dev"):
        path = folder / part
        path.write_text("".join(read_sample()[part]), encoding="utf-8")
        parts.append(list(read_conllu(path, trees="required")))
    return parts


def by_candidate(choice):
    return -choice[1]


def following(random):
    """Return the next number of a 64-bit xorshift generator."""
    for left, shift in ((True, 13), (False, 7), (True, 17)):
        random ^= (random << shift if left else random >> shift) % 2**64
    return random


class NaiveTrainer:
    """A training loop over plain dictionaries that averages weights by summing them up after each step.

    Scores are float32 sums in the order of the features, so that even ties are broken in the same way.
    """

    def __init__(self, trainer):
        self.trainer = trainer
        self.weights, self.sums, self.steps = {}, {}, 0

    def actions(self, row):
        """Yield the (action, relation) pairs of a candidate that the root rule allows."""
        first, stop = self.trainer._actions.first[row[TRANSITION]], self.trainer._actions.first[row[TRANSITION] + 1]
        allowed = self.trainer._actions.allowed[int(row[HEAD] == 0)]
        for action in range(first, stop):
            labelled = row[DEPENDENT] >= 0
            if not labelled or allowed[action - first]:
                yield action, (action - first if labelled else -1)

    def epoch(self, order, oracle, random):
        trainer = self.trainer
        room, text, gold = trainer._room, trainer._text, trainer._gold
        wrong = 0
        for s in order:
            start, stop = text.offsets[s], text.offsets[s + 1]
            heads, relations = gold.heads[start:stop], gold.relations[start:stop]
            initialize(trainer._system.kernels, room.state, len(heads) - 1)
            prepare(trainer._system.kernels, room.state, oracle, heads)
            while True:
                count, contexts = list_candidates(trainer._system.kernels, room.state, room.candidates)
                if not count:
                    break
                score_contexts(trainer._weights, trainer._templates, text.words, start, contexts, room)
                find_costs(trainer._system.kernels, room.state, oracle, heads, room.candidates, count)
                least = min(room.candidates.costs[:count])
                choices, optimal = [], []
                for c, row in enumerate(room.candidates.rows[:count]):
                    keys = room.keys[row[CONTEXT], : room.counts[row[CONTEXT]]].tolist()
                    for action, relation in self.actions(row):
                        score = sum(self.weights.get((key, int(action)), np.float32(0)) for key in keys)
                        choice = (score, -c, -int(action), keys, int(relation))
                        choices.append(choice)
                        free = relation < 0 or heads[row[DEPENDENT]] != row[HEAD] or relations[row[DEPENDENT]] < 0
                        if room.candidates.costs[c] == least and (free or relation == relations[row[DEPENDENT]]):
                            optimal.append(choice)
                predicted, best = max(choices, key=lambda x: x[:3]), max(optimal, key=lambda x: x[:3])
                of_each = [max(own) for _, own in groupby(sorted(optimal, key=by_candidate), by_candidate)]
                promoted = [best]
                if trainer.config.ties == "all":
                    promoted = of_each
                elif trainer.config.ties == "any":
                    random = following(random)
                    promoted = [best] = [of_each[random % len(of_each)]]
                self.steps += 1
                if predicted != best:
                    wrong += 1
                    random = following(random)
                    changes = [(own, 1 / len(promoted)) for own in promoted]
                    for (_, _, action, keys, _), change in [*changes, (predicted, -1)]:
                        for key in keys:
                            before = self.weights.get((key, -action), np.float32(0))
                            self.weights[key, -action] = before + np.float32(change)
                for cell, weight in self.weights.items():
                    self.sums[cell] = self.sums.get(cell, 0) + weight
                row = room.candidates.rows[-best[1]]
                follow(trainer._system.kernels, room.state, oracle, row[TRANSITION])
                apply(trainer._system.kernels, room.state, row[TRANSITION], row[ARGUMENT], best[4])
        return wrong


@pytest.mark.parametrize("system", ["arc-standard", "arc-eager"])
@pytest.mark.parametrize(
    ("oracle", "ties"), [("static", "best"), ("dynamic", "best"), ("dynamic", "all"), ("dynamic", "any")]
)
def test_training_equals_a_naive_perceptron_with_naive_averages(system, oracle, ties, sample):
    sentences = [sentence for sentence in sample[0] if len(sentence) < 9][:6]
    config = PerceptronConfig(system, oracle, exploration=0.0, ties=ties)
    trainer, naive = PerceptronTrainer(config, sentences), NaiveTrainer(PerceptronTrainer(config, sentences))
    for epoch in range(2):
        share = trainer.train_epoch()
        before = naive.steps
        generator = np.random.default_rng([config.seed, epoch])
        order, random = generator.permutation(len(sentences)), int(generator.integers(1, 2**63, dtype=np.uint64))
        wrong = naive.epoch(order, DYNAMIC if oracle == "dynamic" else STATIC, random)
        assert share == wrong / (naive.steps - before)
    assert trainer.decisions == naive.steps
    keys, offsets, actions, values = trainer.parser().lists
    found = {
        (int(keys[f]), int(actions[i])): values[i] for f in range(len(keys)) for i in range(offsets[f], offsets[f + 1])
    }
    expected = {cell: total / naive.steps for cell, total in naive.sums.items() if total}
    assert found.keys() == expected.keys()
    assert all(found[cell] == pytest.approx(expected[cell], rel=1e-5) for cell in found)


@pytest.mark.parametrize("column", ["upos", "xpos"])
def test_tags_are_those_of_the_column_that_is_asked_for(column, sample):
    vocabulary = PerceptronTrainer(PerceptronConfig(tag_column=column), sample[0]).vocabulary
    assert vocabulary.tag_column == column
    assert set(vocabulary.tags) == {tag for sentence in sample[0] for tag in getattr(sentence, column)}


def test_equal_seeds_give_equal_models(sample):
    sentences = sample[0][:60]
    config = PerceptronConfig("arc-eager", "dynamic", iterations=3)
    first, second = fit(config, sentences), fit(config, sentences)
    assert all((a == b).all() for a, b in zip(first.lists, second.lists, strict=True))
    other = fit(PerceptronConfig("arc-eager", "dynamic", iterations=3, seed=2), sentences)
    assert len(other.lists[3]) != len(first.lists[3]) or (other.lists[3] != first.lists[3]).any()


def test_exploration_changes_training(sample):
    sentences = sample[0][:60]
    runs = [
        fit(PerceptronConfig("arc-eager", "dynamic", iterations=2, exploration=p), sentences).lists[3] for p in (0, 0.9)
    ]
    assert len(runs[0]) != len(runs[1])


@pytest.mark.parametrize("start", [0, 1, 2])
def test_exploration_starts_in_its_epoch(start, sample):
    config = PerceptronConfig("arc-eager", "dynamic", exploration_start=start)
    alone, exploring = (PerceptronTrainer(replace(config, exploration=p), sample[0][:40]) for p in (0.0, 0.9))
    for epoch in range(start + 1):
        alone.train_epoch()
        exploring.train_epoch()
        lists = zip(alone.parser().lists, exploring.parser().lists, strict=True)
        assert all(map(np.array_equal, *zip(*lists, strict=True))) == (epoch < start)


@pytest.mark.parametrize(("system", "oracle"), [("arc-standard", "static"), ("arc-eager", "dynamic")])
def test_it_learns_the_sample(system, oracle, sample):
    reports = []
    parser = fit(PerceptronConfig(system, oracle, iterations=4), *sample, lambda report, _: reports.append(report))
    assert reports[-1]["wrong"] < reports[0]["wrong"] / 2
    assert reports[-1]["dev_las"] > 86
    assert attachment_scores(sample[1], parser.predict(sample[1]))[1] == max(report["dev_las"] for report in reports)
    assert attachment_scores(sample[0], parser.predict(sample[0]))[1] > 92


def test_of_equally_good_epochs_the_first_is_kept(sample):
    sentences, reports, parsers = sample[0][:6], [], []
    parser = fit(
        PerceptronConfig("arc-standard", "static", iterations=6),
        *(sentences, sentences),
        lambda report, own: (reports.append(report), parsers.append(own)),
    )
    scores = [(report["dev_las"], report["dev_uas"]) for report in reports]
    first = scores.index(max(scores))
    assert scores[first:].count(max(scores)) > 1
    assert [report["best"] for report in reports] == [
        score > max(scores[:i], default=(-1.0,)) for i, score in enumerate(scores)
    ]
    assert parser is parsers[first]


def test_the_folder_holds_the_best_epoch(small_treebanks, tmp_path):
    saved, train_file = [], small_treebanks[0]

    def note(report):
        saved.append(((tmp_path / "weights.safetensors").read_bytes(), report["best"]))

    config = PerceptronConfig("arc-standard", "static", iterations=6)
    train(train_file, train_file, tmp_path, config, on_evaluation=note, overwrite=True)
    assert not saved[-1][1]
    (best,) = {weights for weights, _ in saved[max(i for i, (_, is_best) in enumerate(saved) if is_best) :]}
    assert best == (tmp_path / "weights.safetensors").read_bytes()


def test_model_folder(sample, small_treebanks, tmp_path):
    folder, lines = tmp_path / "model", []
    config = PerceptronConfig("arc-eager", iterations=2)
    progress = train(*small_treebanks, folder, config, on_evaluation=lines.append)
    assert ModelFolder(folder).config == config
    assert [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()] == lines
    loaded = PerceptronParser.load(folder)
    assert loaded.config == config
    best = max(lines, key=lambda line: (line["dev_las"], line["dev_uas"]))
    assert (progress.step, progress.best_step, progress.seconds) == (2, best["epoch"], lines[-1]["seconds"])
    assert (progress.best_uas, progress.best_las) == (best["dev_uas"], best["dev_las"])
    parser = fit(config, *(read_gold(path) for path in small_treebanks))
    assert loaded.vocabulary == parser.vocabulary
    sentences = sample[1][:40]
    for a, b in zip(parser.predict(sentences), loaded.predict(sentences), strict=True):
        assert a.heads.tolist() == b.heads.tolist()
        assert a.relations == b.relations
    with pytest.raises(DataError, match="holds a model already"):
        train(*small_treebanks, folder, config)
    train(*small_treebanks, folder, config, overwrite=True)

    output = tmp_path / "parsed.conllu"
    loaded.parse_file(small_treebanks[1], output)
    parsed = list(read_conllu(output, trees="required"))
    expected = loaded.predict(parsed)
    assert [s.heads.tolist() for s in parsed] == [p.heads.tolist() for p in expected]
    assert [s.relations for s in loaded.parse(parsed)] == [s.relations for s in parsed]
    with pytest.raises(ValueError, match="cannot keep given heads"):
        loaded.predict(parsed, keep_heads=True)


def test_arcs_from_the_root_are_roots(sample):
    parser = fit(PerceptronConfig("arc-standard", "static", iterations=1), sample[0][:80])
    for sentence in parser.parse(sample[1][:60]):
        for head, relation in zip(sentence.heads, sentence.relations, strict=True):
            assert (head == 0) == (relation == "root"), sentence.name


@pytest.mark.parametrize("damage", ["config.json", "vocab.json", "weights.safetensors"])
def test_damaged_folders(damage, small_treebanks, tmp_path):
    folder = tmp_path / "model"
    train(*small_treebanks, folder, PerceptronConfig("arc-eager", iterations=1))
    (folder / damage).write_text("{}")
    with pytest.raises(DataError, match=damage):
        PerceptronParser.load(folder)


@pytest.mark.parametrize(
    "change", [{"forms": "ab"}, {"relations": [1]}, {"tag_column": "heads"}, {"single_root": "yes"}, {"root_only": 1}]
)
def test_damaged_vocabulary(change, small_treebanks, tmp_path):
    folder = tmp_path / "model"
    train(*small_treebanks, folder, PerceptronConfig("arc-eager", iterations=1))
    vocabulary = json.loads((folder / "vocab.json").read_bytes())
    (folder / "vocab.json").write_text(json.dumps(vocabulary | change))
    (folder / SUMS).unlink()
    with pytest.raises(DataError, match=rf"vocab\.json: .*{next(iter(change))[:3]}"):
        PerceptronParser.load(folder)


def test_an_older_model_stays_until_there_is_a_new_one(small_treebanks, tmp_path, monkeypatch):
    folder = tmp_path / "model"
    train(*small_treebanks, folder, PerceptronConfig("arc-eager", iterations=2))
    (folder / "training.safetensors").write_bytes(b"of a network")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def interrupted(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PerceptronTrainer, "train_epoch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(*small_treebanks, folder, PerceptronConfig("covington", iterations=1), overwrite=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    train(*small_treebanks, folder, PerceptronConfig("covington", iterations=1), overwrite=True)
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "vocab.json", "weights.safetensors", "log.jsonl", "meta.json", SUMS),
    }
    assert len((folder / "log.jsonl").read_text().splitlines()) == 1


def test_weights_of_another_model_are_refused(small_treebanks, tmp_path):
    folders = [tmp_path / system for system in ("arc-eager", "arc-standard")]
    for folder in folders:
        train(*small_treebanks, folder, PerceptronConfig(folder.name, iterations=1))
    (folders[1] / "weights.safetensors").write_bytes((folders[0] / "weights.safetensors").read_bytes())
    (folders[1] / SUMS).unlink(missing_ok=True)
    with pytest.raises(DataError, match=r"weights.safetensors: does not fit"):
        PerceptronParser.load(folders[1])


def test_no_sentences():
    parser_error = pytest.raises(ValueError, match="no training sentences")
    with parser_error:
        fit(PerceptronConfig(), [])


def test_unknown_words_and_long_sentences(sample):
    parser = fit(PerceptronConfig("arc-eager", iterations=1), sample[0][:50])
    assert parser.predict([]) == []
    for n in (1, 2, 300):
        (prediction,) = parser.predict([Sentence.from_words(["?"] * n).replace(upos=["?"] * n)])
        assert prediction.heads.shape == (n,)
        assert prediction.heads.min() == 0


def test_vocabulary(sample):
    vocabulary = PerceptronVocabulary.from_sentences(sample[0])
    data = asdict(vocabulary)
    assert checked(PerceptronVocabulary, json.dumps(data)) == vocabulary
    with pytest.raises(ValueError, match="the relation 'x' of the root is not among the relations"):
        checked(PerceptronVocabulary, json.dumps(data | {"root_relation": "x"}))
    assert vocabulary.root_relation == "root"
    assert vocabulary.root_only
    text = vocabulary.text(sample[0][:3])
    assert text.words[:, text.offsets[:-1]].tolist() == [[1, 1, 1], [1, 1, 1]]
    assert text.words.min() == 1
    trees = [sample[0][0].padded_heads.copy()]
    root = sample[0][0].roots[0]
    trees[0][root], trees[0][1 if root != 1 else 2] = 1 if root != 1 else 2, 0
    relations = vocabulary.gold(sample[0][:1], trees).relations
    assert relations[root] == -1


def test_unknown_relations_are_not_learnt(sample):
    whole = sample[0][:20]
    half = [one.replace(relations=[name if i % 2 else "_" for i, name in enumerate(one.relations)]) for one in whole]
    parser = fit(PerceptronConfig(iterations=1), half)
    assert "_" not in parser.vocabulary.relations
    assert all("_" not in one.relations for one in parser.predict(half))
    gold = parser.vocabulary.gold(half[:1], [half[0].padded_heads]).relations[1:]
    assert (gold == -1).tolist() == [name == "_" for name in half[0].relations]
    below = [("_" if head == 0 else "nsubj") for head in whole[0].heads.tolist()]
    assert PerceptronVocabulary.from_sentences([whole[0].replace(relations=below)]).root_relation == "nsubj"
    none = PerceptronVocabulary.from_sentences([whole[0].replace(relations=["_"] * len(whole[0]))])
    assert (none.relations, none.root_relation) == (("_",), "_")


def test_an_interrupt_within_an_epoch_is_a_keyboard_interrupt(small_treebanks):
    """A pending interrupt must not crash Numba when it returns the results of the epoch."""
    script = """
import signal, sys, time
from mh4.parsers.config import PerceptronConfig
from mh4.training.perceptron import PerceptronTrainer
from mh4.training.treebanks import read_gold
trainer = PerceptronTrainer(PerceptronConfig("arc-eager"), read_gold(sys.argv[1], "raise"))
trainer.train_epoch()
began = time.perf_counter()
trainer.train_epoch()
seconds = time.perf_counter() - began
signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupted = 0
for share in (0.2, 0.4, 0.6, 0.8):
    signal.setitimer(signal.ITIMER_REAL, share * seconds)
    try:
        trainer.train_epoch()
        time.sleep(seconds)
    except KeyboardInterrupt:
        interrupted += 1
assert trainer.train_epoch() < 1
print(interrupted)
"""
    run = subprocess.run([sys.executable, "-c", script, small_treebanks[0]], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "4\n"), run.stderr
