"""A pretended GPU: tensors that claim to be on it and refuse to mix with CPU tensors, while the CPU computes.

    with PretendGPU() as gpu:
        ...                       # device="cuda" works
        gpu.waits                 # what would have made the host wait for a GPU, and where

It reveals forgotten transfers, NumPy arrays made from device tensors, code that depends on the device, every place
where the host would wait for a real GPU, and LSTMs that multiply with less than float32 precision, as cuDNN does by
default. It reveals nothing about speed or other differences in rounding.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.utils import clip_grad
from torch.overrides import TorchFunctionMode
from torch.utils import _foreach_utils
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from mh4.models import randomness

FEWEST = 10_000  # storages remembered before dead ones are purged
DEVICE = torch.device("cuda", 0)
HOST = torch.device("cpu")

# Operators for which the host must wait, as it needs a number that the GPU has yet to compute.
WAITING = {
    "aten::_local_scalar_dense": "a number is read",
    "aten::nonzero": "positions are counted",
    "aten::masked_select": "positions are counted",
    "aten::unique_dim": "values are counted",
    "aten::_unique": "values are counted",
    "aten::_unique2": "values are counted",
    "aten::unique_consecutive": "values are counted",
    "aten::bincount": "values are counted",
    "aten::equal": "a truth value is read",
    "aten::is_nonzero": "a truth value is read",
}
TRANSFERS = {"aten::_to_copy", "aten::copy_"}


class _Places:
    """The set of storages on the device; weak references tell a dead one from a new one at the same address."""

    def __init__(self) -> None:
        self._storages: dict[int, StorageWeakRef] = {}
        self._limit = FEWEST

    def __contains__(self, tensor: Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self._storages

    def add(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._storages:
            self._storages[storage._cdata] = StorageWeakRef(storage)
            if len(self._storages) > self._limit:
                self._storages = {key: ref for key, ref in self._storages.items() if not ref.expired()}
                self._limit = 2 * len(self._storages) + FEWEST
        return tensor


class _Move(torch.autograd.Function):
    """Copies a tensor to the other side, and its gradient back."""

    @staticmethod
    def forward(context: Any, tensor: Tensor, places: _Places, to_device: bool) -> Tensor:
        context.places, context.to_device = places, to_device
        return _copied(tensor, places, to_device)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _copied(gradient, context.places, not context.to_device), None, None


def _copied(tensor: Tensor, places: _Places, to_device: bool) -> Tensor:
    with _disable_current_modes():
        copy = tensor.detach().clone()
    return places.add(copy) if to_device else copy


def _as_multiplied(tensor: Tensor) -> Tensor:
    """The tensor as cuDNN multiplies it: rounded to TF32, with 10 bits of mantissa, if that is allowed."""
    if torch.backends.cudnn.rnn.fp32_precision != "tf32":
        return tensor
    return ((tensor.detach().contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class _Recurrence(torch.autograd.Function):
    """`torch.lstm` of packed sequences as one operation, as in cuDNN; returns only the states of the last layer."""

    @staticmethod
    def forward(context: Any, places: _Places, settings: tuple[Any, ...], *tensors: Tensor) -> Tensor:
        rows, batch_sizes, state, cell, *weights = tensors
        assert all(tensor in places for tensor in (rows, state, cell, *weights)), "the LSTM needs all on the device"
        assert batch_sizes not in places, "the LSTM takes numbers of sequences from the host"
        with _disable_current_modes(), torch.enable_grad():
            own = [_as_multiplied(tensor.detach()).requires_grad_() for tensor in (rows, *weights)]
            states = torch.lstm(own[0], batch_sizes, [state, cell], own[1:], *settings)[0]
        context.places, context.own, context.states = places, own, states
        return places.add(states.detach().clone())

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Any, ...]:
        with _disable_current_modes():
            rows, *weights = torch.autograd.grad(context.states, context.own, _as_multiplied(gradient))
        for tensor in (rows, *weights):
            context.places.add(tensor)
        return None, None, rows, None, None, None, *weights


class _Operators(TorchDispatchMode):
    """Below autograd: results are placed where the arguments are, which must all be in one place."""

    def __init__(self, gpu: PretendGPU) -> None:
        super().__init__()
        self.gpu = gpu

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        places, name = self.gpu.places, func._schema.name
        kwargs = dict(kwargs or {})
        wanted = kwargs.get("device")
        if wanted is not None:
            kwargs["device"] = HOST
        kwargs.pop("pin_memory", None)
        in_backward = torch._C._current_graph_task_id() != -1
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        on_device = [tensor in places for tensor in tensors]
        mixed = not all(here or not tensor.dim() for here, tensor in zip(on_device, tensors, strict=True))
        if mixed and any(on_device) and not in_backward and name not in TRANSFERS:
            raise RuntimeError(
                f"{name}: Expected all tensors to be on the same device, but found at least two devices, "
                "cuda:0 and cpu!"
            )
        if any(on_device) and not (in_backward and name == "aten::copy_"):  # buffers of autograd are not marked
            self._note(name, args, kwargs, on_device)
        result = func(*args, **kwargs)
        if name == "aten::copy_" or (in_backward and name in TRANSFERS):
            # A copy into an existing tensor; autograd copies into its own buffers, or to another type on the device.
            to_device = in_backward and any(on_device)
        elif wanted is not None:
            to_device = torch.device(wanted).type == "cuda"
        else:
            to_device = any(on_device)
        if to_device and name != "aten::_local_scalar_dense":
            for leaf in tree_leaves(result):
                if isinstance(leaf, Tensor):
                    places.add(leaf)
        return result

    def _note(self, name: str, args: Any, kwargs: Any, on_device: list[bool]) -> None:
        gpu = self.gpu
        if name in WAITING:
            gpu.note(WAITING[name])
        elif name in ("aten::index", "aten::index_put", "aten::index_put_"):
            if any(isinstance(index, Tensor) and index.dtype == torch.bool for index in args[1]):
                gpu.note("positions are counted")
        elif name == "aten::repeat_interleave" and kwargs.get("output_size") is None:
            gpu.note("repeats are added up")
        elif name == "aten::copy_" and len(set(on_device)) == 2:
            waits = not (args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
            if waits:
                gpu.note("a transfer is awaited")


class PretendGPU(TorchFunctionMode):
    """The pretended GPU, as a context; see the module.

    Attributes
    ----------
    waits : Counter
        Number of waits by reason and by line of the package; `clear` it to start again.
    tolerance : float
        Allowed difference from CPU results, due to other operators in another order.
    """

    tolerance = 1e-5

    def __init__(self) -> None:
        super().__init__()
        self.places = _Places()
        self.waits: Counter[tuple[str, str]] = Counter()
        self.recorded = self.awaited = 0  # numbers of events
        self._pinned = _Places()

    def holds(self, value: Any) -> bool:
        """Whether a value is a tensor on the device."""
        return isinstance(value, Tensor) and value in self.places

    def note(self, what: str) -> None:
        """Count a wait, by the innermost line of the package on the stack."""
        lines = [frame for frame in traceback.extract_stack() if "/src/" in frame.filename or "/mh4/" in frame.filename]
        where = f"{lines[-1].filename.rpartition('/')[2]}:{lines[-1].lineno}" if lines else "elsewhere"
        self.waits[what, where] += 1

    def __enter__(self) -> PretendGPU:
        self._stack = ExitStack()
        self._stack.enter_context(self._pretending())
        self._stack.enter_context(_Operators(self))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._stack.close()

    @contextmanager
    def _pretending(self) -> Iterator[None]:
        """Make `torch.cuda` behave as with one GPU."""
        gpu = self

        class Event:
            """An event; GPU work is ordered, so waiting for an event also waits for all earlier ones."""

            def __init__(self, *_: Any, **__: Any) -> None:
                self.number = 0

            def record(self, *_: Any) -> None:
                gpu.recorded += 1
                self.number = gpu.recorded

            def synchronize(self) -> None:
                if self.number > gpu.awaited:
                    gpu.note("a transfer is awaited")
                    gpu.awaited = self.number

            def query(self) -> bool:
                return self.number <= gpu.awaited

        autocast = torch.autocast

        def on_host(device_type: str, *args: Any, **kwargs: Any) -> Any:
            return autocast("cpu" if device_type == "cuda" else device_type, *args, **kwargs)

        def on_device(_: str) -> torch.Generator:
            return torch.Generator()

        instead = {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "set_device": lambda *_: None,
            "get_device_name": lambda *_: "a pretended GPU",
            "synchronize": lambda *_: gpu.note("everything is awaited"),
            "max_memory_allocated": lambda *_: 0,
            "reset_peak_memory_stats": lambda *_: None,
            "is_current_stream_capturing": lambda: False,
            "Event": Event,
        }
        grouped = clip_grad._group_tensors_by_device_and_dtype

        def by_device(lists: list[list[Tensor]], *args: Any, **kwargs: Any) -> dict[Any, Any]:
            """Replaces a C++ function, which would see the tensors on the CPU."""
            return {
                (tensors[0][0].device, dtype): (tensors, indices)
                for (_, dtype), (tensors, indices) in grouped(lists, *args, **kwargs).items()
            }

        deterministic = torch.are_deterministic_algorithms_enabled()
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        fills = torch.utils.deterministic.fill_uninitialized_memory
        with ExitStack() as stack:
            for name, value in instead.items():
                stack.enter_context(mock.patch.object(torch.cuda, name, value))
            stack.enter_context(mock.patch.object(torch, "autocast", on_host))
            # A build of PyTorch for CUDA would look for the GPU.
            stack.enter_context(mock.patch.object(torch.accelerator, "current_accelerator", return_value=None))
            stack.enter_context(mock.patch.object(randomness, "Generator", on_device))
            if operations := sys.modules.get("operations"):  # the module of the experiments
                stack.enter_context(mock.patch.object(operations, "_is_on", lambda leaf, _: gpu.holds(leaf)))
            for module in (clip_grad, _foreach_utils):
                stack.enter_context(mock.patch.object(module, "_group_tensors_by_device_and_dtype", by_device))
            try:
                yield
            finally:
                torch.use_deterministic_algorithms(deterministic, warn_only=warns)
                torch.utils.deterministic.fill_uninitialized_memory = fills

    def _moved(self, tensor: Tensor, to_device: bool) -> Tensor:
        return tensor if (tensor in self.places) == to_device else _Move.apply(tensor, self.places, to_device)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "__get__" and func.__self__ is Tensor.device:
            return DEVICE if args[0] in self.places else func(*args)
        if name == "__get__" and func.__self__ is Tensor.is_cuda:
            return args[0] in self.places
        if name == "numpy" and args[0] in self.places:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")
        if name == "pin_memory":
            if args[0] in self.places:
                raise RuntimeError("cannot pin a tensor that is not on the CPU")
            return self._pinned.add(args[0].clone())
        if name == "is_pinned":
            return args[0] in self._pinned
        if name == "tolist" and args[0] in self.places:
            self.note("numbers are read")
            with _disable_current_modes():
                return args[0].tolist()
        if func is torch.lstm and any(weight in self.places for weight in args[3]):
            rows, batch_sizes, (state, cell), weights, *settings = args
            return (_Recurrence.apply(self.places, settings, rows, batch_sizes, state, cell, *weights),)
        if name in ("cpu", "cuda", "to"):
            return self._to(func, name, list(args), kwargs)
        wanted = kwargs.get("device")
        if wanted is not None and torch.device(wanted).type == "cuda":
            kwargs["device"] = HOST
            return self.places.add(func(*args, **kwargs))
        if kwargs.pop("pin_memory", False):
            return self._pinned.add(func(*args, **kwargs))
        return func(*args, **kwargs)

    def _to(self, func: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Tensor:
        tensor, device = args[0], kwargs.pop("device", None)
        if name == "to":
            for i, argument in enumerate(args[1:], start=1):
                if isinstance(argument, (str, torch.device)):
                    device = args.pop(i)
                    break
                if isinstance(argument, Tensor):
                    device, args[i] = argument.device, argument.dtype
                    break
        else:
            device = name
        is_patient = bool(kwargs.pop("non_blocking", False)) and (tensor in self.places or tensor in self._pinned)
        if device is None:
            return func(*args, **kwargs)
        to_device = torch.device(device).type == "cuda"
        if to_device != (tensor in self.places) and not is_patient:
            self.note("a transfer is awaited")
        moved = self._moved(tensor, to_device)
        rest = [argument for argument in args[1:] if not isinstance(argument, bool)]
        return Tensor.to(moved, *rest, **kwargs) if rest or kwargs.get("dtype") is not None else moved
