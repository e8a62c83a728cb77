"""The rows of `spinloom goal collective`: candidates of an operation, their times and their needs.

Contract: rows() gives one row for each algorithm of the catalogue that has a closed form, in its order:
time_ps by the form, simulated_ps by triggered operations on the NICs of the profile, and what the rank that
needs most takes of its NIC, as Table I of the FFLIB paper counts; the fastest by the form is chosen. What has
too many operations has None there. Times are modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics.machines import Machine
from spinloom.papers import collective_model

NONE = "none"
FIDELITIES = ("nic", "full", NONE)
ELEMENT = collective_model.ELEMENT
ATOMIC_MAX = 4096  # bytes of an atomic; never more than a packet
SIMULATED_MAX = 60_000  # operations of all ranks that are simulated at once
COLUMNS = {
    "algorithm": "its name",
    "segment_bytes": "of what it sends in segments: the best by the closed form; 0: none",
    "time_ps": "by the closed form",
    "is_near": "whether messages that meet in a NIC are counted only roughly in it",
    "simulated_ps": "by triggered operations on simulated NICs",
    "entries": "descriptors and match list entries of the rank that needs most",
    "triggered": "its triggered operations",
    "counters": "its counters for dependencies",
    "memory_bytes": "its memory beside the caller's",
    "table1_entries": "what Table I of the FFLIB paper says of these; None where it has no row",
    "table1_triggered": "the same",
    "table1_counters": "the same",
    "table1_memory_bytes": "the same: with the caller's",
    "chosen": "whether the model takes it",
}


@dataclass(frozen=True)
class Question:
    operation: str
    ranks: int
    size: int
    root: int = 0

    def offloaded(self, algorithm: str, segment_bytes: int) -> Any:
        return from_engine(
            lambda engine: engine.collective_offloaded(
                self.operation, algorithm, self.ranks, self.size, ELEMENT, segment_bytes, self.root
            )
        )


def from_engine(call: Callable[[Any], Any]) -> Any:
    """Returns what the engine says. Raises Trouble."""
    engine = core.load()
    try:
        return call(engine)
    except engine.SpinloomError as error:
        raise Trouble(error.code, error.message) from None


def check(question: Question, algorithm: str | None) -> None:
    """Raises Trouble for names that are none."""
    if algorithm is not None:
        from_engine(lambda engine: engine.collective_offloaded(question.operation, algorithm, 1, 0))


def rows(
    question: Question,
    machine: Machine,
    model: dict[str, Any],
    fidelity: str,
    step: Callable[[], object] = lambda: None,
) -> list[dict[str, Any]]:
    candidates = from_engine(
        lambda engine: engine.collective_candidates(
            question.operation, question.ranks, question.size, ELEMENT, model
        )
    )
    if not candidates:
        raise Trouble(
            "unsupported",
            f"{question.operation}: who sends how much to whom differs from call to call; "
            f"operations that are alike at all ranks are {', '.join(core.load().collective_operations())}",
        )
    chosen = from_engine(
        lambda engine: engine.collective_choice(
            question.operation, question.ranks, question.size, ELEMENT, model
        )
    )
    for row in candidates:
        row.update(simulated_ps=None, entries=None, triggered=None, counters=None, memory_bytes=None)
        row["chosen"] = row["algorithm"] == chosen
        try:
            offloaded = question.offloaded(row["algorithm"], row["segment_bytes"])
        except Trouble as trouble:
            if trouble.code != "overflow":
                raise
            step()
            continue
        row.update(offloaded.resources(min(ATOMIC_MAX, int(machine.profile["link.payload"]))))
        if fidelity != NONE and offloaded.operations() <= SIMULATED_MAX:
            row["simulated_ps"] = collective_model.simulated_ps(machine, offloaded, fidelity)
        step()
    return [{name: row[name] for name in COLUMNS} for row in candidates]


def at_scale(
    question: Question, algorithm: str | None, machine: Machine, model: dict[str, Any]
) -> dict[str, Any]:
    """One algorithm, the chosen one without a name, of many ranks, whose operations are made rank by rank."""
    check(question, algorithm)
    arguments = (question.operation, question.ranks, question.size, ELEMENT, model)
    candidates = from_engine(lambda engine: engine.collective_candidates(*arguments))
    name = algorithm or from_engine(lambda engine: engine.collective_choice(*arguments))
    row = next((each for each in candidates if each["algorithm"] == name), None)
    if row is None:
        raise Trouble("unsupported", f"{question.operation} by {name} has no closed form")
    schedule = from_engine(
        lambda engine: engine.collective_schedule(
            question.operation,
            name,
            question.ranks,
            question.size,
            ELEMENT,
            row["segment_bytes"],
            question.root,
        )
    )
    time_ps = collective_model.simulated_of(machine, schedule, "nic")
    return {
        "operation": question.operation,
        "algorithm": name,
        "ranks": question.ranks,
        "operations": schedule.count()["operations"],
        "time_ps": row["time_ps"],
        "is_near": row["is_near"],
        "simulated_ps": time_ps,
        "difference_percent": round(100 * (time_ps / row["time_ps"] - 1), 2),
    }


def chosen_of(candidates: list[dict[str, Any]], algorithm: str | None) -> dict[str, Any]:
    """The row of an algorithm, or the chosen one."""
    return next(
        row for row in candidates if row["algorithm"] == algorithm or (algorithm is None and row["chosen"])
    )
