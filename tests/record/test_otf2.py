"""Recorded programs as OTF2 archives: every call and message is there, as OTF2's own reader sees them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from layer_programs import MPIS, programs_in
from patience import seconds
from spinloom import otf2_export, recorded

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
TIME_LIMIT_S = seconds(240)

pytestmark = pytest.mark.skipif(not otf2_export.available(), reason="OTF2's Python package is not here")


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    """What calls.c does on three ranks."""
    mpi = next((one for one in MPIS if one.present), None)
    if mpi is None:
        pytest.skip("no MPI is here")
    program = programs_in(tmp_path_factory.mktemp("calls"), HERE / "calls.c")(mpi)
    directory = tmp_path_factory.mktemp("traces") / "calls"
    words = [
        BIN / "spinloom",
        "record",
        "-o",
        directory,
        "--",
        mpi.launcher,
        *mpi.options,
        "-n",
        "3",
        program,
    ]
    ran = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=TIME_LIMIT_S)
    assert ran.returncode == 0, ran.stderr
    return directory


def spinloom(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spinloom"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S)


@pytest.fixture(scope="module")
def archive(trace, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("archives") / "archive"
    done = spinloom("trace", trace, "--otf2", target)
    assert done.returncode == 0, done.stderr
    assert f"{target / 'calls.otf2'}" in done.stderr
    return target / "calls.otf2"


@pytest.fixture(scope="module")
def events(archive):
    """(location, event) of all, in their order."""
    import otf2

    with otf2.reader.open(str(archive)) as reader:
        return list(reader.events)


def test_every_call_is_entered_and_left_once(trace, events):
    traces = recorded.read(trace)
    for of_rank in traces:
        entered: Counter[str] = Counter()
        left: Counter[str] = Counter()
        for location, event in events:
            if location.group.name == f"MPI Rank {of_rank.rank}":
                name = type(event).__name__
                if name == "Enter":
                    entered[event.region.name] += 1
                if name == "Leave":
                    left[event.region.name] += 1
        signatures = of_rank.signatures()
        expected = Counter(
            f"MPI_{signatures[number]['call']}" for number in recorded.events(of_rank)["signature"]
        )
        assert entered == left == expected


def test_times_never_go_back_and_the_clock_is_the_traces(trace, archive, events):
    import otf2

    last: dict[object, int] = {}
    for location, event in events:
        assert event.time >= last.get(location, 0)
        last[location] = event.time
    traces = recorded.read(trace)
    start = min(one.begun_unix_ns for one in traces)
    with otf2.reader.open(str(archive)) as reader:
        assert reader.definitions.clock_properties.timer_resolution == 1_000_000_000
        assert len(reader.definitions.locations) == 3
    # The event that ends last: of the rank whose end lies farthest from the start.
    end = max(one.begun_unix_ns + one.run_ns for one in traces)
    assert max(last.values()) == end - start


def test_messages_have_the_bytes_of_the_matrix(trace, events):
    sent: Counter[tuple[int, int]] = Counter()
    received: Counter[tuple[int, int]] = Counter()
    times: Counter[str] = Counter()
    for location, event in events:
        rank = int(location.group.name.removeprefix("MPI Rank "))
        name = type(event).__name__
        times[name] += 1
        if name in ("MpiSend", "MpiIsend"):
            peer = event.communicator.location(event.receiver)
            sent[rank, int(peer.group.name.removeprefix("MPI Rank "))] += event.msg_length
        if name in ("MpiRecv", "MpiIrecv"):
            peer = event.communicator.location(event.sender)
            received[int(peer.group.name.removeprefix("MPI Rank ")), rank] += event.msg_length
    assert sent
    assert sent == received
    assert times["MpiIsend"] == times["MpiIsendComplete"]
    assert times["MpiIrecvRequest"] == times["MpiIrecv"] + times["MpiRequestCancelled"]
    assert times["MpiCollectiveBegin"] == times["MpiCollectiveEnd"] > 0
    assert times["NonBlockingCollectiveRequest"] == times["NonBlockingCollectiveComplete"] > 0
    pairs = recorded.core.load().trace_messages(recorded.read(trace))
    assert times["MpiSend"] + times["MpiIsend"] == times["MpiRecv"] + times["MpiIrecv"] == len(pairs)
    assert sum(sent.values()) == sum(size for *_, size in pairs)


def test_otf2_print_counts_what_the_table_of_calls_counts(trace, archive):
    if shutil.which("otf2-print") is None:
        pytest.skip("otf2-print is not here (Debian: otf2-tools)")
    told = subprocess.run(["otf2-print", archive], capture_output=True, text=True, check=True).stdout
    printed = Counter(re.findall(r'^ENTER .*Region: "MPI_(\w+)"', told, re.MULTILINE))
    table = {row["call"]: row for row in recorded.call_rows(recorded.read(trace))}
    assert set(printed) == set(table)
    for call, row in table.items():
        # Polls in vain that follow each other are one event.
        assert printed[call] == row["count"] if row["polls"] == 0 else printed[call] > row["count"]


def test_a_folder_that_is_not_empty_is_refused(trace, archive):
    done = spinloom("trace", trace, "--otf2", archive.parent)
    assert done.returncode == 2
    assert "is there already" in done.stderr


def test_what_is_missing_without_the_package(trace, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "otf2", None)
    assert not otf2_export.available()
    with pytest.raises(otf2_export.Trouble, match="pip install otf2"):
        otf2_export.export(recorded.read(trace), tmp_path / "archive", "calls")
