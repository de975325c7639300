"""A request in UDPipe's protocol: check its parameters, read its text or CoNLL-U, and write the result."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from unicodedata import normalize

from mh4 import __version__
from mh4.data.blocks import comment_name
from mh4.data.confidence import with_entries
from mh4.data.confidence_columns import Output
from mh4.data.document import Document
from mh4.data.drawing import draw_svg
from mh4.data.errors import Errors, quote
from mh4.data.sentence import Sentence
from mh4.data.text import read_word_lines, text_of
from mh4.data.word import Token
from mh4.decoders.trees import is_tree
from mh4.parsers.answers import Answers, with_trees
from mh4.parsers.base import Parser
from mh4.parsers.request import ANNOTATED, HEADS, Request

from .served_models import ServedModel

LONGEST = 1000  # words of a sentence
LONGEST_JOINT = 1 << 16  # characters of a text whose boundaries trees choose, which takes seconds
MOST_TREES = 100  # to find for a sentence
_OPTIONS = {one.name: one.default for one in fields(Request)}
OF_TOKENIZER = ("presegmented", "ranges", "normalized_spaces")  # options of UDPipe's tokenizer
_ON, _OFF = ("", "1", "true", "yes"), ("0", "false", "no")  # values of switches
PARAMETERS = ("data", "model", "tokenizer", "tagger", "parser", "input", "output", "min_confidence", *_OPTIONS)
_NO_BREAK = str.maketrans(" ", "\u00a0")  # for a space inside a word, where spaces separate words


@dataclass(frozen=True)
class Asked:
    """The checked parameters of a request to /process.

    Attributes
    ----------
    data
        The text, normalized to NFC.
    tokenizer
        Options of the tokenizer, if ``data`` is raw text; unknown ones are ignored, as by UDPipe, with a warning.
    input, output
        Formats of the data and of the result.
    request
        Request to the parser; None if nothing is to be predicted.
    noted
        How confidence shows in the result.
    warnings
        What the answer says about the parameters.
    """

    data: str
    tokenizer: frozenset[str] | None
    input: str
    output: str
    request: Request | None
    noted: Output
    warnings: list[str]

    @classmethod
    def of(cls, parameters: Mapping[str, str], parser: Parser) -> Asked:
        """Check the parameters of a request, including blank ones, for a parser.

        ValueError: Data is missing, a parameter is unknown or would have no effect, or a value is unknown or asks for
        more than the parser can do.
        """
        if "data" not in parameters:
            raise ValueError("the parameter 'data' is required")
        if unknown := next((name for name in parameters if name not in PARAMETERS), None):
            raise ValueError(f"unknown parameter {quote(unknown)}; known: {', '.join(PARAMETERS)}")
        warnings: list[str] = []
        tokenizer = _tokenizer(parameters["tokenizer"], warnings) if "tokenizer" in parameters else None
        form, output = (_format(parameters.get(name, ""), name, warnings) for name in ("input", "output"))
        if tokenizer is None and form not in READERS:
            raise ValueError(f"unknown input format {quote(form)}; known: {', '.join(READERS)}, or tokenizer for text")
        if output not in WRITERS:
            raise ValueError(f"unknown output format {quote(output)}; known: {', '.join(WRITERS)}")
        request, noted = _request(parameters, parser)
        if "tagger" in parameters and parser.annotates.isdisjoint(ANNOTATED):
            warnings.append("tagger has no effect: the model predicts neither tags nor lemmas")
        if output == "svg" and noted.min_confidence is not None:
            raise ValueError("output=svg draws whole trees, and min_confidence leaves heads out; remove one of them")
        if request is not None and request.boundaries != "segmenter":
            if tokenizer is None:
                raise ValueError("boundaries are found in raw text; add the parameter tokenizer")
            if "presegmented" in tokenizer:
                raise ValueError(
                    "boundaries=joint finds sentences, which presegmented says are lines; remove one of them"
                )
            if len(parameters["data"]) > LONGEST_JOINT:
                raise ValueError(f"boundaries=joint takes at most {LONGEST_JOINT:,} characters; send the text in parts")
        return cls(normalize("NFC", parameters["data"]), tokenizer, form, output, request, noted, warnings)

    @property
    def trees(self) -> int:
        """The largest number of trees to write for each sentence."""
        return 1 if self.request is None else self.request.k_best

    def read(self, parser: Parser, source: str, before_batch: Callable[[], object] | None = None) -> list[Sentence]:
        """The sentences of the data, segmented or read; messages call the data ``source``.

        ``before_batch`` is called before trees are scored to find boundaries, and may raise to stop.

        ValueError or DataError: The data is invalid, or a sentence is too long.
        """
        if self.tokenizer is None:
            sentences = READERS[self.input](self.data, source)
        else:
            segmenter = parser.segmenter_for(self.request or Request(), before_batch)
            cut = segmenter.cut_lines if "presegmented" in self.tokenizer else segmenter.cut
            sentences = list(cut(self.data, source))
            if "ranges" in self.tokenizer:
                sentences = [_with_misc(sentence, _with_range) for sentence in sentences]
        for sentence in sentences:
            if len(sentence) > LONGEST:
                raise sentence.error(f"has {len(sentence)} words, and at most {LONGEST} are parsed here")
        return sentences

    def write(self, sentences: Sequence[Sentence], answers: Answers | None, model: ServedModel) -> dict[str, Any]:
        """The answer, ready for JSON.

        DataError: The first error of a sentence, if there is one. ValueError: A sentence to draw has no tree.
        """
        parsed = list(sentences)
        if answers is not None and self.request is not None:
            keep_heads, k_best = self.request.keep_heads, self.request.k_best
            parsed = [
                self.noted(tree, given if keep_heads else None)
                for given, annotation in zip(sentences, answers.checked(), strict=True)
                for tree in with_trees(given, annotation, k_best)
            ]
        normalized = self.tokenizer is not None and "normalized_spaces" in self.tokenizer
        if normalized and self.output != "json":
            parsed = [_with_misc(sentence, lambda token: _without_spaces(token.misc)) for sentence in parsed]
        result = WRITERS[self.output](parsed, model)
        if normalized and self.output == "json":  # changed here, since start_char and end_char depend on the spaces
            for token in (token for sentence in result for token in sentence["tokens"]):
                if (misc := _without_spaces(token.pop("misc", "_"))) != "_":
                    token["misc"] = misc
        answer = {
            "model": model.name,
            "acknowledgements": [f"mh4 {__version__}, exact global dependency parsing"],
            "result": result,
        }
        warnings = self.warnings + (answers.warnings if answers is not None else [])
        return answer | ({"warnings": warnings} if warnings else {})


def _tokenizer(given: str, warnings: list[str]) -> frozenset[str]:
    """The names of the options; a value, as in ``ranges=1``, does not count, as with UDPipe."""
    options = frozenset(option.partition("=")[0].strip() for option in given.split(";"))
    if unknown := options.difference(OF_TOKENIZER, _ON):
        warnings.append(
            f"unknown option of the tokenizer, ignored: {quote(min(unknown))}; known: {', '.join(OF_TOKENIZER)}"
        )
    return options


def _format(given: str, parameter: str, warnings: list[str]) -> str:
    """The name of a format, by default conllu, without options that change nothing, as in UDPipe's ``conllu=v2``."""
    name, equals, options = (given or "conllu").partition("=")
    if given in WRITERS:
        return given
    if equals and (name, options) != ("conllu", "v2"):
        warnings.append(f"unknown options of the {parameter} format {quote(name)}, ignored: {quote(options)}")
    return name


def _request(parameters: Mapping[str, str], parser: Parser) -> tuple[Request | None, Output]:
    """The request to the parser, None if nothing is to be predicted, and how confidence shows in the result."""
    options = {name: _value(name, parameters[name]) for name in _OPTIONS if name in parameters}
    noted = Output(bool(options.get("confidence")), _probability(parameters.get("min_confidence")))
    columns = [name for name in ANNOTATED if "tagger" in parameters and name in parser.annotates]
    columns += [HEADS] * ("parser" in parameters)
    if not columns and "predict" not in options:
        idle = [name for name, value in options.items() if value and value != _OPTIONS[name]]
        if idle := idle + ["min_confidence"] * (noted.min_confidence is not None):
            raise ValueError(f"{idle[0]} is about what is predicted; add the parameter tagger or parser")
        return None, noted
    if noted.min_confidence is not None:
        options["confidence"] = options.get("confidence") or True
    request = Request(**{"predict": columns, "overwrite": True, **options})
    for switch, own in (("tagger", ANNOTATED), ("parser", (HEADS,))):
        if switch in parameters and "predict" in options and request.columns.isdisjoint(own):
            raise ValueError(f"{switch} asks for {', '.join(own)}, and predict leaves them out; remove one of them")
    if request.trees > MOST_TREES:
        raise ValueError(f"{'k_best' if request.k_best > MOST_TREES else 'among'} is at most {MOST_TREES} here")
    parser.check(request)
    return request, noted


def _probability(given: str | None) -> float | None:
    try:
        return None if given is None else float(given)
    except ValueError:
        raise ValueError(f"min_confidence must be a probability from 0 to 1; got {quote(given or '')}") from None


def _value(name: str, given: str) -> Any:
    """Convert a parameter to the type of an option of `Request`; a blank value turns a switch on."""
    default = _OPTIONS[name]
    if isinstance(default, bool):
        if given.lower() in (*_ON, *_OFF):
            return given.lower() in _ON
        if name == "confidence" and given == "all":
            return given
        raise ValueError(f"{name} is 1 or 0; got {quote(given)}")
    if isinstance(default, int):
        if not given.isascii() or not given.isdigit() or len(given) > 9:
            raise ValueError(f"{name} is a number; got {quote(given)}")
        return int(given)
    return given


def _words(layout: str) -> Callable[[str, str], list[Sentence]]:
    def read(text: str, source: str) -> list[Sentence]:
        return list(filter(None, read_word_lines(io.BytesIO(text.encode()), source, layout, Errors("raise"))))

    return read


def _with_misc(sentence: Sentence, misc_of: Callable[[Token], str]) -> Sentence:
    """Replace the MISC of each token."""
    tokens = [token._replace(misc=misc_of(token)) for token in sentence.tokens]
    misc = list(sentence.misc)
    for token in tokens:
        if token.first == token.last:
            misc[token.first - 1] = token.misc
    return sentence.replace(misc=misc, multiword_tokens=tokens)


def _with_range(token: Token) -> str:
    return with_entries(token.misc, {"TokenRange": f"{token.start}:{token.end}"})


def _without_spaces(misc: str) -> str:
    return "|".join(entry for entry in misc.split("|") if not entry.startswith("Spaces")) or "_"


def _conllu(sentences: Sequence[Sentence], model: ServedModel) -> str:
    header = (
        f"# generator = mh4 {__version__}\n# udpipe_model = {model.name}\n"
        f"# udpipe_model_licence = {model.licence or 'unknown'}\n"
    )
    return header + "".join(sentence.to_conllu() for sentence in sentences)


def _horizontal(sentences: Sequence[Sentence], model: ServedModel) -> str:
    return "".join(" ".join(form.translate(_NO_BREAK) for form in sentence.forms) + "\n" for sentence in sentences)


def _vertical(sentences: Sequence[Sentence], model: ServedModel) -> str:
    return "".join("".join(f"{form}\n" for form in sentence.forms) + "\n" for sentence in sentences)


def _plain(sentences: Sequence[Sentence], model: ServedModel) -> str:
    """As UDPipe writes it: a sentence in each line, and an empty line between paragraphs."""
    lines: list[str] = []
    for sentence in sentences:
        if lines and not {"newdoc", "newpar"}.isdisjoint(map(comment_name, sentence.comments)):
            lines.append("\n")
        lines.append(f"{sentence.text}\n")
    return "".join(lines)


def _svg(sentences: Sequence[Sentence], model: ServedModel) -> str:
    if any(not is_tree(sentence.padded_heads) for sentence in sentences):
        raise ValueError("a sentence has no tree to draw; request parser as well")
    return "".join(
        draw_svg(sentence.forms, sentence.padded_heads, sentence.relations, sentence.confidence)
        for sentence in sentences
    )


READERS: dict[str, Callable[[str, str], list[Sentence]]] = {
    "conllu": lambda text, source: list(Document.from_conllu(text, source=source)),
    "horizontal": _words("horizontal"),
    "vertical": _words("vertical"),
}
WRITERS: dict[str, Callable[[Sequence[Sentence], ServedModel], Any]] = {
    "conllu": _conllu,
    "json": lambda sentences, model: Document(sentences).to_dict(),
    "svg": _svg,
    "horizontal": _horizontal,
    "vertical": _vertical,
    "plaintext": lambda sentences, model: "".join(text_of(sentences)),
    "plaintext=normalized_spaces": _plain,
}
