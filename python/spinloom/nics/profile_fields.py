"""The fields of NIC profiles: the unit, range and meaning of each; the only table of them.

Contract: FIELDS has every field, in the order of files. Field.parse() reads a text exactly, or raises
ValueError with one sentence: the accepted forms, or the range. The engine has the same ranges
(src/simulated/node/profile.cpp, src/nic/hpu/timing.cpp); tests/sim/test_profile_fields.py compares. The
tables of docs/formats/profile.md are made from this one by tools/profiles.py, and so is
profiles.template().
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from spinloom.common import units
from spinloom.nics import rate_words

Value = int | Fraction | str

COUNT_MAX = 1 << 20  # counts and cycles
RATE_MAX = 10**9  # ps a byte, cycles a block
PART_MAX = (1 << 63) - 1  # the largest part of a fraction: the engine has 64 bits


@dataclass(frozen=True)
class Field:
    meaning: str
    unit: str  # the name that documents give it
    range: str
    parse: Callable[[str], Value]
    least: int | None = None  # the least whole number, in the unit that the engine takes
    most: int | None = None


V = TypeVar("V", int, Fraction)


def within(parse: Callable[[str], V], accepts: Callable[[V], bool], range: str) -> Callable[[str], V]:
    def read(text: str) -> V:
        value = parse(text)
        if not accepts(value):
            raise ValueError(f"it must be {range}")
        return value

    return read


def numbers(
    parse: Callable[[str], int],
    unit: str,
    least: int,
    most: int,
    range: str,
    meaning: str,
    power: bool = False,
) -> Field:
    """Whole numbers; only powers of two if `power`."""
    range = f"a power of two, {range}" if power else range

    def accepts(value: int) -> bool:
        return least <= value <= most and not (power and value & (value - 1))

    return Field(meaning, unit, range, within(parse, accepts, range), least, most)


def count(meaning: str, most: int = COUNT_MAX, power: bool = False) -> Field:
    return numbers(units.parse_count, "a number", 1, most, f"1 to {most:,}", meaning, power)


def cycles(meaning: str, most: int = COUNT_MAX, least: int = 1) -> Field:
    return numbers(units.parse_cycles, "cycles", least, most, f"{least} to {most:,} cycles", meaning)


def size(meaning: str, most: int = COUNT_MAX, least: int = 1, power: bool = False) -> Field:
    range = f"{least} B to {units.format_bytes(most)}"
    return numbers(units.parse_bytes, "B, kB, KiB, MiB, GiB", least, most, range, meaning, power)


def time(meaning: str) -> Field:
    return numbers(units.parse_time, "ps, ns, us, ms, s", 0, 10**15, "0 ps to 1000 s", meaning)


def clock(meaning: str) -> Field:
    return numbers(units.parse_frequency, "Hz, MHz, GHz", 1, 10**12, "1 Hz to 1 THz", meaning)


def exact(value: Fraction) -> bool:
    return value.numerator <= PART_MAX and value.denominator <= PART_MAX


def rate(meaning: str, parse: Callable[[str], Fraction] = units.parse_rate, words: str = "") -> Field:
    range = "more than 0 ps/B, less than 1 ms/B"
    unit = f"ps/B, GB/s, GiB/s, Gbit/s{words}"
    return Field(
        meaning, unit, range, within(parse, lambda value: 0 < value < RATE_MAX and exact(value), range)
    )


def ratio(meaning: str, unit: str = "a number") -> Field:
    range = f"0 to less than {RATE_MAX:,}"
    return Field(
        meaning,
        unit,
        range,
        within(units.parse_rational, lambda value: value < RATE_MAX and exact(value), range),
    )


def name(meaning: str, **names: str) -> Field:
    forms = ", ".join(f"{each} ({about})" for each, about in names.items())

    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"accepted forms: {forms}")
        return text

    return Field(meaning, "a name", forms, read)


def place(meaning: str) -> Field:
    return name(meaning, L1="the cluster's memory", L2="the memory that all clusters share")


FIELDS: dict[str, Field] = {
    "link.byte_time": rate(
        "time of a byte of payload; headers are not charged", rate_words.link_rate, ", a word for a link"
    ),
    "link.gap": time("least time between the first bytes of two packets"),
    "link.payload": size("largest payload of a packet", 1 << 16),
    "link.switch": time("latency of a switch"),
    "link.wire": time("latency of the wires"),
    "match.header": time("matching the header packet of a message"),
    "match.packet": time("looking up a later packet of a message"),
    "hpu.count": count("handler processors (HPUs)", 256),
    "hpu.clock": clock("their clock; cycles of the sections hpu, a15 and pulp are of it"),
    "hpu.core": name(
        "their kind, which decides on sections",
        a15="out of order, has the section a15",
        pulp="in order, has the section pulp",
    ),
    "hpu.memory_latency": cycles("a load's wait for NIC memory (a15)", 1000),
    "a15.rename_width": count("instructions that enter the pipeline in a cycle", 8),
    "a15.window": count("entries of the reorder buffer", 256),
    "a15.alus": count("integer units", 4),
    "a15.multiply": cycles("integer multiplication", 64),
    "a15.divide": cycles("integer division, which keeps its unit", 64),
    "a15.float_units": count("floating-point units", 4),
    "a15.float_add": cycles("floating-point addition", 64),
    "a15.float_multiply": cycles("floating-point multiplication", 64),
    "a15.float_multiply_add": cycles("fused multiplication and addition", 64),
    "a15.float_divide": cycles("floating-point division, which keeps its unit", 64),
    "a15.float_root": cycles("square root, which keeps its unit", 64),
    "a15.float_compare": cycles("comparison, minimum, maximum", 64),
    "a15.float_convert": cycles("conversion", 64),
    "a15.float_move": cycles("other floating-point operations: signs, classes, moves", 64),
    "a15.load": cycles("load unit; the memory's latency comes on top", 64),
    "a15.front_end": cycles("refill after a mispredicted branch", 64, least=0),
    "a15.predictor_entries": count("entries of the branch predictor", power=True),
    "a15.device_load": cycles("load from the NIC's command registers", 1000),
    "a15.device_store": cycles("from one store to command registers to the next", 1000),
    "a15.device_answer": cycles("until a store to command registers is answered", 1000),
    "a15.oldest": cycles("wait of an instruction that may not be speculative", 1000, least=0),
    "pulp.clusters": count("clusters, which share the HPUs evenly", 256),
    "pulp.multiply_high": cycles("multiplication that keeps the upper half", 64),
    "pulp.divide": cycles("division; leading zeros of the divisor come on top", 64),
    "pulp.branch_taken": cycles("taken branch", 64),
    "pulp.jump": cycles("jump, call, return", 64),
    "pulp.straddle": cycles("on top where the target lies in two fetch words", 64, least=0),
    "pulp.load_use": cycles("wait for a load's result", 64, least=0),
    "pulp.counter": cycles("reading a counter register", 64),
    "pulp.device": cycles("access to the NIC's command registers", 1000),
    "pulp.l1": cycles("access to the own cluster's memory", 1000),
    "pulp.l2_handler": cycles("access to handler memory in L2", 1000),
    "pulp.l2_packet": cycles("access to packet memory in L2", 1000),
    "pulp.atomic_l1": cycles("until an atomic's result in L1", 1000),
    "pulp.atomic_l2": cycles("atomic in L2; at least pulp.l2_handler, at most 1,000 more", 2000),
    "pulp.l1_banks": count("banks of a cluster's memory"),
    "pulp.l1_bank_bytes": size("width of such a bank"),
    "pulp.l2_banks": count("banks of handler memory in L2"),
    "pulp.l2_bank_bytes": size("width of such a bank"),
    "pulp.constants": place("where constants of handlers lie"),
    "pulp.state": place("where the state of handlers lies"),
    "pulp.packets": place("where handlers read packets"),
    "pulp.port_width": size("a cycle through the NIC's ports"),
    "pulp.port_latency": cycles("from the input port to packet memory", least=0),
    "pulp.dma_width": size("a cycle through a cluster's DMA engine"),
    "pulp.dma_setup": cycles("a transfer of that engine, before its bytes", least=0),
    "pulp.dma_latency": cycles("DMA between a cluster and the host, until its end", least=0),
    "pulp.send_latency": cycles("what a handler sends, until it is on its way", least=0),
    "memory.channel_byte_time": rate("time of a byte in a memory channel (a15)"),
    "memory.channels_per_hpu": count("memory channels an HPU (a15)", 1024),
    "memory.state_bytes": size("NIC memory for the state of datatypes", 1 << 32),
    "memory.packet_buffer_bytes": size("NIC memory for packets; at least link.payload", 1 << 32),
    "memory.outbound_packets": count("packets that handlers send at a time", 1 << 16),
    "scheduler.clock": clock("clock of the scheduler; cycles of its section are of it"),
    "scheduler.dispatch_cycles": cycles("from a packet in its memory to an HPU", least=0),
    "scheduler.start_cycles": cycles("from there to the handler's first instruction", least=0),
    "scheduler.finish_cycles": cycles("from the handler's return until the HPU is idle", least=0),
    "scheduler.vhpu_switch_cycles": cycles("on top, when an HPU takes another virtual HPU", least=0),
    "scheduler.messages": count("messages that have handlers at a time"),
    "pcie.byte_time": rate(
        "time of a byte of PCIe, headers counted", rate_words.pcie_rate, ", a word for PCIe"
    ),
    "pcie.latency": time("latency of PCIe"),
    "pcie.write_payload": size("largest payload of a PCIe write"),
    "pcie.write_overhead": size("header, framing and checksum of a PCIe write", least=0),
    "pcie.event_bytes": size("size of an event, and of a command", least=0),
    "host.clock": clock("the CPU's clock; cycles of this section are of it"),
    "host.memory_latency": time("latency of memory"),
    "host.streamed_in_flight": count("cache lines that a core fetches at a time, one after the other"),
    "host.strided_in_flight": count("the same at a regular stride"),
    "host.scattered_in_flight": count("the same in no order"),
    "host.refill_cycles": ratio("a line that the first-level cache lost", "cycles, a fraction too"),
    "host.memory_byte_time": rate("time of a byte of the memory's bandwidth"),
    "host.line": size("a cache line", power=True),
    "host.cache": size("last-level cache; a multiple of line and ways", 1 << 32),
    "host.cache_ways": count("its ways"),
    "host.mpitypes_vector_cycles": ratio("a block of a vector, by MPITypes", "cycles, a fraction too"),
    "host.mpitypes_list_cycles": ratio("a block of a list, by MPITypes", "cycles, a fraction too"),
    "host.best_vector_cycles": ratio("a block of a vector, by our copy kernels", "cycles, a fraction too"),
    "host.best_list_cycles": ratio("a block of a list, by our copy kernels", "cycles, a fraction too"),
    "host.segment_block_cycles": ratio("a block that is walked, not copied", "cycles, a fraction too"),
    "host.command_latency": time("from the host to its NIC; stays with the NIC when the host changes"),
    "host.call": time("CPU time of a communication call"),
    "checkpoint.paper_bytes": size("size of a checkpoint in the paper's figures"),
    "checkpoint.epsilon": ratio("most delay by the order of checkpoints, over the handlers' time"),
    "iovec.entries": count("entries of a scatter list that the NIC holds at a time"),
    "iovec.refill": time("reading the next entries"),
    "frame.bytes_min": size("smallest frame of an Ethernet NIC"),
    "frame.bytes_max": size("its largest frame"),
    "frame.ingress_min": cycles("copying the smallest frame into packet memory", least=0),
    "frame.ingress_max": cycles("copying the largest one; linear between", least=0),
}

OF_THE_NIC = ("host.command_latency",)  # the way from the host to its NIC: stays when the host changes
HOST_FIELDS = [field for field in FIELDS if field.startswith("host.") and field not in OF_THE_NIC]
SECTIONS = tuple(dict.fromkeys(field.split(".")[0] for field in FIELDS))

# Fields that only profiles with that core have; every other field stands in every profile.
ONLY_WITH_CORE = {
    field: field.split(".")[0] if field.startswith(("a15.", "pulp.")) else "a15"
    for field in FIELDS
    if field.startswith(("a15.", "pulp.", "memory.channel")) or field == "hpu.memory_latency"
}
OPTIONAL = "frame."  # a profile has the whole section or nothing of it
