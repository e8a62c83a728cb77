"""Observations on an Ethernet NIC: pings, datatypes over SLMP, overlap, windows.

Contract: that of observe.py, whose table has them. station_rows.py has them beside FPsPIN's numbers,
frame_tables.py for people.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from spinloom.papers import stations
from spinloom.papers.lab import PING, SLMP, WINDOW, Probe, Reading
from spinloom.papers.trial import Observation, Trial

BOARD = "fpspin-vcu1525"
STAGED = (16, 1416)
SIZES = (16, 116, 516, 1016, 1416)  # B of payload
WAYS = ("host", "nic", "both")
SIMPLE = "contig(27648, float)"
COMPLEX = (
    "hvector(2, 1, 18432B, hvector(2, 1, 12288B, hvector(2, 1, 6144B, vector(32, 6, 8, contig(18, float)))))"
)
TYPES = {"simple": SIMPLE, "complex": COMPLEX}
SEGMENT, SEEK = "frame_ddt_segment", "frame_ddt_seek"
US = 10**6  # ps
PINGS = [(protocol, way) for protocol in ("icmp", "udp") for way in WAYS]


# ---- pings ----


def ping_probe(trial: Trial, protocol: str, way: str, size_bytes: int) -> Probe:
    return replace(trial.probe(protocol, way), study=PING, size_bytes=size_bytes)


def all_pings(trial: Trial, **_: Any) -> list[Probe]:
    return [ping_probe(trial, protocol, way, size) for protocol, way in PINGS for size in SIZES]


def round_trips(readings: list[Reading], protocol: str, way: str) -> list[int]:
    """Along SIZES."""
    first = PINGS.index((protocol, way)) * len(SIZES)
    return [reading["round_trip_ps"] for reading in readings[first : first + len(SIZES)]]


def gains_us(readings: list[Reading], protocol: str, way: str) -> list[float]:
    """Returns how much shorter round trips are than by the host's own answers, in us, along SIZES."""
    host, other = (round_trips(readings, protocol, each) for each in ("host", way))
    return [(before - after) / US for before, after in zip(host, other, strict=True)]


def trapped_gain_us(trial: Trial, readings: list[Reading], protocol: str, way: str) -> float:
    """The largest gain, if our handlers read a cycle counter by traps as FPsPIN's do."""
    traps = stations.station(f"traps.{way}") * stations.station("traps.cost")
    return max(gains_us(readings, protocol, way)) - traps * US / int(trial.profile["hpu.clock"])


def r_squared(trial: Trial, readings: list[Reading], protocol: str, way: str) -> float:
    return statistics.correlation(SIZES, round_trips(readings, protocol, way)) ** 2


# ---- the sum of the stages ----


def stages_ps(trial: Trial, reading: Reading, size_bytes: int) -> dict[str, int]:
    """The price of each stage that a UDP ping passes, in turn."""
    profile = trial.profile
    prices = {field: value for field, value in profile.native().items() if isinstance(value, int)}
    frame = max(size_bytes + 42, prices["frame.bytes_min"])
    cycle = 10**12 // prices["hpu.clock"]
    cable = int((frame + 24) * Fraction(profile["link.byte_time"])) + prices["link.wire"]
    more = (frame - prices["frame.bytes_min"]) * (prices["frame.ingress_max"] - prices["frame.ingress_min"])
    ingress = prices["frame.ingress_min"] - (-more // (prices["frame.bytes_max"] - prices["frame.bytes_min"]))
    to_core = prices["pulp.dma_setup"] - (-frame // prices["pulp.dma_width"])
    out = -(-frame // prices["pulp.port_width"]) + prices["pulp.send_latency"]
    return {
        "client": 2 * (stations.station("ping.udp") // 4),
        "cables": 2 * cable,
        "matching": prices["match.header"],
        "copy to packet memory": cycle * ingress,
        "task": cycle * (prices["scheduler.dispatch_cycles"] + prices["scheduler.start_cycles"]),
        "copy to the cluster": cycle * to_core,
        "handler, until it sends": cycle * (reading["to_send_cycles"] // reading["handlers"]),
        "way out": cycle * out,
    }


def stage_error_ns(trial: Trial, readings: list[Reading], size_bytes: int) -> float:
    """The round trip less the sum of its stages, ns; handlers start on a tick of a clock."""
    at = STAGED.index(size_bytes)
    return (readings[at]["round_trip_ps"] - sum(stages_ps(trial, readings[at], size_bytes).values())) / 1000


def staged_pings(trial: Trial, **_: Any) -> list[Probe]:
    return [ping_probe(trial, "udp", "nic", size) for size in STAGED]


# ---- datatypes ----

ELEMENTS = {"simple": 18, "complex": 10}  # the elements of the paper's peaks
MESSAGES = (1, 4, 8, 16)


@dataclass(frozen=True)
class Case:
    type_name: str
    image: str
    messages: int
    window: int = 1


# By a segment as FPsPIN does; then by seeking, which needs no order and so no window of one packet.
CASES = [
    *(Case(name, SEGMENT, messages) for name in TYPES for messages in MESSAGES),
    *(Case(name, SEEK, 1, window) for name in TYPES for window in (1, 64)),
]


def slmp_cell(trial: Trial, case: Case, elements: int) -> Probe:
    probe = trial.probe(TYPES[case.type_name], case.image, count=elements)
    return replace(probe, study=SLMP, ranks=case.messages, window=case.window)


def slmp_cells(trial: Trial, **_: Any) -> list[Probe]:
    return [slmp_cell(trial, case, ELEMENTS[case.type_name]) for case in CASES]


def mbit_s(reading: Reading) -> float:
    return reading["bytes"] * 8 * US / reading["time_ps"]


def segment_readings(readings: list[Reading], type_name: str) -> list[Reading]:
    """Along MESSAGES."""
    return [
        reading
        for case, reading in zip(CASES, readings, strict=True)
        if (case.type_name, case.image) == (type_name, SEGMENT)
    ]


def scaling(trial: Trial, readings: list[Reading], type_name: str) -> float:
    """The throughput of a message beside the most others, over that of one alone."""
    by_messages = segment_readings(readings, type_name)
    return mbit_s(by_messages[-1]) / MESSAGES[-1] / mbit_s(by_messages[0])


def longest_handler_us(trial: Trial, readings: list[Reading], type_name: str) -> float:
    cycles = max(reading["handler_cycles_max"] for reading in segment_readings(readings, type_name))
    return cycles * US / int(trial.profile["hpu.clock"])


def sleeps_a_packet(trial: Trial, readings: list[Reading], type_name: str) -> float:
    return max(reading["sleeps"] / reading["packets"] for reading in segment_readings(readings, type_name))


def overlap_cells(trial: Trial, elements: list[int], **_: Any) -> list[Probe]:
    """The types one after the other, 16 messages, by a segment."""
    polls = stations.station("host.polls")
    return [
        replace(trial.probe(text, SEGMENT, count=each), study=SLMP, ranks=16, polls=polls)
        for text in TYPES.values()
        for each in elements
    ]


def overlap_percent(reading: Reading) -> float:
    return 100 * reading["compute_ps"] / (reading["compute_ps"] + reading["poll_ps"])


def least_overlap(trial: Trial, readings: list[Reading], **_: Any) -> float:
    return min(map(overlap_percent, readings))


# ---- windows ----


def window_cells(trial: Trial, send_ns: list[int]) -> list[Probe]:
    return [replace(trial.probe("", SEEK), study=WINDOW, service_ps=1000 * each) for each in send_ns]


def window_error_percent(trial: Trial, readings: list[Reading], **_: Any) -> float:
    """Returns how far the first window that loses packets is from the formula's, at most."""
    return max(100 * abs(reading["first_loss"] / reading["formula"] - 1) for reading in readings)


OBSERVATIONS: dict[str, Observation] = {
    "least_ping_gain_us": Observation(
        all_pings, lambda trial, readings, protocol, way: min(gains_us(readings, protocol, way))
    ),
    "largest_ping_gain_us": Observation(
        all_pings, lambda trial, readings, protocol, way: max(gains_us(readings, protocol, way))
    ),
    "trapped_ping_gain_us": Observation(all_pings, trapped_gain_us),
    "ping_linear": Observation(all_pings, r_squared),
    "stage_error_ns": Observation(staged_pings, stage_error_ns),
    "slmp_mbit_s": Observation(
        slmp_cells, lambda trial, readings, type_name: mbit_s(segment_readings(readings, type_name)[-1])
    ),
    "slmp_scaling": Observation(slmp_cells, scaling),
    "longest_handler_us": Observation(slmp_cells, longest_handler_us),
    "sleeps_a_packet": Observation(slmp_cells, sleeps_a_packet),
    "least_overlap_percent": Observation(overlap_cells, least_overlap),
    "window_error_percent": Observation(window_cells, window_error_percent),
}
