"""Text out of treebanks, and segmentation by a model of UDPipe that is trained here."""

from dataclasses import replace

import numpy as np
import pytest
from grid_runs import find_treebank, score_run
from segmentation import MODEL_SUFFIX, main, raw_text, segment, segment_file, train_segmenter

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sample import generate_sample
from mh4.data.sentence import Annotation
from mh4.parsers.base import TreebankParser

CONLLU = """\
# newdoc id = d1
# text = Vámonos al mar.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\t_\t_\t_\t_\t0\troot\t_\t_
2\tnos\t_\t_\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\t_\t_\t_\t_\t5\tcase\t_\tSpaceAfter=No
4\tel\t_\t_\t_\t_\t5\tdet\t_\tSpaceAfter=No
5\tmar\t_\t_\t_\t_\t1\tobl\t_\tSpaceAfter=No
5.1\tnada\t_\t_\t_\t_\t_\t_\t1:obl\t_
6\t.\t_\t_\t_\t_\t1\tpunct\t_\t_

1\t¿\t_\t_\t_\t_\t2\tpunct\t_\tSpaceAfter=No
2\tYa\t_\t_\t_\t_\t0\troot\t_\tX=Y|SpaceAfter=No
3\t?\t_\t_\t_\t_\t2\tpunct\t_\tSpaceAfter=No

# newpar
1\tSí\t_\t_\t_\t_\t0\troot\t_\t_

"""


class Chain(TreebankParser):
    """Every word below the one before it."""

    def _answer(self, sentences, request):
        return [Annotation(np.arange(-1, len(s)), ("root", *("dep",) * (len(s) - 1))) for s in sentences]


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("segmented")
    for part, count in (("train", 60), ("dev", 15), ("test", 15)):
        sentences = generate_sample(1)[part][:count]
        (folder / f"{part}.conllu").write_text("".join(sentences), encoding="utf-8")
    model = train_segmenter(folder / "train.conllu", folder / "dev.conllu", "epochs=1;dimension=16;segment_size=20")
    (folder / f"model{MODEL_SUFFIX}").write_bytes(model)
    return replace(find_treebank(f"u={folder}"), segmented=folder / f"model{MODEL_SUFFIX}")


def test_text_is_as_it_was_written(tmp_path):
    path = tmp_path / "gold.conllu"
    path.write_text(CONLLU, encoding="utf-8")
    assert raw_text(path) == "Vámonos al mar. ¿Ya?\n\nSí "


def test_a_trained_model_cuts_all_of_a_text_into_words(treebank, tmp_path):
    text = raw_text(treebank.test)
    path = segment_file(treebank.segmented, treebank.test, tmp_path / "cut.conllu")
    sentences = list(read_conllu(path))
    assert "".join(form for sentence in sentences for form in sentence.forms) == "".join(text.split())
    assert len(sentences) > 1
    assert path.read_text(encoding="utf-8") == segment(treebank.segmented, text)


def test_runs_are_scored_on_what_the_model_cuts(treebank, tmp_path):
    scores = score_run(Chain(), treebank, tmp_path)
    cut = list(read_conllu(tmp_path / "segmented.conllu"))
    parsed = list(read_conllu(tmp_path / "test-segmented.conllu"))
    assert [sentence.forms for sentence in parsed] == [sentence.forms for sentence in cut]
    assert scores["test"]["f1"]["Sentences"] == 100
    assert 0 < scores["test_segmented"]["f1"]["Sentences"] <= 100
    assert scores["test_segmented"]["f1"]["Words"] > 90


def test_bad_models_and_treebanks_are_named(treebank, tmp_path, monkeypatch):
    broken = tmp_path / f"broken{MODEL_SUFFIX}"
    broken.write_bytes(b"no model")
    with pytest.raises(DataError, match=r"broken\.udpipe: not a model of UDPipe"):
        segment(broken, "Szia !")
    with pytest.raises(DataError, match=r"train\.conllu: .*'many'"):
        train_segmenter(treebank.train, treebank.dev, "epochs=many")
    unreadable = tmp_path / "bad.conllu"
    unreadable.write_text("1\tonly\tthree\n\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.conllu: "):
        train_segmenter(unreadable, treebank.dev)
    unreadable.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"bad\.conllu: "):
        raw_text(unreadable)
    monkeypatch.setattr("sys.argv", ["segmentation.py", "segment", str(broken), str(treebank.test), "-o", "out"])
    with pytest.raises(SystemExit, match=r"broken\.udpipe: not a model"):
        main()
