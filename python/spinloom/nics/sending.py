"""The sender's side: the ways to send a non-contiguous message that `spinloom simulate --send` compares.

Contract: parse() reads the option. build() makes a results.Table. Its rows have those columns of the receive
side that mean the same here, and COLUMNS. The receive is a plain contiguous one; every byte of it
was compared with the oracle's packed bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from spinloom.common.errors import Trouble, nearest
from spinloom.nics import results
from spinloom.nics.results import Table
from spinloom.nics.sweep import Cell, Outcome, Setup

BASELINE = "pack"  # every speed-up is this strategy's time over another's
OUTBOUND = ("outbound-specialised", "outbound-seek")

STRATEGIES = {
    BASELINE: "the CPU packs with MPITypes, then one put",
    "streaming": "the CPU walks the datatype and names its regions one by one, while packets leave",
    "outbound-specialised": "the NIC makes packets: gather handlers for each family of layouts",
    "outbound-seek": "the NIC makes packets: each handler seeks in the compact program",
}

TIME = "send_time_ps"
COLUMNS = {
    TIME: "modelled time: the sender's call until the last byte is in the receiver's memory",
    "free_time_ps": "modelled time: the sender's call until its program can read that its memory is free",
    "host_busy_ps": "modelled time that the sender's program works: packing, walking the type, posting calls",
    "host_calls": "calls that the sender's program posts for the message",
    "dma_reads": "reads of the sender's memory by its NIC, other than a put's packets",
    "dma_read_bytes": "bytes of those reads",
    "dma_reads_peak": "most handlers' reads under way at a time",
    "outbound_packets_peak": "most packets in the outbound buffer at a time",
}


def parse(text: str) -> list[str]:
    """'streaming,outbound' as a list in table order, the baseline always first. 'all' is every strategy."""
    names: list[str] = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name == "all":
            return list(STRATEGIES)
        if name != "outbound" and name not in STRATEGIES:
            accepted = [*STRATEGIES, "outbound", "all"]
            raise Trouble("invalid", f"--send: there is no '{name}'{nearest(name, accepted)}")
        names += OUTBOUND if name == "outbound" else [name]
    if not names:
        raise Trouble("invalid", f"--send is empty; there are: {', '.join(STRATEGIES)}, outbound, all")
    return [name for name in STRATEGIES if name in names or name == BASELINE]


def build(cells: list[Cell], outcomes: Iterable[Outcome], setup: Setup) -> Table:
    return results.build(cells, outcomes, setup, BASELINE, TIME)
