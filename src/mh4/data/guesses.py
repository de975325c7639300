"""Names that users of other libraries try first: the error says what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NoReturn


def _by_name(names: Mapping[str, str]) -> Mapping[str, str]:
    """What to write for each of the names that follow it."""
    return {name: advice for advice, those in names.items() for name in those.split()}


WORD = _by_name(
    {
        "word.upos": "pos pos_ upos_ upostag",
        "word.xpos": "tag tag_ xpos_ xpostag",
        "word.deprel": "dep dep_ deprel_ rel label",
        "word.feats": "morph features ufeats",
        "word.lemma": "lemma_ lemmas",
        "word.form": "orth orth_ token word forms",
        "word.form.lower()": "lower lower_",
        "word.index, or word.id, which counts from 1": "i position",
        "word.sentence": "sent doc",
        "word.head, the ID, or word.parent, the word": "governor head_id heads",
        "word.parent": "head_word head_token",
        "word.children": "dependents lefts rights",
        "word.head == 0": "is_root",
        "word.space_after": "whitespace whitespace_",
        "word.confidence, of parser(…, confidence=True)": "score probability prob",
    }
)
SENTENCE = _by_name(
    {
        "sentence.forms": "form",
        "sentence.lemmas": "lemma",
        "sentence.upos": "pos tags upos_tags",
        "sentence.relations": "deprel deprels labels rels",
        "sentence.heads": "head",
        "sentence.arcs()": "dependencies edges",
        "sentence.comments": "metadata",
        "sentence.sent_id": "id",
        "sentence.to_conllu()": "serialize to_string conllu to_conll",
        "sentence.draw()": "tree print_dependencies render display",
        "mh4.write_conllu(sentence, path)": "save write to_disk write_conllu",
        "sentence.replace(heads=[…])": "set_head set_heads",
        "pandas.DataFrame(word.to_dict() for word in sentence)": "to_dataframe to_pandas to_df df",
        "sentence.tokens": "iter_tokens",
    }
)
DOCUMENT = _by_name(
    {
        "document.sentences": "sents sentence",
        "[word for sentence in document for word in sentence]": "words tokens iter_words iter_tokens",
        "sum(map(len, document))": "num_words num_tokens",
        "mh4.write_conllu(document, path)": "save write to_disk write_conllu",
        "mh4.Document(mh4.read_conllu(path))": "load read from_disk from_file",
        "document.to_conllu()": "to_string conllu to_conll serialize",
        "document.to_conllu().encode()": "to_bytes",
        "print(sentence.draw()) for each sentence": "draw render display",
        "mh4.Document([*document, sentence])": "append add extend",
        "pandas.DataFrame(word.to_dict() for sentence in document for word in sentence)": (
            "to_dataframe to_pandas to_df df"
        ),
    }
)
PARSER = _by_name(
    {
        "parser(words), parser(text) or parser.parse(path)": "predict annotate tag tokenize process analyse run",
        'parser.parse(path, format="text")': "parse_text parse_raw",
        "parser.parse(sentences)": "parse_sentences predict_batch batch",
        "parser.evaluate(gold)": "score test accuracy",
        "parser.save(folder)": "to_disk save_pretrained dump export",
        "mh4.load(folder)": "from_disk from_pretrained load_model",
        "mh4.train(train, dev, folder)": "fit update train",
        "parser itself: parser.model.config is parser.config": "model",
    }
)
EVALUATION = _by_name(
    {'evaluation.scores["LAS"], which has precision, recall and f1': "precision recall f1 fscore accuracy correct"}
)


class Guided:
    """Its subclasses list what others call their attributes, and what to write for that."""

    _guesses: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # a type checker would take every attribute for granted

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(self._missing(name), name=name, obj=self)

    def _missing(self, name: str) -> str:
        kind = type(self).__name__
        if name.startswith("_"):
            return f"{kind!r} object has no attribute {name!r}"
        if advice := self._advice(name):
            return f"{kind} has no attribute {name!r}; write {advice}"
        known = sorted(known for known in {*dir(type(self)), *vars(self)} if not known.startswith("_"))
        return f"{kind} has no attribute {name!r}; it has: {', '.join(known)}"

    def _advice(self, name: str) -> str | None:
        """What to write for a name that is not there."""
        return self._guesses.get(name)
