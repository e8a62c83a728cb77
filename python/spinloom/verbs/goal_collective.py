"""`spinloom goal collective`, `scale` and `fit`: collective operations that NICs carry on by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spinloom.common import output, units
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.nics import machines
from spinloom.papers import collective_drawing, collective_model, collective_rows
from spinloom.papers.collective_rows import Question
from spinloom.verbs import completion, options
from spinloom.verbs.options import form_options, nic_option, plot_option, quiet_option, ranks_option

RANKS = click.IntRange(1, 2**24)


@click.command(
    epilog="Examples: spinloom goal collective allreduce --ranks 1024 --size 64KiB; "
    "spinloom goal collective bcast --ranks 16 --size 8 --plot tree.svg"
)
@click.argument("operation", shell_complete=completion.of(completion.collective_operations))
@ranks_option("How many.", type=RANKS, required=True)
@click.option(
    "--size",
    "size_text",
    metavar="SIZE",
    required=True,
    help="All data of a broadcast, a reduction or a scan; of other operations the block of a rank.",
)
@click.option(
    "--root", metavar="N", type=click.IntRange(0), default=0, show_default=True, help="Where there is one."
)
@nic_option
@click.option(
    "--fidelity",
    type=click.Choice(collective_rows.FIDELITIES),
    default="nic",
    show_default=True,
    help="What simulates them: nic: NICs that match and trigger; full: whole nodes, packets and bytes; none.",
)
@click.option("--algorithm", metavar="NAME", help="Draw this one; otherwise the chosen one.")
@plot_option("FILE.svg|FILE.png", "Also draw who sends to whom, and when by the model.")
@quiet_option
@form_options
def collective(
    operation: str,
    ranks: int,
    size_text: str,
    root: int,
    nic: str,
    fidelity: str,
    algorithm: str | None,
    plot: Path | None,
    quiet: bool,
    form: str,
) -> None:
    """Choose the algorithm of a collective operation on NICs.

    The NICs carry it on by themselves. The verb says which algorithm it takes, and why: each algorithm has
    its time by a closed form of LogGP with m and by simulation, and what it needs of a NIC. The parameters
    are fitted to messages of the profile that are simulated first. Times are modelled.
    """
    try:
        size = units.parse_bytes(size_text)
    except ValueError as error:
        raise Trouble("invalid", f"--size '{size_text}': {error}") from None
    if root >= ranks:
        raise Trouble("invalid", f"--root {root}: {ranks} ranks are 0 to {ranks - 1}")
    question = Question(operation, ranks, size, root)
    collective_rows.check(question, algorithm)
    machine = machines.machine(nic)
    model = collective_model.fit(machine)
    with progress(0, quiet, "simulating"):
        rows = collective_rows.rows(question, machine, model, fidelity)
    output.emit(rows, form, lambda: candidates_table(rows, question, nic))
    if form == "table":
        output.echo(
            "* chosen; ~ near: messages meet in NICs; in brackets what the FFLIB paper's Table I says."
        )
        echo_model(model)
    drawn_row = collective_rows.chosen_of(rows, algorithm)
    if plot is None and form != "table":
        return
    offloaded = (
        question.offloaded(drawn_row["algorithm"], drawn_row["segment_bytes"])
        if has_schedule(drawn_row)
        else None
    )
    name = f"{operation} by {drawn_row['algorithm']}, {ranks:,} ranks, {units.format_bytes(size)}"
    if form == "table" and offloaded is not None:
        text = collective_drawing.text(offloaded, ranks)
        if text is not None:
            output.echo(f"\n{name}:\n\n{text}")
    if plot is not None:
        if offloaded is None:
            raise Trouble("overflow", f"--plot {plot}: {name} has too many operations; take fewer ranks")
        collective_drawing.draw(offloaded, model, ranks, plot, f"{name}, {nic}")
        output.say(f"written: {plot}")


@click.command(epilog="Example: spinloom goal fit --nic sc17-discrete")
@nic_option
@form_options
def fit(nic: str, form: str) -> None:
    """Fit the parameters of LogGP with m to a NIC.

    Half of a ping-pong by triggered puts, simulated, beside o + L + s G + m, which is fitted to three sizes.
    With --json and --csv only these rows are printed. All times are modelled.
    """
    machine = machines.machine(nic)
    rows = collective_model.pingpongs(nic)
    output.emit(rows, form, lambda: fit_table(rows, nic))
    if form == "table":
        echo_model(collective_model.fit(machine))


@click.command(epilog="Example: spinloom goal scale bcast --ranks 1024,262144 --size 50 --nic sc17-discrete")
@click.argument("operation", shell_complete=completion.of(completion.collective_operations))
@click.option("--algorithm", metavar="NAME", help="Which one; otherwise the one that the model chooses.")
@ranks_option("How many: 1024,16384,262144.", metavar="LIST", required=True)
@click.option(
    "--size",
    "size_text",
    metavar="SIZE",
    required=True,
    help="The bytes of an operation, as of 'goal collective'.",
)
@nic_option
@quiet_option
@form_options
def scale(
    operation: str, algorithm: str | None, ranks: str, size_text: str, nic: str, quiet: bool, form: str
) -> None:
    """Simulate a collective operation of very many ranks.

    Its time stands beside that of the closed form. The schedule engine has a simulated NIC for each rank that
    matches messages and triggers operations, but no packets and no bytes. A broadcast takes about 9 KiB of
    memory a rank. Times are modelled.
    """
    try:
        size = units.parse_bytes(size_text)
    except ValueError as error:
        raise Trouble("invalid", f"--size '{size_text}': {error}") from None
    counts = options.numbers("--ranks", ranks, RANKS.min, RANKS.max)
    machine = machines.machine(nic)
    model = collective_model.fit(machine)
    rows = []
    with progress(len(counts), quiet, "simulating") as bar:
        for count in counts:
            rows.append(collective_rows.at_scale(Question(operation, count, size), algorithm, machine, model))
            bar()
    output.emit(rows, form, lambda: scale_table(rows, f"{operation}, {units.format_bytes(size)}; {nic}"))
    if form == "table":
        echo_model(model)


def scale_table(rows: list[dict[str, Any]], title: str) -> Any:
    columns = ["ranks", "operations", "algorithm", "closed form", "simulated", "difference"]
    return output.table(
        columns,
        [
            [
                f"{row['ranks']:,}",
                f"{row['operations']:,}",
                row["algorithm"],
                ("~" if row["is_near"] else "") + units.format_time(row["time_ps"]),
                units.format_time(row["simulated_ps"]),
                f"{row['difference_percent']:+.1f} %",
            ]
            for row in rows
        ],
        numeric=set(columns) - {"algorithm"},
        title=title,
    )


def fit_table(rows: list[dict[str, Any]], nic: str) -> Any:
    columns = ["message", "half a ping-pong", "o + L + s G + m", "residual"]
    return output.table(
        [*columns, "fitted"],
        [
            [
                units.format_bytes(row["size_bytes"]),
                units.format_time(row["time_ps"]),
                units.format_time(row["line_ps"]),
                f"{row['residual_percent']:+.2f} %",
                "fitted" if row["fitted"] else "",
            ]
            for row in rows
        ],
        numeric=set(columns),
        title=f"Ping-pong by triggered puts; {nic}",
    )


def has_schedule(row: dict[str, Any]) -> bool:
    """True if the row's schedule, what all ranks do, was made."""
    return row["entries"] is not None


def candidates_table(rows: list[dict[str, Any]], question: Question, nic: str) -> Any:
    def counted(row: dict[str, Any], name: str) -> str:
        ours, paper = row[name], row[f"table1_{name}"]
        return ("-" if ours is None else f"{ours:,}") + ("" if paper is None else f" ({paper:,})")

    columns = ["algorithm", "segment", "closed form", "simulated", "MD/ME", "triggered", "counters", "memory"]
    return output.table(
        ["", *columns],
        [
            [
                "*" if row["chosen"] else "",
                row["algorithm"],
                units.format_bytes(row["segment_bytes"]) if row["segment_bytes"] else "-",
                ("~" if row["is_near"] else "") + units.format_time(row["time_ps"]),
                "-" if row["simulated_ps"] is None else units.format_time(row["simulated_ps"]),
                *(counted(row, name) for name in ("entries", "triggered", "counters")),
                "-" if row["memory_bytes"] is None else units.format_bytes(row["memory_bytes"]),
            ]
            for row in rows
        ],
        numeric=set(columns) - {"algorithm"},
        title=f"{question.operation}, {question.ranks:,} ranks, {units.format_bytes(question.size)}; {nic}",
    )


def echo_model(model: dict[str, Any]) -> None:
    times = ", ".join(f"{name[0]} = {units.format_time(model[name])}" for name in TIMES)
    rates = ", ".join(f"{name} = {model[name][0] / model[name][1]:g} ps/B" for name in "GA")
    output.echo(f"{times}, {rates}; all times are modelled.")


TIMES = ("o_ps", "L_ps", "g_ps", "h_ps", "m_ps", "z_ps", "a_ps")
