"""Reading another process's memory: by system calls (process_vm_readv), and by loads where both map it.

Contract: system_calls_over_loads() gives the median ratio of both ways for 1 MiB in segments of one size, at
twice their distance; both ways' bytes are compared first. Trouble('environment') where the system forbids it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import statistics
import time
from collections.abc import Callable

from spinloom.common.errors import Trouble
from spinloom.layout import Layout

TOTAL_BYTES = 1 << 20
SEGMENTS_A_CALL = 1024  # the system's limit (IOV_MAX)
ROUNDS = 9


class Segment(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


def system_calls_over_loads(segment_bytes: int) -> float:
    count = TOTAL_BYTES // segment_bytes
    shared = mmap.mmap(-1, 2 * TOTAL_BYTES)
    shared[:] = os.urandom(2 * TOTAL_BYTES)
    anchor = ctypes.c_char.from_buffer(shared)
    address = ctypes.addressof(anchor)
    layout = Layout.from_text(f"vector({count}, {segment_bytes}, {2 * segment_bytes}, byte)")
    by_loads, by_calls = bytearray(TOTAL_BYTES), bytearray(TOTAL_BYTES)
    wakes, sleeps = os.pipe()
    peer = os.fork()
    if peer == 0:  # the peer only waits; its memory is the same
        os.close(sleeps)
        os.read(wakes, 1)
        os._exit(0)
    os.close(wakes)
    try:
        read = reader(peer, address, segment_bytes, count, by_calls)
        read()
        layout.pack(shared, by_loads)
        if by_loads != by_calls:
            raise Trouble("mismatch", "system calls and loads read different bytes")
        loads = lambda: layout.pack(shared, by_loads)  # noqa: E731
        ratios = []
        for _ in range(ROUNDS):
            calls_ns, loads_ns = timed(read), timed(loads)
            ratios.append(calls_ns / loads_ns)
    finally:
        os.close(sleeps)
        os.waitpid(peer, 0)
        del anchor
        shared.close()
    return statistics.median(ratios)


def timed(call: Callable[[], object]) -> int:
    begun = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - begun


def reader(peer: int, address: int, segment_bytes: int, count: int, into: bytearray) -> Callable[[], None]:
    """A call that reads every segment of the peer; the lists are made before."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.process_vm_readv.restype = ctypes.c_ssize_t
    start = ctypes.addressof(ctypes.c_char.from_buffer(into))
    calls = []
    for first in range(0, count, SEGMENTS_A_CALL):
        last = min(count, first + SEGMENTS_A_CALL)
        remote = (Segment * (last - first))(
            *((address + 2 * segment_bytes * i, segment_bytes) for i in range(first, last))
        )
        local = Segment(start + first * segment_bytes, (last - first) * segment_bytes)
        calls.append((local, remote, last - first))

    def read() -> None:
        for local, remote, segments in calls:
            bytes_read = libc.process_vm_readv(
                peer,
                ctypes.byref(local),
                ctypes.c_ulong(1),
                remote,
                ctypes.c_ulong(segments),
                ctypes.c_ulong(0),
            )
            if bytes_read != local.bytes:
                why = os.strerror(ctypes.get_errno())
                raise Trouble("environment", f"another process's memory cannot be read here: {why}")

    return read
