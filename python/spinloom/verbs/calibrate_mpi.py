"""`spinloom calibrate mpi`: the LogGOPS parameters of an MPI library on this host."""

from __future__ import annotations

import datetime
import platform
import shlex
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from spinloom.accelerate import calibration
from spinloom.bench import jobs, mpi_fit, mpi_parameters, parameters
from spinloom.bench.mpi_parameters import MpiParameters
from spinloom.bench.parameters_found import Comparison
from spinloom.common import output, units
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.nics import results
from spinloom.predict import goal_model
from spinloom.verbs.options import form_options, out_option, quiet_option, ranks_option
from spinloom.verbs.stopping import stoppable


@click.command(
    epilog="Examples: spinloom calibrate mpi; "
    "spinloom calibrate mpi mpicc.openmpi --ranks 4 --out openmpi.json"
)
@click.argument("compiler", metavar="[MPICC]", default="mpicc")
@ranks_option("Of the collective calls.", type=click.IntRange(2, 1024), default=2, show_default=True)
@click.option(
    "--passes",
    metavar="N",
    type=click.IntRange(1, 100),
    default=parameters.PASSES,
    show_default=True,
    help="Rounds.",
)
@out_option("FILE", "Write the parameters there.")
@quiet_option
@form_options
def mpi(compiler: str, ranks: int, passes: int, out: Path | None, quiet: bool, form: str) -> None:
    """Measure the LogGOPS parameters of an MPI library.

    'spinloom goal' and 'spinloom predict --parameters' take them: L, o, g, G, O and S between two ranks on
    this machine, a table by size, and some collective calls, beside what the LogGOPS model says of each:
    docs/calibrate-mpi.md. MPICC is the compiler of the MPI.
    """
    if shutil.which(compiler.partition(":")[0]) is None:
        raise Trouble(
            "environment",
            f"there is no MPI compiler {compiler!r}: install an MPI, or name its compiler by "
            "'spinloom calibrate mpi MPICC'",
        )
    library = jobs.mpis((compiler,))[0]
    results.check_writable(out.parent if out else calibration.path().parent)
    with stoppable() as stop, progress(0, quiet, "measuring") as bar:
        answers = parameters.measure(library, ranks, passes, bar)
    if stop.was_stopped:
        stop.leave("nothing was stored")
    fitted = answers.parameters()
    compared, warnings = answers.comparisons(fitted), answers.warnings(fitted)
    command = f"spinloom calibrate mpi {shlex.quote(compiler)} --ranks {ranks} --passes {passes}"
    reported = described(fitted, library, command, compared, warnings)
    where = out or mpi_parameters.path(answers.mpi)
    mpi_parameters.write(reported, where)
    output.emit(rows(reported, compared), form, lambda: show_scalars(reported))
    if form == "table":
        output.show(show_sizes(reported))
        output.show(show_compared(compared))
    for warning in warnings:
        output.say(f"warning: {warning}")
    output.say(f"written: {where}; for schedules (the dialect counts in ps):")
    output.say(f"  spinloom goal FILE {options(mpi_fit.with_own_rates(reported), 'ps')}")
    output.say(f"  spinloom goal FILE --dialect loggopsim {options(reported)}")


def options(p: MpiParameters, unit: str = "") -> str:
    """The parameters as options of 'spinloom goal'; the dialect has numbers without a unit."""
    units_of = dict.fromkeys("Log", unit) | dict.fromkeys("GO", unit and f"{unit}/B")
    return " ".join(
        f"{goal_model.OPTIONS[name][0]} {value}{units_of.get(name, '')}"
        for name, value in p.as_goal().items()
    )


def described(
    fitted: MpiParameters, mpi: jobs.Mpi, command: str, compared: list[Comparison], warnings: list[str]
) -> MpiParameters:
    """The parameters with all that the file says beside the numbers."""
    about = {
        **fitted.about,
        "compiler": str(mpi.compiler),
        "launcher": str(mpi.launcher),
        "host": platform.node(),
        "processor": calibration.processor(),
        "measured": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "warnings": warnings,
        "compared": [asdict(comparison) for comparison in compared],
    }
    return replace(fitted, about=about)


# ---- tables ----


def scalars(p: MpiParameters) -> list[tuple[str, float, str, str]]:
    return [
        ("L", p.L_ns, "ns", "half a round trip of 1 B, less both overheads"),
        ("o", p.o_ns, "ns", "the mean of the next two"),
        (
            "o send",
            p.o_send_ns,
            "ns",
            f"in MPI_Isend of 1 B ({p.about['o_send_by_delay_ns']:.1f} by PRTT(n, d, 1))",
        ),
        ("o receive", p.o_receive_ns, "ns", "in MPI_Recv of 1 B that had come"),
        ("g", p.g_ns, "ns", "from message to message of a stream, 1 B"),
        ("G", p.G_ns_per_byte, "ns/B", "slope of that over all sizes"),
        ("O", p.O_ns_per_byte, "ns/B", "slope of sends and receives over all sizes, the mean"),
        (
            "S",
            p.S_bytes,
            "B",
            "longest message whose sender never waits for its receive "
            f"({p.S_polled_bytes} B where the receiver is in MPI)",
        ),
    ]


def comparisons(p: MpiParameters, compared: list[Comparison]) -> list[dict[str, Any]]:
    """Every measured time beside that of the model, in one form."""
    model = mpi_fit.Model(p)
    entries: list[tuple[str, int, int, float, float, float | None]] = [
        (quantity, row.size_bytes, 2, ns, by_model(row.size_bytes), None)
        for row in p.table
        for quantity, ns, by_model in (
            ("one way", row.one_way_ns, model.one_way_ns),
            ("interval", row.interval_ns, model.interval_ns),
        )
    ]
    entries += [
        (
            comparison.what,
            comparison.size_bytes,
            comparison.ranks,
            comparison.measured_ns,
            comparison.model_ns,
            comparison.table_ns,
        )
        for comparison in compared
    ]
    return [
        {
            "what": quantity,
            "size_bytes": size,
            "ranks": ranks,
            "measured_ns": round(ns, 2),
            "model_ns": round(by_model, 2),
            "error": round(mpi_fit.error(by_model, ns), 4) if ns > 0 else None,
            "table_ns": None if by_table is None else round(by_table, 2),
        }
        for quantity, size, ranks, ns, by_model, by_table in entries
    ]


def rows(p: MpiParameters, compared: list[Comparison]) -> list[dict[str, Any]]:
    values = [{"what": name, "value": round(value, 6), "unit": unit} for name, value, unit, _ in scalars(p)]
    return [*values, *comparisons(p, compared)]


def time(ns: float) -> str:
    return units.format_time(round(ns * 1000))


def size_of(count: int) -> str:
    """The text of a size, in bytes where it is no whole number of KiB."""
    return units.format_bytes(count) if count % 1024 == 0 else f"{count:,} B"


def percent(model: float, measured: float) -> str:
    if measured <= 0:
        return "-"
    return f"{round(mpi_fit.error(model, measured), 2) + 0.0:+.0%}"  # no minus zero


def show_scalars(p: MpiParameters) -> Any:
    lines = [
        [
            name,
            f"{value:,}" if unit == "B" else f"{value:.4g}" if unit == "ns/B" else f"{value:.1f}",
            unit,
            explanation,
        ]
        for name, value, unit, explanation in scalars(p)
    ]
    lines += [
        [
            f"{regime.name}",
            f"{regime.base_ns:.1f} + {regime.G_one_way_ns_per_byte:.4g} (s - 1)",
            "ns",
            f"one way, {size_of(regime.from_bytes)} to {size_of(regime.to_bytes)}; "
            f"stream {regime.g_ns:.1f} + {regime.G_ns_per_byte:.4g} (s - 1)",
        ]
        for regime in p.regimes
    ]
    title = f"LogGOPS parameters of {p.about['mpi']} on this host (host time)"
    return output.table(["parameter", "value", "unit", "how"], lines, numeric={"value"}, title=title)


def show_sizes(p: MpiParameters) -> Any:
    """The model beside what was measured, one way and in streams; by regime: its own lines."""
    model = mpi_fit.Model(p)
    columns = [
        "size",
        "one way",
        "model",
        "error",
        "by regime",
        "interval",
        "model ",
        "error ",
        "send",
        "receive",
    ]
    lines = []
    for row in p.table:
        way, gap = model.one_way_ns(row.size_bytes), model.interval_ns(row.size_bytes)
        matching = [regime for regime in p.regimes if regime.from_bytes <= row.size_bytes <= regime.to_bytes]
        by_regime = (
            matching[0].base_ns + (row.size_bytes - 1) * matching[0].G_one_way_ns_per_byte
            if matching
            else 0.0
        )
        lines.append(
            [
                size_of(row.size_bytes),
                time(row.one_way_ns),
                time(way),
                percent(way, row.one_way_ns),
                percent(by_regime, row.one_way_ns) if matching else "-",
                time(row.interval_ns),
                time(gap),
                percent(gap, row.interval_ns),
                time(row.send_ns),
                time(row.receive_ns),
            ]
        )
    title = "Messages between two ranks, and the model's times and errors"
    return output.table(columns, lines, numeric=set(columns), title=title)


def show_compared(compared: list[Comparison]) -> Any:
    columns = ["what", "size", "ranks", "measured", "model", "error", "by table", "error "]
    lines = [
        [
            comparison.what,
            size_of(comparison.size_bytes),
            str(comparison.ranks),
            time(comparison.measured_ns),
            time(comparison.model_ns),
            percent(comparison.model_ns, comparison.measured_ns),
            time(comparison.table_ns),
            percent(comparison.table_ns, comparison.measured_ns),
        ]
        for comparison in compared
    ]
    title = "Predicted from the parameters, and from the table above"
    return output.table(columns, lines, numeric=set(columns[1:]), title=title)
