"""Other parsers beside ours: each is trained, parses, and is scored."""

import json

import peers
import pytest

from mh4.data.conllu import read_conllu
from mh4.data.sample import read_sample

QUICK = {
    "mh4": "--preset fast --epochs 1 --decoder mst --set hidden=16 --set evaluation_steps=3 --set max_steps=3",
    "udpipe": "iterations=2;run=1",
    "spacy": "--training.max_steps=3 --training.eval_frequency=3",
}


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("peers") / "sample"
    folder.mkdir()
    for part, count in (("train", 60), ("dev", 10)):
        (folder / f"sample-{part}.conllu").write_text("".join(read_sample()[part][:count]), encoding="utf-8")
    return folder


def share(found, gold, column):
    """Percent of words with the gold value."""
    columns = ([value for one in sentences for value in getattr(one, column)] for sentences in (found, gold))
    pairs = [value == right for value, right in zip(*columns, strict=True)]
    return 100 * sum(pairs) / len(pairs)


@pytest.mark.parametrize("peer", ["udpipe", *(pytest.param(peer, marks=pytest.mark.slow) for peer in ("mh4", "spacy"))])
def test_a_peer_is_trained_and_scored(peer, treebank, tmp_path, monkeypatch, capfd):
    if peer == "spacy":
        pytest.importorskip("spacy")
    arguments = ["--peers", peer, f"--options={QUICK[peer]}", "--work", tmp_path / "work", "--results", tmp_path / "r"]
    monkeypatch.setattr("sys.argv", ["peers.py", *map(str, (treebank, *arguments))])
    peers.main()
    result = json.loads((tmp_path / "r" / f"sample-{peer}.json").read_text())
    assert result["dev"].keys() == set(peers.COLUMNS)
    assert result["words per CPU second"] > 0
    assert result["training cpu seconds"] > 0
    assert min(result["MiB"].values()) > 20
    paths = tmp_path / f"work/sample/{peer}.conllu", treebank / "sample-dev.conllu"
    found, gold = (list(read_conllu(path)) for path in paths)
    assert [one.forms for one in found] == [one.forms for one in gold]
    assert result["dev"]["UPOS"] == pytest.approx(share(found, gold, "upos"), abs=0.01)
    assert result["dev"]["UAS"] == pytest.approx(share(found, gold, "heads"), abs=0.01)

    monkeypatch.setattr(peers, "measure", None)  # what is measured is not measured again
    peers.main()
    assert capfd.readouterr().out.count(f"{peer} {result['dev']['UPOS']}") == 2


def test_a_failed_training_ends_the_run(treebank, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "sys.argv",
        ["peers.py", str(treebank), "--peers", "udpipe", "--options", "iterations=x", "--work", str(tmp_path)],
    )
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    with pytest.raises(SystemExit, match="train of udpipe failed"):
        peers.main()
    assert not list(tmp_path.glob("*.json"))
