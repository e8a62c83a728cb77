"""The views of `spinloom trace DIR`: what a recorded MPI program did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spinloom import output, recorded
from spinloom.errors import EXIT_OK


def show(directory: Path, form: str) -> int:
    traces = recorded.read(directory)
    for sentence in recorded.warnings(traces):
        output.say(sentence)
    rows = recorded.call_rows(traces)
    output.emit(rows, form, lambda: calls_table(rows))
    return EXIT_OK


def seconds(value: float) -> str:
    return f"{value:.6f}"


def calls_table(rows: list[dict[str, Any]]):
    columns = ["call", "count", "polls", "bytes sent", "bytes received", "time s", "share %"]
    columns += ["least s", "on rank", "most s", "on rank "]
    shown = [
        [
            row["call"],
            str(row["count"]),
            str(row["polls"] or ""),
            str(row["sent_bytes"] or ""),
            str(row["received_bytes"] or ""),
            seconds(row["time_s"]),
            f"{100 * row['share']:.2f}",
            seconds(row["min_time_s"]),
            str(row["min_rank"]),
            seconds(row["max_time_s"]),
            str(row["max_rank"]),
        ]
        for row in rows
    ]
    return output.table(columns, shown, numeric=set(columns[1:]))
