"""Drawings of studies: time over size, one panel a NIC. Legible in black and white; the same rows, the same
bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from spinloom.figure_plots import STYLE, legend, plain
from spinloom.results import write_file
from spinloom.studies import Study

MARKS = {
    "rdma": ("x", "0.35", (0, (5, 2))),
    "portals4": ("+", "0.35", (0, (1, 1.5))),
    "store": ("^", "0.3", (0, (4, 1.5))),
    "stream": ("o", "0.0", "-"),
}


def draw(study: Study, rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import LogLocator, NullLocator

    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(7.2, 3.6), layout="constrained")
        panels = canvas.subplots(1, len(study.nics), sharey=True, squeeze=False)[0]
        for axes, nic in zip(panels, study.nics, strict=True):
            for way in study.ways:
                mark, grey, dashes = MARKS[way]
                points = [row for row in rows if row["nic"] == nic and row["way"] == way]
                axes.plot(
                    [row["size_bytes"] for row in points],
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
            axes.set_xlabel(f"message (B), {nic}")
            plain(axes)
        panels[0].set_ylabel("modelled time (µs)")
        legend(panels[0])
        canvas.suptitle(study.title, fontsize=9.5, x=0.01, ha="left")
        canvas.supxlabel(study.source, fontsize=6.5, x=0.01, ha="left", color="0.25")
        out = io.StringIO()
        canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": "spinloom"})
    write_file(path, out.getvalue())
