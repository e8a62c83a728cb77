"""The choice of `spinloom run` for a message between two ranks of this machine, and the time of each way.

Contract: live_ways() predicts each way by the planner's model with this host's prices, and times it between
two processes, bytes compared first (peer_pair); why_not_timed() says where there is no memory for that, and
noise() whether times or prices say little because other work ran here. choices() is the planner's answer for
each kind of memory.
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
# Beyond these the machine was too busy for its measurements to be trusted.
SCATTER_MAX = 2.0  # the slowest tenth of a way's samples over the fastest
FACTOR_MAX = 20.0  # a way's median over its time by the model, whosever prices that has
ERROR_MAX = 1.5  # the mean factor by which the model misses what its prices were fitted to
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
    scatter: float | None = None  # the slowest tenth of the samples over the fastest


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
            about, measured, scatter = ABOUT[way], None, None
            try:
                taken = times(row.type, row.count, way, way != "cma", samples)
                measured, scatter = statistics.median(taken), scatter_of(taken)
            except peer_pair.ProcessEnded as ended:
                about = ended.message
                times = stack.enter_context(peer_pair.pair())
            except Trouble as trouble:
                if trouble.code == "mismatch":
                    raise
                about = trouble.message
            ways.append(LiveWay(way, predicted[way], measured, about, scatter))
    return ways


def scatter_of(times_ns: list[float]) -> float:
    """The ninth decile over the first."""
    deciles = statistics.quantiles(times_ns, n=10)
    return deciles[-1] / max(deciles[0], 1.0)


def noise(ways: list[LiveWay], prices: PeerPrices) -> str:
    """A sentence if the measurements of ways say little, or if those behind the prices did; empty if not."""
    timed = [
        (way, way.scatter, way.measured_ns / way.predicted_ns) for way in ways if way.scatter is not None
    ]
    if timed:
        worst, scatter, _ = max(timed, key=lambda entry: entry[1])
        if scatter > SCATTER_MAX:
            return (
                f"the measurements scatter: the slowest tenth of the messages by '{worst.way}' took "
                f"{scatter:.3g} times as long as the fastest; other work runs here, so the medians say "
                "little"
            )
        worst, _, factor = max(timed, key=lambda entry: entry[2])
        if factor > FACTOR_MAX:
            return (
                f"the messages by '{worst.way}' took {factor:,.0f} times what the model says; "
                "other work runs here, so the medians say little"
            )
    if prices.error > ERROR_MAX:
        return (
            "the measurements behind the model's prices scattered: it misses them by a factor of "
            f"{prices.error:.3g} in the mean; 'spinloom calibrate peers' measures again"
        )
    return ""


def choices(row: Row, prices: PeerPrices, cma: bool) -> list[Choice]:
    engine = core.load()
    return [
        Choice(
            memory,
            *engine.peer_choice(prices.as_setting(), row.type, row.count, mapped, waits, cma and waits),
        )
        for memory, mapped, waits in MEMORY
    ]
