"""Reading what is learnt from."""

import logging
from pathlib import Path

import numpy as np

from mh4.data.conllu import Trees, read_conllu
from mh4.data.errors import DataError, ErrorPolicy, Errors
from mh4.data.sentence import Sentence, share_strings

log = logging.getLogger("mh4")


def read_gold(path: str | Path, errors: ErrorPolicy = "raise", trees: Trees = "required") -> list[Sentence]:
    """All sentences of a treebank with gold trees; what is skipped or odd is counted in one line each.

    With ``trees="partial"`` some heads may be missing; see `read_conllu`.

    DataError: A sentence is not valid, unless ``errors`` says otherwise; no sentence is left.
    """
    skipped = Errors(errors)
    sentences = list(share_strings(read_conllu(path, trees=trees, errors=skipped)))
    if skipped.count:
        log.warning("%s: %s", path, skipped.summary)
    several = sum(len(sentence.roots) > 1 for sentence in sentences)
    if several:
        log.warning("%s: %d of %d sentences have several roots", path, several, len(sentences))
    words = sum(map(len, sentences))
    if unknown := words - sum(int(np.count_nonzero(sentence.heads[1:] >= 0)) for sentence in sentences):
        log.info("%s: %d of %d words have a head; trees are learnt from these", path, words - unknown, words)
    if not sentences:
        raise DataError(f"{path}: holds no usable sentences")
    return sentences
