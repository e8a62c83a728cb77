"""Drawings of figures: lines, bars, stacks, series, rows, histogram, dots. Legible in black and white.

Contract: draw(figure, rows, line, path) writes one SVG from the rows of figure_tables.rows(); the same rows
give the same bytes. Missing points are named under the plot.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spinloom.common import pictures
from spinloom.common.files import write as write_file
from spinloom.common.units import format_time
from spinloom.nics.plot import GREYS, HATCHES
from spinloom.nics.strategies import BASELINE, STRATEGIES
from spinloom.papers.figure_tables import COPIES, Figure

Rows = list[dict[str, Any]]
MARKS = {
    BASELINE: ("x", "0.35", (0, (5, 2))),
    "host-best": ("+", "0.35", (0, (1, 1.5))),
    "iovec": ("v", "0.5", (0, (3, 1, 1, 1))),
    "specialised": ("o", "0.0", "-"),
    "hpu-local": ("^", "0.45", (0, (2, 1))),
    "ro-cp": ("D", "0.45", (0, (4, 1, 1, 1))),
    "rw-cp": ("s", "0.0", (0, (4, 1.5))),
    "seek": ("*", "0.25", "-"),
    COPIES: ("o", "0.0", "-"),
}
GREYS_ALL = {BASELINE: "1.0", **GREYS}
HATCHES_ALL = {BASELINE: "...", **HATCHES}
REUSES_SHOWN_MAX = 1000
LANE = 24  # groups of bars side by side


def draw(figure: Figure, rows: Rows, line: float | None, path: Path) -> None:
    good = [row for row in rows if row["status"] == "ok"]
    with pictures.canvas(7.2, 3.9) as canvas:
        if good:
            DRAWINGS[figure.plot](canvas, figure, good, line)
        notes = missing(rows)
        source = f"{figure.source}; NIC {' and '.join(figure.nics)}"
        finish(canvas, figure.title, "\n".join([source, *notes]), path)


def finish(canvas: Any, title: str, source: str, path: Path) -> None:
    """The title above, the source below, and the file; within canvas()."""
    canvas.suptitle(title, fontsize=9.5, x=0.01, ha="left")
    pictures.foot(canvas, source)
    write_file(path, pictures.encoded(canvas))


def missing(rows: Rows) -> list[str]:
    """One line for each strategy with missing points."""
    notes: dict[tuple[str, str], int] = {}
    for row in rows:
        if row["status"] != "ok":
            message = row["message"] if len(row["message"]) < 130 else row["message"][:127] + "..."
            key = (row["strategy"], message)
            notes[key] = notes.get(key, 0) + 1
    if len(notes) > 3:
        by_strategy: dict[str, int] = {}
        for (strategy, _), count in notes.items():
            by_strategy[strategy] = by_strategy.get(strategy, 0) + count
        return [
            f"not available: {strategy}, {count} points (see the CSV)"
            for strategy, count in by_strategy.items()
        ]
    return [
        f"not available: {strategy} ({count} points): {message}"
        for (strategy, message), count in notes.items()
    ]


def series_of(rows: Rows) -> dict[tuple[str, str], Rows]:
    """Rows by (nic, strategy), in the order of the strategies' table."""
    by_series: dict[tuple[str, str], Rows] = {}
    for row in rows:
        by_series.setdefault((row.get("nic", ""), row["strategy"]), []).append(row)
    order = [COPIES, *STRATEGIES]
    return dict(sorted(by_series.items(), key=lambda item: (item[0][0], order.index(item[0][1]))))


def legend(axes: Any, **more: Any) -> None:
    settings = {"frameon": False, "loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": 4, "fontsize": 8}
    axes.legend(**{**settings, "handlelength": 3, **more})


def whole_numbers(axes: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))


def log2_axis(axes: Any, values: list[int]) -> None:
    labels = [f"{value // 1024}Ki" if value >= 1024 and value % 1024 == 0 else str(value) for value in values]
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, labels)
    axes.minorticks_off()


def lines(canvas: Any, figure: Figure, rows: Rows, line: float | None) -> None:
    axes = canvas.add_subplot()
    all_series = series_of(rows)
    nics = figure.nics
    for number, ((nic, strategy), points) in enumerate(all_series.items()):
        mark, grey, dashes = MARKS[strategy]
        axes.plot(
            [point[figure.axis] for point in points],
            [point[figure.measure] for point in points],
            marker=mark if len(nics) == 1 else "os^"[number % 3],
            color=grey,
            linestyle=dashes if len(nics) == 1 else ("-", "--", ":")[number % 3],
            linewidth=1.2,
            markersize=6,
            markerfacecolor=("none", grey)[strategy in ("specialised", "rw-cp", "seek", COPIES)],
            label=strategy if len(nics) == 1 else f"{strategy}, {nic}",
        )
    log2_axis(axes, sorted({row[figure.axis] for row in rows}))
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    if figure.y_scale == "log":
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        axes.set_ylim(0, 1.1 * max([line or 0, *(row[figure.measure] for row in rows)]))
    if line is not None:
        axes.axhline(line, color="black", linewidth=0.7, linestyle=(0, (1, 2)))
        axes.annotate(
            f"line rate {line:.0f}",
            (1, line),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize=7,
        )
    axes.grid(axis="y", color="0.9", linewidth=0.5)
    pictures.hide_spines(axes)
    legend(axes, ncols=4 if len(nics) == 1 else 2)


def needed(canvas: Any, figure: Figure, rows: Rows, line: float | None) -> None:
    axes = canvas.add_subplot()
    services = sorted({row["service_ns"] for row in rows}, reverse=True)
    for number, service_ns in enumerate(services):
        points = [row for row in rows if row["service_ns"] == service_ns]
        sizes = [point[figure.axis] for point in points]
        grey = str(0.6 * number / len(services))
        axes.plot(sizes, [point["hpus_by_law"] for point in points], color=grey, linewidth=1)
        axes.plot(
            sizes,
            [point[figure.measure] for point in points],
            "osD^v"[number % 5],
            color=grey,
            markersize=5,
            markerfacecolor="none",
            label=f"{service_ns} ns",
        )
    log2_axis(axes, sorted({row[figure.axis] for row in rows}))
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    axes.grid(axis="y", color="0.9", linewidth=0.5)
    pictures.hide_spines(axes)
    legend(axes, ncols=5)


def bar_group(canvas: Any, figure: Figure, rows: Rows, parts: list[tuple[str, str]]) -> Any:
    """One group for each value of the axis, one bar for each strategy; parts are (column, filling), from
    below."""
    axes = canvas.add_subplot()
    values = list(dict.fromkeys(row[figure.axis] for row in rows))
    strategies = [name for name in STRATEGIES if any(row["strategy"] == name for row in rows)]
    width = 0.84 / len(strategies)
    for row in rows:
        bar = strategies.index(row["strategy"])
        place = values.index(row[figure.axis]) + (bar - (len(strategies) - 1) / 2) * width
        bottom = 0.0
        for column, fill in parts:
            own = fill == "own"
            axes.bar(
                place,
                row[column],
                width,
                bottom=bottom,
                color=GREYS_ALL[row["strategy"]] if own else "white",
                hatch=HATCHES_ALL[row["strategy"]] if own else "",
                edgecolor="black",
                linewidth=0.6,
            )
            bottom += row[column]
        axes.annotate(
            f"{bottom:,.0f}",
            (place, bottom),
            ha="center",
            va="bottom",
            fontsize=6.5,
            xytext=(0, 1),
            textcoords="offset points",
        )
    axes.set_xticks(range(len(values)), [str(value) for value in values])
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    pictures.hide_spines(axes)
    return axes


def strategy_legend(axes: Any, strategies: list[str], *more: tuple[str, str, str]) -> None:
    from matplotlib.patches import Patch

    patches = [
        Patch(
            facecolor=GREYS_ALL[name], hatch=HATCHES_ALL[name], edgecolor="black", linewidth=0.6, label=name
        )
        for name in strategies
    ]
    patches += [
        Patch(facecolor=grey, hatch=hatch, edgecolor="black", linewidth=0.6, label=text)
        for grey, hatch, text in more
    ]
    legend(axes, handles=patches, handlelength=1.8, ncols=max(4, len(patches)))


def strategies_in(rows: Rows) -> list[str]:
    return [name for name in STRATEGIES if any(row["strategy"] == name for row in rows)]


def bars(canvas: Any, figure: Figure, rows: Rows, line: float | None) -> None:
    axes = bar_group(canvas, figure, rows, [(figure.measure, "own")])
    values = list(dict.fromkeys(row[figure.axis] for row in rows))
    labels = []
    for value in values:
        writes = max(row["dma_writes"] for row in rows if row[figure.axis] == value)
        labels.append(f"{value}\n({writes:,} writes)")
    axes.set_xticks(range(len(values)), labels)
    whole_numbers(axes)
    strategy_legend(axes, strategies_in(rows))


def stacked(canvas: Any, figure: Figure, rows: Rows, line: float | None) -> None:
    axes = bar_group(canvas, figure, rows, [("before_first_call_ns", "own"), ("after_ns", "white")])
    strategy_legend(axes, strategies_in(rows), ("white", "", "from the first call on"))
    axes.set_ylim(bottom=0)


def series(canvas: Any, figure: Figure, rows: Rows, line: float | None) -> None:
    by_series = series_of(rows)
    panels = canvas.subplots(len(by_series), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, ((_, strategy), points) in zip(panels, by_series.items(), strict=True):
        times = [point["interval_start_ps"] / 1e6 for point in points]
        depths = [point[figure.measure] for point in points]
        axes.fill_between(times, depths, step="post", color="0.55", linewidth=0)
        axes.step(times, depths, where="post", color="black", linewidth=0.4)
        axes.set_title(
            f"{strategy}: at most {max(depths)}, last write after {times[-1]:.0f} µs",
            loc="left",
            fontsize=8,
            pad=2,
        )
        axes.set_ylim(0, 1.15 * max(point[figure.measure] for point in rows))
        whole_numbers(axes)
        pictures.hide_spines(axes)
    panels[-1].set_xlabel(figure.x_label)
    panels[len(panels) // 2].set_ylabel(figure.y_label)


def rows_panels(canvas: Any, figure: Figure, rows: Rows, line: float | None) -> None:
    """One panel for each application, one group of bars for each row, all panels on one logarithmic scale."""
    compared = [row for row in rows if row["strategy"] != BASELINE]
    groups: dict[str, Rows] = {}
    for row in compared:
        groups.setdefault(row["application"], []).append(row)
    names = strategies_in(compared)
    lanes = lanes_of({name: len({row["datatype"] for row in group}) for name, group in groups.items()})
    canvas.set_size_inches(13, 2.35 * len(lanes) + 0.6)
    grid = canvas.add_gridspec(len(lanes), 1)
    top = max(row[figure.measure] for row in compared)
    bottom = min(row[figure.measure] for row in compared)
    first = None
    for lane_number, lane in enumerate(lanes):
        widths = [len({row["datatype"] for row in groups[name]}) for name in lane]
        filler = [LANE - sum(widths)] if sum(widths) < LANE else []
        sub = grid[lane_number].subgridspec(1, len(lane) + len(filler), width_ratios=widths + filler)
        for place, name in enumerate(lane):
            axes = canvas.add_subplot(sub[place])
            first = first or axes
            panel(axes, figure, groups[name], names)
            axes.set_title(name, fontsize=8.5, fontweight="bold", pad=3)
            axes.set_yscale("log", base=2)
            axes.set_ylim(min(0.5, bottom * 0.8), top * 1.7)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            if place:
                axes.tick_params(labelleft=False)
            else:
                axes.set_ylabel(figure.y_label)
    strategy_legend(first, names)
    first.get_legend().set_bbox_to_anchor((0, 1.12))


def lanes_of(widths: dict[str, int], widest: int = LANE) -> list[list[str]]:
    """Panels in lines of about equal width, in order."""
    lanes: list[list[str]] = [[]]
    for name, width in widths.items():
        if lanes[-1] and sum(widths[other] for other in lanes[-1]) + width > widest:
            lanes.append([])
        lanes[-1].append(name)
    return lanes


def panel(axes: Any, figure: Figure, rows: Rows, names: list[str]) -> None:
    datatypes = list(dict.fromkeys(row["datatype"] for row in rows))
    width = 0.86 / len(names)
    for row in rows:
        bar = names.index(row["strategy"])
        place = datatypes.index(row["datatype"]) + (bar - (len(names) - 1) / 2) * width
        value = row[figure.measure]
        axes.bar(
            place,
            value,
            width,
            color=GREYS_ALL[row["strategy"]],
            hatch=HATCHES_ALL[row["strategy"]],
            edgecolor="black",
            linewidth=0.5,
        )
        label = f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
        axes.annotate(
            label,
            (place, max(value, 1)),
            ha="center",
            va="bottom",
            rotation=90,
            fontsize=5.5,
            xytext=(0, 2),
            textcoords="offset points",
        )
    labels = []
    for datatype in datatypes:
        row = next(row for row in rows if row["datatype"] == datatype)
        labels.append(
            f"{in_two_lines(datatype)}\n\u03b3 {row['blocks_per_packet']:.3g}\nS {kib(row['size_bytes'])}\n"
            f"T {format_time(row['baseline_time_ps'])}"
        )
    axes.set_xticks(range(len(datatypes)), labels, fontsize=5.5)
    axes.axhline(1, color="black", linewidth=0.7, linestyle=(0, (4, 3)))
    axes.grid(axis="y", color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    pictures.hide_spines(axes)


def in_two_lines(name: str) -> str:
    """A long name is broken at the space nearest to its middle, so that names of neighbours do not meet."""
    spaces = [at for at, letter in enumerate(name) if letter == " "]
    if not spaces or len(name) < 9:
        return f"{name}\n"
    middle = min(spaces, key=lambda at: abs(at - len(name) / 2))
    return f"{name[:middle]}\n{name[middle + 1 :]}"


def kib(size_bytes: int) -> str:
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= size:
            return f"{size_bytes / size:.3g} {unit}"
    return f"{size_bytes} B"


def histogram(canvas: Any, figure: Figure, rows: Rows, line: float | None) -> None:
    axes = canvas.add_subplot()
    names = [BASELINE, *[name for name in strategies_in(rows) if name != BASELINE]]
    volumes = {name: [row[figure.measure] for row in rows if row["strategy"] == name] for name in names}
    everything = [value for group in volumes.values() for value in group]
    low, high = math.floor(math.log2(min(everything))), math.ceil(math.log2(max(everything)))
    edges = [2.0**power for power in range(low, high + 1)]
    for number, name in enumerate(names):
        counts = [
            sum(edge <= value < after for value in volumes[name])
            for edge, after in zip(edges, [*edges[1:], math.inf], strict=True)
        ]
        places = [math.log2(edge) + 0.08 + 0.42 * number for edge in edges]
        axes.bar(
            places,
            counts,
            0.42,
            align="edge",
            color=GREYS_ALL[name],
            hatch=HATCHES_ALL[name],
            edgecolor="black",
            linewidth=0.6,
        )
        mean = statistics.geometric_mean(volumes[name])
        axes.axvline(math.log2(mean), color="black", linewidth=1, linestyle="--" if name == BASELINE else "-")
        axes.annotate(
            f"{name}: {mean:.0f} KiB",
            (math.log2(mean), 0.98 - 0.07 * number),
            xycoords=("data", "axes fraction"),
            xytext=(4 if number == 0 else -4, 0),
            textcoords="offset points",
            ha="left" if number == 0 else "right",
            va="top",
            fontsize=7.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
    powers = range(low, high + 2)
    axes.set_xticks(list(powers)[::2], [kib(round(1024 * 2.0**power)) for power in powers][::2], fontsize=7)
    whole_numbers(axes)
    axes.set_ylim(top=axes.get_ylim()[1] * 1.15)
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    pictures.hide_spines(axes)
    strategy_legend(axes, names)


def dots(canvas: Any, figure: Figure, rows: Rows, line: float | None) -> None:
    """One column for each application, one dot for each row; rows that gain nothing lie on a separate
    line."""
    axes = canvas.add_subplot()
    compared = [row for row in rows if row["strategy"] != BASELINE]
    names = list(dict.fromkeys(row["application"] for row in compared))
    for name in names:
        application_rows = [row for row in compared if row["application"] == name]
        for number, row in enumerate(application_rows):
            value = row[figure.measure]
            shift = (number - (len(application_rows) - 1) / 2) * min(0.1, 0.8 / len(application_rows))
            never = math.isinf(value)
            axes.plot(
                names.index(name) + shift,
                REUSES_SHOWN_MAX if never else max(value, 1),
                marker="x" if never else "o",
                color="black",
                markerfacecolor="0.7",
                markersize=5,
                linestyle="none",
            )
    few = sum(row[figure.measure] < 4 for row in compared)
    axes.axhline(3.5, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.annotate(
        f"below: fewer than 4 ({few} of {len(compared)} datatypes; the paper: 75 %)",
        (0.01, 3.6),
        xycoords=("axes fraction", "data"),
        fontsize=7.5,
        va="bottom",
    )
    axes.set_yscale("log")
    ticks = [1, 2, 3, 4, 10, 30, 100, 300, REUSES_SHOWN_MAX]
    axes.set_yticks(ticks, [*[str(tick) for tick in ticks[:-1]], "never"])
    axes.minorticks_off()
    axes.set_ylim(0.8, REUSES_SHOWN_MAX * 1.5)
    axes.set_xticks(range(len(names)), names, fontsize=7, rotation=30, ha="right")
    axes.set_ylabel(figure.y_label)
    axes.grid(axis="y", color="0.92", linewidth=0.5)
    pictures.hide_spines(axes)


DRAWINGS: dict[str, Callable[[Any, Figure, Rows, float | None], None]] = {
    "lines": lines,
    "needed": needed,
    "bars": bars,
    "stacked": stacked,
    "series": series,
    "rows": rows_panels,
    "histogram": histogram,
    "dots": dots,
}
