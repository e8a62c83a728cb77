"""`spinloom handler profile`: a handler's cycles by source line, and whether it keeps up with the line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from spinloom.common import core, output, units
from spinloom.handlers import handler_budget, handler_build
from spinloom.handlers.handler_budget import Budget
from spinloom.handlers.handler_build import Image
from spinloom.handlers.handler_runs import HandlerRun
from spinloom.verbs.handler_options import Chosen, run_options

MEMORIES = {
    0x10000000: "image (constants in the code)",
    0x20000000: "constants of the context",
    0x30000000: "state",
    0x40000000: "packet",
    0x50000000: "stack",
    0x60000000: "command window (calls)",
}


@click.command(epilog="Example: spinloom handler profile words.c --mtu 2KiB")
@run_options
@click.option("--size", "message_size", metavar="SIZE", help="Send so many random bytes.")
@click.option("--message", "message_path", type=click.Path(path_type=Path), help="Send this file's bytes.")
@click.option("--no-budget", is_flag=True, help="Do not search how many HPUs keep up.")
def profile(chosen: Chosen, message_size: str | None, message_path: Path | None, no_budget: bool) -> None:
    """Show where the cycles of handlers go.

    It shows cycles by function and source line, memory accesses, and how many HPUs keep up with the line. An
    instruction is charged with the cycles by which it delays the end of its handler.
    """
    chosen = chosen.with_message(message_path, message_size, None)
    ran = chosen.run(profile_instructions=True)
    for failure in ran.failures:
        output.say(f"the message failed: {failure}")
    show_functions(ran)
    if chosen.image.is_source:
        show_lines(chosen.image, ran)
    else:
        show_instructions(chosen.image, ran)
    show_traffic(ran)
    if not no_budget and ran.ended_well and "payload_handler" in chosen.image.handlers:
        show_budget(chosen, handler_budget.budget_of(chosen.image, chosen.setup, chosen.profile, chosen.seed))


def share(cycles: int, total: int) -> str:
    return f"{cycles / max(total, 1):.1%}"


def show_functions(ran: HandlerRun) -> None:
    functions = ran.result["function_cycles"]
    total = sum(functions.values())
    rows = sorted(functions.items(), key=lambda item: -item[1])
    columns = ["function", "cycles", "of all"]
    lines = [[name, f"{cycles:,}", share(cycles, total)] for name, cycles in rows]
    output.show(output.table(columns, lines, numeric=set(columns[1:])))


def by_line(image: Image, ran: HandlerRun) -> Counter[tuple[str, int]]:
    """Cycles by (file, line)."""
    table = handler_build.line_table(image)
    spent: Counter[tuple[str, int]] = Counter()
    for address, (_, cycles) in ran.result["instructions"].items():
        spent[table.get(address, ("(no line)", 0))] += cycles
    return spent


def show_lines(image: Image, ran: HandlerRun) -> None:
    spent = by_line(image, ran)
    total = sum(spent.values())
    source = image.path.read_text(encoding="utf-8", errors="replace").splitlines()
    rows = []
    for (file, line), cycles in sorted(spent.items()):
        here = file == image.path.name and 0 < line <= len(source)
        text = source[line - 1].strip() if here else ""
        rows.append([f"{file}:{line}", f"{cycles:,}", share(cycles, total), text])
    columns = ["line", "cycles", "of all", "source"]
    output.show(output.table(columns, rows, numeric={"cycles", "of all"}))


def show_instructions(image: Image, ran: HandlerRun) -> None:
    """Shows the profile of an image without its source."""
    spent = ran.result["instructions"]
    total = sum(cycles for _, cycles in spent.values())
    rows = []
    for address, _, _, text in core.load().disassemble_image(image.elf):
        if address in spent:
            executed, cycles = spent[address]
            rows.append([f"{address:08x}", f"{executed:,}", f"{cycles:,}", share(cycles, total), text])
    columns = ["address", "executed", "cycles", "of all", "instruction"]
    output.show(output.table(columns, rows, numeric=set(columns[1:4])))


def show_traffic(ran: HandlerRun) -> None:
    rows = [
        [MEMORIES.get(address, hex(address)), *(f"{number:,}" for number in traffic)]
        for address, traffic in sorted(ran.result["traffic"].items())
    ]
    atomics = sum(kind["atomics"] for kind in ran.result["handlers"].values())
    columns = ["memory", "loads", "bytes loaded", "stores", "bytes stored"]
    output.show(output.table(columns, rows, numeric=set(columns[1:])))
    if atomics:
        output.console().print(f"atomic instructions: {atomics:,}", markup=False, highlight=False)


def show_budget(chosen: Chosen, budget: Budget) -> None:
    packet = units.format_bytes(chosen.setup.packet_of(chosen.profile))
    hpus = budget.hpus_by_simulation
    fastest = units.format_time(budget.fastest_ps)
    simulated = f"HPUs within 5 %: {hpus}, {fastest}"
    if not hpus:
        simulated = f"not even {handler_budget.hpus_max()} HPUs are within 5 %: {fastest}"
    size, line_time = units.format_bytes(budget.message_bytes), units.format_time(budget.line_ps)
    packet_time, handler_time = (units.format_time(round(ps)) for ps in (budget.packet_ps, budget.handler_ps))
    lines = [
        f"line rate: a packet of {packet} every {packet_time}; a payload handler takes {handler_time} (mean)",
        f"HPUs that keep up by Little's law: {budget.hpus_by_law}",
        f"by simulation of {size}, {line_time} on the line, the last handlers not counted: {simulated}",
    ]
    for line in lines:
        output.console().print(line, markup=False, highlight=False)
