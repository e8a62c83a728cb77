"""Interleaved measurement of messages: each MPI with and without the layer, in jobs that take turns.

Contract: measure() checks the bytes of every job against the oracle before its first time. Each round times
every job once, in an order that rotates; a ratio is the median of its rounds' ratios with a 95 % interval.
Jobs are launched anew `launches` times, because where a job's memory lies changes its speed.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.bench import jobs
from spinloom.bench.measure import ratio_of
from spinloom.bench.peers import hand_library
from spinloom.bench.rows import Row
from spinloom.common import core, output
from spinloom.common.errors import Trouble

SOURCE = "mpi_messages.c"
KINDS = ("pingpong", "stream", "both", "alltoallw")
WINDOW = 16  # messages of a stream's call, see mpi_messages.c


@dataclass(frozen=True)
class Effort:
    launches: int
    rounds: int  # the rounds of each launch
    sample_ns: float  # a sample has as many calls as last so long by a first one


FULL = Effort(launches=3, rounds=12, sample_ns=1.5e6)
QUICK = Effort(launches=2, rounds=8, sample_ns=1e6)


@dataclass(frozen=True)
class Variant:
    """One way to run an MPI."""

    mpi: jobs.Mpi
    single_copy: bool
    layer: bool
    apart: bool = False  # no memory is shared between ranks

    def settings(self, path: str) -> dict[str, str]:
        layer = jobs.layer_settings(path) if self.layer else {}
        apart = jobs.NO_SHARED_MEMORY if self.apart else {}
        return layer | apart | ({} if self.single_copy else jobs.NO_SINGLE_COPY)

    def launch(self, program: Path, folder: Path, path: str) -> jobs.Job:
        return jobs.Job(self.mpi, program, folder, self.settings(path), apart=self.apart)


def variants(mpis: list[jobs.Mpi], *, both_settings: bool, apart: bool = False) -> list[Variant]:
    return [
        Variant(mpi, single_copy, layer, apart)
        for mpi in mpis
        for single_copy in ((True, False) if both_settings else (True,))
        for layer in (False, True)
    ]


def label(job: jobs.Job, variant: Variant) -> str:
    return job.name + ("" if variant.single_copy else " without CMA") + (" apart" if variant.apart else "")


Times = dict[tuple[str, str, str], dict[bool, list[float]]]  # (row, kind, MPI) -> with the layer? -> ns


@dataclass(frozen=True)
class Session:
    """The settings of a measurement: the ways to run the MPIs, the effort, the layer's path, a folder."""

    wanted: list[Variant]
    effort: Effort
    path: str
    folder: Path
    step: Callable[[], None]  # called after each row of each launch


Running = list[tuple[Variant, jobs.Job]]


def each_row(
    session: Session, source: str, rows: list[Any], measure_one: Callable[[Any, Running], None]
) -> None:
    """Launches the jobs of `source` as often as the effort says, and measures every row in each launch."""
    programs = compiled(session.wanted, session.folder, source)
    for launch in range(session.effort.launches):
        place = session.folder / f"launch{launch}"
        with launched(session.wanted, programs, place, session.path) as running:
            for row in rows:
                measure_one(row, running)
                session.step()


def measure(session: Session, rows: list[Row], kinds: tuple[str, ...], times: Times) -> None:
    """Adds the samples of every row to `times`; raises Trouble if bytes differ."""
    hand = str(hand_library(session.folder, []))

    def measure_one(row: Row, running: Running) -> None:
        for kind in kinds:
            measure_row(row, kind, running, session.effort, hand, session.folder, times)

    each_row(session, SOURCE, rows, measure_one)


def compiled(wanted: list[Variant], folder: Path, source: str) -> dict[jobs.Mpi, Path]:
    """The program of each MPI; those that do not compile it are named and left out."""
    programs = {}
    for number, mpi in enumerate(dict.fromkeys(variant.mpi for variant in wanted)):
        program = folder / f"program{number}"
        try:
            jobs.compile_program(mpi, source, program)
        except Trouble as trouble:
            output.say(f"{mpi.compiler} is left out: {trouble.message}")
        else:
            programs[mpi] = program
    return programs


@contextlib.contextmanager
def launched(
    wanted: list[Variant], programs: dict[jobs.Mpi, Path], folder: Path, path: str
) -> Iterator[Running]:
    running: Running = []
    try:
        for number, variant in enumerate(wanted):
            if variant.mpi in programs:
                place = folder / f"job{number}"
                running.append((variant, variant.launch(programs[variant.mpi], place, path)))
        yield running
    finally:
        for _, job in running:
            job.close()


def measure_row(
    row: Row,
    kind: str,
    running: Running,
    effort: Effort,
    hand: str,
    folder: Path,
    times: Times,
) -> None:
    bench = core.load().LayoutBench(row.type, row.to, hand, "")
    program = folder / "row.bin"
    bench.write_program(str(program))
    expected = bench.hash("copy")
    calls = {}
    for variant, job in running:
        job.load(program)
        hashes = job.hashes(kind)
        if (hashes[1:] if kind == "stream" else hashes) != [expected] * (1 if kind == "stream" else 2):
            layer = "with" if variant.layer else "without"
            raise Trouble("mismatch", f"{row.name}, {kind}, {job.name} {layer} the layer: wrong bytes")
        ns = min(job.time_ns(kind, 3, 1))
        calls[job] = max(1, math.ceil(effort.sample_ns / max(ns, 1.0)))
    for number in range(effort.rounds):
        shift = number % len(running)
        for variant, job in running[shift:] + running[:shift]:
            samples = times.setdefault((row.name, kind, label(job, variant)), {False: [], True: []})
            samples[variant.layer] += job.time_ns(kind, 1, calls[job])


def table(rows: list[Row], times: Times) -> list[dict[str, Any]]:
    """One dictionary for each row, kind and MPI."""
    results = []
    by_name = {row.name: row for row in rows}
    for (name, kind, mpi), samples in times.items():
        if not samples[False] or len(samples[False]) != len(samples[True]):
            continue  # interrupted
        ratio = ratio_of(samples[False], samples[True])
        row = by_name[name]
        size = core.load().describe(row.type)["size_bytes"]
        results.append(
            {
                "row": name,
                "family": row.family,
                "kind": kind,
                "bytes": size,
                "mpi": mpi,
                "samples": len(samples[True]),
                "without_ns": statistics.median(samples[False]),
                "with_ns": statistics.median(samples[True]),
                "without_over_with": ratio.median,
                "without_over_with_low": ratio.low,
                "without_over_with_high": ratio.high,
            }
        )
    return results


def against_best(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each row and kind: the best stock MPI's time over the best with the layer."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row_result in measured:
        groups.setdefault((row_result["row"], row_result["kind"]), []).append(row_result)
    comparisons = []
    for (row, kind), group in groups.items():
        stock = min(group, key=lambda row_result: row_result["without_ns"])
        ours = min(group, key=lambda row_result: row_result["with_ns"])
        comparisons.append(
            {
                "row": row,
                "family": group[0]["family"],
                "kind": kind,
                "bytes": group[0]["bytes"],
                "best_stock": stock["mpi"],
                "best_stock_ns": stock["without_ns"],
                "best_with": ours["mpi"],
                "best_with_ns": ours["with_ns"],
                "stock_over_with": stock["without_ns"] / ours["with_ns"],
            }
        )
    return comparisons


def goals(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The geometric means and the worst rows, over ping-pongs."""
    least_bytes = 16 << 10
    pingpongs = [row_result for row_result in measured if row_result["kind"] == "pingpong"]
    large = [
        row_result
        for row_result in pingpongs
        if row_result["family"] == "application" and row_result["bytes"] > least_bytes
    ]
    best = [row_result["stock_over_with"] for row_result in against_best(large)]
    same_mpi = [row_result["without_over_with"] for row_result in large]
    slower = [row_result for row_result in measured if row_result["without_over_with_high"] < 0.97]
    results = []
    if best:
        results.append(goal("applications above 16 KiB, best stock MPI over best with the layer", best, 1.6))
        results.append(goal("applications above 16 KiB, the same MPI without over with", same_mpi, 2.0))
    all_ratios = [row_result["without_over_with"] for row_result in measured]
    if all_ratios:
        results.append(goal("every row, the same MPI without over with", all_ratios, 0.99))
        results.append(
            {
                "goal": "rows that the layer slows down (interval below 0.97)",
                "rows": len(all_ratios),
                "reached": len(slower),
                "wanted": 0,
                "met": not slower,
            }
        )
    return results


def goal(title: str, ratios: list[float], wanted: float) -> dict[str, Any]:
    reached = statistics.geometric_mean(ratios)
    return {
        "goal": title,
        "rows": len(ratios),
        "reached": reached,
        "wanted": wanted,
        "met": reached >= wanted,
    }
