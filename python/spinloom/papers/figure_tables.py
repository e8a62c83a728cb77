"""Figures as tables: figures.toml says which cells; here they become probes, then rows of numbers.

Contract: figures() lists the figures by name. cells(figure, quick) are the cells to simulate; rows(figure,
quick, lab) is the long-format table, one row for each point, from the lab's readings. A point without a
number keeps its row: status says "not available" and message why.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spinloom.common.errors import Trouble, nearest
from spinloom.nics import preparation, workloads
from spinloom.nics.profiles import Profile
from spinloom.nics.strategies import BASELINE
from spinloom.papers import lab, observe
from spinloom.papers.lab import Lab, Probe, Reading, vector

US, KIB = 10**6, 1024
COPIES, BUSY = "copies", "busy"


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    source: str
    axis: str
    strategies: tuple[str, ...]
    measure: str
    plot: str
    y_label: str
    x_label: str = ""
    values: tuple[int, ...] = ()
    quick: tuple[int, ...] = ()
    services_ns: tuple[int, ...] = ()  # times for which a packet holds an HPU
    nics: tuple[str, ...] = (lab.NIC,)
    preloaded: tuple[str, ...] = ()  # NICs on which all packets lie at time zero
    hpus: int = observe.HPUS
    message_bytes: int = observe.MESSAGE
    y_scale: str = "linear"
    line: str = ""


@dataclass(frozen=True)
class Cell:
    """One probe of a figure, its place on the axis, and the baseline's probe, or again its own."""

    x: int | str
    group: str
    nic: str
    strategy: str
    probe: Probe
    baseline: Probe


@cache
def figures() -> dict[str, Figure]:
    path = Path(__file__).with_name("figures.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["figure"]
    all_figures = [
        Figure(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})
        for table in tables
    ]
    return {figure.name: figure for figure in all_figures}


def figures_named(name: str) -> list[Figure]:
    """One figure, or all of them. Raises Trouble('invalid')."""
    if name == "all":
        return list(figures().values())
    if name not in figures():
        raise Trouble("invalid", f"there is no figure '{name}'{nearest(name, ['all', *figures()])}")
    return [figures()[name]]


def cells(figure: Figure, quick: bool) -> list[Cell]:
    if figure.services_ns:
        return list(busy_cells(figure, quick))
    return list(row_cells(figure, quick) if figure.axis == "row" else sweep_cells(figure, quick))


def busy_cells(figure: Figure, quick: bool) -> Iterator[Cell]:
    nic = figure.nics[0]
    for service_ns in figure.services_ns:
        for value in figure.quick if quick else figure.values:
            probe = Probe("", BUSY, nic=nic, size_bytes=value, service_ps=1000 * service_ns)
            yield Cell(value, "", nic, BUSY, probe, probe)


def row_cells(figure: Figure, quick: bool) -> Iterator[Cell]:
    for row in workloads.demo() if quick else workloads.paper():
        baseline = lab.row_probe(row, BASELINE)
        for strategy in figure.strategies:
            probe = lab.row_probe(row, strategy)
            yield Cell(row.datatype, row.application, lab.NIC, strategy, probe, baseline)


def sweep_cells(figure: Figure, quick: bool) -> Iterator[Cell]:
    for nic in figure.nics:
        for strategy in figure.strategies:
            for value in figure.quick if quick else figure.values:
                block_bytes, hpus, copies_bytes = observe.PACKET, figure.hpus, 0
                if strategy == COPIES:
                    copies_bytes = value
                elif figure.axis == "block_bytes":
                    block_bytes = value
                elif figure.axis in ("gamma", "time"):
                    block_bytes = observe.PACKET // value
                elif figure.axis == "hpus":
                    hpus = value
                record = ("sample_dma_queue",) if figure.axis == "time" else ()
                if nic in figure.preloaded:
                    record = (*record, "preloaded")
                datatype = vector(block_bytes, figure.message_bytes)
                if figure.axis == "put_bytes":
                    datatype = f"contig({value}, byte)"
                probe = Probe(
                    datatype, strategy, nic=nic, hpus=hpus, record=record, copies_bytes=copies_bytes
                )
                yield Cell(value, "", nic, strategy, probe, probe)


# ---- measures: (profile, strategy, reading, baseline's reading) -> columns of the row ----

Measure = Callable[[Profile, str, Reading, Reading], dict[str, Any]]


def throughput(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    if "processing_time_ps" in reading.columns:  # packets lie on the NIC already, without a network
        return {"value": reading["size_bytes"] * 8000 / reading["processing_time_ps"]}
    return {"value": observe.throughput_gbit_s(profile, strategy, reading)}


def put_ns(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    return {"value": (observe.link_ps(profile) + reading["data_time_ps"]) / 1000}


def copied(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    return {"value": reading["bytes"] * 8000 / reading["time_ps"]}


def instructions_a_cycle(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    return {"value": reading["handler_instructions_per_packet"] / reading["handler_cycles_per_packet"]}


def received(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    return {"value": observe.gib_s(reading)}


def handler_ns(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    cycle_ns = 1e9 / profile["hpu.clock"]
    before = reading["handler_first_call_cycles_per_packet"] * cycle_ns
    total_ns = reading["handler_cycles_per_packet"] * cycle_ns
    return {"value": total_ns, "before_first_call_ns": before, "after_ns": total_ns - before}


def dma_queue_peak(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    return {"value": reading["dma_queue_peak"], "dma_writes": reading["dma_writes"]}


def dma_queue(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    return {"series": reading["dma_queue"]}


def nic_memory(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    return {"value": reading["nic_memory_bytes"] / KIB}


def speedup(profile: Profile, strategy: str, reading: Reading, baseline: Reading) -> dict[str, Any]:
    return {
        "value": baseline["time_ps"] / reading["time_ps"],
        "baseline_time_ps": baseline["time_ps"],
        "nic_memory_bytes": reading["nic_memory_bytes"],
    }


def volume(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    return {"value": observe.volume_bytes(profile, strategy, reading) / KIB}


def reuses(profile: Profile, strategy: str, reading: Reading, baseline: Reading) -> dict[str, Any]:
    if strategy == BASELINE:
        return {"value": 0}
    return {
        "value": observe.reuses(profile, baseline, reading),
        "preparation_ps": round(preparation.preparation_ps(profile, reading)),
        "gain_ps": baseline["time_ps"] - reading["time_ps"],
    }


def hpus_needed(profile: Profile, strategy: str, reading: Reading, _: Reading) -> dict[str, Any]:
    if not reading["hpus"]:
        raise Trouble("unsupported", f"not even {reading['hpus_max']} HPUs keep up")
    return {"value": reading["hpus"], "hpus_by_law": reading["hpus_by_law"]}


MEASURES: dict[str, Measure] = {
    "throughput_gbit_s": throughput,
    "put_ns": put_ns,
    "copied_gbit_s": copied,
    "hpus_needed": hpus_needed,
    "instructions_a_cycle": instructions_a_cycle,
    "received_gib_s": received,
    "handler_ns": handler_ns,
    "dma_queue_peak": dma_queue_peak,
    "dma_queue": dma_queue,
    "nic_memory_kib": nic_memory,
    "speedup": speedup,
    "volume_kib": volume,
    "reuses": reuses,
}


def rows(figure: Figure, quick: bool, laboratory: Lab) -> list[dict[str, Any]]:
    """The long-format table; `value` is in the unit of the figure's measure, modelled time throughout."""
    return [row for cell in cells(figure, quick) for row in rows_of(figure, cell, laboratory)]


def rows_of(figure: Figure, cell: Cell, laboratory: Lab) -> Iterator[dict[str, Any]]:
    columns = {"figure": figure.name, "nic": cell.nic, "strategy": cell.strategy, figure.axis: cell.x}
    if cell.group:
        columns = {
            "figure": figure.name,
            "application": cell.group,
            "datatype": cell.x,
            "strategy": cell.strategy,
        }
    if cell.probe.service_ps:
        columns["service_ns"] = cell.probe.service_ps // 1000
    reading, baseline = laboratory[cell.probe], laboratory[cell.baseline]
    try:
        if not reading.available:
            raise Trouble("unsupported", reading.reason)
        profile = lab.profile_of(cell.probe.nic)
        measured = MEASURES[figure.measure](profile, cell.strategy, reading, baseline)
    except Trouble as trouble:
        yield {**columns, figure.measure: None, "status": "not available", "message": trouble.message}
        return
    message_columns = {
        name: reading[name]
        for name in ("size_bytes", "blocks_per_packet", "time_ps")
        if name in reading.columns
    }
    if "series" in measured:
        for time_ps, depth in measured["series"]:
            yield {
                **columns,
                "interval_start_ps": time_ps,
                figure.measure: depth,
                "status": "ok",
                "message": "",
            }
        return
    value = measured.pop("value")
    yield {**columns, figure.measure: value, **measured, **message_columns, "status": "ok", "message": ""}


def line_of(figure: Figure) -> float | None:
    """A horizontal line of the plot: line rate is 1 / link.byte_time."""
    if figure.line != "line_rate_gbit_s":
        return None
    return float(8000 / lab.profile_of(figure.nics[0])["link.byte_time"])
