"""Observations on what programs do: studies, storage traces, applications, collectives, rails, rma.

Contract: that of observe.py, whose table has them. TABLES[name](readings, **arguments) are rows for people.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spinloom.common import lines
from spinloom.papers import lab, overlap, rank_benches, storage, studies, table1
from spinloom.papers.lab import Probe, Reading
from spinloom.papers.trial import Observation, Trial, grouped
from spinloom.predict import predict_ways

# ---- observations on studies; a way's time, and the best of several ----


def study_points(
    trial: Trial,
    study: str,
    ways: list[str],
    over: list[str],
    nics: list[str],
    from_bytes: int = 0,
) -> list[Probe]:
    """For each NIC and size: the ways, then the ways that they are compared with."""
    return [
        replace(studies.probe(study, nic, way, size), changes=trial.changes)
        for nic in nics
        for size in studies.studies()[study].sizes_bytes
        if size >= from_bytes
        for way in (*ways, *over)
    ]


def study_worst_ratio(
    trial: Trial, readings: list[Reading], ways: list[str], over: list[str], **_: Any
) -> float:
    """The largest ratio, over sizes and NICs, of the best of `ways` to the best of `over`."""
    return max(
        min(reading["time_ps"] for reading in group[: len(ways)])
        / min(reading["time_ps"] for reading in group[len(ways) :])
        for group in grouped(readings, len(ways) + len(over))
    )


# ---- a straight line through ping-pongs ----

PINGPONG_SIZES = tuple(1 << power for power in range(3, 17))  # 8 B to 64 KiB


def pingpong_cells(
    trial: Trial, fitted: list[int], nic: str | None = None, sizes: tuple[int, ...] = PINGPONG_SIZES
) -> list[Probe]:
    """By triggered puts: the sizes in their order, of which some are fitted to."""
    return [
        replace(studies.probe("pingpong", nic or trial.nic, "portals4", size), changes=trial.changes)
        for size in sizes
    ]


def pingpong_residual_percent(
    trial: Trial,
    readings: list[Reading],
    fitted: list[int],
    sizes: tuple[int, ...] = PINGPONG_SIZES,
    **_: Any,
) -> float:
    """The largest error of o + L + s G + m against half a ping-pong, in percent, over sizes not fitted to."""
    points = [(size, reading["time_ps"]) for size, reading in zip(sizes, readings, strict=True)]
    line = lines.fitted([point for point in points if point[0] in fitted])
    return 100 * lines.worst(line, [point for point in points if point[0] not in fitted])


def study_gap_cells(
    trial: Trial, study: str, ways: list[str], over: str, size_bytes: int, nics: list[str], ranks: int = 2
) -> list[Probe]:
    return [
        replace(studies.probe(study, nic, way, size_bytes, ranks), changes=trial.changes)
        for nic in nics
        for way in (*ways, over)
    ]


def study_gap_ns(trial: Trial, readings: list[Reading], ways: list[str], **_: Any) -> float:
    """Returns how much more the best of `ways` gains on the first NIC than on the second."""
    gains = [
        group[-1]["time_ps"] - min(reading["time_ps"] for reading in group[:-1])
        for group in grouped(readings, len(ways) + 1)
    ]
    return (gains[0] - gains[1]) / 1000


# ---- observations on storage traces ----


def storage_points(stripe_bytes: int | None) -> list[tuple[storage.Trace, str]]:
    """Every mix of the study on each of its NICs."""
    study = studies.studies()["spc"]
    return [(storage.mixed(mix, stripe_bytes), nic) for mix in study.mixes for nic in study.nics]


def storage_cells(trial: Trial, stripe_bytes: int | None = None, **_: Any) -> list[Probe]:
    return [
        probe
        for trace, nic in storage_points(stripe_bytes)
        for probe in trace.probes(nic, ("rdma", "stream"), trial.changes)
    ]


def storage_gains(readings: list[Reading], stripe_bytes: int | None) -> dict[tuple[str, str], float]:
    """By mix and NIC: how much less time the handlers take for the whole trace, in percent."""
    gains, rest = {}, iter(readings)
    for trace, nic in storage_points(stripe_bytes):
        host, handlers = (trace.time_ps(list(itertools.islice(rest, len(trace.counts)))) for _ in range(2))
        gains[trace.name, nic] = storage.gain_percent(host, handlers)
    return gains


def storage_gain_percent(
    trial: Trial, readings: list[Reading], mix: str, nic: str, stripe_bytes: int | None = None
) -> float:
    return storage_gains(readings, stripe_bytes)[mix, nic]


def storage_lead_percent(
    trial: Trial, readings: list[Reading], mix: str, nic: str, stripe_bytes: int | None = None
) -> float:
    """Returns how much more is gained there than anywhere else."""
    gains = storage_gains(readings, stripe_bytes)
    return gains.pop((mix, nic)) - max(gains.values())


# ---- observations on whole programs ----


def application_points(
    trial: Trial, application: str, strategy: str, ranks: list[int], nic: str = ""
) -> list[Probe]:
    return [
        replace(
            studies.application_probe(application, nic or trial.nic, count, strategy), changes=trial.changes
        )
        for count in ranks
    ]


# ---- observations on collective operations ----


def overlap_cells(*ways: str) -> Callable[..., list[Probe]]:
    """By ranks, then by way. Only a host's processor tests while it computes."""

    def probes(
        trial: Trial,
        operation: str,
        size_bytes: int,
        ranks: int | tuple[int, ...],
        polls: int = 0,
        once: bool = False,
    ) -> list[Probe]:
        return [
            replace(
                studies.overlap_probe(operation, trial.nic, way, size_bytes, count),
                changes=trial.changes,
                polls=0 if way == overlap.NIC else polls,
                once=once,
            )
            for count in (ranks if isinstance(ranks, tuple) else (ranks,))
            for way in ways
        ]

    return probes


def table1_cells(trial: Trial, ranks: tuple[int, ...]) -> list[Probe]:
    """A cell for each number of ranks; they are the same on every NIC."""
    return [Probe("", "", study=lab.TABLE1, ranks=count) for count in ranks]


def table1_of(readings: list[Reading], ranks: tuple[int, ...]) -> dict[int, list[table1.Row]]:
    return {count: reading["rows"] for count, reading in zip(ranks, readings, strict=True)}


# ---- observations on several NICs of a rank ----


def rails_cells(trial: Trial, rails: int, window: int, size_bytes: tuple[int, ...]) -> list[Probe]:
    """For each size a cell with one NIC, then one with `rails` NICs."""
    return [
        trial.probe("", "", study=lab.RAILS, count=count, window=window, size_bytes=size)
        for size in size_bytes
        for count in (1, rails)
    ]


def least_rails_gain(trial: Trial, readings: list[Reading], **_: Any) -> float:
    """The bandwidth of all NICs together over that of one, at the size where this ratio is the least."""
    return min(one_nic["time_ps"] / all_nics["time_ps"] for one_nic, all_nics in grouped(readings, 2))


# ---- observations on one-sided memory ----

OVER_SIZES: dict[str, Callable[[list[float]], float]] = {
    "median": statistics.median,
    "least": min,
    "greatest": max,
}


def one_sided_cells(trial: Trial, **_: Any) -> list[Probe]:
    return [trial.probe("", "", study=lab.ONE_SIDED)]


def one_sided_ratio(
    trial: Trial,
    readings: list[Reading],
    operation: str,
    size_bytes: tuple[int, int],
    way: str = rank_benches.NATIVE,
    over_sizes: str = "median",
) -> float:
    """The latency by `way` over that by messages to the target's processor, for sizes from one to another."""
    first, last = size_bytes
    ratios = [
        times[way] / times[rank_benches.EMULATED]
        for (name, size), times in readings[0]["rows"].items()
        if name == operation and first <= size <= last
    ]
    return OVER_SIZES[over_sizes](ratios)


def one_sided_rows(readings: list[Reading], **_: Any) -> list[dict[str, str]]:
    """A row for each operation: its latency by the NIC, over the emulation's, at some sizes."""
    latencies = readings[0]["rows"]
    return [
        {"operation": name}
        | {
            f"{size:,} B": f"{times[rank_benches.NATIVE] / 10**6:.2f} us, "
            f"{times[rank_benches.NATIVE] / times[rank_benches.EMULATED]:.2f}"
            if (times := latencies.get((name, size)))
            else ""
            for size in (8, 64, 1024, 65536)
        }
        for name in dict.fromkeys(name for name, _ in latencies)
    ]


OBSERVATIONS: dict[str, Observation] = {
    "least_rails_gain": Observation(rails_cells, least_rails_gain),
    "one_sided_ratio": Observation(one_sided_cells, one_sided_ratio),
    "table1_rows_that_differ": Observation(
        table1_cells, lambda trial, readings, ranks: table1.differing_rows(table1_of(readings, ranks))
    ),
    "table1_counts_without_reason": Observation(
        table1_cells, lambda trial, readings, ranks: table1.counts_without_reason(table1_of(readings, ranks))
    ),
    "overhead_by_cpu_over_nic": Observation(
        overlap_cells(overlap.CPU, overlap.NIC),
        lambda trial, readings, **_: readings[0]["overhead_ps"] / readings[1]["overhead_ps"],
    ),
    "latency_by_cpu_over_nic": Observation(
        overlap_cells(overlap.CPU, overlap.NIC),
        lambda trial, readings, **_: readings[0]["time_ps"] / readings[1]["time_ps"],
    ),
    "latency_growth": Observation(
        overlap_cells(overlap.NIC),
        lambda trial, readings, **_: readings[-1]["time_ps"] / readings[0]["time_ps"],
    ),
    "application_gain_percent": Observation(
        lambda trial, application, way, ranks, strategy="", nic="": application_points(
            trial, application, strategy, [ranks], nic
        ),
        lambda trial, readings, way, **_: studies.gain_percent(readings[0], way),
    ),
    "application_gain_falls_percent": Observation(
        lambda trial, application, way, ranks, strategy="", nic="": application_points(
            trial, application, strategy, [ranks, 2 * ranks], nic
        ),
        lambda trial, readings, way, **_: (
            studies.gain_percent(readings[0], way) - studies.gain_percent(readings[1], way)
        ),
    ),
    "collective_wait_ratio": Observation(
        lambda trial, program, ranks: [trial.probe(program, "", study=lab.RECORDED, ranks=ranks)],
        lambda trial, readings, **_: (
            readings[0][predict_ways.MATCHING]["collective_wait_ps"]
            / readings[0][predict_ways.COLLECTIVES]["collective_wait_ps"]
        ),
    ),
    "storage_gain_percent": Observation(storage_cells, storage_gain_percent),
    "storage_lead_percent": Observation(storage_cells, storage_lead_percent),
    "pingpong_residual_percent": Observation(pingpong_cells, pingpong_residual_percent),
    "study_worst_ratio": Observation(study_points, study_worst_ratio),
    "study_gap_ns": Observation(study_gap_cells, study_gap_ns),
    "study_ratio": Observation(
        lambda trial, study, way, over, size_bytes, nic, ranks=2: study_gap_cells(
            trial, study, [way], over, size_bytes, [nic], ranks
        ),
        lambda trial, readings, **_: readings[0]["time_ps"] / readings[1]["time_ps"],
    ),
}

TABLES: dict[str, Callable[..., list[dict[str, str]]]] = {
    "table1": lambda readings, ranks: table1.rows(table1_of(readings, ranks)),
    "one-sided": one_sided_rows,
}
