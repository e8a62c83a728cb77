"""Scenarios of deterministic simulation testing: data/scenarios/*.toml, as numbers for the engine.

Contract: a scenario's tables are flattened ("faults.drop"), `title` aside; the engine refuses unknown names.
run() runs a range of seeds in pieces, several at a time, and adds up; the result does not depend on the order
of the pieces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from spinloom.common import core, data, documents
from spinloom.common.errors import Trouble, nearest

SEEDS_A_PIECE = 50  # seeds that one call of the engine runs
MESSAGES_MIN, FAULTS_MIN = 50, 2  # the least in a run that counts


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    numbers: dict[str, int]


@dataclass
class Totals:
    """The outcome of a range of seeds of one scenario."""

    scenario: str
    runs: int = 0
    messages: int = 0
    messages_min: int = 2**63
    faults_min: int = 2**63
    faults: dict[str, int] = field(default_factory=dict)
    violations: list[tuple[int, str]] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    seconds: float = 0.0  # host time of the threads that ran it

    def add(self, piece: dict) -> None:
        self.runs += piece["runs"]
        self.messages += piece["messages"]
        self.messages_min = min(self.messages_min, piece["messages_min"])
        self.faults_min = min(self.faults_min, piece["faults_min"])
        for fault, count in piece["faults"].items():
            self.faults[fault] = self.faults.get(fault, 0) + count
        self.violations += piece["violations"]
        self.hashes += piece["hashes"]

    @property
    def weak(self) -> bool:
        """True if a run had too few messages or too few faults."""
        return self.messages_min < MESSAGES_MIN or self.faults_min < FAULTS_MIN


def all_scenarios() -> dict[str, Scenario]:
    return {path.stem: read(path) for path in sorted(data.folder("scenarios").glob("*.toml"))}


def scenario_named(name: str) -> Scenario:
    """A shipped scenario, or a file's."""
    if name.endswith(".toml"):
        return read(Path(name))
    scenarios = all_scenarios()
    if name not in scenarios:
        raise Trouble("invalid", f"there is no scenario '{name}'{nearest(name, scenarios)}")
    return scenarios[name]


def read(path: Path) -> Scenario:
    content = documents.toml(path, "scenario ")
    title = str(content.pop("title", path.stem))
    return Scenario(path.stem, title, dict(flattened(content, path)))


def flattened(content: dict, path: Path, prefix: str = "") -> Iterator[tuple[str, int]]:
    for key, value in content.items():
        if isinstance(value, dict) and not prefix:
            yield from flattened(value, path, f"{key}.")
        elif isinstance(value, int) and not isinstance(value, bool):
            yield prefix + key, value
        else:
            raise Trouble("invalid", f"scenario {path}: {prefix}{key} is {value!r}, not a whole number")


def run(
    scenario: Scenario,
    first: int,
    last: int,
    jobs: int = 0,
    report: Callable[[int], None] = lambda runs: None,
    total: Totals | None = None,
) -> Totals:
    """Adds to `total`, where one is given: it has what was run when Ctrl-C comes."""
    engine = core.load()
    total = total or Totals(scenario.name)

    def piece(begin: int) -> dict:
        done = engine.run_torture(scenario.numbers, begin, min(begin + SEEDS_A_PIECE - 1, last))
        report(done["runs"])
        return done

    pool = ThreadPoolExecutor(jobs or os.cpu_count() or 1)
    try:
        for done in pool.map(piece, range(first, last + 1, SEEDS_A_PIECE)):
            total.add(done)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return total
