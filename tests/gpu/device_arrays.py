"""Arrays that say that they lie in a GPU, over memory of the host: SPINLOOM_GPU=shim runs kernels there."""

from __future__ import annotations

import types
from typing import Any

import numpy as np


class OnDevice:
    """By the CUDA Array Interface. `stream` is what the library of the array works on."""

    def __init__(self, array: np.ndarray[Any, Any], stream: int | None = None) -> None:
        self.array, self.stream = array, stream

    def __getitem__(self, where: Any) -> OnDevice:
        return type(self)(self.array[where], self.stream)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        known = self.array.__array_interface__
        return {
            "shape": self.array.shape,
            "typestr": known["typestr"],
            "data": (known["data"][0], not self.array.flags.writeable),
            "strides": self.array.strides,
            "stream": self.stream,
            "version": 3,
        }


class Device:
    """While it is entered, it is the current one."""

    current = 0

    def __init__(self, number: int) -> None:
        self.number, self.before = number, 0

    def __enter__(self) -> None:
        self.before, Device.current = Device.current, self.number

    def __exit__(self, *_: object) -> None:
        Device.current = self.before


class CupyArray(OnDevice):
    """As CuPy has it: its package makes buffers, in the order of a stream."""

    device = Device(1)

    def view(self, kind: str) -> CupyArray:
        return CupyArray(self.array.view(kind), self.stream)


CupyArray.__module__ = "cupy._core.core"


class CupyStream:
    """While it is entered, it is the current one; on its own device only, as in CuPy (-1: unknown)."""

    null: Any = None
    current: Any = None

    def __init__(self, ptr: int, device: int = -1) -> None:
        self.ptr, self.device = ptr, device
        self.before: Any = None

    def __enter__(self) -> None:
        assert self.device in (-1, Device.current)
        self.before, CupyStream.current = CupyStream.current, self

    def __exit__(self, *_: object) -> None:
        CupyStream.current = self.before


class CupyStream14(CupyStream):
    @classmethod
    def from_external(cls, other: Any) -> CupyStream14:
        version, handle = other.__cuda_stream__()
        assert version == 0
        assert type(handle) is int
        return cls(handle, Device.current)


CupyStream.current = CupyStream.null = CupyStream(0)


def cupy_package(version: int = 14) -> types.ModuleType:
    """`made_on` lists the handles of the streams that were current when buffers were made."""
    package: Any = types.ModuleType("cupy")
    package.made_on = []

    def empty(size: int, kind: str) -> CupyArray:
        package.made_on.append(CupyStream.current.ptr)
        return CupyArray(np.full(size, 0xEE, kind))

    def deprecated(_: int) -> CupyStream:
        raise DeprecationWarning("ExternalStream is deprecated. Use Stream.from_external() instead")

    package.empty = empty
    package.cuda = (
        types.SimpleNamespace(Stream=CupyStream14, ExternalStream=deprecated)
        if version >= 14
        else types.SimpleNamespace(Stream=CupyStream, ExternalStream=CupyStream)
    )
    return package
