"""The costs of moving the layouts of a recorded program, from checked simulations of each.

Contract: price() gives, for each use of a layout (type, elements, side), what the host's CPU takes to pack or
unpack it and what the NIC takes under a strategy, beyond what the same bytes take in one block. Every number
comes from a simulated message whose bytes were compared with the oracle; each is simulated once, and kept in
a file if there is one. Uses beyond the limits of size or number are priced by the byte, as the others cost on
average; Prices says how many. All times are modelled.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from spinloom.common import documents, files
from spinloom.common.errors import Trouble
from spinloom.nics import results, sweep
from spinloom.nics.machines import Machine
from spinloom.nics.strategies import BASELINE, DIRECT
from spinloom.nics.sweep import Cell, Outcome, Setup
from spinloom.nics.workloads import Row

SIMULATED_BYTES_MAX = 64 << 20
OUTBOUND = {"specialised": "outbound-specialised"}  # the NIC's way to gather where it scatters so; else
OUTBOUND_SEEK = "outbound-seek"
CONTIGUOUS_SEND = "streaming"  # the way of one block: the call and the put


@dataclass(frozen=True)
class Use:
    """A layout that is sent, received, or copied to its own rank."""

    layout: int
    count: int
    side: str  # "send" or "receive"
    type: str
    bytes: int
    messages: int
    copies: int

    @property
    def weight(self) -> int:
        return self.bytes * (self.messages + self.copies)


@dataclass(frozen=True)
class Price:
    cpu_ps: int  # the host's work for one message
    nic_ps: int  # the NIC's work that the message waits for
    nic_busy_ps: int = 0  # The NIC can take the next message after this time.
    fell_back: bool = False  # the strategy does not take the layout: the host unpacks it


@dataclass
class Prices:
    host_ps: dict[Use, int] = field(default_factory=dict)
    nic: dict[str, dict[Use, Price]] = field(default_factory=dict)  # the key is a strategy
    by_rate: list[Use] = field(default_factory=list)
    simulated: int = 0
    remembered: int = 0


class ResultStore:
    """Results of cells by what decides them, in a JSON file if there is one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.results: dict[str, dict[str, Any]] = {}
        if path is not None:
            try:
                self.results = documents.json(path)
            except documents.MissingFile:
                pass
            except Trouble as trouble:
                raise Trouble("invalid", f"{trouble.message}; remove this file of prices") from None
            if not isinstance(self.results, dict):
                raise Trouble("invalid", f"{path} is no file of prices; remove it")

    @staticmethod
    def key(cell: Cell, setup: Setup) -> str:
        return results.digest(
            {
                "type": cell.row.type,
                "count": cell.row.count,
                "strategy": cell.strategy,
                "profile": setup.profile,
                "images": results.image_hashes(setup.images),
                "machine": [setup.hpus, setup.mtu, setup.order, setup.seed, setup.send],
            }
        )

    def save(self) -> None:
        if self.path is not None:
            files.write(self.path, json.dumps(self.results, indent=1, sort_keys=True) + "\n")


def block(size: int) -> Row:
    return Row("", "", f"contig({size}, byte)")


def row_of(use: Use) -> Row:
    return Row("", "", use.type, use.count)


class Cells:
    """Asks for cells, runs those that nobody remembers, and answers with their columns."""

    def __init__(self, machine: Machine, store: ResultStore) -> None:
        self.receive = machine.setup()
        self.send = machine.setup(send=True)
        self.store = store
        self.clock_hz = machine.profile["hpu.clock"]
        self.hpus = machine.hpus
        self.wanted: dict[str, tuple[Cell, Setup]] = {}
        self.simulated = 0
        self.remembered = 0

    def setup(self, side: str) -> Setup:
        return self.send if side == "send" else self.receive

    def want(self, row: Row, strategy: str, side: str) -> None:
        cell = Cell(row, strategy)
        key = ResultStore.key(cell, self.setup(side))
        if key in self.store.results:
            self.remembered += 1
        else:
            self.wanted[key] = (cell, self.setup(side))

    def run(self, threads: int, advance: Callable[[], None]) -> None:
        keys = list(self.wanted)
        jobs = [self.wanted[key] for key in keys]
        for place, outcome in sweep.run_all(jobs, threads or os.cpu_count() or 1):
            self.store.results[keys[place]] = self.stored_columns(outcome)
            self.simulated += 1
            advance()
        self.wanted.clear()
        self.store.save()

    @staticmethod
    def stored_columns(outcome: Outcome) -> dict[str, Any]:
        if outcome.code not in ("ok", "unsupported", "exhausted"):
            raise Trouble(outcome.code, f"{outcome.cell.row.type}: {outcome.message}")
        names = (
            *("time_ps", "data_time_ps", "send_time_ps", "host_busy_ps"),
            *("packets", "handler_cycles_per_packet"),
        )
        times = {name: outcome.columns[name] for name in names if name in outcome.columns}
        return {"code": outcome.code, **times}

    def handlers_ps(self, columns: dict[str, Any]) -> int:
        """Returns how long the HPUs, all of them, work for a message."""
        cycles = Fraction(columns.get("handler_cycles_per_packet", 0)) * columns.get("packets", 0)
        return math.ceil(cycles * 10**12 / self.clock_hz / self.hpus)

    def times_of(self, row: Row, strategy: str, side: str) -> dict[str, Any] | None:
        """The times of a cell; None if the strategy does not take it."""
        columns = self.store.results[ResultStore.key(Cell(row, strategy), self.setup(side))]
        return columns if columns["code"] == "ok" else None


def outbound(strategy: str) -> str:
    return OUTBOUND.get(strategy, OUTBOUND_SEEK)


def host_ps(cells: Cells, use: Use) -> int:
    """Returns what the CPU works for the layout, beyond what one block takes."""
    if use.side == "send":
        packed, plain = (
            cells.times_of(row_of(use), "pack", "send"),
            cells.times_of(block(use.bytes), CONTIGUOUS_SEND, "send"),
        )
        return max(0, packed["host_busy_ps"] - plain["host_busy_ps"]) if packed and plain else 0
    unpacked, plain = (
        cells.times_of(row_of(use), BASELINE, "receive"),
        cells.times_of(block(use.bytes), DIRECT, "receive"),
    )
    return max(0, unpacked["time_ps"] - plain["time_ps"]) if unpacked and plain else 0


def nic_price(cells: Cells, use: Use, strategy: str, host: int) -> Price:
    """Returns the NIC's time beyond that of one block; the CPU's price `host` where the NIC cannot do it."""
    if use.side == "send":
        times, block_times = (
            cells.times_of(row_of(use), outbound(strategy), "send"),
            cells.times_of(block(use.bytes), CONTIGUOUS_SEND, "send"),
        )
        name = "send_time_ps"
    else:
        times, block_times = (
            cells.times_of(row_of(use), strategy, "receive"),
            cells.times_of(block(use.bytes), DIRECT, "receive"),
        )
        name = "time_ps"
    if times is None or block_times is None:
        return Price(host, 0, fell_back=True)
    waits = max(0, times[name] - block_times[name])
    return Price(0, waits, cells.handlers_ps(times))


def price(
    uses: Iterable[Use],
    cells: Cells,
    strategies: list[str],
    layouts_max: int,
    threads: int,
    advance: Callable[[], None],
) -> Prices:
    """Simulates the heaviest uses; the others cost by the byte."""
    ordered = sorted(uses, key=lambda use: (-use.weight, use.layout, use.count, use.side))
    small = [use for use in ordered if use.bytes <= SIMULATED_BYTES_MAX]
    chosen = small[:layouts_max]
    rest = [use for use in ordered if use not in set(chosen)]
    for use in chosen:
        if use.side == "send":
            cells.want(block(use.bytes), CONTIGUOUS_SEND, "send")
            cells.want(row_of(use), "pack", "send")
            for strategy in dict.fromkeys(map(outbound, strategies)):
                cells.want(row_of(use), strategy, "send")
        else:
            cells.want(block(use.bytes), DIRECT, "receive")
            cells.want(row_of(use), BASELINE, "receive")
            for strategy in strategies:
                cells.want(row_of(use), strategy, "receive")
    cells.run(threads, advance)
    prices = Prices(by_rate=rest, simulated=cells.simulated, remembered=cells.remembered)
    for use in chosen:
        prices.host_ps[use] = host_ps(cells, use)
    for strategy in strategies:
        prices.nic[strategy] = {use: nic_price(cells, use, strategy, prices.host_ps[use]) for use in chosen}
    add_by_rate(prices, chosen)
    return prices


def add_by_rate(prices: Prices, chosen: list[Use]) -> None:
    size = sum(use.bytes for use in chosen)
    if not size:
        if prices.by_rate:
            largest = SIMULATED_BYTES_MAX >> 20
            raise Trouble(
                "unsupported", f"all layouts are of messages beyond {largest} MiB: none is simulated"
            )
        return
    host = sum(prices.host_ps[use] for use in chosen)
    for use in prices.by_rate:
        prices.host_ps[use] = -(-host * use.bytes // size)
    for by_use in prices.nic.values():
        cpu = sum(by_use[use].cpu_ps for use in chosen)
        nic = sum(by_use[use].nic_ps for use in chosen)
        busy = sum(by_use[use].nic_busy_ps for use in chosen)
        for use in prices.by_rate:
            by_use[use] = Price(*(-(-sum_ps * use.bytes // size) for sum_ps in (cpu, nic, busy)))
