"""OTF2 archives, as Score-P and others write them, as recorded programs.

Contract: convert() makes a recorded program of the MPI events of an archive, one rank for each member of its
MPI locations, and says in sentences what is missing in it. OTF2 has no layouts and only sums of
bytes: buffers are bytes in one block, and what a v-form moved is shared evenly between its peers.
Times: those of the archive, in ns since its first event.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.traces import otf2_export
from spinloom.traces.otf2_calls import PERSISTENT, Call, Calls

NEEDS = (
    "--import of an archive needs OTF2's Python package (pip install otf2; Debian: python3-otf2), not here"
)
NS_PER_S = 1_000_000_000
NOBODY = -2
ANY = -1
WORLD, ITSELF = 0, 1
COMPLETIONS = ("Wait", "Test")
MAKES_COMM = ("Comm_create", "Comm_dup", "Comm_split", "Cart_create", "Cart_sub", "Graph_create")
MAKES_COMM += ("Dist_graph_create", "Intercomm_create", "Intercomm_merge")
UNTOLD_REQUESTS = (
    "calls that do not block, of which the archive tells no request: a Wait of which it tells nothing is "
    "taken as the end of the oldest"
)
# A matched receive is one of the message that it got: the probe before it is told without one.
OTHER_NAMES = {"Init_thread": "Init", "Mrecv": "Recv", "Imrecv": "Irecv"}


def is_archive(path: Path) -> bool:
    return path.suffix == ".otf2" and path.is_file()


def convert(source: Path, directory: Path) -> list[str]:
    try:
        import _otf2
        import otf2
        import otf2.error
    except (ImportError, OSError):
        raise Trouble("environment", NEEDS) from None
    try:
        with otf2.reader.open(str(source)) as archive:
            importer = Importer(otf2, archive)
            importer.read()
            importer.write(directory, str(source))
    except (_otf2.ErrorCodes.Error, otf2.error.Error, otf2.error.TraceReaderError) as error:
        raise Trouble("invalid", f"{source} is no OTF2 archive that can be read: {error}") from None
    return importer.remarks()


class Importer:
    def __init__(self, otf2: Any, archive: Any) -> None:
        self.otf2 = otf2
        self.archive = archive
        names = core.load().trace_calls()
        self.known = set(names)
        self.nonblocking = set(names[1::2]) - set(names[::2])  # Iprobe and Improbe make no requests
        self.locations = self.mpi_locations()
        self.rank_of = {location: rank for rank, location in enumerate(self.locations)}
        groups = {location.group: rank for rank, location in enumerate(self.locations)}
        for location in archive.definitions.locations:  # other threads of these processes
            if location.group in groups:
                self.rank_of.setdefault(location, groups[location.group])
        clock = archive.definitions.clock_properties
        self.resolution, self.start = max(1, clock.timer_resolution), clock.global_offset
        begun = clock.realtime_timestamp
        self.begun_unix_ns = begun if 0 <= begun < 2**63 else 0
        self.left_out: Counter[str] = Counter()
        self.untold: Counter[str] = Counter()  # calls of which the archive has no more than their times
        self.notes: Counter[str] = Counter()
        self.ranks = [RankImport(self, rank) for rank in range(len(self.locations))]

    def mpi_locations(self) -> list[Any]:
        kinds = self.otf2.GroupType
        for group in self.archive.definitions.groups:
            if group.group_type == kinds.COMM_LOCATIONS and group.paradigm == self.otf2.Paradigm.MPI:
                return list(group.members)
        raise Trouble("invalid", "the archive has no locations of MPI: it is of no MPI program")

    def read(self) -> None:
        for location, event in self.archive.events:
            rank = self.rank_of.get(location)
            if rank is not None:
                self.ranks[rank].calls.take(location, event)

    def ns(self, time: int) -> int:
        return max(0, (time - self.start) * NS_PER_S // self.resolution)

    def write(self, directory: Path, source: str) -> None:
        for rank in self.ranks:
            rank.write(directory, source)

    def remarks(self) -> list[str]:
        sentences = []
        if self.left_out:
            calls_text = ", ".join(f"{times} MPI_{name}" for name, times in sorted(self.left_out.items()))
            sentences.append(
                f"left out: {sum(self.left_out.values())} calls that move nothing between ranks or are not "
                f"known, whose time is taken as computation: {calls_text}"
            )
        if self.untold:
            calls_text = ", ".join(f"{times} MPI_{name}" for name, times in sorted(self.untold.items()))
            sentences.append(
                f"{sum(self.untold.values())} calls of which the archive tells only their times, neither the "
                f"communicator nor bytes: {calls_text}; a prediction keeps their times"
            )
        sentences += [f"{times} {note}" for note, times in sorted(self.notes.items())]
        sentences.append("OTF2 has no layouts: buffers are contiguous bytes, and receives name whom they got")
        return sentences


class RankImport:
    def __init__(self, importer: Importer, rank: int) -> None:
        self.importer = importer
        self.rank = rank
        self.calls = Calls(importer.otf2.events, importer.ns, importer.notes)
        self.comms: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.made_comms: set[int] = {WORLD, ITSELF}
        self.find_comms()

    def find_comms(self) -> None:
        otf2 = self.importer.otf2
        location = self.importer.locations[self.rank]
        everyone = set(self.importer.locations)
        own: list[Any] = []
        world = None
        for comm in self.importer.archive.definitions.comms:
            if comm.group.group_type == otf2.GroupType.COMM_SELF:
                self.numbers[comm] = ITSELF
            elif location in comm.group.members and everyone.issuperset(comm.group.members):
                is_world = comm.parent is None and set(comm.group.members) == everyone
                if world is None and is_world:
                    world = comm
                else:
                    own.append(comm)
        if world is not None:
            self.numbers[world] = WORLD
        for number, comm in enumerate(own, start=2):
            self.numbers[comm] = number
        self.comms = own

    def size(self, number: int) -> int:
        if number == ITSELF:
            return 1
        return len(self.importer.locations) if number == WORLD else len(self.comms[number - 2].group.members)

    def write(self, directory: Path, source: str) -> None:
        importer = self.importer
        host = importer.locations[self.rank].group.system_tree_parent
        writer = core.load().TraceWriter(
            directory,
            self.rank,
            len(importer.locations),
            importer.begun_unix_ns,
            host.name if host else "",
            source,
        )
        writer.comm(self.rank, list(range(len(importer.locations))))
        writer.comm(0, [self.rank])
        for comm in self.comms:
            members = list(comm.group.members)
            parent = self.numbers.get(comm.parent) if comm.parent is not None else None
            number = self.numbers[comm]
            writer.comm(
                members.index(importer.locations[self.rank]),
                [importer.rank_of[each] for each in members],
                parent if parent is not None and parent < number else None,
            )
        slots = Slots()
        unfinished = self.calls.unfinished()
        begun = [call for call in unfinished if call.has_message or call.begun_requests or call.started_calls]
        for call in sorted(self.calls.ended + begun, key=lambda call: call.end):
            for each in call.started_calls or [call]:
                each.end = call.end
                self.write_call(writer, each, slots)
        if slots.by_request:
            importer.notes["requests that no call completes"] += len(slots.by_request)
        within = self.within(unfinished)
        if within is None:
            writer.end()
        else:
            writer.end_within(within.name, within.begin)

    def within(self, unfinished: list[Call]) -> Call | None:
        """The call that the rank is in when the archive ends."""
        if not unfinished:
            return None
        call = unfinished[0]
        name = OTHER_NAMES.get(call.name, call.name)
        name = "Comm_make" if name.startswith(MAKES_COMM) else name
        if name not in self.importer.known:
            self.importer.notes[f"ranks are in MPI_{call.name} when the archive ends"] += 1
            return None
        return replace(call, name=name)

    def write_call(self, writer: Any, call: Call, slots: Slots) -> None:
        name = self.name_of(call)
        if name is None:
            self.importer.left_out[call.name] += 1
            return
        fields: dict[str, Any] = {}
        number = self.numbers.get(call.comm) if call.comm is not None else None
        if call.comm is not None and number is None:
            self.importer.notes["calls between groups of ranks, which are left out"] += 1
            return
        if name.startswith(COMPLETIONS):
            fields["cancelled"] = slots.slots_of(call.cancelled)
            fields["requests"] = slots.end(call.ended_requests)
            if name.startswith("Test") and not call.ended_requests:
                call.polls = call.polls or 1
            elif name in ("Wait", "Waitall") and not call.ended_requests:
                fields["requests"] = slots.end_untold(1 if name == "Wait" else None)
        elif name in ("Iprobe", "Improbe"):
            call.polls = call.polls or 1
        elif "root" in call.fields:
            fields.update(self.blocks(call, name, number or 0))
        elif "end" in name.lower() or "recv" in name.lower():
            fields["peer"] = NOBODY
            if "sendrecv" in name.lower():
                fields["receive_peer"] = NOBODY
            fields.update(call.fields)
            if call.begun_requests and not call.has_message:
                fields.update({"peer": ANY, "tag": ANY})  # nothing is told of what it waited for
            elif not call.has_message:
                number = WORLD
        elif call.has_message:
            fields.update(call.fields)
        elif is_collective(name):
            self.importer.untold[call.name] += 1
        if number is not None:
            fields.setdefault("comm", number)
        if call.begun_requests:
            fields["requests"] = [slots.begin(request) for request in call.begun_requests]
        elif name in ("Isend", "Irecv", "Issend", "Irsend", "Ibsend"):
            fields["requests"] = [slots.lowest_free()]  # nobody gets this slot: no event tells of the request
        elif name in self.importer.nonblocking:
            self.importer.notes[UNTOLD_REQUESTS] += 1
            fields["requests"] = [slots.begin_untold()]
        writer.call(name, call.begin, max(call.begin, call.end), fields, call.polls)

    def name_of(self, call: Call) -> str | None:
        if call.name in PERSISTENT or call.name.endswith("_init") or call.name == "Request_free":
            self.importer.notes["calls of persistent requests, whose starts are calls that do not block"] += 1
            return None
        name = OTHER_NAMES.get(call.name, call.name)
        if call.has_message and call.name.startswith(("Comm_", "Cart_", "Graph_", "Dist_graph_", "Cart")):
            return "Comm_free" if call.name == "Comm_free" else "Comm_make"
        return name if name in self.importer.known and not name.startswith(("File_", "Win_")) else None

    def blocks(self, call: Call, name: str, number: int) -> dict[str, Any]:
        """Returns what of the sums is each block: for each peer, or for all."""
        size, sent, received = self.size(number), call.fields["sent"], call.fields["received"]
        root = call.fields["root"]
        is_root = root == self.rank_in(number)
        base = (
            name[1:].capitalize() if name[0] == "I" and name[1:].capitalize() in self.importer.known else name
        )
        rooted = base in ("Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Reduce")
        fields: dict[str, Any] = {"peer": root} if rooted else {}
        if base in ("Comm_make", "Comm_idup"):
            return {"comm": self.new_comm(number)}
        if base == "Bcast":  # a sender to all may count it for each of them
            fields.update({"sends": [received or sent]} if is_root else {"receives": [received]})
        elif base in ("Gather", "Gatherv"):
            fields["sends"] = [sent]
            if is_root:
                fields["receives"] = shares(received, size) if base[-1] == "v" else [received // size]
        elif base in ("Scatter", "Scatterv"):
            fields["receives"] = [received]
            if is_root:
                fields["sends"] = shares(sent, size) if base[-1] == "v" else [sent // size]
        elif base in ("Allgather", "Allgatherv"):
            own = received // size if base == "Allgather" else min(sent, received)
            fields["sends"] = [own]
            fields["receives"] = shares(received, size) if base[-1] == "v" else [own]
        elif base in ("Alltoallv", "Alltoallw"):
            fields.update({"sends": shares(sent, size), "receives": shares(received, size)})
        elif base == "Alltoall":
            fields.update({"sends": [sent // size], "receives": [received // size]})
        elif base == "Reduce":
            fields["sends"] = [sent]
            if is_root:
                fields["receives"] = [sent]
        elif base in ("Allreduce", "Scan", "Exscan"):
            own = min(sent or received, received or sent)
            fields.update({"sends": [own], "receives": [own]})
        elif base == "Reduce_scatter":
            fields.update({"sends": shares(sent, size), "receives": [received]})
        elif base == "Reduce_scatter_block":
            fields.update({"sends": [sent], "receives": [received]})
        if base in ("Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw", "Reduce_scatter"):
            self.importer.notes[
                "calls with counts for each peer, of which only the sum is told: shared evenly"
            ] += 1
        return fields

    def rank_in(self, number: int) -> int:
        if number < 2:
            return self.rank if number == WORLD else 0
        return list(self.comms[number - 2].group.members).index(self.importer.locations[self.rank])

    def new_comm(self, number: int) -> int:
        """Some name the new communicator, others the one that it is made of."""
        if number not in self.made_comms:
            self.made_comms.add(number)
            return number
        for comm in self.comms:
            candidate = self.numbers[comm]
            if candidate not in self.made_comms and self.numbers.get(comm.parent) == number:
                self.made_comms.add(candidate)
                return candidate
        return number


class Slots:
    """The lowest free one is taken next, as the recorder does."""

    def __init__(self) -> None:
        self.by_request: dict[Any, int] = {}  # the slot of each request's number
        self.untold: list[object] = []  # those without one
        self.used: set[int] = set()

    def lowest_free(self) -> int:
        slot = 0
        while slot in self.used:
            slot += 1
        return slot

    def begin(self, request: Any) -> int:
        slot = self.lowest_free()
        self.used.add(slot)
        self.by_request[request] = slot
        return slot

    def begin_untold(self) -> int:
        """Begins a request that has no number."""
        self.untold.append(object())
        return self.begin(self.untold[-1])

    def end_untold(self, most: int | None) -> list[int]:
        """Ends the `most` oldest requests without numbers; all of them if None."""
        ended, self.untold = self.untold[:most], self.untold[most:] if most is not None else []
        return self.end(ended)

    def slots_of(self, requests: list[int]) -> list[int]:
        return [self.by_request[request] for request in requests if request in self.by_request]

    def end(self, requests: list[Any]) -> list[int]:
        slots = [self.by_request.pop(request) for request in requests if request in self.by_request]
        self.used.difference_update(slots)
        return slots


def is_collective(name: str) -> bool:
    base, _ = otf2_export.base_of(name)
    return "eighbor_" in base or (base in otf2_export.COLLECTIVES and not base.startswith("Comm_"))


def shares(total: int, peers: int) -> list[int]:
    return [total // peers + (peer < total % peers) for peer in range(peers)]
