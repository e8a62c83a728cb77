"""`spinloom handler test`: odd sizes, orders and HPU counts, and whether the result is what it must be."""

from __future__ import annotations

import click

from spinloom.common import output
from spinloom.common.errors import EXIT_NEGATIVE
from spinloom.handlers import handler_runs
from spinloom.handlers.handler_runs import MEMORIES, HandlerRun
from spinloom.verbs.handler_options import Chosen, run_options

ORDERS = ("in", "window:4", "all:8")
HPUS = (1, 3, 16)


def sizes_of(packet_bytes: int) -> list[int]:
    return [0, 1, packet_bytes - 1, packet_bytes, packet_bytes + 1, 5 * packet_bytes + 3]


@click.command(epilog="Example: spinloom handler test words.c")
@run_options
@click.pass_context
def test(ctx: click.Context, chosen: Chosen) -> None:
    """Try handlers with odd sizes, orders and HPU counts.

    Sizes are 0, 1, a packet less one, and so on. Nothing may fault; bytes must be what expect() of
    FILE_expect.py says, where there is one; and with `confluent = true` in FILE.toml the result must be the
    same in every order and with any number of HPUs.
    """
    trouble: list[str] = []
    runs = 0
    packet_bytes = chosen.setup.packet_of(chosen.profile)
    for size in sizes_of(packet_bytes):
        message = handler_runs.random_message(size, chosen.seed)
        first: HandlerRun | None = None
        for order in ORDERS:
            for hpus in HPUS:
                setup = chosen.setup.with_overrides(order=order, hpus=hpus, count=1)
                ran = handler_runs.run(chosen.image, setup, message, seed=chosen.seed)
                runs += 1
                first = first or ran
                cell = f"{size} B, order {order}, {hpus} HPUs"
                trouble += [f"{cell}: {text}" for text in troubles_of(chosen, ran, first)]
    for line in trouble:
        output.echo(line)
    output.echo(f"{runs} runs, {len(trouble)} in trouble; {what_was_looked_at(chosen)}")
    if trouble:
        ctx.exit(EXIT_NEGATIVE)


def troubles_of(chosen: Chosen, ran: HandlerRun, first: HandlerRun) -> list[str]:
    troubles = list(ran.failures)
    if ran.result["time_ps"] < 0:
        troubles.append("the host was never told that the message has ended")
    troubles += chosen.differences(ran)
    if chosen.setup.confluent:
        troubles += [
            f"{name} is not as with order {first.setup.order} and {first.setup.hpus} HPUs"
            for memory, name in MEMORIES.items()
            if ran.result[memory] != first.result[memory]
        ]
    return troubles


def what_was_looked_at(chosen: Chosen) -> str:
    expected = (
        f"bytes compared with {chosen.image.beside('_expect.py')}"
        if chosen.expect
        else f"bytes not compared: there is no {chosen.image.beside('_expect.py')}"
    )
    confluent = (
        "results compared with each other" if chosen.setup.confluent else "results may depend on the order"
    )
    return f"{expected}; {confluent}"
