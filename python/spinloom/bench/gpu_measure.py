"""Interleaved measurement of a row on a GPU: ours, the driver's copy, libraries, a kernel by hand.

Contract: Session.measure(row) compares the bytes of every way but memcpy and the naive copies with the
processor's pack and unpack of the same memory, gaps included, and raises Trouble('mismatch') before it takes
a time. Then the ways take turns; a number is the median of the rounds, but launch_us the least of them. A
copy of the driver for each block is timed for at most NAIVE_BLOCKS
blocks, from its first call until all are done; `naive_extrapolated` says that the row has more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spinloom.bench.gpu_clock import Clock
from spinloom.bench.gpu_rows import GpuRow
from spinloom.bench.gpu_ways import Raw, Way, libraries, packed_places, shape_of
from spinloom.common import core, output
from spinloom.common.errors import Trouble
from spinloom.layout import Layout, PackPlan, bind_set, cuda, device

NAIVE_BLOCKS = 2000
SAMPLE_US = 100.0  # a sample lasts about this long
CALLS_MAX = 50
LARGE_BYTES = 256 << 20  # the size of an array: others only pack there, because comparing takes seconds
GAP, BEFORE = 0xA5, 0x5A  # bytes between and under what is written
LAUNCHES = 100
OPERATIONS = ("pack", "unpack")


@dataclass
class Times:
    device_us: list[float] = field(default_factory=list)
    host_us: list[float] = field(default_factory=list)


class Session:
    """Device memory for all rows, filled once; `pattern` is the same on the host."""

    def __init__(self, rows: list[GpuRow], rounds: int) -> None:
        import numpy as np

        self.np, self.rounds = np, rounds
        self.driver = cuda.driver()
        span = max(row.span_bytes for row in rows) + 64
        packed = max(row.total_bytes for row in rows) + 64
        self.stream = self.driver.stream()
        self.addresses: list[int] = []
        try:
            self.clock = Clock(self.driver, self.stream)
            self.pristine, self.memory = (self.allocate(span) for _ in range(2))
            self.packed = self.allocate(packed)
        except Trouble:
            self.close()
            raise
        words = np.arange((span + 3) // 4, dtype=np.uint32)
        words *= np.uint32(2654435761)
        self.pattern = words.view("u1")[:span]
        self.driver.to_device(self.pristine, self.pattern)
        self.libraries = libraries(self.stream)

    def allocate(self, size: int) -> int:
        self.addresses.append(self.driver.allocate(size))
        return self.addresses[-1]

    def close(self) -> None:
        for address in self.addresses:
            self.driver.free(address)
        self.addresses = []
        if hasattr(self, "clock"):
            self.clock.close()

    # ---- the ways of a row ----

    def ours(self, row: GpuRow, memory: Raw, packed: Raw) -> tuple[Way, Any, str]:
        """The way, its plan, and the kernel."""
        if len(row.types) == 1:
            message_layout = Layout(row.types[0])
            plan = message_layout.bind(memory, packed, offset=row.origin_bytes, stream=self.stream)
            return Way("ours", {"pack": plan.pack, "unpack": plan.unpack}), plan, plan.engine.kernel
        places = packed_places(row)
        messages = [
            (Layout(text), memory, Raw(packed.address + offset, size))
            for text, (offset, size) in zip(row.types, places, strict=True)
        ]
        exchange = bind_set(messages, stream=self.stream)
        return Way("ours", {"pack": exchange.pack, "unpack": exchange.unpack}), exchange, exchange.kernel

    def others(self, row: GpuRow, memory: Raw, packed: Raw) -> list[Way]:
        shapes = [shape_of(row, number) for number in range(len(row.types))]
        if not all(shapes):
            return []
        known_shapes = [shape for shape in shapes if shape is not None]
        ways: list[Way] = []
        for library in self.libraries:
            try:
                ways += library.ways(row, known_shapes, memory, packed)
            except Exception as error:  # a library's own, of whatever kind
                output.say(f"{row.name}: {type(library).__name__} is left out: {error}")
        return ways

    # ---- bytes ----

    def check(self, row: GpuRow, way: Way, operation: str, expected: Any) -> None:
        """`expected`: the processor's packed bytes."""
        np, driver = self.np, self.driver
        if operation == "pack":
            driver.copy(self.memory, self.pristine, row.span_bytes, self.stream)
            driver.fill(self.packed, BEFORE, row.total_bytes, self.stream)
            way.calls["pack"]()
            actual = np.empty(row.total_bytes, "u1")
            driver.synchronise(self.stream)
            driver.to_host(actual, self.packed)
            is_right = bool((actual == expected).all())
        else:
            driver.to_device(self.packed, expected)
            driver.fill(self.memory, GAP, row.span_bytes, self.stream)
            way.calls["unpack"]()
            actual, wanted = np.empty(row.span_bytes, "u1"), np.full(row.span_bytes, GAP, "u1")
            driver.synchronise(self.stream)
            driver.to_host(actual, self.memory)
            for text, (offset, size) in zip(row.types, packed_places(row), strict=True):
                Layout(text).unpack(expected[offset : offset + size], wanted, offset=row.origin_bytes)
            is_right = bool((actual == wanted).all())
        if not is_right:
            raise Trouble("mismatch", f"{row.name}: {way.name} {operation}s other bytes than the processor")

    # ---- one row ----

    def measure(self, row: GpuRow) -> dict[str, Any]:
        memory, packed = Raw(self.memory, row.span_bytes), Raw(self.packed, row.total_bytes)
        expected = self.np.empty(row.total_bytes, "u1")
        source = self.pattern[: row.span_bytes]
        for text, (offset, size) in zip(row.types, packed_places(row), strict=True):
            Layout(text).pack(source, expected[offset : offset + size], offset=row.origin_bytes)
        ours, plan, kernel = self.ours(row, memory, packed)
        ways = [ours, *self.others(row, memory, packed)]
        calls: dict[tuple[str, str], Callable[[], object]] = {}
        for operation in OPERATIONS:
            if operation == "unpack" and not receives(row):
                continue
            for way in ways:
                if way is not ours and operation == "unpack" and row.span_bytes > LARGE_BYTES:
                    continue
                self.check(row, way, operation, expected)
                calls[way.name, operation] = way.calls[operation]
        calls["memcpy", "pack"] = lambda: self.driver.copy(
            self.packed, self.pristine, row.total_bytes, self.stream
        )
        times = self.turns(calls)
        blocks = sum(blocks_of(row, number) for number in range(len(row.types)))
        self.driver.copy(self.memory, self.pristine, row.span_bytes, self.stream)
        return {
            "row": row.name,
            "family": row.family,
            "bytes": row.total_bytes,
            "blocks": blocks,
            "block_bytes": row.block_bytes,
            "messages": len(row.types),
            "kernel": kernel,
            **columns_of(row, times),
            **self.host_columns(plan),
            **self.alone_columns(row, ours.calls["pack"], memory, packed, blocks),
        }

    def turns(self, calls: dict[tuple[str, str], Callable[[], object]]) -> dict[tuple[str, str], Times]:
        self.clock.fills = 1
        repeats = {}
        for key, call in calls.items():
            call()
            once_us, _ = self.clock.sample(call, 3)
            repeats[key] = min(CALLS_MAX, max(3, round(SAMPLE_US / max(once_us, 0.5))))
        times = {key: Times() for key in calls}
        keys = list(calls)
        for number in range(self.rounds):
            shift = number % len(keys)
            for key in keys[shift:] + keys[:shift]:
                device_us, host_us = self.clock.sample(calls[key], repeats[key])
                times[key].device_us.append(device_us)
                times[key].host_us.append(host_us)
        return times

    def host_columns(self, plan: Any) -> dict[str, Any]:
        """Host time of a launch from C++, of single messages."""
        if not isinstance(plan, PackPlan):
            return {}
        launches_us = []
        for _ in range(self.rounds):
            self.driver.synchronise(self.stream)
            launches_us.append(plan.engine.launch_ns(LAUNCHES) / LAUNCHES / 1e3)
        return {"launch_us": min(launches_us), "launch_median_us": statistics.median(launches_us)}

    def alone_columns(
        self, row: GpuRow, pack: Callable[[], object], memory: Raw, packed: Raw, blocks: int
    ) -> dict[str, Any]:
        """One pack from its launch to its end, as the host sees it, and a copy a block in the same way."""
        layouts = [Layout(text) for text in row.types]
        places = packed_places(row)
        copied = 0

        def naive() -> None:
            nonlocal copied
            copied = 0
            for message_layout, (offset, size) in zip(layouts, places, strict=True):
                if copied >= NAIVE_BLOCKS:
                    return
                copied += device.naive_pack(
                    message_layout.engine, memory, Raw(packed.address + offset, size), row.origin_bytes,
                    self.stream, NAIVE_BLOCKS - copied,
                )  # fmt: skip

        ours = statistics.median(self.clock.alone_us(pack) for _ in range(self.rounds))
        try:
            naive()
        except Trouble as trouble:
            if trouble.code != "unsupported":
                raise
            return {"alone_us": ours}
        slow = statistics.median(self.clock.alone_us(naive) for _ in range(min(5, self.rounds)))
        slow *= blocks / max(1, copied)
        return {
            "alone_us": ours,
            "naive_us": slow,
            "naive_copies": copied,
            "naive_extrapolated": copied < blocks,
            "naive_over_ours": slow / ours,
        }


def blocks_of(row: GpuRow, number: int) -> int:
    if (grid := row.grids[number]) is not None:
        return math.prod(grid.shape[:-1])
    return core.load().explain(row.types[number])["blocks"]


def receives(row: GpuRow) -> bool:
    try:
        for text in row.types:
            core.load().Layout.from_text(text).check_receive(1)
    except Trouble:
        return False
    return True


def columns_of(row: GpuRow, times: dict[tuple[str, str], Times]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    middle = {key: statistics.median(samples.device_us) for key, samples in times.items()}
    memcpy = middle["memcpy", "pack"]
    columns["memcpy_us"] = memcpy
    columns["memcpy_gb_s"] = 2 * row.total_bytes / memcpy / 1e3
    for operation in OPERATIONS:
        if ("ours", operation) not in middle:
            continue
        ours = middle["ours", operation]
        columns[f"{operation}_us"] = ours
        columns[f"{operation}_gb_s"] = 2 * row.total_bytes / ours / 1e3
        columns[f"{operation}_of_memcpy"] = memcpy / ours
        for name in ("hand", "cupy", "torch"):
            if (name, operation) in middle:
                columns[f"{name}_{operation}_us"] = middle[name, operation]
                columns[f"{name}_{operation}_over_ours"] = middle[name, operation] / ours
    for name, key in (("python", "ours"), ("cupy", "cupy"), ("torch", "torch"), ("memcpy", "memcpy")):
        if (key, "pack") in times:
            columns[f"{name}_host_us"] = statistics.median(times[key, "pack"].host_us)
    return columns
