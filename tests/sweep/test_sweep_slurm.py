"""`spinloom sweep --slurm`: with Slurm where it is installed, everywhere with two scripts in its place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import slurm_cluster
from conftest import needs_engine
from patience import until
from studies import GOALS, manifest

pytestmark = needs_engine

SBATCH = """#!/bin/sh
[ -e {folder}/full ] && {{ echo 'sbatch: error: invalid partition specified: normal' >&2; exit 1; }}
cp "$1" {folder}/job.sh
setsid sh {folder}/job.sh >{folder}/job.log 2>&1 </dev/null &
echo "Submitted batch job $!"
echo $! >>{folder}/jobs
"""
SCANCEL = """#!/bin/sh
echo "$1" >>{folder}/cancelled
kill -TERM -"$1"
"""
STUDY = """
[goal]
pattern = "dissemination"
ranks = "4..32*2"

[slurm]
jobs = 1
cores = 2
memory = "2GB"
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture
def instead(tmp_path, monkeypatch):
    """A folder with sbatch and scancel, which run a job here."""
    folder = tmp_path / "instead"
    folder.mkdir()
    for name, script in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / name).write_text(script.format(folder=folder), encoding="utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def expected(spinloom, tmp_path):
    spinloom("sweep", *GOALS, "--out", str(tmp_path / "here"), "-q")
    return manifest(tmp_path / "here")["result_hash"]


def test_a_job_computes_the_cells_and_is_cancelled_at_the_end(spinloom, tmp_path, study, instead):
    ran = spinloom("sweep", str(study), "--slurm", "--out", str(tmp_path / "out"))
    assert ran.code == 0, ran.err
    job = (instead / "job.sh").read_text(encoding="utf-8")
    assert "#SBATCH --cpus-per-task=2" in job
    assert "--nworkers 2" in job
    (number,) = (instead / "jobs").read_text(encoding="utf-8").split()
    assert (instead / "cancelled").read_text(encoding="utf-8").split() == [number]
    assert until(lambda: not Path(f"/proc/{number}").exists())
    about = manifest(tmp_path / "out")
    assert (about["computed_in_this_run"], about["workers"]) == (4, "slurm")
    assert about["result_hash"] == expected(spinloom, tmp_path)


def test_a_job_that_slurm_refuses_ends_the_sweep(spinloom, tmp_path, study, instead):
    (instead / "full").touch()
    ran = spinloom("sweep", str(study), "--slurm", "--out", str(tmp_path / "out"), "-q")
    assert ran.code == 3
    assert ran.err.startswith(
        "spinloom: Slurm refuses the job: sbatch: error: invalid partition specified: normal (0 of 4 cells"
    )
    assert ran.err.count("\n") == 1


def test_an_unknown_option_and_no_slurm_are_one_sentence(spinloom, tmp_path, study, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *arguments, **named: None)
    options = ("--slurm", "--out", str(tmp_path / "out"), "-q")
    ran = spinloom("sweep", str(study), *options)
    assert ran.code == 3
    assert "sbatch, which is not found" in ran.err
    study.write_text(STUDY.replace("jobs =", "job ="), encoding="utf-8")
    ran = spinloom("sweep", str(study), *options)
    assert ran.code == 2
    assert "[slurm] has no 'job'; did you mean 'jobs'?" in ran.err


@pytest.mark.skipif(bool(slurm_cluster.missing()), reason="Slurm's daemons are not installed")
def test_slurm_itself(spinloom, tmp_path, study, monkeypatch):
    study.write_text(STUDY + 'job_directives_skip = ["--mem"]\n', encoding="utf-8")  # its node has no memory
    with slurm_cluster.cluster(tmp_path) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        ran = spinloom("sweep", str(study), "--slurm", "--out", str(tmp_path / "out"))
        assert ran.code == 0, ran.err
    assert list((tmp_path / "out/slurm").iterdir())
    assert manifest(tmp_path / "out")["result_hash"] == expected(spinloom, tmp_path)
