"""`spinloom record`: an MPI program whose calls are written down."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import NoReturn

import click

from spinloom.accelerate import mpi_layer
from spinloom.common import data, files, output
from spinloom.common.errors import EXIT_ENVIRONMENT, Trouble
from spinloom.traces import recorded
from spinloom.traces.pages import recorded_run
from spinloom.verbs.options import out_option, page_option
from spinloom.verbs.programs import Starts
from spinloom.verbs.run import NOT_HANDED_ON, measured_prices, prepared

FORMAT = 1
OURS = ("rank-*.trace", "rank-*.open", "rank-*.trouble", "manifest.json")


def prepare(directory: Path, force: bool) -> None:
    """Makes a directory without another trace; one with files only by `force`, which keeps others' files."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()) and not force:
            raise Trouble(
                "invalid",
                f"{directory} is not empty: choose another directory with -o, or replace the trace in it "
                "with --force",
            )
        for pattern in OURS:
            for file in directory.glob(pattern):
                file.unlink()
        if not os.access(directory, os.W_OK | os.X_OK):
            raise Trouble("environment", f"{directory}: Permission denied")
    except OSError as trouble:
        raise Trouble("environment", f"{directory}: {trouble.strerror}") from None


def environment(directory: Path, job: str | None, accelerate: bool, cpu_time: bool) -> dict[str, str]:
    """Without --accelerate the layer only looks on: nothing of what the MPI does changes."""
    libraries = data.mpi_preloads() if accelerate else str(data.mpi_layer())
    more = {"SPINLOOM_MPI_RECORD": str(directory)}
    if not accelerate:
        more["SPINLOOM_MPI"] = "off"
    if cpu_time:
        more["SPINLOOM_MPI_RECORD_CLOCK"] = "cpu"
    prices = measured_prices() if accelerate else ""
    return mpi_layer.environment(libraries, job, None, None, prices, more)


def become(
    command: tuple[str, ...], directory: Path, force: bool, accelerate: bool, cpu_time: bool
) -> NoReturn:
    """This process is a rank: the program takes its place."""
    rank = mpi_layer.rank()
    for file in directory.glob(f"rank-{rank}.*"):
        if not force:
            raise Trouble("invalid", f"{file} is there already: choose another directory with -o, or --force")
        file.unlink()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        env = environment(directory, None, accelerate, cpu_time)
        words = prepared(command, env)
        os.execvpe(words[0], words, env)
    except OSError as trouble:
        output.say(f"{command[0]}: {trouble.strerror}")
        sys.exit(EXIT_ENVIRONMENT)


def tell(directory: Path, command: tuple[str, ...], began: datetime.datetime, code: int) -> None:
    """Says what was recorded, and writes the manifest if anything was."""
    troubles = {file.read_text(errors="replace").strip() for file in directory.glob("rank-*.trouble")}
    for sentence in sorted(troubles):
        output.say(sentence)
    if not recorded.is_recorded(directory):
        if code == 0 and not troubles:
            output.say(f"no rank was recorded: {NOT_HANDED_ON}")
        return
    traces = recorded.read(directory)
    for sentence in recorded.warnings(traces):
        output.say(sentence)
    manifest = {
        "format": FORMAT,
        "command": list(command),
        "began": began.isoformat(timespec="seconds"),
        "exit_code": code,
        "ranks": traces[0].ranks,
        "mpi": traces[0].mpi,
        "hosts": sorted({trace.host for trace in traces}),
    }
    files.write(directory / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    events = sum(trace.events for trace in traces)
    size = sum(file.stat().st_size for file in directory.glob("rank-*.trace"))
    output.say(
        f"{directory}: {events} calls of {len(traces)} ranks in {size} bytes; spinloom trace {directory}"
    )


@click.command(
    "record",
    cls=Starts,
    context_settings={"allow_interspersed_args": False},
    epilog="Example: spinloom record -o melt -- mpiexec -n 4 ./app; spinloom trace melt",
)
@out_option(
    "DIR",
    "The directory of the trace, a file for each rank.",
    folder=True,
    default=Path("trace"),
    show_default=True,
)
@click.option(
    "--accelerate", is_flag=True, help="Accelerate it as 'spinloom run' does, and record what it calls."
)
@click.option(
    "--cpu-time",
    is_flag=True,
    help="Times are CPU time of each rank: for predictions where ranks share cores.",
)
@page_option("Also write a page of the ranks over time, as 'spinloom trace DIR --page' does.")
@click.option("--force", is_flag=True, help="Replace a trace that lies in the directory.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def record(
    command: tuple[str, ...],
    out: Path,
    accelerate: bool,
    cpu_time: bool,
    page_path: Path | None,
    force: bool,
) -> None:
    """Record what an MPI program calls, for trace and predict.

    Each call is written down: whom it sends what, from where, and when. The program and its MPI stay as they
    are, and its results too. Each rank writes a file of its own, which can be read at any time, even if the
    rank was killed. Its calls are looked at by 'spinloom trace'.

    A rank may be such a command as well: mpiexec -n 2 spinloom record -o /shared/trace -- ./app.
    """
    if shutil.which(command[0]) is None:
        raise Trouble("environment", f"there is no program '{command[0]}'")
    directory = out.resolve()
    data.mpi_layer()
    if mpi_layer.is_rank():
        if page_path is not None:
            raise Trouble(
                "invalid",
                "--page: a rank knows no other; 'spinloom trace DIR --page FILE' writes it afterwards",
            )
        become(command, directory, force, accelerate, cpu_time)
    job = uuid.uuid4().hex
    env = environment(directory, job, accelerate, cpu_time)
    words = prepared(command, env)
    prepare(directory, force)
    began = datetime.datetime.now(datetime.UTC)
    try:
        code = subprocess.run(words, env=env, check=False).returncode
    except OSError as trouble:
        output.say(f"{words[0]}: {trouble.strerror}")
        sys.exit(EXIT_ENVIRONMENT)
    mpi_layer.forget_boards(job)
    code = code if code >= 0 else 128 - code
    tell(directory, command, began, code)
    if page_path is not None and recorded.is_recorded(directory):
        output.say(recorded_run.save(page_path, directory, recorded.read(directory)))
    sys.exit(code)
