"""Aligns the words of two analyses of the same text.

A system that starts from raw text may cut it differently from the gold treebank. Before anything can be compared, the
words of both are laid over the characters of the text (white space ignored) and matched as in the CoNLL 2017 and 2018
shared tasks on parsing Universal Dependencies (Zeman et al. 2017 and 2018, sections on evaluation):

- a word that is a token of its own is matched with the word that covers exactly the same characters;
- the words inside a multiword token ("du" = de + le) have no characters of their own. Around such tokens, on either
  side, a *stretch* of text is closed off, and the words of the stretch are matched by a longest common subsequence
  of their forms, ignoring case.
"""

import reprlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from mh4.data.conllu import check_tree, read_conllu
from mh4.data.errors import DataError
from mh4.data.files import source_name
from mh4.data.sentence import Sentence

__all__ = ["ROOT", "UNALIGNED", "Analysis", "align_words", "read_analysis", "require_same_text"]

ROOT = -1  # head of a word attached to the root
UNALIGNED = -2  # for a system word without a gold word


@dataclass(eq=False)
class Analysis:
    """Tokens, words and annotation of a whole file of W words and S sentences; words are numbered from 0."""

    text: str = ""  # the characters of all tokens, without any space
    tokens: list[tuple[int, int]] = field(default_factory=list)  # half-open spans of the text
    sentences: list[tuple[int, int]] = field(default_factory=list)
    # Of W words; those of a multiword token all have its span.
    spans: list[tuple[int, int]] = field(default_factory=list)
    in_multiword: list[bool] = field(default_factory=list)  # whether a word is part of a multiword token
    forms: list[str] = field(default_factory=list)  # lower-cased; without white space if a word is a token of its own
    # Columns as written.
    lemmas: list[str] = field(default_factory=list)
    upos: list[str] = field(default_factory=list)
    xpos: list[str] = field(default_factory=list)
    feats: list[str] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)
    misc: list[str] = field(default_factory=list)
    trees: list[np.ndarray] = field(default_factory=list)  # int (n + 1,): heads of each sentence, if there are trees
    # For messages: file and name of each sentence, and line of each token and word.
    names: list[tuple[str, str]] = field(default_factory=list)
    token_lines: list[int] = field(default_factory=list)
    word_lines: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.forms)

    def heads(self) -> np.ndarray:
        """int64 (W,): the head of each word as a word of the file, or `ROOT`."""
        first, heads = 0, []
        for tree in self.trees:
            local = tree[1:].astype(np.int64)
            heads.append(np.where(local == 0, ROOT, local + (first - 1)))
            first += len(local)
        return np.concatenate(heads)

    def place(self, character: int) -> str:
        """``FILE:LINE: sentence ID`` of a character of ``text`` (of the last one, if the text ends before it)."""
        return self._located(character, self.token_lines[_span_of(self.tokens, character)])

    def place_of_word(self, word: int) -> str:
        """``FILE:LINE: sentence ID`` of a word."""
        return self._located(self.spans[word][0], self.word_lines[word])

    def _located(self, character: int, line: int) -> str:
        source, name = self.names[_span_of(self.sentences, character)]
        return f"{source}:{line}: {name}"


def _span_of(spans: Sequence[tuple[int, int]], character: int) -> int:
    """The last span that begins at this character or before it."""
    return bisect_right(spans, character, key=lambda span: span[0]) - 1


def read_analysis(
    source: str | Path | Sentence | Iterable[Sentence], trees: Literal["any", "required"] = "any"
) -> Analysis:
    """The analysis in a CoNLL-U file, in sentences or in one sentence.

    Either all sentences have trees, perhaps with several words below the root, or none has; with ``trees="required"``,
    all must have trees.

    Raises
    ------
    DataError
        The file cannot be read or holds no sentence; a head is missing while others are there, or they form a cycle.
    """
    if isinstance(source, bytes) or not isinstance(source, str | Path | Iterable):
        raise TypeError(
            f"an evaluation compares CoNLL-U files or sentences, not {reprlib.repr(source)}; write "
            "parser.evaluate(gold) to score a parser"
        )
    analysis = Analysis()
    texts: list[str] = []
    end = 0
    bare: Sentence | None = None  # the first one without any head
    if isinstance(source, Sentence):
        source = [source]
    for sentence in read_conllu(source) if isinstance(source, (str, Path)) else source:
        if not isinstance(sentence, Sentence):
            raise TypeError(f"{reprlib.repr(sentence)} is not a sentence; see mh4.Sentence and mh4.read_conllu")
        start = end
        for line, form, words in _tokens(sentence, analysis.word_lines):
            text = _without_spaces(form)
            span = (end, end + len(text))
            forms = [text] if words is None else sentence.forms[words]
            texts.append(text)
            analysis.tokens.append(span)
            analysis.token_lines.append(line)
            analysis.spans += [span] * len(forms)
            analysis.in_multiword += [words is not None] * len(forms)
            analysis.forms += map(str.lower, forms)
            end = span[1]
        analysis.sentences.append((start, end))
        analysis.names.append((sentence.source, sentence.name))
        analysis.lemmas += sentence.lemmas
        analysis.upos += sentence.upos
        analysis.xpos += sentence.xpos
        analysis.feats += sentence.feats
        analysis.relations += sentence.relations
        analysis.misc += sentence.misc
        if (sentence.heads == -1).all():
            bare = bare or sentence
        else:
            analysis.trees.append(check_tree(sentence).padded_heads)
    if bare is not None and (analysis.trees or trees == "required"):
        check_tree(bare)  # raises
    if not analysis.sentences:
        name = source_name(source) if isinstance(source, str | Path) else type(source).__name__
        raise DataError(f"{name}: holds no sentences (expected a CoNLL-U file)")
    analysis.text = "".join(texts)
    return analysis


def _tokens(sentence: Sentence, word_lines: list[int]) -> Iterator[tuple[int, str, slice | None]]:
    """Line and form of each token, with the words it consists of (indices from 0) if it is a multiword token.

    The line of each word is appended to ``word_lines``.
    """
    last = 0  # word of the multiword token in force
    for number, line in enumerate(sentence.lines, start=sentence.first_line):
        if line.startswith("#"):
            continue
        word_id, form, _ = line.split("\t", 2)
        if "-" in word_id:
            first, last = map(int, word_id.split("-"))
            yield number, form, slice(first - 1, last)
        elif "." not in word_id:  # empty nodes are not part of the text
            word_lines.append(number)
            if int(word_id) > last:
                yield number, form, None


@lru_cache(maxsize=1 << 16)
def _without_spaces(form: str) -> str:
    """The form without white space, which some systems keep inside tokens and others do not."""
    return "".join(form.split())


def require_same_text(gold: Analysis, system: Analysis) -> None:
    """Raise a `DataError` that shows the first difference, unless both files are analyses of the same text."""
    if gold.text == system.text:
        return
    differences = (i for i, (a, b) in enumerate(zip(gold.text, system.text, strict=False)) if a != b)
    position = next(differences, min(len(gold.text), len(system.text)))
    raise DataError(
        f"{system.place(position)}: the text differs from that of {gold.place(position)}: "
        f"{_excerpt(system.text, position)} where the gold text has {_excerpt(gold.text, position)} "
        "(evaluate files made from the same text; only the spaces may differ)"
    )


def _excerpt(text: str, position: int) -> str:
    """The next characters, quoted, and the code point of the first, which tells look-alikes apart."""
    if position == len(text):
        return "the end of the file"
    return f"{text[position : position + 20]!r} (U+{ord(text[position]):04X} …)"


def align_words(gold: Analysis, system: Analysis) -> np.ndarray:
    """The gold word of each system word, int64, or `UNALIGNED`, of two analyses of the same text.

    No gold word occurs twice, and the order of words is kept. Linear in the length of the text, except for the longest
    common subsequence, quadratic in the words of a stretch.
    """
    gold_word = np.full(len(system), UNALIGNED, np.int64)
    g = s = 0
    while g < len(gold) and s < len(system):
        if gold.in_multiword[g] or system.in_multiword[s]:
            (g, s), (g_end, s_end) = _multiword_stretch(gold, system, g, s)
            for i, j in _common_subsequence(gold.forms[g:g_end], system.forms[s:s_end]):
                gold_word[s + j] = g + i
            g, s = g_end, s_end
        elif gold.spans[g] == system.spans[s]:
            gold_word[s] = g
            g += 1
            s += 1
        elif gold.spans[g][0] <= system.spans[s][0]:
            g += 1
        else:
            s += 1
    return gold_word


def _multiword_stretch(gold: Analysis, system: Analysis, g: int, s: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """First words of the stretch around a multiword token that starts at word g or s, and the words after it.

    The stretch grows until no multiword token of either side reaches over its end. A token of one word may do so: it
    has no counterpart in the stretch.
    """
    sides, at = (gold, system), [g, s]
    opener = 0 if gold.in_multiword[g] else 1
    other = 1 - opener
    start, end = sides[opener].spans[at[opener]]
    if not sides[other].in_multiword[at[other]] and sides[other].spans[at[other]][0] < start:
        at[other] += 1  # reaches into the stretch from the left; one word at most is passed over, as in the task
    first = (at[0], at[1])
    while _inside(gold, at[0], end) or _inside(system, at[1], end):
        earlier = 0 if _start(gold, at[0]) <= _start(system, at[1]) else 1
        side, word = sides[earlier], at[earlier]
        if side.in_multiword[word]:
            end = max(end, side.spans[word][1])
        at[earlier] += 1
    return first, (at[0], at[1])


def _start(side: Analysis, word: int) -> int:
    """First character of a word, or the length of the text after the last word."""
    return side.spans[word][0] if word < len(side) else len(side.text)


def _inside(side: Analysis, word: int, end: int) -> bool:
    """Whether a word belongs to the stretch that reaches to ``end``: multiword tokens that start in it extend it."""
    if word >= len(side):
        return False
    return side.spans[word][0] < end if side.in_multiword[word] else side.spans[word][1] <= end


def _common_subsequence(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence; among several, the one that skips words of ``a`` first."""
    if a == b:
        return [(i, i) for i in range(len(a))]
    longest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]  # of the suffixes a[i:], b[j:]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            longest[i][j] = longest[i + 1][j + 1] + 1 if a[i] == b[j] else max(longest[i + 1][j], longest[i][j + 1])
    pairs = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            pairs.append((i, j))
            i += 1
            j += 1
        elif longest[i][j] == longest[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs
