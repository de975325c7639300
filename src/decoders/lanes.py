"""Vectors of float32 or float64 lanes as ordinary Numba values.

The charts spend their time in loops of the form ``best[i] = max(best[i], x[i] + y[i] + z)``. Automatic vectorisation
by Numba loses most of the speed (arrays might overlap, a ``max`` before a store becomes a masked store), so the chart
kernels vectorise explicitly: a value of type `Lanes` is `width` consecutive floats, held in vector registers.

======================================  ==========================================================
``load(array, index, width)``           ``width`` consecutive elements, the first at ``array[index]``
``store(array, index, v)``              write them back
``gather(array, index, step, width)``   elements ``step`` apart in memory (a column: step = row pitch)
``broadcast(array, index, width)``      ``array[index]`` in every lane
``splat(x, width)``                     the scalar ``x`` in every lane, as float32
``splat_double(x, width)``              the same as float64
``v + w``, ``v * w``, ``vmax(v, w)``    lane by lane (`vmax` for float32)
``multiply_add(v, w, x)``               ``v · w + x``, rounded once where the machine can
``add(v, w, one)``                      ``v + w`` in the multiply-add units; ``one`` holds ones
``fold(v, w)``                          maxima of the two halves of ``v``, then those of ``w``
``lane_max(v)``                         the largest lane, a float32
``lane_sum(v)``                         the sum of all lanes
======================================  ==========================================================

Arrays are C-contiguous, float32 or float64, ``index`` is an integer or a tuple with one integer for each axis,
``width`` a compile-time constant (a literal or a global, a power of two). Nothing is checked: indices are not negative,
and the caller pads the last axis (`padded`) so that a load that begins inside a row stays inside the array. LLVM maps a
vector to whatever registers the machine has; 8 lanes are one AVX register, 16 lanes are two.

−inf is a value like any other; NaN and +inf must not occur. With ``NUMBA_DISABLE_JIT=1`` the same names are plain
numpy functions, so kernels can be stepped through.

`scratch` hands out the memory the charts live in.
"""

from __future__ import annotations

import operator
import threading
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import config, types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic as _numba_intrinsic
from numba.extending import lower_builtin, models, register_jitable, register_model

ALIGNMENT = 64  # bytes: a cache line
KEPT_BYTES = 64 << 20  # larger scratch memory goes back to the system after use

# Lanes of one register of this machine, for kernels that keep many vectors in registers.
REGISTER = 16 if get_host_cpu_features().get("avx512f") else 8

_MAX_FLAGS = ("nnan", "nsz")  # makes llvm.maxnum one instruction; −inf stays legal
_I32 = ir.IntType(32)
_local = threading.local()

# Untyped: for mypy the typing context would be an argument of the caller.
intrinsic: Any = _numba_intrinsic


class Lanes(types.Type):
    """The Numba type of ``width`` lanes of 32 or 64 bits."""

    def __init__(self, width: int, bits: int = 32) -> None:
        self.width, self.bits = width, bits
        super().__init__(name=f"float{bits}x{width}")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        element = ir.FloatType() if fe_type.bits == 32 else ir.DoubleType()
        super().__init__(dmm, fe_type, ir.VectorType(element, fe_type.width))


def _element(context, builder, signature_, args):
    """Pointer to ``array[index]`` of a C-contiguous array, (array, index) being the first two arguments."""
    array_type, index_type = signature_.args[:2]
    array = context.make_array(array_type)(context, builder, args[0])
    if isinstance(index_type, (types.UniTuple, types.Tuple)):
        indices = cgutils.unpack_tuple(builder, args[1])
        index_types = list(index_type)
    else:
        indices, index_types = [args[1]], [index_type]
    indices = [context.cast(builder, i, t, types.intp) for i, t in zip(indices, index_types, strict=True)]
    shape = cgutils.unpack_tuple(builder, array.shape)
    offset = indices[0]
    for extent, index in zip(shape[1:], indices[1:], strict=True):
        offset = builder.add(builder.mul(offset, extent), index)
    return builder.gep(array.data, [offset])


def _vector_pointer(builder, pointer, vector):
    return builder.bitcast(pointer, vector.as_pointer())


def _fill(builder, x, vector):
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, x, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, zeros)


def _maximum(builder, v, w):
    vector = v.type
    name = f"llvm.maxnum.v{vector.count}f32"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector, vector]), name)
    return builder.call(function, [v, w], fastmath=_MAX_FLAGS)


def _halves(builder, value):
    half = value.type.count // 2
    return [
        builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(_I32, half), list(range(at, at + half))))
        for at in (0, half)
    ]


def _check_array(array: types.Type, index: types.Type) -> int:
    """The bits of an element; TypeError for arrays and indices that vectors do not support."""
    kinds = (types.float32, types.float64)
    if not (isinstance(array, types.Array) and array.layout == "C" and array.dtype in kinds):
        raise TypeError(f"lanes live in C-contiguous float32 or float64 arrays, not in {array}")
    axes = len(index) if isinstance(index, types.BaseTuple) else 1
    if axes != array.ndim:
        raise TypeError(f"{axes} indices for an array of {array.ndim} axes")
    return int(array.dtype.bitwidth)


def _check_width(width: types.Type) -> int:
    if not isinstance(width, types.IntegerLiteral):
        raise TypeError("the number of lanes must be a compile-time constant")
    return width.literal_value


@intrinsic(prefer_literal=True)
def load(typingctx, array, index, width):
    """``width`` consecutive elements, the first at ``array[index]``."""
    lanes = Lanes(_check_width(width), _check_array(array, index))

    def codegen(context, builder, sig, args):
        vector = context.get_value_type(sig.return_type)
        value = builder.load(_vector_pointer(builder, _element(context, builder, sig, args), vector))
        value.align = 4
        return value

    return lanes(array, index, width), codegen


@intrinsic
def store(typingctx, array, index, v):
    """Write the lanes of ``v`` to consecutive elements, the first at ``array[index]``."""
    if not isinstance(v, Lanes) or v.bits != _check_array(array, index):
        raise TypeError(f"{v} does not fit into {array}")

    def codegen(context, builder, sig, args):
        pointer = _vector_pointer(builder, _element(context, builder, sig, args), args[2].type)
        builder.store(args[2], pointer).align = 4
        return context.get_dummy_value()

    return types.void(array, index, v), codegen


@intrinsic(prefer_literal=True)
def gather(typingctx, array, index, step, width):
    """``width`` elements that lie ``step`` elements apart in memory, the first at ``array[index]``."""
    lanes = Lanes(_check_width(width), _check_array(array, index))

    def codegen(context, builder, sig, args):
        vector = context.get_value_type(sig.return_type)
        value = ir.Constant(vector, ir.Undefined)
        pointer = _element(context, builder, sig, args)
        distance = context.cast(builder, args[2], sig.args[2], types.intp)
        for lane in range(vector.count):
            value = builder.insert_element(value, builder.load(pointer), ir.Constant(_I32, lane))
            pointer = builder.gep(pointer, [distance])
        return value

    return lanes(array, index, step, width), codegen


@intrinsic(prefer_literal=True)
def broadcast(typingctx, array, index, width):
    """``array[index]`` in each of ``width`` lanes."""
    lanes = Lanes(_check_width(width), _check_array(array, index))

    def codegen(context, builder, sig, args):
        x = builder.load(_element(context, builder, sig, args))
        return _fill(builder, x, context.get_value_type(sig.return_type))

    return lanes(array, index, width), codegen


@intrinsic(prefer_literal=True)
def splat(typingctx, x, width):
    """The scalar ``x`` in each of ``width`` lanes."""
    lanes = Lanes(_check_width(width))

    def codegen(context, builder, sig, args):
        x = context.cast(builder, args[0], sig.args[0], types.float32)
        return _fill(builder, x, context.get_value_type(sig.return_type))

    return lanes(x, width), codegen


@intrinsic(prefer_literal=True)
def splat_double(typingctx, x, width):
    """The scalar ``x`` in each of ``width`` lanes of 64 bits."""
    lanes = Lanes(_check_width(width), 64)

    def codegen(context, builder, sig, args):
        x = context.cast(builder, args[0], sig.args[0], types.float64)
        return _fill(builder, x, context.get_value_type(sig.return_type))

    return lanes(x, width), codegen


@intrinsic
def vmax(typingctx, v, w):
    """The larger of ``v`` and ``w``, lane by lane."""
    if not isinstance(v, Lanes) or v != w or v.bits != 32:
        raise TypeError(f"vmax expects two vectors of equal width, not {v} and {w}")

    def codegen(context, builder, sig, args):
        return _maximum(builder, *args)

    return v(v, w), codegen


def _multiply_add(builder, v, w, x):
    bits = 32 if isinstance(v.type.element, ir.FloatType) else 64
    name = f"llvm.fmuladd.v{v.type.count}f{bits}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(v.type, [v.type] * 3), name)
    return builder.call(function, [v, w, x])


@intrinsic
def multiply_add(typingctx, v, w, x):
    """``v · w + x``, lane by lane."""
    if not isinstance(v, Lanes) or v != w or v != x:
        raise TypeError(f"multiply_add expects three vectors of equal width, not {v}, {w} and {x}")

    def codegen(context, builder, sig, args):
        return _multiply_add(builder, *args)

    return v(v, w, x), codegen


@intrinsic
def add(typingctx, v, w, one):
    """``v + w``, computed as v · one + w, which is exact.

    Some cores (AMD Zen) send additions and maxima to the same two units and multiply-adds to two others; there a loop
    of as many maxima as additions runs up to 1.6 times as fast with `add` as with ``+``. ``one`` must come from an
    argument of the compiled function, ``splat(unit, width)``: a literal 1 would let the compiler undo this.
    """
    if not isinstance(v, Lanes) or v != w or v != one:
        raise TypeError(f"add expects three vectors of equal width, not {v}, {w} and {one}")

    def codegen(context, builder, sig, args):
        v, w, one = args
        return _multiply_add(builder, v, one, w)

    return v(v, w, one), codegen


@intrinsic
def fold(typingctx, v, w):
    """The larger of the lower and upper half, lane by lane: first that of ``v``, then that of ``w``."""
    if not isinstance(v, Lanes) or v != w or v.bits != 32:
        raise TypeError(f"fold expects two vectors of equal width, not {v} and {w}")

    def codegen(context, builder, sig, args):
        count = args[0].type.count
        indices = ir.VectorType(_I32, count)
        lower = [*range(count // 2), *range(count, count + count // 2)]
        parts = (ir.Constant(indices, [at + offset for at in lower]) for offset in (0, count // 2))
        return _maximum(builder, *(builder.shuffle_vector(*args, part) for part in parts))

    return v(v, w), codegen


@intrinsic
def lane_max(typingctx, v):
    """The largest lane."""
    if not isinstance(v, Lanes):
        raise TypeError(f"lane_max expects a vector, not {v}")

    def codegen(context, builder, sig, args):
        value = args[0]
        while value.type.count > 1:  # fold the upper half onto the lower
            value = _maximum(builder, *_halves(builder, value))
        return builder.extract_element(value, ir.Constant(_I32, 0))

    return types.float32(v), codegen


@intrinsic
def lane_sum(typingctx, v):
    """The sum of all lanes."""
    if not isinstance(v, Lanes):
        raise TypeError(f"lane_sum expects a vector, not {v}")

    def codegen(context, builder, sig, args):
        value = args[0]
        while value.type.count > 1:
            value = builder.fadd(*_halves(builder, value))
        return builder.extract_element(value, ir.Constant(_I32, 0))

    return (types.float32 if v.bits == 32 else types.float64)(v), codegen


class _OfTwoLanes(AbstractTemplate):
    def generic(self, args, kws):
        if len(args) == 2 and isinstance(args[0], Lanes) and args[0] == args[1]:
            return signature(args[0], *args)
        return None


@infer_global(operator.add)
class _AddLanes(_OfTwoLanes):
    pass


@infer_global(operator.mul)
class _MultiplyLanes(_OfTwoLanes):
    pass


@lower_builtin(operator.add, Lanes, Lanes)
def _add_lanes(context, builder, sig, args):
    return builder.fadd(*args)


@lower_builtin(operator.mul, Lanes, Lanes)
def _multiply_lanes(context, builder, sig, args):
    return builder.fmul(*args)


if vars(config)["DISABLE_JIT"]:  # set when numba is imported

    def _flat(array, index):
        """The array as one row, and the position of ``array[index]`` in it."""
        index = index if isinstance(index, tuple) else (index,)
        return array.reshape(-1), int(np.ravel_multi_index(index, array.shape))

    def load(array, index, width):
        row, at = _flat(array, index)
        return row[at : at + width].copy()

    def store(array, index, v):
        row, at = _flat(array, index)
        row[at : at + len(v)] = v

    def gather(array, index, step, width):
        row, at = _flat(array, index)
        return row[at : at + width * step : step].copy()

    def broadcast(array, index, width):
        return np.full(width, array[index], np.float32)

    def splat(x, width):
        return np.full(width, x, np.float32)

    def splat_double(x, width):
        return np.full(width, x, np.float64)

    def multiply_add(v, w, x):
        return v * w + x

    def add(v, w, one):
        return v + w

    def fold(v, w):
        return np.concatenate([np.maximum(*np.split(x, 2)) for x in (v, w)])

    vmax = np.maximum
    lane_max = np.max
    lane_sum = np.sum


@register_jitable
def padded(length):
    """Row pitch for ``length`` floats: an odd number of cache lines.

    Rows a power of two apart would compete for few cache sets.
    """
    return ((length + 15) // 16 | 1) * 16


def scratch(count: int, spare: int = 0) -> np.ndarray:
    """Float32 memory of this thread, uninitialised, aligned to a cache line.

    The next call in the same thread hands out the same memory again, so that decoding a stream of sentences does not
    fault the pages in anew each time. ``spare`` more floats are added unless the memory is too large to be kept.
    """
    if spare and 4 * (count + spare) + ALIGNMENT <= KEPT_BYTES:
        count += spare
    memory = getattr(_local, "memory", None)
    if memory is None or memory.size < count:
        whole = np.empty(count * 4 + ALIGNMENT, np.uint8)
        start = -whole.ctypes.data % ALIGNMENT
        memory = whole[start : start + count * 4].view(np.float32)
        if whole.size > KEPT_BYTES:
            _local.lent = None
            return memory
        _local.memory = memory
    lent = _local.lent = memory[:count]
    return lent


@register_jitable
def cut(memory, at, shape):
    """An array of this shape that begins at ``at`` in ``memory``, and where it ends."""
    size = 1
    for extent in shape:
        size *= extent
    return memory[at : at + size].reshape(shape), at + size


def lent() -> np.ndarray | None:
    """The memory, still intact, that `scratch` last handed out in this thread; None if it was too large to keep."""
    return getattr(_local, "lent", None)
