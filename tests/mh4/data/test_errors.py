"""Policies for errors in single sentences, and error messages."""

import warnings

import pytest

from mh4 import cli
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError, Errors
from mh4.machine import require

FIRST, SECOND = DataError("a.conllu:1: sentence 1: is odd"), DataError("a.conllu:7: sentence 3: is odd")


def test_a_message_is_one_printable_line():
    assert str(DataError("a\u2028b\x1b[0m\nc")) == "a b [0m c"


def test_raise_stops_at_the_first_error():
    errors = Errors.of("raise")
    with pytest.raises(DataError, match=":1:"):
        errors(FIRST)
    assert not errors.skips


def test_a_function_gets_every_error_and_they_are_counted():
    seen = []
    errors = Errors.of(seen.append)
    errors(FIRST)
    errors(SECOND)
    assert seen == [FIRST, SECOND]
    assert (errors.count, errors.first, errors.skips) == (2, FIRST, True)


def test_the_argument_skip_warns():
    errors = Errors.of("skip")
    with pytest.warns(UserWarning, match="a.conllu:1: sentence 1: is odd; sentence left out"):
        errors(FIRST)
    assert errors.skips


def test_each_skipped_sentence_is_warned_of_each_time(tmp_path):
    path = tmp_path / "bad.conllu"
    path.write_text("1\ta\t_\t_\t_\t_\t7\troot\t_\t_\n\n")
    for _ in range(2):
        with warnings.catch_warnings(record=True) as seen:  # under Python's filters, which show equal warnings once
            warnings.simplefilter("default")
            for _ in range(3):
                assert list(read_conllu(path, errors="skip")) == []
        assert [str(one.message).endswith("; sentence left out") for one in seen] == [True] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="sentence left out"):
            list(read_conllu(path, errors="skip"))


def test_an_object_reports_only_to_who_made_it(recwarn):
    errors = Errors("skip")
    assert Errors.of(errors) is errors
    errors(FIRST)
    assert (errors.count, errors.first) == (1, FIRST)
    assert not recwarn.list


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_an_object_within_another_decides(policy):
    inner = Errors(policy)
    outer = Errors(inner)
    assert outer.skips == inner.skips == (policy == "skip")
    if policy == "raise":
        with pytest.raises(DataError):
            outer(FIRST)
    else:
        outer(FIRST)
    assert inner.count == outer.count == 1


@pytest.mark.parametrize("policy", ["ignore", True, None])
def test_an_unknown_policy_is_refused(policy):
    with pytest.raises(ValueError, match='errors must be "raise", "skip" or a function'):
        Errors.of(policy)


def test_what_an_extra_installs(monkeypatch, tmp_path):
    assert require("json.decoder", "extra").__name__ == "json.decoder"
    with pytest.raises(ValueError, match=r"^not_there is not installed: pip install 'mh4\[more\]'$"):
        require("not_there.inside", "more")
    (tmp_path / "half_installed.py").write_text("import not_there")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_there"):
        require("half_installed", "more")


def test_what_the_command_line_says_is_not_endless():
    long = "x" * 100_000
    for error in (
        OSError(36, "File name too long", long),
        ValueError(long),
        FileNotFoundError(2, "No such file", long),
    ):
        assert 20 < len(cli._report(error)) <= 4000
    assert cli._report(OSError(2, "No such file", "a.conllu")) == "a.conllu: no such file"
