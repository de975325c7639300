"""Convert sentences and documents to JSON, pandas and spaCy, and back, by way of `to_dict` and `from_dict`."""

from __future__ import annotations

import json
import reprlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from mh4.machine import require

from .errors import DataError, counted
from .frames import read_frame, to_frame
from .guesses import Guided

if TYPE_CHECKING:
    from pandas import DataFrame
    from spacy.tokens import Doc
    from spacy.vocab import Vocab


class Exchanged(Guided):
    """Base class of sentences and documents, with conversions to and from other formats."""

    @abstractmethod
    def to_dict(self) -> Any:
        """The object as plain Python data."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Any, *, source: str = "") -> Self:
        """The inverse of `to_dict`."""

    @property
    def _sentences(self) -> Sequence[Any]:
        return (self,)

    @classmethod
    def _of_dictionaries(cls, found: list[dict[str, Any]], source: str) -> Self:
        if len(found) != 1:
            raise DataError(f"{source}: holds {counted(len(found), 'sentence')}, not one (for several, see Document)")
        return cls.from_dict(found[0], source=source)

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes, *, source: str = "JSON") -> Self:
        """The inverse of `to_json`; see `from_dict`. DataError: The text is not valid JSON, or not valid data."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            hint = " (of JSON lines, each is a sentence: Sentence.from_json(line))" * ("Extra data" in str(error))
            raise DataError(f"{source}: not valid JSON: {error}{hint}") from None
        return cls.from_dict(data, source=source)

    def to_pandas(self) -> DataFrame:
        """A data frame with a row for each word (extra ``mh4[pandas]``); unknown values are missing.

        The columns are ``sentence`` (from 1), ``sent_id``, the keys of `Word.to_dict` and ``token``, the form in the
        text: the multiword token's or the word's own. ``other_lines``, in the row of the first word, keeps comments,
        multiword tokens and empty nodes as in CoNLL-U. Scores and confidences have columns if any is known.
        ValueError: pandas is not installed.
        """
        return to_frame(self._sentences)

    @classmethod
    def from_pandas(cls, frame: DataFrame, *, source: str = "data frame") -> Self:
        """The inverse of `to_pandas`; columns other than ``text`` may be missing, and unknown ones are ignored.

        A sentence begins where ``sentence`` changes or ``id`` is 1.

        Raises
        ------
        DataError
            A value, or a sentence, is not valid; see `from_dict`.
        TypeError, ValueError
            ``frame`` is not a data frame; pandas is not installed.
        """
        return cls._of_dictionaries(read_frame(frame, source), source)

    def to_spacy(self, vocab: Vocab | None = None, text: str | None = None) -> Doc:
        """A `Doc` of spaCy (extra ``mh4[spacy]``) with tags, features, lemmas and, if all are known, heads.

        Given the parsed ``text``, all of its white space is kept. Without ``vocab``, the Doc has its own.
        ValueError: spaCy is not installed, or ``text`` is not what the sentences were cut from.
        """
        require("spacy", "spacy")
        from .spacy_docs import to_doc

        return to_doc(self._sentences, vocab, text)

    @classmethod
    def from_spacy(cls, doc: Doc) -> Self:
        """Convert a `Doc`, with the tags, features, lemmas and heads of its tokens; white space is kept in MISC.

        TypeError, ValueError: ``doc`` is not a Doc; spaCy is not installed. DataError: A value does not fit its column.
        """
        require("spacy", "spacy")
        from .spacy_docs import from_doc

        return cls._of_dictionaries(from_doc(doc), "Doc")


def listed(data: Any, source: str) -> Iterable[Any]:
    """Return the sentences of a document's data; a `DataError` if the data cannot be a list of sentences."""
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise DataError(f"{source}: a document is a list of sentences, not {reprlib.repr(data)}")
    return data
