"""`spinloom bench mpi`: messages, calls, collectives, windows under every MPI, without and with the layer."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from spinloom.bench import calls as call_bench
from spinloom.bench import collective_rows, collectives, jobs, message_rows, messages, windows
from spinloom.common import core, csv_text, files, output, units
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.nics import results
from spinloom.verbs.options import form_options, out_option
from spinloom.verbs.stopping import stoppable

BENCHES = ("messages", "calls", "collectives", "windows")


@click.command(
    epilog="Examples: spinloom bench mpi --quick; spinloom bench mpi collectives --out collectives"
)
@click.argument("bench", type=click.Choice(BENCHES), default="messages")
@click.option("--quick", is_flag=True, help="A cut through the rows, within some minutes.")
@click.option(
    "--only", metavar="TEXT", default="", help="Rows whose name contains TEXT, or whose family is TEXT."
)
@click.option("--fresh-data", is_flag=True, help="Collectives: write the sent data anew before each call.")
@click.option("--apart", is_flag=True, help="Collectives: ranks without shared memory, as on two machines.")
@click.option(
    "--kind", type=click.Choice(messages.KINDS), multiple=True, help="Messages: these only; else pingpong."
)
@click.option(
    "--mpi",
    "mpi_names",
    metavar="MPICC[:MPIEXEC]",
    multiple=True,
    help="This MPI; may be given again. Else all found.",
)
@click.option("--path", default="auto", help="The layer's way for messages, as of spinloom run --path.")
@click.option("--one-setting", is_flag=True, help="Do not run each MPI without its single copy (CMA), too.")
@out_option("DIR", "Folder for messages.csv, calls.csv, collectives.csv or windows.csv.", folder=True)
@form_options
def mpi(
    bench: str,
    quick: bool,
    only: str,
    fresh_data: bool,
    apart: bool,
    kind: tuple[str, ...],
    mpi_names: tuple[str, ...],
    path: str,
    one_setting: bool,
    out: Path | None,
    form: str,
) -> None:
    """Measure every MPI found, with and without our layer.

    Jobs with and without the layer live side by side and take turns; a ratio is the median of the rounds'
    ratios with a 95 % interval, without over with: above 1 the layer is quicker. Every row's bytes are
    compared with the type map before a time is taken. A pingpong is a round trip; a stream is 16 messages one
    way and a short answer; both is one message each way at once; alltoallw is the same by MPI_Alltoallw. What
    is interrupted prints the rows that have complete rounds, of fewer samples.

    'calls' measures what single calls take: those that the layer leaves to the MPI, MPI_Pack and
    MPI_Unpack, and the first use of a datatype against its second.

    'collectives' measures collective calls with datatypes on two ranks: without the layer, by hand (a loop
    that packs, contiguous bytes, a loop that unpacks) and with the layer. The ratio is the best of the first
    two over the third. A time is that of the slower rank. With --apart the MPIs send by their networks,
    which is the loopback device here, and the layer knows no peers.

    'windows' measures accesses to a window of two ranks: 200 rows of operations, epochs, sizes, blocks and of
    what the target does meanwhile, and what it takes to make and free windows.
    """
    if kind and bench != "messages":
        raise Trouble("invalid", f"{bench} have no --kind: their rows say what is called")
    if (fresh_data or apart) and bench != "collectives":
        raise Trouble("invalid", f"--{'fresh-data' if fresh_data else 'apart'} is for collectives")
    rows = ROWS[bench](quick, only)
    if not rows:
        raise Trouble("invalid", f"no row's name contains {only!r}")
    if out is not None:
        results.check_writable(out)
    effort = messages.QUICK if quick else messages.FULL
    both_settings = not (
        one_setting or bench in ("calls", "windows") or apart
    )  # a single copy is within a machine
    wanted = messages.variants(jobs.mpis(mpi_names), both_settings=both_settings, apart=apart)
    if not wanted:
        raise Trouble("environment", "no MPI was found: there is no mpicc with a launcher")
    times: dict[Any, dict[Any, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="spinloom-bench-") as name, stoppable() as stop:
        folder = Path(name)
        try:
            with progress(len(rows) * effort.launches, quiet=False, doing="measuring") as step:
                session = messages.Session(wanted, effort, path, folder, step)
                if bench == "calls":
                    call_bench.measure(session, rows, times)
                elif bench == "windows":
                    windows.measure(session, rows, times)
                elif bench == "collectives":
                    collectives.measure(session, rows, times, fresh=fresh_data)
                else:
                    messages.measure(session, rows, kind or ("pingpong",), times)
        except core.load().SpinloomError as error:
            raise Trouble(error.code, error.message) from None
    if bench == "calls":
        measured = call_bench.table(times)
        tables = tables_of_calls(measured)
    elif bench == "windows":
        measured = windows.table(times)
        tables = tables_of_windows(measured)
    elif bench == "collectives":
        measured = collectives.table(rows, times)
        tables = tables_of_collectives(measured)
    else:
        measured = messages.table(rows, times)
        tables = tables_of_messages(measured)
    if out is not None and measured:
        columns = list(dict.fromkeys(name for row in measured for name in row))
        file = out / f"{bench}.csv"
        files.write(file, csv_text.as_csv(measured, columns))
        output.say(f"written: {file}")
    output.emit(measured, form, lambda: tables[0])
    if form == "table":
        for further_table in tables[1:]:
            output.show(further_table)
    if stop.was_stopped:
        stop.leave("the rows above had all their samples so far")


def message_rows_of(quick: bool, only: str) -> list[Any]:
    return [row for row in message_rows.message_rows(quick=quick) if only in row.name or only == row.family]


def call_rows(quick: bool, only: str) -> list[Any]:
    return [row for row in call_bench.rows(quick=quick) if only in row.name or only == row.table]


def collective_rows_of(quick: bool, only: str) -> list[Any]:
    return [row for row in collective_rows.rows(quick=quick) if only in row.name or only == row.family]


def window_rows(quick: bool, only: str) -> list[Any]:
    return [row for row in windows.rows(quick=quick) if only in row.name or only == row.family]


ROWS = {
    "messages": message_rows_of,
    "calls": call_rows,
    "collectives": collective_rows_of,
    "windows": window_rows,
}


def tables_of_messages(measured: list[dict[str, Any]]) -> list[Any]:
    goals = show_goals(messages.goals(measured))
    return [show(measured), show_best(measured), goals] if measured else [show(measured)]


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


CALL_TABLES = {
    "calls": "What calls take that are left to the MPI",
    "pack": "What MPI_Pack and MPI_Unpack take",
    "first": "Round trips of a type's first and second use",
}


def tables_of_calls(measured: list[dict[str, Any]]) -> list[Any]:
    groups = {name: [row for row in measured if row["table"] == name] for name in CALL_TABLES}
    tables = [show_table(name, rows) for name, rows in groups.items() if rows]
    goals = call_bench.goals(measured)
    return [*(tables or [show_table("calls", [])]), *([show_goals(goals)] if goals else [])]


def with_interval(row: dict[str, Any], column: str, digits: int = 2) -> str:
    return f"{row[column]:.{digits}f} [{row[column + '_low']:.{digits}f}, {row[column + '_high']:.{digits}f}]"


def show_table(name: str, rows: list[dict[str, Any]]) -> Any:
    """Times without and with the layer; of `first`, those of both uses and the first over the second."""
    words = ["row", "call", "MPI"] if name == "pack" else ["row", "MPI"]
    if name == "first":
        numbers = [
            f"{quantity}, {which}"
            for which in ("without", "with")
            for quantity in ("first", "second", "ratio")
        ]
    else:
        numbers = ["without", "with", "without/with", *(["more ns"] if name == "calls" else [])]

    def line(row: dict[str, Any]) -> list[str]:
        line_cells = [row[word.lower()] for word in words]
        if name == "first":
            for which in ("without", "with"):
                line_cells += [time(row[f"{which}_first_ns"]), time(row[f"{which}_ns"])]
                line_cells.append(with_interval(row, f"{which}_first_over_second"))
            return line_cells
        line_cells += [time(row["without_ns"]), time(row["with_ns"]), with_interval(row, "without_over_with")]
        return [*line_cells, *([with_interval(row, "more_ns", 1)] if name == "calls" else [])]

    return output.table(
        [*words, *numbers],
        [line(row) for row in rows],
        numeric=set(numbers),
        title=f"{CALL_TABLES[name]}, without and with the layer (host time)",
    )


def tables_of_collectives(measured: list[dict[str, Any]]) -> list[Any]:
    shown = show_collectives(measured)
    return [shown, show_goals(collectives.goals(measured))] if measured else [shown]


def show_collectives(measured: list[dict[str, Any]]) -> Any:
    numbers = ["bytes", "without", "by hand", "with", "best/with"]
    return output.table(
        ["row", "bytes", "MPI", *numbers[1:]],
        [
            [
                row["row"],
                f"{row['bytes']:,}",
                row["mpi"],
                time(row["stock_ns"]),
                "-" if row["hand_ns"] is None else time(row["hand_ns"]),
                time(row["layer_ns"]),
                with_interval(row, "best_over_layer"),
            ]
            for row in measured
        ],
        numeric=set(numbers),
        title="Collectives on this machine, without the layer, by hand and with the layer (host time)",
    )


def tables_of_windows(measured: list[dict[str, Any]]) -> list[Any]:
    numbers = ["without", "with", "without/with"]
    shown = output.table(
        ["row", "MPI", *numbers],
        [
            [
                row["row"],
                row["mpi"],
                time(row["without_ns"]),
                time(row["with_ns"]),
                with_interval(row, "without_over_with"),
            ]
            for row in measured
        ],
        numeric=set(numbers),
        title="Accesses to windows on this machine, without and with the layer (host time)",
    )
    for row in windows.slower(measured):
        output.say(f"slower with the layer: {row['row']}, {row['mpi']}: {row['without_over_with']:.2f}")
    return [shown, show_goals(windows.goals(measured))] if measured else [shown]


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


def show_goals(goals: list[dict[str, Any]]) -> Any:
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
            for goal in goals
        ],
        numeric={"rows", "reached", "wanted"},
    )
