"""Tables beside the claims on an Ethernet NIC, and of its studies: our numbers, and what FPsPIN's authors
measured.

Contract: TABLES as in observe_programs.py; readings are those of observe_frames.py. TEXTS has, by the class
of a row of station_rows.py, the function that makes its line for people.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spinloom.papers import observe_frames
from spinloom.papers.lab import Probe, Reading
from spinloom.papers.observe_frames import BOARD, STAGED, US, stages_ps
from spinloom.papers.station_rows import Overlap, Ping, Transfer, Window
from spinloom.papers.trial import Trial

Rows = Callable[..., list[dict[str, str]]]


def ping_text(row: Ping) -> dict[str, str]:
    return {
        "protocol": row.protocol,
        "way": row.way,
        "size": f"{row.size_bytes} B",
        "ours": f"{row.time_ps / US:.1f} us",
        "measured": "-" if row.measured_ps is None else f"{row.measured_ps // US} us",
        "handler cycles": "-" if row.handler_cycles is None else f"{row.handler_cycles:.0f}",
        "measured cycles": "-" if row.measured_cycles is None else str(row.measured_cycles),
    }


def stage_rows(readings: list[Reading], **_: Any) -> list[dict[str, str]]:
    trial = Trial(BOARD)
    sums = [stages_ps(trial, reading, size) for size, reading in zip(STAGED, readings, strict=True)]
    sums = [{**each, "sum": sum(each.values())} for each in sums]
    for each, reading in zip(sums, readings, strict=True):
        each["simulated"] = reading["round_trip_ps"]
    return [
        {
            "stage": stage,
            **{f"{size} B": f"{each[stage] / 1000:,.1f} ns" for size, each in zip(STAGED, sums, strict=True)},
        }
        for stage in sums[0]
    ]


def transfer_text(row: Transfer) -> dict[str, str]:
    return {
        "type": row.type,
        "by": row.way,
        "window": str(row.window),
        "messages": str(row.messages),
        "ours": f"{row.mbit_s:.1f} Mbit/s",
        "measured": "-" if row.measured_mbit_s is None else f"{row.measured_mbit_s} Mbit/s",
        "a packet": f"{row.packet_ps / US:.1f} us",
        "sleeps": f"{row.sleeps_a_packet:.2f}",
        "handler": f"{row.handler_cycles:.0f} cycles",
        "at most": f"{row.handler_cycles_max}",
        "writes": f"{row.writes_a_packet:.2f}",
    }


def overlap_text(row: Overlap) -> dict[str, str]:
    return {
        "type": row.type,
        "elements": str(row.elements),
        "overlap": f"{row.overlap_percent:.2f} %",
        "polls": str(row.polls),
        "a poll": f"{row.poll_ps / row.polls / US:.2f} us",
        "time": f"{row.time_ps / 10**9:.1f} ms",
        "without computing": f"{row.alone_ps / 10**9:.1f} ms",
    }


def window_text(row: Window) -> dict[str, str]:
    return {
        "a packet sent": f"{row.send_ps / US:.2f} us",
        "received": f"{row.receive_ps / US:.2f} us",
        "slots": str(row.slots),
        "formula": f"{row.formula:.0f} packets",
        "a window at once loses from": f"{row.first_loss} packets",
        "8 windows lose from": f"{row.first_loss_long} packets",
    }


def table_of_cells(
    cells: Callable[..., list[Probe]], row: type[Any], text: Callable[[Any], dict[str, str]]
) -> Rows:
    def rows(readings: list[Reading], **arguments: Any) -> list[dict[str, str]]:
        probes = cells(Trial(BOARD), **arguments)
        return [text(row.from_reading(*each)) for each in zip(probes, readings, strict=True)]

    return rows


TEXTS: dict[type[Any], Callable[[Any], dict[str, str]]] = {
    Ping: ping_text,
    Transfer: transfer_text,
    Overlap: overlap_text,
    Window: window_text,
}
TABLES: dict[str, Rows] = {
    "pings": table_of_cells(observe_frames.all_pings, Ping, ping_text),
    "stages": stage_rows,
    "slmp": table_of_cells(observe_frames.slmp_cells, Transfer, transfer_text),
    "overlaps": table_of_cells(observe_frames.overlap_cells, Overlap, overlap_text),
    "windows": table_of_cells(observe_frames.window_cells, Window, window_text),
}
