"""Drawing of the study of collective operations: a column for each, latency above and overhead below,
over ranks. Legible in black and white; the same rows, the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spinloom.common import pictures, units
from spinloom.papers.figure_plots import finish
from spinloom.papers.overlap import CPU, LINEAR, NIC
from spinloom.papers.studies import Study

MARKS = {
    NIC: ("o", "0.0", "-"),
    CPU: ("x", "0.35", (0, (5, 2))),
    LINEAR: (".", "0.5", (0, (1, 2))),
}
SHOWN = {"time_ps": "latency (µs)", "overhead_ps": "overhead (µs)"}


def draw(study: Study, rows: list[dict[str, Any]], path: Path) -> None:
    with pictures.canvas(7.2, 4.6) as canvas:
        grid = canvas.subplots(len(SHOWN), len(study.operations), sharex=True, sharey="row", squeeze=False)
        for panels, (column, label) in zip(grid, SHOWN.items(), strict=True):
            for axes, operation in zip(panels, study.operations, strict=True):
                panel(axes, study, [row for row in rows if row["operation"] == operation], column)
            panels[0].set_ylabel(label)
        for axes, operation in zip(grid[0], study.operations, strict=True):
            axes.set_title(operation)
        for axes in grid[-1]:
            axes.set_xlabel("ranks")
        lines, labels = grid[0][-1].get_legend_handles_labels()
        grid[0][1].legend(lines, labels, loc="upper left", frameon=False, fontsize=8, handlelength=3)
        title = f"{units.format_bytes(study.sizes_bytes[0])}: {study.title}"
        finish(canvas, title, f"{study.source}; {', '.join(study.nics)}", path)


def panel(axes: Any, study: Study, rows: list[dict[str, Any]], column: str) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    for way in study.ways:
        points = [row for row in rows if row["way"] == way]
        if not points:
            continue
        mark, grey, dashes = MARKS[way]
        axes.plot(
            [row["ranks"] for row in points],
            [row[column] / 1e6 for row in points],
            marker=mark,
            color=grey,
            linestyle=dashes,
            label=way,
            markersize=4.5,
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(
        ticks := [each for each in (2, 8, 32, 128, 512) if each <= max(study.ranks)], map(str, ticks)
    )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    pictures.hide_spines(axes)
