"""A host profile measured on this machine: what `spinloom calibrate host --out` writes.

Contract: measure() times the engine's loops (src/app/measure/host_probe.hpp) several times over, and text()
makes a file for --host of them. Latency is a time, lines are how many of them are in flight during it, and a
block's cost is a time in cycles of the clock that the system names, so that the clock itself decides nothing.
Measured times are host time.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from spinloom.accelerate import calibration
from spinloom.common import core

ROUNDS = 7  # the least of so many medians: what else the machine does only adds time
REPETITIONS = 15
LINE_BYTES = 64


def measure() -> dict[str, float]:
    """The model's rates, in ns."""
    engine = core.load()
    rounds = [engine.measure_host_rates(REPETITIONS) for _ in range(ROUNDS)]
    return {name: min(rates[name] for rates in rounds) for name in rounds[0]}


def clock_mhz() -> float:
    """The clock as the system names it, 1000 if it names none; only the unit of a block's cost."""
    try:
        match = re.search(r"cpu MHz\s*:\s*([\d.]+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        match = None
    return float(match[1]) if match else 1000.0


def last_level() -> tuple[int, int]:
    """Bytes and ways of the last cache, whole sets."""
    size, ways = calibration.caches()[-1]
    return size // (LINE_BYTES * ways) * (LINE_BYTES * ways), ways


def fields(rates: dict[str, float], mhz: float, cache: tuple[int, int]) -> dict[str, tuple[str, str]]:
    """{key of [host]: (value, how it was measured)}."""
    latency_ns = max(1, round(rates["start_ns"]))

    def in_flight(name: str) -> str:
        return str(max(1, round(latency_ns / rates[name])))

    def cycles(name: str) -> str:
        return f"{max(0.0, rates[name]) * mhz / 1000:.2f}"

    gb_s = LINE_BYTES / min(rates["streamed_line_ns"], rates["strided_line_ns"])
    return {
        "clock": (f"{round(mhz)} MHz", "the clock that the system names; only the unit of the cycles below"),
        "memory_latency": (f"{latency_ns} ns", "one cold block of 8 B"),
        "streamed_in_flight": (
            in_flight("streamed_line_ns"),
            f"{rates['streamed_line_ns']:.2f} ns a streamed line",
        ),
        "strided_in_flight": (
            in_flight("strided_line_ns"),
            f"{rates['strided_line_ns']:.2f} ns a line at a long stride",
        ),
        "scattered_in_flight": (
            in_flight("scattered_line_ns"),
            f"{rates['scattered_line_ns']:.2f} ns a line in shuffled order",
        ),
        "refill_cycles": (cycles("refilled_line_ns"), "a line that the first-level cache lost"),
        "memory_byte_time": (f"{gb_s:.1f} GB/s", "the fastest of one core's cold lines, streamed or strided"),
        "line": (f"{LINE_BYTES} B", "a cache line"),
        "cache": (f"{cache[0]} B", "the last-level cache that the system names"),
        "cache_ways": (str(cache[1]), "its ways"),
        "mpitypes_vector_cycles": (
            cycles("vector_block_ns"),
            "MPITypes' loop, warm blocks of 16 B in a vector",
        ),
        "mpitypes_list_cycles": (cycles("list_block_ns"), "MPITypes' loop, warm blocks of 16 B in a list"),
        "best_vector_cycles": (
            cycles("best_vector_block_ns"),
            "our copy kernels, warm blocks of 16 B in a vector",
        ),
        "best_list_cycles": (cycles("best_list_block_ns"), "our copy kernels, warm blocks of 16 B in a list"),
        "segment_block_cycles": (
            cycles("segment_block_ns"),
            "a segment's walk over listed blocks, nothing copied",
        ),
    }


def entry(value: str, label: str, source: str) -> str:
    quoted = source.replace("\\", "\\\\").replace('"', '\\"')
    return f'{{ value = "{value}", label = "{label}", source = "{quoted}" }}'


def text(name: str, rates: dict[str, float], call: Any) -> str:
    """The file. `call` is the profile entry of host.call, which is not measured."""
    processor = calibration.processor()
    lines = [
        f"# {name} - the host on which `spinloom calibrate host --out` ran",
        "",
        f'name = "{name}"',
        f'about = "measured on {processor}"',
        "",
        "[host]",
    ]
    for key, (value, how) in fields(rates, clock_mhz(), last_level()).items():
        lines.append(f"{key} = {entry(value, 'measured', f'spinloom calibrate host on {processor}: {how}')}")
    lines.append(f"call = {entry(call.text, call.label, call.source)}")
    return "\n".join(lines) + "\n"
