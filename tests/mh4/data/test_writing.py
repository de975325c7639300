"""Output is CoNLL-U or JSON, depending on its file name."""

import gzip
import io
import json

import pytest

from mh4.data.sentence import Sentence
from mh4.data.writing import output_format, sentence_writer

SENTENCES = [Sentence(["a", "é"]), Sentence(["b"], misc=["A=1"])]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("out.conllu", ("out.conllu", "conllu")),
        ("-", ("-", "conllu")),
        ("json", ("-", "jsonl")),
        ("./json", ("./json", "conllu")),
        ("x.json", ("x.json", "json")),
        ("a.b/x.JSON.GZ", ("a.b/x.JSON.GZ", "json")),
        ("x.jsonl", ("x.jsonl", "jsonl")),
        ("x.jsonl.xz", ("x.jsonl.xz", "jsonl")),
        ("x.json/out", ("x.json/out", "conllu")),
    ],
)
def test_the_name_says_the_format(target, expected):
    assert output_format(target) == expected


@pytest.mark.parametrize("target", ["x.csv", "x.conllu.zip", "x.conllu.ZST", "x.tsv.gz"])
def test_formats_that_are_not_written(target):
    with pytest.raises(ValueError, match=r": \w+ files cannot be written"):
        output_format(target)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_json_is_an_array_or_lines(count):
    given = SENTENCES[:count]
    expected = [json.loads(sentence.to_json()) for sentence in given]
    streams = {form: io.BytesIO() for form in ("conllu", "json", "jsonl")}
    for form, stream in streams.items():
        with sentence_writer(stream, form) as write:
            for sentence in given:
                write(sentence)
    assert json.loads(streams["json"].getvalue()) == expected
    assert [json.loads(line) for line in streams["jsonl"].getvalue().splitlines()] == expected
    assert streams["conllu"].getvalue() == b"".join(sentence.to_bytes() for sentence in given)


def test_parsed_files_may_be_json(small_model, tmp_path, capsysbinary):
    from mh4.api import load

    parser, given = load(small_model, device="cpu"), [["A", "b"], ["c"]]
    expected = [json.loads(sentence.to_json()) for sentence in parser.parse(given)]
    for name in ("x.json", "x.jsonl.gz"):
        parser.parse_file(given, tmp_path / name)
    assert json.loads((tmp_path / "x.json").read_bytes()) == expected
    lines = gzip.decompress((tmp_path / "x.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(line) for line in lines] == expected
    parser.parse_file(given, "json")
    assert [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()] == expected
    assert expected[0]["tokens"][1]["start_char"] == 2
