"""Studies of a station with an Ethernet NIC: which cells each kind needs, and what a row of it is.

Contract: KINDS by the name that studies.toml has as `station`. probes(study) are its cells, rows(study, lab)
their numbers in the order of the cells, columns(study) what these are called.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spinloom.papers import frame_tables
from spinloom.papers.lab import Lab, Probe
from spinloom.papers.observe_frames import (
    SEEK,
    SEGMENT,
    TYPES,
    Case,
    overlap_cells,
    ping_probe,
    slmp_cell,
    window_cells,
)
from spinloom.papers.station_rows import Overlap, Ping, Transfer, Window
from spinloom.papers.trial import Trial

if TYPE_CHECKING:
    from spinloom.papers.studies import Study


def pings(trial: Trial, study: Study) -> list[Probe]:
    return [
        ping_probe(trial, protocol, way, size)
        for protocol in study.protocols
        for way in study.ways
        for size in study.sizes_bytes
    ]


def transfers(trial: Trial, study: Study) -> list[Probe]:
    """Cells by segment: more and more messages, windows of one packet; by seeking: one, of any window."""
    (elements,) = study.elements
    cases = [Case(name, SEGMENT, messages) for name in TYPES for messages in study.messages]
    cases += [Case(name, SEEK, 1, window) for name in TYPES for window in study.windows]
    return [slmp_cell(trial, case, elements) for case in cases]


@dataclass(frozen=True)
class Kind:
    row: type[Any]  # a type of station_rows.py
    cells: Callable[[Trial, Study], list[Probe]]


KINDS = {
    "pings": Kind(Ping, pings),
    "slmp": Kind(Transfer, transfers),
    "overlaps": Kind(Overlap, lambda trial, study: overlap_cells(trial, list(study.elements))),
    "windows": Kind(Window, lambda trial, study: window_cells(trial, list(study.send_ns))),
}


def probes(study: Study) -> list[Probe]:
    return [probe for nic in study.nics for probe in KINDS[study.station].cells(Trial(nic), study)]


def columns(study: Study) -> list[str]:
    return ["study", "nic", *(field.name for field in dataclasses.fields(KINDS[study.station].row))]


def rows(study: Study, lab: Lab) -> list[dict[str, Any]]:
    row = KINDS[study.station].row
    return [
        {"study": study.name, "nic": probe.nic, **dataclasses.asdict(row.from_reading(probe, lab[probe]))}
        for probe in probes(study)
    ]


def texts(study: Study, rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Rows of rows() for people."""
    row = KINDS[study.station].row
    text = frame_tables.TEXTS[row]
    return [
        text(row(**{name: value for name, value in each.items() if name not in ("study", "nic")}))
        for each in rows
    ]
