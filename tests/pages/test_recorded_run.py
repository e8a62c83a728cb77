"""Recorded programs as runs of ranks over time: waits and critical paths of traces with known times."""

from __future__ import annotations

import json

import pytest

import ranks
from conftest import needs_engine
from spinloom.common import core
from spinloom.traces import recorded
from spinloom.traces.pages import recorded_run, runs

pytestmark = needs_engine
WORLD = {"comm": 0}


def record(folder, ranks, of_rank, begun=()):
    """`of_rank`: for each rank the calls (name, begin, end, fields); `begun`: its clock's start, in ns."""
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        start = 10**9 + (begun[rank] if begun else 0)
        writer = core.load().TraceWriter(str(folder), rank, ranks, start, "here", "a test")
        writer.comm(rank, list(range(ranks)))
        writer.comm(0, [rank])
        for name, begin, end, fields in of_rank(rank):
            writer.call(name, begin, end, {**WORLD, **fields})
        writer.end()
    return recorded_run.run_of(recorded.read(folder), "test")


def waits(run):
    return [(run.tracks[each.track].rank, each.start, each.end, each.rank, each.why) for each in run.waits]


def path(run):
    return [(step.start, step.end, step.what, step.rank) for step in run.path]


SENT, RECEIVED = {"peer": 1, "tag": 3, "sends": [64]}, {"peer": 0, "tag": 3, "receives": [64]}


def late_sender(rank):
    yield ("Init", 0, 10, {})
    if rank == 0:
        yield ("Send", 500, 510, SENT)
    else:
        yield ("Recv", 100, 540, RECEIVED)
    yield ("Finalize", 600, 610 + rank, {})


def test_a_receive_waits_for_a_late_sender(tmp_path):
    run = record(tmp_path, 2, late_sender)
    assert waits(run) == [(1, 100, 500, 0, "rank {rank} had not sent")]
    assert path(run) == [
        (0, 10, "other call", 0),
        (10, 500, "computation", 0),
        (500, 540, "receive", 1),
        (540, 600, "computation", 1),
        (600, 611, "other call", 1),
    ]
    (message,) = run.messages
    assert (message.sent, message.there, message.size) == (500, 540, 64)


def test_clocks_that_began_at_other_times_are_one(tmp_path):
    def calls(rank):
        shift = 1000 * rank  # rank 1's clock began 1,000 ns earlier
        yield ("Send", 500, 510, SENT) if rank == 0 else ("Recv", 100 + shift, 540 + shift, RECEIVED)

    run = record(tmp_path, 2, calls, begun=(1000, 0))
    assert waits(run) == [(1, 1100, 1500, 0, "rank {rank} had not sent")]


@pytest.mark.parametrize(("sent_until", "waited"), [(330, True), (120, False)])
def test_a_send_waits_for_a_late_receiver_only_if_it_lasts(tmp_path, sent_until, waited):
    def calls(rank):
        yield ("Send", 100, sent_until, SENT) if rank == 0 else ("Recv", 300, 340, RECEIVED)

    found = waits(record(tmp_path, 2, calls))
    assert found == ([(0, 100, 300, 1, "rank {rank} had not posted its receive")] if waited else [])


def test_a_wait_for_several_messages_is_for_the_one_that_came_last(tmp_path):
    def calls(rank):
        if rank == 0:
            yield ("Irecv", 10, 11, {"peer": 1, "tag": 1, "receives": [8], "requests": [0]})
            yield ("Irecv", 12, 13, {"peer": 2, "tag": 1, "receives": [8], "requests": [1]})
            yield ("Waitall", 20, 400, {"requests": [0, 1]})
        else:
            yield ("Send", 100 * rank, 100 * rank + 5, {"peer": 0, "tag": 1, "sends": [8]})

    assert waits(record(tmp_path, 3, calls)) == [(0, 20, 200, 2, "rank {rank} had not sent")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Barrier", {0: 2, 1: 2}),
        ("Allreduce", {0: 2, 1: 2}),
        ("Bcast", {0: 1}),  # rank 2 comes after the root
        ("Reduce", {1: 2}),
        ("Scan", {}),
    ],
)
def test_collective_calls_wait_for_whom_they_need(tmp_path, name, expected):
    """Rank 1 is the root; ranks come one after another."""

    def calls(rank):
        yield (name, 100 * (rank + 1), 350 + rank, {"peer": 1, "sends": [8], "receives": [8]})

    found = waits(record(tmp_path, 3, calls))
    assert {rank: other for rank, _, _, other, _ in found} == expected
    for rank, start, end, other, why in found:
        assert (start, end) == (100 * (rank + 1), 100 * (other + 1))
        assert why == f"rank {{rank}} had not come to MPI_{name}"


def test_the_n_th_collective_calls_belong_together(tmp_path):
    def calls(rank):
        yield ("Barrier", 100, 110, {})
        yield ("Barrier", 200 + 50 * rank, 260, {})

    assert waits(record(tmp_path, 2, calls)) == [(0, 200, 250, 1, "rank {rank} had not come to MPI_Barrier")]


def test_ranks_that_wait_for_each_other_at_one_time_end_the_path(tmp_path):
    def calls(rank):
        yield ("Barrier", 100, 150, {})
        yield ("Barrier", 200, 250, {})

    run = record(tmp_path, 2, calls)
    assert run.waits == []
    assert run.path == []


def test_a_program_without_calls_has_no_marks(tmp_path):
    run = record(tmp_path, 2, lambda rank: iter(()))
    assert (run.marks, run.waits, run.path, run.end) == ([], [], [], 0)


def test_steps_of_a_path_follow_each_other(tmp_path):
    """A ring of sends: each rank waits for the one before."""

    def calls(rank):
        yield ("Init", 0, 5, {})
        if rank:
            received = {"peer": rank - 1, "tag": 0, "receives": [8]}
            yield ("Recv", 10, 100 * rank + 30, received)
        if rank < 5:
            yield (
                "Send",
                100 * (rank + 1),
                100 * (rank + 1) + 10,
                {"peer": rank + 1, "tag": 0, "sends": [8]},
            )

    run = record(tmp_path, 6, calls)
    assert len(run.waits) == 5
    assert run.path[0].start == 0
    assert run.path[-1].end == run.end == 530
    assert all(one.end == other.start for one, other in zip(run.path, run.path[1:], strict=False))
    assert sum(time for _, _, time in runs.shares(run.path)) == run.end


def test_trace_writes_the_page(tmp_path, spinloom):
    folder = tmp_path / "recorded"
    record(folder, 2, late_sender)
    ran = spinloom("trace", str(folder), "--page", str(tmp_path / "page.html"))
    assert ran.code == 0
    assert "6 calls of 2 ranks" in ran.err
    data = ranks.data_of((tmp_path / "page.html").read_text("utf-8"))
    assert data["unit_ps"] == 1000
    assert data["runs"][0]["pairs"] == [[1, 0, 400, 1, 100, 500, "rank {rank} had not sent", 0, 400]]
    assert "host time" in data["notes"][0]


def test_predict_writes_a_run_for_each_way(tmp_path, spinloom):
    folder = tmp_path / "recorded"
    record(folder, 2, late_sender)
    page = tmp_path / "page.html"
    words = ("predict", str(folder), "--strategies", "rw-cp", "--page", str(page))
    ran = spinloom(*words, "--json")
    assert ran.code == 0
    data = ranks.data_of(page.read_text("utf-8"))
    modelled = [row for row in json.loads(ran.out) if row["times"] == "modelled"]
    assert [(run["name"], run["end"]) for run in data["runs"]] == [
        (row["way"], row["time_ps"]) for row in modelled
    ]
    again = spinloom(*words)
    assert again.code == 2
    assert "--force overwrites" in again.err
