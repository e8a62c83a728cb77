"""Our model beside LogGOPSim's rules, and which rule makes the difference.

Contract: compare() runs a schedule by both. Where ranks end at different times, it takes features away from
the schedule or from the parameters, of both, until they agree: the smallest such set, the first in the order
of RULES, is what makes the difference. Nothing is guessed: each set is tried.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.predict import goal_model


@dataclass(frozen=True)
class Rule:
    name: str
    about: str
    text: Callable[[str], str] | None = None  # the schedule without it
    parameters: dict[str, Any] | None = None  # our model's parameters, without it


RULES = (
    Rule(
        "no bytes",
        "a message of 0 bytes costs what one of 1 byte does; there its bytes cost -G and -O",
        text=lambda goal: re.sub(r"\b(send|recv) 0b", r"\1 1b", goal),
    ),
    Rule(
        "rendezvous",
        "more than S bytes: a request, an answer, then the data; there the data come at once",
        parameters={"S_bytes": 2**64 - 1},
    ),
    Rule(
        "CPUs",
        "ends have times for other CPUs, too, and the receive says whose CPU pays; there neither",
        text=lambda goal: re.sub(r" cpu \d+", "", goal),
    ),
    Rule(
        "O", "O of all bytes before a message leaves; there while its bytes leave", parameters={"O": (0, 1)}
    ),
    Rule(
        "g",
        "gaps of a NIC, which sends and takes by itself; there CPUs wait for them",
        parameters={"g_ps": 0},
    ),
    Rule("G", "bytes keep NICs busy; there a receiving CPU, too", parameters={"G": (0, 1)}),
    Rule(
        "o",
        "a receiving CPU works where message and receive meet; there when it comes",
        parameters={"o_ps": 0},
    ),
)


@dataclass(frozen=True)
class Comparison:
    ours_ps: list[int]
    loggopsim_ps: list[int]
    rules: tuple[Rule, ...] | None  # None: they differ without all of them, too

    def makespans(self) -> tuple[int, int]:
        return max(self.ours_ps), max(self.loggopsim_ps)


def in_units(parameters: dict[str, Any]) -> dict[str, int]:
    """The parameters of LogGOPSim, in the unit of the computations."""
    unit = parameters["unit_ps"]
    times = {
        **{name: Fraction(parameters[f"{name}_ps"]) for name in "Log"},
        **{name: Fraction(*parameters[name]) for name in "GO"},
    }
    for name, value in times.items():
        if unit == 0 or (value / unit).denominator != 1:
            raise Trouble(
                "invalid",
                f"{goal_model.OPTIONS[name][0]} of {value} ps is no whole number of --unit ({unit} ps), "
                "in which LogGOPSim counts",
            )
    return {**{name: int(value / unit) for name, value in times.items()}, "S": parameters["S_bytes"]}


def times_by_both(schedule: Any, parameters: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Our times and LogGOPSim's, in picoseconds."""
    ours = schedule.run(**parameters)["finish_ps"]
    theirs = schedule.run_loggopsim(**in_units(parameters), apart=parameters.get("apart"))["host_times"]
    return ours, [time * parameters["unit_ps"] for time in theirs]


def without(rules: tuple[Rule, ...], goal: str, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    changed = dict(parameters)
    for rule in rules:
        goal = rule.text(goal) if rule.text else goal
        changed.update(rule.parameters or {})
    return core.load().read_goal(goal.encode()), changed


def agrees(rules: tuple[Rule, ...], goal: str, parameters: dict[str, Any]) -> bool:
    try:
        ours, theirs = times_by_both(*without(rules, goal, parameters))
    except core.load().SpinloomError:
        return False
    return ours == theirs


def compare(schedule: Any, parameters: dict[str, Any]) -> Comparison:
    """`parameters`: those of Schedule.run."""
    ours, theirs = times_by_both(schedule, parameters)
    goal = schedule.text().decode()
    for count in range(len(RULES) + 1):
        for rules in itertools.combinations(RULES, count):
            if agrees(rules, goal, parameters):
                return Comparison(ours, theirs, rules)
    return Comparison(ours, theirs, None)
