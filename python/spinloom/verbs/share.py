"""`spinloom share`: several datatypes on one NIC whose memory they share."""

from __future__ import annotations

import json

import click

from spinloom import data, output, profiles, results, sharing, strategies, sweep, units
from spinloom.errors import EXIT_NEGATIVE, Trouble, nearest
from spinloom.profiles import Profile
from spinloom.sharing import Table
from spinloom.strategies import BASELINE
from spinloom.sweep import Setup
from spinloom.verbs import completion
from spinloom.verbs.options import form_options, nic_option, quiet_option, seed_option, set_option
from spinloom.verbs.progress import progress
from spinloom.verbs.stopping import stoppable

DEFAULT_STRATEGY = "rw-cp"


@click.command(
    epilog="Examples: spinloom share MILC:16^4@priority=3,epsilon=0.4 WRF_y:2x2 FFT2D:'N=512 P=4' "
    "COMB:corner@host --nic-memory 14KiB; spinloom share FFT2D --strategy seek --rounds 5 --json"
)
@click.argument(
    "types",
    metavar="APPLICATION[:DATATYPE][@ATTRIBUTES]...",
    nargs=-1,
    required=True,
    shell_complete=completion.of(completion.datatypes),
)
@nic_option
@set_option
@click.option("--nic-memory", metavar="BYTES", help="Short for --set memory.state_bytes=BYTES.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 1_000_000),
    default=3,
    show_default=True,
    help="Messages of each type; types take turns.",
)
@click.option("--strategy", default=DEFAULT_STRATEGY, show_default=True, help="Of every type on the NIC.")
@seed_option
@quiet_option
@click.option("--inject", type=click.Choice(sweep.INJECTIONS), default="none", hidden=True)
@form_options
@click.pass_context
def share(
    ctx: click.Context,
    types: tuple[str, ...],
    nic: str,
    changes: list[tuple[str, str]],
    nic_memory: str | None,
    rounds: int,
    strategy: str,
    seed: int,
    quiet: bool,
    inject: str,
    form: str,
) -> None:
    """Receive messages of several datatypes in turn on one NIC whose memory they share.

    What a type needs on the NIC stays there for its next message. When memory runs out, the lowest priority
    leaves first, the least recently used among equals, never one of a higher priority; a type that finds no
    room is unpacked by the host. ATTRIBUTES of a type, with commas between them: priority=N (0 otherwise),
    epsilon=RATIO (of the checkpoint strategies), host (never on the NIC). Every byte is compared with the
    oracle.
    """
    shared = [each for text in types for each in sharing.parse(text)]
    if strategy not in strategies.STRATEGIES:
        raise Trouble(
            "invalid", f"there is no strategy '{strategy}'{nearest(strategy, strategies.STRATEGIES)}"
        )
    if nic_memory is not None:
        changes = [*changes, ("memory.state_bytes", nic_memory)]
    profile = profiles.changed(profiles.load(nic), changes)
    setup = Setup(
        profile=profile.native(),
        images=data.handler_images(),
        hpus=profile["hpu.count"],
        mtu=profile["link.payload"],
        order="in",
        seed=seed,
        inject=inject,
    )
    if not setup.images:
        raise Trouble("environment", "there are no handler images; 'make setup' in the checkout builds them")
    expected = rounds * len(shared)
    messages: list[sharing.Message] = []
    host_ps = sharing.baselines(shared, setup)
    with stoppable() as stop, progress(expected, quiet) as bar:
        for message in sharing.run(shared, setup, strategy, rounds):
            messages.append(message)
            bar()
    table = sharing.build(messages, expected, profile, setup, host_ps)
    if form == "json":
        click.echo(json.dumps(as_document(table), indent=1))
    elif form == "csv":
        click.echo(results.as_csv(table.rows, list(table.rows[0]) if table.rows else []), nl=False)
    else:
        show(table, profile, strategy)
    wrong = [message for message in messages if message.code != "ok"]
    for message in wrong:
        where = f"{sharing.named(message.shared.row)}, round {message.round}"
        output.say(f"{where}: {message.code}: {message.message}")
    if stop.told:
        stop.leave(f"{len(messages)} of {expected} messages were received")
    if wrong:
        ctx.exit(EXIT_NEGATIVE)


def as_document(table: Table) -> dict:
    return {
        "rows": table.rows,
        "summary": table.summary,
        "result_hash": table.result_hash,
        "partial": table.partial,
    }


def show(table: Table, profile: Profile, strategy: str) -> None:
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
    named = [str(row["round"]), f"{row['application']} {row['datatype']}", attributes_of(row)]
    if not row["checked"]:
        return [
            *named,
            *[""] * 6,
            f"WRONG: {row['status']}" if row["status"] == "mismatch" else row["status"],
        ]
    served = row["served"]
    if row["message"]:
        if row["message"] not in notes:
            notes.append(row["message"])
        served += f" [{notes.index(row['message']) + 1}]"
    return [
        *named,
        served,
        str(row["evictions"] or ""),
        units.format_bytes(row["nic_memory_bytes"]),
        units.format_bytes(row["nic_memory_in_use_bytes"]),
        units.format_time(row["time_ps"]),
        f"{row['speedup']:.2f}x",
        "checked",
    ]


def attributes_of(row: dict) -> str:
    said = [f"priority={row['priority']}"] if row["priority"] else []
    if row["epsilon"] is not None:
        said.append(f"epsilon={row['epsilon']}")
    if row["served"] == "host":
        said.append("host")
    return ",".join(said)


def in_words(summary: dict) -> str:
    """'9 messages: 4 hits, 3 prepared, ...; mean speed-up 4.2x over host-mpitypes, 2.1x with preparation'"""
    counted = (
        f"{summary['messages']} messages: {summary['hits']} hits, {summary['prepared']} prepared, "
        f"{summary['fallbacks']} fall-backs, {summary['on_host']} on the host as asked, "
        f"{summary['evictions']} evictions"
    )
    if summary["speedup_mean"] is None:
        return counted
    return (
        f"{counted}; mean speed-up {summary['speedup_mean']:.2f}x over {BASELINE}, "
        f"{summary['speedup_mean_with_preparation']:.2f}x with preparation"
    )
