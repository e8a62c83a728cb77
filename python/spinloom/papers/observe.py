"""Observations: single numbers computed from simulated cells, by name, for claims and figures.

Contract: OBSERVATIONS[name] is an Observation (trial.py): here those on cells of one message, with those of
observe_programs.py and observe_frames.py. Nothing here runs anything.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spinloom.common.errors import Trouble
from spinloom.handlers import busy
from spinloom.nics import preparation
from spinloom.nics.profiles import Profile
from spinloom.nics.strategies import BASELINE
from spinloom.papers import observe_frames, observe_programs
from spinloom.papers.lab import Probe, Reading, vector
from spinloom.papers.trial import Observation, Trial, grouped

MESSAGE = 4 << 20  # bytes; the SC'19 paper's microbenchmarks
HPUS = 16  # the SC'19 paper's figures 8 and 12 to 15
PACKET = 2048
PS_PER_S = 10**12


# ---- numbers of a profile ----


def link_ps(profile: Profile) -> int:
    """The time of a first byte between two NICs."""
    return profile["link.switch"] + profile["link.wire"]


def ready_to_receive_ps(profile: Profile) -> int:
    """Time from the host's ready-to-receive until the message's first byte is at its NIC: the command
    crosses PCIe and the link, the sender's NIC matches it and reads its host's memory, and the byte comes
    back."""
    return (
        profile["host.command_latency"]
        + 2 * link_ps(profile)
        + profile["match.header"]
        + 2 * profile["pcie.latency"]
    )


# ---- single cells ----


def throughput_gbit_s(profile: Profile, strategy: str, reading: Reading) -> float:
    """Receive throughput as figure 8 defines it: from ready-to-receive to the last byte in its place."""
    unpacked_by_host = strategy.startswith("host")
    done = reading["time_ps"] if unpacked_by_host else reading["data_time_ps"]
    return reading["size_bytes"] * 8 * 1000 / (ready_to_receive_ps(profile) + done)


def line_rate_part(reading: Reading) -> float:
    return reading["line_time_ps"] / reading["time_ps"]


def volume_bytes(profile: Profile, strategy: str, reading: Reading) -> int:
    """Bytes between NIC or processor and host memory (section 5.3): the NIC writes the message; the host's
    unpack also misses its last-level cache."""
    lines = reading["host_line_fetches"] if strategy.startswith("host") else 0
    return reading["size_bytes"] + lines * profile["host.line"]


def reuses(profile: Profile, host: Reading, offloaded: Reading) -> float:
    """Returns how many messages amortise the preparation; infinite when a message gains nothing."""
    gain = host["time_ps"] - offloaded["time_ps"]
    return math.inf if gain <= 0 else math.ceil(preparation.preparation_ps(profile, offloaded) / gain)


def catch_up_percent(reading: Reading) -> float:
    """The part of the handlers' time from start to first call that a handler whose packet begins at its
    checkpoint does not need."""
    mean, least = reading["handler_first_call_cycles_per_packet"], reading["handler_first_call_cycles_min"]
    return 100 * (mean - least) / reading["handler_cycles_per_packet"]


# ---- observations on one or two cells ----


def vector_cells(*extra: str) -> Callable[..., list[Probe]]:
    """The vector under the strategy in question, then under these."""

    def probes(
        trial: Trial,
        strategy: str,
        block_bytes: int,
        hpus: int | None = HPUS,
        message_bytes: int = MESSAGE,
    ) -> list[Probe]:
        datatype = vector(block_bytes, message_bytes)
        return [trial.probe(datatype, name, hpus=hpus) for name in (strategy, *extra)]

    return probes


def preloaded_cells(trial: Trial, **arguments: Any) -> list[Probe]:
    """All packets lie on the NIC before time starts, as in the SC'19 paper's section 4.3.2."""
    return [replace(probe, record=("preloaded",)) for probe in vector_cells()(trial, **arguments)]


def copy_cells(trial: Trial, block_bytes: int) -> list[Probe]:
    """Cores copy blocks from the NIC's memory to the host, without handlers (section 4.3.1)."""
    return [replace(trial.probe("byte", BASELINE), copies_bytes=block_bytes)]


def put_overhead(trial: Trial, readings: list[Reading]) -> float:
    """Returns what handlers add, in percent, to the time from leaving the initiator until the byte is in host
    memory."""
    processed, plain = (link_ps(trial.profile) + reading["data_time_ps"] for reading in readings)
    return 100 * (processed - plain) / plain


def gib_s(reading: Reading) -> float:
    return reading["size_bytes"] * PS_PER_S / reading["time_ps"] / 2**30


# ---- observations on a sweep ----


def memory_cells(
    trial: Trial, strategy: str, blocks_bytes: list[int] = (), hpus: list[int] = ()
) -> list[Probe]:
    """NIC memory along block sizes at 16 HPUs, or along numbers of HPUs at 2 KiB blocks."""
    return [trial.probe(vector(block, MESSAGE), strategy, hpus=HPUS) for block in blocks_bytes] + [
        trial.probe(vector(PACKET, MESSAGE), strategy, hpus=count) for count in hpus
    ]


def memory_of(readings: list[Reading]) -> list[int]:
    return [reading["nic_memory_bytes"] for reading in readings]


def memory_spread(trial: Trial, readings: list[Reading], **_: Any) -> float:
    return max(memory_of(readings)) - min(memory_of(readings))


def memory_growth(trial: Trial, readings: list[Reading], **_: Any) -> float:
    """Last value over first value; 0 if the values fall anywhere in between."""
    values = memory_of(readings)
    falls = any(after < before for before, after in itertools.pairwise(values))
    return 0.0 if falls else values[-1] / values[0]


def queue_cells(trial: Trial, strategies: list[str], gammas: list[int]) -> list[Probe]:
    return [
        trial.probe(vector(PACKET // gamma, MESSAGE), strategy, hpus=HPUS)
        for strategy in strategies
        for gamma in gammas
    ]


def largest(column: str) -> Callable[..., float]:
    return lambda trial, readings, **_: max(reading[column] for reading in readings)


def lead_cells(
    trial: Trial, measure: str, strategies: list[str], over: list[str], gammas: list[int]
) -> list[Probe]:
    return queue_cells(trial, [*strategies, *over], gammas)


def lead(
    trial: Trial, readings: list[Reading], measure: str, strategies: list[str], gammas: list[int], **_: Any
) -> float:
    """The least of `strategies` over the most of the others, in the column `measure`."""
    first = len(strategies) * len(gammas)
    values = [reading[measure] for reading in readings]
    return min(values[:first]) / max(values[first:])


# ---- observations on all rows of the applications; the baseline's cells come first in each group ----


def row_cells(trial: Trial, strategies: list[str]) -> list[Probe]:
    return trial.rows(BASELINE, *strategies)


def speedups(
    readings: list[Reading], strategies: list[str], wanted: Callable[[Reading], bool]
) -> list[float]:
    ratios = [
        group[0]["time_ps"] / offloaded["time_ps"]
        for group in grouped(readings, 1 + len(strategies))
        if wanted(group[0])
        for offloaded in group[1:]
        if offloaded.available
    ]
    if not ratios:
        raise Trouble("unsupported", "no row of the applications is of this kind")
    return ratios


def largest_speedup(trial: Trial, readings: list[Reading], strategies: list[str]) -> float:
    return max(speedups(readings, strategies, lambda host: True))


def largest_single_packet_speedup(trial: Trial, readings: list[Reading], strategies: list[str]) -> float:
    return max(speedups(readings, strategies, lambda host: host["packets"] == 1))


def largest_speedup_from_gamma(
    trial: Trial, readings: list[Reading], strategies: list[str], gamma: float
) -> float:
    return max(speedups(readings, strategies, lambda host: host["blocks_per_packet"] >= gamma))


def volume_ratio(trial: Trial, readings: list[Reading], strategies: list[str]) -> float:
    ratios = [
        volume_bytes(trial.profile, BASELINE, host) / volume_bytes(trial.profile, strategies[0], offloaded)
        for host, offloaded in grouped(readings, 2)
        if offloaded.available
    ]
    return statistics.geometric_mean(ratios)


def amortised_percent(trial: Trial, readings: list[Reading], strategies: list[str], fewer_than: int) -> float:
    counts = [
        reuses(trial.profile, host, offloaded)
        for host, offloaded in grouped(readings, 2)
        if offloaded.available
    ]
    return 100 * sum(count < fewer_than for count in counts) / len(counts)


def instructions_a_byte(
    trial: Trial, readings: list[Reading], strategies: list[str], gamma_max: float = math.inf
) -> float:
    """Median over the datatypes with at most gamma_max blocks a packet."""
    return statistics.median(
        offloaded["handler_instructions_per_packet"] * offloaded["packets"] / offloaded["size_bytes"]
        for group in grouped(readings, 1 + len(strategies))
        for offloaded in group[1:]
        if offloaded.available and offloaded["blocks_per_packet"] <= gamma_max
    )


def largest_nic_memory(trial: Trial, readings: list[Reading], strategies: list[str]) -> float:
    return max(
        offloaded["nic_memory_bytes"]
        for group in grouped(readings, 1 + len(strategies))
        for offloaded in group[1:]
        if offloaded.available
    )


# ---- Little's law; numbers of the profile, and packets that hold an HPU for a while ----


def packet_rate(profile: Profile, size_bytes: int) -> float:
    """Packets a second at line rate."""
    return float(PS_PER_S / busy.packet_ps(profile, size_bytes))


def service_bound_ps(profile: Profile, size_bytes: int, hpus: int) -> float:
    """The longest time for which a packet may hold an HPU if `hpus` HPUs keep up, by Little's law."""
    return float(hpus * busy.packet_ps(profile, size_bytes))


def busy_cells(trial: Trial, size_bytes: int, hpus: int, of_bound: float) -> list[Probe]:
    service_ps = round(of_bound * service_bound_ps(trial.profile, size_bytes, hpus))
    nothing = trial.probe("", "", hpus=hpus)
    return [replace(nothing, size_bytes=size_bytes, service_ps=service_ps)]


OBSERVATIONS: dict[str, Observation] = {
    **observe_programs.OBSERVATIONS,
    **observe_frames.OBSERVATIONS,
    "put_overhead_percent": Observation(
        lambda trial: [trial.probe("contig(1, byte)", name) for name in ("specialised", BASELINE)],
        put_overhead,
    ),
    "line_rate_part": Observation(vector_cells(), lambda trial, readings, **_: line_rate_part(readings[0])),
    "preloaded_line_rate_part": Observation(
        preloaded_cells,
        lambda trial, readings, **_: readings[0]["line_time_ps"] / readings[0]["processing_time_ps"],
    ),
    "memory_to_host_gbit_s": Observation(
        copy_cells, lambda trial, readings, **_: readings[0]["bytes"] * 8000 / readings[0]["time_ps"]
    ),
    "throughput_gbit_s": Observation(
        vector_cells(),
        lambda trial, readings, strategy, **_: throughput_gbit_s(trial.profile, strategy, readings[0]),
    ),
    "host_gib_s": Observation(vector_cells(), lambda trial, readings, **_: gib_s(readings[0])),
    "vector_speedup": Observation(
        vector_cells(BASELINE), lambda trial, readings, **_: readings[1]["time_ps"] / readings[0]["time_ps"]
    ),
    "handler_ratio": Observation(
        vector_cells("specialised"),
        lambda trial, readings, **_: (
            readings[0]["handler_cycles_per_packet"] / readings[1]["handler_cycles_per_packet"]
        ),
    ),
    "catch_up_percent": Observation(
        vector_cells(), lambda trial, readings, **_: catch_up_percent(readings[0])
    ),
    "memory_spread_bytes": Observation(memory_cells, memory_spread),
    "memory_growth": Observation(memory_cells, memory_growth),
    "dma_queue_peak": Observation(queue_cells, largest("dma_queue_peak")),
    "writes_under_way_peak": Observation(queue_cells, largest("writes_under_way_peak")),
    "lead": Observation(lead_cells, lead),
    "largest_speedup": Observation(row_cells, largest_speedup),
    "largest_single_packet_speedup": Observation(row_cells, largest_single_packet_speedup),
    "largest_speedup_from_gamma": Observation(
        lambda trial, strategies, gamma: row_cells(trial, strategies), largest_speedup_from_gamma
    ),
    "volume_ratio": Observation(row_cells, volume_ratio),
    "amortised_percent": Observation(
        lambda trial, strategies, fewer_than: row_cells(trial, strategies), amortised_percent
    ),
    "instructions_a_byte": Observation(
        lambda trial, strategies, gamma_max=math.inf: row_cells(trial, strategies), instructions_a_byte
    ),
    "largest_nic_memory_bytes": Observation(row_cells, largest_nic_memory),
    "packets_a_second": Observation(
        lambda trial, size_bytes: [],
        lambda trial, readings, size_bytes: packet_rate(trial.profile, size_bytes),
    ),
    "gap_bytes": Observation(
        lambda trial: [],
        lambda trial, readings: float(trial.profile["link.gap"] / trial.profile["link.byte_time"]),
    ),
    "service_bound_ns": Observation(
        lambda trial, size_bytes, hpus: [],
        lambda trial, readings, size_bytes, hpus: service_bound_ps(trial.profile, size_bytes, hpus) / 1000,
    ),
    "busy_line_part": Observation(busy_cells, lambda trial, readings, **_: readings[0]["part"]),
    "delayed_bytes": Observation(
        lambda trial, instructions, gbit_s: [],
        lambda trial, readings, instructions, gbit_s: (
            gbit_s / 8 * 1e9 * instructions / trial.profile["hpu.clock"]
        ),
    ),
}
