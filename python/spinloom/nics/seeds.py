"""The same cells with several seeds, as one table: a mean and its 95 % confidence interval where the packets'
order is random.

Contract: jobs() are the cells of every seed, a whole seed before the next one. build() merges what they gave
as Frame.over("seed") does: `runs`, and time_ps and speedup as means beside time_ps_ci95 and speedup_ci95. The
hash covers every seed's table. An interrupted run has rows with fewer runs, and is partial.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spinloom.common.errors import Trouble
from spinloom.nics import results
from spinloom.nics.frame import Frame
from spinloom.nics.results import Table
from spinloom.nics.sweep import Cell, Outcome, Setup

SEEDS_MAX = 1000


def seed_range(first: int, last: int) -> range:
    """Raises Trouble for one seed, which has no interval, and for too many."""
    if first == last:
        raise Trouble("invalid", f"--seeds {first}: one seed has no interval; ten of them are --seeds 1..10")
    if last - first >= SEEDS_MAX:
        raise Trouble("invalid", f"--seeds {first}..{last}: at most {SEEDS_MAX:,} at a time")
    if last >= 1 << 64:
        raise Trouble("invalid", f"seed {last}: it is a number from 0 to 2^64 - 1")
    return range(first, last + 1)


def jobs(cells: list[Cell], setup: Setup, seeds: Iterable[int]) -> list[tuple[Cell, Setup]]:
    return [(cell, each) for each in (replace(setup, seed=seed) for seed in seeds) for cell in cells]


def build(cells: list[Cell], outcomes: Iterable[tuple[int, Outcome]], setup: Setup, seeds: range) -> Table:
    """`outcomes` with the seed that each is of."""
    of_seed: dict[int, list[Outcome]] = {seed: [] for seed in seeds}
    for seed, outcome in outcomes:
        of_seed[seed].append(outcome)
    tables = {
        seed: results.build(cells, seed_outcomes, replace(setup, seed=seed))
        for seed, seed_outcomes in of_seed.items()
    }
    rows = [{"seed": seed, **row} for seed, table in tables.items() for row in table.rows]
    return Table(
        Frame(rows).over("seed").rows,
        results.digest({"parts": [table.result_hash for table in tables.values()]}),
        partial=any(table.partial for table in tables.values()),
    )
