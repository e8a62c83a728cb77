"""`spinloom bench mpi`: rows, arithmetic of the goals; a row, calls, collectives under MPIs that are here."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest

from patience import seconds
from spinloom.bench import calls, collective_rows, collectives, jobs, message_rows, messages, windows
from spinloom.common import core
from spinloom.common.errors import Trouble


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
    measured = measured_by("calls", "--out", str(tmp_path))
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
    done = bench("calls", "--kind", "both")
    assert done.returncode == 2
    assert "--kind" in done.stderr


def test_collective_rows_are_legal_and_their_names_are_unique():
    rows = collective_rows.rows()
    assert len({row.name for row in rows}) == len(rows) > 50
    for row in rows:
        assert row.bytes > 0, row.name
        for side in row.receives:
            for part in side.parts:
                assert part.bytes == part.count * core.load().describe(part.type)["size_bytes"], row.name
                if part.peer >= 0:
                    assert row.sends[part.peer].parts[part.pair].bytes == part.bytes, row.name
    assert {row.family for row in rows} >= set(collective_rows.read()["goals"])
    assert {row.name for row in collective_rows.rows(quick=True)} < {row.name for row in rows}


def test_the_best_of_all_mpis_is_compared_with_each():
    def one(mpi: str, stock: float, hand: float | None, layer: float) -> dict:
        best = min(stock, hand or math.inf) / layer
        ratios = {"stock_over_layer_high": stock / layer, "best_over_layer_high": best}
        times = {"stock_ns": stock, "hand_ns": hand, "layer_ns": layer}
        return {"row": "a", "family": "halo", "mpi": mpi, **times, **ratios}

    measured = [one("A", 80.0, 40.0, 50.0), one("B", 100.0, None, 20.0)]
    assert collectives.over_best_of_all(measured) == [40.0 / 50.0, 40.0 / 20.0]
    halos, than_mpi, than_either = collectives.goals(measured)
    assert halos["reached"] == pytest.approx(1.6**0.5)
    assert (than_mpi["reached"], than_either["reached"]) == (0, 1)


@pytest.mark.skipif(not jobs.mpis(), reason="no MPI is here")
@pytest.mark.parametrize("more", [[], ["--fresh-data"], ["--apart"]])
def test_collectives_are_measured_without_the_layer_by_hand_and_with_it(more, tmp_path):
    words = ["--only", "64 KiB", "--mpi", str(jobs.mpis()[0].compiler), "--one-setting"]
    measured = measured_by("collectives", *words, *more, "--out", str(tmp_path))
    names = [row.name for row in collective_rows.rows(quick=True) if "64 KiB" in row.name]
    assert [one["row"] for one in measured] == names
    for one in measured:
        assert one["mpi"].endswith(" apart") == (more == ["--apart"])
        assert one["samples"] == messages.QUICK.launches * messages.QUICK.rounds
        assert min(one["stock_ns"], one["hand_ns"], one["layer_ns"]) > 0
        assert one["best_over_layer_low"] <= one["best_over_layer"] <= one["best_over_layer_high"]
    assert len((tmp_path / "collectives.csv").read_text(encoding="utf-8").splitlines()) == len(measured) + 1


def only_loop_wrong(row: collective_rows.Row) -> collective_rows.Row:
    """The root's loop leaves out one number of each line."""
    side = row.receives[0]
    part = side.parts[1]
    outer, inner = part.loops
    wrong = replace(part, loops=(outer, replace(inner, count=inner.count - 1)))
    return replace(row, receives=(replace(side, parts=(side.parts[0], wrong)), *row.receives[1:]))


@pytest.mark.skipif(not jobs.mpis(), reason="no MPI is here")
def test_nothing_is_timed_where_a_loop_is_wrong(tmp_path):
    right = next(row for row in collective_rows.rows() if row.name == "gather columns 64 KiB")
    wanted = [messages.Variant(jobs.mpis()[0], single_copy=True, layer=False)]
    effort = messages.Effort(launches=1, rounds=2, sample_ns=1e3)
    for name, row in (("right", right), ("wrong", only_loop_wrong(right))):
        folder = tmp_path / name
        folder.mkdir()
        session = messages.Session(wanted, effort, "auto", folder, lambda: None)
        times: collectives.Times = {}
        if name == "right":
            collectives.measure(session, [row], times)
            assert [len(found) for samples in times.values() for found in samples.values()] == [2, 2, 0]
        else:
            with pytest.raises(Trouble, match="by hand: wrong bytes"):
                collectives.measure(session, [row], times)
            assert times == {}


def test_the_grid_of_windows_has_200_rows():
    rows = windows.rows()
    grid = [row for row in rows if row.family != "make"]
    assert len(grid) == 200
    assert len({row.name for row in rows}) == len({row.kind for row in rows}) == len(rows)
    assert {row.operation for row in grid} == {"put", "get", "acc", "fop", "cas", "none"}
    assert set(windows.rows(quick=True)) < set(rows)


def timed(row: windows.WindowRow, with_: float) -> dict[bool, list[float]]:
    return {False: [100.0 + number for number in range(9)], True: [with_ + number for number in range(9)]}


def test_the_slower_rows_of_windows_are_counted_and_those_with_gaps_have_their_goal():
    put = windows.WindowRow("put", "lock", "idle", 0, 8)
    gaps = windows.WindowRow("put", "lock", "idle", 8, 1024)
    made = windows.WindowRow("make", "create", "with", 0, 4096)
    measured = windows.table(
        {(put, "A"): timed(put, 150.0), (gaps, "A"): timed(gaps, 20.0), (made, "A"): timed(made, 900.0)}
    )
    assert [row["row"] for row in windows.slower(measured)] == [put.name]
    goals = windows.goals(measured)
    assert [(goal["rows"], goal["met"]) for goal in goals] == [(1, True), (2, True), (2, False)]
    assert goals[0]["reached"] == pytest.approx(104 / 24)


@pytest.mark.skipif(not jobs.mpis(), reason="no MPI is here")
def test_windows_are_measured_under_every_mpi(tmp_path):
    measured = measured_by("windows", "--only", "8 B, flush, target idle", "--out", str(tmp_path))
    names = {row.name for row in windows.rows(quick=True) if "8 B, flush, target idle" in row.name}
    assert {one["row"] for one in measured} == names
    assert len({one["mpi"] for one in measured}) == len(jobs.mpis())
    for one in measured:
        assert one["samples"] == messages.QUICK.launches * messages.QUICK.rounds
        assert one["with_ns"] > 0
    assert len((tmp_path / "windows.csv").read_text(encoding="utf-8").splitlines()) == len(measured) + 1


@pytest.mark.skipif(not jobs.mpis(), reason="no MPI is here")
@pytest.mark.parametrize(
    "row",
    [
        windows.WindowRow("put", "lock", "idle", 8, 1024),
        windows.WindowRow("get", "fence", "with", 0, 1024),
        windows.WindowRow("acc", "pscw", "with", 4096, 32 << 10),
        windows.WindowRow("fop", "flush", "computing", 0, 8),
        windows.WindowRow("cas", "all", "barrier", 0, 8),
    ],
    ids=lambda row: row.operation,
)
def test_no_access_is_timed_whose_bytes_are_wrong(row, tmp_path):
    dies = any(operation == row.operation for _, operation in windows.ENDS_BY_SIGNAL)  # Open MPI 4 does
    living = [mpi for mpi in jobs.mpis() if not (dies and mpi.is_openmpi)]
    if not living:
        pytest.skip("the MPI that is here ends by a signal in that access")
    mpi = living[0]
    source = (jobs.SOURCES / windows.SOURCE).read_text(encoding="utf-8")
    places = {
        "put": ("Put(own,", "Put(own + 1,"),
        "get": ("Get(into,", "Get(into + 1,"),
        "acc": ("Accumulate(own,", "Accumulate(own + 1,"),
        "fop": ("type, 1, 0, MPI_SUM", "type, 1, 1, MPI_SUM"),
        "cas": ("&compare, into, type, 1, 0", "&compare, into, type, 1, 1"),
    }
    right, wrong = places[row.operation]
    assert source.count(right) == 1
    (tmp_path / "wrong.c").write_text(source.replace(right, wrong), encoding="utf-8")
    for name, is_right in ((jobs.SOURCES / windows.SOURCE, True), (tmp_path / "wrong.c", False)):
        program = tmp_path / "program"
        include = f"-I{jobs.SOURCES}"
        words = [str(mpi.compiler), "-O2", include, str(name), "-o", str(program)]
        subprocess.run(words, check=True, capture_output=True, timeout=seconds(60))
        job = jobs.Job(mpi, program, tmp_path / f"job-{name.name}", {})
        try:
            assert (set(job.hashes(row.kind)) == {1}) == is_right
            if is_right:
                assert min(job.time_ns(row.kind, 2, 3)) > 0
            else:
                with pytest.raises(Trouble, match="wrong bytes") as raised:
                    job.time_ns(row.kind, 2, 3)
                assert raised.value.code == "mismatch"
                assert set(job.hashes(row.kind)) != {1}  # every rank has answered, and answers again
        finally:
            job.close()


class FakeJob:
    """A job whose bytes are right until the call of that number."""

    def __init__(self, name: str, wrong_from: int):
        self.name, self.calls_left = name, wrong_from

    def hashes(self, kind: str) -> list[int]:
        return [1, 1]

    def time_ns(self, kind: str, repetitions: int, calls: int) -> list[float]:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise Trouble("mismatch", f"{self.name}: error: {jobs.WRONG_BYTES} 1")
        return [1e6] * repetitions


@pytest.mark.parametrize("wrong_from", [0, 1, 4])
@pytest.mark.parametrize("layer", [False, True])
def test_a_sample_with_wrong_bytes_leaves_out_the_row_of_a_plain_mpi_only(wrong_from, layer, capsys):
    row, effort = windows.rows()[0], messages.Effort(launches=1, rounds=5, sample_ns=1e6)
    mpi = jobs.mpis()[0] if jobs.mpis() else None
    wrong, right = FakeJob("One", wrong_from), FakeJob("One", 1000)
    running = [
        (messages.Variant(mpi, True, has, False), wrong if has == layer else right) for has in (False, True)
    ]
    other = [(messages.Variant(mpi, True, has, False), FakeJob("Two", 1000)) for has in (False, True)]
    times: windows.Times = {}
    if layer:
        with pytest.raises(Trouble, match=f"{row.name}, One with the layer: wrong bytes"):
            windows.measure_row(row, running + other, effort, times, set())
        return
    windows.measure_row(row, running + other, effort, times, left := set())
    assert left == {(row, "One")}
    assert list(times) == [(row, "Two")]
    assert [len(samples) for samples in times[row, "Two"].values()] == [5, 5]
    assert capsys.readouterr().err.count("One by itself makes wrong bytes") == 1


@pytest.mark.parametrize(
    "words", [["collectives", "--kind", "both"], ["collectives", "calls"], ["--fresh-data"]]
)
def test_words_that_do_not_go_together_are_refused(words):
    done = bench(*words)
    assert done.returncode == 2
    assert words[0] in done.stderr
