"""`spinloom run`: an MPI program with the layer that moves its datatypes through shared memory."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import NoReturn

import click

from spinloom.accelerate import mpi_layer, mpi_programs, mpi_report, mpi_report_page, peer_prices
from spinloom.common import data, files, output
from spinloom.common.errors import EXIT_ENVIRONMENT, Trouble
from spinloom.verbs.programs import Starts

ON_TERMINAL = "-"
FORMS = (".json", ".html")
NOT_HANDED_ON = (
    "if this was an MPI program, its launcher may not hand on LD_PRELOAD, or its machine may not share "
    "TMPDIR with this one (docs/mpi.md, Under Slurm, PALS and in containers)"
)


class WithBareReport(Starts):
    """`--report` has a value only where one is given with '=': the next word is the command's. A file there
    is refused."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        at = 0
        while at < len(words) and words[at].startswith("-") and words[at] != "--":
            if words[at] == "--report":
                refuse_file(words[at + 1 : at + 3])
                words[at] = f"--report={ON_TERMINAL}"
            at += 2 if words[at] == "--path" else 1
        return super().parse_args(ctx, words)


def refuse_file(words: list[str]) -> None:
    """Refuses words behind a bare --report that begin with the report's file."""
    if not words or words[0].startswith("-"):
        return
    if words[0].endswith(FORMS) or words[1:] == ["--"]:
        raise Trouble("invalid", f"--report {words[0]}: write --report={words[0]}")


def check_report(report: str | None) -> None:
    if report in (None, ON_TERMINAL):
        return
    path = Path(report)
    if path.suffix not in FORMS:
        raise Trouble("invalid", f"--report={report}: the file's name must end with {' or '.join(FORMS)}")
    if not path.parent.is_dir():
        raise Trouble("environment", f"--report={report}: there is no folder {path.parent}")


def measured_prices() -> str:
    prices = peer_prices.load()
    return prices.as_setting() if prices.measured else ""


def tell(report: str, lines: list[dict], command: tuple[str, ...]) -> bool:
    """Says or writes what the ranks have reported. False: it could not be written."""
    document = {"command": list(command), **mpi_report.merge(lines)}
    for sentence in mpi_report.sentences(document):
        output.say(sentence)
    for sentence in [*mpi_report.collective_facts(document), *mpi_report.window_facts(document)]:
        output.say(sentence)
    if report == ON_TERMINAL:
        if document["types"]:
            table = output.table(
                mpi_report.COLUMNS, mpi_report.cells(document), numeric={"messages", "bytes"}
            )
            output.echo(output.as_text(table), err=True)
        if document.get("collectives", {}).get("calls"):
            table = output.table(
                mpi_report.COLLECTIVE_COLUMNS,
                mpi_report.collective_cells(document),
                numeric={"calls", "bytes"},
            )
            output.echo(output.as_text(table), err=True)
        for line in mpi_report.advice(document):
            output.echo(line, err=True)
        return True
    path = Path(report)
    try:
        if path.suffix == ".json":
            files.write(path, json.dumps(document, indent=1) + "\n")
        else:
            files.write(path, mpi_report_page.page(document, shlex.join(command), prices=peer_prices.load()))
    except Trouble as trouble:
        output.say(trouble.message)
        return False
    output.say(f"{path}: the report by type")
    return True


def prepared(command: tuple[str, ...], environment: dict[str, str]) -> list[str]:
    """The command with the runtimes that its programs need before our libraries. Says which, and which
    launcher does not fit; raises Trouble('environment') where that is certain."""
    wrong = mpi_programs.mpi_mismatch(command)
    if wrong is not None and wrong.is_certain:
        raise Trouble("environment", wrong.sentence)
    words, remarks = mpi_programs.with_runtimes(command, environment["LD_PRELOAD"])
    for sentence in [*([wrong.sentence] if wrong else []), *remarks]:
        output.say(sentence)
    return words


def become(command: list[str], environment: dict[str, str], report: str | None) -> NoReturn:
    """This process is a rank: the program takes its place, and keeps what the launcher has opened for it."""
    if report:
        raise Trouble("invalid", "--report: a rank knows itself only; 'spinloom run' must start the launcher")
    try:
        os.execvpe(command[0], command, environment)
    except OSError as trouble:
        output.say(f"{command[0]}: {trouble.strerror}")
        sys.exit(EXIT_ENVIRONMENT)


@click.command(
    "run",
    cls=WithBareReport,
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--path",
    type=click.Choice(["auto", "mapped", "joint", "staged", "cma", "pass"]),
    help="Mapped: one copy by the receiver. Joint: one by both ends. Staged: two through shared memory. "
    "Cma: one by system calls. Pass: the MPI's own way.",
)
@click.option(
    "--collectives",
    is_flag=True,
    help="Live NICs carry on non-blocking and persistent collective calls while the program computes. Sums "
    "of floating-point numbers may differ from the MPI's in the last bit.",
)
@click.option(
    "--rma",
    is_flag=True,
    help="Windows whose ranks cannot all map their memory stand on the live NIC's: all accesses, locks and "
    "epochs of the job.",
)
@click.option(
    "--report",
    metavar="[=FILE.json|FILE.html]",
    help="Say at the end which datatypes went which way and why (stderr), or write it to a file.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(command: tuple[str, ...], path: str | None, collectives: bool, rma: bool, report: str | None) -> None:
    """Run an MPI program with faster datatypes.

    The program and its MPI stay as they are: Open MPI 4 and 5, MPICH 4 and 5, Intel MPI, and MPIs with the
    standard binary interface of MPI 5. Messages of non-contiguous datatypes of 6 KiB and more between ranks
    of one machine go through shared memory, and with them collective calls and accesses to windows that move
    such data. docs/mpi.md lists what the MPI does as ever.

    A rank may be such a command as well: mpiexec -n 2 spinloom run -- ./app, for example in a container.

    With --collectives, each rank also gets a live NIC of Spinloom, if all ranks are on one machine. The NICs
    carry on non-blocking collective calls (MPI_Ibcast, MPI_Iallreduce, ...) and persistent ones
    (MPI_Allreduce_init, ...). Calls that a NIC cannot do stay with the MPI, such as reductions by an
    operation of the program's own.

    Windows whose ranks all map their memory are accessed there by their origins, and the target's program
    takes part in nothing. With --rma, each rank also gets such a NIC for the other windows. Windows that
    grow (MPI_Win_create_dynamic) stay with the MPI.

    Examples: spinloom run --report -- mpiexec -n 2 ./app;
    spinloom run --report=app.html -- mpiexec -n 2 ./app
    """
    check_report(report)
    libraries = data.mpi_preloads()
    wanted = {"SPINLOOM_MPI_COLLECTIVES": collectives, "SPINLOOM_MPI_RMA": rma}
    more = {
        name: "nic" if os.environ.get(name) == "nic" else "on"
        for name, is_wanted in wanted.items()
        if is_wanted
    }
    if shutil.which(command[0]) is None:
        raise Trouble("environment", f"there is no program '{command[0]}'")
    if mpi_layer.is_rank():
        environment = mpi_layer.environment(libraries, None, path, None, measured_prices(), more)
        become(prepared(command, environment), environment, report)
    job = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="spinloom-run-") as folder:
        file = Path(folder, "report") if report else None
        environment = mpi_layer.environment(libraries, job, path, file, measured_prices(), more)
        words = prepared(command, environment)
        try:
            code = subprocess.run(words, env=environment, check=False).returncode
        except OSError as trouble:
            output.say(f"{words[0]}: {trouble.strerror}")
            sys.exit(EXIT_ENVIRONMENT)
        lines = mpi_report.read(file) if file else []
        is_reported = tell(report, lines, command) if report else True
        if report and code == 0 and not lines:
            output.say(NOT_HANDED_ON)
    mpi_layer.forget_boards(job)
    if code == 0 and not is_reported:
        sys.exit(EXIT_ENVIRONMENT)
    sys.exit(code if code >= 0 else 128 - code)
