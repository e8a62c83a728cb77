"""Drawings of studies of a station: what is modelled as lines, what FPsPIN's authors measured as marks.
Legible in black and white; the same rows, the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.common import pictures
from spinloom.papers.figure_plots import finish
from spinloom.papers.observe_frames import TYPES
from spinloom.papers.station_rows import PAPER_LONG_PERCENT, PAPER_OVERLAP_PERCENT
from spinloom.papers.studies import Study

Rows = list[dict[str, Any]]
SOLID, DASHED, DOTTED = "-", (0, (5, 2)), (0, (1, 1.5))
ANSWERS = {"host": ("x", "0.5", DOTTED), "both": ("^", "0.3", DASHED), "nic": ("o", "0.0", SOLID)}
# The line of the first is broad and grey, so that a second on top of it shows both.
UNPACKED = {
    "simple": {"marker": "o", "color": "0.6", "linestyle": SOLID, "linewidth": 3.5},
    "complex": {"marker": "^", "color": "0.0", "linestyle": DASHED, "linewidth": 1.2},
}
LEGEND = {"frameon": False, "fontsize": 8, "handlelength": 3}


def draw(study: Study, rows: Rows, path: Path) -> None:
    drawing = DRAWINGS[study.station]
    with pictures.canvas(7.2, 3.6) as canvas:
        panels = canvas.subplots(1, drawing.panels, sharey=True, squeeze=False)[0]
        drawing.paint(panels, study, rows)
        for axes in panels:
            pictures.hide_spines(axes)
        finish(canvas, study.title, f"{study.source}\nNIC {', '.join(study.nics)}", path)


def line(axes: Any, rows: Rows, x: str, y: str, scale: float, **style: Any) -> None:
    axes.plot([row[x] for row in rows], [row[y] / scale for row in rows], **{**style, "marker": ""})


def marks(axes: Any, rows: Rows, x: str, y: str, scale: float, **style: Any) -> None:
    """Only where there is a number."""
    line_of = {"linestyle": "", "markerfacecolor": "1.0", "markersize": 5.5, **style}
    measured_rows = [row for row in rows if row[y] is not None]
    axes.plot([row[x] for row in measured_rows], [row[y] / scale for row in measured_rows], **line_of)


def pings(panels: Any, study: Study, rows: Rows) -> None:
    """One panel a protocol."""
    for axes, protocol in zip(panels, study.protocols, strict=True):
        for way, (mark, grey, dashes) in ANSWERS.items():
            points = [row for row in rows if (row["protocol"], row["way"]) == (protocol, way)]
            line(axes, points, "size_bytes", "time_ps", 1e6, color=grey, linestyle=dashes)
            marks(axes, points, "size_bytes", "measured_ps", 1e6, color=grey, marker=mark)
            axes.plot([], [], color=grey, linestyle=dashes, marker=mark, markerfacecolor="1.0", label=way)
        axes.set_xlabel(f"payload (B), {protocol.upper()}")
    panels[0].set_ylabel("round trip (µs)")
    panels[0].set_ylim(0, 112)
    panels[0].legend(loc="upper left", ncols=3, **LEGEND)


def transfers(panels: Any, study: Study, rows: Rows) -> None:
    """Goodput over the messages side by side, by a segment; over the window of one message, by seeking."""
    from matplotlib.ticker import LogLocator, NullLocator

    for axes, way, x in zip(panels, study.ways, ("messages", "window"), strict=True):
        for name, style in UNPACKED.items():
            points = [row for row in rows if (row["type"], row["way"]) == (name, way)]
            line(axes, points, x, "mbit_s", 1, label=f"{name}, modelled", **style)
            marks(axes, points, x, "measured_mbit_s", 1, color="0.0", marker=style["marker"])
            if way == study.ways[0]:
                axes.plot(
                    [],
                    [],
                    color="0.0",
                    linestyle="",
                    marker=style["marker"],
                    markerfacecolor="1.0",
                    label=f"{name}, measured",
                )
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
    marks(panels[1], points, "window", "file_mbit_s", 1, color="0.0", marker="x", label="a file, measured")
    panels[0].set_xlabel("messages side by side,\neach by a segment with a window of 1")
    panels[1].set_xlabel("window (packets)\nof one message, by seeking")
    panels[0].set_ylabel("goodput (Mbit/s)")
    for axes in panels:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.legend(loc="lower right", **LEGEND)


def overlaps(panels: Any, study: Study, rows: Rows) -> None:
    """One panel a type."""
    least, most = PAPER_OVERLAP_PERCENT
    shortest = {"color": "0.4", "linewidth": 5, "solid_capstyle": "butt", "label": "the paper, shortest"}
    long = {"color": "0.4", "linestyle": DASHED}
    for axes, name in zip(panels, TYPES, strict=True):
        points = [row for row in rows if row["type"] == name]
        sizes = [row["message_bytes"] / 1e6 for row in points]
        axes.axhspan(least, 100, color="0.9", label="the paper, all messages")
        axes.plot(
            sizes, [row["overlap_percent"] for row in points], color="0.0", marker="o", label="modelled"
        )
        axes.plot([sizes[0]] * 2, [least, most], **shortest)
        axes.axhline(PAPER_LONG_PERCENT, label="the paper, long messages: above", **long)
        axes.set_xlabel(f"message (MB), {name}")
    panels[0].set_ylabel("overlap (%)")
    panels[0].set_ylim(86, 100.5)
    panels[0].legend(loc="lower right", **LEGEND)


def windows(panels: Any, study: Study, rows: Rows) -> None:
    (axes,) = panels
    sent = [row["send_ps"] / 1e6 for row in rows]
    for column, label, style in (
        ("formula", "formula (3)", {"color": "0.0"}),
        ("first_loss", "one window at once", {"color": "0.0", "marker": "o", "linestyle": ""}),
        ("first_loss_long", "a message of 8 windows", {"color": "0.0", "marker": "x", "linestyle": DASHED}),
        ("slots", "slots of the receiver", {"color": "0.5", "linestyle": DOTTED}),
    ):
        axes.plot(sent, [row[column] for row in rows], label=label, **style)
    axes.set_xlabel("time between packets sent (µs)")
    axes.set_ylabel("smallest window with a loss (packets)")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", **LEGEND)


@dataclass(frozen=True)
class Drawing:
    panels: int
    paint: Callable[[Any, Study, Rows], None]


DRAWINGS = {
    "pings": Drawing(2, pings),
    "slmp": Drawing(2, transfers),
    "overlaps": Drawing(2, overlaps),
    "windows": Drawing(1, windows),
}
