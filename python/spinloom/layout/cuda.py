"""The CUDA driver by its C interface: streams that wait for each other, and what measurements need.

Contract: driver() opens libcuda.so.1 at its first call and makes the primary context of GPU 0 current, which
CuPy and PyTorch use, too; Trouble('environment') says why it cannot. wait() needs a driver only where there
is one: streams of an emulation are always in order. Addresses, streams and events are integers.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from spinloom.common.errors import Trouble

LIBRARY = "libcuda.so.1"
NOT_READY = 600  # CUDA_ERROR_NOT_READY
MULTIPROCESSORS, MEMORY_CLOCK_KHZ, BUS_BITS, L2_BYTES = 16, 36, 37, 38  # CUdevice_attribute


class Driver:
    """Calls of the driver; each raises Trouble with the driver's own words."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL(LIBRARY)
        except OSError:
            raise Trouble("environment", f"there is no GPU driver here: {LIBRARY} is not found") from None
        self.call("cuInit", 0)
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise Trouble("environment", "there is a GPU driver, but no GPU")
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name: str, *arguments: Any) -> None:
        if code := getattr(self.library, name)(*arguments):
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            words = text.value.decode() if text.value else f"error {code}"
            raise Trouble("environment", f"the GPU's driver says of {name}: {words} ({code})")

    # ---- what there is ----

    @property
    def name(self) -> str:
        text = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", text, len(text), self.device)
        return text.value.decode()

    @property
    def version(self) -> str:
        """The kernel module's, or the CUDA version of the driver where the system does not say."""
        try:
            with open("/sys/module/nvidia/version", encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            number = ctypes.c_int()
            self.call("cuDriverGetVersion", ctypes.byref(number))
            return f"CUDA {number.value // 1000}.{number.value % 1000 // 10}"

    def attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), which, self.device)
        return value.value

    def bandwidth(self) -> float:
        """The bandwidth of the device's memory in B/s: two transfers a clock over the whole bus."""
        return 2e3 * self.attribute(MEMORY_CLOCK_KHZ) * self.attribute(BUS_BITS) / 8

    def free_bytes(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    # ---- memory ----

    def allocate(self, size: int) -> int:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def fill(self, address: int, value: int, size: int, stream: int) -> None:
        self.call(
            "cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_ubyte(value), ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )  # fmt: skip

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Within the device."""
        self.call(
            "cuMemcpyDtoDAsync_v2", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )  # fmt: skip

    def to_device(self, to: int, array: Any) -> None:
        """A contiguous NumPy array."""
        self.call(
            "cuMemcpyHtoD_v2", ctypes.c_uint64(to), ctypes.c_void_p(array.ctypes.data),
            ctypes.c_size_t(array.nbytes),
        )  # fmt: skip

    def to_host(self, array: Any, source: int) -> None:
        self.call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(source),
            ctypes.c_size_t(array.nbytes),
        )  # fmt: skip

    # ---- streams and events ----

    def stream(self) -> int:
        handle = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(handle), 0)
        return handle.value or 0

    def synchronise(self, stream: int) -> None:
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def event(self, *, timing: bool = True) -> int:
        handle = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(handle), 0 if timing else 2)
        return handle.value or 0

    def record(self, event: int, stream: int) -> None:
        self.call("cuEventRecord", ctypes.c_void_p(event), ctypes.c_void_p(stream))

    def has_happened(self, event: int) -> bool:
        code = self.library.cuEventQuery(ctypes.c_void_p(event))
        if code not in (0, NOT_READY):
            self.call("cuEventQuery", ctypes.c_void_p(event))
        return code == 0

    def between_us(self, first: int, last: int) -> float:
        elapsed_ms = ctypes.c_float()
        self.call(
            "cuEventElapsedTime", ctypes.byref(elapsed_ms), ctypes.c_void_p(first), ctypes.c_void_p(last)
        )
        return elapsed_ms.value * 1e3

    def wait(self, stream: int, event: int) -> None:
        self.call("cuStreamWaitEvent", ctypes.c_void_p(stream), ctypes.c_void_p(event), 0)

    def forget(self, event: int) -> None:
        """The driver keeps the event until what uses it has happened."""
        self.call("cuEventDestroy_v2", ctypes.c_void_p(event))


@functools.cache
def driver() -> Driver:
    return Driver()


def wait(stream: int, other: int) -> None:
    """Makes what `stream` begins from now on come after what `other` has begun."""
    try:
        functions = driver()
    except Trouble:
        return
    event = functions.event(timing=False)
    try:
        functions.record(event, other)
        functions.wait(stream, event)
    finally:
        functions.forget(event)
