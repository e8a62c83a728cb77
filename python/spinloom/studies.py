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

from spinloom.errors import Trouble, nearest
from spinloom.lab import Lab, Probe


@dataclass(frozen=True)
class Study:
    name: str
    title: str
    source: str
    ways: tuple[str, ...]
    sizes_bytes: tuple[int, ...]
    nics: tuple[str, ...]
    ranks: tuple[int, ...] = (2,)

    @property
    def over_ranks(self) -> bool:
        """Whether the plots show time over ranks instead of sizes."""
        return len(self.ranks) > 1


WAYS = {
    "rdma": "the bytes land, the host acts",
    "portals4": "a triggered put answers, without the host",
    "store": "handlers act when the message is in host memory",
    "stream": "payload handlers act on each packet",
}
COLUMNS = ["study", "nic", "ranks", "size_bytes", "way", "time_ps", "handlers", "handler_cycles"]


@cache
def studies() -> dict[str, Study]:
    path = Path(__file__).with_name("studies.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["study"]
    listed = [
        Study(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})
        for table in tables
    ]
    return {study.name: study for study in listed}


def named(name: str) -> list[Study]:
    """One study, or all of them. Raises Trouble('invalid')."""
    if name == "all":
        return list(studies().values())
    if name not in studies():
        raise Trouble("invalid", f"there is no study '{name}'{nearest(name, ['all', *studies()])}")
    return [studies()[name]]


def probe(study: str, nic: str, way: str, size_bytes: int, ranks: int = 2) -> Probe:
    return Probe("", way, nic=nic, study=study, size_bytes=size_bytes, ranks=ranks)


def probes(study: Study) -> list[Probe]:
    return [
        probe(study.name, nic, way, size, ranks)
        for nic in study.nics
        for size in study.sizes_bytes
        for ranks in study.ranks
        for way in study.ways
    ]


def rows(study: Study, lab: Lab) -> list[dict[str, Any]]:
    """Modelled times; the bytes of every point were compared. Raises Trouble for a point without a time."""
    return [
        {
            "study": study.name,
            "nic": each.nic,
            "ranks": each.ranks,
            "size_bytes": each.size_bytes,
            "way": each.strategy,
            **{column: lab[each][column] for column in COLUMNS[5:]},
        }
        for each in probes(study)
    ]
