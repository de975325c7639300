"""`Lanes` computes the same as numpy, with and without the JIT."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from mh4.decoders.lanes import (
    add,
    broadcast,
    fold,
    gather,
    lane_max,
    lane_sum,
    load,
    multiply_add,
    padded,
    scratch,
    splat,
    splat_double,
    store,
    vmax,
)

W = 8
WIDE = 16
NEG = np.float32(-np.inf)


@njit(nogil=True)
def _every_operation(a, x, one, out):
    first, second = load(a, (1, 2), W), gather(a, (0, 3), a.shape[1], W)
    store(out, (0, 0), first + second)
    store(out, (1, 0), vmax(first, second))
    store(out, (2, 0), add(first, second, splat(one, W)))
    store(out, (3, 0), broadcast(a, (2, 5), W))
    store(out, (4, 0), splat(x, W))
    store(out, (5, 0), multiply_add(splat(x, W), broadcast(a, (2, 5), W), broadcast(a, (0, 0), W)))
    store(out, (6, 0), fold(first, second))
    return lane_max(load(a, (3, 0), W))


@njit(nogil=True)
def _in_double(a, x, out):
    first, second = load(a, (1, 2), W), gather(a, (0, 3), a.shape[1], W)
    store(out, (0, 0), first + second)
    store(out, (1, 0), first * second)
    store(out, (2, 0), multiply_add(first, splat_double(x, W), broadcast(a, (0, 0), W)))
    return lane_sum(first)


@njit(nogil=True)
def _max_plus(flat, out, count):
    """out[i] = max over k < 4 of flat[k · count + i] + k, for `WIDE` values of i at a time."""
    for i in range(0, count, WIDE):
        best = splat(NEG, WIDE)
        for k in range(4):
            best = vmax(best, load(flat, k * count + i, WIDE) + splat(k, WIDE))
        store(out, i, best)


@njit(nogil=True)
def _strided(a, out):
    store(out, 0, load(a, (0, 0), W))


def example(seed=0):
    a = np.random.default_rng(seed).normal(size=(8, 11)).astype(np.float32)
    a[1, 3] = a[4, 3] = a[3, 1] = -np.inf
    return a


def test_every_operation():
    a, out = example(), np.empty((7, W), np.float32)
    assert _every_operation(a, np.float32(0.3), np.float32(1), out) == a[3, :W].max()
    first, second = a[1, 2:10], a[:, 3]
    assert (out[0] == first + second).all()
    assert (out[1] == np.maximum(first, second)).all()
    assert (out[2] == first + second).all()
    assert (out[3] == a[2, 5]).all()
    assert (out[4] == np.float32(0.3)).all()
    np.testing.assert_allclose(out[5], np.float32(0.3) * a[2, 5] + a[0, 0], rtol=1e-6)
    assert out[6].tolist() == [max(x[lane], x[lane + W // 2]) for x in (first, second) for lane in range(W // 2)]


def test_lanes_of_64_bits():
    a, out = np.random.default_rng(0).normal(size=(8, 11)), np.empty((3, W))
    first, second = a[1, 2:10], a[:, 3]
    assert _in_double(a, 1 / 3, out) == pytest.approx(first.sum(), rel=1e-14)
    assert (out[0] == first + second).all()
    assert (out[1] == first * second).all()
    np.testing.assert_allclose(out[2], first / 3 + a[0, 0], rtol=1e-14)


def test_lane_max_of_minus_infinity():
    a = example()
    a[3] = -np.inf
    assert _every_operation(a, np.float32(0), np.float32(1), np.empty((7, W), np.float32)) == -np.inf


def test_wide_vectors_and_integer_indices():
    flat, out = np.random.default_rng(0).normal(size=(4, 48)).astype(np.float32), np.empty(48, np.float32)
    _max_plus(flat.reshape(-1), out, 48)
    assert (out == (flat + np.arange(4, dtype=np.float32)[:, None]).max(axis=0)).all()


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="numpy accepts what the compiler rejects")
@pytest.mark.parametrize("array", [np.zeros((8, 16))[:, ::2], np.zeros((8, 8), int), np.zeros((2, 8, 8), np.float32)])
def test_only_contiguous_floats_with_an_index_for_each_axis(array):
    with pytest.raises(Exception, match=r"lanes live in C-contiguous float32|2 indices for an array of 3 axes"):
        _strided(array, np.zeros(W, np.float32))


def test_padded_is_an_odd_number_of_cache_lines():
    for length in range(1, 200):
        assert padded(length) >= length
        assert padded(length) % 32 == 16


def test_scratch_is_aligned_and_reused():
    memory = scratch(1000)
    assert memory.dtype == np.float32
    assert memory.shape == (1000,)
    assert memory.ctypes.data % 64 == 0
    assert scratch(500).ctypes.data == memory.ctypes.data


def test_kernels_run_as_plain_python():
    """With the JIT off, kernels run on numpy and give the same results."""
    program = """
import sys
import numpy as np
from mh4.decoders import get_decoder
for name in ("mh3", "mh4-two", "mh4-hybrid"):
    decoder = get_decoder(name)
    scores = np.random.default_rng(0).normal(size=(len(decoder.channels), 11, 11)).astype(np.float32)
    print(decoder.decode(scores).parts.tolist(), decoder.max_marginals(scores).tolist())
"""
    lines = []
    for disabled in ("0", "1"):
        environment = dict(os.environ, NUMBA_DISABLE_JIT=disabled)
        run = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
        )
        lines.append(run.stdout)
    assert lines[0].count("\n") == 3
    assert lines[0] == lines[1]
