"""Arrays as addresses, shapes and strides, wherever their memory is.

Contract: strided(array) describes a NumPy array, an array of a GPU (CuPy, PyTorch, Numba, JAX: whatever has
`__cuda_array_interface__` or DLPack) or a tensor on the host with DLPack; None for anything else. Neither
NumPy nor a GPU's library is imported: an array's own methods suffice. Strides are in bytes. What an array's
library does not export (gradients, sparse tensors) is Trouble with that library's reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.layout import numpy_types

# DLPack's kinds of devices (dlpack.h).
CPU, CUDA, CUDA_HOST, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 11, 13
NO_ORDER = -1  # __dlpack__(stream=-1): the memory is looked at, not used
KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # DLPack's codes of types; others are bytes


@dataclass(frozen=True)
class Strided:
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    item_bytes: int
    text: str  # an item as a datatype
    writable: bool
    on_device: bool
    stream: int | None  # the stream that the array's library works on, if its interface says so
    owner: object  # keeps the memory

    @property
    def items(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count

    def span(self) -> tuple[int, int]:
        """The addresses between which its items lie: first byte, one past the last."""
        first = last = self.address
        if self.items == 0:
            return first, last
        for length, stride in zip(self.shape, self.strides, strict=True):
            reach = (length - 1) * stride
            first, last = first + min(0, reach), last + max(0, reach)
        return first, last + self.item_bytes


def on_device(array: Any) -> bool:
    """True if an array's memory is a GPU's. Cheap for what has the buffer protocol."""
    kind = type(array)
    if array is None or kind in (bytes, bytearray, memoryview) or hasattr(kind, "__array_interface__"):
        return False
    if (device := getattr(array, "__dlpack_device__", None)) is not None:
        return int(device()[0]) == CUDA
    return has_cuda_interface(array)


def has_cuda_interface(array: Any) -> bool:
    try:
        return hasattr(array, "__cuda_array_interface__")
    except RuntimeError as error:  # PyTorch: of what it does not export
        raise refused(array, error) from None


def refused(array: Any, error: Exception) -> Trouble:
    return Trouble("invalid", f"the {type(array).__name__} does not give its memory: {error}")


def strided(array: Any) -> Strided | None:
    if hasattr(type(array), "__array_interface__"):
        numpy_types.refuse_mask(array, "the array")
        address, readonly = array.__array_interface__["data"]
        text, size = numpy_types.dtype_text(array.dtype), array.dtype.itemsize
        return Strided(address, array.shape, array.strides, size, text, not readonly, False, None, array)
    if on_device(array) and has_cuda_interface(array):
        return of_interface(array, array.__cuda_array_interface__)
    if hasattr(array, "__dlpack__"):
        return of_tensor(array)
    return None


def of_interface(array: Any, interface: Any) -> Strided:
    """Reads an array by the CUDA Array Interface, versions 2 and 3."""
    try:
        shape = tuple(int(length) for length in interface["shape"])
        address, readonly = interface["data"]
        order, kind, size = interface["typestr"][0], interface["typestr"][1], int(interface["typestr"][2:])
        strides = interface.get("strides")
        stream = interface.get("stream")
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise Trouble(
            "invalid",
            f"the {type(array).__name__} has a __cuda_array_interface__ that lacks something: {error!r}",
        ) from None
    if interface.get("mask") is not None:
        raise Trouble("invalid", f"the {type(array).__name__} has a mask, which a layout does not know")
    strides = contiguous_strides(shape, size) if strides is None else tuple(int(step) for step in strides)
    text = numpy_types.item_text(kind, size, native=order != ">")
    return Strided(int(address or 0), shape, strides, size, text, not readonly, True, stream, array)


def of_tensor(array: Any) -> Strided:
    """Reads an array by DLPack."""
    device_kind = int(array.__dlpack_device__()[0])
    options = {"stream": NO_ORDER} if device_kind == CUDA else {}
    try:
        try:
            capsule = array.__dlpack__(max_version=(1, 0), **options)
        except TypeError:  # older than that argument
            capsule = array.__dlpack__(**options)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise refused(array, error) from None
    tensor = core.load().tensor(capsule)
    size, shape = tensor["item_bytes"], tuple(tensor["shape"])
    text = numpy_types.item_text(KINDS.get(tensor["code"], "V"), size, native=True)
    strides = tuple(tensor["strides"])
    return Strided(
        tensor["address"], shape, strides, size, text, tensor["writable"], device_kind == CUDA, None,
        (array, tensor["owner"]),
    )  # fmt: skip


def contiguous_strides(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    strides = []
    step = item_bytes
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def view_text(view: Strided) -> str:
    """Every item of a view in its own (row-major) order as a datatype, displacements from its first item."""
    text, extent = view.text, view.item_bytes
    contiguous = True
    for length, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if length == 1:
            continue
        contiguous = contiguous and stride == extent
        if contiguous or length == 0:
            text, extent = f"contig({length}, {text})", length * extent
        else:
            text = f"hvector({length}, 1, {stride}B, {text})"
    return text
