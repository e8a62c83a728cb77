"""The launchers of this machine that start ranks of the live NIC, and the ends of their jobs."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patience import seconds, until

BIN = Path(sys.executable).parent  # the environment that requirements.txt fills
TIME_LIMIT_S = seconds(600)  # the limit of one run; the machine may be busy with other things
OPEN_MPI = ("--oversubscribe", "--allow-run-as-root")
CANDIDATES = [
    # name, what comes before "-n RANKS PROGRAM", what its --version says
    ("mpich", (f"{BIN}/mpiexec.hydra",), "HYDRA"),
    ("mpich", ("mpiexec.hydra",), "HYDRA"),
    ("openmpi", ("mpirun.openmpi", *OPEN_MPI), "OpenRTE"),
    ("openmpi", ("mpirun", *OPEN_MPI), "Open MPI"),
]


def works(command: tuple[str, ...], mark: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    said = subprocess.run([command[0], "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return mark in said.stdout


@functools.cache
def available() -> dict[str, tuple[str, ...]]:
    """Those that are here: of MPICH beside Python (it talks PMI-1), of the system's Open MPI (PMIx)."""
    found: dict[str, tuple[str, ...]] = {}
    for name, command, mark in CANDIDATES:
        if name not in found and works(command, mark):
            found[name] = command
    return found


def run(launcher: str, ranks: int, *command: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """The job's exit code, output and complaints; `settings` are environment variables."""
    words = [*available()[launcher], "-n", str(ranks), *map(str, command)]
    return ended(words, **settings)


def ended(words: list[str], **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )


def finished(*command: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """The same of a command that must succeed."""
    done = ended([*map(str, command)], **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def output(launcher: str, ranks: int, program: Path, *arguments: object, **settings: str) -> str:
    """What the ranks print; they all succeed, and nothing is left of them. Skips without the launcher."""
    if launcher not in available():
        pytest.skip(f"there is no launcher of {launcher}")
    done = finished(*available()[launcher], "-n", ranks, program, *arguments, **settings)
    assert nothing_runs(program)
    return done.stdout


def processes_of(program: Path) -> list[int]:
    """Those that run the program still."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "exe") == str(program):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def nothing_runs(program: Path) -> bool:
    """A launcher may end a moment before the kernel has taken its ranks away."""
    return until(lambda: not processes_of(program))
