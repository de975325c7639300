"""Tables of parsing with relation scores in the decoder's decision, from made-up results; the committed page."""

import json
from types import SimpleNamespace

import label_bonus
import pytest
from label_bonus import FOLDER, PAGE, WITH, WITHOUT, main, make_tables, read_scores, seeds_table, weights_table
from results_sections import with_tables

from mh4.data.annotation import Annotation


@pytest.fixture
def results(tmp_path):
    """Results of two treebanks, one with two seeds; decoding with weight w adds w to UAS and 10w to LAS."""
    uas = {"hu-fast-zoo-1": 80, "hu-fast-zoo-2": 82, "hu-fast-trained-0.25-1": 83, "hu-fast-trained-0.25-2": 82}
    uas |= {"got-fast-zoo-1": 70, "got-fast-trained-0.25-1": 69, "hu-fast-1": 1, "hu-eisner-fast-1": 1}
    for name, score in uas.items():
        measured = {str(weight): [score + weight, 10 + 10 * weight, 0.5] for weight in (0.0, 0.25, 0.5, 1.0, 2.0)}
        (tmp_path / f"{name}.json").write_text(json.dumps({"uas, las, cpu seconds": measured}), encoding="utf-8")
    return tmp_path


def test_seed_1_with_each_weight(results):
    assert weights_table(read_scores(results), WITHOUT)[2:] == [
        "| Hungarian | 80.00 / 10.00 | 80.25 / 12.50 | 80.50 / 15.00 | 81.00 / 20.00 | 82.00 / 30.00 |",
        "| Gothic | 70.00 / 10.00 | 70.25 / 12.50 | 70.50 / 15.00 | 71.00 / 20.00 | 72.00 / 30.00 |",
        "| mean | 75.00 / 10.00 | 75.25 / 12.50 | 75.50 / 15.00 | 76.00 / 20.00 | 77.00 / 30.00 |",
    ]


def test_training_with_it_is_compared_with_none(results):
    gains = [line.split(" | ")[-1] for line in weights_table(read_scores(results), WITH)]
    assert gains[2:] == ["+3.25 / +2.50 |", "−0.75 / +2.50 |", "+1.25 / +2.50 |"]


def test_means_of_seeds_and_their_gains(results):
    assert seeds_table(read_scores(results))[2:] == [
        "| Hungarian | 81.00 ± 1.41 / 10.00 ± 0.00 | 81.25 ± 1.41 / 12.50 ± 0.00 | 82.75 ± 0.71 / 12.50 ± 0.00 "
        "| +1.75 / +2.50 | +0.25 / +2.50 |",
        "| mean |  |  |  | +1.75 / +2.50 | +0.25 / +2.50 |",
    ]


def test_the_page_holds_the_committed_results():
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page, make_tables(FOLDER)) == page


def test_measuring_needs_a_model(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["label_bonus.py", "UD/2.0/hu"])
    with pytest.raises(SystemExit):
        main()
    assert "--model" in capsys.readouterr().err


def test_each_weight_is_in_force_when_it_is_measured(tmp_path, monkeypatch):
    """Heads are right with 0.5 alone; the model is that of step 20."""
    model = SimpleNamespace(config=SimpleNamespace(decoder="mst", label_bonus=0.25), label_bonus=0.25)

    def predict(dev, predict):
        heads = [one.heads if model.label_bonus == 0.5 else one.heads * 0 + 1 for one in dev]
        return [Annotation(own, one.relations) for own, one in zip(heads, dev, strict=True)]

    model.predict = predict
    monkeypatch.setattr(label_bonus.ChartParser, "load", lambda folder, **_: model)
    (tmp_path / "x-dev.conllu").write_text("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    lines = [{"step": 10, "best": True}, {"step": 20, "best": True}, {"step": 30, "best": False}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = f"label_bonus.py {tmp_path} --model {tmp_path} --name x --results {tmp_path}/results --weights 0 0.5"
    monkeypatch.setattr("sys.argv", command.split())
    main()
    result = json.loads((tmp_path / "results" / "x.json").read_text())
    found = {weight: own[:2] for weight, own in result["uas, las, cpu seconds"].items()}
    assert found == {"0.0": [0, 0], "0.5": [100, 100]}
    assert (result["steps"], result["trained_with"], result["decoder"]) == (20, 0.25, "mst")
