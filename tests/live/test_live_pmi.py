"""How ranks end, as their launcher sees it, also where the program speaks PMI-1 itself."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys

import pytest

import launchers
from test_live import LIMIT_S, answers_of, build, nothing_runs, pytestmark, run
from test_live_start import slurm_ways

__all__ = ["build", "pytestmark"]  # pytest finds them here


@functools.cache
def pmi1_launchers() -> dict[str, list[str]]:
    """Those that are here, by name."""
    found = {
        "hydra of Python": [f"{sys.prefix}/bin/mpiexec.hydra"],
        "hydra of the system": ["/usr/bin/mpiexec.hydra"],
        "gforker": [f"{sys.prefix}/bin/mpiexec.gforker"],
    }
    found = {name: command for name, command in found.items() if shutil.which(command[0])}
    if "pmi2" in slurm_ways():
        found["Slurm"] = ["srun", "--mpi=pmi2"]
    return found


def job(launcher: str, *command: object) -> subprocess.CompletedProcess[str]:
    if launcher not in pmi1_launchers():
        pytest.skip(f"there is no launcher {launcher}")
    words = [*pmi1_launchers()[launcher], "-n", 2, *command]
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": LIMIT_S}
    return subprocess.run([*map(str, words)], **options)


LAUNCHERS = ["hydra of Python", "hydra of the system", "gforker", "Slurm"]
# As live_pmi.c says; the second rank's, where they are others.
AROUND, AFTER, BETWEEN, BEFORE = "IGPxnpGF", "PxnpIGF", "PIGxGnpF", "IGFT"
WITHOUT_PTLFINI = [("Pxn", "Pxun"), ("PxnNn", "Pxun"), ("Pxfn", "Pxun"), ("Px", "Pxunp")]


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("steps", [AROUND, AFTER, BETWEEN, BEFORE])
def test_a_program_that_speaks_pmi1_itself(build, launcher, steps):
    if launcher == "Slurm" and steps in (AFTER, BETWEEN):
        pytest.skip("Slurm answers the first init of a process only")
    done = job(launcher, build("live_pmi.c"), steps)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(answers_of(done.stdout)) == {0, 1}, done.stdout + done.stderr
    if steps == BEFORE and launcher != "gforker":
        assert "PtlInit: PMI-1: the launcher has hung up" in done.stderr


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("steps", WITHOUT_PTLFINI)
def test_a_rank_that_exits_without_ptlfini_has_ended_well(build, launcher, steps):
    done = job(launcher, build("live_pmi.c"), *steps)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(answers_of(done.stdout)) == {0, 1}, done.stdout + done.stderr


@pytest.mark.parametrize("steps", ["Pxn", "PxnNn", "Pxfn", "Px"])
def test_mpirun_calls_no_such_exit_improper(build, steps):
    if "openmpi" not in launchers.available():
        pytest.skip("there is no launcher of Open MPI")
    assert set(answers_of(run("openmpi", 2, build("live_pmi.c"), steps))) == {0, 1}


@pytest.mark.parametrize("launcher", ["hydra of Python", "hydra of the system", "gforker"])
@pytest.mark.parametrize("transport", ["shm", "udp"])
def test_a_rank_that_fails_ends_the_job(build, launcher, transport, monkeypatch):
    monkeypatch.setenv("SPINLOOM_TRANSPORT", transport)
    program = build("live_pmi.c")
    done = job(launcher, program, "Pxw", "Px1")
    assert done.returncode != 0, done.stdout + done.stderr
    assert nothing_runs(program)


def test_who_has_called_ptlfini_may_end_by_exit_without_handlers(build):
    for launcher in launchers.available():
        assert set(answers_of(run(launcher, 3, build("live_leave.c"), "_exit"))) == {0, 1}
