"""Names that users of other libraries may try, with the advice that errors give on what to write instead."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, cast


def by_name(names: Mapping[str, str]) -> Mapping[str, str]:
    """Invert a table from advice to the names, separated by spaces, that it applies to."""
    return {name: advice for advice, those in names.items() for name in those.split()}


MODULE = by_name(
    {
        'mh4.load("FOLDER")': "load_model Pipeline pipeline Model",
        'mh4.Parser.from_pretrained("USER/NAME")': "from_pretrained AutoModel",
        'parser = mh4.load("FOLDER"), then parser(text) or parser.parse(path)': (
            "parse parse_file parse_text annotate process predict tag k_best"
        ),
        'parser = mh4.load("FOLDER"), then parser.cut(text)': "tokenize segment cut",
        "mh4.train(train, dev, folder)": "fit Trainer",
        "mh4 download --index INDEX, on the command line, which lists models": "list_models",
        "mh4.read_conllu(path)": "read read_conll load_conllu open_conllu",
        "mh4.Document.from_conllu(text)": "loads from_conllu parse_conllu parse_conll",
        "mh4.write_conllu(sentences, path)": "write write_conll save_conllu dump",
        "mh4.write_conllu(sentences, path), or parser.save(folder)": "save",
        "document.to_conllu()": "to_conllu serialize",
        "document.to_json()": "write_json to_json dumps",
        "mh4.evaluate(gold, system)": "score eval las uas LAS UAS",
        "mh4.draw(sentence)": "render show plot display displacy visualize",
        "mh4.decoders.get_decoder(name)": "get_decoder Decoder decoder decode",
        "mh4 serve MODEL, on the command line": "serve server app",
        "mh4.__version__": "version",
    }
)
LOADING = by_name(
    {
        'mh4.load("FOLDER")': "model model_path model_name path folder name lang language package dir",
        'device="cuda" or device="cpu"': "gpu use_gpu cuda",
        "threads=N": "n_threads num_threads n_jobs num_workers workers cpus",
        'search="beam:4"': "beam beam_size beam_width",
        'parser(text, predict="tags,lemmas")': "processors disable exclude enable predict",
        "parser.parse_file(source, target, batch_words=N)": "batch_size batch_words",
    }
)
OPTIONS = by_name(
    {
        "mh4.Sentence(words, heads=[…]), with -1 where unknown, and keep_heads=True": (
            "heads head fixed fix given known known_heads given_heads arcs constraints"
        ),
        "mh4.Sentence(words, upos=[…], lemmas=[…])": "upos xpos pos tags tag feats lemmas lemma",
        "confidence=True": "confidences probability probabilities score scores margin margins",
        "parser.k_best(words, k)": "k n nbest n_best kbest topk top_k",
        'predict="tags,lemmas"': "processors disable exclude enable annotators",
        "parser(list_of_words)": "tokenize tokenized pretokenized is_tokenized tokenize_pretokenized presegmented",
        'parser.parse(path, format="text")': "format input input_format text",
        'parser.parse(…, errors="skip")': "errors skip skip_bad on_error",
        "parser.parse_file(source, target, batch_words=N)": "batch batch_size batch_words",
        "mh4.load(folder, threads=N)": "threads n_threads num_threads n_jobs n_process num_workers workers jobs",
        'mh4.load(folder, device="cuda")': "device gpu use_gpu",
        'mh4.load(folder, search="beam:4")': "search beam beam_size",
        "zip(parser.pipe(texts), contexts)": "as_tuples",
        "parser.parse_file(source, target, on_progress=function)": "progress on_progress progress_bar verbose",
        "parser.attempt(sentences, request)": "request",
        'treebank="NAME"': "as_ lang language treebank_id treebank_embedding",
    }
)
SETTINGS = by_name(
    {
        "learning_rate": "lr learn_rate",
        "batch_words, in words": "batch batch_size",
        "encoder=NAME": "bert transformer",
        "vectors=FILE": "embeddings word_vectors fasttext word2vec glove wordvec_file",
        "epochs=30": "epochs n_epochs num_epochs n_iter iterations",
        'system="arc-eager", which makes the parser greedy': "system",
        'oracle="static" with system="arc-eager"': "oracle",
        'device="cuda"': "gpu use_gpu",
        'decoder="mst"': "parser algorithm",
    }
)
_TABLE = "to_dataframe to_df df to_csv to_tsv to_table table to_records to_list rows columns"
WORD = by_name(
    {
        "word.upos": "pos pos_ upos_ upostag",
        "word.xpos": "tag tag_ xpos_ xpostag",
        "word.deprel": "dep dep_ deprel_ rel label",
        "word.feats": "morph features ufeats",
        "word.lemma": "lemma_ lemmas",
        "word.form": "orth orth_ token word forms",
        "word.form.lower()": "lower lower_",
        "word.index, or word.id, which counts from 1": "i position",
        "word.start": "start_char idx",
        "word.end": "end_char",
        "word.sentence": "sent doc",
        "word.head, the ID, or word.parent, the word": "governor head_id heads",
        "word.parent": "head_word head_token",
        "word.children": "dependents lefts rights child",
        'word.upos == "PUNCT"': "is_punct",
        "word.head == 0": "is_root",
        "word.space_after": "whitespace whitespace_",
        "word.confidence, of parser(…, confidence=True)": "score probability prob",
        "word.alternatives": "alternative next_head runner_up second",
        "word.sentence.replace(heads=[…])": "replace set set_head update",
        "word.to_dict()": "as_dict dict json to_json",
    }
)
SENTENCE = by_name(
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
        "sentence.draw()": (
            "tree print_tree print_dependencies pretty_print to_tree render display show plot visualize"
        ),
        "sentence.draw().svg": "svg to_svg",
        "mh4.write_conllu(sentence, path)": "save write to_disk to_file export dump write_conllu",
        "sentence.replace(heads=[…])": "set set_head set_heads with_head with_heads update",
        "sentence.to_pandas()": _TABLE,
        "sentence.tokens": "iter_tokens token",
        "sentence[0], the first word, or sentence.words": "word get_word",
        "sentence.confidence, of parser(…, confidence=True)": "confidences probability probabilities prob certainty",
        "sentence.confidence.margins, of parser(…, confidence=True)": "margins margin",
        "sentence.to_dict()": "as_dict dict model_dump",
        "sentence.to_json()": "json",
        "parser(sentence)": "parse",
        "mh4.Sentence(words), or parser(text)": "from_text from_string from_str",
        "mh4.Sentence.from_conllu(tokenlist.serialize())": "from_tokenlist from_conll",
    }
)
DOCUMENT = by_name(
    {
        "document.sentences": "sents sentence",
        "[word for sentence in document for word in sentence]": "words tokens iter_words iter_tokens",
        "sum(map(len, document))": "num_words num_tokens",
        "mh4.write_conllu(document, path)": "save write to_disk to_file export dump write_conllu",
        "mh4.Document(mh4.read_conllu(path))": "load read from_disk from_file",
        "parser(text)": "from_text from_string from_str parse",
        "mh4.Document.from_conllu(text)": "from_conll loads",
        "document.to_dict()": "as_dict dict model_dump",
        "document.to_json()": "json",
        "document.to_conllu()": "to_string conllu to_conll serialize",
        "document.to_conllu().encode()": "to_bytes",
        "print(sentence.draw()) for each sentence": "draw render display show plot",
        "mh4.Document([*document, sentence])": "append add extend",
        "document.to_pandas()": _TABLE,
    }
)
PARSER = by_name(
    {
        "parser(words), parser(text) or parser.parse(path)": (
            "annotate tag process analyse run parse_words parse_tokens parse_string"
        ),
        'parser(text), or parser.parse(path, format="text")': "parse_text parse_raw",
        "parser.cut(text)": "tokenize segment split",
        "parser.pipe(texts)": "parse_many parse_batch parse_sentences predict_batch batch bulk_process map stream",
        "parser.parse_file(source, target) for each file, or mh4 parse MODEL INPUT… -o FOLDER": (
            "parse_files parse_folder parse_dir"
        ),
        "parser.k_best(words, k)": "kbest nbest n_best best topk",
        "parser(words, confidence=True)": "confidence margins marginals probabilities alternatives uncertain",
        'mh4.load(folder, device="cuda")': "to cuda cpu half eval",
        "parser.meta": "version name lang language info treebank",
        'parser.parse(path, format="text")': "tokenizer has_segmenter",
        "parser.evaluate(gold)": "score test accuracy",
        "parser.save(folder)": "to_disk save_weights state_dict dump export",
        "mh4.load(folder)": "from_disk load_model",
        "mh4.train(train, dev, folder)": "fit update train",
        "parser itself: parser.model.config is parser.config": "model",
    }
)
EVALUATION = by_name(
    {
        'evaluation.scores["LAS"], which has precision, recall and f1': "precision recall f1 fscore accuracy correct",
        "evaluation.as_dict()": "to_dict dict to_json json",
    }
)


STREAM = by_name(
    {
        "mh4.Document(stream)": "sentences sents document to_list to_document text words",
        "mh4.write_conllu(stream, path)": "save write to_disk to_conllu",
    }
)
DRAWING = by_name({"pathlib.Path(file).write_text(drawing.svg)": "save write write_svg to_file to_svg export png pdf"})


ATTEMPT = by_name(
    {"request=mh4.Request(keep_heads=True)": "keep_heads predict overwrite confidence k_best unique among options"}
)
K_BEST = by_name({"parser(words, confidence=True), which is about the best tree": "confidence probabilities"})

F = TypeVar("F", bound=Callable[..., Any])


def guided(guesses: Mapping[str, str]) -> Callable[[F], F]:
    """Decorator: make the TypeError for an unknown option say what to write instead, and list the known options."""

    def decorate(function: F) -> F:
        kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        known = [one.name for one in signature(function).parameters.values() if one.kind in kinds]
        shown = ", ".join(name for name in known if name not in ("self", "cls"))

        @wraps(function)
        def checked(*arguments: Any, **options: Any) -> Any:
            if unknown := [name for name in options if name not in known]:
                advice = hint(guesses, unknown)
                raise TypeError(f"{function.__name__} has no option {unknown[0]!r}{advice}; it has: {shown}")
            return function(*arguments, **options)

        return cast("F", checked)

    return decorate


def hint(guesses: Mapping[str, str], names: Iterable[str]) -> str:
    """The end of a message about unknown names: advice on the first of them in ``guesses``, else empty."""
    return next((f"; write {guesses[name]}" for name in names if name in guesses), "")


class _GuidedType(ABCMeta):
    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> NoReturn:
            raise AttributeError(_missing(cls, name), name=name, obj=cls)


class Guided(metaclass=_GuidedType):
    """Base class whose AttributeErrors give advice: ``_guesses`` maps names from other libraries to what to write."""

    _guesses: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(_missing(type(self), name), name=name, obj=self)

    @classmethod
    def _advice(cls, name: str) -> str | None:
        """What to write instead of a missing attribute; None if there is no advice."""
        return cls._guesses.get(name)


def _missing(kind: type[Guided], name: str) -> str:
    if name.startswith("_"):
        return f"{kind.__name__!r} object has no attribute {name!r}"
    if advice := kind._advice(name):
        return f"{kind.__name__} has no attribute {name!r}; write {advice}"
    # Public attributes are those of the class that lists guesses, not of its subclasses.
    public = next(base for base in kind.__mro__ if "_guesses" in vars(base))
    known = {*dir(public), *public.__annotations__}
    return f"{kind.__name__} has no attribute {name!r}; it has: {', '.join(sorted(n for n in known if n[0] != '_'))}"
