"""`spinloom run --collectives`: non-blocking and persistent collective calls of MPI programs on the live NIC.

The programs compare each result with that of the blocking call, which stays with the MPI. No time is tested.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from layer_programs import COLLECTIVES, MPIS, Mpi, every_mpi, programs_of, run
from patience import until
from spinloom.common import data

HERE = Path(__file__).parent
USERS_OWN = "an operation that the NIC does not have"


@pytest.fixture(scope="module")
def offloaded():
    return programs_of(HERE / "offloaded_collectives.c")


@pytest.fixture(scope="module")
def threads():
    return programs_of(HERE / "offloaded_threads.c")


@pytest.fixture(scope="module")
def random_types():
    return programs_of(*COLLECTIVES)


def job(mpi: Mpi, ranks: int, program: Path, *words: object) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", str(ranks), str(program), *map(str, words)]


def with_collectives(words: list[str], report: Path, **settings: str) -> dict:
    """Runs the job; what its report says of collective calls."""
    ran = run(["spinloom", "run", "--collectives", f"--report={report}", "--", *words], settings)
    assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    return json.loads(report.read_text(encoding="utf-8"))["collectives"]


def calls_on_nic(told: dict) -> set[str]:
    return {row["call"].removesuffix("_c") for row in told["calls"] if row["on_nic"]}


@every_mpi
@pytest.mark.parametrize(("ranks", "rounds"), [(2, 60), (3, 40), (4, 25)])
def test_random_calls_give_what_the_blocking_ones_give(mpi, offloaded, ranks, rounds, tmp_path):
    told = with_collectives(job(mpi, ranks, offloaded(mpi), ranks, rounds), tmp_path / "report.json")
    assert told["on"] == ranks
    kinds = {
        "allreduce",
        "bcast",
        "barrier",
        "gather",
        "scatter",
        "allgather",
        "alltoall",
        "reduce",
        "scan",
        "exscan",
    }
    assert {f"MPI_I{kind}" for kind in kinds} <= calls_on_nic(told)
    stayed = {row["why"] for row in told["calls"] if not row["on_nic"]}
    assert USERS_OWN in stayed  # MPI_MINLOC and the program's own operation
    assert stayed <= {USERS_OWN, "its communicator is not on the NIC"}


@every_mpi
def test_persistent_calls_are_the_nics_where_the_mpi_has_them(mpi, offloaded, tmp_path):
    told = with_collectives(job(mpi, 2, offloaded(mpi), 7, 40), tmp_path / "report.json")
    made = {call for call in calls_on_nic(told) if call.endswith("_init")}
    has_them = (
        "MPI_Allreduce_init"
        in subprocess.run(
            ["nm", "-D", "--undefined-only", str(offloaded(mpi))], capture_output=True, text=True, check=True
        ).stdout
    )
    assert (len(made) > 5) == has_them, made


@every_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_random_types_and_calls_with_lists(mpi, random_types, ranks, tmp_path):
    words = job(mpi, ranks, random_types(mpi), ranks, 60, 0, 1)
    alone = run(words, {})
    assert alone.returncode == 0, alone.stderr[-2000:]
    report = tmp_path / "report.json"
    ran = run(["spinloom", "run", "--collectives", f"--report={report}", "--", *words], {})
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr[-3000:]
    assert ran.stdout.splitlines()[-1] == alone.stdout.splitlines()[-1]
    assert " wrong 0 " in ran.stdout
    called = calls_on_nic(json.loads(report.read_text(encoding="utf-8"))["collectives"])
    assert {"MPI_Ialltoallw", "MPI_Ialltoallv", "MPI_Igatherv", "MPI_Iallgatherv"} <= called


@every_mpi
def test_without_the_option_nothing_of_portals_is_loaded(mpi, offloaded, tmp_path):
    report = tmp_path / "report.json"
    ran = run(["spinloom", "run", f"--report={report}", "--", *job(mpi, 2, offloaded(mpi), 1, 2, "once")], {})
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "collectives" not in json.loads(report.read_text(encoding="utf-8"))


@every_mpi
def test_a_job_that_cannot_use_the_nic_says_why_and_goes_on(mpi, offloaded, tmp_path):
    """Rank 1 alone does not want it: nobody may have it."""
    program = [str(offloaded(mpi)), "3", "5", "once"]
    one = [*mpi.options, "-n", "1"]
    words = [mpi.launcher, *one, *program, ":", *one, "env", "SPINLOOM_MPI_COLLECTIVES=off", *program]
    report = tmp_path / "report.json"
    ran = run(["spinloom", "run", "--collectives", f"--report={report}", "--", *words], {})
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr[-3000:]
    assert "stay with the MPI" in ran.stderr
    assert json.loads(report.read_text(encoding="utf-8"))["collectives"]["on"] == 0


@pytest.fixture(scope="module")
def failing_nic(tmp_path_factory) -> Path:
    """A folder with the layer and a libportals.so.4, a function of which can be made to fail."""
    folder = tmp_path_factory.mktemp("failing_nic")
    real = data.mpi_layer().parent
    for library in real.glob("libspinloom*.so"):
        (folder / library.name).symlink_to(library)
    words = ["cc", "-shared", "-fPIC", "-O2", f"-I{real.parent / 'include'}", str(HERE / "failing_nic.c")]
    words += ["-o", str(folder / "libportals.so.4"), "-Wl,--no-as-needed", str(real / "libportals.so.4")]
    subprocess.run([*words, f"-Wl,-rpath,{real}", "-ldl"], check=True)
    return folder


@every_mpi
@pytest.mark.parametrize("function", ["PtlInit", "PtlNIInit", "spl_oe_open"])
def test_a_rank_that_cannot_start_the_nic_keeps_all_from_it(mpi, offloaded, failing_nic, function):
    program = [str(offloaded(mpi)), "3", "5", "once"]
    one = [*mpi.options, "-n", "1"]
    words = [mpi.launcher, *one, *program, ":", *one, "env", f"FAILING_NIC={function}", *program]
    preloads = [failing_nic / name for name in ("libspinloom_mpi.so", "libspinloom-heap.so")]
    settings = {
        "LD_PRELOAD": ":".join(str(library) for library in preloads if library.exists()),
        "SPINLOOM_MPI_COLLECTIVES": "on",
    }
    ran = run(words, settings)
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr[-3000:]
    assert ran.stderr.count("collective calls stay with the MPI: another rank has no NIC") == 1
    assert "rounds are right" in ran.stdout


@every_mpi
def test_threads_have_calls_of_their_own_communicators(mpi, threads, tmp_path):
    """They make communicators at the same time, too: those that share a rank must not get one number."""
    words = job(mpi, 3, threads(mpi), 4, 60)
    report = tmp_path / "report.json"
    ran = run(["spinloom", "run", "--collectives", f"--report={report}", "--", *words], {})
    if ran.returncode == 77:
        pytest.skip(f"{mpi.name} has no MPI_THREAD_MULTIPLE")
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr[-3000:]
    told = json.loads(report.read_text(encoding="utf-8"))["collectives"]
    assert told["on"] == 3
    assert {"MPI_Iallreduce", "MPI_Ibcast", "MPI_Iallgather"} <= calls_on_nic(told)
    assert all(row["on_nic"] for row in told["calls"])


def can_unshare(*options: str) -> bool:
    words = ["unshare", *options, "sh", "-c", OWN_MEMORY]
    return shutil.which("unshare") is not None and run(words, {}).returncode == 0


OWN_MEMORY = "mount -t tmpfs none /dev/shm"


@every_mpi
def test_namespaces_that_share_memory_are_one_machine(mpi, offloaded, tmp_path):
    if not can_unshare("-mui"):
        pytest.skip("no new namespaces for this user")
    program = [str(offloaded(mpi)), "3", "5", "once"]
    one = [*mpi.options, "-n", "1"]
    told = with_collectives(
        [mpi.launcher, *one, *program, ":", *one, "unshare", "-ui", *program], tmp_path / "report.json"
    )
    assert told["on"] == 2


def test_a_rank_with_shared_memory_of_its_own_keeps_all_from_the_nic(offloaded):
    """MPICH itself does not start there."""
    mpi = MPIS[0]
    if not can_unshare("-mui"):
        pytest.skip("no new namespaces for this user")
    program = [str(offloaded(mpi)), "3", "5", "once"]
    one = [*mpi.options, "-n", "1"]
    alone = ["unshare", "-mui", "sh", "-c", f'{OWN_MEMORY} && exec "$0" "$@"', *program]
    ran = run(["spinloom", "run", "--collectives", "--", mpi.launcher, *one, *program, ":", *one, *alone], {})
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr[-3000:]
    assert ran.stderr.count("collective calls stay with the MPI: not all ranks are on one machine") == 1
    assert "rounds are right" in ran.stdout


@every_mpi
def test_a_killed_rank_leaves_no_hang_and_no_memory(mpi, offloaded):
    left = {path.name for path in Path("/dev/shm").iterdir()}
    words = job(mpi, 2, offloaded(mpi), 1, 1_000_000, "die")
    ran = run(["spinloom", "run", "--collectives", "--", *words], {})
    assert ran.returncode != 0
    assert until(lambda: {path.name for path in Path("/dev/shm").glob("*spinloom*")} <= left)
