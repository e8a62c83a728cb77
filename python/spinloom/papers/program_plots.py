"""Drawings of studies of whole programs and of storage traces: gains beside the paper's, or time and gain
over ranks. Legible in black and white; the same rows, the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spinloom.common import pictures
from spinloom.papers.figure_plots import finish
from spinloom.papers.studies import Study

MARKS = (("x", "0.35", (0, (5, 2))), ("+", "0.35", (0, (1, 1.5))), ("o", "0.0", "-"))


def draw(study: Study, rows: list[dict[str, Any]], path: Path) -> None:
    with pictures.canvas(7.2, 3.6) as canvas:
        panels = canvas.subplots(1, 2, sharey=study.strategy == "", squeeze=False)[0]
        painter = over_ranks if study.strategy else of_traces if study.mixes else gains
        if study.recorded:
            painter = turns
        painter(panels, study, rows)
        finish(canvas, study.title, study.source, path)


def gains(panels: Any, study: Study, rows: list[dict[str, Any]]) -> None:
    """One panel a NIC: bars of the last way's gain, a line for the paper's."""
    for axes, nic in zip(panels, study.nics, strict=True):
        chosen = [row for row in rows if row["nic"] == nic and row["way"] == study.ways[-1]]
        places = range(len(chosen))
        axes.bar(
            places, [row["gain_percent"] for row in chosen], width=0.55, color="0.75", label=study.ways[-1]
        )
        axes.plot(
            places,
            [row["paper_gain_percent"] for row in chosen],
            marker="_",
            markersize=28,
            markeredgewidth=1.8,
            linestyle="",
            color="0.0",
            label="the paper",
        )
        axes.set_xticks(places, [row["application"] for row in chosen])
        axes.set_xlabel(nic)
        pictures.hide_spines(axes)
    panels[0].set_ylabel(f"modelled gain over {study.ways[0]} (%)")
    panels[0].set_ylim(top=1.3 * max(row["gain_percent"] for row in rows))
    panels[0].legend(frameon=False, loc="upper left", fontsize=8, markerscale=0.6, ncols=2)


def of_traces(panels: Any, study: Study, rows: list[dict[str, Any]]) -> None:
    """One panel a NIC: for each trace a bar for each way but the first, lines for the least and the most that
    the paper has seen."""
    width = 0.36
    for axes, nic in zip(panels, study.nics, strict=True):
        for place, (way, grey) in enumerate(zip(study.ways[1:], ("0.85", "0.45"), strict=True)):
            chosen = [row for row in rows if row["nic"] == nic and row["way"] == way]
            lefts = [at + (place - 0.5) * width for at in range(len(chosen))]
            bars = axes.bar(
                lefts,
                [row["gain_percent"] for row in chosen],
                width=width,
                color=grey,
                edgecolor="0.0",
                linewidth=0.6,
                label=way,
            )
            paper = {"facecolor": "1.0", "edgecolor": "none", "pad": 0.8}
            axes.bar_label(bars, fmt="{:.1f}", fontsize=7, padding=2.5, bbox=paper)
        for gain in study.paper_gains_percent:
            axes.axhline(gain, color="0.0", linewidth=0.9, linestyle=(0, (5, 3)), zorder=0)
        names = [f"{row['trace']}\n{row['writes_percent']:.3g} % writes" for row in chosen]
        axes.set_xticks(range(len(names)), names, fontsize=7.5)
        axes.set_xlabel(nic)
        pictures.hide_spines(axes)
    panels[0].plot([], [], color="0.0", linewidth=0.9, linestyle=(0, (5, 3)), label="the paper's range")
    panels[0].set_ylabel(f"modelled gain over {study.ways[0]} (%)")
    most = max(row["gain_percent"] for row in rows)
    panels[0].set_ylim(top=1.3 * max(most, *study.paper_gains_percent))
    panels[0].legend(frameon=False, loc="upper left", fontsize=8, ncols=3)


def turns(panels: Any, study: Study, rows: list[dict[str, Any]]) -> None:
    """One panel a program: what a turn takes, and what of it is the wait for its collective operation."""
    styles = (("0.5", (0, (5, 2))), ("0.0", "-"))
    for axes, program in zip(panels, study.recorded, strict=True):
        for way, (grey, dashes) in zip(study.ways, styles, strict=True):
            points = [row for row in rows if (row["program"], row["way"]) == (program, way)]
            for column, quantity, mark, filled in (
                ("turn_ps", "a turn", "s", "1.0"),
                ("wait_ps", "its wait", "o", grey),
            ):
                axes.plot(
                    [row["ranks"] for row in points],
                    [row[column] / 1e6 for row in points],
                    marker=mark,
                    color=grey,
                    linestyle=dashes,
                    markersize=5,
                    markerfacecolor=filled,
                    label=f"{way}, {quantity}",
                )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xticks(study.ranks, [str(count) for count in study.ranks])
        axes.set_xlabel(f"ranks, {program}, {study.nics[0]}")
        pictures.hide_spines(axes)
    panels[0].set_ylabel("modelled time (µs)")
    panels[0].set_ylim(top=3e4)
    panels[0].legend(frameon=False, loc="upper left", fontsize=7.5, handlelength=3, ncols=2)


def over_ranks(panels: Any, study: Study, rows: list[dict[str, Any]]) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    for way, (mark, grey, dashes) in zip(study.ways, MARKS, strict=True):
        points = [row for row in rows if row["way"] == way]
        style = {"marker": mark, "color": grey, "linestyle": dashes, "label": way, "markersize": 4.5}
        ranks = [row["ranks"] for row in points]
        panels[0].plot(ranks, [row["time_ps"] / 1e9 for row in points], **style)
        if way != study.ways[0]:
            panels[1].plot(ranks, [row["gain_percent"] for row in points], **style)
    panels[0].set_yscale("log")
    panels[0].yaxis.set_major_formatter("{x:g}")
    panels[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panels[0].yaxis.set_minor_locator(NullLocator())
    panels[0].set_ylabel("modelled time (ms)")
    panels[1].set_ylabel(f"modelled gain over {study.ways[0]} (%)")
    for axes in panels:
        axes.set_xscale("log", base=2)
        axes.set_xticks(study.ranks, [str(count) for count in study.ranks])
        axes.set_xlabel(f"ranks, {study.nics[0]}")
        pictures.hide_spines(axes)
    panels[0].legend(frameon=False, loc="lower left", fontsize=8, handlelength=3)
