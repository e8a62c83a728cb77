"""The part of layout/__init__.py for arrays of a GPU: streams, buffers, and the engine's kernels.

Contract: an array is whatever strided.py describes; its own library (CuPy, PyTorch, Numba) makes the buffers
that a call returns, so that nothing here allocates device memory. `stream` is a stream of CuPy, PyTorch or
Numba, anything with `__cuda_stream__`, or a handle as an integer (0 and 1: the default stream, 2: the default
stream of the thread). Order:

- stream=None: the stream that the array's library works on now, as its own operations; the default stream if
  it does not say. Where two arrays' libraries work on two streams, the call comes after what both have begun
  and before what they begin later.
- a stream: the call comes after what the arrays' libraries have begun on theirs. What they begin later is not
  ordered behind it; that is the caller's.

A call returns when the kernel is launched, not when it has run; the host waits as it does for its library.
A call between the host's memory and a GPU's returns when the bytes are there.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Sequence
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.layout import cuda
from spinloom.layout.strided import Strided, on_device, strided

DEFAULT_STREAM = 0
LEGACY_STREAM = 1  # the same stream by another handle


def holds(*arrays: Any) -> bool:
    """True if one of the arrays lies in the memory of a GPU."""
    return any(on_device(array) for array in arrays)


# ---- streams ----


def handle_of(stream: Any) -> int:
    """The driver's handle of a stream."""
    for name in ("__cuda_stream__", "ptr", "cuda_stream", "handle"):
        attribute = getattr(stream, name, None)
        if attribute is None:
            continue
        value = attribute()[1] if name == "__cuda_stream__" else attribute
        return canonical_handle(int(getattr(value, "value", value) or 0))  # Numba's is a c_void_p
    try:
        value = operator.index(stream)
    except TypeError:
        raise TypeError(
            "stream must be a stream of CuPy, PyTorch or Numba, an integer or None, "
            f"not {type(stream).__name__} ({stream!r:.40})"
        ) from None
    if value < 0:
        raise Trouble("invalid", f"stream = {value} is no handle of a stream")
    return canonical_handle(value)


def canonical_handle(handle: int) -> int:
    return DEFAULT_STREAM if handle == LEGACY_STREAM else handle


def library(array: Any) -> str:
    """The package that an array comes from: cupy, torch, ..."""
    names = [kind.__module__.partition(".")[0] for kind in type(array).__mro__]
    return next((name for name in names if name in ("cupy", "torch", "numba")), names[0])


def current_stream(view: Strided) -> int:
    """The stream that an array's library works on now."""
    if view.stream is not None:
        return canonical_handle(int(view.stream))
    array: Any = view.owner[0] if isinstance(view.owner, tuple) else view.owner
    torch: Any = sys.modules.get("torch")
    if torch is not None and library(array) == "torch":
        return canonical_handle(torch.cuda.current_stream(array.device).cuda_stream)
    return DEFAULT_STREAM


class Order:
    """The stream of one call, and its place among what the arrays' libraries have begun and will begin."""

    def __init__(self, stream: Any, views: Sequence[Strided | None]) -> None:
        others = [current_stream(view) for view in views if view is not None and view.on_device]
        self.given = stream is not None
        self.handle = handle_of(stream) if self.given else others[-1] if others else DEFAULT_STREAM
        self.others = sorted({other for other in others if other != self.handle})

    def __enter__(self) -> int:
        for other in self.others:
            cuda.wait(self.handle, other)
        return self.handle

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not self.given and error is None:
            for other in self.others:
                cuda.wait(other, self.handle)


# ---- memory ----


def memory(array: Any, view: Strided | None) -> Any:
    """Returns what the engine takes for an array."""
    if view is None or not view.on_device:
        return array
    return core.load().DeviceMemory(
        view.address, view.shape, view.strides, view.item_bytes, view.writable, view.owner
    )


def view_of(array: Any) -> Strided | None:
    """The description of a GPU's array; None for the host's, which the engine takes as they are."""
    return strided(array) if on_device(array) else None


def empty(array: Any, size: int, handle: int) -> Any:
    """`size` bytes of device memory from the library of `array`, in the order of a stream."""
    name = library(array)
    package: Any = sys.modules.get(name)
    if name == "cupy" and package is not None:
        with array.device, cupy_stream(package, handle):
            return package.empty(size, "u1")
    if name == "torch" and package is not None:
        with torch_stream(package, handle, array.device):
            return package.empty(size, dtype=package.uint8, device=array.device)
    if name == "numba" and package is not None:
        return package.cuda.device_array(size, "u1")
    raise Trouble(
        "invalid",
        f"there is no buffer to pack into: {type(array).__name__} is of {name}, which is not known to make "
        "one; pass out=, an array of the GPU with enough bytes",
    )


class ForeignStream:
    """A stream by its handle, as CUDA's stream protocol has it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.handle)


def cupy_stream(cupy: Any, handle: int) -> Any:
    """CuPy's object for a stream of the current device."""
    if handle == 0:
        return cupy.cuda.Stream.null
    if hasattr(cupy.cuda.Stream, "from_external"):  # CuPy 14 and later warn of the other one
        return cupy.cuda.Stream.from_external(ForeignStream(handle))
    return cupy.cuda.ExternalStream(handle)


def torch_stream(torch: Any, handle: int, device: Any) -> contextlib.AbstractContextManager[Any]:
    if handle == canonical_handle(torch.cuda.current_stream(device).cuda_stream):
        return contextlib.nullcontext()
    stream = (
        torch.cuda.default_stream(device) if handle == 0 else torch.cuda.ExternalStream(handle, device=device)
    )
    return torch.cuda.stream(stream)


TORCH_KINDS = {"f": "float", "i": "int", "u": "uint"}


def typed(array: Any, code: str) -> Any:
    """A buffer of empty() as items of NumPy's code, such as f8; as it is where its library has no such."""
    if library(array) == "torch":
        torch: Any = sys.modules["torch"]
        name = "complex" if code[0] == "c" else TORCH_KINDS.get(code[0], "")
        kind = torch.bool if code == "?" else getattr(torch, f"{name}{8 * int(code[1:])}", None)
        return array if kind is None else array.view(kind)
    try:
        return array.view(code)
    except (TypeError, ValueError):
        return array


# ---- calls: the arguments of Layout's ----


def pack(
    engine: Any, source: Any, out: Any, count: int, first: int, last: int | None, offset: int,
    as_memory: bool, stream: Any,
) -> Any:  # fmt: skip
    views = [view_of(source), view_of(out)]
    order = Order(stream, views)
    if out is None:
        size = (engine.packed_bytes(count) if last is None else last) - first
        if views[0] is None:  # the source is on the host, and a stream is given: a buffer of the host
            out = bytearray(max(0, size))
        else:
            out = empty(source, max(0, size), order.handle)
            views[1] = view_of(out)
    with order as handle:
        core.load().gpu_pack(
            engine, memory(source, views[0]), memory(out, views[1]), count, first, last, offset, as_memory,
            handle,
        )  # fmt: skip
    return out


def unpack(
    engine: Any, packed: Any, destination: Any, count: int, first: int, last: int | None, offset: int,
    as_memory: bool, stream: Any,
) -> None:  # fmt: skip
    views = [view_of(packed), view_of(destination)]
    with Order(stream, views) as handle:
        core.load().gpu_unpack(
            engine, memory(packed, views[0]), memory(destination, views[1]), count, first, last, offset,
            as_memory, handle,
        )  # fmt: skip


def copy(
    engine: Any, source: Any, count: int, offset: int, to: Any, destination: Any, to_count: int,
    to_offset: int, as_memory: bool, stream: Any,
) -> None:  # fmt: skip
    views = [view_of(source), view_of(destination)]
    if may_overlap(*views):  # everything is read before anything is written
        between = pack(engine, source, None, count, 0, None, offset, as_memory, stream)
        unpack(to, between, destination, to_count, 0, None, to_offset, as_memory, stream)
        return
    with Order(stream, views) as handle:
        core.load().gpu_copy(
            engine, memory(source, views[0]), count, offset, to, memory(destination, views[1]), to_count,
            to_offset, as_memory, handle,
        )  # fmt: skip


def naive_pack(engine: Any, source: Any, out: Any, offset: int, handle: int, blocks_max: int) -> int:
    """A copy of the driver for each block, for comparison; returns how many."""
    views = [view_of(source), view_of(out)]
    return core.load().gpu_naive_pack(
        engine, memory(source, views[0]), memory(out, views[1]), 1, offset, handle, blocks_max
    )


def may_overlap(first_view: Strided | None, second_view: Strided | None) -> bool:
    """True if two arrays of a GPU lie in the same memory, as far as their spans say."""
    if first_view is None or second_view is None:
        return False
    (first, last), (begin, end) = first_view.span(), second_view.span()
    return begin < last and first < end


# ---- plans: what the engine has bound, the packed buffer, and the stream ----


def bind(
    engine: Any, array: Any, packed: Any, count: int, offset: int, as_memory: bool, stream: Any
) -> tuple[Any, Any, int]:
    views = [view_of(array), view_of(packed)]
    order = Order(stream, views)
    if packed is None:
        packed = empty(array, engine.packed_bytes(count), order.handle)
        views[1] = view_of(packed)
    with order as handle:
        plan = core.load().GpuPackPlan(
            engine, memory(array, views[0]), memory(packed, views[1]), count, offset, as_memory, handle
        )
    return plan, packed, handle


class Detour:
    """A copy within one array by way of a buffer: everything is read before anything is written."""

    def __init__(self, read: Any, write: Any) -> None:
        self.read, self.write = read, write

    def copy(self) -> None:
        self.read.pack()
        self.write.unpack()

    def begin_copy(self) -> Any:
        self.read.pack()
        return self.write.begin_unpack()


def bind_copy(
    engine: Any, source: Any, count: int, offset: int, to: Any, destination: Any, to_count: int,
    to_offset: int, as_memory: bool, stream: Any,
) -> tuple[Any, int]:  # fmt: skip
    views = [view_of(source), view_of(destination)]
    ends = [memory(source, views[0]), count, offset, to, memory(destination, views[1]), to_count, to_offset]
    if may_overlap(*views) and core.load().gpu_meet(engine, *ends, as_memory):
        read, packed, handle = bind(engine, source, None, count, offset, as_memory, stream)
        write, _, _ = bind(to, destination, packed, to_count, to_offset, as_memory, handle)
        return Detour(read, write), handle
    with Order(stream, views) as handle:
        return core.load().GpuCopyPlan(engine, *ends, as_memory, handle), handle


def bind_copies(messages: Sequence[tuple[Any, Any, Any, Any]], stream: Any) -> tuple[Any, int]:
    """Each message is an engine's layout, a source, an engine's layout and a destination."""
    views = [(view_of(source), view_of(destination)) for _, source, _, destination in messages]
    with Order(stream, [view for pair in views for view in pair]) as handle:
        plan = core.load().GpuCopies(
            [
                (engine, memory(source, source_view), to, memory(destination, target_view))
                for (engine, source, to, destination), (source_view, target_view) in zip(
                    messages, views, strict=True
                )
            ],
            handle,
        )
    return plan, handle


def bind_set(messages: Sequence[tuple[Any, Any, Any]], stream: Any) -> tuple[Any, int]:
    """Each message is an engine's layout, an array and a packed buffer."""
    views = [(engine, view_of(array), view_of(packed)) for engine, array, packed in messages]
    with Order(stream, [view for _, *pair in views for view in pair]) as handle:
        plan = core.load().GpuSet(
            [
                (engine, memory(array, array_view), memory(packed, packed_view), 1, 0)
                for (engine, array_view, packed_view), (_, array, packed) in zip(views, messages, strict=True)
            ],
            handle,
        )
    return plan, handle
