"""Small experiments as tables: studies.toml says which; here they become probes, then rows of numbers.

Contract: studies() lists them by name; probes(study) are the probes to simulate; rows(study, lab) is the
long-format table, one row for each point, from the lab's readings.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spinloom.common.errors import Trouble, nearest
from spinloom.papers import overlap, station_studies, storage
from spinloom.papers.lab import APPLICATION, OVERLAP, RECORDED, Lab, Probe
from spinloom.predict import applications


@dataclass(frozen=True)
class Study:
    name: str
    title: str
    source: str
    ways: tuple[str, ...]
    nics: tuple[str, ...]
    sizes_bytes: tuple[int, ...] = ()
    ranks: tuple[int, ...] = (2,)
    applications: tuple[str, ...] = ()  # whole programs of applications.py instead of messages
    strategy: str = ""  # moves the layouts of `applications` in the last of `ways`
    mixes: tuple[str, ...] = ()  # storage traces of spc_mixes.toml, replayed by storage.py
    files: tuple[Path, ...] = ()  # files with storage traces, replayed in place of `mixes`
    paper_gains_percent: tuple[float, ...] = ()  # the least and the largest gain that the paper reports
    operations: tuple[str, ...] = ()  # collective operations of overlap.py
    networks: tuple[str, ...] = ()  # networks of switches (goal_network.py) that join the ranks
    recorded: tuple[str, ...] = ()  # folders of data/recorded, whose programs are predicted on more ranks
    station: str = ""  # a kind of station_studies.py; the five members below are read only for a station
    protocols: tuple[str, ...] = ()
    elements: tuple[int, ...] = ()  # elements of the datatype in one message
    messages: tuple[int, ...] = ()  # messages that are under way at the same time
    windows: tuple[int, ...] = ()  # packets that are sent without an acknowledgement
    send_ns: tuple[int, ...] = ()  # the time that a packet takes its sender

    @property
    def columns(self) -> list[str]:
        if self.station:
            return station_studies.columns(self)
        if self.mixes:
            return storage.COLUMNS
        if self.networks:
            return NETWORK_COLUMNS
        if self.recorded:
            return RECORDED_COLUMNS
        if self.operations:
            return OVERLAP_COLUMNS
        return APPLICATION_COLUMNS if self.applications else COLUMNS

    @property
    def over_ranks(self) -> bool:
        """True if the plots show time over ranks instead of sizes."""
        return len(self.ranks) > 1


WAYS = {
    "rdma": "the bytes land, the host acts",
    "portals4": "a triggered put answers, without the host",
    "store": "handlers act when the message is in host memory",
    "stream": "payload handlers act on each packet",
}
APPLICATION_COLUMNS = [
    *("study", "application", "nic", "ranks", "way"),
    *("time_ps", "communication_share", "gain_percent", "paper_gain_percent", "input"),
]
RECORDED_COLUMNS = [
    *("study", "program", "nic", "ranks", "way", "collectives"),
    *("time_ps", "turn_ps", "wait_ps", "times_less_wait", "input"),
]
GROUP_WAYS = {
    "linear": "the root's host sends to each, or adds what each has sent",
    "rdma": "hosts along a binomial tree",
    "stream": "payload handlers of NICs along a binomial tree",
    "switch": "payload handlers of the switches between",
}
COLUMNS = ["study", "nic", "ranks", "size_bytes", "way", "time_ps", "handlers", "handler_cycles"]
OVERLAP_COLUMNS = [
    *("study", "nic", "ranks", "size_bytes", "way", "operation"),
    *("time_ps", "overhead_ps", "overhead_percent", "start_ps", "rest_ps"),
]
NETWORK_COLUMNS = [
    *("study", "nic", "network", "ranks", "size_bytes", "way"),
    *("time_ps", "bound_ps", "link_bytes", "switches", "handlers", "handler_cycles"),
]


@cache
def studies() -> dict[str, Study]:
    path = Path(__file__).with_name("studies.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["study"]
    all_studies = [
        Study(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})
        for table in tables
    ]
    return {study.name: study for study in all_studies}


def studies_named(name: str) -> list[Study]:
    """One study, or all of them. Raises Trouble('invalid')."""
    if name == "all":
        return list(studies().values())
    if name not in studies():
        raise Trouble("invalid", f"there is no study '{name}'{nearest(name, ['all', *studies()])}")
    return [studies()[name]]


def application_probe(name: str, nic: str, ranks: int, strategy: str) -> Probe:
    return Probe(name, strategy, nic=nic, study=APPLICATION, ranks=ranks)


def probe(study: str, nic: str, way: str, size_bytes: int, ranks: int = 2) -> Probe:
    return Probe("", way, nic=nic, study=study, size_bytes=size_bytes, ranks=ranks)


def overlap_probe(operation: str, nic: str, way: str, size_bytes: int, ranks: int) -> Probe:
    return Probe(operation, way, nic=nic, study=OVERLAP, size_bytes=size_bytes, ranks=ranks)


def probes(study: Study) -> list[Probe]:
    if study.station:
        return station_studies.probes(study)
    if study.mixes:
        return storage.probes(study)
    if study.applications:
        return [
            application_probe(name, nic, ranks, study.strategy)
            for nic in study.nics
            for name in study.applications
            for ranks in application_ranks(study, name)
        ]
    if study.recorded:
        return [
            Probe(name, "", nic=nic, study=RECORDED, ranks=ranks)
            for nic in study.nics
            for name in study.recorded
            for ranks in study.ranks
        ]
    if study.operations:
        return [
            overlap_probe(operation, nic, way, size, ranks)
            for nic in study.nics
            for operation in study.operations
            for size in study.sizes_bytes
            for ranks in study.ranks
            for way in study.ways
            if way != overlap.LINEAR or operation in overlap.LINEAR_TOO
        ]
    if study.networks:
        return [
            Probe("", way, nic=nic, study=study.name, size_bytes=size, ranks=ranks, network=network)
            for nic in study.nics
            for network in study.networks
            for size in study.sizes_bytes
            for ranks in study.ranks
            for way in study.ways
        ]
    return [
        probe(study.name, nic, way, size, ranks)
        for nic in study.nics
        for size in study.sizes_bytes
        for ranks in study.ranks
        for way in study.ways
    ]


def rows(study: Study, lab: Lab) -> list[dict[str, Any]]:
    """Returns modelled times. Bytes were compared wherever a run moves any; applications and recorded
    programs are predicted. Raises Trouble for a point without a time."""
    if study.station:
        return station_studies.rows(study, lab)
    if study.mixes:
        return storage.rows(study, lab)
    if study.applications:
        return [row for each in probes(study) for row in application_rows(study, each, lab)]
    if study.recorded:
        return [row for each in probes(study) for row in recorded_rows(study, each, lab)]
    return [
        {
            "study": study.name,
            "nic": each.nic,
            "ranks": each.ranks,
            "size_bytes": each.size_bytes,
            "way": each.strategy,
            **({"network": each.network} if study.networks else {}),
            **({"operation": each.type} if study.operations else {}),
            **{column: lab[each][column] for column in study.columns[study.columns.index("time_ps") :]},
        }
        for each in probes(study)
    ]


def application_ranks(study: Study, name: str) -> tuple[int, ...]:
    by_name = applications.all_applications()
    return (by_name[name].ranks,) if name in by_name else study.ranks


def gain_percent(reading: Any, way: str) -> float:
    """Returns how much less time a program takes than under the host's MPI."""
    return 100 * (1 - reading[way].time_ps / reading[applications.BASELINE].time_ps)


def application_rows(study: Study, point: Probe, lab: Lab) -> list[dict[str, Any]]:
    reading = lab[point]
    by_name = applications.all_applications()
    return [
        {
            "study": study.name,
            "application": point.type,
            "nic": point.nic,
            "ranks": point.ranks,
            "way": way,
            "time_ps": reading[way].time_ps,
            "communication_share": reading[way].communication_share,
            "gain_percent": round(gain_percent(reading, way), 2),
            "paper_gain_percent": by_name[point.type].paper_gain_percent
            if point.type in by_name and way == study.ways[-1]
            else None,
            "input": "generated",
        }
        for way in study.ways
    ]


def recorded_rows(study: Study, point: Probe, lab: Lab) -> list[dict[str, Any]]:
    """turn_ps and wait_ps are means for one collective operation: the run time of the program, and its waits.
    times_less_wait is the wait by the first way divided by the wait by this one."""
    reading = lab[point]
    baseline = reading[study.ways[0]]
    return [
        {
            "study": study.name,
            "program": point.type,
            "nic": point.nic,
            "ranks": point.ranks,
            "way": way,
            "collectives": row["collectives"],
            "time_ps": row["time_ps"],
            "turn_ps": row["time_ps"] // row["collectives"],
            "wait_ps": row["collective_wait_ps"] // row["collectives"],
            "times_less_wait": round(baseline["collective_wait_ps"] / row["collective_wait_ps"], 2),
            "input": "recorded on fewer ranks",
        }
        for way in study.ways
        for row in (reading[way],)
    ]
