"""Parsing options are defined in one place: `Request`."""

import inspect
import json
import os
import shutil
import subprocess
import sys
from dataclasses import fields

import pytest
from paths import GOLDEN_FOLDER, ROOT

from mh4.parsers.base import Parser
from mh4.parsers.request import CallOptions, ParseOptions, Request, describing_options

HERE = "    def __init__(self, **options"
NEW = '    shout: int = _option(3, _number, "How loud the tree is.", metavar="N")\n\n'
PROGRAM = """
import json, sys
import mh4, mh4.parsers.base, mh4.service.cluster as cluster
from mh4.cli import app

asked = []
answer = mh4.parsers.base.Parser._answer_all

def noted(self, sentences, request):
    asked.append(request.shout)
    return answer(self, sentences, request)

mh4.parsers.base.Parser._answer_all = noted
model, source, folder = sys.argv[1:]
parser = mh4.load(model, device="cpu", threads=1)
parser(["A", "b"])
parser(["A", "b"], shout=4)
list(parser.parse(source, shout=5))
parser.attempt([mh4.Sentence(["A"])], mh4.Request(shout=6))
app(["parse", model, source, "-o", folder + "/own.conllu", "--shout", "7", "--device", "cpu"], standalone_mode=False)
runtime = cluster.Runtime("cpu", 1, "exact")
job = cluster._Job("run", model, runtime, mh4.Request(shout=8), None, False)
(shard,) = cluster.cut_shards(source)
assert not isinstance(cluster._work(job, shard, folder + "/part.conllu"), mh4.DataError)
try:
    parser(["A"], shout="loud")
except TypeError as error:
    asked.append(str(error))
print(json.dumps(asked))
app(["parse", "--help"], standalone_mode=False)
print(mh4.Parser.parse.__doc__)
"""


def test_a_new_option_is_everywhere(tmp_path):
    """One line in `Request` adds it to Python, docstrings, the command line and clusters."""
    package = tmp_path / "mh4"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "mh4", package, ignore=ignored)
    for room in ("decoders", "models"):
        (package / room).symlink_to(ROOT / "src" / room)
    place = package / "parsers" / "request.py"
    before = place.read_text(encoding="utf-8")
    assert before.count(HERE) == 1
    place.write_text(before.replace(HERE, NEW + HERE), encoding="utf-8")
    model = GOLDEN_FOLDER / "models" / "chart"
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    program = [sys.executable, "-c", PROGRAM, str(model), str(model / "dev.conllu"), str(tmp_path)]
    ended = subprocess.run(program, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    asked, _, shown = ended.stdout.partition("\n")
    assert json.loads(asked) == [3, 4, 5, 6, 7, 8, "shout must be a whole number; got 'loud'"]
    assert shown.count("How loud the tree is.") == 2
    assert "--shout" in shown
    assert "shout, by default 3" in shown


def test_type_checkers_know_the_same_options():
    names = {one.name for one in fields(Request)}
    assert set(ParseOptions.__annotations__) == names
    assert set(CallOptions.__annotations__) == names - {"k_best"}


def test_a_request_is_in_one_form():
    assert [Request(unique="obj", k_best=k, among=among).trees for k, among in ((2, 5), (5, 2))] == [5, 5]
    request = Request(predict="UPOS, lemma,heads", unique=["obj", "nsubj", "obj"], among=2)
    assert request == Request(predict={"heads", "upos", "lemmas"}, unique="obj,nsubj", among=2)
    assert request.unique == ("obj", "nsubj")
    assert Request(**request.options) == request
    assert hash(Request(**request.options)) == hash(request)
    assert Request().columns == Request(predict="all").columns
    with pytest.raises(AttributeError):
        request.among = 3


def test_docstrings_list_the_options():
    lines = inspect.getdoc(Parser.parse).splitlines()
    names = {line.partition(",")[0] for line in lines}
    assert {one.name for one in fields(Request)} <= names
    assert all(len(line) <= 120 for line in Parser.parse.__doc__.splitlines())


def test_a_docstring_without_common_indentation_lists_them_too():
    """Python 3.13 and later remove it, earlier ones keep it."""

    def function(**options):
        pass

    function.__doc__ = "Parse.\n\nParameters\n----------\n**options\n"
    lines = describing_options(function).__doc__.splitlines()
    assert "keep_heads, by default False" in lines
    assert "**options" not in lines
