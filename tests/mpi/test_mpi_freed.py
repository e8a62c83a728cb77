"""Datatypes and communicators that threads free while in use: the MPI lets go of them in its own calls.

MPICH gives up its lock before it calls a function of an attribute, also where that is amid its progress;
another thread then enters UCX a second time, which ends the job (4.0.2: "Assertion `worker->inprogress++ ==
0' failed"). What we know of a type hangs on an attribute, so it must be gone before that.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layer_programs import BIN, Mpi, every_mpi, machines_of, preloads, programs_of, run
from spinloom.traces import recorded

HERE = Path(__file__).parent
ROUNDS, THREADS = 60, 3


@pytest.fixture(scope="module")
def program():
    return programs_of(HERE / "freed_meanwhile.c")


def job(mpi: Mpi, program: Path) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", "2", str(program), str(ROUNDS)]


def ends_well(mpi: Mpi, words: list[str], settings: dict[str, str]) -> None:
    ran = run(words, settings)
    if "no threads" in ran.stdout:
        pytest.skip(f"{mpi.name} has no MPI_THREAD_MULTIPLE")
    assert ran.returncode == 0, f"{words}\n{ran.stdout[-1000:]}{ran.stderr[:2000]}"
    assert "done" in ran.stdout


@every_mpi
def test_recorded(mpi, program, tmp_path):
    directory = tmp_path / "trace"
    ends_well(mpi, [str(BIN / "spinloom"), "record", "-o", str(directory), "--", *job(mpi, program(mpi))], {})
    for trace in recorded.read(directory):
        assert trace.warning == ""
        calls = {row["call"]: row["count"] for row in trace.calls()}
        assert calls["Isend"] == calls["Irecv"] == calls["Waitall"] == ROUNDS * THREADS


@every_mpi
@pytest.mark.parametrize("machines", ["aa", "ab"])
def test_with_the_layer(mpi, program, machines, tmp_path):
    """Two ranks on one machine, whose messages are the layer's, or on two, where they stay the MPI's."""
    report = tmp_path / "report"
    settings = preloads(report)
    ends_well(mpi, machines_of(mpi, [str(program(mpi)), str(ROUNDS)], machines, settings), {})
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [line["on"] for line in lines] == [True, True]
    assert [line["sent"] for line in lines] == [ROUNDS * THREADS if machines == "aa" else 0] * 2
