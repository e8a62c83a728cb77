"""`spinloom nic run`: an Ethernet NIC that runs handlers, as a process on this machine."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import click

from spinloom.common import core, output
from spinloom.common.errors import Trouble
from spinloom.ethernet import nic_setup
from spinloom.ethernet.nic_setup import Setup
from spinloom.verbs.stopping import Force, stoppable

COLUMNS = (
    *("packets", "bytes", "messages"),
    *("header handlers", "payload handlers", "completion handlers", "handler faults"),
)
REMEDY = "in the sandbox, without --native, a handler ends by its budget"
PORTS = "pcap:IN,OUT, replay:IN,TIMES, tap:NAME[,ADDRESS/BITS], packet:INTERFACE or xdp:INTERFACE"


@click.command(
    epilog="Examples: spinloom nic run --wire packet:nic0 --handlers icmp_echo --rules icmp; "
    "spinloom nic run --wire pcap:in.pcap,out.pcap --handlers mine.c --rules udp:7"
)
@click.option("--wire", metavar="PORT", help=f"Where frames come from and go to: {PORTS}.")
@click.option(
    "--host-port",
    "host",
    metavar="PORT",
    help="The network stack behind the NIC, such as tap:NAME,ADDRESS/BITS.",
)
@click.option(
    "--handlers", multiple=True, metavar="FILE", help="FILE.c, FILE.elf, FILE.so or a shipped handler."
)
@click.option(
    "--rules",
    multiple=True,
    metavar="RULES",
    help="udp:PORT, slmp, icmp, arp, ip, all or RULES.toml, for them.",
)
@click.option("--native", is_flag=True, help="Build FILE.c for this processor, and trust it.")
@click.option("--address", metavar="IP", help="The IPv4 address for which shipped handlers answer.")
@click.option("--config", type=click.Path(path_type=Path), help="Ports and contexts from a TOML file.")
@click.option(
    "--name", help="How programs and other verbs find the NIC; spinloom0, or the next that is free."
)
@click.option("--seconds", metavar="N", type=click.FloatRange(0, min_open=True), help="End after this time.")
@click.option(
    "--patience",
    metavar="N",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="Seconds that a handler may wait for its host.",
)
@click.option("--stages", is_flag=True, help="Print where the time went, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def run(
    wire: str | None,
    host: str | None,
    handlers: tuple[str, ...],
    rules: tuple[str, ...],
    native: bool,
    address: str | None,
    config: Path | None,
    name: str | None,
    seconds: float | None,
    patience: float,
    stages: bool,
    as_json: bool,
) -> None:
    """Run a NIC until Ctrl-C or the end of its capture file.

    Then it prints what it has counted. Frames that no rules take go to --host-port, and what it sends goes to
    the wire. Handlers that are natively built run in this process and are trusted.
    """
    setup = nic_setup.load(config) if config else Setup()
    if config and (handlers or rules):
        raise Trouble("invalid", "--handlers and --rules: the contexts stand in --config")
    setup = nic_setup.with_options(
        setup,
        wire=wire,
        host=host,
        address=address,
        contexts=nic_setup.paired_contexts(handlers, rules, native),
    )
    for context in setup.contexts:
        if waits := nic_setup.PROGRAM_HANDLERS.get(context.handlers):
            output.say(f"{context.handlers} {waits}")
    core.load().say_warnings()
    with tempfile.TemporaryDirectory(prefix="spinloom-nic-") as scratch:
        cards: list[Any] = []
        force = Force(lambda: (cards and cards[0].handler_now()) or "the NIC", f"its report; {REMEDY}")
        with force:
            card = nic_setup.start(setup, Path(scratch), patience, cards.append)
        announced = "" if nic_setup.is_file(setup.wire) else f"{nic_setup.serve(card, name)}: "
        contexts = ", ".join(map(nic_setup.described, setup.contexts)) or "waits for programs"
        try:
            with stoppable(), force:  # the usual end of a NIC, from the moment that it is announced
                output.echo(f"{announced}{card.description()}; {contexts}", err=as_json)
                card.run(seconds)
        finally:  # a port that fails ends here, too
            if lost := card.lines_lost():
                output.say(f"{lost:,} more lines of handlers are not shown")
            show(card.report(), setup, stages, as_json)


def name_of(context: int, setup: Setup) -> str:
    return nic_setup.described(setup.contexts[context]) if context < len(setup.contexts) else "of a program"


def show(report: dict[str, Any], setup: Setup, stages: bool, as_json: bool) -> None:
    if as_json:
        output.echo(json.dumps(report, indent=1))
        return
    counted = [[name, f"{value:,}"] for name, value in report["counts"].items() if value]
    ports = [
        [f"{port}: {name}", f"{value:,}"]
        for port in ("wire", "host")
        for name, value in report.get(port, {}).items()
        if value
    ]
    output.show(output.table(["count", "frames"], counted + ports, numeric={"frames"}))
    if report["contexts"]:
        rows = [
            [name_of(context["context"], setup), *(shown_count(context, name) for name in COLUMNS)]
            for context in report["contexts"]
        ]
        output.show(output.table(["context", *COLUMNS], rows, numeric=set(COLUMNS)))
    if stages:
        show_stages(report["stages"])


def shown_count(context: dict[str, Any], name: str) -> str:
    """Messages are counted where a context has header or completion handlers, which run for each."""
    uncounted = name == "messages" and context["packets"] > 0 and context["messages"] == 0
    return "-" if uncounted else f"{context[name]:,}"


def show_stages(stages: list[tuple[str, int, float]]) -> None:
    rows = [
        [name, f"{frames:,}" if frames else "", f"{ns / 1e6:,.1f}", f"{ns / frames:,.0f}" if frames else ""]
        for name, frames, ns in stages
    ]
    columns = ["stage", "frames", "ms", "ns a frame"]
    output.show(output.table(columns, rows, numeric=set(columns[1:]), title="host time"))
