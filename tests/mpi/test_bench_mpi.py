"""`spinloom bench mpi`: rows, arithmetic of the goals, one row and calls under every MPI that is here."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from patience import seconds
from spinloom import core
from spinloom.bench import calls, jobs, message_rows, messages


def test_rows_are_legal_and_their_names_are_unique():
    rows = message_rows.message_rows()
    assert len({row.name for row in rows}) == len(rows) > 60
    for row in rows:
        sent, received = core.load().describe(row.type), core.load().describe(row.to)
        assert sent["size_bytes"] == received["size_bytes"] > 0, row.name
        if row.total_bytes and row.family != "application":
            assert abs(sent["size_bytes"] - row.total_bytes) < 128, row.name
    assert {row.name for row in message_rows.message_rows(quick=True)} < {row.name for row in rows}


def sample(row: str, mpi: str, without: float, with_: float, family: str = "application") -> dict:
    return {
        "row": row,
        "family": family,
        "kind": "pingpong",
        "bytes": 1 << 20,
        "mpi": mpi,
        "without_ns": without,
        "with_ns": with_,
        "without_over_with": without / with_,
        "without_over_with_low": 0.99 * without / with_,
        "without_over_with_high": 1.01 * without / with_,
    }


def test_the_best_of_each_side_are_compared():
    measured = [sample("a", "A", 80.0, 40.0), sample("a", "B", 100.0, 20.0), sample("b", "A", 9.0, 10.0)]
    best = {one["row"]: one for one in messages.against_best(measured)}
    assert (best["a"]["best_stock"], best["a"]["best_with"], best["a"]["stock_over_with"]) == ("A", "B", 4.0)
    goals = messages.goals(measured)
    assert goals[0]["reached"] == pytest.approx((4.0 * 0.9) ** 0.5)
    assert goals[-1]["reached"] == 1
    assert not goals[-1]["met"]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spinloom.cli", "bench", "mpi", *words],
        capture_output=True,
        text=True,
        timeout=seconds(240),
        check=False,
    )


def measured_by(*words: str) -> list[dict]:
    done = bench("--quick", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not jobs.mpis(), reason="no MPI is here")
def test_one_row_is_measured_under_every_mpi():
    kinds = [word for kind in messages.KINDS for word in ("--kind", kind)]
    measured = measured_by("--only", "WRF_y 8x8", *kinds)
    assert {one["kind"] for one in measured} == set(messages.KINDS)
    for one in measured:
        assert one["samples"] == messages.QUICK.launches * messages.QUICK.rounds
        assert one["with_ns"] > 0
        assert one["without_over_with_low"] <= one["without_over_with"] <= one["without_over_with_high"]
    names = {one["mpi"] for one in measured}
    assert len(names) == 2 * len({name.removesuffix(" without CMA") for name in names})


def test_call_rows_are_legal_and_their_names_are_unique():
    rows = calls.rows()
    assert len({(row.table, row.name, row.call) for row in rows}) == len(rows)
    assert {row.table for row in rows} == {"calls", "pack", "first"}
    for row in rows:
        sent, received = core.load().describe(row.type), core.load().describe(row.to)
        assert sent["size_bytes"] == received["size_bytes"] > 0, row.name
    assert {row.table for row in calls.rows(quick=True)} == {"calls", "pack", "first"}


@pytest.mark.skipif(not jobs.mpis(), reason="no MPI is here")
def test_calls_are_measured_under_every_mpi(tmp_path):
    measured = measured_by("--calls", "--out", str(tmp_path))
    mpis = {one["mpi"] for one in measured}
    rows = calls.rows(quick=True)
    assert {(one["table"], one["row"], one["call"], one["mpi"]) for one in measured} == {
        (row.table, row.name, row.call, mpi) for row in rows for mpi in mpis
    }
    for one in measured:
        uses = calls.FIRST_USES if one["table"] == "first" else 1
        assert one["samples"] == messages.QUICK.launches * messages.QUICK.rounds * uses
        assert one["more_ns_low"] <= one["more_ns"] <= one["more_ns_high"]
        assert one["with_ns"] > 0
        assert ("with_first_over_second" in one) == (one["table"] == "first")
    assert len((tmp_path / "calls.csv").read_text(encoding="utf-8").splitlines()) == len(measured) + 1


def test_calls_have_no_kinds():
    done = bench("--calls", "--kind", "both")
    assert done.returncode == 2
    assert "--kind" in done.stderr
