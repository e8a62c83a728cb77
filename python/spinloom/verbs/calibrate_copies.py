"""`spinloom calibrate copies`: what copies cost on this machine, beside what is predicted."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spinloom.accelerate import calibration, copy_model
from spinloom.accelerate.calibration import Calibration
from spinloom.common import files, output, units
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.nics import results, workloads
from spinloom.verbs.options import form_options, out_option, quiet_option
from spinloom.verbs.stopping import stoppable

WITHIN = 0.20  # the part of a measurement by which a good prediction may be off
BEGIN, END = "<!-- begin: spinloom calibrate copies --compare -->", "<!-- end -->"


@click.command(
    epilog="Examples: spinloom calibrate copies; spinloom calibrate copies --compare --movement unpack"
)
@click.option(
    "--passes",
    metavar="N",
    type=click.IntRange(1, 100),
    default=calibration.PASSES,
    show_default=True,
    help="Rounds.",
)
@click.option("--compare", is_flag=True, help="Compare predictions with measurements of every workload.")
@click.option(
    "--movement",
    type=click.Choice(copy_model.MOVEMENTS),
    default="pack",
    show_default=True,
    help="What --compare predicts and measures.",
)
@out_option("FILE", "Write the calibration there.")
@click.option(
    "--docs",
    type=click.Path(path_type=Path, dir_okay=False),
    hidden=True,
    help="Page whose table is renewed.",
)
@quiet_option
@form_options
def copies(
    passes: int, compare: bool, movement: str, out: Path | None, docs: Path | None, quiet: bool, form: str
) -> None:
    """Measure what copies cost, for 'spinloom explain'.

    Blocks of every size at regular and irregular places, with the data in each level of the caches; every
    byte is compared before it is timed. --compare measures the workloads, too, in the same rounds, and
    shows each beside its prediction. It stores no prices.

    It takes some minutes, and says after the first round how long a round takes. No round begins after a
    minute of processor time, but for the second. Each is kept as it ends: after Ctrl-C the next call goes on
    behind it. A machine that is too noisy gets no prices: exit code 1.
    """
    if compare:
        rows = catalogue()
        kept_path = calibration.partial_path(calibration.path(), f".compare-{movement}")
        measured = calibration.Comparison(
            movement, calibration.caches(), [(row.type, row.count) for row in rows], kept_path
        )
        if measured.done:
            output.say(f"goes on behind {rounds(measured.done)} of an earlier call")
        step_total = calibration.step_count(passes) + passes * len(rows)
        with stoppable() as stop, progress(step_total, quiet, "measuring") as advance:
            measured.run(passes, told(advance, step_total // passes, passes - measured.done, quiet))
        table = compared(rows, measured) if measured.done else []
        if table:
            output.emit(table, form, lambda: show_compared(table, movement))
        if stop.was_stopped:
            stop.leave(
                f"{measured.done} of {rounds(passes)} are compared and kept, "
                "and the next call goes on behind them"
            )
        measured.forget()
        if docs is not None:
            renew(docs, table, movement)
        return
    where = out or calibration.path()
    results.check_writable(where.parent)
    partial = calibration.partial_path(where)
    if kept_rounds := calibration.kept_passes(partial):
        output.say(f"goes on behind {rounds(kept_rounds)} of an earlier call")
    step_total = calibration.step_count(passes) * len(copy_model.MOVEMENTS)
    with stoppable() as stop, progress(step_total, quiet, "measuring") as advance:
        advance = told(advance, step_total // passes, passes - kept_rounds, quiet)
        measured = calibration.measure(passes, advance, partial)
    if stop.was_stopped:
        kept_rounds = calibration.kept_passes(partial)
        stop.leave(f"{kept_rounds} of {passes} rounds are kept, and the next call goes on behind them")
    calibration.save(measured, where)
    output.say(f"{where}: prices of {measured.identity['processor']}")
    prices = [price for name in copy_model.MOVEMENTS for price in price_rows(name, measured)]
    output.emit(prices, form, lambda: show_prices(prices))


def told(advance: Callable[[], None], steps: int, count: int, quiet: bool) -> Callable[[], None]:
    """`advance`, which says after `steps` calls, the first of `count` rounds, how long the others take."""
    began = time.monotonic()
    calls = itertools.count(1)

    def call() -> None:
        advance()
        if next(calls) == steps and count > 1 and not quiet:
            seconds = time.monotonic() - began
            output.say(f"a round takes {seconds:.0f} s here: at most {seconds * (count - 1):.0f} s more")

    return call


def rounds(count: int) -> str:
    return f"{count} round{'' if count == 1 else 's'}"


def catalogue() -> list[workloads.Row]:
    return [row for application in workloads.applications() for row in application.rows]


# ---- prices ----


def price_rows(movement: str, measured: Calibration) -> list[dict[str, Any]]:
    prices = measured.prices[movement]
    rows = [{"movement": movement, "price": "call", "ns": round(prices.call_ns, 2)}]
    rows += [
        {"movement": movement, "price": f"{shape} block of {length} B", "ns": round(price, 3)}
        for shape, points in prices.block_ns.items()
        for length, price in points
    ]
    rows += [
        {"movement": movement, "price": name, "ns": round(price, 3)} for name, price in prices.term_ns.items()
    ]
    return rows


def show_prices(rows: list[dict[str, Any]]) -> Any:
    names = list(dict.fromkeys(row["price"] for row in rows))
    prices = {(row["movement"], row["price"]): row["ns"] for row in rows}
    return output.table(
        ["price, ns", *copy_model.MOVEMENTS],
        [[name, *(f"{prices[movement, name]:.2f}" for movement in copy_model.MOVEMENTS)] for name in names],
        numeric=set(copy_model.MOVEMENTS),
        title="What copies cost here (host time)",
    )


# ---- predictions beside measurements ----


def compared(rows: list[workloads.Row], measured: calibration.Comparison) -> list[dict[str, Any]]:
    """Each workload: predicted from prices alone, and measured in the same passes as the prices were."""
    prices, times = measured.result()
    predictions = [
        copy_model.predict(prices, copy_model.count(row.type, row.count, measured.movement, measured.levels))
        for row in rows
    ]
    return [
        {
            "application": row.application,
            "datatype": row.datatype,
            "size_bytes": row.size_bytes,
            "predicted_ns": round(prediction.time_ns, 1),
            "bound": prediction.bound,
            "measured_ns": round(time_ns, 1),
            "predicted_over_measured": round(prediction.time_ns / time_ns, 3),
            "within": abs(prediction.time_ns / time_ns - 1) <= WITHIN,
        }
        for row, prediction, time_ns in zip(rows, predictions, times, strict=True)
    ]


COLUMNS = ["application", "datatype", "size", "predicted", "bound", "measured", "predicted/measured"]


def cells(row: dict[str, Any]) -> list[str]:
    return [
        row["application"],
        row["datatype"],
        units.format_bytes(row["size_bytes"]),
        units.format_time(round(row["predicted_ns"] * 1000)),
        row["bound"],
        units.format_time(round(row["measured_ns"] * 1000)),
        f"{row['predicted_over_measured']:.2f}",
    ]


def summary(table: list[dict[str, Any]], movement: str) -> str:
    close = sum(row["within"] for row in table)
    return (
        f"{movement} of {len(table)} workloads, host time: within {WITHIN:.0%} of the measurement on {close} "
        f"({close / len(table):.0%})"
    )


def show_compared(table: list[dict[str, Any]], movement: str) -> Any:
    numeric = {"size", "predicted", "measured", "predicted/measured"}
    return output.table(
        COLUMNS, [cells(row) for row in table], numeric=numeric, title=summary(table, movement)
    )


def renew(page: Path, table: list[dict[str, Any]], movement: str) -> None:
    """Replaces the table between the two marks."""
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise Trouble("invalid", f"{page} has no marks for the table: {BEGIN} and {END}")
    lines = [
        f"{calibration.processor()}: {summary(table, movement)}.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
        *("| " + " | ".join(cells(row)) + " |" for row in table),
    ]
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    files.write(page, f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}")
