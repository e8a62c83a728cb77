"""`spinloom trace --live NAME`: what the ranks of a live job sent each other, and what each does."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from spinloom.common import files, output
from spinloom.common.errors import EXIT_NEGATIVE, EXIT_OK, Trouble
from spinloom.traces import live_trace
from spinloom.traces.live_trace import Message, State


def show(name: str, only_states: bool, timeline: Path | None, form: str) -> int:
    """Prints the messages of the job, or the states of its ranks. Returns the exit code."""
    messages = live_trace.read(name)
    states = live_trace.states(name)
    if timeline is not None:
        files.write(timeline, live_trace.timeline(messages, name))
    if only_states:
        if not states:
            raise Trouble("invalid", f"--states: there is no {name}.0.state; older libraries do not write it")
        output.emit([state_row(state) for state in states], form, lambda: table_of_states(states))
        return EXIT_NEGATIVE if any(state.state == "dead" for state in states) else EXIT_OK
    pairs: dict[tuple[int, int, str], list[Message]] = {}
    for message in messages:
        pairs.setdefault((message.source, message.target, message.operation), []).append(message)
    rows = [row_of(key, pair_messages) for key, pair_messages in sorted(pairs.items())]
    output.emit(rows, form, lambda: table_of(rows))
    for state in states:
        if state.state != "left":
            output.say(sentence_of(state))
    wrong = any(row["missing"] for row in rows) or any(state.state == "dead" for state in states)
    return EXIT_NEGATIVE if wrong else EXIT_OK


def sentence_of(state: State) -> str:
    """Returns what a rank does, for how long."""
    if state.state == "dead":
        return (
            f"rank {state.rank} is dead: its process has ended without PtlFini; its last state: {state.says}"
        )
    return f"rank {state.rank} {state.says}{duration_text(state)}"


def duration_text(state: State) -> str:
    if state.since_ns is None or state.state not in ("starts", "runs"):
        return ""
    return f", for {max(0, time.time_ns() - state.since_ns) / 1e9:.1f} s"


def state_row(state: State) -> dict[str, Any]:
    return {"rank": state.rank, "state": state.state, "since_ns": state.since_ns, "says": state.says}


def table_of_states(states: list[State]):
    cells = [[str(state.rank), state.state, f"{state.says}{duration_text(state)}"] for state in states]
    return output.table(["rank", "state", "about"], cells, numeric={"rank"})


def row_of(key: tuple[int, int, str], messages: list[Message]) -> dict[str, Any]:
    times = sorted(message.took_ns / 1e3 for message in messages if message.took_ns is not None)
    return {
        "from": key[0],
        "to": key[1],
        "operation": key[2],
        "messages": len(messages),
        "bytes": sum(message.bytes for message in messages),
        "median_us": median(times) if times else None,
        "max_us": times[-1] if times else None,
        "missing": sum(not message.complete for message in messages),
    }


def table_of(rows: list[dict[str, Any]]):
    def us(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    cells = [
        [
            str(row["from"]),
            str(row["to"]),
            row["operation"],
            str(row["messages"]),
            str(row["bytes"]),
            us(row["median_us"]),
            us(row["max_us"]),
            str(row["missing"] or ""),
        ]
        for row in rows
    ]
    numeric = {"messages", "bytes", "median us", "max us", "missing"}
    return output.table(
        ["from", "to", "operation", "messages", "bytes", "median us", "max us", "missing"],
        cells,
        numeric=numeric,
    )
