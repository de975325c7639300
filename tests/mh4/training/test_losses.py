"""Losses and steps, checked against a trainer that enumerates trees and sums up losses word by word."""

import copy
import json
import math

import naive
import numpy as np
import pytest
import torch
from small import changed, small_config

from mh4.data.conllu import read_conllu
from mh4.parsers.chart import ChartParser
from mh4.parsers.definition import Definition
from mh4.training.trainer import Trainer

# 2 to 5 words, few enough to enumerate all trees; the second tree is not projective.
TREES = ([0, 1], [2, 0, 1, 1], [2, 0, 2], [0, 1, 2, 3], [3, 1, 0, 3, 4], [2, 0], [2, 0, 4, 2], [3, 3, 0, 3, 4])
WEIGHTS = {"labeler_weight": 0.7, "tagger_weight": 0.3}


@pytest.fixture
def treebank(tmp_path):
    generator = np.random.default_rng(3)
    lines = []
    for heads in TREES:
        for d, head in enumerate(heads, start=1):
            form, tag, case = (str(generator.choice(names)) for names in (list("abcde"), ["N", "V"], ["Case=Nom", "_"]))
            relation = "root" if head == 0 else str(generator.choice(["nsubj", "obj", "det"]))
            lines.append(f"{d}\t{form}\t_\t{tag}\t{tag.lower()}{len(case)}\t{case}\t{head}\t{relation}\t_\t_\n")
        lines.append("\n")
    path = tmp_path / "short.conllu"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def hinge(scores, gold):
    wrong = [score for k, score in enumerate(scores) if k != gold]
    return torch.relu(1 + max(wrong) - scores[gold])


class NaiveTrainer:
    """Training steps that score trees arc by arc, take one hinge loss per word and update by plain Adam."""

    def __init__(self, parser, settings):
        self.parser, self.settings = parser, settings
        self.network = copy.deepcopy(parser.network)  # including its random generators
        self.adam = torch.optim.Adam(
            self.network.parameters(),
            settings.learning_rate,
            (0.9, 0.999),
            settings.epsilon,
            foreach=False,
            fused=False,
        )
        self.norms = []
        self.steps, self.average = 0, [parameter.detach().clone() for parameter in self.network.parameters()]

    def tree_loss(self, scores, gold, projective):
        def score(heads):
            return sum(scores[heads[d], d] for d in range(1, len(heads)))

        def cost(heads):
            return sum(heads[d] != gold[d] for d in range(1, len(heads)))

        trees = naive.all_trees(len(gold) - 1, single_root=True, projective=projective)
        return max(score(heads) + cost(heads) for heads in trees) - score(gold)

    def loss(self, sentences, trees):
        parser, network = self.parser, self.network.train()
        encoded = network.encode(network.encoder.collate([network.encoder.prepare(s) for s in sentences]))
        scores = network.scorer(encoded.roles)[:, 0]
        total = sum(
            self.tree_loss(matrix, heads.tolist(), parser.decoder.name == "eisner")
            for matrix, heads in zip(scores, trees, strict=True)
        )
        words = [(b, d) for b, sentence in enumerate(sentences) for d in range(1, len(sentence) + 1)]
        sentence_of, dependents = torch.tensor(words).unbind(1)
        heads = torch.tensor([int(sentences[b].padded_heads[d]) for b, d in words])
        states = encoded.tagger_states[sentence_of, dependents]
        labels = network.label_scores(encoded.states, sentence_of, heads, dependents)
        tags, pairs = (tagger(states) for tagger in network.taggers)
        vocabulary = parser.vocabulary
        for row, (b, d) in enumerate(words):
            sentence = sentences[b]
            relation, tag, fine_tag = (column[d - 1] for column in (sentence.relations, sentence.upos, sentence.xpos))
            total = total + WEIGHTS["labeler_weight"] * hinge(labels[row], vocabulary.relations.index(relation))
            total = total + WEIGHTS["tagger_weight"] * hinge(tags[row], vocabulary.tags.index(tag))
            pair = vocabulary.tag_pairs.index(f"{tag}|{fine_tag}")
            total = total + WEIGHTS["tagger_weight"] * hinge(pairs[row], pair)
        return total

    def step(self, sentences, trees):
        loss = self.loss(sentences, trees)
        self.adam.zero_grad()
        (loss / self.settings.batch_words).backward()
        gradients = [parameter.grad for parameter in self.network.parameters() if parameter.grad is not None]
        self.norms.append(math.sqrt(sum(float((gradient.double() ** 2).sum()) for gradient in gradients)))
        for gradient in gradients:
            gradient *= min(1.0, self.settings.gradient_clip / self.norms[-1])
        self.adam.step()
        self.steps += 1
        keep = min(self.settings.weight_average, self.steps / (self.steps + 9))
        weights = [parameter.detach() for parameter in self.network.parameters()]
        self.average = [keep * old + (1 - keep) * new for old, new in zip(self.average, weights, strict=True)]
        return float(loss.detach())


@pytest.mark.parametrize("decoder", ["mst", "eisner"])
def test_the_first_losses_are_those_of_a_naive_trainer(decoder, treebank, tmp_path):
    sentences = list(read_conllu(treebank, trees="required"))
    settings = {"batch_words": 6, "max_steps": 5, "evaluation_steps": 5, "gradient_clip": 1.2}
    # A small epsilon would turn rounding errors of zero gradients into steps.
    config = small_config(decoder, weight_average=0.3, epsilon=1e-3, **settings)
    config = changed(config, **WEIGHTS, min_word_count=2)
    parser = ChartParser(Definition.learn(config, sentences), device="cpu")
    sums = []
    trainer = Trainer(parser, sentences, sentences, tmp_path, lambda _, recent: sums.append(recent.loss))
    twin = NaiveTrainer(parser, config.training)
    replaced = [(example.heads != example.sentence.padded_heads).any() for example in trainer.examples]
    assert any(replaced) == (decoder == "eisner")
    batches = [[trainer.examples[i] for i in batch] for batch in [*trainer.batches(0), *trainer.batches(1)][:5]]
    expected = [twin.step([e.sentence for e in batch], [e.heads for e in batch]) for batch in batches]
    assert min(twin.norms) < config.training.gradient_clip < max(twin.norms)
    trainer.run()
    assert np.diff(sums, prepend=0.0) == pytest.approx(expected, rel=1e-4)
    for own, other in zip(parser.network.parameters(), twin.network.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-5)
    for own, other in zip(trainer.average.averages.values(), twin.average, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-5)
    report = json.loads((tmp_path / "log.jsonl").read_text())
    words = sum(len(e.sentence) for batch in batches for e in batch)
    assert report["loss"] == pytest.approx(sum(expected) / words, abs=1e-4)


def test_a_worker_without_a_sentence_has_gradients_of_zero(treebank, tmp_path):
    sentences = list(read_conllu(treebank, trees="required"))
    parser = ChartParser(Definition.learn(small_config("mst"), sentences), device="cpu")
    loss = Trainer(parser, sentences, [], tmp_path).batch_loss(None, 0)
    loss.backward()
    assert loss.item() == 0.0
    assert all(not parameter.grad.any() for parameter in parser.network.parameters())
