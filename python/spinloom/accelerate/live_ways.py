"""The choice of `spinloom run` for a message between two ranks of this machine, and the time of each way.

Contract: live_ways() predicts each way by the planner's model with this host's prices, and times it between
two processes, bytes compared first (peer_pair); why_not_timed() says where there is no memory for that.
choices() is the planner's answer for each kind of memory.
"""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import dataclass

from spinloom.accelerate import peer_pair
from spinloom.accelerate.peer_prices import WAYS, PeerPrices
from spinloom.common import core, units
from spinloom.common.errors import Trouble
from spinloom.nics.workloads import Row

SAMPLES = 61
SAMPLES_MIN = 5
SAMPLED_BYTES = 16 << 30  # memory that each process writes for the samples, unless SAMPLES_MIN take more
ABOUT = {
    "staged": "packed into shared memory, unpacked meanwhile",
    "mapped": "one copy, by the receiver, from large blocks of malloc",
    "joint": "one copy, by both ends, where the sender waits for its receiver",
    "cma": "one copy, by the receiver, by system calls",
}
# (where a buffer may lie, whether its receiver maps it, whether its sender waits until it is taken)
MEMORY = (
    ("in large blocks of malloc, by MPI_Send", True, True),
    ("in large blocks of malloc, by other calls", True, False),
    ("on stacks, in static memory, by MPI_Send", False, True),
    ("on stacks, in static memory, by other calls", False, False),
)


@dataclass(frozen=True)
class LiveWay:
    way: str
    predicted_ns: float
    measured_ns: float | None  # host time of one direction; None: the machine does not allow it
    about: str


@dataclass(frozen=True)
class Choice:
    memory: str
    way: str
    why: str


def why_not_timed(row: Row) -> str:
    """A sentence if the memory for timing is missing; empty if it is there."""
    needed, free = peer_pair.memory_bytes(row.type, row.count), peer_pair.free_bytes()
    if free is None or needed <= free:
        return ""
    message = units.format_bytes(core.load().describe(row.type)["size_bytes"] * row.count)
    return (
        f"the message of {message} is not timed: it would take {units.format_bytes(needed)} of memory in two "
        f"processes, and {units.format_bytes(free)} are free; time a part of it instead"
    )


def live_ways(row: Row, prices: PeerPrices, *, timed: bool = True) -> list[LiveWay]:
    engine = core.load()
    predicted = engine.peer_costs(prices.as_setting(), engine.peer_work(row.type, row.count))
    if not timed:
        return [LiveWay(way, predicted[way], None, ABOUT[way]) for way in WAYS]
    samples = SAMPLED_BYTES // max(1, peer_pair.memory_bytes(row.type, row.count) // 2)
    samples = max(SAMPLES_MIN, min(SAMPLES, samples))
    ways: list[LiveWay] = []
    with contextlib.ExitStack() as stack:
        times = stack.enter_context(peer_pair.pair())
        for way in WAYS:
            about, measured = ABOUT[way], None
            try:
                measured = statistics.median(times(row.type, row.count, way, way != "cma", samples))
            except peer_pair.ProcessEnded as ended:
                about = ended.message
                times = stack.enter_context(peer_pair.pair())
            except Trouble as trouble:
                if trouble.code == "mismatch":
                    raise
                about = trouble.message
            ways.append(LiveWay(way, predicted[way], measured, about))
    return ways


def choices(row: Row, prices: PeerPrices, cma: bool) -> list[Choice]:
    engine = core.load()
    return [
        Choice(
            memory,
            *engine.peer_choice(prices.as_setting(), row.type, row.count, mapped, waits, cma and waits),
        )
        for memory, mapped, waits in MEMORY
    ]
