"""Treebanks in the CoNLL-U format: reading one sentence at a time, validating, writing back.

The library `conllu` interprets ids, heads, comments, FEATS and MISC. Lines are cut into columns here, because the
library would drop comments without "=", split a form that holds two spaces and cut ``Ref=a=b``. A sentence keeps what
was read, and writing replaces only the columns that were predicted, so every other byte comes out as it was:
comments, multiword tokens, empty nodes, all ten columns, line ends, surplus blank lines before a sentence. Three
things are normalised. A sentence is always written with its closing line end and blank line, also when the file ended
without them, so that sentences can be written in any order; a byte order mark is left out for the same reason. Surplus
blank lines after the last sentence are not kept: a sentence is yielded as soon as its blank line is read, so that
pipes need not wait for more.
"""

import os
import reprlib
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from .blocks import blocks
from .errors import DataError, ErrorPolicy, Errors, quote
from .files import atomic_output, open_input, source_name
from .sentence import Sentence
from .stream import Stream
from .writing import require_conllu

Trees = Literal["any", "partial", "required"]

__all__ = ["check_no_cycle", "check_tree", "read_conllu", "write_conllu"]


def read_conllu(path: str | Path, *, trees: Trees = "any", errors: ErrorPolicy = "raise") -> Stream[Sentence]:
    """Read the sentences of a CoNLL-U file one by one; memory does not grow with the file.

    Every sentence is checked: UTF-8; ten columns; word ids 1…n in order, multiword tokens and empty nodes in their
    place; at least one word; no blank value, and white space only inside FORM, LEMMA and MISC; HEAD either "_" or in
    0…n. Several roots are accepted (`Sentence.roots`).

    Parameters
    ----------
    path
        A file, or ``-`` for standard input.
    trees
        "required" for training and evaluation: every word has a HEAD other than itself, heads form no cycle, and the
        file holds at least one sentence. "partial" checks the heads that are present; the file must have at least one.
        "any" accepts all heads.
    errors
        What to do with an invalid sentence: "raise", "skip" or a function that takes the error; see `Errors.of`.

    Raises
    ------
    DataError
        The file cannot be read or, unless `errors` says otherwise, a sentence is invalid. With required or partial
        trees, also if the file has no valid sentence. Raised while iterating, since sentences are read on demand.
    ValueError
        `trees` or `errors` has an unknown value.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"read_conllu takes a path, not {reprlib.repr(path)}; for a string, see mh4.Document.from_conllu"
        )
    if trees not in get_args(Trees):
        raise ValueError(f"trees must be one of {', '.join(get_args(Trees))}; not {trees!r}")
    return Stream(_read(path, trees, Errors.of(errors)))


def _read(path: str | Path, trees: Trees, report: Errors) -> Generator[Sentence, None, None]:
    source = source_name(path)
    good = number = heads = 0
    first: DataError | None = None
    with open_input(path) as stream:
        for number, block in enumerate(blocks(stream), start=1):
            try:
                sentence = Sentence.from_block(block, source, number)
                if trees == "required":
                    check_tree(sentence)
                elif trees == "partial":
                    check_no_cycle(sentence)
            except DataError as error:
                first = first or error
                report(error)
                continue
            good += 1
            heads += int(np.count_nonzero(sentence.heads >= 0))
            yield sentence
    if trees == "any":
        return
    if first is not None and not good:
        raise DataError(f"{source}: no sentence of {number} is valid; the first: {first}")
    if not good:
        raise DataError(f"{source}: holds no sentences (expected a CoNLL-U file with trees)")
    if not heads:
        raise DataError(f"{source}: no word has a HEAD (expected a CoNLL-U file with trees or partial trees)")


def write_conllu(sentences: Sentence | Iterable[Sentence], path: str | Path) -> None:
    """Write sentences, or one, to a CoNLL-U file, which appears once it is complete; ``-`` is standard output.

    Raises
    ------
    DataError
        The file cannot be written; see `atomic_output`.
    TypeError
        The arguments are in the wrong order, or an item is not a sentence.
    ValueError
        The name of the file ends like those of another format, such as ``.json`` or ``.zip``.
    """
    if isinstance(sentences, str | Path):
        raise TypeError("the sentences come first: write_conllu(sentences, path)")
    if not isinstance(sentences, Iterable):
        raise TypeError(f"expected sentences, not {reprlib.repr(sentences)}; write write_conllu(sentences, path)")
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"expected a path, not {reprlib.repr(path)}; write write_conllu(sentences, path)")
    require_conllu(path)
    with atomic_output(path) as stream:
        for sentence in [sentences] if isinstance(sentences, Sentence) else sentences:
            if not isinstance(sentence, Sentence):
                raise TypeError(f"{quote(str(sentence))} is not a sentence; see Sentence.from_words and from_conllu")
            stream.write(sentence.to_bytes())


def check_tree(sentence: Sentence) -> Sentence:
    """Return the sentence; raise its `DataError` if the heads are not a tree (several roots are allowed)."""
    for word, head in enumerate(sentence.heads.tolist(), start=1):
        if head < 0:
            raise sentence.error(f"HEAD of word {word} is missing (a tree needs every head)", word)
    # From any word, the heads lead to the root or into a cycle, so a graph without cycles has a root.
    check_no_cycle(sentence)
    return sentence


def check_no_cycle(sentence: Sentence) -> None:
    """Raise a `DataError` if a word is its own head or the heads contain a cycle; heads may be missing."""
    heads = sentence.padded_heads.tolist()
    for word, head in enumerate(heads[1:], start=1):
        if head == word:
            raise sentence.error(f"word {word} ({quote(sentence.forms[word - 1])}) is its own head", word)
    if cycle := _find_cycle(heads):
        steps = [f"{word} ({quote(sentence.forms[word - 1])})" for word in [*cycle, cycle[0]]]
        path = " → ".join(steps if len(steps) <= 12 else [*steps[:6], "…", *steps[-5:]])
        no_root = "" if 0 in heads[1:] or -1 in heads[1:] else "no word has HEAD 0, and "
        raise sentence.error(f"{no_root}the heads of words {path} form a cycle", min(cycle))


def _find_cycle(heads: Sequence[int]) -> list[int]:
    """A cycle of words, each followed by its head, starting at its smallest word; empty if there is none."""
    seen_from = [0] * len(heads)  # by word: where the first walk towards the root that reached it started
    for start in range(1, len(heads)):
        word = start
        while word > 0 and not seen_from[word]:
            seen_from[word] = start
            word = heads[word]
        if word > 0 and seen_from[word] == start:
            cycle = [word]
            while (word := heads[word]) != cycle[0]:
                cycle.append(word)
            first = cycle.index(min(cycle))
            return cycle[first:] + cycle[:first]
    return []
