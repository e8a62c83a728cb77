"""Schedules that repeat (`goal make --repeat`), and those larger than what may be kept."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from conftest import needs_engine
from patience import seconds

pytestmark = needs_engine

MAKE = ("goal", "make", "halo_3d", "--ranks", "8")


def rows(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_a_schedule_that_repeats_costs_memory_once(spinloom, tmp_path):
    loop, once = tmp_path / "loop.spl", tmp_path / "twice.spl"
    for path, times in ((loop, 1000), (once, 2)):
        assert spinloom(*MAKE, "--repeat", str(times), "-o", str(path)).code == 0
    assert loop.stat().st_size == once.stat().st_size
    (counted,) = rows(spinloom("goal", "check", str(loop), "--json"))
    # 12 ends of messages and a computation of each rank, 1,000 times.
    assert (counted["operations"], counted["sends"]) == (8 * 13 * 1000, 8 * 6 * 1000)
    # Written out it is the same: as text, in GOAL's binary form, and read from them again.
    for name in ("twice.goal", "twice.bin"):
        assert spinloom("goal", "convert", str(once), str(tmp_path / name)).code == 0
        assert rows(spinloom("goal", str(tmp_path / name), "--json")) == rows(
            spinloom("goal", str(once), "--json")
        )
    for more in (
        ("--dialect", "loggopsim"),
        ("--nic", "sc19-slingshot", "--fidelity", "nic"),
        ("--critical-path",),
    ):
        assert rows(spinloom("goal", str(tmp_path / "twice.bin"), *more, "--json")) == rows(
            spinloom("goal", str(once), *more, "--json")
        )


def test_ranks_apart_compute_what_was_asked_for(spinloom, tmp_path):
    path = tmp_path / "apart.spl"
    made = spinloom(*MAKE, "--repeat", "50", "--compute", "3us..3us", "-o", str(path))
    assert made.code == 0, made.err
    # 50 times 3 us, on each rank.
    assert {row["compute_ps"] for row in rows(spinloom("goal", str(path), "--json"))} == {150_000_000}
    assert rows(spinloom("goal", "check", str(path), "--json"))[0]["programs"] == 8
    bytes_of = []
    for seed in (1, 1, 2):
        spinloom(*MAKE, "--repeat", "5", "--compute", f"1us..2us,seed={seed}", "-o", str(path))
        bytes_of.append(path.read_bytes())
    assert bytes_of[0] == bytes_of[1] != bytes_of[2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--compute", "1us..2us"), "--compute needs --repeat, and FILE.spl to write to (-o)"),
        (("--repeat", "2", "--compute", "1us", "-o", "a.spl"), "accepted form: 10us..20us"),
        (("--repeat", "2", "--compute", "2us..1us", "-o", "a.spl"), "computations of 2000 to 1000"),
        (("--repeat", "2", "--compute", "1us..2us", "-o", "a.goal"), "in our own form only: FILE.spl"),
        (
            ("--repeat", "1000000000", "-o", "a.spl"),
            "1000000000 times 12 operations and one more are too many",
        ),
    ],
)
def test_what_cannot_be_made_is_a_sentence(spinloom, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    ran = spinloom(*MAKE, *words)
    assert ran.code == 2
    assert sentence in ran.err
    assert list(tmp_path.iterdir()) == []


SCRIPT = """
import resource, sys
from pathlib import Path
from spinloom.common import core
engine, path = core.load(), Path(sys.argv[1])
status = Path("/proc/self/status").read_text()
data = 1024 * int(status.split("VmData:")[1].split()[0])
most = data + path.stat().st_size // 4
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
schedule = engine.open_goal(str(path))
schedule.check()
print(schedule.count()["operations"], schedule.run(1000, 1000, 1000, (1, 1))["events"])
try:
    content = path.read_bytes()
except MemoryError:
    print("too large")
"""


def test_a_file_is_run_in_a_quarter_of_its_size(spinloom, tmp_path):
    """Beside what the process had before; pages of the mapped file are not its data."""
    path = tmp_path / "large.spl"
    made = spinloom(*MAKE, "--repeat", "20000", "--compute", "1us..2us", "-o", str(path))
    assert made.code == 0, made.err
    assert path.stat().st_size > 4e7
    command = [sys.executable, "-c", SCRIPT, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds(240), check=False)
    # Of each rank and time: 13 operations, and 6 messages that come.
    operations, events = 8 * 13 * 20_000, 8 * 19 * 20_000
    assert ran.stdout.splitlines() == [f"{operations} {events}", "too large"], ran.stderr
