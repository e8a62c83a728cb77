"""`spinloom trace`: what the ranks of a recorded MPI program did, or with --live those of a live job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from spinloom.common.errors import Trouble
from spinloom.traces import not_recorded, recorded
from spinloom.verbs import trace_import, trace_live, trace_recorded
from spinloom.verbs.options import form_options, page_option, timeline_option


def view_option(view: str, about: str) -> Callable:
    return click.option(f"--{view}", "view", flag_value=view, default=None, help=about)


@click.command(
    epilog="Examples: spinloom record -o melt -- mpiexec -n 4 ./app; spinloom trace melt; "
    "mpiexec -n 2 -genv SPINLOOM_TRACE run ./program; spinloom trace --live run --timeline run.pftrace"
)
@click.argument("name", metavar="DIR|NAME")
@view_option("calls", "Print the calls of the program, by time (the default).")
@view_option("matrix", "Print how much each rank has sent to each other.")
@view_option("types", "Print the datatypes of its buffers, the most bytes first.")
@view_option("check", "Print mistakes in its messages and what they waste; a mistake exits with 1.")
@click.option("--live", is_flag=True, help="NAME is a live job that runs with SPINLOOM_TRACE=NAME, or did.")
@click.option("--states", is_flag=True, help="With --live: print what each rank does or waits for.")
@timeline_option("Write a timeline of the calls, or of the messages of a live job, for ui.perfetto.dev.")
@page_option("Write a page of the ranks over time: calls, messages, waits and the critical path.")
@click.option(
    "--otf2",
    "archive",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write its calls and messages as an OTF2 archive.",
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
    view: str | None,
    live: bool,
    states: bool,
    timeline_path: Path | None,
    page_path: Path | None,
    archive: Path | None,
    target: Path | None,
    force: bool,
    form: str,
) -> int:
    """Print what the ranks of a program did.

    DIR is what 'spinloom record' has written: the calls of an MPI program, by the time that they took, and
    the share of all ranks' run time. Bytes are those of the buffers that the program named.

    With --live, NAME is a job of Portals: what its ranks sent each other, from what SPINLOOM_TRACE=NAME wrote
    to NAME.RANK. Times are host time, from the sender's call until the receiver had the message's last
    packet, or had copied the bytes that it announced out of the sender's memory; recording a packet takes
    part of a microsecond itself. Where a rank has not left the job, the verb says what it does: the call that
    it waits in, for which counter or queue, and what that has; or that its process has ended. Messages that
    did not arrive whole, and such ends, make the verb exit with 1.

    With --import, NAME is a folder of text traces of LogGOPSim's PMPI wrapper (liballprof), a file for each
    rank, or the file of one rank; or the anchor file (.otf2) of an OTF2 archive, as Score-P writes them. What
    is made of them is shown, and is what 'spinloom record' writes.
    """
    if live:
        asked = {
            f"--{view}": view,
            "--page": page_path,
            "--otf2": archive,
            "--import": target,
            "--force": force,
        }
        for option, value in asked.items():
            if value:
                raise Trouble("invalid", f"{option} is for recorded programs; leave out --live")
        return trace_live.show(name, states, timeline_path, form)
    if states:
        raise Trouble("invalid", "--states is for live jobs: add --live")
    if target is not None:
        trace_import.make(Path(name), target, force)
        name = str(target)
    elif force:
        raise Trouble("invalid", "--force is for --import")
    if not recorded.is_recorded(Path(name)):
        not_recorded.refuse(name)
    return trace_recorded.show(Path(name), view or "calls", timeline_path, page_path, archive, form)
