"""The times of accesses to windows whose ranks share the machine, with the layer and without.

Contract: rows() gives the grid, 200 rows and those that make and free windows, in a fixed order. measure()
times them as messages.measure() does messages: bytes are compared first, and again after every sample; jobs
take turns. table() makes one dictionary for each row and MPI; ratios and their 95 % intervals are of rounds.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

from spinloom.bench import jobs, messages
from spinloom.bench.measure import ratio_of
from spinloom.bench.messages import Running, Session
from spinloom.common import output, units
from spinloom.common.errors import Trouble

SOURCE = "mpi_windows.c"
SLOWER = 0.97  # a row whose interval lies below this is slower with the layer
GAPS_GOAL = 2.0
# (bytes of a block, bytes of the access); block 0: contiguous
SHAPES = (
    (0, 8),
    (0, 1 << 10),
    (0, 32 << 10),
    (0, 4 << 20),
    (8, 1 << 10),
    (8, 32 << 10),
    (8, 4 << 20),
    (4096, 32 << 10),
    (4096, 4 << 20),
)
PASSIVE = (
    ("lock", "idle"),
    ("flush", "idle"),
    ("lock", "computing"),
    ("flush", "computing"),
    ("all", "barrier"),
)
ACTIVE = (("fence", "with"), ("pscw", "with"))
MADE = (("allocate", 4096), ("allocate", 1 << 20), ("create", 1 << 20))
# (how the MPI's name begins, operation): the MPI by itself ends by a signal. Found with 4.1.4, at the target.
ENDS_BY_SIGNAL = (("Open MPI 4", "cas"),)
QUICK_SHAPES = ((0, 8), (0, 32 << 10), (8, 32 << 10))
EPOCHS = {
    "lock": "lock",
    "all": "lock_all",
    "flush": "flush",
    "fence": "fence",
    "pscw": "post and start",
}
TARGETS = {"idle": "target idle", "computing": "target computing", "barrier": "target in a barrier"}


@dataclass(frozen=True)
class WindowRow:
    operation: str
    epoch: str
    target: str
    block: int
    bytes: int

    @property
    def kind(self) -> str:
        """A KIND of mpi_windows.c."""
        return f"{self.operation}-{self.epoch}-{self.target}-{self.block}-{self.bytes}"

    @property
    def family(self) -> str:
        return "make" if self.operation == "make" else "gaps" if self.block else "contiguous"

    @property
    def name(self) -> str:
        size = units.format_bytes(self.bytes)
        if self.operation == "make":
            return f"MPI_Win_{self.epoch} and MPI_Win_free, {size}"
        what = self.operation
        if self.operation not in ("fop", "cas", "none"):
            what += f" {size}" + (f" in blocks of {units.format_bytes(self.block)}" if self.block else "")
        return ", ".join(filter(None, [what, EPOCHS[self.epoch], TARGETS.get(self.target)]))


def rows(*, quick: bool = False) -> list[WindowRow]:
    shapes = QUICK_SHAPES if quick else SHAPES
    grid = [
        WindowRow(operation, epoch, target, block, size)
        for epoch, target in (*PASSIVE, *ACTIVE)
        for operation in ("put", "get", "acc")
        for block, size in shapes
    ]
    grid += [
        WindowRow(operation, epoch, target, 0, 8) for epoch, target in PASSIVE for operation in ("fop", "cas")
    ]
    grid.append(WindowRow("none", "fence", "with", 0, 8))
    return grid + [WindowRow("make", flavour, "with", 0, size) for flavour, size in MADE]


Times = dict[tuple[WindowRow, str], dict[bool, list[float]]]  # (row, MPI) -> with the layer? -> ns


def measure(session: Session, wanted_rows: list[WindowRow], times: Times) -> None:
    """Adds the samples of every row to `times`; raises Trouble if bytes differ with the layer.

    A row whose bytes differ without it is left out for that MPI, which is said.
    """
    wrong: set[tuple[WindowRow, str]] = set()

    def measure_one(row: WindowRow, running: Running) -> None:
        measure_row(row, running, session.effort, times, wrong)

    messages.each_row(session, SOURCE, wanted_rows, measure_one)


def measure_row(
    row: WindowRow, running: Running, effort: messages.Effort, times: Times, wrong: set[tuple[WindowRow, str]]
) -> None:
    def leave_out(job: jobs.Job, why: str) -> None:
        output.say(f"{row.name} is left out: {job.name} by itself {why}")
        wrong.add((row, job.name))
        times.pop((row, job.name), None)

    def sample(variant: messages.Variant, job: jobs.Job, repetitions: int, calls: int) -> list[float]:
        """Times in ns; none if the MPI by itself makes wrong bytes."""
        try:
            return job.time_ns(row.kind, repetitions, calls)
        except Trouble as trouble:
            if trouble.code != "mismatch":
                raise
            refuse(variant, job)
            return []

    def refuse(variant: messages.Variant, job: jobs.Job) -> None:
        if variant.layer:
            raise Trouble("mismatch", f"{row.name}, {job.name} with the layer: wrong bytes")
        leave_out(job, "makes wrong bytes")

    for variant, job in running:
        if (row, job.name) in wrong:
            continue
        if any(job.name.startswith(mpi) and row.operation == what for mpi, what in ENDS_BY_SIGNAL):
            leave_out(job, "ends by a signal")
        elif set(job.hashes(row.kind)) != {1}:
            refuse(variant, job)
    calls: dict[jobs.Job, int] = {}
    for variant, job in running:
        calls[job] = 1
        for _ in range(2):  # a first guess, by one call, is much too long for short ones
            if (row, job.name) not in wrong and (took := sample(variant, job, 3, calls[job])):
                calls[job] = max(1, math.ceil(effort.sample_ns / max(min(took), 1.0)))
    for number in range(effort.rounds):
        shift = number % len(running)
        for variant, job in running[shift:] + running[:shift]:
            if (row, job.name) not in wrong and (took := sample(variant, job, 1, calls[job])):
                times.setdefault((row, job.name), {False: [], True: []})[variant.layer] += took


def table(times: Times) -> list[dict[str, Any]]:
    results = []
    for (row, mpi), samples in times.items():
        without, with_ = samples[False], samples[True]
        if not without or len(without) != len(with_):
            continue  # interrupted
        ratio = ratio_of(without, with_)
        results.append(
            {
                "row": row.name,
                "family": row.family,
                "operation": row.operation,
                "epoch": row.epoch,
                "target": row.target,
                "block": row.block,
                "bytes": row.bytes,
                "mpi": mpi,
                "samples": len(with_),
                "without_ns": statistics.median(without),
                "with_ns": statistics.median(with_),
                "without_over_with": ratio.median,
                "without_over_with_low": ratio.low,
                "without_over_with_high": ratio.high,
            }
        )
    return results


def slower(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the grid whose whole interval lies below SLOWER."""
    return [row for row in measured if row["family"] != "make" and row["without_over_with_high"] < SLOWER]


def goals(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each MPI."""
    results = []
    for mpi in dict.fromkeys(row["mpi"] for row in measured):
        grid = [row for row in measured if row["mpi"] == mpi and row["family"] != "make"]
        gaps = [row["without_over_with"] for row in grid if row["family"] == "gaps"]
        if gaps:
            results.append(messages.goal(f"{mpi}: types with gaps, without over with", gaps, GAPS_GOAL))
        if grid:
            ratios = [row["without_over_with"] for row in grid]
            results.append(messages.goal(f"{mpi}: all accesses, without over with", ratios, 1.0))
            slow = len(slower(grid))
            results.append(
                {
                    "goal": f"{mpi}: rows that are slower with the layer (interval below {SLOWER})",
                    "rows": len(grid),
                    "reached": slow,
                    "wanted": 0,
                    "met": slow == 0,
                }
            )
    return results
