"""`spinloom simulate`: predict what an offloading NIC does for datatypes, with every byte checked."""

from __future__ import annotations

import json
import os
import sys
import time
from fractions import Fraction
from pathlib import Path

import click
from click.core import ParameterSource

from spinloom.common import csv_text, files, output, pictures, units
from spinloom.common.errors import EXIT_NEGATIVE, Trouble
from spinloom.common.progress import progress
from spinloom.nics import plot, results, seeds, sending, simulation, strategies, sweep, timeline, workloads
from spinloom.nics.machines import Machine
from spinloom.nics.pages import page
from spinloom.nics.sweep import Cell, Outcome, Setup
from spinloom.nics.workloads import Row
from spinloom.verbs import completion, simulate_send_tables, simulate_tables, simulate_together
from spinloom.verbs.options import (
    form_options,
    life_page_option,
    machine_options,
    out_option,
    quiet_option,
    read_seeds,
    timeline_option,
    workers_option,
)
from spinloom.verbs.stopping import stoppable

TOGETHER_ONLY = ("rounds", "nic_memory", "peers", "early", "at_once")
ALONE_ONLY = (
    *("demo", "everything", "count", "seed_range", "send_text", "workers"),
    *("out", "timeline_path", "page_path", "force", "verbose", "unexpected"),
)
RECEIVING_ONLY = ("strategy_text", "order", "seed_range", "unexpected", "page_path")


def read_part(ctx: click.Context, parameter: click.Parameter, text: str | None) -> Fraction | None:
    if text is None:
        return None
    try:
        part = Fraction(text)
    except (ValueError, ZeroDivisionError):
        part = Fraction(-1)
    if not 0 <= part <= 1 or part.denominator > 1_000_000:
        raise Trouble("invalid", f"--early {text}: give a part of the messages, such as 1/3 or 0.2")
    return part


@click.command(
    epilog="Examples: spinloom simulate --demo --out out/demo; "
    "spinloom simulate MILC:16^4 WRF_y --hpus 16 --json; "
    "spinloom simulate 'vector(512, 16, 32, double)' --strategies all; "
    "spinloom simulate MILC:16^4 --page life.html; "
    "spinloom simulate --together MILC:16^4@priority=3,epsilon=0.4 WRF_y:2x2 COMB:corner@host"
)
@click.argument(
    "applications",
    metavar="[APPLICATION[:DATATYPE[@ATTRIBUTES]]|TYPE]...",
    nargs=-1,
    shell_complete=completion.of(completion.datatypes),
)
@click.option("--demo", is_flag=True, help="The demo's datatypes.")
@click.option("--all", "everything", is_flag=True, help="Every datatype of every application.")
@click.option("--type", "type_text", metavar="TYPE", help="A datatype: text form, or FILE.py:OBJECT.")
@click.option(
    "--count",
    metavar="N",
    type=click.IntRange(0, (1 << 63) - 1),
    default=1,
    show_default=True,
    help="How many of each TYPE.",
)
@machine_options
@click.option(
    "--seeds",
    "seed_range",
    metavar="A..B",
    callback=read_seeds,
    help="Seeds to run: means, each with its 95 % confidence interval, where --order is random.",
)
@click.option(
    "--strategies",
    "strategy_text",
    metavar="NAMES",
    shell_complete=completion.of_list(completion.strategies),
    default=",".join(strategies.DEFAULT),
    show_default=True,
    help="Names with commas between them, or 'all'; the baseline is always added.",
)
@click.option(
    "--send",
    "send_text",
    metavar="NAMES",
    help="Compare ways to send instead: pack, streaming, outbound (with commas between them), or 'all'.",
)
@workers_option
@out_option(
    "DIR", "Also write simulate.csv, simulate.json, speedup.csv, speedup.svg, manifest.json.", folder=True
)
@timeline_option("Also write a Perfetto timeline of one message (the first datatype, the last strategy).")
@life_page_option
@click.option("--force", is_flag=True, help="Let --out, --timeline and --page overwrite.")
@quiet_option
@click.option("-v", "--verbose", is_flag=True, help="One line on stderr for each cell that ends.")
@click.option(
    "--unexpected",
    is_flag=True,
    help="Post the receive when the message has landed: the host unpacks it whatever the strategy.",
)
@click.option(
    "--together", is_flag=True, help="The datatypes share one NIC and its memory; their messages take turns."
)
@click.option(
    "--rounds",
    metavar="N",
    type=click.IntRange(1, 1_000_000),
    default=3,
    show_default=True,
    help="With --together: messages of each datatype.",
)
@click.option(
    "--nic-memory", metavar="BYTES", help="With --together: short for --set memory.state_bytes=BYTES."
)
@click.option(
    "--peers",
    metavar="N",
    type=click.IntRange(1, 256),
    help="With --together: one datatype, a message from each of so many peers at once.",
)
@click.option(
    "--early",
    metavar="PART",
    callback=read_part,
    help="With --together: this part of the messages, such as 1/3, comes before its receive is posted.",
)
@click.option(
    "--at-once",
    metavar="N",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="With --early: receives under way together.",
)
@click.option("--inject", type=click.Choice(sweep.INJECTIONS), default="none", hidden=True)
@form_options
@click.pass_context
def simulate(
    ctx: click.Context,
    applications: tuple[str, ...],
    demo: bool,
    everything: bool,
    type_text: str | None,
    count: int,
    machine: Machine,
    seed_range: tuple[int, int] | None,
    strategy_text: str,
    send_text: str | None,
    workers: int,
    out: Path | None,
    timeline_path: Path | None,
    page_path: Path | None,
    force: bool,
    quiet: bool,
    verbose: bool,
    unexpected: bool,
    together: bool,
    rounds: int,
    nic_memory: str | None,
    peers: int | None,
    early: Fraction | None,
    at_once: int,
    inject: str,
    form: str,
) -> None:
    """Compare strategies for receiving non-contiguous data.

    Simulates one message a datatype and strategy, running the handlers' machine code, compares every byte
    of memory with the oracle, and prints modelled times as speed-ups over the host's unpacking.

    With --together, messages of several datatypes come in turn to one NIC, by the one strategy that
    --strategies names (rw-cp otherwise). What a datatype needs on the NIC stays there for its next message.
    When memory runs out, the lowest priority leaves first, the least recently used among equals, never one of
    a higher priority; a datatype that finds no room is unpacked by the host. ATTRIBUTES, with commas between
    them: priority=N (0 otherwise), epsilon=RATIO (of the checkpoint strategies), host (never on the NIC).

    With --together --peers, every peer sends a message of one datatype at the same time, with index lists of
    its own where the datatype has rand(). The table says which part of the NIC's memory they take, and what
    the exchange takes with half of that.

    With --together --early, the NIC does what an MPI library does: datatypes are committed, each with the
    strategy that its commit chooses, several receives are posted together, and some messages come before
    their receive. The table says for each datatype who unpacked its messages, and how long that took.
    """
    if together:
        refuse_given(ctx, ALONE_ONLY, "is for messages that come alone; leave out --together")
        settings = simulate_together.Settings(
            types=applications,
            type_text=type_text,
            machine=machine,
            nic_memory=nic_memory,
            rounds=rounds,
            peers=peers,
            early=early,
            at_once=at_once,
            strategy=one_strategy(strategy_text) if is_given(ctx, "strategy_text") else None,
            quiet=quiet,
            inject=inject,
            form=form,
        )
        simulate_together.run(ctx, settings)
        return
    refuse_given(ctx, TOGETHER_ONLY, "is for datatypes that share a NIC: add --together")
    if count != 1 and type_text is None and not any(map(is_type, applications)):
        raise Trouble("invalid", "--count says how many of a TYPE, which is not given")
    if send_text is not None:
        refuse_given(ctx, RECEIVING_ONLY, "is about receiving; it does not go together with --send")
    if seed_range is not None and is_given(ctx, "seed"):
        raise Trouble("invalid", "--seed and --seeds: one of them says with which seeds to simulate")
    wanted = seeds.seed_range(*seed_range) if seed_range else range(machine.seed, machine.seed + 1)
    rows = select(applications, demo, everything, type_text, count)
    names = strategies.parse(strategy_text) if send_text is None else sending.parse(send_text)
    cells = [Cell(row, name) for row in rows for name in names]
    setup = machine.setup(inject=inject, unexpected=unexpected, send=send_text is not None)
    if out is not None:
        results.refuse_to_overwrite(out, force)
        results.check_writable(out)
    for path in (timeline_path, page_path):
        if path is not None and path.exists() and not force:
            raise Trouble("invalid", f"{path} is there already; --force overwrites")
        if path is not None and not path.parent.is_dir():
            raise Trouble("invalid", f"{path}: there is no folder {path.parent}")

    if everything and not quiet:
        output.say(estimate(cells, len(wanted), workers or os.cpu_count() or 1))
    began = time.monotonic()
    jobs = seeds.jobs(cells, setup, wanted)
    outcomes: list[tuple[int, Outcome]] = []  # seed and outcome
    with stoppable() as stop, progress(len(jobs), quiet) as advance:
        for place, outcome in sweep.run_all(jobs, workers or os.cpu_count() or 1):
            outcomes.append((jobs[place][1].seed, outcome))
            advance()
            if verbose:
                output.say(f"{cell_label(*outcomes[-1], seed_range)}: {outcome.code}")
    host_time_s = time.monotonic() - began

    if seed_range:
        table = seeds.build(cells, outcomes, setup, wanted)
    else:
        table = (sending if setup.send else results).build(cells, (each for _, each in outcomes), setup)
    if form == "json":
        output.echo(json.dumps(results.as_document(table), indent=1))
    elif form == "csv":
        output.echo(csv_text.as_csv(table.rows, table.columns()), nl=False)
    else:
        (simulate_send_tables if setup.send else simulate_tables).show(
            table, machine.profile, setup, host_time_s
        )
    if out is not None:
        about = results.manifest(table, setup, machine.profile, ["spinloom", *sys.argv[1:]], host_time_s)
        if seed_range:
            about["seed"] = list(wanted)
        save(folder_for(out, table), table, about)
    if timeline_path is not None:
        write_timeline(*jobs[len({cell.strategy for cell in cells}) - 1], timeline_path)
    if page_path is not None:
        output.say(page.save(page_path, cells[: len(names)], jobs[0][1], str(machine.profile)))
        if len(rows) > 1:
            output.say(
                f"{page_path} shows the first of {len(rows)} datatypes; a page of another names it alone"
            )
    for seed, outcome in outcomes:
        if outcome.code not in ("ok", "unsupported", "exhausted"):
            output.say(f"{cell_label(seed, outcome, seed_range)}: {outcome.code}: {outcome.message}")
    if stop.was_stopped:
        stop.leave(f"{len(outcomes)} of {len(jobs)} cells were done")
    if any(outcome.checked is False for _, outcome in outcomes):
        ctx.exit(EXIT_NEGATIVE)


def cell_label(seed: int, outcome: Outcome, seed_range: tuple[int, int] | None) -> str:
    return f"{outcome.cell}, seed {seed}" if seed_range else str(outcome.cell)


def is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_given(ctx: click.Context, names: tuple[str, ...], why: str) -> None:
    """Refuses the options of these arguments where the command line has one: '--option why'."""
    for name in names:
        if is_given(ctx, name):
            option = next(param.opts[-1] for param in ctx.command.params if param.name == name)
            raise Trouble("invalid", f"{option} {why}")


def one_strategy(text: str) -> str:
    if "," in text or text == "all":
        raise Trouble(
            "invalid", f"--strategies {text}: datatypes that share a NIC have one strategy, such as rw-cp"
        )
    return text


def is_type(operand: str) -> bool:
    """True for a text form or FILE.py:OBJECT, which names no datatype of an application."""
    return "(" in operand or ".py:" in operand


def select(
    applications: tuple[str, ...], demo: bool, everything: bool, type_text: str | None, count: int
) -> list[Row]:
    """The rows that the arguments name, each once."""
    rows: list[Row] = list(workloads.demo()) if demo else []
    if everything:
        rows += [row for application in workloads.applications() for row in application.rows]
    for name in applications:
        if "@" in name:
            raise Trouble("invalid", f"{name}: attributes are for datatypes that share a NIC: add --together")
        if is_type(name):
            rows += simulation.rows_of(name, count)
            continue
        application, colon, datatype = name.partition(":")
        rows += [workloads.row(application, datatype)] if colon else workloads.application(application).rows
    if type_text is not None:
        rows += simulation.rows_of(type_text, count)
    if not rows:
        raise Trouble(
            "invalid",
            "nothing to do: name an application ('spinloom info workloads' lists them), "
            "or give --type, --demo or --all",
        )
    return list(dict.fromkeys(rows))


# Host seconds of one cell, measured on one core of a server: what the engine's work grows with.
SECONDS_A_CELL, SECONDS_A_BYTE, SECONDS_A_BLOCK = 0.06, 2e-8, 6e-7


def estimate(cells: list[Cell], seed_count: int, workers: int) -> str:
    """Returns what a long run will take, from its bytes and blocks."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    size = sum(row.size_bytes or 0 for row in rows)
    blocks = sum((row.size_bytes or 0) / 2048 * (row.blocks_per_packet or 0) for row in rows)
    strategies_count = len(cells) / len(rows)
    seconds = seed_count * (
        SECONDS_A_CELL * len(cells) + strategies_count * (SECONDS_A_BYTE * size + SECONDS_A_BLOCK * blocks)
    )
    return (
        f"{len(rows)} datatypes, {seed_count * len(cells)} cells, {units.format_bytes(size)} and "
        f"{blocks:,.0f} blocks a strategy: about {max(1, round(seconds / workers)):,} s of host time on "
        f"{workers} cores"
    )


def write_timeline(cell: Cell, setup: Setup, path: Path) -> None:
    """Simulates the cell once more, recording what every unit does."""
    spans, dropped = sweep.record(cell, setup)
    content = timeline.build(spans, str(cell))
    files.write(path, content)
    lost = f"; {dropped:,} more did not fit (trace_spans_max)" if dropped else ""
    output.say(f"{path}: {len(spans):,} spans of {cell}{lost}; open it at ui.perfetto.dev")


def folder_for(out: Path, table: results.Table) -> Path:
    """Returns the folder for a table: the table of an interrupted run never replaces earlier results."""
    if not table.partial or not results.result_files(out):
        return out
    output.say(f"{out} keeps its earlier results; those of this run are in {out / 'partial'}")
    return out / "partial"


def save(out: Path, table: results.Table, about: dict) -> None:
    results.write(out, table, about)
    if not pictures.available():
        output.say("no speedup.svg: matplotlib is not installed (pip install matplotlib)")
    elif results.speedups(table):
        plot.write_speedup_svg(table, out / "speedup.svg", plot.machine_of(about))
    else:
        (out / "speedup.svg").unlink(missing_ok=True)
        output.say("no speedup.svg: no strategy has a speed-up to plot")
    output.say(f"written: {out}: {', '.join(results.result_files(out))}")
