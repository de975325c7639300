"""Parsers with a transformer or word vectors can do what all parsers can: text, partial trees, a cluster, …"""

from dataclasses import replace

import pytest
from small import ANNOTATING, small_config, train
from tiny_bert import make_bert
from tiny_vectors import make_vectors

import mh4
from mh4.data.conllu import write_conllu
from mh4.models.transformer_config import TransformerConfig
from mh4.service.cluster import parse_files
from mh4.training.treebanks import read_gold

MISSING = 5  # in the training treebank, one word in 5 has no head


@pytest.fixture(scope="module", params=["fine-tuned", "frozen", "vectors"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def model(kind, small_treebanks, tmp_path_factory):
    """The folder of a model trained on partial trees, with columns and a segmenter."""
    folder = tmp_path_factory.mktemp(kind)
    sentences = read_gold(small_treebanks[0])
    config = small_config("mh4-hybrid", max_steps=3, evaluation_steps=3, **ANNOTATING)
    if kind == "vectors":
        words = [form for sentence in sentences for form in sentence.forms][::2]
        config = replace(config, encoder=replace(config.encoder, vectors=str(make_vectors(folder / "v.vec", words))))
    else:
        bert = make_bert(folder / "bert", [sentence.text for sentence in sentences])
        sizes = {name: own for name, own in vars(config.encoder).items() if name != "kind"}
        own = {"pretrained": str(bert), "encoder_layers": 2, "encoder_freeze": kind == "frozen"}
        config = replace(config, encoder=TransformerConfig(**sizes, **own))
    partial = folder / "partial.conllu"
    write_conllu(
        (one.replace(heads=[-1 if i % MISSING == 1 else h for i, h in enumerate(one.heads)]) for one in sentences),
        partial,
    )
    train(partial, small_treebanks[1], folder / "m", config, device="cpu", segmenter=True)
    return folder / "m"


def test_it_is_calibrated(model):
    assert (model / "calibration.json").exists()
    parsed = mh4.load(model, device="cpu")(["A", "dog", "barks"], confidence=True)
    assert all(0 < word.confidence <= word.head_confidence <= 1 for word in parsed.words)


def test_it_parses_text(model, small_treebanks):
    text = " ".join(sentence.text for sentence in read_gold(small_treebanks[1])[:3])
    document = mh4.load(model, device="cpu")(text)
    assert "".join(document.text.split()) == "".join(text.split())
    assert all(head >= 0 for sentence in document for head in sentence.heads)


def test_several_trees_are_found(model, small_treebanks):
    words = read_gold(small_treebanks[1])[0].forms
    trees = mh4.load(model, device="cpu").k_best(words, 3)
    assert len({tuple(tree.heads) for tree in trees}) == 3


def test_heads_that_are_given_are_kept(model, small_treebanks):
    sentence = read_gold(small_treebanks[1])[0]
    given = sentence.replace(heads=[head if i % 3 == 0 else -1 for i, head in enumerate(sentence.heads)])
    found = mh4.load(model, device="cpu")(given, keep_heads=True)
    assert list(found.heads[::3]) == list(sentence.heads[::3])


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a cluster with one worker."""
    distributed = pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    place = {"dashboard_address": "127.0.0.1:0", "local_directory": str(tmp_path_factory.mktemp("dask"))}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **place) as running:
        yield running.scheduler_address


def test_a_cluster_finds_the_same(model, address, small_treebanks, tmp_path):
    source = small_treebanks[1]
    parse_files(model, [source], tmp_path / "out", address, device="cpu", shard_words=60, overwrite=True)
    mh4.load(model, device="cpu").parse_file(source, tmp_path / "expected", overwrite=True)
    assert (tmp_path / "out" / source.name).read_bytes() == (tmp_path / "expected").read_bytes()


def test_equal_models_have_what_is_frozen_in_memory_once(model, kind):
    ensemble = mh4.load(model, model, device="cpu")
    one, other = (parser.network.encoder for parser in ensemble.members)
    if kind == "vectors":
        assert one.vectors.table is other.vectors.table
        return
    frozen = [name for name, own in one.named_parameters() if not own.requires_grad]
    assert len(frozen) == 1 if kind == "fine-tuned" else len(frozen) > 20
    ours, theirs = dict(one.named_parameters()), dict(other.named_parameters())
    assert all(ours[name].data_ptr() == theirs[name].data_ptr() for name in frozen)
    assert not any(own.data_ptr() == theirs[name].data_ptr() for name, own in ours.items() if name not in frozen)
