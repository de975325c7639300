"""Generates the sample treebank: eight hundred sentences of an invented language, from a grammar of three screens.

    python experiments/ulvari.py --seed 1 -o sample

Seed 1 is the treebank that `mh4 sample` writes and the tests and the tutorial learn from; it is part of the package
(`src/mh4/data/ulvari`). Ulvari, the language, is made so that the endings tell almost everything:

* **Agreement.** Nouns, names, adjectives, determiners and participles end in gender + case + number (*zub-a-n-i*,
  feminine accusative plural). Verbs agree with their subject, infinitives with their object.
* **Case stacking.** A possessor has its own gender and number and then, after *-s-*, the whole ending of what is
  possessed: *zub-e-s-an-i* belongs to a feminine accusative plural, wherever that noun may stand.
* **Word formation.** *-ul-* makes adjectives, *-ant-* participles, *-er-* infinitives, *-id-* and *-od-* the tenses,
  *-im* adverbs. No stem ends in one of these consonants, so an unknown stem is no obstacle; and there are many, since
  the stems of nouns, verbs and adjectives are drawn from hundreds, a few frequent and short, most rare and long.
* **Displacement.** What agrees so well may stand elsewhere. Possessors and relative clauses go to the *tail* of their
  clause, adjectives to the *field* between subject and verb, objects of embedded verbs to the field of the governing
  clause or to the very beginning (*topic*). A chain of two infinitives puts all its objects into the field, in the
  order of the verbs, as in Swiss German: N₁ N₂ N₃ V₁ V₂ V₃, a tree beyond MH4 and beyond 1-endpoint-crossing.

About a third of the trees are non-projective; of all trees, one in 28 is beyond MH4 and about as many are beyond
1-endpoint-crossing. Two in five words of the test file, punctuation included, do not occur in the training file.

`ulvari_grammar.py` holds the language; this script draws sentences of it and writes them down.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, field
from pathlib import Path

from scripting import run_script
from ulvari_grammar import CONTRACTIONS, MORPHEMES, STOCK, Line, phrase_blocks, stem_stocks, word_classes

SPLITS = {"train": 600, "dev": 100, "test": 100}
LENGTHS = range(4, 31)  # words in a sentence


@dataclass(eq=False)
class Node:
    """A word and the order of its phrase: dependents, names of sites, and "HEAD" for the word itself."""

    form: str
    lemma: str
    upos: str
    xpos: str
    features: dict[str, str]
    relation: str = "root"
    head: Node | None = None
    destination: str | None = None
    order: list[Node | str] = field(default_factory=lambda: ["HEAD"])


def generate_sample(seed: int = 1) -> dict[str, list[str]]:
    """The sentences of each split in CoNLL-U, each with its closing blank line; all are different."""
    grammar = Ulvari(random.Random(seed))
    seen: set[str] = set()
    splits: dict[str, list[str]] = {}
    for split, size in SPLITS.items():
        sentences: list[str] = []
        while len(sentences) < size:
            words = grammar.sentence()
            text = " ".join(word.form for word in words)
            if text not in seen:
                seen.add(text)
                sentences.append(_conllu(words, f"sample-{split}-{len(sentences) + 1}"))
        splits[split] = sentences
    return splits


class Ulvari:
    """Draws sentences, using only ``rng.random()``, whose values are the same in every version of Python."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def sentence(self) -> list[Node]:
        """Draw a sentence of a length in `LENGTHS`; return its words in order."""
        while True:
            words, movers = self._linearise(self._expand("Main", {}))
            if movers:
                raise ValueError(f"the grammar has no site {movers[0][0]!r} above a dependent that moves there")
            words = _without_idle_commas(words)
            if len(words) in LENGTHS:
                words[0].form = words[0].form[0].upper() + words[0].form[1:]
                return words

    def _expand(self, phrase: str, features: dict[str, str]) -> Node:
        """Build a phrase with these features, as far as it inflects for them."""
        if phrase[0].islower():
            return self._word(phrase, features)
        blocks = phrase_blocks()[phrase]
        threshold = self.rng.random() * sum(block.weight for block in blocks)
        for block in blocks:
            threshold -= block.weight
            if threshold < 0:
                break
        head = self._expand(block.base, features | _specified(block.features, {}))
        order: list[Node | str] = []
        for line in block.lines:
            if line.relation == "HEAD":
                order.extend(head.order)
            elif line.relation == "site":
                order.append(line.phrase)
            elif self.rng.random() < line.chance:
                dependent = self._expand(line.phrase, _specified(line.features, head.features))
                dependent.relation = line.relation
                dependent.head = head
                dependent.destination = self._destination(line)
                order.append(dependent)
        head.order = order or head.order
        return head

    def _destination(self, line: Line) -> str | None:
        threshold = self.rng.random()
        for site, chance in line.moves:
            threshold -= chance
            if threshold < 0:
                return site
        return None

    def _word(self, name: str, inherited: dict[str, str]) -> Node:
        word = word_classes()[name]
        features = {}
        for item in word.features:
            feature, _, default = item.partition("=")
            features[feature] = inherited.get(feature) or default or self._choice(list(MORPHEMES[feature]))
        stem = self._choice(stem_stocks()[word.stock], common_first=word.stock in STOCK)
        form, lemma = (_spell(pattern, stem, features) for pattern in (word.form, word.lemma))
        return Node(form, lemma, word.upos, name, features)

    def _choice(self, values: list[str], common_first: bool = False) -> str:
        """Draw a value, uniformly or, with ``common_first``, by the cube of a uniform number, so that most are rare."""
        x = self.rng.random()
        return values[int(len(values) * (x * x * x if common_first else x))]

    def _linearise(self, node: Node) -> tuple[list[Node], list[tuple[str, list[Node]]]]:
        """The words of a phrase in order, and the moved phrases (site, words) whose site is not in it."""
        order: list[list[Node] | str] = []
        movers: list[tuple[str, list[Node]]] = []
        for item in node.order:
            if item == "HEAD":
                order.append([node])
            elif isinstance(item, str):
                order.append(item)
            else:
                words, rest = self._linearise(item)
                if item.destination:
                    movers.append((item.destination, words))
                else:
                    order.append(words)
                movers.extend(rest)
        landed = [
            [word for site, moved in movers if site == place for word in moved] if isinstance(place, str) else place
            for place in order
        ]
        homeless = [mover for mover in movers if mover[0] not in order]
        return [word for words in landed for word in words], homeless


def _specified(specification: list[str], head: dict[str, str]) -> dict[str, str]:
    """The features that a specification gives to a dependent, given those of its head."""
    features = {}
    for item in specification:
        name, _, value = item.partition("=")
        if value:
            features[name] = value
            continue
        layer = name[len("agree") :].partition(":")[0]
        selection = name.partition(":")[2].split(",")
        for feature, value in head.items():
            if "[" not in feature and (selection == [""] or feature in selection):
                features[feature + layer] = value
    return features


def _spell(pattern: list[str], stem: str, features: dict[str, str]) -> str:
    pieces = []
    for piece in pattern:
        feature = piece.partition("[")[0]
        if piece == "stem":
            pieces.append(stem)
        else:
            pieces.append(MORPHEMES[feature][features[piece]] if feature in MORPHEMES else piece)
    return "".join(pieces)


def _without_idle_commas(words: list[Node]) -> list[Node]:
    """Leave out a comma before another punctuation mark."""
    followers = [word.upos for word in words[1:]] + [""]
    return [w for w, upos in zip(words, followers, strict=True) if w.form != "," or upos != "PUNCT"]


def _conllu(words: list[Node], sent_id: str) -> str:
    """A sentence in the CoNLL-U format; the enhanced graph (DEPS) adds an empty node for the verb of a gap."""
    number = {word: i for i, word in enumerate(words, 1)}
    gaps = {word.head: f"{number[word.head]}.1" for word in words if word.relation == "orphan" and word.head}
    rows, text = [], ""
    last_of_token = 0
    for i, word in enumerate(words, 1):
        if i > last_of_token:
            last_of_token = i + (i < len(words) and _contracts(word, words[i]))
            surface = "".join(w.form for w in words[i - 1 : last_of_token])
            space = last_of_token < len(words) and _space_between(words[last_of_token - 1], words[last_of_token])
            misc = "_" if space or last_of_token == len(words) else "SpaceAfter=No"
            text += surface + " " * space
            if last_of_token > i:
                rows.append(f"{i}-{last_of_token}\t{surface}" + "\t_" * 7 + f"\t{misc}")
                misc = "_"
        else:
            misc = "_"
        features = "|".join(f"{k}={v}" for k, v in sorted(word.features.items(), key=lambda kv: kv[0].lower())) or "_"
        head = number[word.head] if word.head else 0
        arc = f"{head}:{word.relation}"
        columns = f"{word.form}\t{word.lemma}\t{word.upos}\t{word.xpos}\t{features}"
        rows.append(f"{i}\t{columns}\t{head}\t{word.relation}\t{_enhanced(word, arc, gaps)}\t{misc}")
        if word in gaps and word.head:
            verb = word.head
            columns = f"{verb.form.lower()}\t{verb.lemma}\t{verb.upos}\t{verb.xpos}\t_"
            rows.append(f"{gaps[word]}\t{columns}\t_\t_\t{arc}\t_")
    return "\n".join([f"# sent_id = {sent_id}", f"# text = {text}", *rows]) + "\n\n"


def _contracts(word: Node, following: Node) -> bool:
    return word.lemma in CONTRACTIONS and following.upos == "DET" and following.form.startswith("t")


def _space_between(word: Node, following: Node) -> bool:
    return word.form != "“" and following.form not in tuple(",.:?”")


def _enhanced(word: Node, arc: str, gaps: dict[Node, str]) -> str:
    """The enhanced dependency of a word: around a gap, the empty node is the head."""
    if word in gaps:
        return f"{gaps[word]}:nsubj"
    if word.head in gaps and word.relation in ("cc", "orphan", "punct"):
        return f"{gaps[word.head]}:{word.relation.replace('orphan', 'obj')}"
    return arc


def main() -> None:
    """Write ``sample-train.conllu``, ``sample-dev.conllu`` and ``sample-test.conllu``: same seed, same bytes."""
    parser = argparse.ArgumentParser(description="Generate a treebank of Ulvari.")
    parser.add_argument("--seed", type=int, default=1, help="the language is the same for every seed")
    parser.add_argument("-o", "--output", type=Path, default=Path("sample"), help="folder")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for split, sentences in generate_sample(arguments.seed).items():
        (arguments.output / f"sample-{split}.conllu").write_bytes("".join(sentences).encode())


if __name__ == "__main__":
    raise SystemExit(run_script(main))
