"""Locks of runs: one holder at a time; dead holders lose their locks, living ones keep them."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import run_lock
from run_lock import LockLostError, RunLock, holder_of

HOLD = """
import sys, time
from pathlib import Path
from run_lock import RunLock
with RunLock.acquire(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.lock"


def age(path, seconds):
    before = path.stat().st_mtime - seconds
    os.utime(path, (before, before))


def elsewhere(path):
    """Make a lock look as if another machine held it."""
    holder = json.loads(path.read_text())
    path.write_text(json.dumps(holder | {"host": "elsewhere", "token": "another"}))


def test_one_holder_at_a_time(path):
    with RunLock.acquire(path) as lock:
        assert lock.taken_over is None
        assert holder_of(path) == lock.holder
        assert RunLock.acquire(path) is None
        with lock.still_held():
            pass
    assert holder_of(path) is None
    with RunLock.acquire(path):
        pass


def test_given_back_after_an_error(path):
    with pytest.raises(ZeroDivisionError), RunLock.acquire(path):
        raise ZeroDivisionError
    assert holder_of(path) is None


def test_a_killed_process_loses_its_lock_at_once(path):
    environment = os.environ | {"PYTHONPATH": str(Path(run_lock.__file__).parent)}
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout.readline() == "held\n"
        assert RunLock.acquire(path) is None
        process.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 20
        while (lock := RunLock.acquire(path)) is None and time.monotonic() < deadline:
            time.sleep(0.01)
    assert lock.taken_over.pid == process.pid


def test_another_process_of_the_same_number_is_not_the_holder(path):
    RunLock.acquire(path)
    holder = json.loads(path.read_text())
    path.write_text(json.dumps(holder | {"started": "1"}))
    assert holder_of(path).is_gone()
    assert RunLock.acquire(path) is not None


def test_locks_of_other_machines_are_free_after_long_silence(path):
    RunLock.acquire(path)
    elsewhere(path)
    age(path, 100)
    assert RunLock.acquire(path, stale_seconds=200) is None
    assert RunLock.acquire(path, stale_seconds=50).taken_over.host == "elsewhere"


def test_a_lock_that_was_not_written_to_the_end_is_free(path):
    path.write_text('{"host": "x"')
    assert RunLock.acquire(path) is not None


def test_the_holder_keeps_its_lock_fresh(path, monkeypatch):
    monkeypatch.setattr(run_lock, "BEAT_SECONDS", 0.01)
    beats = threading.Semaphore(0)
    with RunLock.acquire(path, on_beat=beats.release) as lock:
        age(path, 1000)
        assert beats.acquire(timeout=20)
        assert beats.acquire(timeout=20)
        assert RunLock.acquire(path, stale_seconds=500) is None
        lock.check()


def test_a_holder_learns_that_it_was_thought_dead(path, monkeypatch):
    monkeypatch.setattr(run_lock, "BEAT_SECONDS", 0.01)
    with RunLock.acquire(path) as lock:
        elsewhere(path)
        lock._thread.join(20)
        with pytest.raises(LockLostError):
            lock.check()
        with pytest.raises(LockLostError), lock.still_held():
            pass
    assert holder_of(path).host == "elsewhere"  # the new holder's lock is left alone


def test_only_one_takes_a_dead_lock_over(path):
    for _ in range(20):
        RunLock.acquire(path)
        elsewhere(path)
        age(path, 1000)
        start, locks = threading.Barrier(8), []

        def take(start=start, locks=locks):
            start.wait()
            locks.append(RunLock.acquire(path))

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(lock is not None for lock in locks) == 1
        path.unlink()
