"""`spinloom run`: an MPI program with the layer that moves its datatypes through shared memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import click

from spinloom import data, output
from spinloom.errors import EXIT_ENVIRONMENT, Trouble

SHARED_MEMORY = Path("/dev/shm")


def environment_for(libraries: str, job: str, path: str | None, report: Path | None) -> dict[str, str]:
    """The environment that a launcher hands to its ranks; other preloaded libraries stay behind ours."""
    others = os.environ.get("LD_PRELOAD", "")
    settings = {"LD_PRELOAD": f"{libraries}:{others}" if others else libraries, "SPINLOOM_MPI_JOB": job}
    if path:
        settings["SPINLOOM_MPI_PATH"] = path
    if report:
        settings["SPINLOOM_MPI_REPORT"] = str(report)
    return {**os.environ, **settings}


def forget_boards(job: str) -> None:
    """Removes what ranks that were killed have left in shared memory."""
    for board in SHARED_MEMORY.glob(f"spinloom-mpi-{os.getuid()}-{short(job)}-*"):
        board.unlink(missing_ok=True)


def short(name: str) -> str:
    """The name as src/mpi/world.cpp writes it into that of a board (FNV-1a, 64 bits)."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def summary(lines: list[dict]) -> str:
    """What the ranks have reported, for people."""
    on = [line for line in lines if line["on"]]
    if not on:
        reasons = sorted({line["why_off"] for line in lines}) or [
            "no rank has called MPI_Finalize with the layer"
        ]
        return f"the layer was off: {'; '.join(reasons)}"
    sent, size = sum(line["sent"] for line in on), sum(line["sent_bytes"] for line in on)
    refused = sum(line["refused"] for line in on)
    ranks = f"{len(on)} of {len(lines)} ranks"
    text = f"{sent:,} messages with {size:,} B went through shared memory between {ranks}"
    return f"{text}; {refused:,} found no room there" if refused else text


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--path",
    type=click.Choice(["auto", "mapped", "staged", "pass"]),
    help="Mapped: one copy by the receiver. Staged: two through shared memory. Pass: the MPI's own way.",
)
@click.option("--report", is_flag=True, help="Say at the end what went through shared memory (stderr).")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(command: tuple[str, ...], path: str | None, report: bool) -> None:
    """Run an MPI program with faster datatypes.

    The program and its MPI stay as they are: Open MPI 4 and 5, MPICH 3.4 to 5, Intel MPI, and MPIs with the
    standard interface of MPI 5. Messages of non-contiguous datatypes of 16 KiB and more between ranks of one
    machine are packed and unpacked by Spinloom in shared memory; all others go as ever.

    Example: spinloom run --report -- mpiexec -n 2 ./app
    """
    libraries = data.mpi_preloads()
    if shutil.which(command[0]) is None:
        raise Trouble("environment", f"there is no program '{command[0]}'")
    job = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="spinloom-run-") as folder:
        file = Path(folder, "report") if report else None
        environment = environment_for(libraries, job, path, file)
        try:
            code = subprocess.run(command, env=environment, check=False).returncode
        except OSError as trouble:
            output.say(f"{command[0]}: {trouble.strerror}")
            sys.exit(EXIT_ENVIRONMENT)
        if file:
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            output.say(summary([json.loads(line) for line in lines]))
    forget_boards(job)
    sys.exit(code if code >= 0 else 128 - code)
