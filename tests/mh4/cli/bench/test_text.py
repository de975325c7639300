"""``mh4 bench text``: from text to CoNLL-U, beside UDPipe 1."""

from mh4.cli.bench import text as bench
from mh4.cli.bench.text import _trained_udpipe, measure_text, text_table
from mh4.data.conllu import read_conllu


def test_both_annotate_the_text_of_the_treebank(small_model, small_treebanks, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(bench, "_TOKENIZER", "epochs=1;dimension=16;segment_size=20")
    monkeypatch.setattr(bench, "_PARSER", "iterations=1;hidden_layer=8;batch_size=10")
    dev = small_treebanks[1]
    results = measure_text(small_model, dev, "mst", 2, "cpu")
    words = sum(map(len, read_conllu(dev)))
    assert 0.9 * words < results["udpipe"]["words"] < 1.1 * words
    assert results["mh4"]["words"] == 2 * results["udpipe"]["words"]  # two copies, the same segmenter
    (kept,) = (tmp_path / "mh4").iterdir()
    changed = kept.stat().st_mtime_ns
    measure_text(small_model, dev, "mst", 1, "cpu")
    assert kept.stat().st_mtime_ns == changed
    assert text_table(results).row_count == 2
    assert capsys.readouterr().err.count("training UDPipe 1 on ") == 1


def test_a_peer_is_trained_for_each_treebank_and_its_options(small_treebanks, tmp_path, monkeypatch):
    trained = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(bench, "train_udpipe", lambda train, *_: trained.append(train) or b"model")
    train, dev = small_treebanks
    first = _trained_udpipe(train)
    assert _trained_udpipe(train) == first != _trained_udpipe(dev)
    monkeypatch.setattr(bench, "_PARSER", "iterations=9")
    assert _trained_udpipe(train) != first
    assert trained == [train, dev, train]
