"""Reading what is learnt from."""

import logging
from pathlib import Path

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError, ErrorPolicy, Errors
from mh4.data.sentence import Sentence, share_strings

log = logging.getLogger("mh4")


def read_gold(path: str | Path, errors: ErrorPolicy = "raise") -> list[Sentence]:
    """All sentences of a treebank with gold trees; what is skipped or odd is counted in one warning each.

    Raises
    ------
    DataError
        A sentence is not valid, unless ``errors`` says otherwise; no sentence is left.
    """
    skipped = Errors(errors)
    sentences = list(share_strings(read_conllu(path, trees="required", errors=skipped)))
    if skipped.count:
        log.warning("%s: %d bad sentences skipped; the first: %s", path, skipped.count, skipped.first)
    several = sum(len(sentence.roots) > 1 for sentence in sentences)
    if several:
        log.warning("%s: %d of %d sentences have several roots", path, several, len(sentences))
    if not sentences:
        raise DataError(f"{path}: holds no usable sentences")
    return sentences
