"""`spinloom goal check`, `make` and `convert`: schedules as files."""

from __future__ import annotations

from pathlib import Path

import click

from spinloom.common import core, output, units
from spinloom.common.errors import Trouble
from spinloom.predict import goal_files, goal_model, goal_network
from spinloom.verbs.goal_run import FILE, read
from spinloom.verbs.options import form_options, out_option, ranks_option


@click.command(epilog="Example: spinloom goal check app.goal")
@FILE
@form_options
def check(file: Path, form: str) -> None:
    """Count what a schedule holds, and find its mistakes.

    Mistakes are cycles, peers that are no ranks, and messages that nobody receives.
    """
    schedule = read(file)
    schedule.check()
    counted = schedule.count()
    output.emit(
        [counted],
        form,
        lambda: output.table(
            ["", "count"],
            [[name.replace("_", " "), f"{value:,}"] for name, value in counted.items()],
            numeric={"count"},
        ),
    )


@click.command(epilog="Example: spinloom goal make dissemination --ranks 1024 --size 8 -o app.goal")
@click.argument("pattern", required=False)
@ranks_option("How many.", type=click.IntRange(1, 2**31 - 1))
@click.option(
    "--size",
    metavar="SIZE",
    default="8",
    show_default=True,
    help="Bytes of each message, such as 64KiB, or what the list of patterns says (no PATTERN prints it).",
)
@click.option(
    "--radix",
    metavar="N",
    type=click.IntRange(2, 2**31 - 1),
    help="The radix of a dissemination; 2 otherwise.",
)
@click.option(
    "--segment", metavar="SIZE", help="The segment of algorithms that have segments; 8 KiB otherwise."
)
@click.option(
    "--grid", metavar="NxN", help="The grid of a halo; about as many ranks along each dimension otherwise."
)
@click.option(
    "--repeat",
    metavar="N",
    type=click.IntRange(1, 2**30),
    help="So many times: a rank begins again when all of its operations have ended.",
)
@click.option(
    "--compute",
    metavar="TIMES",
    help="With --repeat: behind each time each rank computes, from so long to so long by chance: "
    "10us..20us; also ,seed=N. Ranks then share nothing.",
)
@out_option("FILE", goal_files.FORMS)
def make(
    pattern: str | None,
    ranks: int | None,
    size: str,
    radix: int | None,
    segment: str | None,
    grid: str | None,
    repeat: int | None,
    compute: str | None,
    out: Path | None,
) -> None:
    """Write the schedule of a collective operation. Without PATTERN: list the patterns."""
    if pattern is None:
        patterns = core.load().goal_patterns()
        width = max(len(name) for name in patterns)
        for name, about in patterns.items():
            output.echo(f"{name:{width}}  {about}")
        return
    if ranks is None:
        raise Trouble("invalid", "--ranks says how many ranks take part")
    try:
        schedule = core.load().goal_pattern(
            pattern,
            ranks,
            goal_model.read("--size", size, units.parse_bytes, 2**64 - 1),
            radix=radix,
            segment_bytes=None
            if segment is None
            else goal_model.read("--segment", segment, units.parse_bytes, 2**64 - 1),
            grid=[] if grid is None else goal_network.sizes(grid, f"--grid {grid}: write it as 8x8 or 4x4x4"),
        )
        if compute is not None:
            if out is None or repeat is None:
                raise Trouble("invalid", "--compute needs --repeat, and FILE.spl to write to (-o)")
            goal_files.write_apart(schedule, repeat, goal_model.parse_between(compute), out)
            output.say(f"written: {out}")
            return
        if repeat is not None:
            schedule = schedule.repeated(repeat)
        if out is None:
            output.echo(schedule.text(), nl=False)
            return
    except core.load().SpinloomError as error:
        raise Trouble(error.code, error.message) from None
    goal_files.write(schedule, out)
    output.say(f"written: {out}")


@click.command(epilog="Example: spinloom goal convert app.goal app.spl")
@FILE
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite OUT.")
def convert(file: Path, out: Path, force: bool) -> None:
    """Write a schedule in another form.

    OUT.goal is for text, OUT.bin for LogGOPSim's binary form, OUT.spl for our own. What GOAL cannot say is
    named, or the form is refused.
    """
    goal_files.check_name(out)
    if out.exists() and not force:
        raise Trouble("invalid", f"{out} is there already; --force overwrites")
    goal_files.write(read(file), out)
    output.say(f"written: {out}")
