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


class Context:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


class CupyArray(OnDevice):
    """As CuPy has it: its package makes buffers, in the order of a stream."""

    device = Context()

    def view(self, kind: str) -> CupyArray:
        return CupyArray(self.array.view(kind), self.stream)


CupyArray.__module__ = "cupy._core.core"


class CupyStream(Context):
    null: Any = None

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


CupyStream.null = CupyStream(0)


def cupy_package() -> types.ModuleType:
    package = types.ModuleType("cupy")
    package.empty = lambda size, kind: CupyArray(np.full(size, 0xEE, kind))  # type: ignore[attr-defined]
    package.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
        Stream=CupyStream, ExternalStream=CupyStream
    )
    return package
