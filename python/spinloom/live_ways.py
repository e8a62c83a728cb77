"""What `spinloom run` would do with a message between two ranks of this machine, and what each way takes.

Contract: live_ways() predicts each way by the planner's model with this host's prices, and times it between
two processes, bytes compared first (peer_pair). choices() is the planner's answer for each kind of memory.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from spinloom import core, peer_pair
from spinloom.errors import Trouble
from spinloom.peer_prices import WAYS, PeerPrices
from spinloom.workloads import Row

SAMPLES = 61
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


def live_ways(row: Row, prices: PeerPrices) -> list[LiveWay]:
    engine = core.load()
    predicted = engine.peer_costs(prices.as_list(), engine.peer_work(row.type, row.count))
    found = []
    with peer_pair.pair() as timed:
        for way in WAYS:
            about, measured = ABOUT[way], None
            try:
                measured = statistics.median(timed(row.type, row.count, way, way != "cma", SAMPLES))
            except Trouble as trouble:
                if trouble.code == "mismatch":
                    raise
                about = trouble.message
            found.append(LiveWay(way, predicted[way], measured, about))
    return found


def choices(row: Row, prices: PeerPrices, cma: bool) -> list[Choice]:
    engine = core.load()
    return [
        Choice(memory, *engine.peer_choice(prices.as_list(), row.type, row.count, mapped, waits, cma and waits))
        for memory, mapped, waits in MEMORY
    ]
