"""`spinloom validate --live`: the arithmetic of its verdicts, and the claim that needs no MPI."""

from __future__ import annotations

import json

import pytest

from spinloom import core, live_claims
from spinloom.bench.remote_reads import system_calls_over_loads
from spinloom.claims import FAILS, HOLDS, NOT_AVAILABLE
from spinloom.errors import Trouble


def samples(without: float, with_: float) -> dict[bool, list[float]]:
    return {False: [without] * 6, True: [with_] * 6}


def verdict(name: str, times: dict, reads: dict | None = None) -> tuple[str, str]:
    row = live_claims.judge([live_claims.live_claims()[name]], times, reads or {})[0]
    return row["verdict"], row["ours"]


def test_every_row_that_a_claim_names_is_a_legal_type():
    for claim in live_claims.live_claims().values():
        for one in claim.holds:
            assert one["of"] in (live_claims.MESSAGES, live_claims.TWO_WAYS, live_claims.READS)
            assert live_claims.told(one)
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


def test_reads_by_system_calls_are_compared_with_loads(spinloom):
    try:
        ratio = system_calls_over_loads(64)
    except Trouble as trouble:
        pytest.skip(trouble.message)
    assert ratio > 0
    done = spinloom("validate", "--live", "--only", "FALCON-1", "--json")
    row = json.loads(done.out)[0]
    assert row["id"] == "FALCON-1"
    assert row["verdict"] in (HOLDS, FAILS)
    assert len(row["ours"].split("; ")) == 2
