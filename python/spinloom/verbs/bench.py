"""`spinloom bench`: speed of the parts on this machine, compared with their alternatives (host time)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from spinloom.bench import measure, peers, report
from spinloom.bench import rows as bench_rows
from spinloom.bench.numpy_peer import numpy_ways
from spinloom.common import core, csv_text, files, output, pictures, units
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.nics import results
from spinloom.verbs.groups import Group
from spinloom.verbs.options import form_options, out_option
from spinloom.verbs.stopping import stoppable


@click.group(
    cls=Group,
    places={"layout": "bench:layout", "gpu": "bench_gpu:gpu", "mpi": "bench_mpi:mpi"},
    epilog="Examples: spinloom bench layout --quick; spinloom bench mpi collectives --quick",
)
def bench() -> None:
    """Measure how fast this machine moves layouts and messages.

    All times are host time.
    """


@click.command(epilog="Example: spinloom bench layout --quick")
@click.option("--quick", is_flag=True, help="A cut through the rows, within a minute.")
@click.option("--all", "everything", is_flag=True, help="Every workload of the paper, not only the demo's.")
@click.option("--only", metavar="TEXT", default="", help="Rows whose name contains TEXT.")
@click.option("--operation", type=click.Choice(["pack", "unpack", "copy"]), multiple=True, help="These only.")
@click.option("--no-mpi", is_flag=True, help="Leave the MPI libraries out.")
@click.option("--no-numpy", is_flag=True, help="Leave NumPy out.")
@out_option("DIR", "Folder for layout.csv and layout.svg.", folder=True)
@form_options
def layout(
    quick: bool,
    everything: bool,
    only: str,
    operation: tuple[str, ...],
    no_mpi: bool,
    no_numpy: bool,
    out: Path | None,
    form: str,
) -> None:
    """Measure packing, unpacking and copies beside other ways.

    The others are loops by hand, memcpy, NumPy and every MPI found. NumPy is compared with our calls from
    Python, the others with those from C. The loops are compiled here (-O3 -march=native). Every way's bytes
    are compared with the type map before a time is printed. The ways take turns; ratios are medians with a 95
    % interval, other over ours: above 1 we are quicker. What is interrupted prints its complete rows; they
    stand in DIR/partial.
    """
    chosen = [row for row in bench_rows.rows(everything=everything, quick=quick) if only in row.name]
    if not chosen:
        raise Trouble("invalid", f"no row's name contains {only!r}")
    if out is not None:
        results.check_writable(out)
    effort = measure.QUICK if quick else measure.FULL
    operations = list(operation) or bench_rows.operations()
    measured: list[dict[str, Any]] = []
    done = 0
    with tempfile.TemporaryDirectory(prefix="spinloom-bench-") as name, stoppable() as stop:
        folder = Path(name)
        hand = peers.hand_library(folder, chosen)
        mpis = [] if no_mpi else peers.mpis(folder)
        output.say(f"MPI libraries: {', '.join(mpi.name for mpi in mpis) or 'none'}")
        seconds = measure.estimate_s(chosen, operations, len(mpis), effort)
        rows = "1 row" if len(chosen) == 1 else f"{len(chosen)} rows"
        output.say(f"{rows}, about {duration(seconds)} on a quiet machine")
        try:
            with progress(len(chosen), quiet=False, doing="measuring") as step:
                for row in chosen:
                    arrays = [] if no_numpy else numpy_ways(row.type, operations)
                    measured += measure.measure(row, hand, mpis, effort, operations, folder, arrays)
                    done += 1
                    step()
        except core.load().SpinloomError as error:
            raise Trouble(error.code, error.message) from None
        finally:
            for mpi in mpis:
                mpi.close()
    if out is not None and measured:
        write(measured, out / "partial" if stop.was_stopped else out)
    output.emit(measured, form, lambda: show(measured))
    if form == "table" and measured:
        output.show(show_goals(measured))
        show_misses(measured)
    if stop.was_stopped:
        stop.leave(f"{done} of {len(chosen)} rows were measured")


def duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"


def write(measured: list[dict[str, Any]], out: Path) -> None:
    columns = list(dict.fromkeys(name for row in measured for name in row))
    results.check_writable(out)
    files.write(out / "layout.csv", csv_text.as_csv(measured, columns))
    if pictures.available():
        report.write_svg(measured, out / "layout.svg")
    output.say(f"written: {out}")


def show(measured: list[dict[str, Any]]) -> Any:
    def ratio(row: dict[str, Any], name: str) -> str:
        if row.get(name) is None:
            return "-"
        middle, low, high = (row[f"{name}{part}"] for part in ("", "_low", "_high"))
        return f"{middle:.2f} [{low:.2f}, {high:.2f}]"

    def time(ns: float | None) -> str:
        return "-" if ns is None else units.format_time(round(ns * 1000))

    headings = [
        "row",
        "operation",
        "kernel",
        "ours",
        "hand",
        "memcpy",
        "best MPI",
        "hand/ours",
        "MPI/ours",
        "NumPy/ours",
        "bound/ours",
    ]
    return output.table(
        headings,
        [
            [
                row["row"],
                row["operation"],
                row["kernel"],
                time(row["ours_ns"]),
                time(row["hand_ns"]),
                time(row["memcpy_ns"]),
                time(row["mpi_ns"]),
                ratio(row, "hand_over_ours"),
                ratio(row, "mpi_over_ours"),
                ratio(row, "numpy_over_python"),
                f"{row['bound_over_ours']:.2f}",
            ]
            for row in measured
        ],
        numeric=set(headings[3:]),
        title="Layout copies on this machine (host time)",
    )


def show_goals(measured: list[dict[str, Any]]) -> Any:
    return output.table(
        ["goal", "rows", "reached", "wanted", ""],
        [
            [
                goal["goal"],
                str(goal["rows"]),
                f"{goal['reached']:.3f}",
                f"{goal['wanted']:.2f}",
                "met" if goal["met"] else "missed",
            ]
            for goal in report.goals(measured)
        ],
        numeric={"rows", "reached", "wanted"},
    )


def show_misses(measured: list[dict[str, Any]]) -> None:
    keys = {"hand": "hand_over_ours", "bound": "bound_over_ours", "NumPy": "numpy_over_python"}
    for goal, row in report.misses(measured):
        key = keys[goal]
        output.say(f"{goal} missed: {row['operation']} {row['row']}: {row[key]:.2f}")
