"""The recording profile gets the time of each stage, less nested stages, from other threads too."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from small import small_config

from mh4.data.sentence import Sentence
from mh4.parsers import profiling
from mh4.parsers.chart import ChartParser
from mh4.parsers.definition import Definition
from mh4.parsers.profiling import Profile, booked_here, stage


@pytest.fixture
def clock(monkeypatch):
    """A clock that advances by one second per reading."""
    seconds = iter(range(1000))
    monkeypatch.setattr(profiling.time, "perf_counter", lambda: next(seconds))


def test_a_stage_has_its_own_time(clock):
    profile = Profile()
    with stage("unseen"):
        pass
    with profile.recording():
        with stage("outer"):  # from second 0 to 5
            with stage("inner"):
                pass
            with stage("inner"):
                pass
        with stage("outer"):
            pass
    assert profile.seconds == {"inner": 2, "outer": 4}
    assert profile.total == 6
    assert profile.shares == {"inner": 2 / 6, "outer": 4 / 6}
    assert Profile().shares == {}


def test_profiles_inside_profiles_and_errors(clock):
    outer, inner = Profile(), Profile()
    with outer.recording(), stage("a"), inner.recording(), pytest.raises(ValueError, match="lost"), stage("b"):
        raise ValueError("lost")
    with stage("unseen"):
        pass
    assert (outer.seconds, inner.seconds) == ({"a": 3}, {"b": 1})


def test_another_thread_books_on_the_profile_of_its_caller():
    profile = Profile()

    def work():
        with stage("work"):
            time.sleep(0.01)

    with ThreadPoolExecutor(2) as pool:
        with profile.recording(), stage("waiting"):
            here, elsewhere = booked_here(work), work
            for future in [pool.submit(here), pool.submit(here), pool.submit(elsewhere)]:
                future.result()
        assert booked_here(work) is work
    assert 0.02 <= profile.seconds["work"] < 1
    assert profile.seconds["waiting"] > 0  # work of other threads is not subtracted


@pytest.mark.parametrize("ahead", [0, 1])
def test_parsing_has_its_stages(ahead):
    sentences = [Sentence.from_words(["a"] * n) for n in (1, 5, 9)]
    parser = ChartParser(Definition.learn(small_config(), sentences), device="cpu")
    parser.ahead = ahead
    profile = Profile()
    with profile.recording():
        parser.predict(sentences)
    assert list(profile.seconds) == ["collate", "encode", "score", "decode", "label"]
