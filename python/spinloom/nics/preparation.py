"""The cost of a strategy to its host before the first message: data that is built and copied to the NIC."""

from __future__ import annotations

import math
from typing import Any

from spinloom.nics.profiles import Profile

PS_PER_S = 1_000_000_000_000


def pcie_ps(profile: Profile, size_bytes: int) -> int:
    """Time of bytes from host to NIC, with packet overheads, until the last byte is there."""
    packets = max(1, -(-size_bytes // profile["pcie.write_payload"]))
    on_link = (size_bytes + packets * profile["pcie.write_overhead"]) * profile["pcie.byte_time"]
    return math.ceil(on_link) + profile["pcie.latency"]


def preparation_ps(profile: Profile, reading: dict[str, Any]) -> float:
    """Host time to build a strategy's data on the NIC, and to copy it there."""
    cycles = reading["prepared_blocks"] * profile["host.segment_block_cycles"]
    return float(cycles * PS_PER_S / profile["host.clock"]) + pcie_ps(profile, reading["nic_memory_bytes"])
