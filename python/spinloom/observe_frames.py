"""Observations on an Ethernet NIC: pings, datatypes over SLMP, overlap, windows; FPsPIN's numbers beside.

Contract: that of observe.py, whose table has them. TABLES as in observe_programs.py.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from spinloom import stations
from spinloom.lab import PING, SLMP, WINDOW, Probe, Reading
from spinloom.trial import Observation, Trial

SIZES = (16, 116, 516, 1016, 1416)  # B of payload
WAYS = ("host", "nic", "both")
SIMPLE = "contig(27648, float)"
COMPLEX = (
    "hvector(2, 1, 18432B, hvector(2, 1, 12288B, hvector(2, 1, 6144B, vector(32, 6, 8, contig(18, float)))))"
)
TYPES = {"simple": SIMPLE, "complex": COMPLEX}
SEGMENT, SEEK = "frame_ddt_segment", "frame_ddt_seek"
US = 10**6  # ps

# Medians of FPsPIN's data, in us, by protocol and way, along SIZES.
MEASURED_PINGS = {
    ("icmp", "host"): (40, 40, 41, 41, 42),
    ("icmp", "nic"): (27, 32, 47, 67, 83),
    ("icmp", "both"): (39, 31, 46, 53, 59),
    ("udp", "host"): (83, 82, 84, 82, 85),
    ("udp", "nic"): (42, 42, 42, 36, 36),
    ("udp", "both"): (60, 63, 63, 65, 62),
}
# Gbit/s of FPsPIN's data, by type and messages side by side, 20 elements each.
MEASURED_GBIT_S = {
    "simple": {1: 0.074, 4: 0.290, 8: 0.578, 16: 1.152},
    "complex": {1: 0.052, 4: 0.203, 8: 0.405, 16: 0.789},
}


# ---- pings ----


def ping_probe(trial: Trial, protocol: str, way: str, size_bytes: int) -> Probe:
    return replace(trial.probe(protocol, way), study=PING, size_bytes=size_bytes)


def all_pings(trial: Trial, **_: Any) -> list[Probe]:
    return [ping_probe(trial, protocol, way, size) for protocol, way in MEASURED_PINGS for size in SIZES]


def round_trips(readings: list[Reading], protocol: str, way: str) -> list[int]:
    """Along SIZES."""
    first = list(MEASURED_PINGS).index((protocol, way)) * len(SIZES)
    return [reading["round_trip_ps"] for reading in readings[first : first + len(SIZES)]]


def gains_us(readings: list[Reading], protocol: str, way: str) -> list[float]:
    """How much shorter than the host's own answers, along SIZES."""
    host, other = (round_trips(readings, protocol, each) for each in ("host", way))
    return [(before - after) / US for before, after in zip(host, other, strict=True)]


def r_squared(trial: Trial, readings: list[Reading], protocol: str, way: str) -> float:
    return statistics.correlation(SIZES, round_trips(readings, protocol, way)) ** 2


def ping_rows(readings: list[Reading], **_: Any) -> list[dict[str, str]]:
    rows = []
    for place, (protocol, way) in enumerate(MEASURED_PINGS):
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
                }
            )
    return rows


# ---- the sum of the stages ----


def stage_sum_ps(trial: Trial, reading: Reading, size_bytes: int) -> int:
    """The price of each stage that a UDP ping passes, in turn."""
    profile = trial.profile
    prices = {
        field: int(profile[field])
        for field in profile.entries
        if field.split(".")[0] in ("frame", "pulp", "scheduler", "match", "hpu") and field != "hpu.core"
        if not isinstance(profile[field], str)
    }
    frame = max(size_bytes + 42, prices["frame.bytes_min"])
    cycle = 10**12 // prices["hpu.clock"]
    cable = int((frame + 24) * Fraction(profile["link.byte_time"]) + int(profile["link.wire"]))
    beyond = (frame - prices["frame.bytes_min"]) * (prices["frame.ingress_max"] - prices["frame.ingress_min"])
    ingress = prices["frame.ingress_min"] - (
        -beyond // (prices["frame.bytes_max"] - prices["frame.bytes_min"])
    )
    to_core = prices["pulp.dma_setup"] - (-frame // prices["pulp.dma_width"])
    out = -(-frame // prices["pulp.port_width"]) + prices["pulp.send_latency"]
    handler = reading["to_send_cycles"] // reading["handlers"]
    started = prices["scheduler.dispatch_cycles"] + to_core + prices["scheduler.start_cycles"]
    return (
        2 * (stations.station("ping.udp") // 4 + cable)
        + prices["match.header"]
        + cycle * (ingress + started + handler + out)
    )


def stage_error_ns(trial: Trial, readings: list[Reading], size_bytes: int) -> float:
    """Of the whole round trip over the sum of its stages; a handler starts on the next tick of its clock."""
    return (readings[0]["round_trip_ps"] - stage_sum_ps(trial, readings[0], size_bytes)) / 1000


# ---- datatypes ----


def slmp_probe(
    trial: Trial, type_name: str, elements: int, messages: int, image: str = SEGMENT, polls: int = 0
) -> Probe:
    made = trial.probe(TYPES[type_name], image, count=elements)
    return replace(made, study=SLMP, ranks=messages, polls=polls)


def slmp_cells(
    trial: Trial, type_name: str, elements: int, messages: list[int], image: str = SEGMENT
) -> list[Probe]:
    return [slmp_probe(trial, type_name, elements, each, image) for each in messages]


def mbit_s(reading: Reading) -> float:
    return reading["bytes"] * 8 * US / reading["time_ps"]


def scaling(trial: Trial, readings: list[Reading], messages: tuple[int, ...], **_: Any) -> float:
    """The throughput of a message beside the most others, over that of one beside the fewest."""
    first, last = readings[0], readings[-1]
    return mbit_s(last) / messages[-1] / (mbit_s(first) / messages[0])


def packet_handler_us(trial: Trial, readings: list[Reading], **_: Any) -> float:
    reading = readings[-1]
    return reading["handler_cycles_max"] / trial.profile["hpu.clock"] * 10**6


def sleeps_a_packet(trial: Trial, readings: list[Reading], **_: Any) -> float:
    return readings[-1]["sleeps"] / readings[-1]["packets"]


def slmp_rows(
    readings: list[Reading], type_name: str, messages: tuple[int, ...], **_: Any
) -> list[dict[str, str]]:
    return [
        {
            "type": type_name,
            "messages": str(each),
            "ours": f"{mbit_s(reading):.1f} Mbit/s",
            "measured": f"{1000 * MEASURED_GBIT_S[type_name][each]:.0f} Mbit/s (20 elements)"
            if each in MEASURED_GBIT_S[type_name]
            else "-",
            "a packet": f"{reading['time_ps'] * each / reading['packets'] / US:.1f} us",
            "handler": f"{reading['handler_cycles'] / reading['handlers']:.0f} cycles",
            "writes": f"{reading['pieces'] / reading['packets']:.2f} a packet",
        }
        for each, reading in zip(messages, readings, strict=True)
    ]


def overlap_cells(trial: Trial, type_name: str, elements: list[int]) -> list[Probe]:
    return [slmp_probe(trial, type_name, each, 16, polls=stations.station("host.polls")) for each in elements]


def overlap_percent(reading: Reading) -> float:
    return 100 * reading["compute_ps"] / (reading["compute_ps"] + reading["poll_ps"])


def overlap_rows(readings: list[Reading], type_name: str, elements: tuple[int, ...]) -> list[dict[str, str]]:
    return [
        {
            "type": type_name,
            "elements": str(each),
            "overlap": f"{overlap_percent(reading):.2f} %",
            "polls": str(reading["polls"]),
            "a poll": f"{reading['poll_ps'] / reading['polls'] / US:.2f} us",
            "time": f"{reading['time_ps'] / 10**9:.1f} ms",
            "without computing": f"{reading['alone_ps'] / 10**9:.1f} ms",
        }
        for each, reading in zip(elements, readings, strict=True)
    ]


# ---- windows ----


def window_cells(trial: Trial, send_ns: list[int]) -> list[Probe]:
    return [replace(trial.probe("", SEEK), study=WINDOW, service_ps=1000 * each) for each in send_ns]


def window_error_percent(trial: Trial, readings: list[Reading], **_: Any) -> float:
    """How far the first window that loses packets is from the formula's, at most."""
    return max(100 * abs(reading["first_loss"] / reading["formula"] - 1) for reading in readings)


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


OBSERVATIONS: dict[str, Observation] = {
    "least_ping_gain_us": Observation(
        all_pings, lambda trial, readings, protocol, way: min(gains_us(readings, protocol, way))
    ),
    "largest_ping_gain_us": Observation(
        all_pings, lambda trial, readings, protocol, way: max(gains_us(readings, protocol, way))
    ),
    "ping_linear": Observation(all_pings, r_squared),
    "stage_error_ns": Observation(
        lambda trial, size_bytes: [ping_probe(trial, "udp", "nic", size_bytes)], stage_error_ns
    ),
    "profile_cycles": Observation(
        lambda trial, field: [],
        lambda trial, readings, field: float(trial.profile[field]),
    ),
    "slmp_mbit_s": Observation(slmp_cells, lambda trial, readings, **_: mbit_s(readings[-1])),
    "slmp_scaling": Observation(slmp_cells, scaling),
    "packet_handler_us": Observation(slmp_cells, packet_handler_us),
    "sleeps_a_packet": Observation(slmp_cells, sleeps_a_packet),
    "least_overlap_percent": Observation(
        overlap_cells, lambda trial, readings, **_: min(map(overlap_percent, readings))
    ),
    "window_error_percent": Observation(window_cells, window_error_percent),
}

TABLES: dict[str, Callable[..., list[dict[str, str]]]] = {
    "pings": ping_rows,
    "slmp": slmp_rows,
    "overlaps": overlap_rows,
    "windows": window_rows,
}
