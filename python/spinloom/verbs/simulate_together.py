"""`spinloom simulate --together`: several datatypes on one NIC whose memory they share."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction

import click
from click.core import ParameterSource
from rich.table import Table

from spinloom.common import csv_text, output, units
from spinloom.common.errors import EXIT_NEGATIVE, Trouble, nearest
from spinloom.common.progress import progress
from spinloom.nics import exchanges, mixes, profiles, sharing, simulation, strategies
from spinloom.nics.machines import Machine
from spinloom.nics.profiles import Profile
from spinloom.nics.strategies import BASELINE
from spinloom.verbs.simulate_mix import show_mix
from spinloom.verbs.stopping import stoppable

DEFAULT_STRATEGY = "rw-cp"


@dataclass(frozen=True)
class Settings:
    """What the command line says."""

    types: tuple[str, ...]
    type_text: str | None
    machine: Machine
    nic_memory: str | None
    rounds: int
    peers: int | None
    early: Fraction | None
    at_once: int
    strategy: str | None  # None: nobody named one
    quiet: bool
    inject: str
    form: str


def run(ctx: click.Context, settings: Settings) -> None:
    """Simulates the datatypes and shows them."""
    machine, strategy, form = settings.machine, settings.strategy, settings.form
    shared = [each for text in settings.types for each in sharing.parse(text)]
    if settings.type_text is not None:
        shared += [sharing.SharedType(row) for row in simulation.rows_of(settings.type_text)]
    if not shared:
        raise Trouble(
            "invalid",
            "nothing to do: name an application ('spinloom info workloads' lists them), or give --type",
        )
    if settings.nic_memory is not None:
        profile = profiles.changed(machine.profile, [("memory.state_bytes", settings.nic_memory)])
        machine = replace(machine, profile=profile)
    if settings.peers is not None:
        run_peers(ctx, shared, settings.peers, strategy or exchanges.STRATEGY, machine, settings.inject, form)
        return
    if ctx.get_parameter_source("at_once") is ParameterSource.COMMANDLINE and settings.early is None:
        raise Trouble(
            "invalid", "--at-once is for --early: give that, too (0: every receive is there in time)"
        )
    if settings.early is None:
        strategy = strategy or DEFAULT_STRATEGY
    if strategy is not None and strategy not in strategies.STRATEGIES:
        raise Trouble(
            "invalid", f"there is no strategy '{strategy}'{nearest(strategy, strategies.STRATEGIES)}"
        )
    setup = machine.setup(inject=settings.inject)
    if settings.early is not None:
        mix = mixes.run(shared, setup, strategy, settings.rounds, settings.at_once, settings.early)
        show_mix(mix, machine, form)
        return
    assert strategy is not None
    expected = settings.rounds * len(shared)
    messages: list[sharing.Message] = []
    host_ps = sharing.baselines(shared, setup)
    with stoppable() as stop, progress(expected, settings.quiet) as bar:
        for message in sharing.run(shared, setup, strategy, settings.rounds):
            messages.append(message)
            bar()
    table = sharing.build(messages, expected, machine.profile, setup, host_ps)
    if form == "json":
        output.echo(json.dumps(as_document(table), indent=1))
    elif form == "csv":
        output.echo(csv_text.as_csv(table.rows, list(table.rows[0]) if table.rows else []), nl=False)
    else:
        show(table, machine.profile, strategy)
    wrong = [message for message in messages if message.code != "ok"]
    for message in wrong:
        where = f"{sharing.row_label(message.shared.row)}, round {message.round}"
        output.say(f"{where}: {message.code}: {message.message}")
    if stop.was_stopped:
        stop.leave(f"{len(messages)} of {expected} messages were received")
    if wrong:
        ctx.exit(EXIT_NEGATIVE)


def run_peers(
    ctx: click.Context,
    shared: list[sharing.SharedType],
    peers: int,
    strategy: str,
    machine: Machine,
    inject: str,
    form: str,
) -> None:
    """Many peers at once, and the same with half of each memory."""
    if len(shared) != 1 or shared[0] != sharing.SharedType(shared[0].row):
        raise Trouble(
            "invalid", "--peers takes one datatype without attributes, such as 'LAMMPS_atomic:2 procs'"
        )
    if ctx.get_parameter_source("rounds") is ParameterSource.COMMANDLINE:
        raise Trouble("invalid", "--rounds and --peers: peers send one message each")
    outcome = None
    host_ps: dict[str, int] = {}
    halved: dict[str, exchanges.Exchange] = {}
    with stoppable() as stop:
        outcome = exchanges.run(shared[0].row, peers, strategy, machine, inject)
        for name in exchanges.BASELINES:
            host_ps[name] = exchanges.run(outcome.row, peers, name, machine).time_ps
        for kind in exchanges.BANKS:
            smaller = exchanges.with_half_memory(outcome, kind) if outcome.occupancy[kind] else None
            if smaller is not None:
                halved[kind] = smaller
    if outcome is not None:
        print_peers(outcome, host_ps, exchanges.rows_of(outcome, halved), form)
    if stop.was_stopped:
        stop.leave("what it had found is printed" if outcome else "the exchange was not done")


def print_peers(outcome: exchanges.Exchange, host_ps: dict[str, int], rows: list[dict], form: str) -> None:
    machine, strategy, peers = outcome.machine, outcome.strategy, outcome.peers
    if form == "json":
        about = {
            "nic": machine.profile.name,
            "host": machine.profile.host,
            "strategy": strategy,
            "peers": peers,
        }
        numbers = {"time_ps": outcome.time_ps, "bytes": outcome.bytes, "fallbacks": len(outcome.fallbacks)}
        series = {
            "packets_over_time": outcome.packets_over_time,
            "result_hash": exchanges.result_hash(outcome),
        }
        output.echo(json.dumps({**about, **numbers, "host_ps": host_ps, "kinds": rows, **series}, indent=1))
        return
    if form == "csv":
        output.echo(csv_text.as_csv(rows, list(rows[0])), nl=False)
        return
    console = output.console()
    times = ", ".join(f"{name} {units.format_time(ps)}" for name, ps in host_ps.items())
    console.print(
        f"{peers} peers at once, {sharing.row_label(outcome.row)}, "
        f"{units.format_bytes(outcome.bytes)} in all, "
        f"modelled time on {machine.profile}: {strategy} {units.format_time(outcome.time_ps)}; {times}."
    )
    output.show(kinds_table(rows))
    if outcome.fallbacks:
        console.print(
            f"{len(outcome.fallbacks)} unpacked by the host, the first because: {outcome.fallbacks[0]}"
        )
    console.print(f"every byte checked; result hash {exchanges.result_hash(outcome)}", soft_wrap=True)


def kinds_table(rows: list[dict]) -> Table:
    columns = ["NIC memory", "at most", "of its bank", "with half of that", "about"]
    cells = [
        [
            row["kind"],
            units.format_bytes(row["bytes"]),
            f"{row['share']:.1%}" if row["share"] is not None else "its own",
            half_in_words(row),
            row["about"],
        ]
        for row in rows
    ]
    return output.table(columns, cells, numeric={"at most", "of its bank"})


def half_in_words(row: dict) -> str:
    if row["half_time_ps"] is None:
        return ""
    on_host = f", {row['half_fallbacks']} on host" if row["half_fallbacks"] else ""
    return f"{units.format_time(row['half_time_ps'])}{on_host}"


def as_document(table: sharing.Table) -> dict:
    return {
        "rows": table.rows,
        "summary": table.summary,
        "result_hash": table.result_hash,
        "partial": table.partial,
    }


def show(table: sharing.Table, profile: Profile, strategy: str) -> None:
    console = output.console()
    console.print(
        f"Modelled time on {profile}, {strategy}, {units.format_bytes(profile['memory.state_bytes'])} of NIC "
        f"memory: each message's time, and its speed-up over {BASELINE}; preparing a receive is not in it."
    )
    notes: list[str] = []
    columns = ["round", "datatype", "attributes", "served", "evicts", "holds", "in use", "time", "speed-up"]
    lines = [line(row, notes) for row in table.rows]
    numeric = {"round", "evicts", "holds", "in use", "time", "speed-up"}
    output.show(output.table([*columns, "bytes"], lines, numeric=numeric))
    for number, note in enumerate(notes, 1):
        console.print(f"[{number}] {note}")
    console.print(in_words(table.summary))
    if table.partial:
        console.print("partial: true (not all messages were received)")
    console.print(f"result hash {table.result_hash}", soft_wrap=True)


def line(row: dict, notes: list[str]) -> list[str]:
    labels = [str(row["round"]), f"{row['application']} {row['datatype']}", attributes_of(row)]
    if not row["checked"]:
        return [
            *labels,
            *[""] * 6,
            f"WRONG: {row['status']}" if row["status"] == "mismatch" else row["status"],
        ]
    served = row["served"]
    if row["message"]:
        if row["message"] not in notes:
            notes.append(row["message"])
        served += f" [{notes.index(row['message']) + 1}]"
    return [
        *labels,
        served,
        str(row["evictions"] or ""),
        units.format_bytes(row["nic_memory_bytes"]),
        units.format_bytes(row["nic_memory_in_use_bytes"]),
        units.format_time(row["time_ps"]),
        f"{row['speedup']:.2f}x",
        "checked",
    ]


def attributes_of(row: dict) -> str:
    attributes = [f"priority={row['priority']}"] if row["priority"] else []
    if row["epsilon"] is not None:
        attributes.append(f"epsilon={row['epsilon']}")
    if row["served"] == "host":
        attributes.append("host")
    return ",".join(attributes)


def in_words(summary: dict) -> str:
    """'9 messages: 4 hits, 3 prepared, ...; mean speed-up 4.2x over host-mpitypes, 2.1x with preparation'"""
    counts = (
        f"{summary['messages']} messages: {summary['hits']} hits, {summary['prepared']} prepared, "
        f"{summary['fallbacks']} fall-backs, {summary['on_host']} on the host as asked, "
        f"{summary['evictions']} evictions"
    )
    if summary["speedup_mean"] is None:
        return counts
    return (
        f"{counts}; mean speed-up {summary['speedup_mean']:.2f}x over {BASELINE}, "
        f"{summary['speedup_mean_with_preparation']:.2f}x with preparation"
    )
