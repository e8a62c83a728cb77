"""The content of `spinloom explain` for a message in a GPU's memory: the kernel, and its least time.

Contract: ways() needs no GPU: the kernel is chosen from the message alone. The time is a bound, not a
prediction: the bytes that the message touches, in sectors of 32 B on both sides, at the memory bandwidth of
the GPU here or, without one, of a named one. A launch costs some microseconds more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spinloom.accelerate.explain import NO_RECEIVE, PREDICTED_BLOCKS_MAX, Way
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.layout import cuda
from spinloom.nics.workloads import Row

KIND = "gpu"


@dataclass(frozen=True)
class Memory:
    name: str
    bytes_per_second: float


# NVIDIA H100 Tensor Core GPU data sheet, SXM5: five stacks of HBM3.
NAMED = Memory("an H100 SXM (data sheet)", 3.35e12)


def memory_here() -> Memory:
    """The memory of the GPU here, its bandwidth by its clock and bus; NAMED if that is not known."""
    if core.load().gpu_why_not():
        return NAMED
    try:
        driver = cuda.driver()
        rate = driver.bandwidth()
    except Trouble:
        return NAMED
    return Memory(f"the {driver.name} here", rate) if rate > 0 else NAMED


def ways(row: Row, facts: dict[str, Any]) -> list[Way]:
    if facts["message_bytes"] == 0:
        return []
    if facts["blocks"] > PREDICTED_BLOCKS_MAX:
        return [Way("gpu pack", KIND, None, "", f"not looked at: beyond {PREDICTED_BLOCKS_MAX:,} blocks")]
    try:
        pack_ways = [way(row, "pack", memory_here())]
        if facts["no_receive"]:
            return [*pack_ways, Way("gpu unpack", KIND, None, "", NO_RECEIVE)]
        return [*pack_ways, way(row, "unpack", memory_here())]
    except core.load().SpinloomError as error:
        return [Way("gpu pack", KIND, None, "", error.message)]


def way(row: Row, operation: str, memory: Memory) -> Way:
    program = core.load().gpu_program(row.type, row.count, operation == "unpack")
    time_ps = round(program["bytes_touched"] / memory.bytes_per_second * 1e12)
    launches = "one launch" if program["launches"] == 1 else f"{program['launches']} launches"
    about = (
        f"kernel {program['kernel']}, {launches}, {program['bytes_touched']:,} B in sectors of 32 B at "
        f"{memory.bytes_per_second / 1e12:.2f} TB/s of {memory.name}; {program['memory_bytes']:,} B of tables"
    )
    bound = "launch (not in the time)" if program["bound"] == "launch" else program["bound"]
    return Way(f"gpu {operation}", KIND, time_ps, bound, about)
