"""draw_mpi.py FILE.svg - draws the table of DDTBench in docs/mpi.md, an MPI beside the layer."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "spinloom"
from matplotlib import pyplot  # noqa: E402

PAGE = Path(__file__).resolve().parents[1] / "docs/mpi.md"
ROW = re.compile(r"^\| ([^|]+) \| [\d,]+ \| [^|]+ \| ([\d.,]+) \| ([\d.,]+) \| [\d.]+ \|$", re.MULTILINE)


def rows() -> list[tuple[str, float, float]]:
    """Name, us of the best stock MPI, us of the best with the layer."""
    table = PAGE.read_text(encoding="utf-8").split("| application | bytes | best stock MPI |", 1)[1]
    found = ROW.findall(table.split("\n\n", 1)[0])
    return [(name, *(float(number.replace(",", "")) for number in numbers)) for name, *numbers in found]


def draw(out: str) -> None:
    measured = rows()
    figure, axes = pyplot.subplots(figsize=(9, 3.6))
    for shift, column, grey, label in (
        (-0.2, 1, "0.8", "best stock MPI"),
        (0.2, 2, "0.3", "with spinloom run"),
    ):
        places = [index + shift for index in range(len(measured))]
        axes.bar(places, [row[column] for row in measured], 0.4, color=grey, edgecolor="black", label=label)
    for index, (_, without, with_layer) in enumerate(measured):
        axes.text(index, without * 1.15, f"{without / with_layer:.1f}x", ha="center", fontsize=8)
    axes.set_yscale("log")
    axes.set_ylim(top=12000)
    axes.set_ylabel("us a message, two processes\n(measured)", fontsize=8)
    axes.set_xticks(range(len(measured)), [row[0] for row in measured], rotation=40, ha="right", fontsize=7)
    axes.tick_params("y", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    draw(sys.argv[1])
