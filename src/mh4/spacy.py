"""For spaCy: a component, ``nlp.add_pipe("mh4", config={"model": FOLDER})``, and whole pipelines, `load`.

A token that is not white space is a word of the parser; of a multiword token, each word is a token, and
``token._.mh4_surface`` of its first word is what the text has.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy.attrs import DEP, HEAD, LEMMA, MORPH, POS, TAG
from spacy.language import Language
from spacy.parts_of_speech import IDS as PARTS_OF_SPEECH
from spacy.tokens import Doc, Token
from spacy.util import get_lang_class, registry
from spacy.vocab import Vocab

from mh4.data.document import Document
from mh4.data.sentence import Sentence
from mh4.data.spaces import NO_SPACE, escaped
from mh4.parsers.base import Parser
from mh4.parsers.registry import load as load_parser

_SPACE_RELATION = "dep"  # what spaCy's own parsers give to white space
_UNKNOWN = "_"

for _name in ("mh4_confidence", "mh4_head_confidence", "mh4_surface"):
    Token.set_extension(_name, default=None, force=True)
Doc.set_extension("conllu", getter=lambda doc: from_doc(doc).to_conllu(), force=True)


class _Model:
    """A parser that is loaded when it is first needed, and travels with the pipeline that it belongs to."""

    def __init__(self, folder: str | Path | None) -> None:
        self._folder = folder
        self._parser: Parser | None = None

    @property
    def parser(self) -> Parser:
        """The parser; a ValueError if the component has no model."""
        if self._parser is None:
            if not self._folder:
                raise ValueError('the component has no model; write nlp.add_pipe("mh4", config={"model": "FOLDER"})')
            self._parser = load_parser(self._folder)
        return self._parser

    def to_disk(self, path: str | Path, *, exclude: Sequence[str] = ()) -> None:
        """Write the model into a folder, which replaces an earlier one."""
        self.parser.save(path, overwrite=True)

    def from_disk(self, path: str | Path, *, exclude: Sequence[str] = ()) -> Any:
        """Take the model of a folder."""
        self._folder, self._parser = path, load_parser(path)
        return self

    def to_bytes(self, *, exclude: Sequence[str] = ()) -> bytes:
        """The files of the model."""
        from srsly import msgpack_dumps

        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(Path(folder) / "model")
            files = (path for path in sorted((Path(folder) / "model").iterdir()) if path.is_file())
            return bytes(msgpack_dumps({path.name: path.read_bytes() for path in files}))

    def from_bytes(self, data: bytes, *, exclude: Sequence[str] = ()) -> Any:
        """Take the model that `to_bytes` gave."""
        from srsly import msgpack_loads

        with tempfile.TemporaryDirectory() as folder:
            for name, content in msgpack_loads(data).items():
                if Path(name).name != name:
                    raise ValueError(f"{name!r} is not the name of a file of a model")
                (Path(folder) / name).write_bytes(content)
            self._parser = load_parser(folder)
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_parser"}
        return {**state, "content": self.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("content")
        self.__dict__.update(state, _parser=None)
        self.from_bytes(content)


class Component(_Model):
    """Parses documents: heads and relations, and what the model knows of tags, features and lemmas.

    Sentences are those of the document. Where it has none, the model's segmenter finds their ends; without a segmenter,
    the document is one sentence.

    Parameters
    ----------
    nlp, name
        The pipeline, and what it calls the component.
    model
        Model folder; None if it will come from `from_disk`.
    confidence
        Set ``token._.mh4_confidence`` and ``token._.mh4_head_confidence``.
    """

    def __init__(self, nlp: Language, name: str, model: str | None, confidence: bool) -> None:
        super().__init__(model)
        self.name = name
        self.confidence = confidence
        tokenizer = nlp.tokenizer
        self._tokenizer = tokenizer if isinstance(tokenizer, Tokenizer) else None
        if self._tokenizer is not None:
            self._tokenizer.model = self

    def __call__(self, doc: Doc) -> Doc:
        """Parse a document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Parse documents, ``batch_size`` at a time."""
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            places = [self._sentences(doc) for doc in batch]
            words = [
                Sentence([doc[i].text for i in own])
                for doc, of_doc in zip(batch, places, strict=True)
                for own in of_doc
            ]
            parsed = self.parser.parse(words, confidence=self.confidence, overwrite=True)
            for doc, of_doc in zip(batch, places, strict=True):
                if of_doc:
                    _fill(doc, of_doc, list(islice(parsed, len(of_doc))))
                yield doc

    def _sentences(self, doc: Doc) -> list[list[int]]:
        """Places of the words of each sentence."""
        words = [token.i for token in doc if not token.is_space]
        if not words:
            return []
        starts = {words[0]}
        if doc.has_annotation("SENT_START"):
            starts |= {token.i for token in doc if token.is_sent_start}
        elif self.parser.segmenter is not None:
            found = [sentence.tokens[0].start for sentence in self.parser.cut(doc.text)]
            starts |= {next((i for i in words if doc[i].idx >= start), words[0]) for start in found}
        sentences: list[list[int]] = [[]]
        for i in words:
            if i in starts and sentences[-1]:
                sentences.append([])
            sentences[-1].append(i)
        return sentences


def _fill(doc: Doc, places: Sequence[Sequence[int]], sentences: Sequence[Sentence]) -> None:
    """Write trees, and the columns that any sentence has, to the tokens at these places."""
    heads = np.arange(len(doc))
    relations = [_SPACE_RELATION] * len(doc)
    known: dict[int, list[int]] = {}
    words = [(i, word) for own, one in zip(places, sentences, strict=True) for i, word in zip(own, one, strict=True)]
    for own, sentence in zip(places, sentences, strict=True):
        for i, word in zip(own, sentence, strict=True):
            heads[i] = own[word.head - 1] if word.head else i
            relations[i] = "ROOT" if word.head == 0 else word.deprel or ""
            doc[i]._.mh4_confidence, doc[i]._.mh4_head_confidence = word.confidence, word.head_confidence
    for attribute, name in ((LEMMA, "lemmas"), (TAG, "xpos"), (MORPH, "feats"), (POS, "upos")):
        if any(value != _UNKNOWN for sentence in sentences for value in getattr(sentence, name)):
            known[attribute] = doc.to_array([attribute]).tolist()
            for i, word in words:
                known[attribute][i] = _attribute(attribute, getattr(word.sentence, name)[word.index], doc.vocab)
    for token in doc:
        if token.is_space:
            heads[token.i] = token.i - 1 if token.i else places[0][0]
    known[DEP] = [doc.vocab.strings.add(relation) for relation in relations]
    known[HEAD] = (heads - np.arange(len(doc))).tolist()
    values = np.array([[value % 2**64 for value in own] for own in known.values()], np.uint64)
    doc.from_array(list(known), np.ascontiguousarray(values.T))


def _attribute(attribute: int, value: str, vocab: Vocab) -> int:
    if attribute == POS:
        return int(PARTS_OF_SPEECH.get(value, PARTS_OF_SPEECH["X" if value != _UNKNOWN else ""]))
    if value == _UNKNOWN and attribute != LEMMA:
        value = ""
    return int(vocab.morphology.add(value) if attribute == MORPH else vocab.strings.add(value))


@Language.factory(
    "mh4",
    default_config={"model": None, "confidence": False},
    assigns=["token.head", "token.dep", "token.tag", "token.pos", "token.morph", "token.lemma", "doc.sents"],
)
def make_component(nlp: Language, name: str, model: str | None, confidence: bool) -> Component:
    """The component for ``nlp.add_pipe("mh4", …)``; see `Component`."""
    return Component(nlp, name, model, confidence)


class Tokenizer:
    """Cuts text into sentences and words with the segmenter of the pipeline's component, see `load`."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab
        self.model: _Model | None = None

    def __call__(self, text: str) -> Doc:
        """The tokens of a text, not parsed."""
        if self.model is None:
            raise ValueError('this tokenizer cuts text with a model; write nlp.add_pipe("mh4", …)')
        return to_doc(self.model.parser.cut(text), self.vocab, text)

    def pipe(self, texts: Iterable[str], batch_size: int = 1000) -> Iterator[Doc]:
        """The tokens of many texts."""
        yield from map(self, texts)

    # It has nothing of its own to keep: the component keeps the model.

    def to_disk(self, path: str | Path, **_: Any) -> None:
        """Write nothing."""

    def from_disk(self, path: str | Path, **_: Any) -> Tokenizer:
        """Read nothing."""
        return self

    def to_bytes(self, **_: Any) -> bytes:
        """Nothing."""
        return b""

    def from_bytes(self, data: bytes, **_: Any) -> Tokenizer:
        """Take nothing."""
        return self


@registry.tokenizers("mh4.Tokenizer.v1")
def make_tokenizer() -> Any:
    """What a pipeline's configuration calls for."""
    return lambda nlp: Tokenizer(nlp.vocab)


def load(model: str | Path, *, confidence: bool = False) -> Language:
    """A pipeline that cuts and parses text with a model that has a segmenter.

    Raises
    ------
    DataError
        Something in the folder is missing or damaged.
    ValueError
        The model has no segmenter.
    """
    parser = load_parser(model)
    parser.cut("")  # raises without a segmenter
    language = str(parser.meta.get("language") or "xx")
    try:
        get_lang_class(language)
    except ImportError:
        language = "xx"
    nlp = spacy.blank(language, config={"nlp": {"tokenizer": {"@tokenizers": "mh4.Tokenizer.v1"}}})
    component = nlp.add_pipe("mh4", config={"model": str(model), "confidence": confidence})
    component._parser = parser
    return nlp


def to_doc(document: Document | Sentence, vocab: Vocab, text: str | None = None) -> Doc:
    """The words of sentences as a `Doc`, with all that they have of heads, tags, features and lemmas.

    With the text that they were cut from, its white space is kept.
    """
    sentences = [document] if isinstance(document, Sentence) else list(document)
    words: list[str] = []
    spaces: list[bool] = []
    places: list[list[int]] = []
    surfaces: dict[int, str] = {}

    def add(gap: str) -> None:
        """White space; beyond one blank behind a word, spaCy has a token of its own for it."""
        if words and gap.startswith(" ") and not spaces[-1]:
            spaces[-1], gap = True, gap[1:]
        if gap:
            words.append(gap)
            spaces.append(False)

    end = 0
    for sentence in sentences:
        own: list[int] = []
        for token in sentence.tokens:
            if text is not None:
                add(text[end : token.start])
                end = token.end
            if token.last > token.first:
                surfaces[len(words)] = token.form
            for word in range(token.first, token.last + 1):
                own.append(len(words))
                words.append(sentence.forms[word - 1])
                spaces.append(False)
            if text is None and token.space_after:
                spaces[-1] = True
        places.append(own)
    if text is not None:
        add(text[end:])
    starts = {own[0] for own in places}
    doc = Doc(vocab, words=words, spaces=spaces, sent_starts=[i in starts for i in range(len(words))])
    for place, surface in surfaces.items():
        doc[place]._.mh4_surface = surface
    if sentences and all((sentence.heads >= 0).all() for sentence in sentences):
        _fill(doc, places, sentences)
    return doc


def from_doc(doc: Doc) -> Document:
    """The sentences of a `Doc`, with all that its tokens have; white space is kept in MISC."""
    sentences = []
    spans = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]] if len(doc) else []
    for span in spans:
        words = [token for token in span if not token.is_space]
        if not words:
            continue
        place = {token.i: number for number, token in enumerate(words, start=1)}
        ends = [token.i for token in words[1:]] + [next((t.i for t in doc[span.end :] if not t.is_space), len(doc))]
        gaps = [doc[token.i : end].text_with_ws[len(token.text) :] for token, end in zip(words, ends, strict=True)]
        columns: dict[str, list[Any]] = {
            "lemmas": [token.lemma_ or None for token in words],
            "upos": [token.pos_ or None for token in words],
            "xpos": [token.tag_ or None for token in words],
            "feats": [str(token.morph) or None for token in words],
            "misc": [None if gap == " " else NO_SPACE if not gap else f"SpacesAfter={escaped(gap)}" for gap in gaps],
        }
        if doc.has_annotation("DEP"):
            columns["heads"] = [0 if token.head.i == token.i else place.get(token.head.i, 0) for token in words]
            columns["relations"] = ["root" if token.dep_ == "ROOT" else token.dep_ or None for token in words]
        sentences.append(Sentence([token.text for token in words], **columns))
    return Document(sentences)
