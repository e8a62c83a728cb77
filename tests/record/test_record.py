"""What `spinloom record` writes down, for programs whose calls are known, under each MPI of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from layer_programs import MPIS, Mpi, every_mpi, messages, programs_of
from patience import seconds, until
from spinloom.traces import recorded

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
TIME_LIMIT_S = seconds(240)
ANY, NOBODY, NONE = -1, -2, 2**32 - 1


def record(directory: Path, *words: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spinloom"), "record", "-o", str(directory), *map(str, words)]
    return subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=TIME_LIMIT_S
    )


@pytest.fixture(scope="module")
def calls():
    return programs_of(HERE / "calls.c")


@pytest.fixture(scope="module", params=MPIS, ids=lambda mpi: mpi.name)
def traces(request, calls, tmp_path_factory) -> list[Any]:
    """The program's traces of three ranks."""
    mpi = request.param
    program = calls(mpi)
    directory = tmp_path_factory.mktemp("traces") / "trace"
    ran = record(directory, "--", mpi.launcher, *mpi.options, "-n", "3", program)
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.splitlines()) == [f"rank {rank} of 3" for rank in range(3)]
    return recorded.read(directory)


def rows(trace: Any, *names: str) -> list[dict[str, Any]]:
    """The signatures of its events in their order, those of the calls named; each with its polls."""
    signatures = trace.signatures()
    events = recorded.events(trace)
    found = [
        signatures[number] | {"polls": polls}
        for number, polls in zip(events["signature"], events["polls"], strict=True)
    ]
    return [row for row in found if not names or row["call"] in names]


def size_of(trace: Any, blocks: list[tuple[int, int, int]]) -> list[int]:
    types = trace.types()
    return [count * types[kind]["size_bytes"] for _, count, kind in blocks]


def test_a_trace_says_what_it_is_of(traces):
    for rank, trace in enumerate(traces):
        assert (trace.rank, trace.ranks, trace.ended, trace.warning) == (rank, 3, True, "")
        assert trace.host == os.uname().nodename
        assert trace.program.endswith("/calls")
        assert trace.mpi.startswith(("Open MPI", "MPICH"))
        world, self = trace.comms()[:2]
        assert world["world_ranks"] == [0, 1, 2]
        assert (world["rank"], self["world_ranks"]) == (rank, [rank])
        names = [row["call"] for row in rows(trace)]
        assert (names[0], names[-1]) == ("Init", "Finalize")
        times = recorded.events(trace)
        assert all(begin <= end for begin, end in zip(times["begin_ns"], times["end_ns"], strict=True))
        assert list(times["end_ns"]) == sorted(times["end_ns"])


def test_a_loop_has_the_same_signatures_each_time(traces):
    for rank, trace in enumerate(traces):
        receive, send, wait = (rows(trace, name) for name in ("Irecv", "Isend", "Waitall"))
        assert receive[:5] == [receive[0]] * 5
        assert send == [send[0]] * 5
        assert (send[0]["peer"], send[0]["tag"], send[0]["requests"]) == ((rank + 1) % 3, 7, [1])
        assert (receive[0]["peer"], receive[0]["tag"], receive[0]["requests"]) == ((rank + 2) % 3, 7, [0])
        assert wait[:5] == [wait[0]] * 5
        assert (wait[0]["requests"], wait[0]["matches"]) == ([0, 1], [])
        ((_, count, kind),) = send[0]["sends"]
        column = trace.types()[kind]
        assert (count, column["name"], column["size_bytes"], column["extent_bytes"]) == (1, "column", 48, 328)
        assert column["blob"]
        ((_, count, kind),) = receive[0]["receives"]
        double = trace.types()[kind]
        assert (count, double["name"], double["size_bytes"], double["blob"]) == (6, "MPI_DOUBLE", 8, b"")
        assert column["signature_hash"] != 0 != double["signature_hash"]


def test_both_ends_of_a_sendrecv(traces):
    for rank, trace in enumerate(traces):
        (row,) = rows(trace, "Sendrecv")
        ends = (row["peer"], row["tag"], row["receive_peer"], row["receive_tag"])
        assert ends == ((rank + 1) % 3, 1, (rank + 2) % 3, 1)
        assert size_of(trace, row["sends"]) == size_of(trace, row["receives"]) == [12]
        assert row["receives"][0][0] - row["sends"][0][0] == 32 * 8


def test_wildcards_are_told_what_they_met(traces):
    first = [row for row in rows(traces[0], "Recv") if row["tag"] == ANY]
    assert [row["matches"] for row in first] == [[(NONE, 1, 41, 8)], [(NONE, 2, 42, 12)]]
    later = [row for row in rows(traces[0], "Irecv") if row["peer"] == ANY]
    assert len(later) == 2
    (slot,) = later[0]["requests"]
    waits = [row for row in rows(traces[0], "Wait") if row["matches"]]
    met = [row["matches"][0] for row in waits]
    assert [row["requests"] for row in waits] == [[slot], [slot]]
    assert sorted(met) == [(slot, 1, 90, 4), (slot, 2, 90, 4)]


def test_persistent_requests_keep_their_slots(traces):
    for trace in traces:
        (send,), (receive,) = rows(trace, "Send_init"), rows(trace, "Recv_init")
        slots = send["requests"] + receive["requests"]
        assert [row["requests"] for row in rows(trace, "Startall")] == [slots] * 3
        assert [row["requests"] for row in rows(trace, "Waitall")[-3:]] == [slots] * 3
        assert [row["requests"] for row in rows(trace, "Request_free")] == [slots[:1], slots[1:]]


def test_polls_in_vain_are_one_event(traces):
    assert [(row["polls"], row["matches"]) for row in rows(traces[1], "Iprobe")] == [(10, [])]
    tests = rows(traces[1], "Test")
    assert tests[-1]["polls"] == 0
    assert len(tests[-1]["requests"]) == 1
    assert all(row["polls"] > 0 and row["requests"] == [] for row in tests[:-1])


def test_a_matched_probe_and_its_receive(traces):
    (probe,), (receive,) = rows(traces[0], "Mprobe"), rows(traces[0], "Mrecv")
    assert probe["matches"] == receive["matches"] == [(NONE, 1, 21, 20)]
    assert (receive["peer"], receive["tag"], receive["comm"]) == (1, 21, 0)


def test_collective_calls(traces):
    for rank, trace in enumerate(traces):
        (bcast,) = rows(trace, "Bcast")
        sent, received = bcast["sends"], bcast["receives"]
        assert bcast["peer"] == 1
        assert (len(sent), len(received)) == ((1, 0) if rank == 1 else (0, 1))
        assert size_of(trace, sent + received) == [128]
        first, second = rows(trace, "Allreduce")
        assert (first["in_place"], second["in_place"]) == (False, True)
        assert size_of(trace, first["sends"]) == size_of(trace, second["sends"]) == [4]
        assert second["sends"] == second["receives"]
        (reduce,) = rows(trace, "Reduce")
        assert size_of(trace, reduce["sends"]) == [16]
        assert len(reduce["receives"]) == (1 if rank == 0 else 0)
        (gather,) = rows(trace, "Gatherv")
        assert size_of(trace, gather["sends"]) == [8 * (rank + 1)]
        assert size_of(trace, gather["receives"]) == ([8, 16, 24] if rank == 0 else [])
        if rank == 0:
            base = gather["receives"][0][0]
            assert [block[0] - base for block in gather["receives"]] == [0, 32, 64]
        (all_to_all,) = rows(trace, "Alltoall")
        assert size_of(trace, all_to_all["sends"]) == size_of(trace, all_to_all["receives"]) == [8]
        (all_gather,) = rows(trace, "Iallgather")
        assert len(all_gather["requests"]) == 1
        summed = {row["call"]: row for row in trace.calls()}
        assert (summed["Alltoall"]["sent_bytes"], summed["Iallgather"]["received_bytes"]) == (24, 48)


def test_communicators_and_their_neighbours(traces):
    for rank, trace in enumerate(traces):
        half, grid = rows(trace, "Comm_make")
        comms = trace.comms()
        assert comms[half["comm"]]["world_ranks"] == ([1] if rank == 1 else [0, 2])
        line = comms[grid["comm"]]
        assert (line["world_ranks"], line["dims"], line["has_topology"]) == ([0, 1, 2], [3], True)
        around = [rank - 1 if rank > 0 else NOBODY, rank + 1 if rank < 2 else NOBODY]
        assert line["sources"] == line["destinations"] == around
        assert [row["comm"] for row in rows(trace, "Comm_free")] == [half["comm"], grid["comm"]]
        assert [row["comm"] for row in rows(trace, "Barrier")] == [0, half["comm"]]
        (exchange,) = rows(trace, "Neighbor_alltoall")
        assert size_of(trace, exchange["sends"]) == size_of(trace, exchange["receives"]) == [16, 16]
        assert exchange["sends"][1][0] - exchange["sends"][0][0] == 16


def test_the_table_adds_up(traces):
    found = {row["call"]: row for row in recorded.call_rows(traces)}
    assert (found["Isend"]["count"], found["Isend"]["sent_bytes"]) == (15, 15 * 48)
    assert (found["Startall"]["count"], found["Startall"]["sent_bytes"]) == (9, 9 * 32)
    assert found["Send_init"]["sent_bytes"] == 0
    run = sum(trace.run_ns for trace in traces) / 1e9
    for row in found.values():
        assert row["share"] == pytest.approx(row["time_s"] / run)
        assert row["min_time_s"] <= row["max_time_s"] <= row["time_s"] + 1e-12


@every_mpi
def test_random_messages_are_recorded_and_stay_right(mpi: Mpi, tmp_path):
    """The program compares every byte, status and code itself; the layer that looks on changes none."""
    program = programs_of()(mpi)
    directory = tmp_path / "trace"
    directory.mkdir()
    from spinloom.common import data

    settings = {
        "LD_PRELOAD": str(data.mpi_layer()),
        "SPINLOOM_MPI": "off",
        "SPINLOOM_MPI_RECORD": str(directory),
    }
    assert messages(mpi, program, 3, 1, 60, None, **settings) > 0
    found = recorded.read(directory)
    assert len(found) == 3
    assert recorded.warnings(found) == []
    assert all(trace.events > 100 for trace in found)


@every_mpi
def test_a_killed_rank_leaves_its_trace(mpi: Mpi, tmp_path):
    program = programs_of(HERE / "forever.c")(mpi)
    directory = tmp_path / "trace"
    words = [str(BIN / "spinloom"), "record", "-o", str(directory), "--", mpi.launcher, *mpi.options]
    with subprocess.Popen(
        [*words, "-n", "2", str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        line = job.stdout.readline()  # rank 1 has done its rounds, and does more
        os.kill(int(line), signal.SIGKILL)
        _, complaints = job.communicate(timeout=TIME_LIMIT_S)
    assert job.returncode != 0
    assert "did not come to MPI_Finalize" in complaints
    killed = recorded.read_rank(directory, 1)
    assert (killed.ended, killed.warning) == (False, "")
    assert [row["call"] for row in rows(killed, "Init", "Barrier")[:101]] == ["Init"] + ["Barrier"] * 100


@every_mpi
def test_a_hanging_job_says_where(mpi: Mpi, tmp_path):
    """Two ranks that wait for each other: the traces of both say so while they do, and afterwards."""
    program = programs_of(HERE / "hanging.c")(mpi)
    directory = tmp_path / "trace"
    words = [str(BIN / "spinloom"), "record", "-o", str(directory), "--", mpi.launcher, *mpi.options]
    with subprocess.Popen(
        [*words, "-n", "2", str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        pid = int(job.stdout.readline())  # rank 1 is about to receive

        def both_receive() -> bool:
            under_way = [recorded.read_rank(directory, rank).under_way for rank in (0, 1)]
            return all(call and call[0] == "Recv" for call in under_way)

        do_receive = until(both_receive)
        os.kill(pid, signal.SIGKILL)
        _, complaints = job.communicate(timeout=TIME_LIMIT_S)
    assert do_receive
    assert "rank 1 did not come to MPI_Finalize: it was in MPI_Recv, entered " in complaints


def test_a_trace_is_not_overwritten(tmp_path):
    (tmp_path / "notes").write_text("mine")
    ran = record(tmp_path, "--", "true")
    assert ran.returncode == 2
    assert f"{tmp_path} is not empty" in ran.stderr
    ran = record(tmp_path, "--force", "--", "true")
    assert ran.returncode == 0
    assert "no rank was recorded" in ran.stderr
    assert (tmp_path / "notes").read_text() == "mine"
