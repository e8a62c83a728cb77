"""Claims that are measured on this machine: live_claims.toml as conditions on ratios of host times.

Contract: live_claims() reads the file. measure() runs the message bench over the rows that the claims need,
under every MPI given, the reads of another process, and one-sided operations by the first MPI's launcher.
judge() is pure: claims and samples in, a row for each claim out. A condition about an MPI that is not here,
or that cannot be measured, makes its claim 'not available' unless another of its conditions fails.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from spinloom.bench import jobs, message_rows, messages
from spinloom.bench.remote_reads import system_calls_over_loads
from spinloom.bench.rows import Row
from spinloom.common.errors import Trouble
from spinloom.papers.claims import FAILS, HOLDS, LIMITS, NOT_AVAILABLE
from spinloom.papers.lab import Reading
from spinloom.papers.observe_programs import one_sided_ratio
from spinloom.papers.rank_benches import Latencies, one_sided_live
from spinloom.papers.trial import Trial

MESSAGES = "without over with"
TWO_WAYS = "two ways over one"
READS = "system calls over loads"
ONE_SIDED = "by the NIC over by messages"


@dataclass
class Measurements:
    """Samples of messages, the ratios of reads by segment size, and the latencies of one-sided operations."""

    times: messages.Times = field(default_factory=dict)
    reads: dict[int, float] = field(default_factory=dict)
    one_sided: Latencies = field(default_factory=dict)


@dataclass(frozen=True)
class LiveClaim:
    id: str
    says: str
    source: str
    paper: str
    remark: str
    holds: tuple[dict[str, Any], ...]


@cache
def table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("live_claims.toml").read_text(encoding="utf-8"))


def live_claims() -> dict[str, LiveClaim]:
    return {
        table_of_claim["id"]: LiveClaim(
            **{"remark": "", **table_of_claim, "holds": tuple(table_of_claim["holds"])}
        )
        for table_of_claim in table()["claim"]
    }


def rows_of(wanted: list[LiveClaim], quantity: str) -> list[Row]:
    """The rows that conditions on `of` name."""
    names = [
        name
        for claim in wanted
        for condition in claim.holds
        if condition["of"] == quantity
        for name in condition["rows"]
    ]
    by_name = {row.name: row for row in message_rows.message_rows()}
    by_name |= {name: Row(name, "claim", text, text, 0, 0) for name, text in table()["vectors"].items()}
    return [by_name[name] for name in dict.fromkeys(names)]


def measure(
    wanted: list[LiveClaim], mpis: list[jobs.Mpi], folder: Path, step: Callable[[], None]
) -> Measurements:
    measurements = Measurements()
    variants = messages.variants(mpis, both_settings=False)
    for quantity, kinds in ((MESSAGES, ("pingpong",)), (TWO_WAYS, ("stream", "both"))):
        if (rows := rows_of(wanted, quantity)) and variants:
            place = folder / kinds[0]
            place.mkdir()
            messages.measure(
                messages.Session(variants, messages.QUICK, "auto", place, step),
                rows,
                kinds,
                measurements.times,
            )
    conditions = [condition for claim in wanted for condition in claim.holds]
    for condition in conditions:
        if condition["of"] == READS:
            with suppressed():
                measurements.reads[condition["segment_bytes"]] = system_calls_over_loads(
                    condition["segment_bytes"]
                )
    if mpis and any(condition["of"] == ONE_SIDED for condition in conditions):
        with suppressed():
            measurements.one_sided = one_sided_live(mpis[0], folder)
    return measurements


@contextmanager
def suppressed() -> Iterator[None]:
    """Passes over Trouble('environment'): what this machine lacks leaves conditions open."""
    try:
        yield
    except Trouble as trouble:
        if trouble.code != "environment":
            raise


def observed(condition: dict[str, Any], measured: Measurements) -> float | None:
    """The number that a condition is about; None if it could not be measured."""
    if condition["of"] == READS:
        return measured.reads.get(condition["segment_bytes"])
    if condition["of"] == ONE_SIDED:
        return ratio_of(condition, measured.one_sided) if measured.one_sided else None
    times, ratios = measured.times, []
    for row in condition["rows"]:
        for name, kind, mpi in times:
            if name != row or not mpi.startswith(condition.get("mpi", "")):
                continue
            if condition["of"] == MESSAGES and kind == "pingpong":
                samples = times[name, kind, mpi]
                ratios.append(messages.ratio_of(samples[False], samples[True]).median)
            elif condition["of"] == TWO_WAYS and kind == "both":
                one_way_ns = statistics.median(times[name, "stream", mpi][True]) / messages.WINDOW
                ratios.append(2 * one_way_ns / statistics.median(times[name, kind, mpi][True]))
    if not ratios:
        return None
    return max(ratios) if condition.get("greatest") else min(ratios)


def ratio_of(condition: dict[str, Any], latencies: Latencies) -> float:
    arguments = {
        name: condition[name]
        for name in ("operation", "size_bytes", "way", "over_sizes")
        if name in condition
    }
    return one_sided_ratio(Trial(), [Reading({"rows": latencies})], **arguments)


def condition_text(condition: dict[str, Any]) -> str:
    """'greatest of 2 MiB of 128 B, 2 MiB of 512 B under MPICH >= 2'"""
    limit = next(name for name in LIMITS if name in condition)
    if condition["of"] == ONE_SIDED:
        first, last = condition["size_bytes"]
        which = f"{condition['over_sizes']} of " if "over_sizes" in condition else ""
        subject = f"{which}{condition['operation']} of {first} to {last} B"
        return f"{subject} {LIMITS[limit][0]} {condition[limit]:g}"
    subject = ", ".join(condition.get("rows", [f"{condition.get('segment_bytes')} B segments"]))
    under = f" under {condition['mpi']}" if "mpi" in condition else ""
    which = "greatest of " if condition.get("greatest") else ""
    return f"{which}{subject}{under} {LIMITS[limit][0]} {condition[limit]:g}"


def judge(wanted: list[LiveClaim], measured: Measurements) -> list[dict[str, Any]]:
    rows = []
    for claim in wanted:
        values = [observed(condition, measured) for condition in claim.holds]
        missed = []
        for condition, value in zip(claim.holds, values, strict=True):
            limit = next(name for name in LIMITS if name in condition)
            if value is not None and not LIMITS[limit][1](value, condition[limit]):
                missed.append(condition_text(condition))
        verdict = FAILS if missed else NOT_AVAILABLE if None in values else HOLDS
        rows.append(
            {
                "id": claim.id,
                "claim": claim.says,
                "source": claim.source,
                "predicate": "; ".join(condition_text(condition) for condition in claim.holds),
                "paper": claim.paper,
                "ours": "; ".join("-" if value is None else f"{value:.2f}" for value in values),
                "verdict": verdict,
                "remark": "; ".join([f"missed: {each}" for each in missed] + [claim.remark] * bool(missed)),
            }
        )
    return rows
