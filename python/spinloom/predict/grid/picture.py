"""A plot of a sweep's table: one column over another, a line for each value of what else was varied.

Contract: draw() writes an SVG or PNG, legible in black and white. Rows without a value of x or y have no
point. Without `by`, lines are by every column that was varied, apart from x. What all rows share stands
below. Raises Trouble for columns that do not exist or have no numbers, and where two rows would be one
point.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from spinloom.common import files, pictures, units
from spinloom.common.errors import Trouble, nearest
from spinloom.predict.grid import table
from spinloom.predict.grid.cells import Cell

Rows = list[dict[str, Any]]
LINES, MARKERS, GREYS = ("-", "--", ":", "-."), ("o", "s", "^", "x", "D", "+"), ("0.0", "0.35", "0.6")
LINES_MAX = 8
WIDE = 32  # a range is drawn in powers from here on
IN_PS = {"_ps": 1, "_ns": 1000}  # columns that are times


def check(path: Path) -> None:
    if path.suffix not in pictures.ENDINGS:
        raise Trouble("invalid", f"--plot {path}: end the name in {' or '.join(pictures.ENDINGS)}")
    pictures.require("--axes")


def axes_of(cells: list[Cell]) -> list[str]:
    return list(dict.fromkeys(name for cell in cells for name in cell.columns))


def varied(cells: list[Cell], rows: Rows) -> list[str]:
    """The columns of the cells that differ between rows."""
    return [name for name in axes_of(cells) if len({row.get(name) for row in rows}) > 1]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def rows_with_points(rows: Rows, x: str, y: str, by: list[str]) -> Rows:
    """The rows that have a point."""
    names = table.columns(rows)
    for name in (x, y, *by):
        if name not in names:
            raise Trouble("invalid", f"--axes: there is no column '{name}'{nearest(name, names)}")
    points = [row for row in rows if row.get(x) is not None and row.get(y) is not None]
    if not points:
        raise Trouble("invalid", f"--axes: no row has both {x} and {y}")
    if not all(is_number(row[y]) for row in points):
        raise Trouble("invalid", f"--axes: the column {y} has no numbers")
    return points


def lines_of(points: Rows, x: str, names: list[str], all_varied: list[str]) -> dict[str, Rows]:
    lines: dict[str, Rows] = {}
    for row in points:
        lines.setdefault(", ".join(str(row.get(name)) for name in names), []).append(row)
    for name, rows in lines.items():
        if len({row[x] for row in rows}) < len(rows):
            missing = [each for each in all_varied if each not in (x, *names)]
            raise Trouble(
                "invalid",
                f"--axes: the line '{name}' has several rows for one {x}; add what differs to --by: "
                f"{','.join([*names, *missing])}",
            )
        if all(is_number(row[x]) for row in rows):
            rows.sort(key=lambda row: row[x])
    if len(lines) > LINES_MAX:
        raise Trouble(
            "invalid",
            f"--axes: {len(lines)} lines are too many to tell apart; name the columns that make at most "
            f"{LINES_MAX} by --by, or sweep fewer values",
        )
    return lines


def draw(cells: list[Cell], rows: Rows, x: str, y: str, by: list[str] | None, path: Path) -> None:
    points_rows = rows_with_points(rows, x, y, by or [])
    all_varied = varied(cells, points_rows)
    names = by if by is not None else [name for name in all_varied if name not in (x, y)]
    lines = lines_of(points_rows, x, names, all_varied)
    factor, label = axis_scale(points_rows, y, y not in axes_of(cells))
    places = list(dict.fromkeys(row[x] for row in points_rows))
    numeric = all(map(is_number, places))
    with pictures.canvas(6.4, 4.0, dpi=150) as figure:
        axes = figure.add_subplot()
        for index, (name, points) in enumerate(lines.items()):
            axes.plot(
                [row[x] if numeric else places.index(row[x]) for row in points],
                [row[y] * factor for row in points],
                label=name,
                linestyle=LINES[index % len(LINES)],
                marker=MARKERS[index % len(MARKERS)],
                color=GREYS[index // len(LINES) % len(GREYS)],
                markersize=5,
                fillstyle="none" if index % 2 else "full",
            )
        if numeric:
            number_axis(axes, sorted(places))
        else:
            axes.set_xticks(range(len(places)), [str(place) for place in places], rotation=30, ha="right")
        heights = [row[y] for row in points_rows]
        if min(heights) > 0 and max(heights) >= WIDE * min(heights):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
        else:
            axes.set_ylim(bottom=min(0, *heights) * factor)
        if y == "speedup":
            pictures.mark_level(axes)
        axes.set_xlabel(x)
        axes.set_ylabel(label)
        pictures.hide_spines(axes)
        axes.grid(axis="y", linewidth=0.4, color="0.85")
        if names:
            axes.legend(frameon=False, title=", ".join(names), loc="upper left", bbox_to_anchor=(1.0, 1.0))
        foot = textwrap.fill(shared_values(cells, points_rows, x), 110)
        pictures.foot(figure, foot)
        files.write(path, pictures.encoded(figure, path.suffix))


def axis_scale(points: Rows, y: str, modelled: bool) -> tuple[float, str]:
    """A factor for the column's numbers, and what the axis says: times in the unit of the largest."""
    label = f"{y} (modelled)" if modelled else y
    in_ps = IN_PS.get(y[-3:])
    if in_ps is None:
        return 1, label
    largest = max(row[y] for row in points) * in_ps
    unit, ps = next(((unit, ps) for unit, ps in reversed(units.TIME_PS.items()) if largest >= ps), ("ps", 1))
    name = y[:-3].replace("_", " ")
    return (
        in_ps / ps,
        f"{'modelled ' if modelled else ''}{name if 'time' in name else f'time: {name}'} [{unit}]",
    )


def number_axis(axes: Any, places: list[float]) -> None:
    """Powers where the values spread so; a tick at each value, if they are few."""
    if len(places) > 2 and places[0] > 0 and places[-1] >= 8 * places[0]:
        axes.set_xscale("log", base=2)
    if len(places) <= 10:
        axes.set_xticks(places, [f"{place:,}" for place in places])
        axes.minorticks_off()


def shared_values(cells: list[Cell], points: Rows, x: str) -> str:
    """Returns what is the same in all rows: every picture says what it is of."""
    names = [name for name in axes_of(cells) if name not in varied(cells, points) and name not in (x, "kind")]
    texts = [f"{name} {points[0][name]}" for name in names if points[0].get(name) not in (None, "", "custom")]
    return "; ".join(texts)
