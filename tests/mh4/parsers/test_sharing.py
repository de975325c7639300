"""A parser can be shared by threads and by processes forked after it is loaded."""

import multiprocessing
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from paths import GOLDEN_FOLDER

import mh4
from mh4.data.conllu import read_conllu
from mh4.data.sentence import Sentence

MODELS = GOLDEN_FOLDER / "models"
THREADS = 8
KINDS = ("chart", "greedy", "perceptron")


@pytest.fixture(scope="module")
def sentences():
    """Sentences of many lengths, so that one thread's buffers are too small for another's sentences."""
    dev = list(read_conllu(MODELS / "chart" / "dev.conllu"))
    words = [word for sentence in dev for word in sentence.forms]
    more = [Sentence.from_words((words * 3)[:n]) for n in (2, 40, 110, 120)]
    return [*dev, *(sentence.replace(upos=["NOUN"] * len(sentence)) for sentence in more)]


def load(kind):
    kinds = KINDS if kind == "ensemble" else [kind]
    return mh4.load(*(MODELS / one for one in kinds), device="cpu", threads=2)


def trees(parser, sentences):
    return [sentence.heads.tolist() for sentence in parser(sentences)]


@pytest.mark.parametrize("kind", [*KINDS, "ensemble"])
def test_threads_get_the_trees_that_they_get_alone(kind, sentences):
    expected = trees(load(kind), sentences)
    parser = load(kind)

    def parse(seed):
        shuffled = random.Random(seed).sample([*range(len(sentences))] * 3, 3 * len(sentences))
        return all(trees(parser, [sentences[i]]) == [expected[i]] for i in shuffled)

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(parse, range(THREADS)))


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.parametrize("kind", KINDS)
def test_a_forked_process_parses(kind, sentences, two_threads):
    parser = load(kind)
    expected = trees(parser, sentences)
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    process = context.Process(target=lambda: found.put(trees(parser, sentences)))
    process.start()
    try:
        assert found.get(timeout=60) == expected
    finally:
        process.kill()
        process.join()
