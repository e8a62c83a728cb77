"""Numbers of one cell at a station with an Ethernet NIC, beside what FPsPIN's authors measured.

Contract: from_reading(probe, reading) of each class is pure: a cell of observe_frames.py and its reading in,
numbers out. Times are modelled, in ps, and those named measured are FPsPIN's; None where nobody measured.
"FPsPIN's data" are the medians of the CSV and text files in github.com/spcl/FPsPIN.
"""

from __future__ import annotations

from dataclasses import dataclass

from spinloom.papers.lab import Probe, Reading
from spinloom.papers.observe_frames import SEEK, SEGMENT, SIZES, TYPES, US, mbit_s, overlap_percent

# FPsPIN's data, in us, by protocol and way, along SIZES. What the host answers is an input (stations.toml).
MEASURED_PINGS = {
    ("icmp", "host"): (40, 40, 41, 41, 42),
    ("icmp", "nic"): (27, 32, 47, 67, 83),
    ("icmp", "both"): (39, 31, 46, 53, 59),
    ("udp", "host"): (83, 82, 84, 82, 85),
    ("udp", "nic"): (42, 42, 42, 36, 36),
    ("udp", "both"): (60, 63, 63, 65, 62),
}
MEASURED_CYCLES = {("udp", "nic"): (243, 244, 251, 259, 265), ("udp", "both"): (1079, 1081, 1109, 1136, 1155)}
# FPsPIN's data, in Mbit/s, by type and messages side by side, 20 elements each, a window of one packet.
MEASURED_TYPES = {
    "simple": {1: 74, 4: 290, 8: 578, 16: 1152},
    "complex": {1: 52, 4: 203, 8: 405, 16: 789},
}
# FPsPIN's data, in Mbit/s, by window: files of 13 MB by one thread. The mean from 64 on is an input,
# sender.send of stations.toml.
MEASURED_FILES = {1: 530, 4: 1760, 16: 3590, 64: 3530, 256: 3800, 512: 3910, 1024: 3700}
PAPER_OVERLAP_PERCENT = (
    92,
    94,
)  # the shortest messages; RED-SEA deliverable D4.7, section 4.5.4, figure 29
PAPER_LONG_PERCENT = 99  # long messages have more


def at_size(measured: dict[tuple[str, str], tuple[int, ...]], probe: Probe) -> int | None:
    by_size = measured.get((probe.type, probe.strategy))
    return None if by_size is None else dict(zip(SIZES, by_size, strict=True)).get(probe.size_bytes)


def type_name(probe: Probe) -> str:
    return next(name for name, text in TYPES.items() if text == probe.type)


@dataclass(frozen=True)
class Ping:
    protocol: str
    way: str
    size_bytes: int  # payload
    time_ps: int  # round trip, median
    measured_ps: int | None
    handler_cycles: float | None  # a handler, the mean
    measured_cycles: int | None

    @staticmethod
    def from_reading(probe: Probe, reading: Reading) -> Ping:
        measured, handlers = at_size(MEASURED_PINGS, probe), reading["handlers"]
        return Ping(
            protocol=probe.type,
            way=probe.strategy,
            size_bytes=probe.size_bytes,
            time_ps=reading["round_trip_ps"],
            measured_ps=None if measured is None else measured * US,
            handler_cycles=round(reading["handler_cycles"] / handlers, 2) if handlers else None,
            measured_cycles=at_size(MEASURED_CYCLES, probe),
        )


@dataclass(frozen=True)
class Transfer:
    """Messages of a datatype side by side."""

    type: str
    way: str  # segment, seek
    window: int  # packets
    messages: int
    message_bytes: int
    time_ps: int
    mbit_s: float
    measured_mbit_s: int | None
    file_mbit_s: int | None  # measured with a file instead of a datatype
    packet_ps: int  # a packet of a message
    sleeps_a_packet: float  # the sender's sleeps
    handler_cycles: float  # a handler, the mean
    handler_cycles_max: int
    writes_a_packet: float  # writes to host memory

    @staticmethod
    def from_reading(probe: Probe, reading: Reading) -> Transfer:
        packets = reading["packets"]
        alone = probe.strategy == SEEK and probe.ranks == 1
        measured = MEASURED_TYPES[type_name(probe)] if probe.strategy == SEGMENT else {}
        return Transfer(
            type=type_name(probe),
            way=probe.strategy.removeprefix("frame_ddt_"),
            window=probe.window,
            messages=probe.ranks,
            message_bytes=reading["bytes"] // probe.ranks,
            time_ps=reading["time_ps"],
            mbit_s=round(mbit_s(reading), 2),
            measured_mbit_s=measured.get(probe.ranks),
            file_mbit_s=MEASURED_FILES.get(probe.window) if alone else None,
            packet_ps=reading["time_ps"] * probe.ranks // packets,
            sleeps_a_packet=round(reading["sleeps"] / packets, 4),
            handler_cycles=round(reading["handler_cycles"] / reading["handlers"], 2),
            handler_cycles_max=reading["handler_cycles_max"],
            writes_a_packet=round(reading["pieces"] / packets, 4),
        )


@dataclass(frozen=True)
class Overlap:
    """16 messages side by side while the host computes."""

    type: str
    elements: int
    message_bytes: int
    overlap_percent: float  # computing over computing and polling
    polls: int
    poll_ps: int  # all of them
    time_ps: int
    alone_ps: int  # the same messages while the host only waits

    @staticmethod
    def from_reading(probe: Probe, reading: Reading) -> Overlap:
        return Overlap(
            type=type_name(probe),
            elements=probe.count,
            message_bytes=reading["bytes"] // probe.ranks,
            overlap_percent=round(overlap_percent(reading), 4),
            polls=reading["polls"],
            poll_ps=reading["poll_ps"],
            time_ps=reading["time_ps"],
            alone_ps=reading["alone_ps"],
        )


@dataclass(frozen=True)
class Window:
    """Packets, from which window on some are lost."""

    send_ps: int  # a packet
    receive_ps: int
    slots: int  # the slots of the receiver's packet memory
    formula: float  # (3) of RED-SEA deliverable D4.7, section 4.4.2
    first_loss: int  # the number for one window, sent at once
    first_loss_long: int  # the number for a message of 8 windows

    @staticmethod
    def from_reading(probe: Probe, reading: Reading) -> Window:
        return Window(
            send_ps=reading["send_ps"],
            receive_ps=round(reading["receive_ps"]),
            slots=reading["slots"],
            formula=round(reading["formula"], 2),
            first_loss=reading["first_loss"],
            first_loss_long=reading["first_loss_long"],
        )
