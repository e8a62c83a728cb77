"""Several datatypes on one NIC whose memory they share: what `spinloom simulate --together` runs.

Contract: parse() reads 'APPLICATION[:DATATYPE][@ATTRIBUTES]'. run() opens one simulated NIC and yields the
messages of the types in turn, round after round; each was compared with the oracle, or has a code and no
number. Receives stay on the NIC by priority, then least recently used first, and fall back to the host
(SC'19 paper, section 3.2.6). Wrong bytes concern their message only; any other error is the last message.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from spinloom.common import core, units
from spinloom.common.errors import EXIT_ENVIRONMENT, EXIT_OF_CODE, EXIT_USAGE, Trouble, nearest
from spinloom.nics import preparation, results, sweep, workloads
from spinloom.nics.profiles import Profile
from spinloom.nics.strategies import BASELINE, DIRECT
from spinloom.nics.sweep import Cell, Setup
from spinloom.nics.workloads import Row

ATTRIBUTES = ("priority", "epsilon", "host")
PRIORITY_MAX = (1 << 31) - 1
SERVED = ("hit", "prepared", "fallback", "host")

COLUMNS = {
    "round": "the how-many-eth message of its type, from 1",
    "priority": "the type's: receives of lower priority leave the NIC first, and never for one below theirs",
    "epsilon": "the type's, instead of the profile's checkpoint.epsilon",
    "served": "hit (on the NIC already), prepared (put there for this message), fallback (the host unpacks "
    "because the NIC could not take it) or host (the host unpacks because the type says so)",
    "evictions": "receives that left the NIC for this one",
    "nic_memory_in_use_bytes": "NIC memory of all receives when the message is done",
    "preparation_ps": "modelled host time to build what was put on the NIC and copy it there; not in time_ps",
}


@dataclass(frozen=True)
class SharedType:
    """A datatype and what its user says about it."""

    row: Row
    offload: bool = True
    priority: int = 0
    epsilon: Fraction | None = None

    def native(self) -> dict[str, Any]:
        """The type as the engine takes it."""
        ratio = None if self.epsilon is None else [self.epsilon.numerator, self.epsilon.denominator]
        return {
            "type": self.row.type,
            "count": self.row.count,
            "offload": self.offload,
            "priority": self.priority,
            "epsilon": ratio,
        }


@dataclass(frozen=True)
class Message:
    """The outcome of one message: columns, or a code and a sentence."""

    round: int
    shared: SharedType
    columns: dict[str, Any] = field(default_factory=dict)
    destination_sha256: str = ""
    events_sha256: str = ""
    code: str = "ok"
    message: str = ""


@dataclass(frozen=True)
class Table:
    rows: list[dict[str, Any]]
    summary: dict[str, Any]
    result_hash: str
    partial: bool


# ---- arguments ----


def parse(text: str) -> list[SharedType]:
    """'MILC:16^4@priority=3,epsilon=0.4', or every datatype of an application. Raises Trouble('invalid')."""
    name, _, attributes = text.partition("@")
    application, colon, datatype = name.partition(":")
    rows = [workloads.row(application, datatype)] if colon else workloads.application(application).rows
    values = read_attributes(text, attributes)
    return [SharedType(row, **values) for row in rows]


def read_attributes(argument: str, text: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if name not in ATTRIBUTES:
            raise Trouble(
                "invalid", f"'{argument}': there is no attribute '{name}'{nearest(name, ATTRIBUTES)}"
            )
        if name == "host":
            if sign:
                raise Trouble("invalid", f"'{argument}': 'host' has no value; it means: not on the NIC")
            values["offload"] = False
        else:
            values[name] = (
                read_priority(argument, value) if name == "priority" else read_epsilon(argument, value)
            )
    return values


def read_priority(argument: str, text: str) -> int:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and int(digits) <= PRIORITY_MAX:
        return int(text)
    raise Trouble("invalid", f"'{argument}': priority '{text}' is no whole number up to {PRIORITY_MAX}")


def read_epsilon(argument: str, text: str) -> Fraction:
    try:
        epsilon = units.parse_rational(text)
    except ValueError as error:
        raise Trouble("invalid", f"'{argument}': epsilon '{text}': {error}") from None
    if epsilon == 0:
        raise Trouble("invalid", f"'{argument}': epsilon must be positive")
    return epsilon


# ---- running ----


def run(types: list[SharedType], setup: Setup, strategy: str, rounds: int) -> Iterator[Message]:
    """The messages in the order in which they come. Raises Trouble."""
    engine = core.load()
    settings = sweep.config(Cell(types[0].row, strategy), setup)
    try:
        nic = engine.share({**settings, "types": [shared.native() for shared in types]})
    except engine.SpinloomError as error:
        raise Trouble(error.code, error.message) from None
    for number in range(1, rounds + 1):
        for index, shared in enumerate(types):
            message = receive(engine, nic, index, shared, number)
            yield message
            if message.code not in ("ok", "mismatch"):
                return


def receive(engine: Any, nic: Any, index: int, shared: SharedType, number: int) -> Message:
    try:
        columns = dict(nic.receive(index))
    except engine.SpinloomError as error:
        if EXIT_OF_CODE[error.code] in (EXIT_USAGE, EXIT_ENVIRONMENT):
            raise Trouble(error.code, f"{row_label(shared.row)}: {error.message}") from None
        return Message(number, shared, code=error.code, message=error.message)
    destination = hashlib.sha256(columns.pop("destination")).hexdigest()
    events = hashlib.sha256(columns.pop("event_log")).hexdigest()
    if not columns.pop("checked"):
        return Message(
            number, shared, code="mismatch", message="the bytes in memory differ from the oracle's"
        )
    return Message(number, shared, columns, destination, events, message=columns.pop("message"))


def baselines(types: list[SharedType], setup: Setup) -> dict[Row, int]:
    """Modelled time without offloading, in ps, by datatype: contiguous data lands in place, the host unpacks
    other."""
    engine = core.load()
    times_ps = {}
    for row in dict.fromkeys(shared.row for shared in types):
        for strategy in (DIRECT, BASELINE):
            outcome = sweep.run_cell(engine, Cell(row, strategy), replace(setup, inject="none"))
            if outcome.code == "ok":
                break
        if outcome.code != "ok":
            raise Trouble(outcome.code, f"{outcome.cell}: {outcome.message}")
        times_ps[row] = outcome.columns["time_ps"]
    return times_ps


# ---- results ----


def row_label(row: Row) -> str:
    return f"{row.application} {row.datatype}"


def build(
    messages: list[Message], expected: int, profile: Profile, setup: Setup, host_ps: dict[Row, int]
) -> Table:
    rows = [as_row(message, profile, host_ps[message.shared.row]) for message in messages]
    return Table(rows, summarise(rows), result_hash(setup, messages), partial=len(messages) < expected)


def as_row(message: Message, profile: Profile, host_ps: int) -> dict[str, Any]:
    shared, columns = message.shared, message.columns
    time_ps = columns.get("time_ps")
    prepared = columns.get("served") == "prepared"
    return {
        "round": message.round,
        "application": shared.row.application,
        "datatype": shared.row.datatype,
        "priority": shared.priority,
        "epsilon": None if shared.epsilon is None else str(shared.epsilon),
        "served": columns.get("served"),
        "evictions": columns.get("evictions"),
        "nic_memory_bytes": columns.get("nic_memory_bytes"),
        "nic_memory_in_use_bytes": columns.get("nic_memory_in_use_bytes"),
        "prepared_blocks": columns.get("prepared_blocks"),
        "preparation_ps": round(preparation.preparation_ps(profile, columns)) if prepared else 0,
        "size_bytes": columns.get("size_bytes", shared.row.size_bytes),
        "time_ps": time_ps,
        "speedup": round(host_ps / time_ps, 4) if time_ps else None,
        "checked": message.code == "ok",
        "status": message.code,
        "message": message.message,
    }


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts, and mean speed-ups over the baseline with and without what preparing receives takes."""
    good = [row for row in rows if row["checked"]]
    counts = {served: sum(row["served"] == served for row in good) for served in SERVED}
    host_ps = [row["speedup"] * row["time_ps"] for row in good]
    with_preparation_ps = [row["time_ps"] + row["preparation_ps"] for row in good]
    return {
        "messages": len(rows),
        "hits": counts["hit"],
        "prepared": counts["prepared"],
        "fallbacks": counts["fallback"],
        "on_host": counts["host"],
        "evictions": sum(row["evictions"] for row in good),
        "speedup_mean": mean(row["speedup"] for row in good),
        "speedup_mean_with_preparation": mean(
            host / total for host, total in zip(host_ps, with_preparation_ps, strict=True)
        ),
    }


def mean(ratios: Iterator[float]) -> float | None:
    """Geometric; None of nothing."""
    values = list(ratios)
    return round(statistics.geometric_mean(values), 4) if values else None


def result_hash(setup: Setup, messages: list[Message]) -> str:
    return results.digest(
        {
            "profile": setup.profile,
            "images": results.image_hashes(setup.images),
            "rows": [
                {
                    "application": message.shared.row.application,
                    "datatype": message.shared.row.datatype,
                    "attributes": message.shared.native(),
                    "status": message.code,
                    "columns": message.columns,
                    "destination": message.destination_sha256,
                    "events": message.events_sha256,
                }
                for message in messages
            ],
        }
    )
