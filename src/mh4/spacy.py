"""Integration with spaCy: a component, ``nlp.add_pipe("mh4", config={"model": FOLDER})``, and whole pipelines, `load`.

Every token but white space, and a byte order mark, is a word for the parser. Each word of a multiword token is a token;
``token._.mh4_surface`` of the first is the form in the text.
"""

import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

try:
    import spacy
except ModuleNotFoundError:
    raise ModuleNotFoundError("spaCy is not installed: pip install 'mh4[spacy]'", name="spacy") from None
from spacy.language import Language
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.util import get_lang_class, raise_error, registry
from spacy.vocab import Vocab

from mh4.data.document import Document
from mh4.data.errors import DataError, quote
from mh4.data.sentence import Sentence
from mh4.data.spaces import one_line
from mh4.data.spacy_docs import check_features, fill, is_word, lemma_of
from mh4.parsers.base import Parser
from mh4.parsers.registry import load as load_parser
from mh4.parsers.runtime import Runtime

# As spaCy defines it: the component's name, the component, its documents and the error.
ErrorHandler = Callable[[str, Any, list[Doc], Exception], None]

# How the columns of a sentence are read from a token.
_COLUMNS: dict[str, Callable[[Token], str]] = {
    "upos": lambda token: token.pos_,
    "xpos": lambda token: token.tag_,
    "feats": lambda token: str(token.morph),
    "lemmas": lemma_of,
}

_SCORERS = ("parser", "tagger", "morphologizer", "lemmatizer")  # of spaCy, whose measures differ from the shared task's


def _to_conllu(doc: Doc) -> str:
    return from_doc(doc).to_conllu()


Doc.set_extension("conllu", getter=_to_conllu, force=True)  # not a lambda: processes are sent all extensions


class _Model:
    """A parser that is loaded on first use, and serialized with its pipeline."""

    def __init__(self, folder: str | Path | None, device: str = "auto", threads: int | None = None) -> None:
        # Absolute, since the working folder may change before the model is loaded.
        self._folder = Path(folder).absolute() if folder and Path(folder).exists() else folder
        self._runtime = Runtime(device, threads)
        self._parser: Parser | None = None

    @property
    def parser(self) -> Parser:
        """The parser; a ValueError if the component has no model."""
        if self._parser is None:
            if not self._folder:
                raise ValueError('the component has no model; write nlp.add_pipe("mh4", config={"model": "FOLDER"})')
            self._parser = self._load(self._folder)
        return self._parser

    def _load(self, folder: str | Path) -> Parser:
        return load_parser(folder, device=self._runtime.device, threads=self._runtime.threads)

    def to_disk(self, path: str | Path, *, exclude: Sequence[str] = ()) -> None:
        """Write the model to a folder, replacing an earlier one."""
        self.parser.save(path, overwrite=True)

    def from_disk(self, path: str | Path, *, exclude: Sequence[str] = ()) -> Any:
        """Load the model from a folder."""
        self._parser = self._load(path)
        return self

    def to_bytes(self, *, exclude: Sequence[str] = ()) -> bytes:
        """Serialize the files of the model."""
        from srsly import msgpack_dumps

        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(Path(folder) / "model")
            files = (path for path in sorted((Path(folder) / "model").iterdir()) if path.is_file())
            return bytes(msgpack_dumps({path.name: path.read_bytes() for path in files}))

    def from_bytes(self, data: bytes, *, exclude: Sequence[str] = ()) -> Any:
        """Load the model from the result of `to_bytes`."""
        from srsly import msgpack_loads

        with tempfile.TemporaryDirectory() as folder:
            for name, content in msgpack_loads(data).items():
                if Path(name).name != name:
                    raise ValueError(f"{name!r} is not the name of a file of a model")
                (Path(folder) / name).write_bytes(content)
            self._parser = self._load(folder)
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_parser"}
        return {**state, "content": self.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("content")
        self.__dict__.update(state, _parser=None)
        self.from_bytes(content)


class Component(_Model):
    """Sets heads and relations of documents, and the tags, features and lemmas that the model predicts.

    Where ``token.is_sent_start`` is True or False, it decides whether a sentence begins; elsewhere, the model's
    segmenter does. Without a segmenter, sentences begin only where the document says so. Tags, features and lemmas that
    the model does not predict are taken from the document. Documents that fail go to the pipeline's error handler one
    by one.

    Parameters
    ----------
    name
        The component's name in its pipeline.
    model
        Model folder; None if `from_disk` or `from_bytes` will load the model.
    confidence
        Whether to set ``token._.mh4_confidence`` and ``token._.mh4_head_confidence``.
    device, threads
        Where and with how many threads to parse, as in `mh4.load`; one thread is best for each of many processes.
    """

    _error_handler: ErrorHandler = staticmethod(raise_error)

    def __init__(
        self,
        name: str,
        model: str | None,
        confidence: bool,
        device: str = "auto",
        threads: int | None = None,
    ) -> None:
        super().__init__(model, device, threads)
        self.name = name
        self.confidence = confidence

    def set_error_handler(self, error_handler: ErrorHandler) -> None:
        """Set the function that is called with name, component, documents and error if parsing fails."""
        self._error_handler = error_handler

    def get_error_handler(self) -> ErrorHandler:
        """Return the function that `set_error_handler` has set."""
        return self._error_handler

    def __call__(self, doc: Doc) -> Doc:
        """Parse a document."""
        self._parse([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Parse documents, ``batch_size`` at a time."""
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            try:
                self._parse(batch)
            except Exception:  # try each document alone: only those that fail go to the error handler
                for doc in batch:
                    try:
                        self._parse([doc])
                    except Exception as error:
                        told = DataError(f"Doc {quote(doc.text)}: {error}") if isinstance(error, DataError) else error
                        self._error_handler(self.name, self, [doc], told)
                    else:
                        yield doc
            else:
                yield from batch

    def score(self, examples: Iterable[Example], **options: Any) -> dict[str, Any]:
        """Score sentences, trees, tags, features and lemmas for ``nlp.evaluate``, as spaCy's own components do."""
        examples, scores = list(examples), dict[str, Any]()
        for name in _SCORERS:
            scores |= registry.scorers.get(f"spacy.{name}_scorer.v1")()(examples, **options)
        return scores

    def _parse(self, docs: Sequence[Doc]) -> None:
        """Write trees and columns into all documents, or into none."""
        places = [self._sentences(doc) for doc in docs]
        columns = {name: getter for name, getter in _COLUMNS.items() if name not in self.parser.annotates}
        words = []
        for doc, of_doc in zip(docs, places, strict=True):
            for tokens in ([doc[i] for i in own] for own in of_doc):
                given = {name: [getter(token) or None for token in tokens] for name, getter in columns.items()}
                words.append(Sentence([one_line(token.text) for token in tokens], **given))
        found = list(self.parser.parse(words, confidence=self.confidence))
        check_features(found)
        parsed = iter(found)
        for doc, of_doc in zip(docs, places, strict=True):
            if of_doc:
                fill(doc, of_doc, list(islice(parsed, len(of_doc))))

    def _sentences(self, doc: Doc) -> list[list[int]]:
        """Token indices of the words of each sentence."""
        words = [token.i for token in doc if is_word(token)]
        if not words:
            return []
        starts = {token.i for token in doc if token.is_sent_start}
        if self.parser.segmenter is not None and not doc.has_annotation("SENT_START", require_complete=True):
            # All that stands before the second sentence, such as a byte order mark, belongs to the first.
            cut = [sentence.tokens[0].start for sentence in self.parser.cut(doc.text)][1:]
            places = [token.idx for token in doc]
            starts |= {i for i in (bisect_left(places, start) for start in cut) if i < len(doc)}
            starts -= {token.i for token in doc if token.is_sent_start is False}
        ordered = sorted(starts)
        begun = (bisect_right(ordered, i) for i in words)
        return [[i for _, i in own] for _, own in groupby(zip(begun, words, strict=True), key=itemgetter(0))]


@Language.factory(
    "mh4",
    default_config={"model": None, "confidence": False, "device": "auto", "threads": None},
    assigns=["token.head", "token.dep", "token.tag", "token.pos", "token.morph", "token.lemma", "doc.sents"],
)
def make_component(
    nlp: Language, name: str, model: str | None, confidence: bool, device: str, threads: int | None
) -> Component:
    """The component for ``nlp.add_pipe("mh4", …)``; see `Component`."""
    return Component(name, model, confidence, device, threads)


class Tokenizer:
    """Cuts text into sentences and words with the segmenter of the pipeline's first "mh4" component; see `load`."""

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        self.vocab = nlp.vocab

    def __call__(self, text: str) -> Doc:
        """Tokenize a text, without parsing it; one with NUL, which cannot be cut, becomes a single token."""
        component = next((one for _, one in self.nlp.components if isinstance(one, Component)), None)
        if component is None:
            raise ValueError('this tokenizer cuts text with a model; write nlp.add_pipe("mh4", …)')
        parser = component.parser
        try:
            cut = parser.cut(text)
        except DataError as error:
            # spaCy calls tokenizers outside its error handling; it handles the component's error about this token.
            try:
                return Doc(self.vocab, [text], [False])
            except UnicodeEncodeError:  # a Doc cannot hold lone surrogates
                raise error from None
        return to_doc(cut, self.vocab, text)

    def pipe(self, texts: Iterable[str], batch_size: int = 1000) -> Iterator[Doc]:
        """Tokenize many texts."""
        yield from map(self, texts)

    # The tokenizer has no data of its own to serialize: the component saves the model.

    def to_disk(self, path: str | Path, **_: Any) -> None:
        """Write nothing."""

    def from_disk(self, path: str | Path, **_: Any) -> Self:
        """Read nothing."""
        return self

    def to_bytes(self, **_: Any) -> bytes:
        """Return no data."""
        return b""

    def from_bytes(self, data: bytes, **_: Any) -> Self:
        """Ignore the data."""
        return self


@registry.tokenizers("mh4.Tokenizer.v1")
def make_tokenizer() -> Any:
    """The tokenizer factory that a pipeline's configuration names; see `load`."""
    return Tokenizer


def load(model: str | Path, *, confidence: bool = False, device: str = "auto", threads: int | None = None) -> Language:
    """A pipeline that cuts and parses text with a model that has a segmenter; for the options see `Component`.

    Raises
    ------
    DataError
        Something in the folder is missing or damaged.
    ValueError
        The model has no segmenter, or the device is unknown.
    """
    parser = load_parser(model, device=device, threads=threads)
    parser.cut("")  # raises without a segmenter
    language = str(parser.meta.get("language") or "xx")
    try:
        get_lang_class(language)
    except ImportError:
        language = "xx"
    nlp = spacy.blank(language, config={"nlp": {"tokenizer": {"@tokenizers": "mh4.Tokenizer.v1"}}})
    options = {"confidence": confidence, "device": device, "threads": threads}
    component = nlp.add_pipe("mh4", config={"model": str(model), **options})
    component._parser = parser
    return nlp


def to_doc(document: Document | Sentence, vocab: Vocab, text: str | None = None) -> Doc:
    """The same as `Document.to_spacy`."""
    return document.to_spacy(vocab, text)


def from_doc(doc: Doc) -> Document:
    """The same as `Document.from_spacy`."""
    return Document.from_spacy(doc)
