"""The random messages of tests/mpi/layer under the MPIs of this machine, with and without the layer.

A round that was wrong is run again by itself; where that is wrong, too, its command is the one that is shown.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from patience import seconds
from spinloom.common import data

SOURCES = Path(__file__).parent / "mpi/layer"
COLLECTIVES = [*sorted((Path(__file__).parent / "mpi/collectives").glob("*.c")), SOURCES / "device.c"]
BIN = Path(sys.executable).parent
TIME_LIMIT_S = seconds(420)
numbers = itertools.count()  # numbers of compiled programs


@dataclass(frozen=True)
class Mpi:
    name: str
    compiler: str
    launcher: str
    options: tuple[str, ...] = ()

    @property
    def present(self) -> bool:
        return shutil.which(self.compiler) is not None and shutil.which(self.launcher) is not None


def beside(name: str) -> str:
    return str(BIN / name)


OPENMPI = ("--oversubscribe", "--allow-run-as-root")
MPIS = [
    Mpi("Debian's Open MPI", "mpicc.openmpi", "mpiexec.openmpi", OPENMPI),
    Mpi("Debian's MPICH", "mpicc.mpich", "mpiexec.mpich"),
    Mpi("MPICH 5", beside("mpicc"), beside("mpiexec.hydra")),
    Mpi("the standard interface of MPI 5", beside("mpicc_abi"), beside("mpiexec.hydra")),
]
MOST_AT_A_TIME = 2


def chosen(present: list[Mpi], commit: str, told: str | None) -> list[Mpi]:
    """The MPIs that a run of the tests takes: two, by the commit, or all where `told` is "all"."""
    if told == "all" or len(present) <= MOST_AT_A_TIME:
        return present
    pairs = list(itertools.combinations(present, MOST_AT_A_TIME))
    return list(pairs[int(commit or "0", 16) % len(pairs)])


@functools.cache
def left_out() -> list[Mpi]:
    commit = subprocess.run(
        ["git", "-C", str(SOURCES), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    present = [mpi for mpi in MPIS if mpi.present]
    taken = chosen(present, commit.stdout.strip(), os.environ.get("SPINLOOM_TEST_MPIS"))
    return [mpi for mpi in present if mpi not in taken]


NOT_NOW = "another pair of MPIs has its turn; SPINLOOM_TEST_MPIS=all takes all"
every_mpi = pytest.mark.parametrize(
    "mpi",
    [
        pytest.param(mpi, marks=pytest.mark.skipif(mpi in left_out(), reason=NOT_NOW), id=mpi.name)
        for mpi in MPIS
    ],
)


def program_for(
    mpi: Mpi, *sources: Path, options: tuple[str, ...] = (), libraries: tuple[str, ...] = ()
) -> Path:
    """The program of these sources, compiled once in a run of the tests.

    Fails where a program of ours does not compile. Skips where the MPI is missing, compiles nothing here or
    not with these libraries, or where the program itself says what it misses:
    #error "not this MPI: it has no MPI_Pack_c".
    """
    if not mpi.present:
        pytest.skip(f"{mpi.name} is not here")
    program, complaint = compiled(mpi, sources, options, libraries)
    if complaint == "":
        return program
    if lack := re.search(r'#error "?not this MPI: ([^"\n]*)', complaint):
        pytest.skip(f"{mpi.name}: {lack[1]}")
    if why := refusal_of_any(mpi, sources[0].suffix, libraries):
        with_them = f" with {' '.join(libraries)}" if libraries else ""
        pytest.skip(f"{mpi.name} compiles nothing{with_them} here: {why[-300:]}")
    words = " ".join([*options, *map(str, sources), *libraries])
    pytest.fail(f"{mpi.name} does not compile {words}\n{complaint[-4000:]}")


def compile_for(
    mpi: Mpi, sources: list[Path], path: Path, *options: str, libraries: tuple[str, ...] = ()
) -> None:
    """Puts program_for() of these at a path."""
    program = program_for(mpi, *sources, options=options, libraries=libraries)
    path.unlink(missing_ok=True)
    shutil.copy2(program, path)


@functools.cache
def folder_of_programs() -> TemporaryDirectory:
    return TemporaryDirectory(prefix="spinloom-programs-")


@functools.cache
def compiled(
    mpi: Mpi, sources: tuple[Path, ...], options: tuple[str, ...], libraries: tuple[str, ...]
) -> tuple[Path, str]:
    """Returns the path of the program, and the compiler's complaints as refusal() does."""
    folder = Path(folder_of_programs().name) / str(next(numbers))
    folder.mkdir()
    program = folder / sources[0].stem
    words = [*options, *map(str, sources), "-o", str(program), *libraries]
    return program, refusal(mpi, words)


def refusal(mpi: Mpi, words: list[str]) -> str:
    """Returns the compiler's complaints; empty where it succeeds."""
    rpath = Path(mpi.compiler).parent.parent / "lib"
    command = [mpi.compiler, "-O2", "-pthread", *words, f"-Wl,-rpath,{rpath}"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if outcome.returncode == 0 else outcome.stderr or f"exit code {outcome.returncode}"


LEAST = {
    ".c": "#include <mpi.h>\nint main(int count, char** words) { return MPI_Init(&count, &words); }\n",
    ".f90": "program least\n  use mpi\n  integer :: code\n  call MPI_Init(code)\nend program\n",
}


def refusal_of_any(mpi: Mpi, suffix: str, libraries: tuple[str, ...]) -> str:
    """The same of the least program of an MPI with these libraries."""
    with TemporaryDirectory() as folder:
        source = Path(folder) / f"least{suffix}"
        source.write_text(LEAST[suffix], encoding="utf-8")
        return refusal(mpi, [str(source), "-o", f"{folder}/least", *libraries])


def programs_of(*sources: Path) -> Callable[[Mpi], Path]:
    """program(mpi) is the program for an MPI; without sources it is that of the random messages."""
    return lambda mpi: program_for(mpi, *(sources or sorted(SOURCES.glob("*.c"))))


def preloads(report: Path | None) -> dict[str, str]:
    return {"LD_PRELOAD": data.mpi_preloads(), "SPINLOOM_MPI_REPORT": str(report)} if report else {}


def machines_of(mpi: Mpi, program: list[str], machines: str, settings: dict[str, str]) -> list[str]:
    """The job of one rank for each letter: ranks of one letter find each other, as those of one machine do.

    Ranks of "-" have no layer, and those of "o" have it switched off.
    """
    words = [mpi.launcher]
    for machine in machines:
        told = {"SPINLOOM_MPI_JOB": machine, "SPINLOOM_MPI": "off" if machine == "o" else "on"}
        local = str(machines.count(machine))  # launchers would say this
        told |= {"MPI_LOCALNRANKS": local, "OMPI_COMM_WORLD_LOCAL_SIZE": local} | settings
        layer = ["env", *(f"{name}={value}" for name, value in told.items())] if machine != "-" else []
        words += [*mpi.options, "-n", "1", *layer, *program, ":"]
    return words[:-1]


def run(words: list[str], settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )


def messages(
    mpi: Mpi,
    program: Path,
    ranks: int,
    seed: int,
    rounds: int,
    report: Path | None,
    options: tuple[str, ...] = (),
    **more: str,
) -> int:
    """Runs the program, with the layer where there is a report; how many messages there were.

    Fails with the command that does it again.
    """
    settings = more | preloads(report)
    words = [mpi.launcher, *mpi.options, "-n", str(ranks), str(program), str(seed), str(rounds), *options]
    ran = run(words, settings)
    told = re.search(r"messages (\d+) wrong 0", ran.stdout)
    if ran.returncode == 0 and told:
        return int(told[1])
    named = re.search(r"seed \d+ round (\d+) rank", ran.stderr)
    if named:
        alone = [*words, "--first", named[1], "--last", named[1]]
        if run(alone, settings).returncode != 0:
            words = alone
    again = " ".join([*(f"{name}={value}" for name, value in settings.items()), *words])
    pytest.fail(f"{again}\n{ran.stdout[-2000:]}{ran.stderr[:4000]}")
