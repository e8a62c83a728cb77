"""Ranks of one machine meet at their first contact, and nobody waits for a rank that it does not need."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import launchers
from patience import seconds
from pmi_job import Job
from test_live import LIMIT_S, answers_of, build, nothing_runs, pytestmark

__all__ = ["build", "pytestmark"]  # pytest finds them here

SHORT_S = seconds(30)  # far less than the 300 s after which ranks are given up
STARTED_BY = ["mpich", "openmpi", "alone"]  # alone: PMI-1 of pmi_job.py
# mpirun ends a job with code 1 in which a rank has ended without PMIx while another has called it already.
MAY_END_WITHOUT_PMIX = {"OMPI_MCA_orte_allowed_exit_without_sync": "1"}


def run(launcher: str, ranks: int, program: Path, *words: object, limit_s: float = SHORT_S, **env: str):
    """The exit code of the job, or the ranks', and all that they said."""
    if launcher == "alone":
        with Job([str(program), *map(str, words)], ranks, env=env) as job:
            codes = job.wait(limit_s)
            return max((-1 if code is None else code for code in codes), key=abs), job.said()
    if launcher not in launchers.available():
        pytest.skip(f"there is no launcher of {launcher}")
    command = [*launchers.available()[launcher], "-n", ranks, program, *words]
    done = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **MAY_END_WITHOUT_PMIX, **env},
        timeout=LIMIT_S,
    )
    assert nothing_runs(program)
    return done.returncode, done.stdout + done.stderr


every_launcher = pytest.mark.parametrize("launcher", STARTED_BY)


@every_launcher
def test_ptlinit_waits_for_nobody(build, tmp_path, launcher):
    code, said = run(launcher, 2, build("live_meet.c"), "init", tmp_path)
    assert code == 0, said
    assert set(answers_of(said)) == {0, 1}, said
    assert "spinloom:" not in said


@every_launcher
@pytest.mark.parametrize("ranks", [2, 5])
def test_a_late_rank_exchanges_messages_both_ways(build, tmp_path, launcher, ranks):
    code, said = run(launcher, ranks, build("live_meet.c"), "late", tmp_path)
    assert code == 0, said
    assert set(answers_of(said)) == set(range(ranks)), said
    assert "spinloom:" not in said


@every_launcher
def test_what_is_sent_to_a_rank_that_never_comes_fails(build, tmp_path, launcher):
    code, said = run(launcher, 3, build("live_meet.c"), "absent", tmp_path, SPINLOOM_START_S="1")
    assert code == 0, said
    assert answers_of(said) == {0: 3, 1: 3}, said
    assert "rank 2 cannot be reached, what is sent to it fails: it has not called PtlInit in 1 s" in said


@every_launcher
def test_who_sends_nothing_to_a_rank_misses_nothing(build, tmp_path, launcher):
    code, said = run(launcher, 3, build("live_meet.c"), "idle", tmp_path)
    assert code == 0, said
    assert answers_of(said) == {0: 1, 1: 1}, said
    assert "spinloom:" not in said


@pytest.mark.parametrize("what", ["left", "failed"])
def test_a_rank_that_is_gone_and_lives_fails_at_once(build, tmp_path, what):
    code, said = run("alone", 2, build("live_meet.c"), what, tmp_path)
    assert code == 0, said
    assert set(answers_of(said)) == {0, 1}, said


def test_the_ten_second_line_names_the_rank(build, tmp_path):
    code, said = run("alone", 3, build("live_meet.c"), "absent", tmp_path, SPINLOOM_START_S="12")
    assert code == 0, said
    assert said.count("rank 2 has not called PtlInit for 10 s; what is sent to it waits") == 2, said


@every_launcher
def test_a_variable_keeps_the_meeting_in_ptlinit(build, tmp_path, launcher):
    settings = {"SPINLOOM_MEET": "start", "SPINLOOM_START_S": "2"}
    code, said = run(launcher, 2, build("live_meet.c"), "idle", tmp_path, **settings)
    assert code != 0, said
    assert "not all of the 2 ranks have called PtlInit in 2 s" in said


def test_a_launcher_that_names_no_machine_keeps_the_meeting(build, tmp_path):
    for nodes in (0, 2):
        job = Job(
            [str(build("live_meet.c")), "idle", str(tmp_path)], 2, env={"SPINLOOM_START_S": "1"}, nodes=nodes
        )
        with job:
            job.wait(SHORT_S)
            assert "not all of the 2 ranks have called PtlInit in 1 s" in job.said()


def test_a_rank_in_another_network_waits_for_all(build, tmp_path):
    """Its socket would not be found."""
    around = ["unshare", "-n"]
    if subprocess.run([*around, "true"], capture_output=True).returncode != 0:
        pytest.skip("no network namespace can be made here")
    env = {"SPINLOOM_START_S": "1"}
    with Job([*around, str(build("live_meet.c")), "idle", str(tmp_path)], 2, env=env) as job:
        job.wait(SHORT_S)
        assert "not all of the 2 ranks have called PtlInit in 1 s" in job.said()
