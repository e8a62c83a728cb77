"""Recorded programs as OTF2 archives, for the tools that read these (Vampir, Scalasca, otf2-print, ...).

Contract: export() writes an archive: a location for each rank, and more where threads call at the same time;
Enter and Leave of each event; messages and collective operations by OTF2's events for MPI, with their bytes.
What has none is left out of these, not of Enter and Leave, and is returned in sentences.
Times: host time, in ns since the first rank began.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.common.perfetto_file import Lanes
from spinloom.traces import recorded

NEEDS = "--otf2 needs OTF2's Python package (pip install otf2; Debian: python3-otf2), which is not here"
NS_PER_S = 1_000_000_000
NONE = 2**32 - 1
NOBODY = -2
CANCELLED = -4
SENDS = {"Send", "Ssend", "Rsend", "Bsend"}
RECEIVES = {"Recv", "Mrecv"}
BOTH = {"Sendrecv", "Sendrecv_replace"}
COLLECTIVES = {
    "Barrier": "BARRIER",
    "Bcast": "BCAST",
    "Gather": "GATHER",
    "Gatherv": "GATHERV",
    "Scatter": "SCATTER",
    "Scatterv": "SCATTERV",
    "Allgather": "ALLGATHER",
    "Allgatherv": "ALLGATHERV",
    "Alltoall": "ALLTOALL",
    "Alltoallv": "ALLTOALLV",
    "Alltoallw": "ALLTOALLW",
    "Reduce": "REDUCE",
    "Allreduce": "ALLREDUCE",
    "Reduce_scatter": "REDUCE_SCATTER",
    "Reduce_scatter_block": "REDUCE_SCATTER_BLOCK",
    "Scan": "SCAN",
    "Exscan": "EXSCAN",
    "Comm_make": "CREATE_HANDLE",
    "Comm_free": "DESTROY_HANDLE",
}
ROOTED = {"BCAST", "GATHER", "GATHERV", "SCATTER", "SCATTERV", "REDUCE"}

Step = Callable[[Any, int], None]  # writes an event at a time


def available() -> bool:
    try:
        import otf2
    except (ImportError, OSError):
        return False
    return hasattr(otf2, "writer")


def export(traces: list[Any], target: Path, title: str) -> list[str]:
    if not available():
        raise Trouble("environment", NEEDS)
    import otf2

    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Trouble("invalid", f"{target} is there already: choose another folder for --otf2")
    target.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(otf2.writer.Writer(str(target), title, timer_resolution=NS_PER_S)) as archive:
        archive.creator = "spinloom"
        exporter = Exporter(traces, archive)
        exporter.write()
        # The library would write when the export began.
        start = min((trace.begun_unix_ns for trace in traces), default=0)
        if archive._realtime_timestamp is not None:
            archive._realtime_timestamp = Fraction(start, NS_PER_S)
    return exporter.remarks()


class Exporter:
    def __init__(self, traces: list[Any], archive: Any) -> None:
        import otf2

        self.otf2 = otf2
        self.traces = traces
        self.archive = archive
        self.definitions = archive.definitions
        self.regions: dict[str, Any] = {}
        self.without: Counter[str] = Counter()
        self.polls = self.definitions.attribute(
            "polls", "Calls in vain that this one stands for", otf2.Type.UINT32
        )
        self.start = min((trace.begun_unix_ns for trace in traces), default=0)
        self.locations = self.make_locations()
        self.comms = self.make_comms()
        self.received = self.messages_by_receiver()

    def make_locations(self) -> list[Any]:
        """The ranks', in their order."""
        machine = self.definitions.system_tree_node("machine", class_name="machine")
        self.groups = []
        nodes: dict[str, Any] = {}
        locations = []
        for trace in self.traces:
            if trace.host not in nodes:
                nodes[trace.host] = self.definitions.system_tree_node(
                    trace.host or "node", class_name="node", parent=machine
                )
            group = self.definitions.location_group(
                f"MPI Rank {trace.rank}", system_tree_parent=nodes[trace.host]
            )
            self.groups.append(group)
            locations.append(self.definitions.location("Master thread", group=group))
        return locations

    def make_comms(self) -> list[list[Any]]:
        """Communicators by trace and its numbers; None for intercommunicators and ranks without traces."""
        otf2, mpi = self.otf2, self.otf2.Paradigm.MPI
        places = {trace.rank: index for index, trace in enumerate(self.traces)}
        self.definitions.group(
            "MPI locations", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=mpi, members=self.locations
        )
        itself = self.definitions.group(
            "MPI_COMM_SELF", group_type=otf2.GroupType.COMM_SELF, paradigm=mpi, members=()
        )
        by_key: dict[Any, Any] = {}
        comms_of_traces = []
        for trace in self.traces:
            seen: Counter[tuple[int, ...]] = Counter()
            comms_of_trace = []
            for number, comm in enumerate(trace.comms()):
                members = tuple(comm["world_ranks"])
                key = (members, seen[members])
                seen[members] += 1
                if comm["remote_ranks"] or any(rank not in places for rank in members):
                    comms_of_trace.append(None)
                    continue
                if number == 1:
                    key = ("self",)
                if key not in by_key:
                    name = {0: "MPI_COMM_WORLD", 1: "MPI_COMM_SELF"}.get(
                        number, f"communicator {len(by_key)}"
                    )
                    group = itself
                    if number != 1:
                        group = self.definitions.group(
                            f"{name}'s ranks",
                            group_type=otf2.GroupType.COMM_GROUP,
                            paradigm=mpi,
                            members=tuple(self.locations[places[rank]] for rank in members),
                        )
                    parent = None if comm["parent"] is None else comms_of_trace[comm["parent"]]
                    by_key[key] = self.definitions.comm(name, group=group, parent=parent)
                comms_of_trace.append(by_key[key])
            comms_of_traces.append(comms_of_trace)
        return comms_of_traces

    def messages_by_receiver(self) -> dict[tuple[int, int], deque[tuple[int, int]]]:
        """(sender's rank in the world, bytes) of what came, by trace and event that began the receive."""
        messages: dict[tuple[int, int], deque[tuple[int, int]]] = defaultdict(deque)
        for sender, _, _, receiver, began, _, size in core.load().trace_messages(self.traces):
            messages[receiver, began].append((self.traces[sender].rank, size))
        return messages

    def write(self) -> None:
        for index in range(len(self.traces)):
            RankExporter(self, index).write()

    def region(self, call: str, row: dict[str, Any]) -> Any:
        if call not in self.regions:
            roles = self.otf2.RegionRole
            role = roles.POINT2POINT if row["point_to_point"] else roles.FUNCTION
            if base_of(call)[0] in COLLECTIVES:
                role = roles.BARRIER if base_of(call)[0] == "Barrier" else roles.COLL_OTHER
            self.regions[call] = self.definitions.region(
                f"MPI_{call}", region_role=role, paradigm=self.otf2.Paradigm.MPI
            )
        return self.regions[call]

    def remarks(self) -> list[str]:
        return [f"{times} {call}: Enter and Leave only" for call, times in sorted(self.without.items())]


def base_of(call: str) -> tuple[str, str]:
    """("Send", "nonblocking") of "Isend"."""
    if call.endswith("_init"):
        return call.removesuffix("_init"), "persistent"
    base = call[1:].capitalize() if call.startswith("I") else call
    if base in SENDS | RECEIVES | BOTH | set(COLLECTIVES):
        return base, "nonblocking" if base != call else ""
    return ("Comm_make", "nonblocking") if call == "Comm_idup" else (call, "")


def is_cancelled(completion: dict[str, Any], slot: int) -> bool:
    return any(request == slot and source == CANCELLED for request, source, _, _ in completion["matches"])


class RankExporter:
    """One rank: what each event is besides Enter and Leave, then all in the order of time."""

    def __init__(self, exporter: Exporter, index: int) -> None:
        self.exporter = exporter
        self.index = index
        self.trace = exporter.traces[index]
        self.rows = self.trace.signatures()
        self.comms = self.trace.comms()
        self.persistent: dict[int, dict[str, Any]] = {}  # persistent requests, by slot
        self.open: dict[int, list[Callable[[dict[str, Any]], Step]]] = {}  # the steps at each slot's end
        self.requests = 0

    def write(self) -> None:
        columns = recorded.events(self.trace)
        first: dict[int, list[Step]] = {}
        last: dict[int, list[Step]] = {}
        for event in range(self.trace.events):
            row = self.rows[columns["signature"][event]]
            steps = ([], [])
            if columns["polls"][event] == 0 and row["error"] == 0:
                self.add_steps(event, row, *steps)
            first[event], last[event] = steps
        offset = self.trace.begun_unix_ns - self.exporter.start
        lanes = Lanes()
        writers = [self.exporter.archive.event_writer_from_location(self.exporter.locations[self.index])]
        for event in sorted(range(self.trace.events), key=lambda event: columns["begin_ns"][event]):
            begin, end = columns["begin_ns"][event], columns["end_ns"][event]
            lane = lanes.lane(begin, end)
            if lane == len(writers):
                location = self.exporter.definitions.location(
                    f"Thread {lane}", group=self.exporter.groups[self.index]
                )
                writers.append(self.exporter.archive.event_writer_from_location(location))
            row = self.rows[columns["signature"][event]]
            region = self.exporter.region(row["call"], row)
            writer, polls = writers[lane], columns["polls"][event]
            writer.enter(offset + begin, region, attributes={self.exporter.polls: polls} if polls else None)
            for step in first[event]:
                step(writer, offset + begin)
            for step in last[event]:
                step(writer, offset + end)
            writer.leave(offset + end, region)

    def add_steps(self, event: int, row: dict[str, Any], first: list[Step], last: list[Step]) -> None:
        base, form = base_of(row["call"])
        if base in ("Start", "Startall"):
            for slot in row["requests"]:
                if slot in self.persistent:
                    self.begin(event, self.persistent[slot], slot, first, last)
        elif base.startswith(("Wait", "Test")):
            for slot in row["requests"]:
                last.extend(done(row) for done in self.open.pop(slot, []))
        elif base == "Request_free":
            for slot in row["requests"]:
                self.persistent.pop(slot, None)
                self.open.pop(slot, None)
        elif base in SENDS | RECEIVES | BOTH | set(COLLECTIVES):
            if form == "persistent":
                for slot in row["requests"]:
                    self.persistent[slot] = row
            else:
                slot = row["requests"][0] if row["requests"] else NONE
                self.begin(event, row, slot, first, last)
        elif base not in ("Init", "Finalize", "Cancel", "Probe", "Iprobe", "Mprobe", "Improbe"):
            self.exporter.without[f"MPI_{row['call']}, which is no message"] += 1

    def begin(self, event: int, row: dict[str, Any], slot: int, first: list[Step], last: list[Step]) -> None:
        if row["comm"] == NONE:
            return
        comm = self.exporter.comms[self.index][row["comm"]]
        if comm is None:
            self.exporter.without[f"MPI_{row['call']} on communicators of ranks elsewhere"] += 1
            return
        base, _ = base_of(row["call"])
        ends: list[Callable[[dict[str, Any]], Step]] = []
        if base in COLLECTIVES:
            self.collective(base, row, comm, slot, first, last, ends)
        else:
            if base in SENDS | BOTH and row["peer"] != NOBODY:
                self.send(row, comm, slot, first, ends)
            if base in RECEIVES | BOTH:
                self.receive(event, base, row, comm, slot, last, ends)
        if slot != NONE:
            self.open[slot] = ends

    def next_request(self) -> int:
        self.requests += 1
        return self.requests

    def send(
        self,
        row: dict[str, Any],
        comm: Any,
        slot: int,
        first: list[Step],
        ends: list[Callable[[dict[str, Any]], Step]],
    ) -> None:
        peer, tag, size = row["peer"], row["tag"], row["sent_bytes"]
        if slot == NONE:
            first.append(lambda writer, time: writer.mpi_send(time, peer, comm, tag, size))
            return
        request = self.next_request()
        first.append(lambda writer, time: writer.mpi_isend(time, peer, comm, tag, size, request))

        def at_completion(completion: dict[str, Any]) -> Step:
            if is_cancelled(completion, slot):
                return lambda writer, time: writer.mpi_request_cancelled(time, request)
            return lambda writer, time: writer.mpi_isend_complete(time, request)

        ends.append(at_completion)

    def receive(
        self,
        event: int,
        base: str,
        row: dict[str, Any],
        comm: Any,
        slot: int,
        last: list[Step],
        ends: list[Callable[[dict[str, Any]], Step]],
    ) -> None:
        posted = (row["receive_peer"], row["receive_tag"]) if base in BOTH else (row["peer"], row["tag"])
        if posted[0] == NOBODY:
            return

        def received_message(completion: dict[str, Any], slot_of_receive: int) -> tuple[int, int, int] | None:
            """The sender, the tag and the bytes."""
            source, tag = posted
            for request, from_rank, with_tag, _ in completion["matches"]:
                if request == slot_of_receive and from_rank >= 0:
                    source, tag = from_rank, with_tag
            ranks = self.comms[row["comm"]]["world_ranks"]
            waiting = self.exporter.received.get((self.index, event), deque())
            for message in waiting:
                if 0 <= source < len(ranks) and message[0] == ranks[source]:
                    waiting.remove(message)
                    return source, tag, message[1]
            return None

        def no_event(writer: Any, time: int) -> None:
            """No message was found for this receive."""

        def blocking(completion: dict[str, Any]) -> Step:
            message = received_message(completion, NONE)
            if message is None:
                self.exporter.without["receives whose message is not known"] += 1
                return no_event
            source, tag, size = message
            return lambda writer, time: writer.mpi_recv(time, source, comm, tag, size)

        if slot == NONE:
            last.append(blocking(row))
            return
        request = self.next_request()
        last.append(lambda writer, time: writer.mpi_irecv_request(time, request))

        def at_completion(completion: dict[str, Any]) -> Step:
            message = None if is_cancelled(completion, slot) else received_message(completion, slot)
            if message is None:
                if not is_cancelled(completion, slot):
                    self.exporter.without["receives whose message is not known"] += 1
                return lambda writer, time: writer.mpi_request_cancelled(time, request)
            source, tag, size = message
            return lambda writer, time: writer.mpi_irecv(time, source, comm, tag, size, request)

        ends.append(at_completion)

    def collective(
        self,
        base: str,
        row: dict[str, Any],
        comm: Any,
        slot: int,
        first: list[Step],
        last: list[Step],
        ends: list[Callable[[dict[str, Any]], Step]],
    ) -> None:
        operation = getattr(self.exporter.otf2.CollectiveOp, COLLECTIVES[base])
        root = row["peer"] if COLLECTIVES[base] in ROOTED else NONE
        sizes = (row["sent_bytes"], row["received_bytes"])
        if slot == NONE:
            first.append(lambda writer, time: writer.mpi_collective_begin(time))
            last.append(lambda writer, time: writer.mpi_collective_end(time, operation, comm, root, *sizes))
            return
        request = self.next_request()
        first.append(lambda writer, time: writer.non_blocking_collective_request(time, request))
        ends.append(
            lambda _: (
                lambda writer, time: writer.non_blocking_collective_complete(
                    time, operation, comm, root, *sizes, request
                )
            )
        )
