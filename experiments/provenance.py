"""The provenance of a result: code, versions, machine."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from mh4.machine import processor
from mh4.models.devices import choose_device

PACKAGES = ("mh4", "numpy", "numba", "torch")


def made_with(device: str) -> dict[str, Any]:
    """The commit, versions and hardware of a result that is made now, on a device."""
    return {"commit": describe_commit(), "versions": describe_versions(), "hardware": describe_hardware(device)}


def made_today() -> dict[str, Any]:
    """The date, commit and machine of numbers that are computed now, on its CPU."""
    today = datetime.date.today().isoformat()
    return {"date": today, "commit": describe_commit(), "machine": describe_hardware("cpu")}


def describe_commit() -> str | None:
    """The commit of this repository, followed by ``+`` if tracked files differ; None outside git."""
    try:
        commit, changes = (
            subprocess.run(["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
            for arguments in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("+" if changes.stdout.strip() else "")


def describe_versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def describe_hardware(device: str) -> dict[str, Any]:
    """The processor, the number of its cores, and the GPU if ``device`` is one."""
    gpu = torch.cuda.get_device_name() if choose_device(device).type == "cuda" else None
    return {"cpu": processor(), "cores": os.cpu_count(), "gpu": gpu}
