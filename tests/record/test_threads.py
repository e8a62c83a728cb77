"""Programs whose threads call MPI at once: each call is in the trace once, messages are what they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, programs_of
from patience import seconds, until
from spinloom.traces import recorded

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
TIME_LIMIT_S = seconds(240)
ROUNDS, TIMES = 40, 3


@pytest.fixture(scope="module")
def program():
    return programs_of(HERE / "programs/threads.c")


def record(mpi: Mpi, program: Path, directory: Path, *words: str) -> list[str]:
    command = [BIN / "spinloom", "record", "-o", directory, "--", mpi.launcher, *mpi.options, "-n", "2"]
    command += [program, *words]
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIME_LIMIT_S)
    assert ran.returncode == 0, ran.stderr
    if "no threads" in ran.stdout:
        pytest.skip(f"{mpi.name} has no MPI_THREAD_MULTIPLE")
    return ran.stdout.splitlines()


def counted(lines: list[str]) -> dict[int, Counter[str]]:
    """What the program says that it called, by rank."""
    found: dict[int, Counter[str]] = {0: Counter(), 1: Counter()}
    for line in lines:
        rank, call, times = line.split()
        if int(times) != 0:
            found[int(rank)][call] += int(times)
    return found


@every_mpi
@pytest.mark.parametrize("time", range(TIMES))
def test_each_call_is_there_once(mpi, program, tmp_path, time):
    directory = tmp_path / "trace"
    said = counted(record(mpi, program(mpi), directory, str(ROUNDS)))
    traces = recorded.read(directory)
    assert [trace.warning for trace in traces] == ["", ""]
    for trace in traces:
        found = Counter({row["call"]: row["count"] + row["polls"] for row in trace.calls()})
        assert found.pop("Init") == found.pop("Finalize") == 1
        assert found == said[trace.rank]
        ends = list(recorded.events(trace)["end_ns"])
        assert ends == sorted(ends)
        assert all(row["error"] == 0 for row in trace.signatures())
    wrong = [
        row for row in recorded.finding_rows(traces) if row["finding"] not in ("room left", "sent twice")
    ]
    assert wrong == []
    messages = sum(said[0][call] + said[1][call] for call in ("Isend", "Send", "Ssend", "Sendrecv"))
    assert len(recorded.core.load().trace_messages(traces)) == messages


@every_mpi
def test_it_is_predicted_or_said_why_not(mpi, program, tmp_path):
    directory = tmp_path / "trace"
    record(mpi, program(mpi), directory, "16")
    done = subprocess.run(
        [BIN / "spinloom", "predict", directory, "--quiet"],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
    )
    # Threads that never called at once, by chance, are as one.
    if done.returncode == 0:
        assert "host-mpi" in done.stdout
        return
    assert done.returncode == 2, done.stderr
    assert "calls MPI from several threads at once" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@every_mpi
def test_a_rank_that_is_killed_in_its_threads_leaves_its_trace(mpi, program, tmp_path):
    directory = tmp_path / "trace"
    command = [BIN / "spinloom", "record", "-o", directory, "--", mpi.launcher, *mpi.options, "-n", "2"]
    command += [program(mpi), "0", "wait"]
    job = subprocess.Popen(
        list(map(str, command)),
        env={**os.environ, "FOLDER": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(
            lambda: (
                all((tmp_path / f"started-{rank}").exists() for rank in range(2)) or job.poll() is not None
            )
        )
        assert job.poll() is None, "the program ended before its threads were at work"
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    traces = recorded.read(directory)
    for trace in traces:
        assert trace.warning == ""
        assert not trace.ended
        assert trace.events > 20 * 3 * 5
        ends = list(recorded.events(trace)["end_ns"])
        assert ends == sorted(ends)
