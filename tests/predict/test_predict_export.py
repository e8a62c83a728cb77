"""What `spinloom predict --goal` and `spinloom goal convert` write, under LogGOPSim's rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spinloom.common import core
from spinloom.predict import goal_model

HERE = Path(__file__).parent
JACOBI = HERE / "jacobi"
RECORDED = HERE.parents[1] / "data/recorded"
LATENCY = {"L": "2500", "o": "0", "g": "0", "G": "0", "O": "0", "S": str(2**64 - 1)}
USUAL = {name: str(default) for name, (default, _) in goal_model.PARAMETERS.items()} | {"S": str(2**64 - 1)}
BYTES_FREE = {**USUAL, "G": "0"}


def ends(schedule, values):
    """Of each rank, ns: by our rules and by LogGOPSim's."""
    ours = schedule.run(**goal_model.parse(values, "1ns"))["finish_ps"]
    theirs = schedule.run_loggopsim(**goal_model.parse_loggopsim(values))["host_times"]
    return [time / 1000 for time in ours], theirs


def exported(spinloom, folder, path, *options):
    ran = spinloom("predict", str(folder), "--goal", str(path), *options)
    assert ran.code == 0, ran.err
    assert "LogGOPSim" not in ran.err
    schedule = core.load().read_goal(path.read_bytes())
    schedule.check()
    counted = schedule.count()
    assert (counted["cpus"], counted["cpu_largest"], counted["nic_largest"]) == (1, 0, 0)
    assert schedule.misread() == (0, 0)
    return schedule


def expect_alike(schedule):
    """Gaps keep a sender's CPU there, and a receiver works when a message comes. Bytes keep its CPU, too:
    each that a rank receives, G at most."""
    ours, theirs = ends(schedule, BYTES_FREE)
    assert max(theirs) == pytest.approx(max(ours), rel=0.05)
    ours, theirs = ends(schedule, USUAL)
    received_ns = 6 * schedule.count()["sent_bytes"]
    assert 0.95 * max(ours) <= max(theirs) <= max(ours) + received_ns


@pytest.mark.parametrize("ending", [".goal", ".bin"])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--ranks", "64"),
        ("--ranks", "64", "--scaling", "strong"),
        ("--collective", "allreduce=ring", "--collective", "barrier=linear"),
        ("--scale-compute", "0"),
    ],
    ids=" ".join,
)
def test_a_program_that_blocks_ends_at_the_same_times(spinloom, tmp_path, options, ending):
    schedule = exported(spinloom, JACOBI, tmp_path / f"jacobi{ending}", *options)
    ours, theirs = ends(schedule, LATENCY)
    assert ours == theirs
    expect_alike(schedule)


@pytest.mark.parametrize(
    ("program", "options"),
    [("pgmres", ()), ("pgmres", ("--ranks", "16")), ("fft3d", ()), ("fft3d", ("--ranks", "16"))],
)
def test_collective_operations_beside_computations_go_on(spinloom, tmp_path, program, options):
    """Both programs have non-blocking collective operations, which may go on later there."""
    schedule = exported(spinloom, RECORDED / program, tmp_path / f"{program}.goal", *options)
    ours, theirs = ends(schedule, LATENCY)
    assert max(theirs) == pytest.approx(max(ours), rel=0.005)
    expect_alike(schedule)


def test_what_loggopsim_takes_otherwise_is_said(spinloom, tmp_path):
    path = tmp_path / "streams.goal"
    path.write_text(
        "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 8b to 1 cpu 1\nb requires a\n}\n"
        "rank 1 {\na: recv 8b from 0\nb: calc 5000 cpu 300\nb requires a\n}\n"
    )
    said = (
        "2 dependencies lead from one CPU to another: LogGOPSim does not wait there",
        "1 ranks receive on another CPU than was sent on: LogGOPSim does not wait there",
        "CPUs and NICs have numbers to 300: LogGOPSim's converter keeps their lowest 8 bits",
    )
    ran = spinloom("goal", "convert", str(path), str(tmp_path / "again.goal"))
    assert ran.code == 0
    assert all(sentence in ran.err for sentence in said)
    assert (tmp_path / "again.goal").read_text().count("cpu 300") == 1
    ran = spinloom("goal", str(path), "--dialect", "loggopsim", "--json")
    assert all(sentence in ran.err for sentence in said[:2])
    ran = spinloom("goal", "convert", str(path), str(tmp_path / "again.bin"))
    assert ran.code == 2
    assert "rank 1, operation 1: cpu 300 and nic 0: GOAL's binary form has numbers to 255" in ran.err
    assert not (tmp_path / "again.bin").exists()
    ran = spinloom("goal", "convert", str(path), str(tmp_path / "again.spl"))
    assert (ran.code, "LogGOPSim" in ran.err) == (0, False)
    rows = [spinloom("goal", str(tmp_path / name), "--csv").out for name in ("streams.goal", "again.spl")]
    assert rows[0] == rows[1]
    checked = json.loads(spinloom("goal", "check", str(tmp_path / "again.spl"), "--json").out)[0]
    assert (checked["cpus"], checked["cpu_largest"]) == (3, 300)
