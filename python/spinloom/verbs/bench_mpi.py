"""`spinloom bench mpi`: messages with datatypes under every MPI, with and without the layer (host time)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from spinloom import core, files, output, results, units
from spinloom.bench import jobs, message_rows, messages
from spinloom.errors import Trouble
from spinloom.verbs.options import form_options
from spinloom.verbs.progress import progress
from spinloom.verbs.stopping import stoppable


@click.command(epilog="Example: spinloom bench mpi --quick")
@click.option("--quick", is_flag=True, help="A cut through the rows, within some minutes.")
@click.option("--only", metavar="TEXT", default="", help="Rows whose name or family contains TEXT.")
@click.option("--kind", type=click.Choice(messages.KINDS), multiple=True, help="These only; else pingpong.")
@click.option(
    "--mpi",
    "given",
    metavar="MPICC[:MPIEXEC]",
    multiple=True,
    help="This MPI; may be given again. Else all found.",
)
@click.option("--path", default="auto", help="Of the layer, as of spinloom run.")
@click.option("--one-setting", is_flag=True, help="Do not run each MPI without its single copy (CMA), too.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder for messages.csv.")
@form_options
def mpi(
    quick: bool,
    only: str,
    kind: tuple[str, ...],
    given: tuple[str, ...],
    path: str,
    one_setting: bool,
    out: Path | None,
    form: str,
) -> None:
    """Messages between two ranks under every MPI found, with and without Spinloom's layer.

    Jobs with and without the layer live side by side and take turns; a ratio is the median of the rounds'
    ratios with a 95 % interval, without over with: above 1 the layer is quicker. Every row's bytes are
    compared with the type map before a time is taken. A pingpong is a round trip; a stream is 16 messages one
    way and a short answer; both is one message each way at once. What is interrupted prints nothing.
    """
    rows = [row for row in message_rows.message_rows(quick=quick) if only in row.name or only == row.family]
    if not rows:
        raise Trouble("invalid", f"no row's name contains {only!r}")
    if out is not None:
        results.check_writable(out)
    kinds = kind or ("pingpong",)
    effort = messages.QUICK if quick else messages.FULL
    wanted = messages.variants(jobs.mpis(given), both_settings=not one_setting)
    if not wanted:
        raise Trouble("environment", "no MPI was found: there is no mpicc with a launcher")
    times: messages.Times = {}
    with tempfile.TemporaryDirectory(prefix="spinloom-bench-") as name, stoppable() as stop:
        try:
            with progress(len(rows) * effort.launches, quiet=False, doing="measuring") as step:
                messages.measure(rows, kinds, wanted, effort, path, Path(name), step, times)
        except core.load().SpinloomError as error:
            raise Trouble(error.code, error.message) from None
    measured = messages.table(rows, times)
    if out is not None and measured:
        columns = list(dict.fromkeys(name for row in measured for name in row))
        files.write(out / "messages.csv", results.as_csv(measured, columns))
        output.say(f"written: {out / 'messages.csv'}")
    output.emit(measured, form, lambda: show(measured))
    if form == "table" and measured:
        output.show(show_best(measured))
        output.show(show_goals(measured))
    if stop.told:
        stop.leave("the rows above had all their samples so far")


def time(ns: float) -> str:
    return units.format_time(round(ns * 1000))


def show(measured: list[dict[str, Any]]) -> Any:
    headings = ["row", "kind", "MPI", "without", "with", "without/with"]
    return output.table(
        headings,
        [
            [
                row["row"],
                row["kind"],
                row["mpi"],
                time(row["without_ns"]),
                time(row["with_ns"]),
                "{:.2f} [{:.2f}, {:.2f}]".format(
                    row["without_over_with"], row["without_over_with_low"], row["without_over_with_high"]
                ),
            ]
            for row in measured
        ],
        numeric=set(headings[3:]),
        title="Messages on this machine, without and with the layer (host time)",
    )


def show_best(measured: list[dict[str, Any]]) -> Any:
    headings = ["row", "kind", "best stock MPI", "time", "best with the layer", "with", "ratio"]
    return output.table(
        headings,
        [
            [
                row["row"],
                row["kind"],
                row["best_stock"],
                time(row["best_stock_ns"]),
                row["best_with"],
                time(row["best_with_ns"]),
                f"{row['stock_over_with']:.2f}",
            ]
            for row in messages.against_best(measured)
        ],
        numeric={"time", "with", "ratio"},
        title="The best stock MPI against the best with the layer",
    )


def show_goals(measured: list[dict[str, Any]]) -> Any:
    return output.table(
        ["goal", "rows", "reached", "wanted", ""],
        [
            [
                one["goal"],
                str(one["rows"]),
                f"{one['reached']:.3f}",
                f"{one['wanted']:.2f}",
                "met" if one["met"] else "missed",
            ]
            for one in messages.goals(measured)
        ],
        numeric={"rows", "reached", "wanted"},
    )
