"""The grammar and the words of Ulvari, the language of the sample treebank, as three tables.

How to read `GRAMMAR`. A block ``Phrase weight : base features`` is one way to build a phrase, taken with probability
proportional to its weight. A base in lower case is a class of `WORDS`, the head of the phrase; a capitalised base is
another phrase, to which the block adds material of its own. The lines below are the dependents of the head in order:
frequency (default: always), relation, phrase, features. ``agree`` copies all features of the head, ``agree:Case`` only
the case, ``agree[psed]`` all of them into the layer of the possessed. ``HEAD`` is the place of the base. ``→ tail 40%``
moves the dependent, in 40% of the cases, to the nearest ``site`` of that name above it.

A row of `WORDS` is a class of words: part of speech, stock of stems, inflectional features, form and lemma. A feature
without a value is copied by agreement or else drawn at random. In forms and lemmas, ``stem`` and names of features are
replaced (`MORPHEMES`); anything else is literal.
"""

import random
from dataclasses import dataclass
from functools import cache

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

STOCK = {  # number of stems of the open classes; the small ones are kinds of verbs to be learnt by heart
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


@cache
def phrase_blocks() -> dict[str, list[Block]]:
    """The blocks of each phrase, parsed from `GRAMMAR`."""
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
def word_classes() -> dict[str, WordClass]:
    """The word classes by name, parsed from `WORDS`."""
    table = {}
    for line in WORDS.strip().splitlines():
        name, upos, stock, *features, form, lemma = line.split()
        table[name] = WordClass(upos, stock, [f for f in features if f != "-"], form.split("+"), lemma.split("+"))
    return table


@cache
def stem_stocks() -> dict[str, list[str]]:
    """The stems of each stock, short ones first; those of open stocks are invented, and no stem is in two stocks."""
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

    closed = {word.stock: word.stock.split("/") for word in word_classes().values() if word.stock not in STOCK}
    taken.update(stem for stems in closed.values() for stem in stems)
    return closed | {name: stock(size) for name, size in STOCK.items()}
