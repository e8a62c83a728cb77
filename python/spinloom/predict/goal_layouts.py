"""`spinloom goal --layout STRATEGY`: layouts of a schedule that NICs move, by handlers run once for each.

Contract: on_nics() gives the schedule with the work of NICs in it. Each layout and side is simulated once,
as a message with real bytes that are compared with the oracle, and executed handlers; beyond LAYOUTS_MAX
the lighter ones are priced by the byte. What a layout takes longer than the same bytes in one block is its
price, which all messages with it pay. Prices are kept in a file if there is one. All times are modelled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from spinloom.common import core
from spinloom.common.bar import Bar
from spinloom.common.errors import Trouble
from spinloom.nics import layout_prices, strategies
from spinloom.nics.layout_prices import Cells, ResultStore, Use
from spinloom.nics.machines import Machine

LAYOUTS_MAX = 1000  # the heaviest ones are simulated, others cost by the byte as these on average
ON_HOST = (strategies.BASELINE, "host-best", "host-warm", strategies.DIRECT)
NAMES = tuple(name for name in strategies.STRATEGIES if name not in ON_HOST)


class OnNics(NamedTuple):
    schedule: Any
    nic_ps: list[int]  # each rank's time in those of its computations that no CPU does
    simulated: int
    remembered: int
    fell_back: int  # layouts that the NIC does not take: CPUs move them


def is_strategy(text: str | None) -> bool:
    return text in NAMES


def on_nics(
    schedule: Any,
    machine: Machine,
    strategy: str,
    unit_ps: int,
    prices_path: Path | None = None,
    bar: Bar | None = None,
) -> OnNics:
    entries = core.load().layout_uses(schedule)
    if not entries:
        raise Trouble("invalid", f"--layout {strategy}: the schedule has no layouts at ends of transfers")
    uses: dict[tuple[int, str], Use] = {}
    for entry in entries:
        place = (entry["layout"], entry["side"])
        before = uses[place].messages if place in uses else 0
        uses[place] = Use(
            entry["layout"],
            entry["count"],
            entry["side"],
            entry["type"],
            entry["bytes"],
            before + entry["messages"],
            0,
        )
    cells = Cells(machine, ResultStore(prices_path))
    prices = layout_prices.price(uses.values(), cells, [strategy], LAYOUTS_MAX, 0, bar or Bar())
    prices_of_uses = prices.nic[strategy]
    by_shape = {}
    for entry in entries:
        price = prices_of_uses[uses[entry["layout"], entry["side"]]]
        by_shape[entry["shape"]] = (price.cpu_ps, price.nic_ps, price.nic_busy_ps)
    with_nics, nic_ps = core.load().with_nic_programs(schedule, by_shape, unit_ps)
    fell_back = sum(price.fell_back for price in prices_of_uses.values())
    return OnNics(with_nics, nic_ps, cells.simulated, cells.remembered, fell_back)
