"""Recorded programs as OTF2 archives: every call and message is there, as OTF2's own reader sees them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from layer_programs import MPIS, programs_of
from patience import seconds
from spinloom.traces import otf2_export, recorded

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
    program = programs_of(HERE / "calls.c")(mpi)
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


# Import: what an archive says, as a recorded program again.


def rows_of(directory: Path) -> list[list[tuple]]:
    """Of each rank its calls, with times since the first rank began."""
    traces = recorded.read(directory)
    start = min(one.begun_unix_ns + recorded.events(one)["begin_ns"][0] for one in traces)
    found = []
    for one in traces:
        columns, signatures = recorded.events(one), one.signatures()
        offset = one.begun_unix_ns - start
        rows = []
        for event in range(one.events):
            row = signatures[columns["signature"][event]]
            times = (offset + columns["begin_ns"][event], offset + columns["end_ns"][event])
            # A matched receive is imported as one of the message that it got.
            rows.append((row["call"].replace("Mrecv", "Recv"), columns["polls"][event], *times, row))
        found.append(rows)
    return found


@pytest.fixture(scope="module")
def imported(archive, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("imported") / "calls"
    done = spinloom("trace", archive, "--import", directory)
    assert done.returncode == 0, done.stderr
    assert "OTF2 has no layouts: buffers are contiguous bytes" in done.stderr
    return directory


LEFT_OUT = re.compile(r"_init$|^Start|^Request_free$|^Cancel$")


def test_export_and_import_keep_calls_and_times(trace, imported):
    before, after = rows_of(trace), rows_of(imported)
    assert len(before) == len(after) == 3
    for one, other in zip(before, after, strict=True):
        kept = [row for row in one if not LEFT_OUT.search(row[0])]
        starts = sum(len(row[4]["requests"]) for row in one if row[0].startswith("Start"))
        # What persistent requests start is a call that does not block.
        begun = Counter(row[:4] for row in other) - Counter(row[:4] for row in kept)
        assert sum(begun.values()) == starts
        assert {row[0] for row in begun} <= {"Isend", "Irecv"}
        assert not Counter(row[:4] for row in kept) - Counter(row[:4] for row in other)


def test_export_and_import_keep_peers_tags_and_bytes(trace, imported):
    """All that a send, a collective operation and a blocking receive of a certain source says."""
    traces, others = recorded.read(trace), recorded.read(imported)
    for rank, (one, other) in enumerate(zip(rows_of(trace), rows_of(imported), strict=True)):
        comms = [found[rank].comms() for found in (traces, others)]
        places = {row[:4]: row[4] for row in other}
        compared = Counter()
        for call, polls, begin, end, row in one:
            if LEFT_OUT.search(call) or polls or row["comm"] == 2**32 - 1:
                continue
            found = places[call, polls, begin, end]
            base = otf2_export.base_of(call)[0]
            if base in otf2_export.SENDS | otf2_export.BOTH:
                keys = ["peer", "tag", "sent_bytes"]
            elif base in otf2_export.COLLECTIVES:
                keys = ["sent_bytes"] + ["peer"] * (otf2_export.COLLECTIVES[base] in otf2_export.ROOTED)
                keys += ["received_bytes"] * (base not in ("Reduce", "Allreduce"))
            else:
                continue
            assert {key: found[key] for key in keys} == {key: row[key] for key in keys}, (call, begin)
            members = [
                of[which["comm"]]["world_ranks"] for of, which in zip(comms, (row, found), strict=True)
            ]
            assert members[0] == members[1], (call, begin)
            compared[base] += 1
        assert sum(compared.values()) > 10
    messages = [recorded.core.load().trace_messages(recorded.read(one)) for one in (trace, imported)]
    ends = [Counter((one[0], one[3], one[6]) for one in found) for found in messages]
    assert ends[0] == ends[1]


def test_export_and_import_keep_communicators(trace, imported):
    for one, other in zip(recorded.read(trace), recorded.read(imported), strict=True):
        members = [{tuple(comm["world_ranks"]) for comm in rank.comms()} for rank in (one, other)]
        assert members[0] == members[1]
        named = [{comm["parent"] for comm in rank.comms()} for rank in (one, other)]
        assert named[0] == named[1]


def as_score_p_writes(folder: Path) -> Path:
    """Two ranks: a ring without blocking, a split, an all-reduce, a broadcast that counts what each gets;
    100 MHz, and a clock that does not begin at 0."""
    import otf2

    mpi, roles = otf2.Paradigm.MPI, otf2.RegionRole
    with otf2.writer.open(str(folder), timer_resolution=100_000_000) as archive:
        make = archive.definitions
        node = make.system_tree_node("n7", class_name="node")
        groups = [make.location_group(f"MPI Rank {rank}", system_tree_parent=node) for rank in range(2)]
        places = [make.location("Master thread", group=group) for group in groups]
        make.group("", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=mpi, members=places)
        both = make.group("", group_type=otf2.GroupType.COMM_GROUP, paradigm=mpi, members=tuple(places))
        alone = make.group("", group_type=otf2.GroupType.COMM_SELF, paradigm=mpi, members=())
        world = make.comm("MPI_COMM_WORLD", group=both)
        make.comm("MPI_COMM_SELF", group=alone)
        half = make.comm("", group=both, parent=world)
        names = ["Init", "Isend", "Irecv", "Waitall", "Comm_split", "Allreduce", "Bcast"]
        names += ["Comm_rank", "Finalize"]
        of = {name: make.region(f"MPI_{name}", region_role=roles.FUNCTION, paradigm=mpi) for name in names}
        main = make.region("main", region_role=roles.FUNCTION, paradigm=otf2.Paradigm.COMPILER)
        operations = otf2.CollectiveOp
        for rank, place in enumerate(places):
            writer, now = archive.event_writer_from_location(place), [5_000]

            def call(name, *events, writer=writer, now=now):
                writer.enter(now[0], of[name])
                for event in events:
                    now[0] += 10
                    event(now[0])
                now[0] += 10
                writer.leave(now[0], of[name])
                now[0] += 100

            def ended(operation, comm, root, sent, received, writer=writer):
                return lambda time: writer.mpi_collective_end(time, operation, comm, root, sent, received)

            peer = 1 - rank
            writer.enter(now[0], main)
            call("Init")
            call("Comm_rank")
            call("Irecv", lambda time, w=writer: w.mpi_irecv_request(time, 40))
            call("Isend", lambda time, w=writer, p=peer: w.mpi_isend(time, p, world, 7, 4096, 41))
            call(
                "Waitall",
                lambda time, w=writer, p=peer: w.mpi_irecv(time, p, world, 7, 4096, 40),
                lambda time, w=writer: w.mpi_isend_complete(time, 41),
            )
            call("Comm_split", ended(operations.CREATE_HANDLE, world, 2**32 - 1, 0, 0))
            call("Allreduce", ended(operations.ALLREDUCE, half, 2**32 - 1, 16, 8))
            call("Bcast", ended(operations.BCAST, half, 1, 200 if rank == 1 else 0, 100))
            call("Finalize")
            writer.leave(now[0], main)
    return folder / "traces.otf2"


def test_an_archive_as_score_p_writes_it_becomes_a_program(tmp_path):
    archive = as_score_p_writes(tmp_path / "archive")
    directory = tmp_path / "program"
    done = spinloom("trace", archive, "--import", directory)
    assert done.returncode == 0, done.stderr
    assert "left out: 2 calls that move nothing between ranks or are not known" in done.stderr
    assert "2 MPI_Comm_rank" in done.stderr
    for rank, rows in enumerate(rows_of(directory)):
        calls = ["Init", "Irecv", "Isend", "Waitall", "Comm_make", "Allreduce", "Bcast", "Finalize"]
        assert [row[0] for row in rows] == calls
        by_name = {row[0]: row for row in rows}
        # 10 ns a tick. Init and Comm_rank take 10 ticks and 100 follow each, so Irecv begins after 220.
        assert by_name["Irecv"][2:4] == (2200, 2400)
        send, receive = by_name["Isend"][4], by_name["Irecv"][4]
        assert (send["peer"], send["tag"], send["sent_bytes"], send["comm"]) == (1 - rank, 7, 4096, 0)
        assert (receive["peer"], receive["tag"], receive["received_bytes"]) == (1 - rank, 7, 4096)
        assert (
            sorted(by_name["Waitall"][4]["requests"])
            == sorted(send["requests"] + receive["requests"])
            == [0, 1]
        )
        assert by_name["Comm_make"][4]["comm"] == by_name["Allreduce"][4]["comm"] == 2
        assert by_name["Allreduce"][4]["sent_bytes"] == by_name["Allreduce"][4]["received_bytes"] == 8
        cast = by_name["Bcast"][4]
        assert (cast["peer"], cast["sent_bytes"], cast["received_bytes"]) == (
            (1, 100, 0) if rank == 1 else (1, 0, 100)
        )
    assert recorded.read(directory)[0].comms()[2]["parent"] == 0
    checked = spinloom("trace", directory, "--check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    priced = spinloom("predict", directory, "--json")
    assert priced.returncode == 0, priced.stderr


def test_what_is_no_archive_is_a_sentence(tmp_path):
    archive = tmp_path / "broken.otf2"
    archive.write_text("hello")
    done = spinloom("trace", archive, "--import", tmp_path / "program")
    assert done.returncode == 2
    assert "is no OTF2 archive that can be read" in done.stderr
