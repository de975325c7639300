"""``mh4 demo``: every decoder and a greedy parser on the built-in sample, side by side; text to an annotated tree."""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mh4.data.conllu import read_conllu
from mh4.data.drawing import draw_svg, draw_text
from mh4.data.files import atomic_output
from mh4.data.sample import write_sample
from mh4.data.sentence import Sentence
from mh4.data.text import text_of
from mh4.decoders import decoder_names
from mh4.decoders.trees import crossed_arcs
from mh4.machine import available_threads
from mh4.models.network_config import LossWeights
from mh4.parsers.config import ChartConfig, GreedyConfig, NetworkParserConfig, TrainingConfig, TransitionConfig
from mh4.trees.evaluation import evaluate

from .progress import track

# A short training with a high learning rate: enough to compare the decoders, not for their best accuracy.
DEMO_TRAINING = TrainingConfig(learning_rate=0.004, batch_words=150, evaluation_steps=150, max_steps=300)
GREEDY = "mh4"  # the transition system of the last row
SHOWN_WORDS = 16  # longest sentence to draw
ANNOTATING = "mh4-hybrid"  # its model also predicts the other columns and segments text
DEMO_ANNOTATION = LossWeights(analysis_weight=0.5, lemma_weight=0.5)


def train_one(
    name: str, config: NetworkParserConfig, files: dict[str, Path], folder: Path, threads: int
) -> dict[str, Any]:
    """Train a parser and parse the test file with it; returns the cells of its table row."""
    import torch

    from mh4.parsers.registry import load
    from mh4.training.job import TrainingJob
    from mh4.training.running import run_training

    torch.set_num_threads(threads)
    model, parsed = folder / "models" / name, folder / f"test-{name}.conllu"
    segmenter = name == ANNOTATING
    run_training(
        TrainingJob(files["train"], files["dev"], model, config, threads=threads, overwrite=True, segmenter=segmenter)
    )
    parser = load(model, threads=threads)
    sentences = list(read_conllu(files["test"]))
    parser.predict(sentences)  # warms up
    start = time.perf_counter()
    parser.predict(sentences)
    seconds = time.perf_counter() - start
    parser.parse_file(files["test"], parsed)
    result = evaluate(files["test"], parsed)
    assert result.crossing is not None  # both files have trees
    return {
        "UAS": 100 * result.scores["UAS"].f1,
        "LAS": 100 * result.scores["LAS"].f1,
        "crossing": 100 * result.crossing.recall,
        "words/s": sum(map(len, sentences)) / seconds,
    }


def run_demo(folder: Path, console: Console) -> None:
    """Write the sample, train all parsers, print one table, draw one non-projective tree."""
    files = write_sample(folder / "sample")
    console.print(f"A sample treebank of an invented language is in {folder / 'sample'}.", highlight=False)
    table = Table(title="Sample test set after a short training", pad_edge=False)
    for column in ("parser", "UAS", "LAS", "crossing arcs found", "words/s, one core"):
        table.add_column(column, justify="left" if column == "parser" else "right")
    configs: dict[str, NetworkParserConfig] = {
        name: ChartConfig(decoder=name, training=DEMO_TRAINING) for name in decoder_names()
    }
    configs[ANNOTATING] = ChartConfig(decoder=ANNOTATING, training=DEMO_TRAINING, weights=DEMO_ANNOTATION)
    configs[f"{GREEDY}-greedy"] = GreedyConfig(TransitionConfig(GREEDY), training=DEMO_TRAINING)
    with ProcessPoolExecutor(available_threads(), mp_context=multiprocessing.get_context("spawn")) as pool:
        # The last decoders are the slowest to compile and to run: they go first.
        futures = {name: pool.submit(train_one, name, configs[name], files, folder, 1) for name in reversed(configs)}
        for future in track(as_completed(futures.values()), f"training {len(futures)} parsers", len(futures)):
            future.result()  # raises the first error
    for name in configs:
        row = futures[name].result()
        table.add_row(name, *(f"{row[key]:.1f}" for key in ("UAS", "LAS", "crossing")), f"{row['words/s']:,.0f}")
    console.print(table)
    _show_annotation(folder, files["test"], console)


def _show_annotation(folder: Path, gold: Path, console: Console) -> None:
    """Annotate the test set from its raw text, score that, and draw one sentence."""
    from mh4.parsers.registry import load

    model, text, annotated = folder / "models" / ANNOTATING, folder / "test.txt", folder / "test-annotated.conllu"
    with atomic_output(text) as stream:
        stream.write("".join(text_of(read_conllu(gold))).encode())
    parser = load(model)
    parser.parse_file(text, annotated, format="text")
    scores = evaluate(gold, annotated).scores
    shown = ("Sentences", "Words", "UPOS", "UFeats", "Lemmas", "UAS", "LAS")
    numbers = ", ".join(f"{name} {100 * scores[name].f1:.1f}" for name in shown)
    console.print(f"\nFrom raw text ({text}) with {ANNOTATING}: {numbers}", highlight=False)
    sentence = _example(gold, annotated)
    svg = folder / "tree.svg"
    with atomic_output(svg) as stream:
        stream.write(draw_svg(sentence.forms, sentence.padded_heads, sentence.relations).encode())
    console.print(f"\n{sentence.text}\n(crossing arcs are marked)\n", highlight=False)
    console.print(
        draw_text(sentence.forms, sentence.padded_heads, sentence.relations, markup=True),
        markup=True,
        emoji=False,
        highlight=False,
        soft_wrap=True,
    )
    columns = Table(box=None, pad_edge=False)
    for name in ("", "form", "lemma", "UPOS", "XPOS", "FEATS", "head", "relation"):
        columns.add_column(name)
    names = zip(*(sentence.forms, sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats), strict=True)
    for number, (word, cells) in enumerate(zip(sentence, names, strict=True), start=1):
        columns.add_row(*map(Text, (str(number), *cells, str(word.head), str(word.deprel))))
    console.print()
    console.print(columns)
    console.print(f"\nThe same tree as a picture: {svg}", highlight=False)
    command = f"mh4 parse {model} --text ARTICLE.txt -o OUTPUT.conllu"
    console.print(f"Parse your own text: {command}", highlight=False)
    console.print(
        f"Correct trees in the browser: mh4 serve {model} --open  (pip install 'mh4[serve]')", highlight=False
    )


def _example(gold: Path, parsed: Path) -> Sentence:
    """The best parsed of the short test sentences with crossing arcs in the predicted tree."""
    truths = {sentence.forms: sentence for sentence in read_conllu(gold, trees="required")}
    candidates = []
    for guess in read_conllu(parsed, trees="required"):
        truth = truths.get(guess.forms)
        right = 0.0 if truth is None else float((truth.heads == guess.heads).mean())
        crossing = bool(crossed_arcs(guess.padded_heads).any())
        candidates.append(((len(guess) <= SHOWN_WORDS, crossing, right, len(guess)), guess))
    return max(candidates, key=lambda candidate: candidate[0])[1]
