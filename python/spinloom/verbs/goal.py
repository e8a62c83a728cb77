"""`spinloom goal`: schedules of many ranks, checked, counted, made, and run by the light engine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from spinloom import core, files, output, units
from spinloom.errors import Trouble
from spinloom.verbs.options import form_options

PARAMETERS = {
    "L": (2500, "latency"),
    "o": (1500, "of a CPU for each message"),
    "g": (1000, "between two messages of a NIC"),
    "G": (6, "of a NIC for each byte"),
    "O": (0, "of a CPU for each byte"),
    "S": (65535, "bytes above which a message waits for its receive"),
}
U64 = click.IntRange(0, 2**64 - 1)


class Goal(click.Group):
    """`spinloom goal FILE` is `spinloom goal run FILE`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


@click.group(
    cls=Goal,
    epilog="Examples: spinloom goal app.goal -L 2500 -o 1500; spinloom goal make dissemination --ranks 1024",
)
def goal() -> None:
    """Run a schedule of many ranks: who sends, receives and computes what after what.

    FILE is GOAL text, as LogGOPSim reads it, or the binary form that its converter makes. `spinloom goal
    FILE` is `spinloom goal run FILE`.
    """


def read(path: Path) -> Any:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Trouble("environment", f"{path}: {error.strerror}") from None
    try:
        return core.load().read_goal(content)
    except core.load().SpinloomError as error:
        raise Trouble(error.code, f"{path}: {error.message}") from None


def loggops(command: Any) -> Any:
    for name, (default, about) in reversed(PARAMETERS.items()):
        command = click.option(
            f"-{name}", name, type=U64, default=default, show_default=True, help=f"{about}."
        )(command)
    return command


FILE = click.argument("file", type=click.Path(path_type=Path))


@goal.command(epilog="Example: spinloom goal run app.goal -L 2500 -o 1500 -g 1000 -G 6 -S 65535 --csv")
@FILE
@click.option(
    "--dialect",
    type=click.Choice(["loggopsim"]),
    default="loggopsim",
    show_default=True,
    help="The rules: those of LogGOPSim of 2023, to the unit.",
)
@loggops
@form_options
def run(file: Path, dialect: str, form: str, **parameters: int) -> None:
    """The time of each rank. All times are modelled, in the unit of the parameters: nanoseconds by custom."""
    schedule = read(file)
    schedule.check()
    begun = time.perf_counter()
    outcome = schedule.run_loggopsim(**parameters)
    seconds = time.perf_counter() - begun
    times = outcome["host_times"]
    rows = [{"rank": rank, "time": value} for rank, value in enumerate(times)]
    output.emit(rows, form, lambda: summary(schedule, outcome, dialect))
    if form == "table":
        rate = outcome["events"] / max(seconds, 1e-9)
        output.say(
            f"{outcome['events']:,} events in {seconds:.3f} s of host time, {rate / 1e6:.1f} million a second"
        )


def summary(schedule: Any, outcome: dict[str, Any], dialect: str) -> Any:
    counted, times = schedule.count(), outcome["host_times"]
    last = max(range(len(times)), key=times.__getitem__)
    first = min(range(len(times)), key=times.__getitem__)
    lines = [
        ("rules", dialect),
        ("ranks", f"{counted['ranks']:,}"),
        ("operations", f"{counted['operations']:,}"),
        ("messages", f"{counted['sends']:,} of {units.format_bytes(counted['sent_bytes'])} in all"),
        ("the last rank ends", f"{outcome['makespan']:,} (rank {last})"),
        ("the first rank ends", f"{times[first]:,} (rank {first})"),
    ]
    return output.table(["", "modelled"], [list(line) for line in lines], numeric=set())


@goal.command(epilog="Example: spinloom goal check app.goal")
@FILE
@form_options
def check(file: Path, form: str) -> None:
    """What a schedule holds; an error for cycles, peers that are no ranks, messages without takers."""
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


@goal.command(epilog="Example: spinloom goal make dissemination --ranks 1024 --bytes 8 -o app.goal")
@click.argument("pattern", required=False)
@click.option("--ranks", type=click.IntRange(1, 2**31 - 1), help="How many.")
@click.option("--bytes", "size", type=U64, default=8, show_default=True, help="Of each message.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="FILE.goal for text, FILE.bin for the binary form."
)
def make(pattern: str | None, ranks: int | None, size: int, out: Path | None) -> None:
    """Write the schedule of a collective operation. Without PATTERN: list the patterns."""
    if pattern is None:
        for name in core.load().goal_patterns():
            click.echo(name)
        return
    if ranks is None:
        raise Trouble("invalid", "--ranks says how many ranks take part")
    try:
        schedule = core.load().goal_pattern(pattern, ranks, size)
        if out is None:
            click.echo(schedule.text(), nl=False)
            return
        if out.suffix not in (".goal", ".bin"):
            raise Trouble("invalid", f"{out}: end the name in .goal for text or in .bin for the binary form")
        files.write(out, schedule.text() if out.suffix == ".goal" else schedule.binary())
    except core.load().SpinloomError as error:
        raise Trouble(error.code, error.message) from None
    output.say(f"written: {out}")
