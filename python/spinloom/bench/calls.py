"""The times of single calls with the layer and without: calls that pass, MPI_Pack, first uses of datatypes.

Contract: rows() gives the rows of calls.toml in a fixed order. measure() times them as messages.measure()
does messages: bytes are compared first, jobs take turns. table() makes one dictionary for each row and MPI;
ratios, differences and their 95 % intervals are of rounds.
"""

from __future__ import annotations

import math
import statistics
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.bench import message_rows, messages
from spinloom.bench.measure import interval, ratio_of
from spinloom.bench.messages import Effort, Running, Session
from spinloom.bench.peers import hand_library
from spinloom.common import core
from spinloom.common.errors import Trouble

SOURCE = "mpi_calls.c"
FIRST_USES = 3  # pairs of a first and a second use in each round
FIRST_OVER_SECOND = 3.0  # the most, with the layer


@dataclass(frozen=True)
class CallRow:
    table: str  # calls, pack or first
    name: str
    call: str  # a kind of mpi_calls.c
    type: str
    to: str

    @property
    def both_receive(self) -> bool:
        """True if both ranks receive."""
        return self.call in ("pingpong", "first")

    @property
    def compared_kind(self) -> str:
        return self.call if self.table == "pack" else "copy"


def rows(*, quick: bool = False) -> list[CallRow]:
    table = tomllib.loads((Path(__file__).parent / "calls.toml").read_text(encoding="utf-8"))
    all_rows = [
        CallRow("calls", row["name"], row["call"], row["type"], row["type"]) for row in table["calls"]
    ]
    for row in table["pack"]:
        for call in ("pack", "unpack"):
            all_rows.append(CallRow("pack", row["name"], call, row["type"], row["type"]))
    by_name = {row.name: row for row in message_rows.message_rows()}
    for name in table["first"]["rows"]:
        if name not in by_name:
            raise Trouble("invalid", f"calls.toml: first names {name!r}, which is no row of messages")
        all_rows.append(CallRow("first", name, "first", by_name[name].type, by_name[name].to))
    chosen = table["quick"]["rows"]
    if missing := set(chosen) - {row.name for row in all_rows}:
        raise Trouble("invalid", f"calls.toml: quick names {min(missing)!r}, which is no row")
    return [row for row in all_rows if not quick or row.name in chosen]


Times = dict[tuple[CallRow, str], dict[bool, list[float]]]  # (row, MPI) -> with the layer? -> ns


def measure(session: Session, wanted_rows: list[CallRow], times: Times) -> None:
    """Adds the samples of every row to `times`; raises Trouble if bytes differ."""
    hand = str(hand_library(session.folder, []))

    def measure_one(row: CallRow, running: Running) -> None:
        measure_row(row, running, session.effort, hand, session.folder, times)

    messages.each_row(session, SOURCE, wanted_rows, measure_one)


def measure_row(
    row: CallRow,
    running: Running,
    effort: Effort,
    hand: str,
    folder: Path,
    times: Times,
) -> None:
    bench = core.load().LayoutBench(row.type, row.to, hand, "")
    program = folder / "row.bin"
    bench.write_program(str(program))
    expected = bench.hash(row.compared_kind)
    calls = {}
    for variant, job in running:
        job.load(program)
        hashes = job.hashes(row.call)
        if set(hashes if row.both_receive else hashes[:1]) != {expected}:
            layer = "with" if variant.layer else "without"
            raise Trouble("mismatch", f"{row.name}, {row.call}, {job.name} {layer} the layer: wrong bytes")
        calls[job] = 1
        if row.call != "first":
            for _ in range(2):  # a first guess, by one call, is much too long for short ones
                ns = min(job.time_ns(row.call, 3, calls[job]))
                calls[job] = max(1, math.ceil(effort.sample_ns / max(ns, 1.0)))
    repetitions = FIRST_USES if row.call == "first" else 1
    for number in range(effort.rounds):
        shift = number % len(running)
        for variant, job in running[shift:] + running[:shift]:
            samples = times.setdefault((row, job.name), {False: [], True: []})
            samples[variant.layer] += job.time_ns(row.call, repetitions, calls[job])


def table(times: Times) -> list[dict[str, Any]]:
    results = []
    for (row, mpi), samples in times.items():
        without, with_ = samples[False], samples[True]
        if not without or len(without) != len(with_):
            continue  # interrupted
        first: dict[str, Any] = {}
        if row.call == "first":
            for name, ns in (("without", without), ("with", with_)):
                ratio = ratio_of(ns[0::2], ns[1::2])
                first |= {
                    f"{name}_first_ns": statistics.median(ns[0::2]),
                    f"{name}_first_over_second": ratio.median,
                    f"{name}_first_over_second_low": ratio.low,
                    f"{name}_first_over_second_high": ratio.high,
                }
            without, with_ = without[1::2], with_[1::2]  # all else is of the second use
        ratio = ratio_of(without, with_)
        more = interval([b - a for a, b in zip(without, with_, strict=True)])
        results.append(
            {
                "table": row.table,
                "row": row.name,
                "call": row.call,
                "bytes": core.load().describe(row.type)["size_bytes"],
                "mpi": mpi,
                "samples": len(with_),
                "without_ns": statistics.median(without),
                "with_ns": statistics.median(with_),
                "without_over_with": ratio.median,
                "without_over_with_low": ratio.low,
                "without_over_with_high": ratio.high,
                "more_ns": more.median,
                "more_ns_low": more.low,
                "more_ns_high": more.high,
                **first,
            }
        )
    return results


def goals(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ratios = [result["with_first_over_second"] for result in measured if result["table"] == "first"]
    if not ratios:
        return []
    return [
        {
            "goal": "the largest first use of a type over its second, with the layer",
            "rows": len(ratios),
            "reached": max(ratios),
            "wanted": FIRST_OVER_SECOND,
            "met": max(ratios) <= FIRST_OVER_SECOND,
        }
    ]
