"""`spinloom paper validate --live`: the arithmetic of its verdicts, and the claim that needs no MPI."""

from __future__ import annotations

import json

import pytest

from spinloom.bench import jobs
from spinloom.bench.remote_reads import system_calls_over_loads
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.papers import live_claims
from spinloom.papers.claims import FAILS, HOLDS, NOT_AVAILABLE

KINDS = (live_claims.MESSAGES, live_claims.TWO_WAYS, live_claims.READS, live_claims.ONE_SIDED)


def samples(without: float, with_: float) -> dict[bool, list[float]]:
    return {False: [without] * 6, True: [with_] * 6}


def verdict(name: str, times: dict, **more: dict) -> tuple[str, str]:
    row = live_claims.judge([live_claims.live_claims()[name]], live_claims.Measurements(times, **more))[0]
    return row["verdict"], row["ours"]


def test_every_row_that_a_claim_names_is_a_legal_type():
    for claim in live_claims.live_claims().values():
        for one in claim.holds:
            assert one["of"] in KINDS
            assert live_claims.condition_text(one)
        for of in (live_claims.MESSAGES, live_claims.TWO_WAYS):
            wanted = claim if any(one["of"] == of for one in claim.holds) else None
            for row in live_claims.rows_of([claim], of) if wanted else []:
                assert core.load().describe(row.type)["size_bytes"] > 0


def test_the_least_mpi_decides_and_a_missing_one_leaves_a_claim_open():
    times = {
        ("MILC 16^4", "pingpong", "MPICH 4.0.2"): samples(40.0, 10.0),
        ("MILC 16^4", "pingpong", "Open MPI 4.1.4"): samples(12.0, 10.0),
        ("WRF_y 2x2", "pingpong", "MPICH 4.0.2"): samples(20.0, 10.0),
        ("NAS_MG_z class A", "pingpong", "MPICH 4.0.2"): samples(20.0, 10.0),
        ("stencil 128^3 face x", "pingpong", "MPICH 4.0.2"): samples(20.0, 10.0),
        ("stencil 128^3 face y", "pingpong", "MPICH 4.0.2"): samples(16.0, 10.0),
    }
    assert verdict("FALCON-4", times) == (HOLDS, "4.00; 1.20; 2.00; 2.00; 1.60")
    times["MILC 16^4", "pingpong", "MPICH 5.0.2"] = samples(20.0, 10.0)
    assert verdict("FALCON-4", times)[0] == FAILS
    del times["MILC 16^4", "pingpong", "MPICH 5.0.2"], times["MILC 16^4", "pingpong", "Open MPI 4.1.4"]
    assert verdict("FALCON-4", times) == (NOT_AVAILABLE, "4.00; -; 2.00; 2.00; 1.60")


def test_two_ways_at_once_are_compared_with_one():
    row = "2 MiB of 16 KiB"
    times = {(row, "stream", "A"): samples(1.0, 1600.0), (row, "both", "A"): samples(1.0, 110.0)}
    assert verdict("FALCON-3", times) == (HOLDS, "1.82")
    times[row, "both", "A"] = samples(1.0, 150.0)
    assert verdict("FALCON-3", times)[0] == FAILS


def latencies(native: float, fallback: float = 1.0, **of: float) -> dict:
    """Of every operation and size; the emulation takes 1 us."""
    operations = ("put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap")
    return {
        (name, size): {
            "native": round(of.get(name, native) * 10**6),
            "emulated": 10**6,
            "fallback": round(fallback * 10**6),
        }
        for name in operations
        for size in (8, 64, 1024, 8192, 65536)
    }


def test_one_sided_operations_are_compared_with_messages():
    assert verdict("RED-2", {}, one_sided=latencies(0.35)) == (HOLDS, "; ".join(["0.35"] * 6 + ["1.00"] * 2))
    assert verdict("RED-2", {}, one_sided=latencies(0.35, get=0.51))[0] == FAILS
    assert verdict("RED-2", {}, one_sided=latencies(0.35, compare_and_swap=0.36))[0] == FAILS
    assert verdict("RED-2", {}, one_sided=latencies(0.35, fallback=1.2))[0] == FAILS
    assert verdict("RED-2", {}, one_sided={})[0] == NOT_AVAILABLE


def test_one_sided_operations_are_measured_between_processes(spinloom):
    done = spinloom("paper", "validate", "--live", "--only", "RED-2", "--json", "--quiet")
    row = json.loads(done.out)[0]
    if not jobs.mpis():
        assert row["verdict"] == NOT_AVAILABLE
        pytest.skip("there is no MPI with a launcher")
    assert row["verdict"] in (HOLDS, FAILS)
    assert all(float(ours) > 0 for ours in row["ours"].split("; "))


def test_reads_by_system_calls_are_compared_with_loads(spinloom):
    try:
        ratio = system_calls_over_loads(64)
    except Trouble as trouble:
        pytest.skip(trouble.message)
    assert ratio > 0
    done = spinloom("paper", "validate", "--live", "--only", "FALCON-1", "--json")
    row = json.loads(done.out)[0]
    assert row["id"] == "FALCON-1"
    assert row["verdict"] in (HOLDS, FAILS)
    assert len(row["ours"].split("; ")) == 2
