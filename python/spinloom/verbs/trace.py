"""`spinloom trace`: what the ranks of a recorded MPI program did, or those of a live job."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click

from spinloom.common import files, output
from spinloom.common.errors import EXIT_NEGATIVE, EXIT_OK, Trouble
from spinloom.traces import foreign, live_trace, recorded, text_traces
from spinloom.traces.live_trace import Message, State
from spinloom.verbs import recorded_trace, text_trace
from spinloom.verbs.options import form_options


def view_option(view: str, about: str) -> Callable:
    return click.option(f"--{view}", "view", flag_value=view, default=None, help=about)


@click.command(
    epilog="Examples: spinloom record -o melt -- mpiexec -n 4 ./app; spinloom trace melt; "
    "mpiexec -n 2 -genv SPINLOOM_TRACE run ./program; spinloom trace run --out run.pftrace"
)
@click.argument("name", metavar="DIR|NAME")
@click.option("--out", type=click.Path(dir_okay=False), help="A timeline for ui.perfetto.dev, too.")
@view_option("calls", "The calls of a recorded program, by time (the default).")
@view_option("matrix", "Print how much each rank has sent to each other.")
@view_option("types", "The datatypes of its buffers, the most bytes first.")
@view_option("check", "What is wrong with its messages, or wasted; wrong ones exit with 1.")
@view_option("ranks", "What each rank of a live job does or waits for.")
@click.option(
    "--timeline", type=click.Path(dir_okay=False, path_type=Path), help="Its calls for ui.perfetto.dev."
)
@click.option(
    "--otf2",
    "archive",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Its calls and messages as an OTF2 archive.",
)
@click.option(
    "--import",
    "target",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Make a recorded program of the text traces in NAME, or of the archive NAME.otf2.",
)
@click.option("--force", is_flag=True, help="Let --import replace a trace that lies there.")
@form_options
def trace(
    name: str,
    out: str | None,
    view: str | None,
    timeline: Path | None,
    archive: Path | None,
    target: Path | None,
    force: bool,
    form: str,
) -> int:
    """Print what the ranks of a program did.

    DIR is what 'spinloom record' has written: the calls of an MPI program, by the time that they took, and
    the share of all ranks' run time. Bytes are those of the buffers that the program named.

    NAME is a live job of Portals: what its ranks sent each other, from what SPINLOOM_TRACE=NAME wrote to
    NAME.RANK. Times are host time, from the sender's call until the receiver had the message's last packet,
    or had copied the bytes that it announced out of the sender's memory; recording a packet takes part of a
    microsecond itself. Where a rank has not left the job, the verb says what it does: the call that it waits
    in, for which counter or queue, and what that has; or that its process has ended. Messages that did not
    arrive whole, and such ends, make the verb exit with 1.

    With --import, NAME is a folder of text traces of LogGOPSim's PMPI wrapper (liballprof), a file for each
    rank, or the file of one rank; or the anchor file (.otf2) of an OTF2 archive, as Score-P writes them. What
    is made of them is shown, and is what 'spinloom record' writes.
    """
    if target is not None:
        text_trace.make(Path(name), target, force)
        name = str(target)
    elif force:
        raise Trouble("invalid", "--force is for --import")
    if recorded.is_recorded(Path(name)):
        if out is not None:
            raise Trouble("invalid", f"--out is for live jobs; {name} is a recorded program: --timeline")
        if view == "ranks":
            raise Trouble("invalid", f"--ranks is for live jobs; {name} is a recorded program: --calls")
        return recorded_trace.show(Path(name), view or "calls", timeline, archive, form)
    if text_traces.is_folder_of_them(Path(name)):
        raise Trouble(
            "invalid", f"{name} holds text traces: 'spinloom trace {name} --import DIR' imports them"
        )
    foreign.refuse(Path(name))
    if (view and view != "ranks") or timeline or archive:
        asked = f"--{view}" if view else "--timeline" if timeline else "--otf2"
        raise Trouble("invalid", f"{asked}: {name} is no directory that 'spinloom record' has written")
    messages = live_trace.read(name)
    states = live_trace.states(name)
    if out is not None:
        write(Path(out), live_trace.timeline(messages, name))
    if view == "ranks":
        if not states:
            raise Trouble("invalid", f"--ranks: there is no {name}.0.state; older libraries do not write it")
        output.emit([state_row(state) for state in states], form, lambda: table_of_states(states))
        return EXIT_NEGATIVE if any(state.state == "dead" for state in states) else EXIT_OK
    pairs: dict[tuple[int, int, str], list[Message]] = {}
    for message in messages:
        pairs.setdefault((message.source, message.target, message.operation), []).append(message)
    rows = [row_of(key, pair_messages) for key, pair_messages in sorted(pairs.items())]
    output.emit(rows, form, lambda: table_of(rows))
    for state in states:
        if state.state != "left":
            output.say(sentence_of(state))
    wrong = any(row["missing"] for row in rows) or any(state.state == "dead" for state in states)
    return EXIT_NEGATIVE if wrong else EXIT_OK


def sentence_of(state: State) -> str:
    """Returns what a rank does, for how long."""
    if state.state == "dead":
        return (
            f"rank {state.rank} is dead: its process has ended without PtlFini; its last state: {state.says}"
        )
    return f"rank {state.rank} {state.says}{duration_text(state)}"


def duration_text(state: State) -> str:
    if state.since_ns is None or state.state not in ("starts", "runs"):
        return ""
    return f", for {max(0, time.time_ns() - state.since_ns) / 1e9:.1f} s"


def state_row(state: State) -> dict[str, Any]:
    return {"rank": state.rank, "state": state.state, "since_ns": state.since_ns, "says": state.says}


def table_of_states(states: list[State]):
    cells = [[str(state.rank), state.state, f"{state.says}{duration_text(state)}"] for state in states]
    return output.table(["rank", "state", "about"], cells, numeric={"rank"})


def row_of(key: tuple[int, int, str], messages: list[Message]) -> dict[str, Any]:
    times = sorted(message.took_ns / 1e3 for message in messages if message.took_ns is not None)
    return {
        "from": key[0],
        "to": key[1],
        "operation": key[2],
        "messages": len(messages),
        "bytes": sum(message.bytes for message in messages),
        "median_us": median(times) if times else None,
        "max_us": times[-1] if times else None,
        "missing": sum(not message.complete for message in messages),
    }


def table_of(rows: list[dict[str, Any]]):
    def us(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    cells = [
        [
            str(row["from"]),
            str(row["to"]),
            row["operation"],
            str(row["messages"]),
            str(row["bytes"]),
            us(row["median_us"]),
            us(row["max_us"]),
            str(row["missing"] or ""),
        ]
        for row in rows
    ]
    numeric = {"messages", "bytes", "median us", "max us", "missing"}
    return output.table(
        ["from", "to", "operation", "messages", "bytes", "median us", "max us", "missing"],
        cells,
        numeric=numeric,
    )


def write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as trouble:
        raise Trouble("environment", f"{path}: {trouble.strerror}") from trouble
    files.write(path, content)
