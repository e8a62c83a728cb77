"""A table of rows: what simulate() returns.

Contract: a Frame is a sequence of dictionaries with the same meaning of every key; nothing is rounded for
show. Its columns are all keys, in the order in which they came. to_pandas() and to_polars() need their
library, plot() matplotlib; without it they raise Trouble('environment') with the line that installs it.
"""

from __future__ import annotations

import importlib
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from spinloom.common import csv_text, files, output, units
from spinloom.common.errors import Trouble, nearest
from spinloom.common.printable import html

SHOWN = ("datatype", "strategy", "status", "time_ps", "speedup")  # columns of every table that is printed
SHOWN_ROWS = 60

# Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond, the normal distribution's.
T_95 = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
)
T_95_MANY = ((20, 2.12), (25, 2.086), (30, 2.06), (60, 2.042), (120, 2.0))


def t_95(freedom: int) -> float:
    """Never too small: between two entries the one of fewer degrees of freedom."""
    if freedom <= len(T_95):
        return T_95[freedom - 1]
    return next((value for most, value in T_95_MANY if freedom <= most), 1.98)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and half of its 95 % confidence interval (0 of one value)."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, 0.0
    return mean, t_95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


class Frame(Sequence[dict[str, Any]]):
    def __init__(self, rows: list[dict[str, Any]], *, partial: bool = False, result_hash: str = "") -> None:
        self.rows = rows
        self.partial = partial  # cells are missing: the run was interrupted
        self.result_hash = result_hash

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Frame: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Frame:
        return Frame(self.rows[index], partial=self.partial) if isinstance(index, slice) else self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def column(self, name: str) -> list[Any]:
        """The values of one column, None where a row has none. Raises Trouble for an unknown name."""
        if self.rows and name not in self.columns:
            raise Trouble("invalid", f"there is no column '{name}'{nearest(name, self.columns)}")
        return [row.get(name) for row in self.rows]

    def where(self, test: Callable[[dict[str, Any]], bool] | None = None, **equal: Any) -> Frame:
        """The rows for which test(row) is true and whose columns equal what is given."""
        for name in equal:
            self.column(name)
        rows = [
            row
            for row in self.rows
            if all(row.get(name) == value for name, value in equal.items()) and (test is None or test(row))
        ]
        return Frame(rows, partial=self.partial)

    def one(self, **equal: Any) -> dict[str, Any]:
        """The only row of that description. Raises Trouble when there are none or several."""
        rows = self.where(**equal)
        if len(rows) != 1:
            description = ", ".join(f"{name}={value!r}" for name, value in equal.items())
            raise Trouble(
                "invalid", f"{len(rows)} rows {f'have {description}' if description else 'are here'}, not one"
            )
        return rows[0]

    def over(self, name: str = "seed", values: Sequence[str] = ("time_ps", "speedup")) -> Frame:
        """Rows that differ in column `name` as one: the mean of each of `values`, and in NAME_ci95 half of
        its 95 % confidence interval; `runs` counts them. Columns that differ for other reasons are left
        out."""
        self.column(name)
        values = [values] if isinstance(values, str) else list(values)
        for value in values:
            if not all(
                isinstance(number, int | float) for number in self.column(value) if number is not None
            ):
                raise Trouble("invalid", f"the column '{value}' has no numbers to average")
        from spinloom.nics.simulation import MACHINE  # the columns that say what was simulated

        identifying = [*MACHINE, *(column for column in self.columns if "." in column)]
        identifying += ["application", "datatype", "strategy", "size_bytes", "blocks_per_packet", "baseline"]
        identifying += ["checked", "status", "message"]
        keys = [column for column in self.columns if column in identifying and column != name]
        groups: dict[tuple, list[dict[str, Any]]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
        merged = []
        for key, rows in groups.items():
            merged_row: dict[str, Any] = {**dict(zip(keys, key, strict=True)), "runs": len(rows)}
            for value in values:
                numbers = [row[value] for row in rows if row.get(value) is not None]
                merged_row[value], merged_row[f"{value}_ci95"] = (
                    interval(numbers) if numbers else (None, None)
                )
            merged.append(merged_row)
        return Frame(merged, partial=self.partial)

    # ---- elsewhere ----

    def to_pandas(self) -> Any:
        return optional("pandas").DataFrame(self.rows, columns=self.columns)

    def to_polars(self) -> Any:
        rows = [{name: row.get(name) for name in self.columns} for row in self.rows]
        return optional("polars").DataFrame(rows, infer_schema_length=None)

    def to_csv(self, path: str | Path | None = None) -> str:
        """CSV text, long format; also written to a file where one is named."""
        text = csv_text.as_csv(self.rows, self.columns)
        if path is not None:
            files.write(Path(path), text)
        return text

    def plot(
        self, x: str, y: str = "speedup", *, by: str = "strategy", path: str | Path | None = None
    ) -> Any:
        """Lines of y over x, one for each value of `by`, as a matplotlib Figure; also written where a file is
        named."""
        optional("matplotlib")
        from spinloom.nics.frame_plot import draw

        return draw(self, x, y, by, None if path is None else Path(path))

    # ---- for people ----

    def shown_columns(self) -> list[str]:
        """The columns of SHOWN, after every column that says what was simulated and differs between rows."""
        from spinloom.nics.simulation import MACHINE

        identifying = [
            name for name in self.columns if name in MACHINE or "." in name or name in ("application", "runs")
        ]
        varied = [name for name in identifying if len({row.get(name) for row in self.rows}) > 1]
        return [*varied, *(name for name in SHOWN if name in self.columns)]

    def as_text(self, name: str, value: Any) -> str:
        if value is None:
            return ""
        if name.endswith("_ps"):
            return units.format_time(round(value))
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        names = self.shown_columns()
        return names, [
            [self.as_text(name, row.get(name)) for name in names] for row in self.rows[:SHOWN_ROWS]
        ]

    def __repr__(self) -> str:
        names, cells = self.cells()
        text = output.as_text(output.table(names, cells))
        more = len(self.rows) - SHOWN_ROWS
        rest = f"... and {more:,} rows more\n" if more > 0 else ""
        return text + rest + ("partial: cells are missing\n" if self.partial else "")

    def _repr_html_(self) -> str:
        names, cells = self.cells()
        head = "".join(f"<th>{html(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{html(cell)}</td>" for cell in row) + "</tr>" for row in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Trouble("environment", f"{name} is not installed (pip install {name})") from None
