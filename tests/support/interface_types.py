"""Expected types of the interface; `make test` checks this file with mypy, and it is never run."""

from typing import assert_type

import numpy as np
import torch

import mh4
from mh4 import Document, Sentence
from mh4.data.stream import Stream
from mh4.decoders import Derivation, get_decoder

parser = mh4.load("models/hu", threads=1)
assert_type(parser("A kutya ugat."), Document)
assert_type(parser(["A", "kutya", "ugat", "."], confidence=True), Sentence)
assert_type(parser(Sentence.from_words(["A"])), Sentence)
assert_type(parser(word for word in ("A", "kutya")), Sentence)
assert_type(parser(Document([])), Document)
assert_type(parser(mh4.read_conllu("input.conllu")), Document)
assert_type(parser([["A", "kutya"], ["ugat"]], keep_heads=True), Document)
assert_type(parser.parse("input.conllu", predict="tags", k_best=3), Stream[Sentence])
assert_type(parser.pipe(["A kutya ugat.", ["A", "kutya"]]), Stream[Sentence | Document])
assert_type(parser.pipe([Document([])]), Stream[Sentence | Document])
assert_type(parser.parse(Sentence(["A"])), Stream[Sentence])
assert_type(mh4.load("models/hu"), mh4.Parser)
assert_type(mh4.read_conllu("input.conllu"), Stream[Sentence])
assert_type(mh4.evaluate("gold.conllu", "system.conllu")["LAS"], float)
assert_type(Document([]).sentences, tuple[Sentence, ...])
assert_type(mh4.train("train.conllu", "dev.conllu", "models/mine", preset="balanced"), mh4.Parser)
assert_type(mh4.evaluate(Sentence(["A"]), [Sentence(["A"])])["LAS"], float)
mh4.write_conllu(Sentence(["A"]), "one.conllu")

decoder, scores, gold = get_decoder("mst"), torch.nn.Parameter(torch.zeros(1, 1, 5, 5)), np.array([-1, 2, 0, 2])
cost, temperature = torch.zeros(1, 5, 5), torch.tensor(0.5)
assert_type(decoder.decode(scores[0], cost[0]), Derivation)
assert_type(decoder.decode_batch(scores, [3], cost), list[Derivation])
assert_type(decoder.decode_batch(scores.detach().numpy(), torch.tensor([3]), cost.numpy()), list[Derivation])
assert_type(decoder.derive_batch(scores, [gold]), list[Derivation])
assert_type(decoder.derive_batch(scores, torch.tensor([[-1, 2, 0, 2]])), list[Derivation])
assert_type(decoder.derive_batch(scores, ([-1, 2, 0, 2] for _ in range(1))), list[Derivation])
assert_type(decoder.forest(scores[0], temperature=temperature).k_best(2), list[Derivation])
assert_type(decoder.log_partition(scores[0], cost[0], temperature), float)
decoder.margins_batch(scores, [3], cost)
decoder.part_marginals_batch(scores, [3], cost, temperature)
