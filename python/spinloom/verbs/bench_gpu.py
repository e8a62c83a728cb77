"""`spinloom bench gpu`: layouts in a GPU's memory against its own copy, libraries, and a kernel by hand."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from spinloom.bench import gpu_measure, gpu_report, gpu_rows
from spinloom.common import core, files, output, pictures
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.layout import cuda
from spinloom.nics import results
from spinloom.verbs.options import form_options, out_option
from spinloom.verbs.stopping import stoppable

ROUNDS, ROUNDS_QUICK = 9, 5
FAILURES_MAX = 5  # the device is asked no more after so many
SHOWN = (
    "pack_of_memcpy",
    "unpack_of_memcpy",
    "hand_pack_over_ours",
    "cupy_pack_over_ours",
    "torch_pack_over_ours",
)


@click.command(epilog="Examples: spinloom bench gpu --quick; spinloom bench gpu --only vector --out out/gpu")
@click.option("--quick", is_flag=True, help="A cut through the rows.")
@click.option(
    "--only", metavar="TEXT", default="", help="Rows whose name contains TEXT, or whose family is TEXT."
)
@click.option("--seconds", metavar="N", type=float, help="Begin no row after so many seconds.")
@out_option("DIR", "Folder for gpu.csv, gpu.svg and gpu.png.", folder=True)
@form_options
def gpu(quick: bool, only: str, seconds: float | None, out: Path | None, form: str) -> None:
    """Measure packing and unpacking in a GPU's memory.

    Device times, and host times of a launch, stand beside those of the driver's copy of as many bytes, one
    copy a block, CuPy and PyTorch where they are installed, and a kernel written by hand (with CuPy, which
    compiles it). Every way's bytes are compared with the processor's before a time is taken. Needs NumPy.
    What is interrupted prints its complete rows.
    """
    rows = [row for row in gpu_rows.rows(quick=quick and not only) if only in row.name or only == row.family]
    if not rows:
        raise Trouble("invalid", f"no row's name contains {only!r}")
    if out is not None:
        results.check_writable(out)
    emulated = os.environ.get("SPINLOOM_GPU") == "shim"
    if not emulated and (why := core.load().gpu_why_not()):
        raise Trouble("environment", f"spinloom bench gpu measures a GPU: {why}")
    free = cuda.driver().free_bytes()
    fitting = [row for row in rows if 2 * row.span_bytes + row.total_bytes < 0.8 * free]
    for row in rows:
        if row not in fitting:
            output.say(f"{row.name} is left out: it does not fit in {free >> 20} MiB of free device memory")
    if not fitting:
        raise Trouble("exhausted", "no row fits in the device's free memory")
    head = gpu_report.about(emulated=emulated)
    measured: list[dict[str, Any]] = []
    failed: list[Trouble] = []
    begun = time.monotonic()
    with stoppable() as stop:
        session = gpu_measure.Session(fitting, ROUNDS_QUICK if quick else ROUNDS)
        names = [type(library).__name__ for library in session.libraries]
        output.say(f"{head['device']}, driver {head['driver']}; compared with: {', '.join(names) or 'none'}")
        try:
            with progress(len(fitting), quiet=False, doing="measuring") as step:
                for row in fitting:
                    if seconds is not None and time.monotonic() - begun > seconds:
                        rows_left = len(fitting) - len(measured) - len(failed)
                        output.say(f"{rows_left} rows are left out after {seconds:g} s")
                        break
                    try:
                        measured.append(session.measure(row))
                    except Trouble as trouble:
                        output.say(f"{row.name} has no numbers: {trouble.message}")
                        failed.append(trouble)
                        if len(failed) == FAILURES_MAX:
                            break
                    step()
        finally:
            session.close()
    if session.clock.starved:
        output.say(f"{session.clock.starved} samples hold host time: the device waited for launches")
    if out is not None and measured:
        write(measured, head, out)
    output.emit(measured, form, lambda: show(measured))
    if form == "table" and measured:
        output.show(show_goals(measured))
    if stop.was_stopped:
        stop.leave(f"{len(measured)} of {len(fitting)} rows were measured")
    if failed:
        raise Trouble(failed[0].code, f"{len(failed)} rows have no numbers; the first: {failed[0].message}")


def write(measured: list[dict[str, Any]], head: dict[str, str], out: Path) -> None:
    results.check_writable(out)
    files.write(out / "gpu.csv", gpu_report.csv(measured, head))
    if pictures.available():
        for ending, image in gpu_report.draw(measured, head).items():
            files.write(out / f"gpu.{ending}", image)
    output.say(f"written: {out}")


def show(measured: list[dict[str, Any]]) -> Any:
    def number(row: dict[str, Any], key: str, digits: int) -> str:
        return "-" if row.get(key) is None else f"{row[key]:,.{digits}f}"

    headings = ["row", "kernel", "pack us", "memcpy us", "memcpy/pack", "memcpy/unpack", "hand/ours",
                "CuPy/ours", "torch/ours", "launch us", "naive/ours"]  # fmt: skip
    rows = []
    for row in measured:
        naive = number(row, "naive_over_ours", 0) + ("*" if row.get("naive_extrapolated") else "")
        rows.append(
            [row["row"], row["kernel"], number(row, "pack_us", 1), number(row, "memcpy_us", 1)]
            + [number(row, key, 2) for key in SHOWN]
            + [number(row, "launch_us", 2), naive]
        )
    title = "Packing in a GPU's memory (device time; launch: host time; *: extrapolated from some blocks)"
    return output.table(headings, rows, numeric=set(headings[2:]), title=title)


def show_goals(measured: list[dict[str, Any]]) -> Any:
    headings = ["goal", "rows", "reached", "wanted", ""]
    rows = [
        [goal["goal"], str(goal["rows"]), f"{goal['reached']:.2f}", f"{goal['wanted']:.2f}",
         "met" if goal["met"] else "missed"]
        for goal in gpu_report.goals(measured)
    ]  # fmt: skip
    return output.table(headings, rows, numeric={"rows", "reached", "wanted"})
