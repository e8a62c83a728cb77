"""Interleaved measurement of collectives with datatypes: each MPI without the layer, by hand, and with it.

Contract: measure() compares every rank's receive memory with the oracle's, in every job and every way, before
the row's first time. What is sent and received by hand goes by the jobs without the layer. Rounds, launches
and ratios are those of messages.py. table() makes one dictionary for each row and MPI.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from spinloom.bench import collective_rows, jobs, messages
from spinloom.bench.collective_rows import Files, Row
from spinloom.bench.measure import ratio_of
from spinloom.bench.messages import Running, Session, Variant
from spinloom.bench.peers import hand_library
from spinloom.common import output
from spinloom.common.errors import Trouble

SOURCE = "mpi_collectives.c"
STOCK, HAND, LAYER = WAYS = ("stock", "hand", "layer")
SLOWER = 0.97
NO_SUCH_CALL, SENT_IS_CHANGED = 0, 1  # marks in place of a hash, see mpi_collectives.c

Times = dict[tuple[str, str], dict[str, list[float]]]  # (row, MPI) -> way -> ns


@dataclass(frozen=True)
class Way:
    """One of the ways that take turns."""

    variant: Variant
    job: jobs.Job
    name: str  # one of WAYS

    @property
    def label(self) -> str:
        return messages.label(self.job, self.variant)

    def kind(self, *, fresh: bool = False) -> str:
        """The kind, as mpi_collectives.c names it."""
        return ("fresh-" if fresh else "") + ("hand" if self.name == HAND else "types")


def ways(row: Row, running: Running) -> Iterator[Way]:
    for variant, job in running:
        yield Way(variant, job, LAYER if variant.layer else STOCK)
        if row.by_hand and not variant.layer:
            yield Way(variant, job, HAND)


def measure(session: Session, rows: list[Row], times: Times, *, fresh: bool = False) -> None:
    """Adds the samples of every row to `times`; raises Trouble if bytes differ."""
    hand = str(hand_library(session.folder, []))
    files: dict[str, Files] = {}
    remarks = Remarks()

    def measure_one(row: Row, running: Running) -> None:
        row_files = files.setdefault(row.name, Files(row, hand, session.folder))
        program = session.folder / "row.bin"
        row_files.write(program)
        for _, job in running:
            job.load(program)
        correct = [way for way in ways(row, running) if is_right(row_files, way, remarks.say)]
        measure_row(row, correct, session.effort, times, fresh=fresh)

    messages.each_row(session, SOURCE, rows, measure_one)


@dataclass
class Remarks:
    """Prints each remark once, however often its row is launched."""

    said: set[str] = field(default_factory=set)

    def say(self, text: str) -> None:
        if text not in self.said:
            self.said.add(text)
            output.say(text)


def is_right(files: Files, way: Way, say: Callable[[str], None]) -> bool:
    """True if the bytes are right, False if the MPI lacks the call; wrong bytes are Trouble."""
    hashes = way.job.hashes(way.kind())
    how = {STOCK: "without the layer", HAND: "by hand", LAYER: "with the layer"}[way.name]
    call, place = f"{files.row.call}, {way.label}", f"{files.row.name}, {way.label}, {how}"
    if NO_SUCH_CALL in hashes:
        say(f"{call}: this MPI has no such call")
        return False
    if hashes == files.hashes:
        return True
    if way.name != HAND and hashes == files.in_list_order:
        # Before MPI 4.0 the standard left it open which of two parts between the same ranks is which.
        say(f"{call}, {how}: where two ranks are neighbours twice, the n-th part comes as the n-th")
        return True
    if SENT_IS_CHANGED in hashes:
        raise Trouble("mismatch", f"{place}: what is sent has changed")
    raise Trouble("mismatch", f"{place}: wrong bytes")


def measure_row(
    row: Row, wanted: list[Way], effort: messages.Effort, times: Times, *, fresh: bool = False
) -> None:
    calls = []
    for way in wanted:
        count = 1
        for _ in range(2):  # a first guess, by one call, is much too long for short ones
            ns = min(way.job.time_ns(way.kind(fresh=fresh), 3, count))
            count = max(1, math.ceil(effort.sample_ns / max(ns, 1.0)))
        calls.append(count)
    for number in range(effort.rounds):
        shift = number % len(wanted) if wanted else 0
        for at in [*range(shift, len(wanted)), *range(shift)]:
            way = wanted[at]
            samples = times.setdefault((row.name, way.label), {name: [] for name in WAYS})
            samples[way.name] += way.job.time_ns(way.kind(fresh=fresh), 1, calls[at])


def table(rows: list[Row], times: Times) -> list[dict[str, Any]]:
    """One dictionary for each row and MPI."""
    results = []
    by_name = {row.name: row for row in rows}
    for (name, mpi), samples in times.items():
        row = by_name[name]
        stock, hand, layer = (samples[way] for way in WAYS)
        if not stock or len(stock) != len(layer) or len(hand) != (len(stock) if row.by_hand else 0):
            continue  # interrupted
        medians = {way: statistics.median(samples[way]) for way in WAYS if samples[way]}
        best = min((way for way in medians if way != LAYER), key=lambda way: medians[way])
        results.append(
            {
                "row": name,
                "family": row.family,
                "call": row.call,
                "bytes": row.bytes,
                "mpi": mpi,
                "samples": len(layer),
                **{f"{way}_ns": medians.get(way) for way in WAYS},
                "best": best,
                **ratio_columns("best_over_layer", samples[best], layer),
                **ratio_columns("stock_over_layer", stock, layer),
            }
        )
    return results


def ratio_columns(name: str, over: list[float], under: list[float]) -> dict[str, float]:
    ratio = ratio_of(over, under)
    return {name: ratio.median, f"{name}_low": ratio.low, f"{name}_high": ratio.high}


def without_layer(result: dict[str, Any]) -> float:
    """The shorter of the times with datatypes and by hand."""
    return min(result["stock_ns"], result["hand_ns"] or math.inf)


def over_best_of_all(measured: list[dict[str, Any]]) -> list[float]:
    """For each row and MPI: the best time of any MPI without the layer over this MPI's with it."""
    best: dict[str, float] = {}
    for result in measured:
        best[result["row"]] = min(best.get(result["row"], math.inf), without_layer(result))
    return [best[result["row"]] / result["layer_ns"] for result in measured]


def goals(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Geometric means of families, and how many rows are slower with the layer."""
    results = []
    for family, wanted in collective_rows.read()["goals"].items():
        ratios = over_best_of_all([result for result in measured if result["family"] == family])
        if ratios:
            title = f"{family}: best of all MPIs without the layer or by hand, over each with the layer"
            results.append(messages.goal(title, ratios, wanted))
    for ratio, title in (("stock_over_layer", "that MPI without it"), ("best_over_layer", "that or by hand")):
        if not measured:
            continue
        slower = [result for result in measured if result[f"{ratio}_high"] < SLOWER]
        results.append(
            {
                "goal": f"rows that are slower with the layer than {title} (interval below {SLOWER})",
                "rows": len(measured),
                "reached": len(slower),
                "wanted": 0,
                "met": not slower,
            }
        )
    return results
