"""Runs cells (one datatype under one strategy) on the engine, several at a time.

Contract: run() gives each Cell to core.run_cell, or run_send_cell, in a thread pool and yields an Outcome as
each ends. An error of one cell is its outcome, not the end of the run, except for trouble that every cell
would share (usage, environment), which is raised. Closing the generator early drops cells that have not
begun. The engine is given: type, count, strategy, profile, images, hpus, mtu, order, seed, inject,
unexpected. It returns modelled columns, and `destination` and `event_log` as bytes, which are kept as SHA-256
only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from spinloom.common import core
from spinloom.common.errors import EXIT_ENVIRONMENT, EXIT_OF_CODE, EXIT_USAGE, Trouble
from spinloom.common.futures import as_they_end
from spinloom.nics.workloads import Row

NOT_RUN = ("unsupported", "exhausted")  # nothing was received: nothing is wrong
INJECTIONS = ("none", "flip", "skip", "stray")


@dataclass(frozen=True)
class Setup:
    """The settings that all cells of a run share."""

    profile: dict[str, Any]
    images: dict[str, bytes]
    hpus: int
    mtu: int
    order: str | int  # "in", the window within which packets are shuffled, or "all:N"
    seed: int
    inject: str = "none"
    unexpected: bool = False  # the receive is posted when the message has landed
    send: bool = False  # the strategies are those of the sender (sending.py)
    record: tuple[str, ...] = ()  # further recordings: "trace", "sample_dma_queue"


@dataclass(frozen=True)
class Cell:
    row: Row
    strategy: str

    def __str__(self) -> str:
        return f"{self.row.application} {self.row.datatype}, {self.strategy}"


@dataclass(frozen=True)
class Outcome:
    """The result of a cell: columns, or a code and a sentence."""

    cell: Cell
    columns: dict[str, Any] = field(default_factory=dict)
    destination_sha256: str = ""
    events_sha256: str = ""
    code: str = "ok"
    message: str = ""

    @property
    def checked(self) -> bool | None:
        """True if the bytes were right; None when nothing was received."""
        if self.code in NOT_RUN:
            return None
        return self.code == "ok"


def config(cell: Cell, setup: Setup) -> dict[str, Any]:
    return {
        "type": cell.row.type,
        "count": cell.row.count,
        "strategy": cell.strategy,
        "profile": setup.profile,
        "images": setup.images,
        "hpus": setup.hpus,
        "mtu": setup.mtu,
        "order": setup.order,
        "seed": setup.seed,
        "inject": setup.inject,
        "unexpected": setup.unexpected,
        **dict.fromkeys(setup.record, True),
    }


def run_cell(engine: Any, cell: Cell, setup: Setup) -> Outcome:
    try:
        simulate = engine.run_send_cell if setup.send else engine.run_cell
        result = dict(simulate(config(cell, setup)))
    except engine.SpinloomError as error:
        shared_trouble = EXIT_OF_CODE[error.code] in (EXIT_USAGE, EXIT_ENVIRONMENT)
        if shared_trouble and error.code != "unsupported":
            raise Trouble(error.code, f"{cell}: {error.message}") from None
        return Outcome(cell, code=error.code, message=error.message)
    destination = hashlib.sha256(result.pop("destination")).hexdigest()
    events = hashlib.sha256(result.pop("event_log")).hexdigest()
    if not result.pop("checked"):
        return Outcome(cell, code="mismatch", message="the bytes in memory differ from the oracle's")
    return Outcome(cell, result, destination, events)


def record(cell: Cell, setup: Setup) -> tuple[list[tuple], int]:
    """The spans of one more simulation of the cell (see timeline.py), and how many did not fit."""
    outcome = run_cell(core.load(), cell, replace(setup, record=("trace",)))
    if outcome.code != "ok":
        raise Trouble(outcome.code, f"no trace of {cell}: {outcome.message}")
    return outcome.columns["trace"], outcome.columns["trace_dropped"]


def run(cells: list[Cell], setup: Setup, threads: int) -> Iterator[Outcome]:
    """Yields outcomes in the order in which cells end. Raises Trouble."""
    for _, outcome in run_all([(cell, setup) for cell in cells], threads):
        yield outcome


def run_all(jobs: list[tuple[Cell, Setup]], threads: int) -> Iterator[tuple[int, Outcome]]:
    """Runs cells that each have a setup; yields each outcome with the place of its job."""
    engine = core.load()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="spinloom")
    futures: dict[Future[Outcome], int] = {
        pool.submit(run_cell, engine, cell, setup): place for place, (cell, setup) in enumerate(jobs)
    }
    try:
        for future in as_they_end(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
