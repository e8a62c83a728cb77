"""Collective operations by offloaded schedules: latency, and how much of it cannot be spent on computing.

Contract: measured() runs the program bench/overlap.c on simulated ranks, which compares the bytes of every
result, and gives its numbers as columns, times in modelled ps. Ways: "nic", the NIC begins what a schedule
holds; "cpu", the host's processor begins the same operations on the same NIC when the program waits, or tests
(`polls` times while it computes); "cpu, linear", as "cpu" by the linear algorithm.
"""

from __future__ import annotations

from typing import Any

from spinloom.bench.peers import SOURCES
from spinloom.common.errors import Trouble
from spinloom.nics import jobs
from spinloom.nics.profiles import Profile

PROGRAM = SOURCES / "overlap.c"
NIC, CPU, LINEAR = "nic", "cpu", "cpu, linear"
WAYS = {
    NIC: "the NIC begins what a schedule holds",
    CPU: "the host's processor begins it, in test and wait",
    LINEAR: "the host's processor, by the linear algorithm",
}
ALGORITHMS = {
    "allreduce": "tree",
    "bcast": "binomial",
    "scatter": "binomial",
    "allgather": "recursive-doubling",
}
LINEAR_TOO = ("scatter", "allgather")  # Open MPI 1.8.4 did these by linear algorithms
SAMPLES = 5
EAGER_BYTES = 64 << 10  # all messages of small operations leave at once


MEMORY_MAX = 4 << 30


def check_memory(operations: tuple[str, ...], sizes_bytes: tuple[int, ...], ranks: tuple[int, ...]) -> None:
    """All ranks of a simulation lie in one memory: an all-gather fills P S at each. Raises Trouble."""
    for operation in operations:
        needed = max(sizes_bytes) * max(ranks) * (max(ranks) if operation == "allgather" else 4)
        if needed > MEMORY_MAX:
            raise Trouble(
                "exhausted",
                f"{operation} of {max(sizes_bytes):,} B and {max(ranks):,} ranks: {needed:,} B of memory; "
                "take fewer ranks or smaller sizes",
            )


def measured(
    profile: Profile,
    operation: str,
    way: str,
    size_bytes: int,
    ranks: int,
    polls: int = 0,
    once: bool = False,
) -> dict[str, Any]:
    """Raises Trouble, also if a result is wrong."""
    arguments = [
        operation,
        "linear" if way == LINEAR else ALGORITHMS[operation],
        str(size_bytes),
        f"by={'nic' if way == NIC else 'cpu'}",
        f"samples={SAMPLES}",
        f"polls={polls}",
        f"once={int(once)}",
        f"eager={EAGER_BYTES}",
    ]
    settings = jobs.Settings(profile, ranks, stack_bytes=1 << 20)
    with jobs.built(PROGRAM) as program:
        job = jobs.run(settings, program, arguments, captured=True)
    if job.trouble is not None:
        raise Trouble(job.trouble.code, f"{operation} of {ranks} ranks: {job.trouble.message}")
    numbers = dict(line.split() for line in job.output.splitlines())
    columns: dict[str, Any] = {"time_ps": 1000 * int(numbers["latency_ns"])}
    for name in ("overhead", "start", "rest"):
        columns[f"{name}_ps"] = 1000 * int(numbers[f"{name}_ns"])
    columns["overhead_percent"] = float(numbers["overhead_percent"])
    return columns
