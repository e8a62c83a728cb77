"""Ways to run a program of the Portals calls: what starts its ranks, and by what they reach each other.

Contract: ways() has one Way for each file ways/NAME.toml; adding a way means adding a file. Its keys are
`about`, `starter` (a function of STARTERS), `environment` (variables of the ranks), `command` (what
comes before `-n RANKS PROGRAM`, for the starter "command"; {BIN} is the folder of this Python), `ranks` if
the way always has that many, and for programs that cannot run there `without = {"PROGRAM" = "why"}`, or
`only = [PROGRAMS]`. run() gives what the ranks print; all of them have succeeded, and no process is left. It
skips where something is missing here.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import slurm_cluster
from c_programs import CONFORMANCE
from launchers import BIN, finished, nothing_runs, output
from live_programs import LIBRARY, handler_folder, over
from machines import Machines, machines, why_not
from patience import seconds

FOLDER = Path(__file__).resolve().parent / "ways"
HYDRA = BIN / "mpiexec.hydra"
LIMIT_S = seconds(600)  # for giving up: ranks that wait in the kernel take long on a busy machine


@dataclass(frozen=True)
class Way:
    name: str
    about: str
    starter: str
    environment: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    ranks: int | None = None
    without: dict[str, str] = field(default_factory=dict)
    only: list[str] = field(default_factory=list)

    @property
    def programs(self) -> list[str]:
        fitting = [name for name, (ranks, _) in CONFORMANCE.items() if self.ranks in (None, ranks)]
        return [name for name in self.only or fitting if name not in self.without]


@functools.cache
def ways() -> list[Way]:
    return [
        Way(path.stem, **tomllib.loads(path.read_text(encoding="utf-8")))
        for path in sorted(FOLDER.glob("*.toml"))
    ]


class Places:
    """Imitated machines, made when a way first asks for them, and kept until close()."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = contextlib.ExitStack()

    def close(self) -> None:
        self.stack.close()

    def made(self, name: str, count: int) -> Machines:
        if why := why_not():
            pytest.skip(why)
        return self.stack.enter_context(machines(self.folder / name, count))

    @functools.cached_property
    def pair(self) -> Machines:
        """Machines a and b on one network."""
        return self.made("pair", 2)

    @functools.cached_property
    def chain(self) -> Machines:
        """Machines a and b on network 1, b and c on network 2."""
        there = self.made("chain", 3)
        for network in (1, 2):
            there.cable(network - 1, network)
            there.cable(network, network)
        return there

    @functools.cached_property
    def slurm(self) -> dict[str, str]:
        """The environment in which srun starts ranks on both machines of the pair."""
        if missing := slurm_cluster.missing():
            pytest.skip(f"Slurm is not here: {', '.join(missing)}")
        folder = self.folder / "slurm"
        folder.mkdir()
        return self.stack.enter_context(slurm_cluster.cluster_of(self.pair, folder))


Starter = Callable[[Places, int, Path, dict[str, str]], str]


def by(launcher: str) -> Starter:
    def start(places: Places, ranks: int, program: Path, environment: dict[str, str]) -> str:
        return output(launcher, ranks, program, **environment)

    return start


def commanded(command: list[str]) -> Starter:
    """By a launcher that its way names."""

    def start(places: Places, ranks: int, program: Path, environment: dict[str, str]) -> str:
        words = [word.format(BIN=BIN) for word in command]
        if shutil.which(words[0]) is None:
            pytest.skip(f"{words[0]} is not here")
        settings = {name: value.format(BIN=BIN) for name, value in environment.items()}
        library = settings.get("SPINLOOM_PMIX")
        if library is not None and not Path(library).exists():
            pytest.skip(f"{library} is not here")
        ran = finished(*words, "-n", ranks, program, **settings)
        assert nothing_runs(program)
        return ran.stdout

    return start


def threads(places: Places, ranks: int, program: Path, environment: dict[str, str]) -> str:
    starter = LIBRARY.parent / "bin/spinloom-threads" if LIBRARY else Path()
    if not starter.is_file():
        pytest.skip("there is no build/*/bin/spinloom-threads")
    return finished(starter, "-n", ranks, program, **environment).stdout


def fabric(places: Places, ranks: int, program: Path, environment: dict[str, str]) -> str:
    return output("mpich", ranks, program, **over(environment["SPINLOOM_FABRIC"], **environment))


def succeeded(there: Machines, program: Path, ran: subprocess.CompletedProcess[str]) -> str:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert there.nothing_runs(program)
    return ran.stdout


def on_machines(there: Machines, hosts: str, ranks: int, program: Path, environment: dict[str, str]) -> str:
    """By the hydra of MPICH 5, a rank on each host in turn."""
    if not HYDRA.exists():
        pytest.skip(f"{HYDRA} is not here")
    agent = ["-launcher", "ssh", "-launcher-exec", str(there.remote_shell), "-hosts", hosts]
    words = [HYDRA, *agent, "-n", str(ranks), program]
    return succeeded(there, program, there.run(*words, limit_s=LIMIT_S, **environment))


def between_machines(places: Places, ranks: int, program: Path, environment: dict[str, str]) -> str:
    return on_machines(places.pair, "a:1,b:1", ranks, program, environment)


def over_a_gateway(places: Places, ranks: int, program: Path, environment: dict[str, str]) -> str:
    """Ranks on a and c; a gateway of its own on b, the only machine that both networks reach."""
    there = places.chain
    gateway = LIBRARY.parent / "bin/spinloom-gateway" if LIBRARY else Path()
    agent = ["-launcher", "ssh", "-launcher-exec", str(there.remote_shell), "-hosts", "a:1,b:1,c:1"]
    words = [HYDRA, *agent, "-n", "1", program, ":", "-n", "1", gateway, ":", "-n", "1", program]
    networks = {"SPINLOOM_UDP_ADDRESS": "10.77.1.0/24,10.77.2.0/24"}
    return succeeded(there, program, there.run(*words, limit_s=LIMIT_S, **networks, **environment))


def by_slurm(interface: str) -> Starter:
    def start(places: Places, ranks: int, program: Path, environment: dict[str, str]) -> str:
        settings = {"SLURM_CONF": places.slurm["SLURM_CONF"], **environment}
        listed = places.pair.run("srun", "--mpi=list", limit_s=LIMIT_S, **settings)
        if interface not in (listed.stdout + listed.stderr).split():
            pytest.skip(f"this Slurm has no --mpi={interface}")
        words = [
            "srun",
            f"--mpi={interface}",
            "--kill-on-bad-exit",
            f"--nodes={ranks}",
            "--ntasks-per-node=1",
        ]
        return succeeded(places.pair, program, places.pair.run(*words, program, limit_s=LIMIT_S, **settings))

    return start


COMMAND = "command"  # the way names it
# The starter of the simulator is a fixture of the test (it takes the source, not a program).
STARTERS: dict[str, Starter] = {
    "MPICH 5": by("mpich"),
    "Open MPI 4": by("openmpi"),
    "threads": threads,
    "fabric": fabric,
    "machines": between_machines,
    "gateway": over_a_gateway,
    "srun, PMI-2": by_slurm("pmi2"),
    "srun, PMIx": by_slurm("pmix"),
}


def run(way: Way, places: Places, ranks: int, program: Path) -> str:
    if "handlers" in program.name or "errors" in program.name:
        handler_folder()
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    start = commanded(way.command) if way.starter == COMMAND else STARTERS[way.starter]
    return start(places, ranks, program, way.environment)
