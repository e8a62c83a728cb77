"""How processes become ranks: beside MPI in one process, in odd places, and where not all of them start."""

from __future__ import annotations

import functools
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import launchers
from pmi_job import Job
from test_live import HERE, LIBRARY, LIMIT_S, ROOT, answers_of, build, nothing_runs, pytestmark

__all__ = ["build", "pytestmark"]  # pytest finds them here

MPICH = "mpich"
OPENMPI = "openmpi"


@functools.cache
def mpi_compilers() -> dict[str, tuple[str, str]]:
    """By name, a compiler of an MPI library and the launchers that start its programs."""
    found = {}
    for name, command, launcher in (
        ("MPICH of Python", f"{sys.prefix}/bin/mpicc", MPICH),
        ("MPICH of the system", "mpicc.mpich", MPICH),
        ("Open MPI of the system", "mpicc.openmpi", OPENMPI),
    ):
        if shutil.which(command) and launcher in launchers.available():
            found[name] = (command, launcher)
    return found


@pytest.fixture(scope="session")
def beside_mpi(tmp_path_factory):
    """beside_mpi("MPICH of Python") is the program with that library, and its launcher."""
    folder = tmp_path_factory.mktemp("mpi")

    @functools.cache
    def compiled(name: str) -> tuple[Path, str]:
        if name not in mpi_compilers():
            pytest.skip(f"there is no compiler and launcher of {name}")
        command, launcher = mpi_compilers()[name]
        out = folder / name.replace(" ", "-")
        linked = [f"-L{LIBRARY}", "-lportals", f"-Wl,-rpath,{LIBRARY}"]
        words = [command, "-O1", f"-I{ROOT}/include", HERE / "live_beside_mpi.c", "-o", out, *linked]
        subprocess.run(words, check=True)
        return out, launcher

    return compiled


@pytest.mark.parametrize("split", [(), (LIBRARY and LIBRARY.parent / "bin/spinloom-threads", "-n", "2")])
def test_a_rank_that_cannot_start_tells_the_launcher_when_it_ends(build, split):
    """A launcher that sees a process end before its connection takes it for one that has ended well."""
    command = [*map(str, split), str(build("live_idle.c"))]
    with Job(command, 2, env={"SPINLOOM_MEET": "start", "SPINLOOM_START_S": "1"}) as started:
        started.ranks[1].process.kill()
        codes = started.wait(LIMIT_S)
        assert codes[0] == 2, started.said()
        assert "not all of the 2 ranks have called PtlInit in 1 s" in started.said()
        assert started.aborts == ["2"]


def job(launcher: str, *command: object, ranks: int = 2, **more) -> subprocess.CompletedProcess[str]:
    words = [*launchers.available()[launcher], "-n", ranks, *command]
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": LIMIT_S}
    return subprocess.run([*map(str, words)], **{**options, **more})


# Rules: P4F-2.8.
def test_a_job_has_no_more_ranks_than_node_ids(build):
    """Rank 65,535 would be node PTL_NID_ANY."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        variables = {"PMI_FD": str(theirs.fileno()), "PMI_RANK": "7", "PMI_SIZE": "65536"}
        done = subprocess.run(
            [build("live_user.c")],
            env=os.environ | variables,
            pass_fds=[theirs.fileno()],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    assert done.returncode == 2, done.stdout + done.stderr  # PtlInit has failed
    assert re.search(r"65536 ranks.*live_rank_count_max", done.stderr), done.stderr


# M MPI_Init, P PtlInit, s messages, x puts, m MPI_Finalize, p PtlFini.
ORDERS = ["MPsxpm", "MPsxmp", "PMsxpm", "PMsxmp", "MPsmxp", "PMxpsm", "PxpMsm"]
LIBRARIES = ["MPICH of Python", "MPICH of the system", "Open MPI of the system"]


@pytest.mark.skipif("SPINLOOM_TEST_CFLAGS" in os.environ, reason="MPI libraries are not made for sanitizers")
@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("order", ORDERS)
def test_mpi_and_portals_in_one_process(beside_mpi, name, order):
    program, launcher = beside_mpi(name)
    done = job(launcher, program, order)
    assert done.returncode == 0, done.stdout + done.stderr
    assert answers_of(done.stdout) == {0: 6, 1: 6}, done.stdout + done.stderr
    assert done.stderr == ""


@pytest.mark.skipif("SPINLOOM_TEST_CFLAGS" in os.environ, reason="MPI libraries are not made for sanitizers")
@pytest.mark.parametrize("name", LIBRARIES)
def test_portals_after_mpi_work_or_say_why_not(beside_mpi, name):
    program, launcher = beside_mpi(name)
    done = job(launcher, program, "MsmPxp")
    if done.returncode == 0:
        assert answers_of(done.stdout) == {0: 4, 1: 4}
    else:
        assert "MPI_Finalize" in done.stderr


@functools.cache
def slurm_ways() -> tuple[str, ...]:
    """What srun --mpi= takes, where there is a Slurm that runs jobs."""
    if shutil.which("srun") is None:
        return ()
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": LIMIT_S}
    if subprocess.run(["srun", "--immediate=20", "-n", "2", "true"], **options).returncode != 0:
        return ()
    listed = subprocess.run(["srun", "--mpi=list"], **options)
    return tuple(way for way in ("pmi2", "pmix", "none") if way in (listed.stdout + listed.stderr).split())


@pytest.mark.parametrize("way", ["pmi2", "pmix", "none"])
def test_slurm_starts_ranks(build, way):
    if way not in slurm_ways():
        pytest.skip(f"there is no Slurm that runs jobs with --mpi={way}")
    command = ["srun", "-n", "2", f"--mpi={way}", build("live_traffic.c"), "65536"]
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S
    )
    if way == "none":
        assert done.returncode != 0
        assert "start it with srun --mpi=pmix or --mpi=pmi2" in done.stderr
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        assert set(answers_of(done.stdout)) == {0, 1}


def test_who_never_calls_ptlinit_does_not_keep_others_for_ever(build):
    for launcher in launchers.available():
        script = 'if [ "${PMI_RANK:-$PMIX_RANK}" = 1 ]; then sleep 600; else exec "$0" 300; fi'
        done = job(
            launcher,
            "sh",
            "-c",
            script,
            build("live_flood.c"),
            env={**os.environ, "SPINLOOM_MEET": "start", "SPINLOOM_START_S": "2"},
        )
        assert done.returncode != 0
        assert "not all of the 2 ranks have called PtlInit in 2 s" in done.stderr


def test_who_cannot_start_is_told_by_all(build):
    """Descriptors of one rank are scarce; the others do not wait for it."""
    script = 'if [ "$PMI_RANK" = 1 ]; then ulimit -n 4; fi; exec "$0" 300'
    command = ["sh", "-c", script, str(build("live_flood.c"))]
    with Job(command, 3, env={"SPINLOOM_MEET": "start"}) as started:
        assert started.wait(LIMIT_S) == [2, 2, 2], started.said()
        why = "/proc/sys/kernel/random/boot_id: Too many open files; raise the limit of open files: ulimit -n"
        assert f"PtlInit: {why}" in started.ranks[1].text
        for other in (0, 2):
            assert f"PtlInit: rank 1 cannot start: {why}" in started.ranks[other].text
        assert "no /proc" not in started.said()


def test_processes_that_nothing_connects_are_not_ranks_of_their_own(build):
    settings = {
        key: value for key, value in os.environ.items() if not key.startswith(("PMI", "SLURM", "OMPI"))
    }
    for more, says in (
        ({"SLURM_STEP_NUM_TASKS": "2"}, "srun --mpi=pmix"),
        ({"PMI_PORT": "a:1"}, "-pmi-port"),
    ):
        command = [build("live_flood.c"), "300"]
        done = subprocess.run(
            command, env={**settings, **more}, capture_output=True, text=True, timeout=LIMIT_S
        )
        assert done.returncode != 0
        assert says in done.stderr


def test_a_lost_pmix_server_is_told(build):
    settings = {**os.environ, "PMIX_RANK": "0", "PMIX_NAMESPACE": "gone"}
    if OPENMPI not in launchers.available():
        pytest.skip("there is no Open MPI, whose PMIx library this takes")
    done = subprocess.run(
        [build("live_flood.c"), "300"], env=settings, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode != 0
    assert "env -u PMIX_RANK" in done.stderr or "SPINLOOM_PMIX" in done.stderr, done.stderr


def test_sixteen_ranks_on_what_processors_there_are(build):
    for launcher in launchers.available():
        done = job(launcher, build("live_traffic.c"), 4096, ranks=16)
        assert done.returncode == 0, done.stdout + done.stderr
        assert set(answers_of(done.stdout)) == set(range(16))


ODD_PLACES = {
    "no environment": ("env", "-i", "PATH=/usr/bin:/bin"),
    "no folder for temporary files": ("env", "TMPDIR=/nonexistent"),
    "a folder that takes no files": ("sh", "-c", 'cd /sys && exec "$@"', "sh"),
}
ODD_RANKS = {
    "21 open files": ("sh", "-c", 'ulimit -n 21; exec "$@"', "sh"),
    "no locked memory": ("sh", "-c", 'ulimit -l 0; exec "$@"', "sh"),
    "stdin closed": ("sh", "-c", 'exec "$@" <&-', "sh"),
}


@pytest.mark.parametrize("launcher", [MPICH, OPENMPI])
@pytest.mark.parametrize("place", [*ODD_PLACES, *ODD_RANKS])
def test_odd_places(build, launcher, place):
    if launcher not in launchers.available():
        pytest.skip(f"there is no launcher of {launcher}")
    around = [*ODD_PLACES.get(place, ()), *launchers.available()[launcher]]
    alone = subprocess.run(
        [*map(str, around), "-n", "2", "true"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
    )
    if alone.returncode != 0:
        pytest.skip(f"{launcher} itself does not start there: {' '.join(alone.stderr.split())[:200]}")
    command = [*around, "-n", 2, *ODD_RANKS.get(place, ()), build("live_traffic.c"), 65536]
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(answers_of(done.stdout)) == {0, 1}


@pytest.mark.parametrize("options", ["size=4k", "ro"])
def test_shared_memory_needs_no_file_system(build, options):
    """With a /dev/shm that is full or takes no files."""
    script = f'mount -t tmpfs -o {options} none /dev/shm && {{ yes 2>&1 > /dev/shm/full; exec "$@"; }}'
    command = ["unshare", "-m", "sh", "-c", script, "sh"]
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, timeout=LIMIT_S)
    if tried.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {tried.stdout}{tried.stderr}")
    with Job([*command, str(build("live_traffic.c")), "300000"], 2) as started:
        assert started.wait(LIMIT_S) == [0, 0], started.said()


def test_without_proc_ranks_meet_by_udp(build):
    script = 'umount -l /proc && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", script, "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, "true"], capture_output=True).returncode != 0
    ):
        pytest.skip("/proc cannot be unmounted here")
    with Job([*command, str(build("live_traffic.c")), "65536"], 2) as started:
        assert started.wait(LIMIT_S) == [0, 0], started.said()
        assert "there is no /proc" in started.said()


@pytest.mark.parametrize(("limit", "says"), [("--fsize=4096", "ulimit -f"), ("--nofile=4", "ulimit -n")])
def test_a_limit_that_is_too_low_is_named(build, limit, says):
    if shutil.which("prlimit") is None:
        pytest.skip("there is no prlimit")
    with Job(["prlimit", limit, str(build("live_flood.c")), "300"], 2) as started:
        assert started.wait(LIMIT_S) == [2, 2], started.said()
        assert f"{says}\n" in started.said()


def test_streams_that_are_closed_are_nobody_s(build, tmp_path):
    """What a rank prints then does not end up in its peers' channels."""
    program = build("live_closed.c")
    with Job(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", str(program), str(tmp_path)], 3) as started:
        assert started.wait(LIMIT_S) == [0, 0, 0]
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "2"]
    assert nothing_runs(program)
