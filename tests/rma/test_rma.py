"""One-sided memory (spinloom/rma.h): the same C programs between real processes and in modelled time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import launchers
from c_programs import needs_compiler
from conftest import needs_engine
from live_programs import ROOT, build, needs_library
from patience import seconds

HERE = Path(__file__).resolve().parent
sys.path.append(str(ROOT / "tests/live"))

from pmi_job import Job  # noqa: E402

LIMIT_S = seconds(120)
WAYS = ["native", "emulated", "fallback", "mixed"]

__all__ = ["build"]
live = needs_library
pytestmark = needs_compiler


def run_live(ranks: int, program: Path, *arguments: object, **settings: str) -> str:
    """What the ranks print; they all succeed."""
    if "mpich" not in launchers.available():
        pytest.skip("there is no mpiexec.hydra")
    words = [*launchers.available()["mpich"], "-n", str(ranks), str(program), *map(str, arguments)]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **settings},
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lines(answers: list[int]) -> list[str]:
    return [f"rank {rank}: {count} answers" for rank, count in enumerate(answers)]


# program: by the number of ranks, the answers of each
PROGRAMS = {
    "rma_operations.c": {1: [157], 2: [157] * 2, 3: [157] * 3},
    "rma_parts.c": {1: [17], 2: [13, 18], 5: [13, 18, 13, 18, 13]},
    "rma_sync.c": {1: [172], 2: [214, 211], 4: [282, 251, 245, 245]},
    "rma_full.c": {2: [181, 2], 4: [541, 2, 2, 2]},
}
CASES = [(name, ranks) for name, cases in PROGRAMS.items() for ranks in cases]
programs = pytest.mark.parametrize(("name", "ranks"), CASES)


@live
@programs
@pytest.mark.parametrize("way", WAYS)
def test_between_processes(build, name, ranks, way):
    output = run_live(ranks, build(name), way)
    assert sorted(output.splitlines()) == lines(PROGRAMS[name][ranks])


@live
@pytest.mark.parametrize("way", ["native", "emulated"])
@pytest.mark.parametrize("faults", ["", "drop=0.02,reorder=0.03,seed=3"])
def test_over_datagrams(build, way, faults):
    settings = {"SPINLOOM_TRANSPORT": "udp"} | ({"SPINLOOM_UDP_FAULTS": faults} if faults else {})
    for name, ranks in (("rma_operations.c", 2), ("rma_sync.c", 4)):
        output = run_live(ranks, build(name), way, **settings)
        assert sorted(output.splitlines()) == lines(PROGRAMS[name][ranks])


@needs_engine
@programs
@pytest.mark.parametrize("way", WAYS)
def test_in_modelled_time(sim, name, ranks, way):
    code, ran, said = sim(ranks, HERE / name, way)
    assert code == 0, said + str(ran)
    assert sorted(ran["output"].splitlines()) == lines(PROGRAMS[name][ranks])


RANDOM = [("native", 1, 4), ("emulated", 2, 4), ("fallback", 3, 3), ("mixed", 4, 4), ("mixed", 5, 2)]
random_programs = pytest.mark.parametrize(("way", "seed", "ranks"), RANDOM)


@live
@random_programs
@pytest.mark.parametrize("transport", ["shm", "udp"])
def test_random_operations_between_processes(build, way, seed, ranks, transport):
    """A failure prints the command that replays it."""
    faults = {"SPINLOOM_UDP_FAULTS": f"drop=0.02,reorder=0.05,seed={seed}"} if transport == "udp" else {}
    program = build("rma_random.c")
    output = run_live(ranks, program, way, seed, 6, SPINLOOM_TRANSPORT=transport, **faults)
    assert sorted(output.splitlines()) == lines([8] * ranks)


@needs_engine
@random_programs
def test_random_operations_in_modelled_time(sim, way, seed, ranks):
    code, ran, said = sim(ranks, HERE / "rma_random.c", way, seed, 6)
    assert code == 0, said + str(ran)
    assert sorted(ran["output"].splitlines()) == lines([8] * ranks)


EXAMPLES = ROOT / "examples/rma"
SAID = {
    "histogram.c": ["4 ranks: 4000 numbers, 1983 of them below 50"],
    "hash_table.c": [f"rank {rank} of 4: 300 keys, 0 wrong" for rank in range(4)],
}


@live
@pytest.mark.parametrize("name", SAID)
def test_examples_between_processes(build, name):
    output = run_live(4, build(f"examples/rma/{name}"))
    assert sorted(output.splitlines()) == SAID[name]


@needs_engine
@pytest.mark.parametrize("name", SAID)
def test_examples_in_modelled_time(sim, name):
    code, ran, said = sim(4, EXAMPLES / name)
    assert (code, sorted(ran["output"].splitlines())) == (0, SAID[name]), said


COLUMNS = ["native", "emulated", "fallback"]


def latencies(output: str) -> dict[tuple[str, int], dict[str, float]]:
    rows = [line.split() for line in output.splitlines() if not line.startswith("#")]
    return {(row[0], int(row[1])): dict(zip(COLUMNS, map(float, row[2:5]), strict=True)) for row in rows}


@live
def test_latencies_are_measured_between_processes(build):
    rows = latencies(run_live(2, build("bench/rma_latency.c"), 5))
    assert len(rows) == 4 * 14 + 2  # 8 B to 64 KiB; two operations on one element


@needs_engine
def test_the_emulation_takes_longer_in_modelled_time(sim):
    """RED-2, but for fetching atomics, whose ratio is at most 0.35 there and 0.41 here (docs/rma.md)."""
    code, ran, said = sim(2, ROOT / "bench/rma_latency.c", 3)
    assert code == 0, said
    most = {"put": 0.8, "accumulate": 0.8, "get": 0.5}
    for (operation, size_bytes), us in latencies(ran["output"]).items():
        if size_bytes <= 256:
            assert us["native"] / us["emulated"] <= most.get(operation, 0.45), (operation, size_bytes)
        if size_bytes > 4096 and "accumulate" in operation:
            assert 0.9 <= us["fallback"] / us["emulated"] <= 1.1, (operation, size_bytes)


DEATHS = [
    "puts",
    "large",
    "atomics",
    "barrier",
    "fence",
    "window_fence",
    "lock",
    "own_lock",
    "start",
    "notice",
    "close",
]


@live
@pytest.mark.parametrize("way", ["native", "emulated"])
@pytest.mark.parametrize("what", DEATHS)
def test_nobody_waits_for_a_rank_that_died(build, way, what):
    answers = 4 if what == "large" else 5
    with Job([str(build("rma_death.c")), way, what], 4) as job:
        assert job.wait(LIMIT_S) == [0, 0, 0, -signal.SIGKILL], job.said()
        for rank in range(3):
            assert f"rank {rank}: {answers} answers" in job.said()
