"""The table that `spinloom sweep` prints for people: what was varied, and the times."""

from __future__ import annotations

from typing import Any

from spinloom.common import output, units

# Their headings: times are shown with their units.
MEASURED_COLUMNS = {"time_ps": "time", "speedup": "speedup", "last_rank_ends_ns": "last rank ends"}
ROWS_SHOWN = 40
FAILED_SHOWN = 10


def plan(rows: list[dict[str, Any]], varied: list[str]) -> Any:
    """Shows what would run: what varies; the title counts the cells."""
    cells = [[as_text(name, row.get(name)) for name in varied] for row in rows]
    return output.table(varied, cells, numeric=numbers(rows, varied), title=f"{len(rows):,} cells")


def numbers(rows: list[dict[str, Any]], names: list[str]) -> set[str]:
    return {name for name in names if all(isinstance(row.get(name), int | float | None) for row in rows)}


def show(rows: list[dict[str, Any]], varied: list[str], about: dict[str, Any]) -> None:
    measured = [name for name in MEASURED_COLUMNS if any(row.get(name) is not None for row in rows)]
    names = [*varied, "status", *measured]
    cells = [[as_text(name, row.get(name)) for name in names] for row in rows[:ROWS_SHOWN]]
    headings = {name: MEASURED_COLUMNS.get(name, name) for name in names}
    numeric = {headings[name] for name in numbers(rows, names)}
    table = output.table(list(headings.values()), cells, numeric=numeric, title="Modelled times")
    output.show(table, keys=len(varied))
    console = output.console()
    if len(rows) > ROWS_SHOWN:
        console.print(f"... and {len(rows) - ROWS_SHOWN:,} rows more in sweep.parquet")
    console.print(
        f"result hash {about['result_hash']}; host time of this run {about['host_time_s']:.1f} s",
        soft_wrap=True,
    )


def as_text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in ("time_ps", "last_rank_ends_ns"):
        return units.format_time(value * (1000 if name.endswith("_ns") else 1))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
