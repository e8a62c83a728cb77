"""Interleaved measurement of one row: our copies, hand loops, memcpy, every MPI and NumPy take turns.

Contract: measure() checks the bytes of every way against the oracle first (an MPI by hash), then lets the
ways take turns: each round times each way once, so that a disturbed moment of the machine meets all of
them. A ratio is the median of its rounds' ratios, with a 95 % interval by order statistics, which assumes no
distribution.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.bench.numpy_peer import NumpyPeer
from spinloom.bench.peers import Mpi, struct_loop
from spinloom.bench.rows import Row
from spinloom.common import core, output
from spinloom.common.errors import Trouble

FROM_PYTHON = "ours from Python"  # a bound plan's call
HAND_WAYS = ("hand-elements", "hand-blocks", "hand-structs")
SAMPLE_NS = 40_000  # a sample has as many calls as last so long by the warm-up
ROUNDS_MIN = 6  # the fewest rounds whose extremes enclose the median with 95 %
# The time of a row besides its rounds, for estimates: checks of the bytes, warming up, in every way.
WAY_S = 0.02
WAY_S_PER_BYTE = 6e-9


@dataclass(frozen=True)
class Effort:
    """Limits on the time of a row."""

    operation_ns: float  # the time for all rounds of one operation, unless ROUNDS_MIN take longer
    rounds_max: int
    row_s_max: float  # a row begins no further operation after this time


FULL = Effort(operation_ns=0.5e9, rounds_max=41, row_s_max=25)
QUICK = Effort(operation_ns=0.2e9, rounds_max=25, row_s_max=25)


def estimate_s(rows: list[Row], operations: list[str], mpis: int, effort: Effort) -> float:
    """The approximate time of measure() for all rows; the rounds themselves are not in it."""
    ways = 1 + len(HAND_WAYS) + 1 + mpis
    return sum(
        min(effort.row_s_max, len(operations) * ways * (WAY_S + WAY_S_PER_BYTE * row.total_bytes))
        for row in rows
    )


@dataclass(frozen=True)
class Ratio:
    """Median and 95 % interval."""

    median: float
    low: float
    high: float


def ratio_of(over: list[float], under: list[float]) -> Ratio:
    """over / under, round by round."""
    return interval([a / b for a, b in zip(over, under, strict=True)])


def interval(values: list[float]) -> Ratio:
    """The median; ranks k and n + 1 - k enclose it with 95 % (binomial, p = 1/2)."""
    ordered = sorted(values)
    n = len(ordered)
    outside = 0.0
    rank = 0
    while rank < n // 2:
        outside += math.comb(n, rank) / 2**n
        if 2 * outside > 0.05:
            break
        rank += 1
    low = max(rank - 1, 0)
    return Ratio(statistics.median(ordered), ordered[low], ordered[n - 1 - low])


def calls_for(ns: float) -> int:
    return max(1, math.ceil(SAMPLE_NS / max(ns, 1.0)))


def measure(
    row: Row,
    hand: Path,
    mpis: list[Mpi],
    effort: Effort,
    operations: list[str],
    folder: Path,
    numpy: Sequence[NumpyPeer] = (),
) -> list[dict[str, Any]]:
    """One dictionary for each operation begun before row_s_max; raises Trouble if bytes differ.

    The bytes of `numpy` were compared by the caller.
    """
    begun = time.monotonic()
    bench = core.load().LayoutBench(row.type, row.to, str(hand), struct_loop(row))
    loaded = []
    if mpis:
        program = folder / "row.bin"
        bench.write_program(str(program))
        for mpi in mpis:
            mpi.load(program)
            loaded.append(mpi)
    measured = []
    for operation in operations:
        if measured and time.monotonic() - begun > effort.row_s_max:
            output.say(f"{row.name}: {operation} is left out, the row took {effort.row_s_max:g} s already")
            continue
        measured.append(measure_operation(row, bench, loaded, effort, operation, numpy))
    return measured


def measure_operation(
    row: Row, bench: Any, mpis: list[Mpi], effort: Effort, operation: str, numpy: Sequence[NumpyPeer]
) -> dict[str, Any]:
    ways = [way for way in ("ours", *HAND_WAYS, "memcpy") if bench.has(operation, way)]
    for way in ways:
        bench.check(operation, way)
    agreeing = [mpi for mpi in mpis if mpi.hash(operation) == bench.hash(operation)]
    differing = [mpi.name for mpi in mpis if mpi not in agreeing]
    if differing:
        raise Trouble(
            "mismatch", f"{row.name}, {operation}: {', '.join(differing)} makes other bytes than the oracle"
        )

    def timer(way: str) -> Any:
        return lambda repetitions, calls: bench.time(operation, way, repetitions, calls)

    timers = {way: timer(way) for way in ways}
    timers |= {mpi.name: (lambda n, calls, mpi=mpi: mpi.time(operation, n, calls)) for mpi in agreeing}
    arrays = [peer for peer in numpy if operation in peer.call]
    for peer in arrays:
        timers[peer.name] = lambda n, calls, peer=peer: peer.time(operation, n, calls)
        timers[FROM_PYTHON] = lambda n, calls, peer=peer: peer.time_ours(operation, n, calls)
    warm = {way: min(run(2, 1)) for way, run in timers.items()}
    for way, run in timers.items():
        if calls_for(warm[way]) > 1:
            warm[way] = min(run(2, calls_for(warm[way])))
    calls = {way: calls_for(ns) for way, ns in warm.items()}
    round_ns = sum(warm[way] * calls[way] for way in timers)
    rounds = min(effort.rounds_max, max(ROUNDS_MIN, int(effort.operation_ns / round_ns)))
    times: dict[str, list[float]] = {way: [] for way in timers}
    order = list(timers)
    for number in range(rounds):
        shift = number % len(order)  # no way always follows the same other way
        for way in order[shift:] + order[:shift]:
            times[way] += timers[way](1, calls[way])
    columns = summary(row, bench, operation, times, [mpi.name for mpi in agreeing])
    columns |= {f"{peer.name} ns": statistics.median(times[peer.name]) for peer in arrays}
    for peer in arrays:
        ratio = ratio_of(times[peer.name], times[FROM_PYTHON])
        columns |= {
            "python_ns": statistics.median(times[FROM_PYTHON]),
            "numpy": peer.name,
            "numpy_over_python": ratio.median,
            "numpy_over_python_low": ratio.low,
            "numpy_over_python_high": ratio.high,
        }
    return columns


def summary(
    row: Row, bench: Any, operation: str, times: dict[str, list[float]], mpis: list[str]
) -> dict[str, Any]:
    medians = {way: statistics.median(values) for way, values in times.items()}
    hands = [way for way in HAND_WAYS if way in times]
    hand = min(hands, key=lambda way: medians[way], default=None)
    best_mpi = min(mpis, key=lambda way: medians[way], default=None)
    lines = bench.lines(operation)
    # The time for the operation's lines at the rate at which memcpy moves its lines.
    bound = medians["memcpy"] * lines * 64 / (2 * bench.bytes)
    columns: dict[str, Any] = {
        "row": row.name,
        "family": row.family,
        "operation": operation,
        "bytes": bench.bytes,
        "block_bytes_min": bench.block_bytes_min,
        "lines": lines,
        "kernel": bench.kernel(operation),
        "rounds": len(times["ours"]),
        "ours_ns": medians["ours"],
        "ours_min_ns": min(times["ours"]),
        "hand": hand or "",
        "hand_ns": medians[hand] if hand else None,
        "memcpy_ns": medians["memcpy"],
        "bound_over_ours": bound / medians["ours"],
        "mpi": best_mpi or "",
        "mpi_ns": medians[best_mpi] if best_mpi else None,
    }
    for name, way in (("hand", hand), ("mpi", best_mpi)):
        ratio = ratio_of(times[way], times["ours"]) if way else None
        columns[f"{name}_over_ours"] = ratio.median if ratio else None
        columns[f"{name}_over_ours_low"] = ratio.low if ratio else None
        columns[f"{name}_over_ours_high"] = ratio.high if ratio else None
    for name in mpis:
        columns[f"{name} ns"] = medians[name]
    return columns
