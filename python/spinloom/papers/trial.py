"""A Trial is a profile with some of its numbers changed; an Observation is a number computed from its cells.

Contract: an Observation has probes(trial, **arguments), the cells that it needs, and value(trial, readings,
**arguments), a pure function of their readings in the same order. Nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from spinloom.nics import workloads
from spinloom.nics.profiles import Profile
from spinloom.papers import lab
from spinloom.papers.lab import Probe, Reading, row_probe


@dataclass(frozen=True)
class Trial:
    """The profile on which an observation is made."""

    nic: str = lab.NIC
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def profile(self) -> Profile:
        return lab.profile_of(self.nic, self.changes)

    def probe(self, type_text: str, strategy: str, **more: Any) -> Probe:
        return Probe(type_text, strategy, nic=self.nic, changes=self.changes, **more)

    def rows(self, *strategies: str) -> list[Probe]:
        """Every row of the paper's applications under each of these strategies."""
        return [
            replace(row_probe(row, strategy), nic=self.nic, changes=self.changes)
            for row in workloads.paper()
            for strategy in strategies
        ]


@dataclass(frozen=True)
class Observation:
    probes: Callable[..., list[Probe]]
    value: Callable[..., float]


def grouped(readings: list[Reading], size: int) -> list[list[Reading]]:
    return [readings[first : first + size] for first in range(0, len(readings), size)]
