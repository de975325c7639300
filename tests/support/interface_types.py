"""Expected types of the interface; `make test` checks this file with mypy, and it is never run."""

from typing import assert_type

import mh4
from mh4 import Document, Sentence
from mh4.data.stream import Stream

parser = mh4.load("models/hu", threads=1)
assert_type(parser("A kutya ugat."), Document)
assert_type(parser(["A", "kutya", "ugat", "."], confidence=True), Sentence)
assert_type(parser(Sentence.from_words(["A"])), Sentence)
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
