"""As much of CuPy as examples and tests of two processes use, in the memory of tests/gpu/driver.

An array is a view (by NumPy's strides) of memory that only the driver can touch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinloom.layout import cuda


class Memory:
    def __init__(self, size: int) -> None:
        self.address = cuda.driver().allocate(max(1, size))

    def __del__(self) -> None:
        cuda.driver().free(self.address)


class Array:
    def __init__(self, memory: Memory, plan: np.ndarray[Any, Any], origin: int) -> None:
        self.memory, self.plan, self.origin = memory, plan, origin

    @property
    def address(self) -> int:
        return self.memory.address + self.plan.__array_interface__["data"][0] - self.origin

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.plan.shape,
            "typestr": self.plan.dtype.str,
            "data": (self.address, False),
            "strides": self.plan.strides,
            "version": 3,
        }

    def __getitem__(self, where: Any) -> Array:
        return Array(self.memory, self.plan[where], self.origin)

    def get(self) -> np.ndarray[Any, Any]:
        out = np.empty_like(self.plan)
        cuda.driver().to_host(out, self.address)
        return out

    def set(self, values: np.ndarray[Any, Any]) -> None:
        cuda.driver().to_device(self.address, np.ascontiguousarray(values))


def asarray(values: Any) -> Array:
    plan = np.array(values)
    made = Array(Memory(plan.nbytes), plan, plan.__array_interface__["data"][0])
    made.set(plan)
    return made


def zeros(shape: Any, kind: str) -> Array:
    return asarray(np.zeros(shape, kind))
