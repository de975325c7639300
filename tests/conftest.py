"""Settings for all tests; small treebanks and a small trained model."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is imported; test processes run side by side

import pytest
import torch
from hypothesis import settings
from pretend_gpu import PretendGPU
from small import small_config

from mh4.data.sample import generate_sample
from mh4.training.trainer import train

# The first call of a kernel compiles it.
settings.register_profile("mh4", deadline=None, max_examples=60)
settings.load_profile("mh4")


@pytest.fixture(scope="session")
def small_treebanks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Training and development files of 40 and 12 sentences of the sample."""
    folder = tmp_path_factory.mktemp("treebanks")
    sample = generate_sample(1)
    paths = folder / "train.conllu", folder / "dev.conllu"
    for path, sentences in zip(paths, (sample["train"][:40], sample["dev"][:12]), strict=True):
        path.write_text("".join(sentences), encoding="utf-8")
    return paths


@pytest.fixture(scope="session")
def small_model(small_treebanks: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder, briefly trained with mh4-hybrid."""
    folder = tmp_path_factory.mktemp("model") / "mh4-hybrid"
    train(*small_treebanks, folder, small_config(), device="cpu")
    return folder


_REAL = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture(params=["pretended", pytest.param("real", marks=[pytest.mark.cuda, _REAL])])
def gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    """device="cuda" works inside; ``tolerance`` is how far results may be from the CPU's.

    `PretendGPU` says what else the pretended one has.
    """
    if request.param == "real":
        yield SimpleNamespace(tolerance=1e-4)
        return
    with PretendGPU() as pretended:
        yield pretended
