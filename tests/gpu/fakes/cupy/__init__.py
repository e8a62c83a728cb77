"""As much of CuPy as `spinloom bench gpu` uses, over memory of the host.

For tests. Kernels are compiled for the processor and run as one thread of one block, which is what their
grid-stride loops allow.
"""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy import asarray  # noqa: F401

PRELUDE = """
static const struct { unsigned x; } blockIdx = {0}, threadIdx = {0}, blockDim = {1}, gridDim = {1};
#define __global__
"""
FOLDER = tempfile.TemporaryDirectory()


class UnownedMemory:
    def __init__(self, address: int, size: int, owner: object) -> None:
        self.address, self.size, self.owner = address, size, owner


class MemoryPointer:
    def __init__(self, memory: UnownedMemory, offset: int) -> None:
        self.address, self.left = memory.address + offset, memory.size - offset


class Stream:
    """As CuPy 14 has it, without ExternalStream."""

    ptr = 0
    null: Any = None

    @classmethod
    def from_external(cls, other: Any) -> Stream:
        made = cls()
        version, made.ptr = other.__cuda_stream__()
        if version != 0 or not isinstance(made.ptr, int):
            raise ValueError("no stream")
        return made

    def use(self) -> Stream:
        return self


Stream.null = Stream()
cuda = SimpleNamespace(Stream=Stream, UnownedMemory=UnownedMemory, MemoryPointer=MemoryPointer)


def ndarray(shape: Any, kind: str, pointer: MemoryPointer, strides: Any = None) -> np.ndarray[Any, Any]:
    item = np.dtype(kind).itemsize
    memory = (ctypes.c_ubyte * (pointer.left // item * item)).from_address(pointer.address)
    flat = np.frombuffer(memory, kind)
    if strides is None:
        return flat[: int(np.prod(shape))].reshape(shape)
    return np.lib.stride_tricks.as_strided(flat, shape, strides)


def take(array: Any, items: Any, out: Any = None) -> Any:
    return np.take(array, items, out=out, mode="clip")


class RawKernel:
    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.function: Any = None

    def compile(self) -> None:
        path = Path(FOLDER.name) / hashlib.sha256(self.text.encode()).hexdigest()[:16]
        if not path.with_suffix(".so").exists():
            path.with_suffix(".cpp").write_text(PRELUDE + self.text)
            command = [
                "c++",
                "-shared",
                "-fPIC",
                "-O1",
                "-o",
                path.with_suffix(".so"),
                path.with_suffix(".cpp"),
            ]
            subprocess.run(command, check=True)
        self.function = getattr(ctypes.CDLL(str(path.with_suffix(".so"))), self.name)

    def __call__(self, grid: Any, block: Any, arguments: tuple[Any, ...]) -> None:
        self.function(*(passed(argument) for argument in arguments))


def passed(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    kinds = {np.uint64: ctypes.c_uint64, np.int64: ctypes.c_int64, np.uint32: ctypes.c_uint32}
    return kinds[type(argument)](int(argument))
