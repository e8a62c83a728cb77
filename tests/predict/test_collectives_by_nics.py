"""Non-blocking collective operations, carried on by CPUs and executed by NICs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from layer_programs import compile_for, every_mpi
from patience import seconds
from spinloom import data, recorded
from spinloom.errors import EXIT_OK

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples/mpi/fft3d.c"
BIN = Path(sys.executable).parent
TIME_LIMIT_S = seconds(240)
BY_CPUS, BY_NICS, CACHED = "offload-matching", "offload-collectives", "cached-collectives"


def rows(spinloom, trace, *arguments):
    ran = spinloom("predict", str(trace), "--strategies", "rw-cp", "--json", "-q", *arguments)
    assert ran.code == EXIT_OK, ran.err
    return {row["way"]: row for row in json.loads(ran.out)}


@pytest.mark.parametrize(("program", "ranks"), [("pgmres", 9), ("pgmres", 16), ("fft3d", 8)])
def test_nics_go_on_while_cpus_compute(spinloom, program, ranks):
    found = rows(spinloom, data.folder("recorded") / program, "--ranks", str(ranks))
    cpus, nics, cached = (found[way] for way in (BY_CPUS, BY_NICS, CACHED))
    for way in (nics, cached):
        for same in ("messages", "bytes", "compute_ps"):
            assert way[same] == cpus[same]
        assert 0 < way["collective_wait_ps"] < cpus["collective_wait_ps"]
    # a schedule that is there needs no calls for what waits for something
    assert cached["overhead_ps"] <= nics["overhead_ps"]


def test_where_nothing_is_non_blocking_there_is_nothing_to_execute(spinloom):
    found = rows(spinloom, HERE / "jacobi")
    assert BY_CPUS in found
    assert not {BY_NICS, CACHED} & set(found)
    assert all(row["collective_wait_ps"] is None for row in found.values())


@every_mpi
def test_the_pipelined_fft_is_a_serial_one(spinloom, mpi, tmp_path):
    if subprocess.run(
        ["cc", "-xc", "-E", "-", "-o", "/dev/null"],
        input="#include <fftw3.h>\n",
        text=True,
        capture_output=True,
    ).returncode:
        pytest.skip("there is no FFTW 3 here (libfftw3-dev)")
    program, trace = tmp_path / "fft3d", tmp_path / "trace"
    compile_for(mpi, [EXAMPLE], program, "-std=c11", libraries=("-lfftw3", "-lm"))
    record = [BIN / "spinloom", "record", "--cpu-time", "-o", trace, "--", mpi.launcher, *mpi.options]
    for ranks, side in ((1, 6), (3, 12)):
        words = [*record, "-n", str(ranks), program, "--check", str(side), "4", "2"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT_S)
        assert done.returncode == 0, done.stderr
        assert "of its largest number\n" in done.stdout
        traces = recorded.read(trace)
        assert all(one.is_cpu_time for one in traces)
        calls = {row["call"]: row["count"] for row in recorded.call_rows(traces)}
        assert calls["Ialltoall"] == calls["Wait"] == ranks * 4 * 2
        for file in trace.iterdir():
            file.unlink()
    done = subprocess.run(
        [*record, "-n", "3", program, "12", "4"], capture_output=True, text=True, timeout=TIME_LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    found = rows(spinloom, trace)
    assert (found["measured"]["times"], found["measured"]["of_measured"]) == ("CPU", None)
    assert found[BY_NICS]["messages"] == 4 * 3 * 2 + 6  # and a barrier of two rounds
    assert found[BY_CPUS]["of_measured"] is None
