"""The report of the layout bench: goals and results, misses by name, a plot.

Ratios are other time over our time: above 1 we are faster.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from spinloom.common import files, pictures

HAND_GOAL = 0.95
HAND_FLOOR = 0.85
HAND_SHARE = 0.98
MPI_GOAL = 2.0
NUMPY_FROM_BYTES = 4096  # above: as fast as NumPy; up to it: NUMPY_SMALL of its speed
NUMPY_SMALL = 0.8
TRANSPOSE_GOAL = 3.0
BOUND_GOAL = 0.8
BOUND_FROM_BYTES = 256

Rows = list[dict[str, Any]]


def with_hand(rows: Rows) -> Rows:
    return [row for row in rows if row["hand"]]


def with_mpi(rows: Rows) -> Rows:
    return [row for row in rows if row["mpi"]]


def with_numpy(rows: Rows) -> Rows:
    return [row for row in rows if row.get("numpy")]


def numpy_goal(row: dict[str, Any]) -> float:
    return 1.0 if row["bytes"] > NUMPY_FROM_BYTES else NUMPY_SMALL


def bound_rows(rows: Rows) -> Rows:
    """Rows of equal blocks that must reach the memory bound."""
    return [row for row in rows if row["family"] == "vector" and row["block_bytes_min"] >= BOUND_FROM_BYTES]


def misses(rows: Rows) -> list[tuple[str, dict[str, Any]]]:
    """Pairs of (missed goal, row)."""
    missed = [("hand", row) for row in with_hand(rows) if row["hand_over_ours_high"] < HAND_GOAL]
    missed += [("NumPy", row) for row in with_numpy(rows) if row["numpy_over_python_high"] < numpy_goal(row)]
    missed += [("bound", row) for row in bound_rows(rows) if row["bound_over_ours"] < BOUND_GOAL]
    return missed


def geometric_mean(values: list[float]) -> float:
    return statistics.geometric_mean(values) if values else float("nan")


def goals(rows: Rows) -> Rows:
    """One dictionary for each goal: what, rows, reached, goal."""
    hand, mpi = with_hand(rows), with_mpi(rows)
    results = []
    if hand:
        reach = [row for row in hand if row["hand_over_ours_high"] >= HAND_GOAL]
        worst = min(hand, key=lambda row: row["hand_over_ours"])
        results.append(
            goal(f"rows at {HAND_GOAL} of the hand loop", hand, len(reach) / len(hand), HAND_SHARE)
        )
        results.append(
            goal(
                f"worst row ({worst['operation']} {worst['row']})", hand, worst["hand_over_ours"], HAND_FLOOR
            )
        )
        results.append(
            goal(
                "hand loop over ours, geometric mean",
                hand,
                geometric_mean([row["hand_over_ours"] for row in hand]),
                1,
            )
        )
    if mpi:
        results.append(
            goal(
                "best MPI over ours, geometric mean",
                mpi,
                geometric_mean([row["mpi_over_ours"] for row in mpi]),
                MPI_GOAL,
            )
        )
        transposes = [row for row in mpi if row["family"] == "transpose"]
        if transposes:
            ratio = geometric_mean([row["mpi_over_ours"] for row in transposes])
            results.append(goal("best MPI over ours, transposes", transposes, ratio, TRANSPOSE_GOAL))
    for wanted, which in ((1.0, "above"), (NUMPY_SMALL, "up to")):
        numpy = [row for row in with_numpy(rows) if numpy_goal(row) == wanted]
        if numpy:
            share = sum(row["numpy_over_python_high"] >= wanted for row in numpy) / len(numpy)
            results.append(
                goal(
                    f"rows at {wanted} of NumPy, {which} {NUMPY_FROM_BYTES:,} B, from Python",
                    numpy,
                    share,
                    1.0,
                )
            )
    blocks = bound_rows(rows)
    if blocks:
        share = sum(row["bound_over_ours"] >= BOUND_GOAL for row in blocks) / len(blocks)
        results.append(
            goal(
                f"rows at {BOUND_GOAL} of the memory bound, blocks of {BOUND_FROM_BYTES} B on",
                blocks,
                share,
                0.95,
            )
        )
    return results


def goal(title: str, rows: Rows, reached: float, wanted: float) -> dict[str, Any]:
    return {
        "goal": title,
        "rows": len(rows),
        "reached": round(reached, 3),
        "wanted": wanted,
        "met": reached >= wanted,
    }


def write_svg(rows: Rows, path: Path) -> None:
    """Each row a mark: our speed over the hand loop's (left) and over the best MPI's (right), by family."""
    families = list(dict.fromkeys(row["family"] for row in rows))
    marks = {"pack": "o", "unpack": "s", "copy": "^"}
    panels = [
        ("hand loop", "hand_over_ours", with_hand(rows), [HAND_FLOOR, 1.0]),
        ("best MPI", "mpi_over_ours", with_mpi(rows), [1.0, MPI_GOAL]),
    ]
    with pictures.canvas(9.0, 4.2) as figure:
        for axes, (title, key, chosen, lines) in zip(figure.subplots(1, 2), panels, strict=True):
            for operation, mark in marks.items():
                places, heights = [], []
                for number, family in enumerate(families):
                    values = sorted(
                        row[key]
                        for row in chosen
                        if row["family"] == family and row["operation"] == operation
                    )
                    shift = (list(marks).index(operation) - 1) * 0.26
                    places += [
                        number + shift + 0.2 * ((i + 0.5) / len(values) - 0.5) for i in range(len(values))
                    ]
                    heights += values
                axes.plot(
                    places, heights, mark, markersize=3, markerfacecolor="none", markeredgecolor="black",
                    markeredgewidth=0.6, label=operation, linestyle="none",
                )  # fmt: skip
            for at in lines:
                pictures.mark_level(axes, at)
            axes.set_yscale("log", base=2)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.set_xticks(range(len(families)), families, rotation=30, ha="right", rotation_mode="anchor")
            axes.set_ylabel(f"time of the {title} / ours (host time)")
            pictures.hide_spines(axes)
            axes.margins(x=0.02)
        figure.axes[0].legend(
            frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), title="each row, sorted"
        )
        files.write(path, pictures.encoded(figure))
