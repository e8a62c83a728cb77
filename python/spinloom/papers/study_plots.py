"""Drawings of studies: time over size or ranks, one panel a NIC (and size). Legible in black and white; the
same rows, the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spinloom.common import pictures
from spinloom.common.units import format_bytes
from spinloom.papers import overlap_plots, program_plots, station_plots
from spinloom.papers.figure_plots import finish
from spinloom.papers.studies import Study

MARKS = {
    "rdma": ("x", "0.35", (0, (5, 2))),
    "portals4": ("+", "0.35", (0, (1, 1.5))),
    "store": ("^", "0.3", (0, (4, 1.5))),
    "stream": ("o", "0.0", "-"),
    "linear": (".", "0.5", (0, (1, 3))),
    "switch": ("s", "0.0", (0, (6, 1))),
}


def draw(study: Study, rows: list[dict[str, Any]], path: Path) -> None:
    if study.applications or study.mixes or study.recorded:
        program_plots.draw(study, rows, path)
        return
    if study.station:
        station_plots.draw(study, rows, path)
        return
    if study.operations:
        overlap_plots.draw(study, rows, path)
        return
    panels = panels_of(study)
    with pictures.canvas(7.2, 3.6) as canvas:
        all_axes = canvas.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (label, fixed) in zip(all_axes, panels, strict=True):
            chosen = [row for row in rows if all(row[name] == value for name, value in fixed.items())]
            panel(axes, study, chosen)
            axes.set_xlabel(label)
        all_axes[0].set_ylabel("modelled time (µs)")
        all_axes[0].legend(frameon=False, loc="upper left", fontsize=8, handlelength=3)
        finish(canvas, study.title, study.source, path)


def panels_of(study: Study) -> list[tuple[str, dict[str, Any]]]:
    """The values that are constant in each panel, and the label of its axis."""
    if study.networks:
        return [
            (
                f"ranks, {format_bytes(size)}\n{network.partition(':')[2]}",
                {"network": network, "size_bytes": size},
            )
            for network in study.networks
            for size in (study.sizes_bytes[0], study.sizes_bytes[-1])
        ]
    if not study.over_ranks:
        return [(f"message (B), {nic}", {"nic": nic}) for nic in study.nics]
    return [
        (f"ranks, {format_bytes(size)}\n{nic}", {"nic": nic, "size_bytes": size})
        for size in study.sizes_bytes
        for nic in study.nics
    ]


def panel(axes: Any, study: Study, rows: list[dict[str, Any]]) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axis = "ranks" if study.over_ranks else "size_bytes"
    for way in study.ways:
        mark, grey, dashes = MARKS[way]
        points = [row for row in rows if row["way"] == way]
        axes.plot(
            [row[axis] for row in points],
            [row["time_ps"] / 1e6 for row in points],
            marker=mark,
            color=grey,
            linestyle=dashes,
            label=way,
            markersize=4.5,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    pictures.hide_spines(axes)
