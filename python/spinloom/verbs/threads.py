"""`spinloom threads`: a C program that calls Portals 4, its ranks as threads of one real process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click

from spinloom.nics import jobs
from spinloom.verbs.options import UpTo, ranks_option
from spinloom.verbs.programs import Starts


@click.command(
    cls=Starts,
    context_settings={"allow_interspersed_args": False},
    epilog="Examples: spinloom threads -n 4 examples/portals/broadcast.c; "
    "spinloom threads -n 8 ./program argument",
)
@click.argument("program", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@ranks_option("Threads.", type=UpTo("rank_count_max"), default=2, show_default=True)
@click.pass_context
def threads(ctx: click.Context, program: Path, arguments: tuple[str, ...], ranks: int) -> None:
    """Run a Portals 4 program whose ranks are threads.

    All N ranks are threads of one process, in real time. PROGRAM is as for spinloom sim. For several
    processes, give a program that is built to a launcher: mpiexec -n 2 spinloom-threads -n 4 PROGRAM. The
    exit code is that of the first rank that fails. docs/threads.md says what ranks on threads share.
    """
    starter = jobs.installed_file("bin", "spinloom-threads")
    with jobs.built(program) as runnable:
        done = subprocess.run([starter, "-n", str(ranks), runnable.resolve(), *arguments])
    ctx.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
