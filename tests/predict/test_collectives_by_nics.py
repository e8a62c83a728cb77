"""Non-blocking collective operations, carried on by CPUs and executed by NICs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from layer_programs import compile_for, every_mpi
from patience import seconds
from spinloom.common import data
from spinloom.common.errors import EXIT_OK
from spinloom.papers import studies
from spinloom.papers.lab import Lab
from spinloom.traces import recorded
from spinloom.verbs.paper_study import save

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


def has_fftw() -> bool:
    words = ["cc", "-xc", "-E", "-", "-o", "/dev/null"]
    done = subprocess.run(words, input="#include <fftw3.h>\n", text=True, capture_output=True)
    return done.returncode == 0


@every_mpi
def test_the_pipelined_fft_is_a_serial_one(spinloom, mpi, tmp_path):
    if not has_fftw():
        pytest.skip("there is no FFTW 3 here (libfftw3-dev)")
    program = tmp_path / "fft3d"
    compile_for(mpi, [EXAMPLE], program, "-std=c11", libraries=("-lfftw3", "-lm"))

    def record(ranks: int, *arguments: str) -> Path:
        trace = tmp_path / "-".join((str(ranks), *arguments))
        words = [BIN / "spinloom", "record", "--cpu-time", "-o", trace, "--", mpi.launcher, *mpi.options]
        words += ["-n", str(ranks), program, *arguments]
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT_S)
        assert done.returncode == 0, done.stderr
        assert ("of its largest number\n" in done.stdout) == (arguments[0] == "--check")
        return trace

    for ranks, side in ((1, "6"), (3, "12")):
        traces = recorded.read(record(ranks, "--check", side, "4", "2"))
        assert all(one.is_cpu_time for one in traces)
        calls = {row["call"]: row["count"] for row in recorded.call_rows(traces)}
        assert calls["Ialltoall"] == calls["Wait"] == ranks * 4 * 2
    three, six = record(3, "12", "4"), record(6, "12", "4")
    found = rows(spinloom, three)
    assert (found["measured"]["times"], found["measured"]["of_measured"]) == ("CPU", None)
    assert found[BY_NICS]["messages"] == 4 * 3 * 2 + 6  # the last ones are a barrier of two rounds
    assert found[BY_CPUS]["of_measured"] is None
    # refitted from 3 to 6 ranks it sends what it sends there
    refitted, there = rows(spinloom, three, "--ranks", "6"), rows(spinloom, six)
    for way in (BY_CPUS, BY_NICS):
        for same in ("messages", "bytes"):
            assert refitted[way][same] == there[way][same]


def test_the_study_says_what_a_turn_and_its_wait_take(tmp_path):
    study = replace(studies.studies()["offloaded"], ranks=(16, 32))
    laboratory = Lab(1)
    laboratory.run(studies.probes(study))
    found = studies.rows(study, laboratory)
    assert len(found) == len(study.recorded) * len(study.ranks) * len(study.ways)
    for row in found:
        # PETSc's example reduces twice before its 60 iterations; the FFT has 16 planes
        assert row["collectives"] == {"pgmres": 62, "fft3d": 16}[row["program"]]
        assert row["turn_ps"] == row["time_ps"] // row["collectives"] > row["wait_ps"] > 0
        assert (row["times_less_wait"] > 1) == (row["way"] == BY_NICS)
    save({study: found}, tmp_path)
    assert (tmp_path / "offloaded.csv").read_text(encoding="utf-8").count("\n") == len(found) + 1
