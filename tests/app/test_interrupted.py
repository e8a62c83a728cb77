"""A real SIGINT while the engine works: what was computed is shown, exit code 130, no half files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from conftest import needs_engine
from patience import seconds, until
from spinloom.handlers import toolchain

pytestmark = needs_engine

# Says "busy" before the function of the engine is called for the `calls`th time.
SCRIPT = """
import sys
from spinloom.common import core
from spinloom.cli import main
engine, calls = core.load(), 0
real = engine.{function}
def counted(*arguments, **named):
    global calls
    calls += 1
    if calls == {calls}:
        print("busy", file=sys.stderr, flush=True)
    {instead}
    return real(*arguments, **named)
engine.{function} = counted
{more}
main({arguments!r})
"""


def processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def interrupted(
    *arguments: str, function: str, calls: int = 1, instead: str = "", more: str = "", works: bool = True
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that got SIGINT after `calls` calls; `works`: in the midst of
    the last one."""
    script = SCRIPT.format(
        function=function, calls=calls, instead=instead or "pass", more=more, arguments=list(arguments)
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while (line := process.stderr.readline()) != "busy\n":
            assert line, "the command ended before it was busy"
        if works:
            begin = processor_seconds(process.pid)
            until(lambda: processor_seconds(process.pid) > begin + 0.3, seconds(60))
        process.send_signal(signal.SIGINT)
        try:
            printed, said = process.communicate(timeout=seconds(60))
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError("it waited for what was running") from None
    assert "Traceback" not in said
    return process.returncode, printed, said


@pytest.mark.skipif(
    toolchain.compiler_version() != toolchain.COMPILER_VERSION, reason="the handler compiler is not installed"
)
def test_handler_run_shows_what_had_happened(spinloom, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert spinloom("handler", "new", "words", "--template", "count-words").code == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    arguments = [
        "handler",
        "run",
        "words.c",
        "--count",
        "400",
        "--memory-out",
        "memory",
        "--timeline",
        "trace",
    ]
    code, printed, said = interrupted(*arguments, "--json", function="run_handler")
    assert code == 130, said
    assert "what had happened by then is printed" in said
    found = json.loads(printed)
    assert found["partial"] is True
    assert found["packets"] > 0
    assert found["handlers"]["payload"]["handlers"] > 0
    assert found["time_ps"] == -1  # the last message has not ended
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == before
    code, printed, _ = interrupted(*arguments, function="run_handler")
    assert code == 130
    assert "partial: true" in printed


@pytest.mark.parametrize("words", [(), ("--dialect", "loggopsim")])
def test_a_run_of_a_long_schedule_ends_at_once(tmp_path, words):
    path = tmp_path / "long.goal"
    path.write_text("")
    code, printed, said = interrupted(
        "goal",
        str(path),
        *words,
        "--per-rank",
        str(tmp_path / "ranks.csv"),
        function="open_goal",
        instead="return engine.goal_pattern('ring_allreduce', 6000, 8)",
        more="engine.Schedule.check = lambda schedule: None",
    )
    assert code == 130, said
    assert printed == ""
    assert said.strip() == "spinloom: interrupted"
    assert [one.name for one in tmp_path.iterdir()] == ["long.goal"]


def test_a_check_of_a_large_schedule_ends_at_once(tmp_path):
    path = tmp_path / "large.goal"
    path.write_text("")
    code, printed, said = interrupted(
        "goal",
        "check",
        str(path),
        function="open_goal",
        instead="return engine.goal_pattern('linear_alltoall', 20_000, 8)",
    )
    assert (code, printed, said.strip()) == (130, "", "spinloom: interrupted")


def test_torture_counts_the_runs_that_were_done():
    arguments = ["torture", "order", "--seeds", "1..1000000", "--workers", "1", "--json"]
    code, printed, said = interrupted(*arguments, function="run_torture", calls=4)
    assert code == 130, said
    (row,) = json.loads(printed)
    assert row["runs"] >= 150
    assert row["runs"] % 50 == 0
    assert row["messages"] > 0
    assert f"interrupted; {row['runs']} of 1000000 runs were done" in said


FEW = """
import time
from spinloom.accelerate import calibration
every = list(calibration.benches(calibration.caches()))
chosen = [bench for bench in every if bench.price is not None and bench.price[1] in (16, 64)]
calibration.benches = lambda levels: iter(chosen)
"""


def test_calibrate_keeps_whole_rounds(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    probe = "if calls >= {0}: time.sleep(3600)\n    return [100.0 + len(arguments[0])]"
    from spinloom.accelerate import calibration, copy_model

    chosen = [
        bench
        for bench in calibration.benches(calibration.caches())
        if bench.price is not None and bench.price[1] in (16, 64)
    ]
    a_round = (1 + len(chosen)) * len(copy_model.MOVEMENTS)
    calls = 2 * a_round + 5
    code, printed, said = interrupted(
        "calibrate", function="probe_copy", calls=calls, instead=probe.format(calls), more=FEW, works=False
    )
    assert code == 130, said
    assert printed == ""
    assert "interrupted; 2 of " in said
    assert [path.name for path in (tmp_path / "spinloom").iterdir()] == ["calibration.json.partial"]
    kept = json.loads((tmp_path / "spinloom/calibration.json.partial").read_text(encoding="utf-8"))
    assert [len(rounds) for rounds in kept["times_ns"].values()].count(2) >= 2


def test_calibrate_compares_what_was_measured_and_goes_on(spinloom, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    from spinloom.accelerate import calibration
    from spinloom.common import core
    from spinloom.nics import workloads
    from spinloom.verbs import calibrate_copies

    chosen = [
        bench
        for bench in calibration.benches(calibration.caches())
        if bench.price is not None and bench.price[1] in (16, 64)
    ]
    rows = [row for application in workloads.applications() for row in application.rows][:3]
    few = (
        FEW
        + "from spinloom.verbs import calibrate_copies\n"
        + "calibrate_copies.catalogue = lambda real=calibrate_copies.catalogue: real()[:3]\n"
    )
    probe = "if calls >= {0}: time.sleep(3600)\n    return [100.0 + len(arguments[0])]"
    a_round = 1 + len(chosen) + len(rows)
    for done, calls in ((0, 5), (2, 2 * a_round + 5)):
        code, printed, said = interrupted(
            "calibrate",
            "copies",
            "--compare",
            "--json",
            function="probe_copy",
            calls=calls,
            instead=probe.format(calls),
            more=few,
            works=False,
        )
        assert code == 130, said
        assert f"interrupted; {done} of 5 rounds" in said
        table = json.loads(printed) if printed else []
        assert [row["datatype"] for row in table] == [row.datatype for row in rows] * bool(done)
        assert all(row["measured_ns"] >= 100 for row in table)
    (kept,) = (tmp_path / "spinloom").iterdir()

    monkeypatch.setattr(calibration, "benches", lambda levels: iter(chosen))
    monkeypatch.setattr(calibrate_copies, "catalogue", lambda: rows)
    asked = []
    monkeypatch.setattr(core.load(), "probe_copy", lambda text, *_: asked.append(text) or [100.0 + len(text)])
    ran = spinloom("calibrate", "copies", "--compare", "--json", "--quiet")
    assert ran.code == 0
    assert "goes on behind 2 rounds of an earlier call" in ran.err
    assert len(asked) == 3 * a_round
    assert json.loads(ran.out) == table
    assert not kept.exists()
