"""Convert sentences to spaCy documents, and these to dictionaries. Needs the extra ``mh4[spacy]``."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.attrs import DEP, HEAD, LEMMA, MORPH, POS, TAG
from spacy.lang.lex_attrs import LEX_ATTRS
from spacy.parts_of_speech import IDS as PARTS_OF_SPEECH
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from .confidence import with_entries
from .errors import quote
from .spaces import NO_SPACE, Spaced, escaped, one_line

_SPACE_RELATION = "dep"  # of white space, as in spaCy's own parsers
_UNKNOWN = "_"

# The last three are set on the first word of a multiword token: the token's form, and how many words and characters of
# the Doc it covers; the characters tell whether these words have been merged or split since.
for _name in ("mh4_confidence", "mh4_head_confidence", "mh4_surface", "mh4_surface_words", "mh4_surface_characters"):
    Token.set_extension(_name, default=None, force=True)


def fill(doc: Doc, places: Sequence[Sequence[int]], sentences: Sequence[Any]) -> None:
    """Write trees, if all heads are known, and columns that are known in any sentence, to these tokens of a Doc.

    `check_features` has accepted the sentences.
    """
    has_trees = all((sentence.heads >= 0).all() for sentence in sentences)
    heads = np.arange(len(doc))
    relations = [_SPACE_RELATION] * len(doc)
    known: dict[int, list[int]] = {}
    words = [(i, word) for own, one in zip(places, sentences, strict=True) for i, word in zip(own, one, strict=True)]
    between = set(range(len(doc))).difference(*places)
    for own, sentence in zip(places, sentences, strict=True):
        for i, word in zip(own, sentence, strict=True):
            heads[i] = own[word.head - 1] if word.head else i
            relations[i] = "ROOT" if word.head == 0 else word.deprel or ""
            confidences = {"mh4_confidence": word.confidence, "mh4_head_confidence": word.head_confidence}
            for name, value in confidences.items():
                if doc[i]._.get(name) != value:  # a Doc saves every value that was set, None as well
                    doc[i]._.set(name, value)
    for attribute, name in ((LEMMA, "lemmas"), (TAG, "xpos"), (MORPH, "feats"), (POS, "upos")):
        if any(value != _UNKNOWN for sentence in sentences for value in getattr(sentence, name)):
            known[attribute] = doc.to_array([attribute]).tolist()
            for i, word in words:
                value = getattr(word.sentence, name)[word.index]
                known[attribute][i] = _attribute(attribute, value, word.form, doc.vocab)
    for i in between:
        heads[i] = i - 1 if i else places[0][0]
    if has_trees:
        known[DEP] = [doc.vocab.strings.add(relation) for relation in relations]
        known[HEAD] = (heads - np.arange(len(doc))).tolist()
    if not known:
        return
    values = np.array([[value % 2**64 for value in own] for own in known.values()], np.uint64)
    doc.from_array(list(known), np.ascontiguousarray(values.T))


def is_word(token: Token) -> bool:
    """Whether a token is a word: neither white space nor the text's byte order mark, with white space or without."""
    return not token.is_space and (token.i > 0 or bool(token.text.removeprefix("\ufeff").strip()))


def lemma_of(token: Token) -> str:
    """The lemma of a token, with single blanks for its white space; "" if it has none."""
    return " ".join(token.lemma_.split())


def check_features(sentences: Sequence[Any]) -> None:
    """Raise a DataError unless spaCy, which is stricter than CoNLL-U files often are, can hold all FEATS."""
    for sentence in sentences:
        for word, feats in enumerate(sentence.feats, start=1):
            if feats != _UNKNOWN and any(entry.count("=") != 1 for entry in feats.split("|")):
                raise sentence.error(f"spaCy takes FEATS such as Case=Nom|Number=Sing, not {quote(feats)}", word)


def _attribute(attribute: int, value: str, form: str, vocab: Vocab) -> int:
    if attribute == POS:
        return int(PARTS_OF_SPEECH.get(value, PARTS_OF_SPEECH["X" if value != _UNKNOWN else ""]))
    if value == _UNKNOWN and (attribute != LEMMA or form != _UNKNOWN):  # the lemma of "_" is "_"
        value = ""
    return int(vocab.morphology.add(value) if attribute == MORPH else vocab.strings.add(value))


def to_doc(sentences: Sequence[Any], vocab: Vocab | None, text: str | None) -> Doc:
    """See `Document.to_spacy`."""
    vocab = Vocab(lex_attr_getters=LEX_ATTRS) if vocab is None else vocab
    words: list[str] = []
    spaces: list[bool] = []
    places: list[list[int]] = []
    surfaces: dict[int, tuple[str, int]] = {}

    def add(gap: str) -> None:
        """Add white space: one blank belongs to the word before it; spaCy keeps any more as a token of its own."""
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
                add(_gap(text, end, token))
                end = token.end
            if token.last > token.first:
                surfaces[len(words)] = token.form, token.last - token.first + 1
            forms = sentence.forms[token.first - 1 : token.last]
            if text is not None and len(forms) == 1:
                forms = (Spaced.of(token.form, token.misc).written,)
            own += range(len(words), len(words) + len(forms))
            words += forms
            spaces += [False] * len(forms)
            if text is None and token.space_after:
                spaces[-1] = True
        places.append(own)
    if text is not None:
        add(text[end:])
    starts = {own[0] for own in places}
    doc = Doc(vocab, words=words, spaces=spaces, sent_starts=[i in starts for i in range(len(words))])
    for place, (surface, length) in surfaces.items():
        first = doc[place]._
        first.mh4_surface, first.mh4_surface_words = surface, length
        first.mh4_surface_characters = _characters(doc[place], doc[place + length - 1])
    if sentences:
        check_features(sentences)
        fill(doc, places, sentences)
    return doc


def _gap(text: str, end: int, token: Any) -> str:
    """The white space between the end of a token and the next one; ValueError unless that is all there is."""
    gap = text[end : token.start]
    if token.start < end or token.end > len(text) or gap.strip("\ufeff").strip():
        raise ValueError(f"text is not what the sentences were cut from: {quote(token.form)} is not where they have it")
    return gap


def from_doc(doc: Doc) -> list[dict[str, Any]]:
    """The sentences of a `Doc` as dictionaries; see `Document.from_spacy`."""
    if not isinstance(doc, Doc):
        raise TypeError(f"expected a spaCy Doc, not {reprlib.repr(doc)}")
    spans = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]] if len(doc) else []
    sentences: list[dict[str, Any]] = [{"tokens": own} for span in spans if (own := _tokens(doc, span))]
    before = doc[: next((token.i for token in doc if is_word(token)), 0)].text_with_ws
    if before := before.removeprefix("\ufeff"):
        first = sentences[0]["tokens"][0]
        first["misc"] = with_entries(first.get("misc", ""), {"SpacesBefore": escaped(before)})
    return sentences


def _tokens(doc: Doc, span: Span) -> list[dict[str, Any]]:
    """The words and multiword tokens of a sentence."""
    words = [token for token in span if is_word(token)]
    place = {token.i: number for number, token in enumerate(words, start=1)}
    ends = [token.i for token in words[1:]]
    ends += [next((t.i for t in doc[span.end :] if not t.is_space), len(doc))] * bool(words)
    gaps = [doc[token.i : end].text_with_ws[len(token.text) :] for token, end in zip(words, ends, strict=True)]
    has_tree = doc.has_annotation("DEP")
    tokens: list[dict[str, Any]] = []
    several = 0  # last word of the latest multiword token
    for number, (token, gap) in enumerate(zip(words, gaps, strict=True), start=1):
        length = _surface_words(words[number - 1 :])
        if length and number > several:
            several = number + length - 1
            tokens.append({"id": (number, several), "text": token._.mh4_surface} | _misc(gaps[several - 1]))
        columns = {
            "id": number,
            "text": one_line(token.text),
            "lemma": lemma_of(token),
            "upos": token.pos_,
            "xpos": token.tag_,
            # Universal Dependencies orders features without regard to case, spaCy does not.
            "feats": "|".join(sorted(str(token.morph).split("|"), key=str.lower)),
        }
        if has_tree:
            columns["deprel"] = "root" if token.dep_ == "ROOT" else token.dep_
        misc = {} if number <= several else _misc(gap, token.text)  # a multiword token's entry has the space after it
        tokens.append({key: value for key, value in columns.items() if value} | misc)
        if has_tree:
            head = token.head
            while head.i not in place and head.head.i != head.i:  # spaCy's parsers may attach words to white space
                head = head.head
            if span.start <= head.i < span.end:  # a sentence with several roots may have arcs to another span
                tokens[-1]["head"] = 0 if head.i == token.i else place.get(head.i, 0)
    return tokens


def _surface_words(words: Sequence[Token]) -> int:
    """The number of words of the multiword token that begins with the first of these; 0 if none does (any more)."""
    length = words[0]._.mh4_surface_words or 0
    if not 0 < length <= len(words):
        return 0
    characters = words[0]._.mh4_surface_characters
    return length if characters in (None, _characters(words[0], words[length - 1])) else 0


def _characters(first: Token, last: Token) -> int:
    """The number of characters from the start of one token to the end of another."""
    return int(last.idx + len(last.text) - first.idx)


def _misc(gap: str, written: str = "") -> dict[str, str]:
    """MISC for the white space after a token, unless it is a single blank, and for unusual white space within."""
    entries = [] if gap == " " else [f"SpacesAfter={escaped(gap)}" if gap else NO_SPACE]
    if one_line(written) != written:
        entries.append(f"SpacesInToken={escaped(written)}")
    return {"misc": "|".join(entries)} if entries else {}
