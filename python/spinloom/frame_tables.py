"""Tables beside the claims on an Ethernet NIC: our numbers, and what FPsPIN's authors measured.

Contract: TABLES as in observe_programs.py; readings are those of observe_frames.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from spinloom.lab import Reading
from spinloom.observe_frames import (
    BOARD,
    CASES,
    PINGS,
    SEGMENT,
    SIZES,
    STAGED,
    TYPES,
    US,
    mbit_s,
    overlap_percent,
    stages_ps,
)
from spinloom.trial import Trial

# Medians of FPsPIN's data, in us, by protocol and way, along SIZES.
MEASURED_PINGS = {
    ("icmp", "host"): (40, 40, 41, 41, 42),
    ("icmp", "nic"): (27, 32, 47, 67, 83),
    ("icmp", "both"): (39, 31, 46, 53, 59),
    ("udp", "host"): (83, 82, 84, 82, 85),
    ("udp", "nic"): (42, 42, 42, 36, 36),
    ("udp", "both"): (60, 63, 63, 65, 62),
}
MEASURED_CYCLES = {"nic": (243, 244, 251, 259, 265), "both": (1079, 1081, 1109, 1136, 1155)}  # of UDP
# Gbit/s of FPsPIN's data, by type and messages side by side, 20 elements each.
MEASURED_GBIT_S = {
    "simple": {1: 0.074, 4: 0.290, 8: 0.578, 16: 1.152},
    "complex": {1: 0.052, 4: 0.203, 8: 0.405, 16: 0.789},
}


def ping_rows(readings: list[Reading], **_: Any) -> list[dict[str, str]]:
    rows = []
    for place, (protocol, way) in enumerate(PINGS):
        for at, size in enumerate(SIZES):
            reading = readings[place * len(SIZES) + at]
            cycles = reading["handler_cycles"] / reading["handlers"] if reading["handlers"] else None
            rows.append(
                {
                    "protocol": protocol,
                    "way": way,
                    "size": f"{size} B",
                    "ours": f"{reading['round_trip_ps'] / US:.1f} us",
                    "measured": f"{MEASURED_PINGS[protocol, way][at]} us",
                    "handler cycles": "-" if cycles is None else f"{cycles:.0f}",
                    "measured cycles": str(MEASURED_CYCLES[way][at])
                    if protocol == "udp" and way in MEASURED_CYCLES
                    else "-",
                }
            )
    return rows


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


def slmp_rows(readings: list[Reading], **_: Any) -> list[dict[str, str]]:
    rows = []
    for case, reading in zip(CASES, readings, strict=True):
        told = MEASURED_GBIT_S[case.type_name].get(case.messages) if case.image == SEGMENT else None
        rows.append(
            {
                "type": case.type_name,
                "by": case.image.removeprefix("frame_ddt_"),
                "window": str(case.window),
                "messages": str(case.messages),
                "ours": f"{mbit_s(reading):.1f} Mbit/s",
                "measured": "-" if told is None else f"{1000 * told:.0f} Mbit/s",
                "a packet": f"{reading['time_ps'] * case.messages / reading['packets'] / US:.1f} us",
                "sleeps": f"{reading['sleeps'] / reading['packets']:.2f}",
                "handler": f"{reading['handler_cycles'] / reading['handlers']:.0f} cycles",
                "at most": f"{reading['handler_cycles_max']}",
                "writes": f"{reading['pieces'] / reading['packets']:.2f}",
            }
        )
    return rows


def overlap_rows(readings: list[Reading], elements: tuple[int, ...]) -> list[dict[str, str]]:
    return [
        {
            "type": name,
            "elements": str(each),
            "overlap": f"{overlap_percent(reading):.2f} %",
            "polls": str(reading["polls"]),
            "a poll": f"{reading['poll_ps'] / reading['polls'] / US:.2f} us",
            "time": f"{reading['time_ps'] / 10**9:.1f} ms",
            "without computing": f"{reading['alone_ps'] / 10**9:.1f} ms",
        }
        for (name, each), reading in zip(itertools.product(TYPES, elements), readings, strict=True)
    ]


def window_rows(readings: list[Reading], **_: Any) -> list[dict[str, str]]:
    return [
        {
            "a packet sent": f"{reading['send_ps'] / US:.2f} us",
            "received": f"{reading['receive_ps'] / US:.2f} us",
            "slots": str(reading["slots"]),
            "formula": f"{reading['formula']:.0f} packets",
            "a window at once loses from": f"{reading['first_loss']} packets",
            "8 windows lose from": f"{reading['first_loss_long']} packets",
        }
        for reading in readings
    ]


TABLES: dict[str, Callable[..., list[dict[str, str]]]] = {
    "pings": ping_rows,
    "stages": stage_rows,
    "slmp": slmp_rows,
    "overlaps": overlap_rows,
    "windows": window_rows,
}
