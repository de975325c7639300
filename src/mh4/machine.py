"""Properties of this machine: folders for kernels and models, threads, processor; also signals and optional packages.

Imported before NumPy, Numba and PyTorch, which read their environment variables on import.
"""

import hashlib
import math
import os
import platform
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent


INTERRUPTED = 130  # exit status after Ctrl-C, by the shells' convention: 128 + signal number


class Terminated(SystemExit):
    """Raised on SIGTERM, so that unfinished work is cleaned up as after Ctrl-C."""

    code = 143  # exit status, 128 + SIGTERM
    asked: type[BaseException] | None = None  # `Terminated` after SIGTERM, KeyboardInterrupt after Ctrl-C

    @classmethod
    def check(cls) -> None:
        """Raise if SIGTERM or Ctrl-C has arrived; an exception raised inside a destructor would be swallowed."""
        if cls.asked:
            raise cls.asked


class MissingPackageError(ValueError):
    """A package that only an extra of mh4 installs is missing; the message says how to install it."""


def require(module: str, extra: str) -> Any:
    """Return a module that only an extra of mh4 installs, or raise `MissingPackageError`."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # the module is installed, but one that it imports is missing
        raise MissingPackageError(f"{error.name} is not installed: pip install 'mh4[{extra}]'") from None


@contextmanager
def undisturbed() -> Iterator[None]:
    """Defer SIGINT and SIGTERM to the end of the block; processes started in it never receive SIGINT.

    Ctrl-C in a terminal signals every process. Only this one should react: it ends the processes that it started, so
    that none of them prints a traceback.
    """
    in_main = threading.current_thread() is threading.main_thread()
    came: list[tuple[int, object]] = []
    handlers = {}
    if in_main:
        for held in (signal.SIGINT, signal.SIGTERM):
            handlers[held] = signal.signal(held, lambda *signalled: came.append(signalled))
    blocks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if blocks else set()
    try:
        yield
    finally:
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)  # delivers a pending SIGINT
        for held, handler in handlers.items():
            signal.signal(held, signal.SIG_DFL if handler is None else handler)  # None: not set by Python
    for number, _ in came:
        signal.raise_signal(number)


def prepare() -> None:
    """Set environment variables that suit a busy machine, unless they are set already."""
    # Threads that spin while waiting keep cores from threads with work: 20 times slower beside other programs.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if "NUMBA_CACHE_DIR" not in os.environ and not _is_writable(PACKAGE / "__pycache__"):
        folder = str(_own_cache())
        os.environ["NUMBA_CACHE_DIR"] = folder
        if "numba" in sys.modules:  # it has read the environment already
            sys.modules["numba"].config.CACHE_DIR = folder


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _own_cache() -> Path:
    """A writable folder for compiled kernels, with links to those already compiled beside the sources."""
    name = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:16]
    for parent in _cache_folders():
        try:
            folder = parent / name
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_private(folder) and _is_writable(folder):
                _link_warm_kernels(folder)
                return folder
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="mh4-"))  # raises OSError if nothing is writable


def _cache_folders() -> Iterator[Path]:
    if configured := os.environ.get("XDG_CACHE_HOME"):
        yield Path(configured) / "mh4"
    home = os.path.expanduser("~")
    if os.path.isabs(home):
        yield Path(home) / ".cache" / "mh4"
    yield Path(tempfile.gettempdir()) / f"mh4-{os.getuid() if hasattr(os, 'getuid') else 'kernels'}"


def home() -> Path:
    """Where downloaded models are kept: ``MH4_HOME``, or the user's cache."""
    return Path(os.environ.get("MH4_HOME") or next(_cache_folders())).expanduser().absolute()


def _is_private(folder: Path) -> bool:
    """Whether only this user can write to the folder: loading a cached kernel runs its code."""
    if not hasattr(os, "getuid"):
        return True
    shared = stat.S_IWGRP | stat.S_IWOTH
    for path in (folder, folder.parent):
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & shared:
            return False
    return True


def _link_warm_kernels(folder: Path) -> None:
    """Link kernels compiled beside the sources, in folders that are read-only, into ``folder``."""
    for warm in PACKAGE.rglob("__pycache__"):
        indices = list(warm.glob("*.nbi"))
        if not indices:
            continue
        source = warm.parent
        target = folder / f"{source.name}_{hashlib.sha1(str(source).encode()).hexdigest()}"  # as Numba names it
        if target.exists():
            continue
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as made:
            linked = Path(made, "linked")
            linked.mkdir(mode=0o700)
            for kernel in warm.glob("*.nbc"):
                (linked / kernel.name).symlink_to(kernel)
            for index in indices:
                shutil.copyfile(index, linked / index.name)
            with suppress(OSError):  # another process was faster
                linked.rename(target)


def processor() -> str:
    """Name of this machine's processor."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def available_threads() -> int:
    """Number of cores that this process may use, by its CPU affinity and its cgroup's quota; at least 1."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(count, _quota()))


@cache  # it reads files, and decoding calls it for every batch
def _quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Smallest quota, in cores, of this process's cgroup (version 2 or 1) and its ancestors; sys.maxsize if none."""
    least = math.inf
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return sys.maxsize
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        base = root / controllers if controllers else root
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            least = min(least, _folder_quota(folder))
            if folder == base:
                break
    return sys.maxsize if least == math.inf else max(1, math.ceil(least))


def _folder_quota(folder: Path) -> float:
    try:
        limit, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        try:
            limit, period = (
                (folder / f"cpu.cfs_{name}_us").read_text(encoding="utf-8") for name in ("quota", "period")
            )
        except OSError:
            return math.inf
    return int(limit) / int(period) if limit.strip() != "max" and int(limit) > 0 else math.inf


def reason_of(error: Exception) -> str:
    """The message of an error of another package in one line, or else its type."""
    return " ".join(str(error).split()) or type(error).__name__
