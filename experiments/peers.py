"""Beside what people would pick instead: parsers trained on the same files, on the same machine, from nothing else.

    pip install -e '.[spacy,text]' stanza==1.15.0 supar==1.1.4
    python experiments/peers.py UD/2.0/hu --peers mh4 udpipe spacy --work runs/peers
    python experiments/peers.py UD/2.0/hu --peers supar --minutes 70 --work runs/peers
    python experiments/peers.py UD/2.0/hu --peers stanza --minutes 45 --work runs/peers

Every parser predicts all columns for gold words, except SuPar, which predicts only trees. ``mh4`` has its default
preset, ``udpipe`` is UDPipe 1 with its default options, ``spacy`` its default configuration for the language on a
CPU, ``supar`` the biaffine parser of words and characters with its repository's configuration, ``stanza`` a tagger, a
lemmatizer and a parser with their default options but a tenth of their batches, as a step of 5,000 words takes 20 CPU
seconds; all without pretrained vectors. Each trains and parses in its own process on one thread; existing results are
not measured again. ``--minutes`` stops each training program after that much CPU time, and its best model so far is
measured; only UDPipe, which has no such model, trains to the end. Results are in ``experiments/results/peers``: F1 on
dev, which also decides when training stops, CPU seconds of training, words per CPU second of parsing without loading,
and the peak memory of both processes in MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from grid_results import write_result
from kept_results import describe_files, part_path, read_kept
from provenance import made_with
from scripting import run_script

from mh4.cli.bench.udpipe import train_udpipe
from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.document import Document
from mh4.data.sentence import Sentence
from mh4.machine import require
from mh4.parsers.registry import load
from mh4.parsers.sources import words_alone
from mh4.trees.evaluation import evaluate

FOLDER = Path(__file__).parent / "results" / "peers"
COLUMNS = ("UPOS", "XPOS", "UFeats", "Lemmas", "UAS", "LAS")
WARM = 20  # sentences parsed before timing starts
STOPPED = "stopped"  # a file in the folder of a model whose training reached its time limit
SUPAR_SETTINGS = (
    "[Optimizer]\nlr = 2e-3\nmu = .9\nnu = .9\neps = 1e-12\nweight_decay = 0\ndecay = .75\ndecay_steps = 5000\n"
)

Parse = Callable[[Sequence[Sentence]], Sequence[Sentence]]


def _run(*command: str | Path) -> bool:
    """Run a module; return whether it was stopped at its limit of CPU time."""
    code = subprocess.run([sys.executable, "-m", *map(str, command)], check=False, stdout=sys.stderr).returncode
    if code not in (0, -signal.SIGXCPU):
        raise SystemExit(f"{command[0]} failed with exit status {code}")
    return code != 0


def _gold_words(train: Path, dev: Path, folder: Path) -> tuple[Path, Path]:
    """Copies without multiword tokens and empty nodes, which other parsers merge with words or fail on."""
    targets = folder / "train.conllu", folder / "dev.conllu"
    for path, target in zip((train, dev), targets, strict=True):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        target.write_text("".join(one for one in lines if not re.match(r"\d+[-.]", one)), encoding="utf-8")
    return targets


def train_mh4(train: Path, dev: Path, folder: Path, options: str) -> bool:
    return _run("mh4", "train", train, "--dev", dev, "-o", folder, "--threads", "1", "--no-segmenter", *options.split())


def parse_mh4(folder: Path) -> Parse:
    parser = load(folder, device="cpu", threads=1)
    return lambda sentences: list(parser.parse(sentences))


def train_of_udpipe(train: Path, dev: Path, folder: Path, options: str) -> bool:
    folder.mkdir(parents=True)
    (folder / "model.udpipe").write_bytes(train_udpipe(train, dev, "none", options, options))
    return False


def parse_udpipe(folder: Path) -> Parse:
    udpipe = require("ufal.udpipe", "text")
    model = udpipe.Model.load(str(folder / "model.udpipe"))

    def parse(sentences: Sequence[Sentence]) -> Document:
        pipeline = udpipe.Pipeline(model, "conllu", *[udpipe.Pipeline.DEFAULT] * 2, "conllu")
        return Document.from_conllu(pipeline.process("".join(one.to_conllu() for one in sentences)))

    return parse


def train_spacy(train: Path, dev: Path, folder: Path, options: str) -> bool:
    folder.mkdir(parents=True)
    config, pipes = folder / "config.cfg", "tagger,morphologizer,trainable_lemmatizer,parser"
    _run("spacy", "init", "config", config, "--lang", _spacy_language(train), "--pipeline", pipes)
    for words in _gold_words(train, dev, folder):
        _run("spacy", "convert", words, folder, "--converter", "conllu", "--n-sents", "10")
    paths = [f"--paths.{name}={folder / name}.spacy" for name in ("train", "dev")]
    return _run("spacy", "train", config, "--output", folder / "model", *paths, *options.split())


def _spacy_language(train: Path) -> str:
    """The language code at the start of the treebank's file name, if spaCy has it; else ``xx``, any language."""
    language = train.name.split("_")[0].split("-")[0]
    try:
        require("spacy", "spacy").util.get_lang_class(language)
    except ImportError:
        return "xx"
    return language


def parse_spacy(folder: Path) -> Parse:
    tokens = require("spacy.tokens", "spacy")
    pipeline = require("spacy", "spacy").load(folder / "model" / "model-best")

    def parse(sentences: Sequence[Sentence]) -> list[Sentence]:
        docs = [
            tokens.Doc(pipeline.vocab, list(one.forms), sent_starts=[True] + [False] * (len(one) - 1))
            for one in sentences
        ]
        return [_whole(doc) for doc in pipeline.pipe(docs)]

    return parse


def _whole(doc: Any) -> Sentence:
    return _with_one_root(
        [token.text for token in doc],
        [0 if token.head is token or token.head == token else token.head.i + 1 for token in doc],
        [token.dep_ or "dep" for token in doc],
        upos=[token.pos_ or None for token in doc],
        xpos=[token.tag_ or None for token in doc],
        feats=[str(token.morph) or None for token in doc],
        lemmas=[token.lemma_ or None for token in doc],
    )


def _with_one_root(
    forms: Sequence[str], heads: Sequence[int], relations: Sequence[str], **columns: Sequence[str | None]
) -> Sentence:
    """A sentence with one root, as scoring requires: words below the root other than the first are attached to it."""
    first = heads.index(0) + 1
    return Sentence(
        forms,
        heads=[first if head == 0 and i + 1 != first else head for i, head in enumerate(heads)],
        relations=["root" if i + 1 == first else relation for i, relation in enumerate(relations)],
        **columns,
    )


def train_supar(train: Path, dev: Path, folder: Path, options: str) -> bool:
    folder.mkdir(parents=True)
    settings, first = folder / "supar.ini", folder / "first.conllu"
    settings.write_text(SUPAR_SETTINGS)
    paths = _gold_words(train, dev, folder)
    # SuPar also scores its test file in every epoch.
    first.write_text(paths[1].read_text(encoding="utf-8").split("\n\n")[0] + "\n\n", encoding="utf-8")
    files = zip(("--train", "--dev", "--test"), (*paths, first), strict=True)
    words = ("--feat", "char", "--embed", "", "--punct")
    command = ("train", "--build", "--path", folder / "model", "--conf", settings, "--threads", "1", *words)
    return _run("supar.cmds.biaffine_dep", *command, *(part for pair in files for part in pair), *options.split())


def parse_supar(folder: Path) -> Parse:
    parser = require("supar", "supar").Parser.load(str(folder / "model"))

    def parse(sentences: Sequence[Sentence]) -> list[Sentence]:
        words, found = folder / "words.conllu", folder / "found.conllu"
        write_conllu([Sentence(one.forms) for one in sentences], words)
        parser.predict(str(words), pred=str(found), tree=True, verbose=False)
        return [_with_one_root(one.forms, one.heads.tolist(), one.relations) for one in read_conllu(found)]

    return parse


STANZA = {  # processors, the modules that train them, and options: batches of 25 sentences and of 500 words
    "pos": ("tagger", "--lang xx --no_pretrain --batch_size 25 --fix_eval_interval"),
    "lemma": ("lemmatizer", ""),
    "depparse": ("parser", "--lang xx --no_pretrain --batch_size 500"),
}


def train_stanza(train: Path, dev: Path, folder: Path, options: str) -> bool:
    folder.mkdir(parents=True)
    paths = _gold_words(train, dev, folder)
    files = ("--train_file", paths[0], "--eval_file", paths[1], "--shorthand", "xx_words", "--cpu")
    stopped = []
    for processor, (module, own) in STANZA.items():
        target = ("--save_dir", folder, "--save_name", f"{processor}.pt")
        added = "" if processor == "lemma" else options
        stopped.append(_run(f"stanza.models.{module}", *files, *target, *own.split(), *added.split()))
    return any(stopped)


def parse_stanza(folder: Path) -> Parse:
    models = {f"{processor}_model_path": str(folder / f"{processor}.pt") for processor in STANZA}
    (folder / "resources.json").write_text('{"xx": {}}')  # Stanza requires a catalogue of downloads
    pipeline = require("stanza", "stanza").Pipeline(
        "xx",
        dir=str(folder),
        processors=f"tokenize,{','.join(STANZA)}",
        tokenize_pretokenized=True,
        allow_unknown_language=True,
        download_method=None,
        use_gpu=False,
        **models,
    )

    def parse(sentences: Sequence[Sentence]) -> Document:
        return Document.from_conllu(f"{pipeline([list(one.forms) for one in sentences]):C}\n\n")

    return parse


class Peer(NamedTuple):
    """How to train (returns whether time ran out) and load a parser, its package, and the columns it predicts."""

    train: Callable[[Path, Path, Path, str], bool]
    load: Callable[[Path], Parse]
    package: str
    columns: tuple[str, ...] = COLUMNS


PEERS = {
    "mh4": Peer(train_mh4, parse_mh4, "mh4"),
    "udpipe": Peer(train_of_udpipe, parse_udpipe, "ufal.udpipe"),
    "spacy": Peer(train_spacy, parse_spacy, "spacy"),
    "supar": Peer(train_supar, parse_supar, "supar", ("UAS", "LAS")),
    "stanza": Peer(train_stanza, parse_stanza, "stanza"),
}


def parse_file(peer: str, folder: Path, words: Path, output: Path) -> None:
    """Parse a file, and write words per CPU second beside the output."""
    sentences, parse = list(read_conllu(words)), PEERS[peer].load(folder)
    parse(sentences[:WARM])
    start = time.process_time()
    found = parse(sentences)
    seconds = time.process_time() - start
    write_conllu(found, output)
    output.with_suffix(".json").write_text(json.dumps(sum(map(len, sentences)) / seconds))


def _measured(*arguments: str | Path) -> tuple[float, float]:
    """Run this script as a worker; return its CPU seconds and peak memory in MiB, child processes included."""
    # SuPar's model is a pickle, which is safe to load as it was trained here.
    one = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"), "1"
    )
    process = subprocess.Popen([sys.executable, __file__, "--worker", *map(str, arguments)], env=os.environ | one)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments[1]} of {arguments[0]} failed with exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _without_tokens(one: Sentence) -> Sentence:
    """The sentence without multiword tokens, which not every parser returns; scoring compares the text of tokens."""
    columns = {"upos": one.upos, "xpos": one.xpos, "feats": one.feats, "lemmas": one.lemmas}
    return Sentence(one.forms, heads=one.heads, relations=one.relations, **columns)


def measure(peer: str, train: Path, dev: Path, work: Path, options: str, minutes: float | None) -> dict[str, Any]:
    """Train in a separate folder, from scratch if an earlier training was interrupted; parse and score dev."""
    folder, words, found = work / peer, work / "words.conllu", work / f"{peer}.conllu"
    work.mkdir(parents=True, exist_ok=True)
    kept, settings = work / f"{peer}-training.json", {"options": options, "minutes": minutes}
    data = describe_files({"train": train, "dev": dev})
    costs = read_kept(kept, settings, data)
    if costs is None:
        shutil.rmtree(folder, ignore_errors=True)
        seconds, memory = _measured(peer, "train", train, dev, folder, options, "" if minutes is None else str(minutes))
        costs = {**settings, "seconds": seconds, "MiB": memory, "data": data}
        write_result(kept, costs)
    gold = [_without_tokens(sentence) for sentence in read_conllu(dev, trees="required")]
    write_conllu(words_alone(gold), words)
    _, parsing_memory = _measured(peer, "parse", folder, words, found)
    scores = evaluate(gold, read_conllu(found)).scores
    return {
        "version": version(PEERS[peer].package),
        "dev": {
            column: round(100 * scores[column].f1, 2) if column in PEERS[peer].columns else None for column in COLUMNS
        },
        "stopped": (folder / STOPPED).exists(),
        "training cpu seconds": round(costs["seconds"]),
        "words per CPU second": round(json.loads(found.with_suffix(".json").read_text())),
        "MiB": {"training": round(costs["MiB"]), "parsing": round(parsing_memory)},
    }


def work_as(peer: str, task: str, *arguments: str) -> None:
    """The work of a process started by `_measured`."""
    if task == "train":
        train, dev, folder, options, minutes = arguments
        if minutes and peer != "udpipe":  # UDPipe trains in this process, which the limit would end
            seconds = round(60 * float(minutes))
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))  # for each program it starts
        if PEERS[peer].train(Path(train), Path(dev), Path(folder), options):
            (Path(folder) / STOPPED).touch()
    else:
        parse_file(peer, *map(Path, arguments))


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["--worker"]:
        work_as(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebank", type=Path, help="folder with train and dev files")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--options", default="", help="for the training of the one peer that is named")
    parser.add_argument("--minutes", type=float, help="of CPU time, after which each training program is stopped")
    parser.add_argument("--work", type=Path, default=Path("runs/peers"), help="models, outside the repository")
    parser.add_argument("--results", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    if arguments.options and len(arguments.peers) > 1:
        parser.error("--options are for one of --peers")
    arguments.results.mkdir(parents=True, exist_ok=True)
    train, dev = (part_path(arguments.treebank, part) for part in ("train", "dev"))
    data = describe_files({"train": train, "dev": dev})
    for peer in arguments.peers:
        path = arguments.results / f"{arguments.treebank.name}-{peer}.json"
        settings = {
            "treebank": arguments.treebank.name,
            "peer": peer,
            "options": arguments.options,
            "minutes": arguments.minutes,
        }
        result = read_kept(path, settings, data)
        if result is None:
            found = measure(
                peer, train, dev, arguments.work / arguments.treebank.name, arguments.options, arguments.minutes
            )
            result = {**settings, **found, "data": data, **made_with("cpu")}
            write_result(path, result)
        costs = (result[name] for name in ("training cpu seconds", "words per CPU second", "MiB"))
        print(peer, *result["dev"].values(), *costs)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
