"""What `spinloom explain` says of a message in a GPU's memory: the kernel, and what it needs at least.

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
        found = cuda.driver()
        rate = found.bandwidth()
    except Trouble:
        return NAMED
    return Memory(f"the {found.name} here", rate) if rate > 0 else NAMED


def ways(row: Row, known: dict[str, Any]) -> list[Way]:
    if known["message_bytes"] == 0:
        return []
    if known["blocks"] > PREDICTED_BLOCKS_MAX:
        return [Way("gpu pack", KIND, None, "", f"not looked at: beyond {PREDICTED_BLOCKS_MAX:,} blocks")]
    try:
        made = [way(row, "pack", memory_here())]
        if known["no_receive"]:
            return [*made, Way("gpu unpack", KIND, None, "", NO_RECEIVE)]
        return [*made, way(row, "unpack", memory_here())]
    except core.load().SpinloomError as error:
        return [Way("gpu pack", KIND, None, "", error.message)]


def way(row: Row, operation: str, memory: Memory) -> Way:
    found = core.load().gpu_program(row.type, row.count, operation == "unpack")
    time_ps = round(found["bytes_touched"] / memory.bytes_per_second * 1e12)
    launches = "one launch" if found["launches"] == 1 else f"{found['launches']} launches"
    about = (
        f"kernel {found['kernel']}, {launches}, {found['bytes_touched']:,} B in sectors of 32 B at "
        f"{memory.bytes_per_second / 1e12:.2f} TB/s of {memory.name}; {found['memory_bytes']:,} B of tables"
    )
    return Way(f"gpu {operation}", KIND, time_ps, found["bound"], about)
