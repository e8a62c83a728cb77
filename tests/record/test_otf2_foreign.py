"""Archives of other tools: what they do not hold is not made up, and what ends early is named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from otf2_archives import archive, cancelled, irecv, isend, receive, received, send, sent
from patience import seconds
from spinloom.traces import otf2_export, recorded

BIN = Path(sys.executable).parent
TIME_LIMIT_S = seconds(240)
NOTHING_FOUND = (
    "spinloom: every message met a receive; the traces do not tell what receives had room for, of which "
    "types messages were, and where in memory they lay\n"
)

pytestmark = pytest.mark.skipif(not otf2_export.available(), reason="OTF2's Python package is not here")


def spinloom(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spinloom"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S)


def imported(folder: Path) -> tuple[Path, str]:
    """The recorded program, and what the import said."""
    made = folder / "made"
    done = spinloom("trace", folder / "archive/traces.otf2", "--import", made)
    assert done.returncode == 0, done.stderr
    return made, done.stderr


def findings(made: Path) -> list[dict]:
    looked = spinloom("trace", made, "--check", "--json")
    assert looked.returncode == 0, looked.stdout + looked.stderr
    return json.loads(looked.stdout)


def finish(*ranks) -> None:
    for rank in ranks:
        rank.call("Finalize")


def test_two_sends_at_once_do_not_share_memory_that_nobody_told(tmp_path):
    with archive(tmp_path / "archive") as (a, b, world):
        a.call("Isend", isend(1, world, 0, 100, 5))
        a.call("Isend", isend(1, world, 1, 7, 6))
        a.call("Waitall", sent(6), sent(5))
        b.call("Recv", receive(0, world, 0, 100))
        b.call("Recv", receive(0, world, 1, 7))
        finish(a, b)
    made, _ = imported(tmp_path)
    assert findings(made) == []
    assert spinloom("trace", made, "--check").stderr == NOTHING_FOUND


def test_calls_that_the_archive_ends_within_are_named(tmp_path):
    with archive(tmp_path / "archive") as (a, b, world):
        a.call("Send", send(1, world, 3, 8))
        b.call("Recv", receive(0, world, 3, 8))
        a.enter("Send", send(1, world, 7, 1000))
        b.enter("Recv")
    made, said = imported(tmp_path)
    for rank, call in enumerate(("Send", "Recv")):
        assert f"rank {rank} did not come to MPI_Finalize: it was in MPI_{call}, entered " in said
    assert [one.under_way[0] for one in recorded.read(made)] == ["Send", "Recv"]
    (found,) = findings(made)
    assert (found["finding"], found["from"], found["to"], found["tag"], found["bytes"]) == (
        "not received",
        0,
        1,
        7,
        1000,
    )
    assert (found["sure"], found["doubt"]) == (False, "short trace")
    priced = spinloom("predict", made, "--strategies", "rw-cp")
    assert priced.returncode == 0, priced.stderr
    assert "the trace ends before MPI_Finalize" in priced.stderr


@pytest.mark.parametrize(
    ("name", "shown"), [("Comm_split", "Comm_make"), ("Win_fence", "Win_fence"), ("File_open", None)]
)
def test_other_calls_that_the_archive_ends_within(name, shown, tmp_path):
    with archive(tmp_path / "archive") as (a, b, _):
        a.enter(name)
        b.call("Barrier")
    made, said = imported(tmp_path)
    assert "rank 1 did not come to MPI_Finalize: the trace does not tell where it was" in said
    if shown:
        assert f"rank 0 did not come to MPI_Finalize: it was in MPI_{shown}, entered " in said
    else:
        assert f"1 ranks are in MPI_{name} when the archive ends" in said
    checked = spinloom("trace", made, "--check")
    assert "what their ranks did besides is not known" in checked.stderr


def test_a_program_that_stops_at_once_says_where(tmp_path):
    with archive(tmp_path / "archive") as (a, b, world):
        a.enter("Send", send(1, world, 7, 1000))
        b.enter("Recv")
    made, _ = imported(tmp_path)
    priced = spinloom("predict", made)
    assert priced.returncode == 2
    assert "has no call to replay; rank 0 did not come to MPI_Finalize: it was in MPI_Send" in priced.stderr


def test_cancelled_requests_met_nobody(tmp_path):
    with archive(tmp_path / "archive") as (a, b, world):
        b.call("Irecv", irecv(9))
        b.call("Cancel")
        b.call("Wait", cancelled(9))
        a.call("Isend", isend(1, world, 4, 50, 3))
        a.call("Wait", cancelled(3))
        a.call("Send", send(1, world, 4, 60))
        b.call("Irecv", irecv(10))
        b.call("Wait", received(0, world, 4, 60, 10))
        finish(a, b)
    made, said = imported(tmp_path)
    assert "requests that no call completes" not in said
    assert findings(made) == []
    priced = spinloom("predict", made, "--strategies", "rw-cp")
    assert priced.returncode == 0, priced.stderr


def test_a_receive_whose_end_is_not_told_is_doubted(tmp_path):
    """The archive does not say for whom it waited: what is left over may have been its message."""
    with archive(tmp_path / "archive") as (a, b, world):
        b.call("Irecv", irecv(9))
        finish(b)
        finish(a)
    made, said = imported(tmp_path)
    assert "1 requests that no call completes" in said
    (found,) = findings(made)
    assert (found["finding"], found["from"], found["to"], found["sure"]) == ("not sent", None, 1, False)
    with archive(tmp_path / "more/archive") as (a, b, world):
        b.call("Irecv", irecv(9))
        a.call("Send", send(1, world, 4, 60))
        finish(a, b)
    assert findings(imported(tmp_path / "more")[0]) == []


def test_collective_operations_without_requests_keep_their_times(tmp_path):
    with archive(tmp_path / "archive") as (a, b, _):
        for rank in (a, b):
            rank.call("Iallgather")
            rank.call("Ibarrier")
            rank.call("Wait")
            rank.call("Wait")
            rank.call("Barrier")
            rank.call("Finalize")
    made, said = imported(tmp_path)
    assert "6 calls of which the archive tells only their times" in said
    assert "2 MPI_Barrier, 2 MPI_Iallgather, 2 MPI_Ibarrier; a prediction keeps their times" in said
    assert "4 calls that do not block, of which the archive tells no request" in said
    for one in recorded.read(made):
        rows = [one.signatures()[number] for number in recorded.events(one)["signature"]]
        slots = {row["call"]: row["requests"] for row in rows[:3]}
        assert slots == {"Init": [], "Iallgather": [0], "Ibarrier": [1]}
        assert [row["requests"] for row in rows if row["call"] == "Wait"] == [[0], [1]]
    priced = spinloom("predict", made, "--strategies", "rw-cp")
    assert priced.returncode == 0, priced.stderr
    assert (
        "2 Allgather on a communicator that the trace does not tell: keeps its recorded time" in priced.stderr
    )
    assert "4 Wait for what is not replayed: keeps its recorded time" in priced.stderr


def test_an_exchange_with_nobody_at_one_end(tmp_path):
    with archive(tmp_path / "archive") as (a, b, world):
        a.call("Sendrecv", send(1, world, 2, 16))
        b.call("Sendrecv", receive(0, world, 2, 16))
        finish(a, b)
    made, _ = imported(tmp_path)
    assert findings(made) == []
    assert spinloom("predict", made, "--strategies", "rw-cp").returncode == 0
