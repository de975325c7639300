"""A sample treebank: eight hundred sentences of an invented language, Ulvari, from a grammar of three screens.

It gives tests, tutorial and continuous integration something to learn that is small, free of any licence and rich in
crossing arcs. Ulvari is made so that the endings tell almost everything:

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

How to read `GRAMMAR`. A block ``Phrase weight : base features`` is one way to build a phrase, taken with probability
proportional to its weight. A base in lower case is a class of `WORDS`, the head of the phrase; a capitalised base is
another phrase, which the block surrounds with material of its own. The lines below are the dependents of the head in
their order: how often (always, if nothing is said), relation, phrase, features. ``agree`` copies the features of the
head, ``agree:Case`` only that one, ``agree[psed]`` all of them into the layer of the possessed. ``HEAD`` is the place
of the base. ``→ tail 40%`` moves the dependent, in so many cases, to the nearest ``site`` of that name above it.

A row of `WORDS` is a class of words: part of speech, stock of stems, inflectional features, form and lemma. Without a
value, a feature is copied by agreement or else drawn by lot. In forms and lemmas, ``stem`` and names of features are
replaced (`MORPHEMES`), and anything else stands for itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

GRAMMAR = """
Main 200 : Clause                                           # statements
          site        topic
          HEAD
     16%  conj        AndClause
          punct       stop
Main 30 : Clause                                            # with an adverbial clause
          advcl       WhenClause
          site        topic
          HEAD
          punct       stop
Main 20 : Clause                                            # questions
          discourse   particle
          site        topic
          HEAD
          punct       questionmark
Main 3 : Transitive                                         # gapping: the second verb is left out
          site        topic
          HEAD
          conj        Gapped
          punct       stop

Clause 160 : Transitive
Clause 80 : Intransitive
Clause 40 : Ditransitive
Clause 40 : Copula
Clause 100 : Control
Clause 3 : Chain
Clause 100 : Report
Clause 20 : Quotation

Transitive 1 : transitive                                   # "the bird sees the mouse"
     15%  obl         Adpositional
          nsubj       Nominal       agree Case=Nom
          site        field
     15%  advmod      adverb
     10%  aux         future
          HEAD
          obj         Nominal       Case=Acc                → topic 50%
     30%  obl         Adpositional
          site        tail
Intransitive 1 : intransitive                               # "the bird sleeps in the tree"
          nsubj       Nominal       agree Case=Nom
          site        field
     25%  advmod      adverb
     10%  advmod      negation
          HEAD
     60%  obl         Adpositional
          site        tail
Ditransitive 1 : ditransitive                               # "the bird gives the mouse a nut"
          nsubj       Nominal       agree Case=Nom
          site        field
     15%  advmod      adverb
          HEAD
          iobj        Nominal       Case=Dat                → field 20%
          obj         Nominal       Case=Acc                → topic 15%
          site        tail
Copula 1 : adjective Case=Nom                               # "the bird is very small"
          nsubj       Nominal       agree Case=Nom
          site        field
     10%  advmod      negation
          cop         copula
     20%  advmod      degree
          HEAD
          site        tail
Control 1 : control                                         # "the bird wants to see the mouse"
          nsubj       Nominal       agree Case=Nom
          site        field
     10%  advmod      negation
          HEAD
          xcomp       Infinitive
          site        tail
Chain 1 : control                                           # "the bird wants to help the mouse seek the nut"
          nsubj       Nominal       agree Case=Nom
          site        field
          HEAD
          xcomp       Helping
          site        tail
Report 1 : report                                           # "the bird says that …"
          nsubj       Nominal       agree Case=Nom
          site        field
     10%  advmod      adverb
          HEAD
          site        tail
          ccomp       ThatClause
Quotation 1 : report                                        # "the bird says: “…”"
          nsubj       Nominal       agree Case=Nom
          site        field
          HEAD
          site        tail
          ccomp       Speech

Infinitive 4 : infinitive
     15%  advmod      adverb
          HEAD
          obj         Nominal       agree Case=Acc          → field 55%  → topic 10%
     25%  obl         Adpositional
Infinitive 1 : infinitive.in
     25%  advmod      adverb
          HEAD
          obl         Adpositional                          → topic 15%
Helping 1 : infinitive.help
          obj         Nominal       agree Case=Dat          → field 90%
          HEAD
          xcomp       Helped
Helped 1 : infinitive
          HEAD
          obj         Nominal       agree Case=Acc          → field 90%

ThatClause 1 : Clause Mood=Sub
          punct       comma
          mark        complementiser
          HEAD
WhenClause 1 : Clause Mood=Sub
          mark        subordinator
          site        topic
          HEAD
          punct       comma
AndClause 1 : Clause
          punct       comma
          cc          coordinator
          site        topic
          HEAD
Speech 1 : Clause
          punct       colon
          punct       openquote
          site        topic
          HEAD
          punct       closequote
Gapped 1 : Nominal Case=Nom
          punct       comma
          cc          coordinator
          site        field
          HEAD
          site        tail
          orphan      Nominal       Case=Acc

Nominal 10 : noun
     30%  det         determiner    agree
      5%  nummod      numeral
     40%  amod        Attribute     agree                   → field 12%
          HEAD
     20%  nmod        Possessor     agree[psed]             → tail 8%
      9%  conj        AndNominal    agree:Case
     17%  acl:relcl   Relative      agree                   → tail 30%
Nominal 2 : name
          HEAD
     30%  flat        surname
Nominal 1 : pronoun
AndNominal 1 : Nominal
          cc          coordinator
          HEAD
Attribute 1 : adjective
     15%  advmod      degree
          HEAD
Possessor 1 : possessor
          HEAD
     10%  nmod        Possessor     agree[psed]
Adpositional 1 : Nominal Case=Loc
          case        adposition
          HEAD

Relative 5 : participle                                     # "who sees the mouse"
          punct       comma
          nsubj       relative      agree Case=Nom
          site        field
          obj         Nominal       Case=Acc
     20%  obl         Adpositional
          HEAD
          site        tail
          punct       comma
Relative 4 : participle                                     # "whom the mouse sees"
          punct       comma
          obj         relative      agree Case=Acc
          site        field
          nsubj       Nominal       Case=Nom
          HEAD
          site        tail
          punct       comma
Relative 2 : participle.in                                  # "from whom the mouse flees"
          punct       comma
          obl         WithWhom      agree:Gender,Number
          site        field
          nsubj       Nominal       Case=Nom
          HEAD
          site        tail
          punct       comma
WithWhom 1 : relative Case=Loc
          case        adposition
          HEAD
"""

WORDS = """
noun            NOUN   noun          Gender Number Case                 stem+Gender+Case+Number         stem+Gender
possessor       NOUN   noun          Gender Number Case=Gen Gender[psed] Case[psed] Number[psed] \
                                     stem+Gender+Number+Case+Gender[psed]+Case[psed]+Number[psed]       stem+Gender
name            PROPN  name          Gender Number Case                 stem+Gender+Case+Number         stem+Gender
surname         PROPN  surname       -                                  stem+ur                         stem+ur
pronoun         PRON   y             Gender Number Case PronType=Prs    stem+Gender+Case+Number         stem+o
relative        PRON   kv            Gender Number Case PronType=Rel    stem+Gender+Case+Number         stem+o
determiner      DET    t/h/zv        Gender Number Case PronType=Dem    stem+Gender+Case+Number         stem+o
adjective       ADJ    adjective     Gender Number Case                 stem+ul+Gender+Case+Number      stem+ul
numeral         NUM    dun/tris/pem  NumType=Card                       stem                            stem
degree          ADV    ze/tro/mik    -                                  stem                            stem
adverb          ADV    adverb        -                                  stem+im                         stem+im
negation        ADV    ne            Polarity=Neg                       stem                            stem
future          AUX    va            Tense=Fut                          stem                            stem
copula          AUX    es            Tense                              stem+Tense                      stem+er
transitive      VERB   transitive    Gender Number Mood=Ind Tense       stem+Tense+Mood+Gender+Number   stem+er
intransitive    VERB   intransitive  Gender Number Mood=Ind Tense       stem+Tense+Mood+Gender+Number   stem+er
ditransitive    VERB   ditransitive  Gender Number Mood=Ind Tense       stem+Tense+Mood+Gender+Number   stem+er
control         VERB   control       Gender Number Mood=Ind Tense       stem+Tense+Mood+Gender+Number   stem+er
report          VERB   report        Gender Number Mood=Ind Tense       stem+Tense+Mood+Gender+Number   stem+er
infinitive      VERB   transitive    Gender Number VerbForm=Inf         stem+er+Gender+Number           stem+er
infinitive.help VERB   help          Gender Number VerbForm=Inf         stem+er+Gender+Number           stem+er
infinitive.in   VERB   intransitive  VerbForm=Inf                       stem+er                         stem+er
participle      VERB   transitive    Gender Number Case VerbForm=Part   stem+ant+Gender+Case+Number     stem+er
participle.in   VERB   intransitive  Gender Number Case VerbForm=Part   stem+ant+Gender+Case+Number     stem+er
adposition      ADP    su/ve/or/pel  -                                  stem                            stem
coordinator     CCONJ  ju/ol         -                                  stem                            stem
complementiser  SCONJ  ke            -                                  stem                            stem
subordinator    SCONJ  fa/mon        -                                  stem                            stem
particle        PART   ha            -                                  stem                            stem
stop            PUNCT  .             -                                  stem                            stem
questionmark    PUNCT  ?             -                                  stem                            stem
comma           PUNCT  ,             -                                  stem                            stem
colon           PUNCT  :             -                                  stem                            stem
openquote       PUNCT  “             -                                  stem                            stem
closequote      PUNCT  ”             -                                  stem                            stem
"""

STOCK = {  # number of stems of the open classes; a small one belongs to a kind of verb that is known by heart
    "noun": 1500,
    "name": 200,
    "surname": 100,
    "adjective": 400,
    "adverb": 100,
    "transitive": 300,
    "intransitive": 150,
    "ditransitive": 12,
    "control": 12,
    "report": 12,
    "help": 4,
}

MORPHEMES = {
    "Gender": {"Masc": "o", "Fem": "a", "Neut": "e"},
    "Case": {"Nom": "", "Acc": "n", "Dat": "k", "Loc": "r", "Gen": "s"},
    "Number": {"Sing": "", "Plur": "i"},
    "Tense": {"Pres": "id", "Past": "od"},
    "Mood": {"Ind": "", "Sub": "u"},
}

CONTRACTIONS = {"su", "ve"}  # adpositions written together with a determiner in t-: su + tar → sutar

SPLITS = {"train": 600, "dev": 100, "test": 100}
LENGTHS = range(4, 31)  # words in a sentence


@dataclass(frozen=True)
class Line:
    """A line of a block: a dependent, the place of the base (relation "HEAD") or a landing place ("site")."""

    relation: str
    chance: float
    phrase: str
    features: list[str]
    moves: list[tuple[str, float]]  # (site, chance)


@dataclass(frozen=True)
class Block:
    """One way to build a phrase."""

    weight: int
    base: str
    features: list[str]
    lines: list[Line]


@dataclass(frozen=True)
class WordClass:
    """A row of `WORDS`."""

    upos: str
    stock: str
    features: list[str]
    form: list[str]
    lemma: list[str]


@dataclass(eq=False)
class Node:
    """A word and the order of its phrase: dependents, names of sites and "HEAD" for the word itself."""

    form: str
    lemma: str
    upos: str
    xpos: str
    features: dict[str, str]
    relation: str = "root"
    head: Node | None = None
    destination: str | None = None
    order: list[Node | str] = field(default_factory=lambda: ["HEAD"])


def write_sample(directory: str | Path, seed: int = 1) -> dict[str, Path]:
    """Write ``sample-train.conllu``, ``sample-dev.conllu`` and ``sample-test.conllu``.

    Parameters
    ----------
    directory : str or Path
        Created if it does not exist; files of these names are replaced.
    seed : int
        Seed of the sentences. The language does not depend on it: all seeds share grammar and stems.

    Returns
    -------
    dict
        Path of the file of each split: "train" (600 sentences), "dev" and "test" (100 each). Same seed, same bytes.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = {split: directory / f"sample-{split}.conllu" for split in SPLITS}
    for split, sentences in generate_sample(seed).items():
        paths[split].write_bytes("".join(sentences).encode("utf-8"))
    return paths


def generate_sample(seed: int = 1) -> dict[str, list[str]]:
    """The sentences of each split, in the CoNLL-U format and with their closing blank line; all are different."""
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
    """Draws sentences. Only ``rng.random()`` is used, whose values are the same for every version of Python."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def sentence(self) -> list[Node]:
        """The words of a sentence in their order, its length among `LENGTHS`."""
        while True:
            words, movers = self._linearise(self._expand("Main", {}))
            if movers:
                raise ValueError(f"the grammar has no site {movers[0][0]!r} above a dependent that moves there")
            words = _without_idle_commas(words)
            if len(words) in LENGTHS:
                words[0].form = words[0].form[0].upper() + words[0].form[1:]
                return words

    def _expand(self, phrase: str, features: dict[str, str]) -> Node:
        """Build a phrase that has these features, as far as it inflects for them."""
        if phrase[0].islower():
            return self._word(phrase, features)
        blocks = _grammar()[phrase]
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
        word = _words()[name]
        features = {}
        for item in word.features:
            feature, _, default = item.partition("=")
            features[feature] = inherited.get(feature) or default or self._choice(list(MORPHEMES[feature]))
        stem = self._choice(_stems()[word.stock], common_first=word.stock in STOCK)
        form, lemma = (_spell(pattern, stem, features) for pattern in (word.form, word.lemma))
        return Node(form, lemma, word.upos, name, features)

    def _choice(self, values: list[str], common_first: bool = False) -> str:
        """One of the values; with ``common_first`` the cube of a uniform number decides, so most are rare."""
        x = self.rng.random()
        return values[int(len(values) * (x * x * x if common_first else x))]

    def _linearise(self, node: Node) -> tuple[list[Node], list[tuple[str, list[Node]]]]:
        """Words of a phrase in their order, and the moved phrases (site, words) that find no site in it."""
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
    """The features that a line asks for, given those of the head."""
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


@cache
def _grammar() -> dict[str, list[Block]]:
    """`GRAMMAR`, the blocks of each phrase."""
    blocks: dict[str, list[Block]] = {}
    for text in GRAMMAR.splitlines():
        line = text.partition("#")[0]
        if not line.strip():
            continue
        if not line.startswith(" "):
            (phrase, weight), (base, *features) = (part.split() for part in line.split(" : "))
            blocks.setdefault(phrase, []).append(Block(int(weight), base, features, []))
            latest = blocks[phrase][-1]
        else:
            dependent, *moves = line.split("→")
            fields = dependent.split()
            chance = _percent(fields.pop(0)) if fields[0].endswith("%") else 1.0
            relation, phrase, *features = [*fields, ""] if fields == ["HEAD"] else fields
            places = [(site, _percent(share)) for site, share in map(str.split, moves)]
            latest.lines.append(Line(relation, chance, phrase, features, places))
    return blocks


def _percent(text: str) -> float:
    return int(text.removesuffix("%")) / 100


@cache
def _words() -> dict[str, WordClass]:
    """`WORDS` by name of the class."""
    table = {}
    for line in WORDS.strip().splitlines():
        name, upos, stock, *features, form, lemma = line.split()
        table[name] = WordClass(upos, stock, [f for f in features if f != "-"], form.split("+"), lemma.split("+"))
    return table


@cache
def _stems() -> dict[str, list[str]]:
    """The stems of each stock, short ones first; an open stock has invented ones, no stem is in two stocks."""
    rng = random.Random(0)
    taken: set[str] = set()

    def letter(letters: str) -> str:
        return letters[int(len(letters) * rng.random())]

    def stem() -> str:
        syllables = 1 + int(2.4 * rng.random())
        return "".join(letter("bdfghjklmnprstvz") + letter("aeiou") for _ in range(syllables)) + letter("bfgkmpvz")

    def stock(size: int) -> list[str]:
        stems: list[str] = []
        while len(stems) < size:
            if (candidate := stem()) not in taken:
                taken.add(candidate)
                stems.append(candidate)
        return sorted(stems, key=len)

    closed = {word.stock: word.stock.split("/") for word in _words().values() if word.stock not in STOCK}
    taken.update(stem for stems in closed.values() for stem in stems)
    return closed | {name: stock(size) for name, size in STOCK.items()}
