"""`spinloom handler profile`: a handler's cycles by source line, and whether it keeps up with the line."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from spinloom.common import core, output, units
from spinloom.handlers import handler_budget, handler_build, toolchain
from spinloom.handlers.handler_budget import Budget
from spinloom.handlers.handler_build import Image
from spinloom.handlers.handler_runs import HandlerRun
from spinloom.verbs.handler_options import Chosen, run_options

Rows = list[dict[str, Any]]

MEMORIES = {
    0x10000000: "image (constants in the code)",
    0x20000000: "constants of the context",
    0x30000000: "state",
    0x40000000: "packet",
    0x50000000: "stack",
    0x60000000: "command window (calls)",
}


@click.command(
    epilog="Examples: spinloom handler profile words.c --mtu 2KiB; spinloom handler profile words.c --json"
)
@run_options
@click.option("--size", "message_size", metavar="SIZE", help="Send so many random bytes.")
@click.option("--message", "message_path", type=click.Path(path_type=Path), help="Send this file's bytes.")
@click.option("--no-budget", is_flag=True, help="Do not search how many HPUs keep up.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def profile(
    chosen: Chosen, message_size: str | None, message_path: Path | None, no_budget: bool, as_json: bool
) -> None:
    """Show where the cycles of handlers go.

    It shows cycles by function and source line, memory accesses, and how many HPUs keep up with the line.
    An instruction is charged with the cycles by which it delays the end of its handler. Code of an inline
    function of the installed headers counts for the line that calls it.
    """
    chosen = chosen.with_message(message_path, message_size, None)
    ran = chosen.run(profile_instructions=True)
    if not as_json:
        for failure in ran.failures:
            output.say(f"the message failed: {failure}")
        show_functions(functions_of(ran))
        if chosen.image.is_source:
            show_lines(lines_of(chosen.image, ran))
        else:
            show_instructions(instructions_of(chosen.image, ran))
        show_traffic(memory_of(ran), atomics_of(ran))
    budget = None
    if not no_budget and ran.ended_well and "payload_handler" in chosen.image.handlers:
        budget = handler_budget.budget_of(chosen.image, chosen.setup, chosen.profile, chosen.seed)
    if as_json:
        output.echo(json.dumps(document(chosen, ran, budget), indent=1))
    elif budget is not None:
        show_budget(chosen, budget)


def document(chosen: Chosen, ran: HandlerRun, budget: Budget | None) -> dict[str, Any]:
    """What --json prints: `lines` of a source, `instructions` of an image."""
    by_place = (
        {"lines": lines_of(chosen.image, ran)}
        if chosen.image.is_source
        else {"instructions": instructions_of(chosen.image, ran)}
    )
    found = budget and {
        name: float(value) if isinstance(value, Fraction) else value
        for name, value in dataclasses.asdict(budget).items()
    }
    return {
        "handlers": chosen.image.handlers,
        "failures": ran.failures,
        "functions": functions_of(ran),
        **by_place,
        "memory": memory_of(ran),
        "atomics": atomics_of(ran),
        "budget": found,
    }


def share(cycles: int, total: int) -> str:
    return f"{cycles / max(total, 1):.1%}"


def total_of(rows: Rows) -> int:
    return sum(row["cycles"] for row in rows)


def functions_of(ran: HandlerRun) -> Rows:
    by_cycles = sorted(ran.result["function_cycles"].items(), key=lambda item: -item[1])
    return [{"function": name, "cycles": cycles} for name, cycles in by_cycles]


def show_functions(rows: Rows) -> None:
    total = total_of(rows)
    columns = ["function", "cycles", "of all"]
    lines = [[row["function"], f"{row['cycles']:,}", share(row["cycles"], total)] for row in rows]
    output.show(output.table(columns, lines, numeric=set(columns[1:])))


def lines_of(image: Image, ran: HandlerRun) -> Rows:
    """Cycles by file and line, in their order; the text of lines beside the source."""
    table = handler_build.line_table(image)
    spent: Counter[tuple[str, int]] = Counter()
    for address, (_, cycles) in ran.result["instructions"].items():
        spent[table.get(address, ("(no line)", 0))] += cycles
    texts = {
        path.name: path.read_text(encoding="utf-8", errors="replace").splitlines()
        for path in toolchain.with_headers_beside(image.path)
    }
    rows = []
    for (file, line), cycles in sorted(spent.items()):
        source = texts.get(file, [])
        text = source[line - 1].strip() if 0 < line <= len(source) else ""
        rows.append({"file": file, "line": line, "cycles": cycles, "source": text})
    return rows


def show_lines(rows: Rows) -> None:
    total = total_of(rows)
    lines = [
        [f"{row['file']}:{row['line']}", f"{row['cycles']:,}", share(row["cycles"], total), row["source"]]
        for row in rows
    ]
    columns = ["line", "cycles", "of all", "source"]
    output.show(output.table(columns, lines, numeric={"cycles", "of all"}))


def instructions_of(image: Image, ran: HandlerRun) -> Rows:
    """Cycles by instruction, for an image without its source."""
    spent = ran.result["instructions"]
    return [
        {
            "address": address,
            "executed": spent[address][0],
            "cycles": spent[address][1],
            "instruction": text,
        }
        for address, _, _, text in core.load().disassemble_image(image.elf)
        if address in spent
    ]


def show_instructions(rows: Rows) -> None:
    total = total_of(rows)
    lines = [
        [
            f"{row['address']:08x}",
            f"{row['executed']:,}",
            f"{row['cycles']:,}",
            share(row["cycles"], total),
            row["instruction"],
        ]
        for row in rows
    ]
    columns = ["address", "executed", "cycles", "of all", "instruction"]
    output.show(output.table(columns, lines, numeric=set(columns[1:4])))


def memory_of(ran: HandlerRun) -> Rows:
    columns = ("loads", "loaded_bytes", "stores", "stored_bytes")
    return [
        {
            "memory": MEMORIES.get(address, hex(address)),
            "address": address,
            **dict(zip(columns, traffic, strict=True)),
        }
        for address, traffic in sorted(ran.result["traffic"].items())
    ]


def atomics_of(ran: HandlerRun) -> int:
    return sum(kind["atomics"] for kind in ran.result["handlers"].values())


def show_traffic(rows: Rows, atomics: int) -> None:
    numbers = ("loads", "loaded_bytes", "stores", "stored_bytes")
    lines = [[row["memory"], *(f"{row[name]:,}" for name in numbers)] for row in rows]
    columns = ["memory", "loads", "bytes loaded", "stores", "bytes stored"]
    output.show(output.table(columns, lines, numeric=set(columns[1:])))
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
