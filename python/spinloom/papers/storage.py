"""The study of storage traces: how long an array takes for all requests of a trace, one after the other.

Contract: traces(study) are what is replayed: the study's generated mixes, or the files that take their place.
The time of a trace is the sum of the modelled times of its requests, because the next request is made when
the client knows that the one before is done. The times in a trace are not used: with them an array, which is
idle between requests, would be done when the last one is, whatever the NIC. Every shape of request
(raid_shapes.py) is simulated once, with every byte compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinloom.common.errors import Trouble
from spinloom.papers import raid_shapes, spc, spc_mixes
from spinloom.papers.lab import Lab, Probe
from spinloom.papers.raid_shapes import Shape

if TYPE_CHECKING:
    from spinloom.papers.studies import Study

COLUMNS = [
    *("study", "trace", "nic", "way", "requests", "writes_percent", "mean_bytes", "mean_write_bytes"),
    *("shapes", "time_ps", "write_time_ps", "read_time_ps", "gain_percent", "input"),
]
GENERATED = ".generated.spc"
EXPERIMENTS = {True: "raid", False: "raid-read"}


@dataclass(frozen=True)
class Kind:
    """Requests of the same shape."""

    is_write: bool
    shape: Shape

    def probe(self, nic: str, way: str, changes: tuple[tuple[str, str], ...] = ()) -> Probe:
        size = sum(size for _, size in self.shape)
        study = EXPERIMENTS[self.is_write]
        return Probe("", way, nic=nic, changes=changes, study=study, size_bytes=size, pieces=self.shape)


@dataclass(frozen=True)
class Trace:
    name: str
    input: str  # "generated", "file"
    counts: tuple[tuple[Kind, int], ...]

    @property
    def requests(self) -> int:
        return sum(count for _, count in self.counts)

    @property
    def writes_percent(self) -> float:
        return 100 * sum(count for kind, count in self.counts if kind.is_write) / self.requests

    def mean_bytes(self, *, writes_only: bool = False) -> float | None:
        chosen = [(kind, count) for kind, count in self.counts if kind.is_write or not writes_only]
        total = sum(count * size for kind, count in chosen for _, size in kind.shape)
        return total / sum(count for _, count in chosen) if chosen else None

    def probes(self, nic: str, ways: Iterable[str], changes: tuple[tuple[str, str], ...] = ()) -> list[Probe]:
        return [kind.probe(nic, way, changes) for way in ways for kind, _ in self.counts]

    def time_ps(self, readings: Iterable[Any], is_write: bool | None = None) -> int:
        """From the readings of one way's probes; with `is_write`, only of the writes or the reads."""
        return sum(
            count * reading["time_ps"]
            for (kind, count), reading in zip(self.counts, readings, strict=True)
            if is_write in (None, kind.is_write)
        )


def counted(name: str, origin: str, requests: Iterable[spc.Request], stripe: int) -> Trace:
    """Requests without bytes move nothing, and are not counted."""
    period = raid_shapes.period_bytes(stripe)
    places = Counter(
        (request.is_write, request.address % period, request.size_bytes)
        for request in requests
        if request.size_bytes
    )
    kinds: Counter[Kind] = Counter()
    for (is_write, address, size_bytes), count in places.items():
        kinds[Kind(is_write, raid_shapes.shape(address, size_bytes, stripe))] += count
    if not kinds:
        raise Trouble("invalid", f"{name}: the trace has no request that moves a byte")
    return Trace(
        name, origin, tuple(sorted(kinds.items(), key=lambda item: (item[0].is_write, item[0].shape)))
    )


def generated(name: str) -> Iterator[spc.Request]:
    """The mix in its shipped length and seed."""
    table = spc_mixes.tables()
    return spc_mixes.requests(spc_mixes.mix_named(name), table["generated_requests"], table["seed"])


@lru_cache(maxsize=16)
def mixed(name: str, stripe: int | None = None) -> Trace:
    shipped = spc_mixes.tables()["stripe_bytes"]
    return counted(name, "generated", generated(name), shipped if stripe is None else stripe)


@lru_cache(maxsize=64)
def recorded(path: Path) -> Trace:
    """Returns the trace of a file; one that `paper study` has generated keeps the origin 'generated'."""
    origin = "generated" if GENERATED in path.name else "file"
    return counted(path.name, origin, spc.read(path), spc_mixes.tables()["stripe_bytes"])


def traces(study: Study) -> list[Trace]:
    """Files are told by their names, those of the same name by their paths."""
    if not study.files:
        return [mixed(name) for name in study.mixes]
    paths = list(dict.fromkeys(study.files))
    often = Counter(path.name for path in paths)
    return [replace(recorded(path), name=path.name if often[path.name] == 1 else str(path)) for path in paths]


def probes(study: Study) -> list[Probe]:
    return [probe for trace in traces(study) for nic in study.nics for probe in trace.probes(nic, study.ways)]


def gain_percent(host_ps: int, time_ps: int) -> float:
    return 100 * (1 - time_ps / host_ps)


def rows(study: Study, lab: Lab) -> list[dict[str, Any]]:
    return [row for trace in traces(study) for nic in study.nics for row in rows_of(study, trace, nic, lab)]


def rows_of(study: Study, trace: Trace, nic: str, lab: Lab) -> list[dict[str, Any]]:
    readings = {way: [lab[probe] for probe in trace.probes(nic, [way])] for way in study.ways}
    host_ps = trace.time_ps(readings[study.ways[0]])
    mean_write = trace.mean_bytes(writes_only=True)
    return [
        {
            "study": study.name,
            "trace": trace.name,
            "nic": nic,
            "way": way,
            "requests": trace.requests,
            "writes_percent": round(trace.writes_percent, 2),
            "mean_bytes": round(trace.mean_bytes() or 0),
            "mean_write_bytes": None if mean_write is None else round(mean_write),
            "shapes": len(trace.counts),
            "time_ps": trace.time_ps(way_readings),
            "write_time_ps": trace.time_ps(way_readings, is_write=True),
            "read_time_ps": trace.time_ps(way_readings, is_write=False),
            "gain_percent": round(gain_percent(host_ps, trace.time_ps(way_readings)), 2),
            "input": trace.input,
        }
        for way, way_readings in readings.items()
    ]
