"""Lines of a Frame's numbers, legible in black and white."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from spinloom.common import files, pictures
from spinloom.common.errors import Trouble
from spinloom.nics.frame import Frame

STYLES = tuple(itertools.product(("-", "--", ":", "-."), ("o", "s", "^", "x", "D", "+")))
GREYS = ("0.0", "0.35", "0.6")


def draw(frame: Frame, x: str, y: str, by: str, path: Path | None) -> Any:
    names = list(dict.fromkeys(frame.column(by)))
    places = list(dict.fromkeys(value for value in frame.column(x) if value is not None))
    numbers = all(isinstance(place, int | float) for place in places)
    if not any(value is not None for value in frame.column(y)):
        raise Trouble("invalid", f"no row has a {y} to plot")
    if not all(isinstance(value, int | float) for value in frame.column(y) if value is not None):
        raise Trouble("invalid", f"the column '{y}' has no numbers to plot")
    series = [series_of(frame, x, y, by, name) for name in names]
    with pictures.canvas(6.0, 3.6) as figure:
        axes = figure.add_subplot()
        for number, name in enumerate(names):
            line, marker = STYLES[number % len(STYLES)]
            rows = series[number]
            axes.errorbar(
                [row[x] if numbers else places.index(row[x]) for row in rows],
                [row[y] for row in rows],
                yerr=[row[f"{y}_ci95"] for row in rows] if f"{y}_ci95" in frame.columns else None,
                label=str(name),
                linestyle=line,
                marker=marker,
                color=GREYS[number % len(GREYS)],
                capsize=2,
            )
        if numbers and len(places) > 2 and min(places) > 0 and max(places) >= 16 * min(places):
            axes.set_xscale("log", base=2)
        if not numbers:
            axes.set_xticks(range(len(places)), [str(place) for place in places], rotation=30, ha="right")
        if y == "speedup":
            pictures.mark_level(axes)
        axes.set_xlabel(x)
        axes.set_ylabel(f"{y} (modelled)")
        axes.set_title(machine_of(frame), fontsize=8)
        pictures.hide_spines(axes)
        axes.legend(frameon=False)
        if path is not None:
            files.write(path, pictures.encoded(figure, path.suffix))
    return figure


def series_of(frame: Frame, x: str, y: str, by: str, name: Any) -> list[dict[str, Any]]:
    """The rows of one line of the plot, sorted where x is a number. Raises Trouble if two rows share an x."""
    rows = [row for row in frame.where(**{by: name}) if row.get(y) is not None and row.get(x) is not None]
    if all(isinstance(row[x], int | float) for row in rows):
        rows.sort(key=lambda row: row[x])
    if len({row[x] for row in rows}) < len(rows):
        identifying = [
            each for each in frame.shown_columns() if each not in (x, y, by, "status", "time_ps", "speedup")
        ]
        varied = [each for each in identifying if len({row.get(each) for row in rows}) > 1]
        raise Trouble(
            "invalid",
            f"{by} {name!r} has several rows for one {x}, which differ in "
            f"{', '.join(varied) or 'nothing said'}: choose with where(), average with over(), or draw by "
            "another column",
        )
    return rows


def machine_of(frame: Frame) -> str:
    """The machines that are in the table: every picture names them."""
    nics = list(dict.fromkeys(f"{row.get('nic', '')}, host {row.get('host') or 'its own'}" for row in frame))
    return "; ".join(nics)
