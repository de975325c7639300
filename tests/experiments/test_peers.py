"""Other parsers, for comparison: each is trained, parses, and is scored."""

import json

import peers
import pytest
from kept_results import describe_data

from mh4.data.conllu import read_conllu
from mh4.data.sample import read_sample
from mh4.data.sentence import Sentence

QUICK = {
    "mh4": "--preset fast --epochs 1 --decoder mst --set hidden=16 --set evaluation_steps=3 --set max_steps=3",
    "udpipe": "iterations=2;run=1",
    "spacy": "--training.max_steps=3 --training.eval_frequency=3",
    "supar": "",
    "stanza": "--max_steps 4 --eval_interval 2 --hidden_dim 40",
}
MINUTES = {"supar": ["--minutes", "1"]}  # SuPar has no option for the number of epochs


def run_peers(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["peers.py", *map(str, arguments)])
    peers.main()


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("peers") / "sample"
    folder.mkdir()
    for part, count in (("train", 60), ("dev", 10)):
        (folder / f"sample-{part}.conllu").write_text("".join(read_sample()[part][:count]), encoding="utf-8")
    return folder


def share(found, gold, column):
    """The percentage of words whose value in ``column`` is the gold one."""
    columns = ([value for one in sentences for value in getattr(one, column)] for sentences in (found, gold))
    pairs = [value == right for value, right in zip(*columns, strict=True)]
    return 100 * sum(pairs) / len(pairs)


@pytest.mark.parametrize(
    "peer",
    ["udpipe", *(pytest.param(peer, marks=pytest.mark.slow) for peer in ("mh4", "spacy", "supar", "stanza"))],
)
def test_a_peer_is_trained_and_scored(peer, treebank, tmp_path, monkeypatch, capfd):
    if peer in ("spacy", "supar", "stanza"):
        pytest.importorskip(peer)
    own = [f"--options={QUICK[peer]}", *MINUTES.get(peer, [])]
    arguments = treebank, "--peers", peer, *own, "--work", tmp_path / "work", "--results", tmp_path / "r"
    run_peers(monkeypatch, *arguments)
    result = json.loads((tmp_path / "r" / f"sample-{peer}.json").read_text())
    assert result["dev"].keys() == set(peers.COLUMNS)
    assert result["stopped"] == (peer in MINUTES)
    assert result["words per CPU second"] > 0
    assert result["training cpu seconds"] > 0
    assert min(result["MiB"].values()) > 20
    paths = tmp_path / f"work/sample/{peer}.conllu", treebank / "sample-dev.conllu"
    found, gold = (list(read_conllu(path)) for path in paths)
    assert [one.forms for one in found] == [one.forms for one in gold]
    upos = pytest.approx(share(found, gold, "upos"), abs=0.01) if peer != "supar" else None
    assert result["dev"]["UPOS"] == upos
    assert result["dev"]["UAS"] == pytest.approx(share(found, gold, "heads"), abs=0.01)

    monkeypatch.setattr(peers, "measure", None)  # results are reused
    run_peers(monkeypatch, *arguments)
    assert capfd.readouterr().out.count(f"{peer} {result['dev']['UPOS']}") == 2
    assert result["data"] == describe_data(treebank, "train", "dev")


@pytest.mark.slow
def test_a_training_is_stopped_in_time_and_its_best_model_scored(treebank, tmp_path, monkeypatch):
    endless = "--preset fast --decoder mst --set hidden=16 --set evaluation_steps=3 --set max_steps=1000000"
    options = f"--options={endless} --set patience=1000000", "--minutes", "0.5"
    run_peers(monkeypatch, treebank, "--peers", "mh4", *options, "--work", tmp_path, "--results", tmp_path)
    result = json.loads((tmp_path / "sample-mh4.json").read_text())
    assert result["stopped"]
    assert result["minutes"] == 0.5
    assert 25 < result["training cpu seconds"] < 50
    assert result["dev"]["UPOS"] > 0


@pytest.mark.parametrize(("peer", "limits"), [("udpipe", []), ("spacy", [(90, peers.resource.RLIM_INFINITY)])])
def test_udpipe_trains_to_the_end_whatever_the_time_limit(peer, limits, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(peers.resource, "setrlimit", lambda _, limit: found.append(limit))
    monkeypatch.setitem(peers.PEERS, peer, peers.PEERS[peer]._replace(train=lambda *_: False))
    peers.work_as(peer, "train", "train.conllu", "dev.conllu", str(tmp_path), "", "1.5")
    assert found == limits


KEPT = pytest.mark.parametrize("kept", ["sample-udpipe.json", "sample/udpipe-training.json"])


@KEPT
def test_what_was_made_from_another_treebank_is_not_taken(kept, treebank, tmp_path, monkeypatch):
    (tmp_path / "sample").mkdir()
    other = {"treebank": "sample", "peer": "udpipe", "options": "", "minutes": None, "seconds": 1.0, "MiB": 1.0}
    dev = describe_data(treebank, "dev")["dev"]
    (tmp_path / kept).write_text(json.dumps(other | {"data": {"dev": dev | {"sha256": "0"}}}))
    with pytest.raises(SystemExit, match=rf"{kept}: was made from other dev data"):
        run_peers(monkeypatch, treebank, "--peers", "udpipe", "--work", tmp_path, "--results", tmp_path)


@KEPT
def test_what_was_made_with_another_time_limit_is_not_taken(kept, treebank, tmp_path, monkeypatch):
    (tmp_path / "sample").mkdir()
    other = {"treebank": "sample", "peer": "udpipe", "options": "", "minutes": 1.0, "seconds": 1.0, "MiB": 1.0}
    (tmp_path / kept).write_text(json.dumps(other))
    with pytest.raises(SystemExit, match=rf"{kept}: was made with other settings"):
        run_peers(monkeypatch, treebank, "--peers", "udpipe", "--work", tmp_path, "--results", tmp_path)


def test_parsers_that_return_words_alone_are_scored_on_multiword_tokens(tmp_path, monkeypatch):
    columns = ["ADP _ 3 case", "DET Definite=Def 3 det", "NOUN _ 0 root"]
    rows = [
        f"{i} {form} {form} {end}" for i, (form, end) in enumerate(zip(("de", "le", "pain"), columns, strict=True), 1)
    ]
    fields = [row.split() for row in rows]
    lines = ["\t".join(["1-2", "du", *"________"]), *("\t".join([*f[:4], "_", *f[4:], "_", "_"]) for f in fields)]
    dev = tmp_path / "dev.conllu"
    dev.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    monkeypatch.setitem(
        peers.PEERS,
        "spacy",
        peers.PEERS["spacy"]._replace(
            package="mh4",
            load=lambda _: (
                lambda given: [
                    Sentence(one.forms, heads=[3, 3, 0], relations=["case", "det", "root"], upos=["ADP", "DET", "VERB"])
                    for one in given
                ]
            ),
        ),
    )

    def work(peer, task, *arguments):
        if task == "parse":
            peers.parse_file(peer, *arguments)
        return 1.0, 1.0

    monkeypatch.setattr(peers, "_measured", work)
    scores = peers.measure("spacy", dev, dev, tmp_path / "work", "", None)["dev"]
    assert (scores["UAS"], scores["LAS"], scores["UPOS"], scores["UFeats"]) == (100, 100, 66.67, 66.67)


def test_a_failed_training_ends_the_run(treebank, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    with pytest.raises(SystemExit, match="train of udpipe failed"):
        run_peers(monkeypatch, treebank, "--peers", "udpipe", "--options", "iterations=x", "--work", tmp_path)
    assert not list(tmp_path.glob("*.json"))
