"""Read-only installations, small quotas and busy cores."""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from paths import ROOT

from mh4 import machine
from mh4.machine import undisturbed

COMPILE = "import numpy as np; from mh4.decoders.shared import holds_large; holds_large(np.zeros(5, np.float32))"
LIST_CACHE = f"{COMPILE}; import numba; print(numba.config.CACHE_DIR)"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A copy of the package as a wheel would install it, with a cold cache."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "src" / "mh4", site / "mh4", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ("decoders", "models"):
        shutil.copytree(ROOT / "src" / room, site / "mh4" / room, ignore=shutil.ignore_patterns("__pycache__"))
    return site


def run(program, site, **environment):
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    command = [sys.executable, "-B", "-c", program]
    return subprocess.run(
        command, env=kept | {"PYTHONPATH": str(site)} | environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def _read_only(installed):
    """Block the cache folders beside the sources with files, since permissions do not stop root."""
    in_the_way = [folder / "__pycache__" for folder in (installed / "mh4", *(installed / "mh4").rglob("*/"))]
    for path in in_the_way:
        path.write_text("")
    yield
    for path in in_the_way:
        path.unlink()


@pytest.mark.usefixtures("_read_only")
def test_kernels_are_cached_where_the_user_may_write(installed, tmp_path):
    done = run(LIST_CACHE, installed, XDG_CACHE_HOME=str(tmp_path / "cache"), HOME="/proc/none")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "cache" / "mh4"))
    assert list((tmp_path / "cache").rglob("*.nbc"))


@pytest.mark.usefixtures("_read_only")
def test_without_a_home_kernels_are_cached_in_a_private_temporary_folder(installed, tmp_path):
    done = run(LIST_CACHE, installed, TMPDIR=str(tmp_path), HOME="/proc/none")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / f"mh4-{os.getuid()}"
    assert done.stdout.startswith(str(folder))
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("_read_only")
def test_a_folder_that_others_may_write_to_is_not_trusted(installed, tmp_path):
    folder = tmp_path / f"mh4-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    done = run(LIST_CACHE, installed, TMPDIR=str(tmp_path), HOME="/proc/none")
    assert done.returncode == 0, done.stderr
    assert not done.stdout.startswith(str(folder) + "/")


@pytest.fixture
def warm_package(tmp_path, monkeypatch):
    """An installed package with a compiled kernel, and an empty cache folder."""
    package = tmp_path / "mh4"
    warm = package / "decoders" / "__pycache__"
    warm.mkdir(parents=True)
    (warm / "eisner.nbi").write_bytes(b"index")
    (warm / "eisner.1.nbc").write_bytes(b"kernel")
    monkeypatch.setattr(machine, "PACKAGE", package)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return package


def test_a_warm_cache_that_is_read_only_is_used(warm_package):
    folder = machine._own_cache()
    (linked,) = folder.rglob("*.nbc")
    assert linked.read_bytes() == b"kernel"
    assert (linked.parent / "eisner.nbi").read_bytes() == b"index"
    from numba.core.caching import UserProvidedCacheLocator

    source = str(warm_package / "decoders" / "eisner.py")
    assert linked.parent.name == UserProvidedCacheLocator.get_suitable_cache_subpath(source)


@pytest.mark.usefixtures("warm_package")
def test_processes_that_start_together_share_a_cache(monkeypatch):
    first = machine._own_cache()
    exists = machine.Path.exists
    # Each process looks for the cache before the other has made it.
    monkeypatch.setattr(machine.Path, "exists", lambda path: first not in path.parents and exists(path))
    assert machine._own_cache() == first
    (linked,) = first.iterdir()
    assert sorted(path.name for path in linked.iterdir()) == ["eisner.1.nbc", "eisner.nbi"]


def test_a_chosen_cache_stays_chosen(installed, tmp_path):
    done = run(LIST_CACHE, installed, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout.strip() == str(tmp_path)


def test_threads_wait_without_spinning_unless_told_otherwise(installed):
    show = "import os, mh4; print(os.environ['OMP_WAIT_POLICY'])"
    assert run(show, installed).stdout.strip() == "PASSIVE"
    assert run(show, installed, OMP_WAIT_POLICY="ACTIVE").stdout.strip() == "ACTIVE"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"a/cpu.max": "max 100000\n", "cpu.max": "400000 100000\n"}, 4),
        ({"a/b/cpu.max": "50000 100000\n", "cpu.max": "400000 100000\n"}, 1),
        ({"a/b/cpu.max": "max 100000\n"}, sys.maxsize),
        ({}, sys.maxsize),
    ],
)
def test_the_quota_of_a_cgroup_limits_the_threads(files, expected, tmp_path):
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    own = tmp_path / "cgroup"
    own.write_text("0::/a/b\n")
    assert machine._quota(tmp_path / "root", own) == expected


def test_the_quota_of_a_version_1_cgroup(tmp_path):
    folder = tmp_path / "root" / "cpu,cpuacct" / "docker"
    folder.mkdir(parents=True)
    (folder / "cpu.cfs_quota_us").write_text("300000\n")
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    own = tmp_path / "cgroup"
    own.write_text("3:memory:/x\n2:cpu,cpuacct:/docker\n")
    assert machine._quota(tmp_path / "root", own) == 3


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no CPU affinity")
def test_the_cpu_affinity_limits_the_threads():
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from mh4.machine import available_threads; print(available_threads())"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "1"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_what_was_begun_is_done(number):
    def handler(*_):
        raise InterruptedError

    before = signal.signal(number, handler)
    steps = []
    try:
        with pytest.raises(InterruptedError), undisturbed():  # noqa: PT012 (raised when the block ends)
            os.kill(os.getpid(), number)
            time.sleep(0.01)
            steps.append("done")
        assert signal.getsignal(number) is handler
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        with pytest.raises(ZeroDivisionError), undisturbed():
            steps.append(1 / 0)
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
    assert steps == ["done"]


def test_signals_are_let_alone_in_other_threads():
    """Only the main thread can handle them."""
    before = signal.getsignal(signal.SIGINT)

    def handler_inside():
        with undisturbed():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(handler_inside).result() is before


def test_what_is_started_undisturbed_never_gets_ctrl_c():
    program = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('goes on')"
    with undisturbed():
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.communicate() == ("goes on\n", None)
    assert process.returncode == 0
