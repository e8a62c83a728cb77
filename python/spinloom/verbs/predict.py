"""`spinloom predict`: a recorded MPI program on another network, with other work for CPUs and NICs."""

from __future__ import annotations

import json
import platform
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from spinloom import __version__
from spinloom.common import core, csv_text, files, output, units
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.nics import results, strategies
from spinloom.nics.layout_prices import ResultStore
from spinloom.nics.machines import Machine
from spinloom.nics.strategies import BASELINE, DIRECT
from spinloom.predict import goal_files, goal_network, goal_page
from spinloom.predict.predict import COLUMNS, Request, Table, predict, schedule_for_goal
from spinloom.traces.pages import page
from spinloom.verbs import completion
from spinloom.verbs.options import (
    form_options,
    machine_options,
    out_option,
    page_option,
    quiet_option,
    workers_option,
)

USUAL = "rw-cp,specialised"
FILES = ("predict.csv", "predict.json", "manifest.json")  # prices.json is kept between runs
ON_HOST = (BASELINE, "host-best", "host-warm", DIRECT)


def read_scale(ctx: click.Context, parameter: click.Parameter, text: str) -> Fraction:
    try:
        scale = Fraction(text)
    except (ValueError, ZeroDivisionError):
        scale = Fraction(-1)
    if not 0 <= scale <= 1_000_000 or scale.denominator > 1_000_000:
        raise Trouble("invalid", f"--scale-compute {text}: give a number such as 0.5, or a ratio such as 1/3")
    return scale


def read_eager(ctx: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return units.parse_bytes(text)
    except ValueError as error:
        raise Trouble("invalid", f"--eager {text}: {error}") from None


@click.command(
    "predict",
    epilog="Examples: spinloom predict out/trace; spinloom predict out/trace --nic sc19-slingshot "
    "--strategies rw-cp --out out/prediction; spinloom predict out/trace --goal app.goal",
)
@click.argument("trace", type=click.Path(path_type=Path))
@machine_options
@click.option(
    "--strategies",
    "strategy_text",
    metavar="NAMES",
    shell_complete=completion.of_list(completion.strategies),
    default=USUAL,
    show_default=True,
    help="How the NIC moves layouts: names with commas between them, or 'all'.",
)
@click.option(
    "--collective",
    "algorithms",
    metavar="OPERATION=ALGORITHM",
    multiple=True,
    help="Such as allreduce=ring; by size otherwise. May be repeated.",
)
@click.option(
    "--scale-compute",
    "scale",
    default="1",
    callback=read_scale,
    help="What the time between calls is multiplied by.",
)
@click.option(
    "-n",
    "--ranks",
    metavar="N",
    type=click.IntRange(min=1),
    default=None,
    help="More ranks than were recorded: refits halo exchanges, pencils and collectives on a larger grid.",
)
@click.option(
    "--scaling",
    type=click.Choice(["weak", "strong"]),
    default="weak",
    show_default=True,
    help="With --ranks: each rank keeps its data, or the problem stays as it is and ranks share it.",
)
@click.option(
    "--polls",
    type=click.Choice(["rule", "wait", "work"]),
    default="rule",
    show_default=True,
    help="What the time between two calls of MPI_Test that find nothing is: waiting (wait), computation "
    "(work), or computation on ranks where it is at least as long as such a call (rule).",
)
@click.option(
    "--network",
    "network_text",
    metavar="NETWORK",
    default="crossbar",
    show_default=True,
    help="What is between the NICs, as for 'spinloom goal run': fat-tree:radix=16,levels=3, torus:8x8x8, ...",
)
@click.option(
    "--parameters",
    "mpi_path",
    type=click.Path(path_type=Path),
    help="Parameters of the host's MPI, by 'spinloom calibrate mpi'; else the profile's call.",
)
@click.option(
    "--layout-prices",
    type=click.Choice(["measured", "modelled"]),
    default="measured",
    show_default=True,
    help="With --parameters: what layouts cost that MPI, measured now on its host, or our own copies.",
)
@click.option(
    "--eager",
    metavar="BYTES",
    callback=read_eager,
    help="Longer messages ask first; 16 KiB, or what --parameters says, otherwise.",
)
@click.option(
    "--layouts",
    "layouts_max",
    metavar="N",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="How many are simulated, the heaviest first; the others are priced by the byte.",
)
@click.option(
    "--goal",
    "goal_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Only write the schedule: {goal_files.FORMS}",
)
@workers_option
@out_option(
    "DIR",
    "Also write predict.csv, predict.json, manifest.json; simulated prices are kept there.",
    folder=True,
)
@page_option("Also write a page of the ranks over time by each way, one above another.")
@click.option("--force", is_flag=True, help="Let --out, --goal and --page overwrite.")
@quiet_option
@form_options
def predict_verb(
    trace: Path,
    machine: Machine,
    strategy_text: str,
    algorithms: tuple[str, ...],
    scale: Fraction,
    ranks: int | None,
    scaling: str,
    polls: str,
    network_text: str,
    mpi_path: Path | None,
    layout_prices: str,
    eager: int | None,
    layouts_max: int,
    goal_path: Path | None,
    workers: int,
    out: Path | None,
    page_path: Path | None,
    force: bool,
    quiet: bool,
    form: str,
) -> None:
    """Predict a recorded MPI program on another network or NIC.

    TRACE is the folder that `spinloom record` wrote. Its messages are replayed over the network and NIC of
    a profile: moved by the host's MPI, by RDMA with unpacking by the CPU, with matching on the NIC, and with
    layouts moved by the NIC. The first row is measured host time; all others are modelled.
    """
    strong = scaling == "strong"
    if strong and ranks is None:
        raise Trouble("invalid", "--scaling strong: say on how many ranks, with --ranks")
    if goal_path is not None:
        write_goal(trace, algorithms, scale, ranks or 0, polls, strong, goal_path, force)
        return
    if out is not None:
        refuse_to_overwrite(out, force)
        results.check_writable(out)
    if page_path is not None and page_path.exists() and not force:
        raise Trouble("invalid", f"{page_path} is there already; --force overwrites")
    store = ResultStore(None if out is None else out / "prices.json")
    request = Request(
        folder=trace,
        strategies=[name for name in strategies.parse(strategy_text) if name not in ON_HOST],
        algorithms=algorithms,
        scale=scale,
        parameters=read_parameters(mpi_path),
        eager_bytes=eager,
        layouts_max=layouts_max,
        threads=workers,
        ranks=ranks or 0,
        strong=strong,
        polls=polls,
        network=goal_network.parse(network_text),
        runs=page_path is not None,
        modelled_layouts=layout_prices == "modelled",
    )
    began = time.monotonic()
    with progress(0, quiet) as advance:
        table = predict(request, machine, store, advance)
    host_time_s = time.monotonic() - began
    output.emit(table.rows, form, lambda: prediction_table(table))
    if form == "table":
        for remark in table.remarks:
            output.say(remark)
        prices = table.prices
        output.say(
            f"{prices.simulated} cells simulated, {prices.remembered} remembered; "
            f"host time {host_time_s:.1f} s"
        )
    if out is not None:
        save(out, table, machine, request, host_time_s)
    if page_path is not None:
        write_page(page_path, table, machine)


def write_page(path: Path, table: Table, machine: Machine) -> None:
    facts = table.facts
    about = f"{facts['program']}, {facts['ranks']:,} ranks, on {machine.profile}; recorded on {facts['host']}"
    title = f"{Path(facts['program'].split()[0]).name}: ranks over time by each way"
    files.write(path, page.build(title, about, [*goal_page.NOTES, *table.remarks], table.runs))
    output.say(f"written: {path}; open it in a browser")


def read_parameters(path: Path | None) -> Any:
    if path is None:
        return None
    from spinloom.bench import mpi_parameters

    return mpi_parameters.read(path)


def write_goal(
    trace: Path,
    algorithms: tuple[str, ...],
    scale: Fraction,
    ranks: int,
    polls: str,
    strong: bool,
    path: Path,
    force: bool,
) -> None:
    goal_files.check_name(path)
    if path.exists() and not force:
        raise Trouble("invalid", f"{path} is there already; --force overwrites")
    schedule = schedule_for_goal(trace, algorithms, scale, ranks, polls, strong)
    try:
        schedule.check()
    except core.load().SpinloomError as error:
        raise Trouble(error.code, error.message) from None
    goal_files.write(schedule, path)
    output.say(f"written: {path}; computations are in ns")


def refuse_to_overwrite(out: Path, force: bool) -> None:
    existing = [name for name in FILES if (out / name).exists()]
    if existing and not force:
        raise Trouble("invalid", f"{out} holds {', '.join(existing)} already; --force overwrites")


def percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def prediction_table(table: Table) -> Any:
    lines = [
        [
            row["way"],
            row["times"],
            units.format_time(row["time_ps"]),
            percent(row["communication_share"]),
            "" if row["speedup"] is None else f"{row['speedup']:.3f}",
            "" if row["limit"] is None else f"{row['limit']} ({row['limit_share']:.0%})",
            percent(row["of_measured"]),
        ]
        for row in table.rows
    ]
    columns = ["way", "times", "time", "communication", "speed-up", "limit", "of measured"]
    title = f"{table.facts['program']}, {table.facts['ranks']} ranks"
    return output.table(
        columns, lines, numeric={"time", "communication", "speed-up", "of measured"}, title=title
    )


def save(out: Path, table: Table, machine: Machine, request: Request, host_time_s: float) -> None:
    files.write(out / "predict.csv", csv_text.as_csv(table.rows, list(COLUMNS)))
    document = {"rows": table.rows, "result_hash": table.result_hash, "remarks": table.remarks}
    files.write(out / "predict.json", json.dumps(document, indent=1) + "\n")
    about = {
        "spinloom": __version__,
        "command": ["spinloom", *sys.argv[1:]],
        "result_hash": table.result_hash,
        "trace": {
            name: table.facts[name] for name in ("program", "host", "mpi", "ranks", "ended", "algorithms")
        },
        "profile": machine.profile.name,
        "host": machine.profile.host,
        "profile_changes": dict(machine.profile.changes),
        "profile_values": machine.profile.native(),
        "hpus": machine.hpus,
        "mtu_bytes": machine.mtu,
        "order": machine.order,
        "seed": machine.seed,
        "scale_compute": str(request.scale),
        "scaling": "strong" if request.strong else "weak",
        "polls": request.polls,
        "network": request.network,
        "mpi": None if request.parameters is None else request.parameters.about.get("mpi"),
        "layout_prices": "modelled" if request.modelled_layouts else "measured",
        "cells": {"simulated": table.prices.simulated, "remembered": table.prices.remembered},
        "machine": {"system": platform.system(), "architecture": platform.machine()},
        "host_time_s": round(host_time_s, 3),
    }
    files.write(out / "manifest.json", json.dumps(about, indent=1) + "\n")
    output.say(f"written: {out}: {', '.join(FILES)}")
