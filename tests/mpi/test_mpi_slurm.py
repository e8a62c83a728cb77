"""`spinloom run` and Slurm, on a cluster of this machine alone, as docs/mpi.md says it."""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import slurm_cluster
from layer_programs import BIN, MPIS, TIME_LIMIT_S, compile_for, preloads
from test_mpi_examples import EXAMPLES
from test_mpi_rules import SOURCE, left_behind

SPINLOOM = str(BIN / "spinloom")
GRID = ["64", "5", "1", "1", "2"]
# What srun gives each MPI that is tried.
INTERFACES = {"Debian's Open MPI": "pmix", "Debian's MPICH": "pmi2", "MPICH 5": "pmi2"}
every_pair = pytest.mark.parametrize("mpi", MPIS[:3], ids=lambda mpi: mpi.name)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    if names := slurm_cluster.missing():
        pytest.skip(f"Slurm is not here: {', '.join(names)}")
    with slurm_cluster.cluster(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture
def halo(mpi, tmp_path) -> list[str]:
    compile_for(mpi, [EXAMPLES / "halo.c"], tmp_path / "halo", "-std=c11")
    return [str(tmp_path / "halo"), *GRID]


def step(
    mpi, words: list[str], environment: dict[str, str], out: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What a step does whose ranks come out of MPI_Init; `out` is where a batch job writes what it says.

    MPICH 5 under pmi2 fails in MPI_Init, without us as well: once in fifty steps on an idle machine, in most
    where other programs want its cores. It has tries, and what a failed one left in /dev/shm goes.
    """
    if mpi.name != "MPICH 5":
        return attempt(words, environment, TIME_LIMIT_S)
    failures = []
    for _ in range(10):
        before = left_behind()
        try:
            ran = attempt(words, environment, TIME_LIMIT_S / 10)
            said = ran.stderr + (out.read_text(encoding="utf-8") if out and out.exists() else "")
            if ran.returncode == 0 or "Init" not in said:
                return ran
            failures.append("an error in MPI_Init")
        except subprocess.TimeoutExpired as late:
            said = (late.stderr or b"").decode(errors="replace")
            failures.append("an error in MPI_Init" if "Init" in said else "a hang")
        for path in left_behind() - before:
            path.unlink(missing_ok=True)
    assert "an error in MPI_Init" in failures, failures
    pytest.skip(f"{mpi.name} itself did not come out of MPI_Init: {', '.join(failures)}")


def attempt(
    words: list[str], environment: dict[str, str], limit_s: float
) -> subprocess.CompletedProcess[str]:
    """A step that takes too long is ended in Slurm as well: it would keep the cores of the next ones."""
    try:
        return subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        subprocess.run(["scancel", f"--user={getpass.getuser()}"], env=environment, check=True)
        raise


def carried(mpi, slurm: dict[str, str], words: list[str]) -> int:
    """How many messages the layer carried, as --report says it."""
    ran = step(mpi, words, slurm)
    return messages_of(ran.returncode, ran.stdout + ran.stderr)


def messages_of(code: int, said: str) -> int:
    assert (code, " 0 wrong, " in said) == (0, True), said
    found = re.search(r"(\d+) messages with [\d,]+ B went through shared memory between 2 of 2 ranks", said)
    assert found, said
    return int(found[1])


def srun(mpi) -> list[str]:
    """Where one rank fails in MPI_Init the others would wait for it."""
    return ["srun", "--kill-on-bad-exit", f"--mpi={INTERFACES[mpi.name]}", "--ntasks=2"]


@every_pair
def test_srun_starts_the_ranks(mpi, slurm, halo):
    assert carried(mpi, slurm, [SPINLOOM, "run", "--report", "--", *srun(mpi), *halo]) >= 8


@every_pair
def test_spinloom_run_may_be_the_rank(mpi, slurm, halo, tmp_path):
    report = tmp_path / "report"
    words = [*srun(mpi), SPINLOOM, "run", "--", *halo]
    ran = step(mpi, words, slurm | {"SPINLOOM_MPI_REPORT": str(report)})
    assert (ran.returncode, " 0 wrong, " in ran.stdout) == (0, True), ran.stderr
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert sum(line["sent"] for line in lines) >= 8


@pytest.mark.parametrize("export", ["ALL", "NONE"])
@every_pair
def test_sbatch(mpi, slurm, halo, tmp_path, export):
    script, out = tmp_path / "job.sh", tmp_path / "job.out"
    command = shlex.join([SPINLOOM, "run", "--report", "--", *srun(mpi), *halo])
    path = shlex.quote(os.environ["PATH"])
    lines = ["#!/bin/sh", f"export SLURM_CONF={slurm['SLURM_CONF']} PATH={path}", f"exec {command}"]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["sbatch", "--wait", "--ntasks=2", f"--output={out}", f"--export={export}", str(script)]
    ran = step(mpi, words, slurm, out)
    said = out.read_text(encoding="utf-8") if out.exists() else ran.stderr
    assert messages_of(ran.returncode, said) >= 8


@every_pair
def test_the_mpis_own_launcher_in_an_allocation(mpi, slurm, halo):
    job = [SPINLOOM, "run", "--report", "--", mpi.launcher, *mpi.options, "-n", "2", *halo]
    assert carried(mpi, slurm, ["salloc", "--ntasks=2", *job]) >= 8


def test_what_srun_does_not_hand_on_is_said(slurm, tmp_path):
    mpi = MPIS[0]
    compile_for(mpi, [EXAMPLES / "halo.c"], tmp_path / "halo", "-std=c11")
    job = [*srun(mpi), "--export=NONE", str(tmp_path / "halo"), *GRID]
    ran = subprocess.run(
        [SPINLOOM, "run", "--report", "--", *job],
        env=slurm,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    assert (ran.returncode, " 0 wrong, " in ran.stdout) == (0, True), ran.stderr
    assert "its launcher may not hand on LD_PRELOAD" in ran.stderr


@every_pair
def test_a_step_that_ends_by_force_leaves_nothing_behind(mpi, slurm, tmp_path):
    """Slurm says how many ranks this machine has: the last of them to come removes the board's name."""
    compile_for(mpi, [SOURCE], tmp_path / "rules")
    dies = [str(tmp_path / "rules"), "dies"]

    def left_by(words: list[str]) -> set[Path]:
        before = left_behind()
        ran = step(mpi, [*srun(mpi), *words], slurm | preloads(tmp_path / "report"))
        assert ran.returncode != 0
        return left_behind() - before

    unknown = left_by(["env", "--unset=SLURM_NODEID", *dies])
    for path in unknown:
        path.unlink()
    assert unknown, "the name was removed although nobody knew when"
    assert left_by(dies) == set()
