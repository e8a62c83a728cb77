"""OTF2 archives, as Score-P and others write them, as recorded programs.

Contract: convert() makes a recorded program of the MPI events of an archive, one rank for each member of its
MPI locations, and says in sentences what is missing in it. OTF2 has no layouts and only sums of
bytes: buffers are bytes in one block, and what a v-form moved is shared evenly between its peers.
Times: those of the archive, in ns since its first event.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from spinloom import core
from spinloom.errors import Trouble
from spinloom.otf2_calls import PERSISTENT, Call, Calls

NEEDS = (
    "--import of an archive needs OTF2's Python package (pip install otf2; Debian: python3-otf2), not here"
)
NS_PER_S = 1_000_000_000
NOBODY = -2
ANY = -1
WORLD, ITSELF = 0, 1
COMPLETIONS = ("Wait", "Test")
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
        self.known = set(core.load().trace_calls())
        self.locations = self.mpi_locations()
        self.rank_of = {location: rank for rank, location in enumerate(self.locations)}
        groups = {location.group: rank for rank, location in enumerate(self.locations)}
        for location in archive.definitions.locations:  # other threads of these processes
            if location.group in groups:
                self.rank_of.setdefault(location, groups[location.group])
        clock = archive.definitions.clock_properties
        self.resolution, self.start = clock.timer_resolution, clock.global_offset
        begun = clock.realtime_timestamp
        self.begun_unix_ns = begun if 0 <= begun < 2**63 else 0
        self.left_out: Counter[str] = Counter()
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
        return (time - self.start) * NS_PER_S // self.resolution

    def write(self, directory: Path, source: str) -> None:
        for rank in self.ranks:
            rank.write(directory, source)

    def remarks(self) -> list[str]:
        found = []
        if self.left_out:
            listed = ", ".join(f"{times} MPI_{name}" for name, times in sorted(self.left_out.items()))
            found.append(
                f"left out: {sum(self.left_out.values())} calls that move nothing between ranks or are not "
                f"known, whose time is taken as computation: {listed}"
            )
        found += [f"{times} {what}" for what, times in sorted(self.notes.items())]
        found.append("OTF2 has no layouts: buffers are contiguous bytes, and receives name whom they got")
        return found


class RankImport:
    def __init__(self, whole: Importer, rank: int) -> None:
        self.whole = whole
        self.rank = rank
        self.calls = Calls(whole.otf2.events, whole.ns, whole.notes)
        self.comms: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.made_comms: set[int] = {WORLD, ITSELF}
        self.find_comms()

    def find_comms(self) -> None:
        otf2 = self.whole.otf2
        location = self.whole.locations[self.rank]
        everyone = set(self.whole.locations)
        own: list[Any] = []
        world = None
        for comm in self.whole.archive.definitions.comms:
            if comm.group.group_type == otf2.GroupType.COMM_SELF:
                self.numbers[comm] = ITSELF
            elif location in comm.group.members:
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
        return len(self.whole.locations) if number == WORLD else len(self.comms[number - 2].group.members)

    def write(self, directory: Path, source: str) -> None:
        whole = self.whole
        host = whole.locations[self.rank].group.system_tree_parent
        writer = core.load().TraceWriter(
            str(directory),
            self.rank,
            len(whole.locations),
            whole.begun_unix_ns,
            host.name if host else "",
            source,
        )
        writer.comm(self.rank, list(range(len(whole.locations))))
        writer.comm(0, [self.rank])
        for comm in self.comms:
            members = list(comm.group.members)
            parent = self.numbers.get(comm.parent) if comm.parent is not None else None
            number = self.numbers[comm]
            writer.comm(
                members.index(whole.locations[self.rank]),
                [whole.rank_of[one] for one in members],
                parent if parent is not None and parent < number else None,
            )
        slots = Slots()
        for call in sorted(self.calls.ended, key=lambda call: call.end):
            for one in call.begun or [call]:
                one.end = call.end
                self.write_one(writer, one, slots)
        if slots.taken:
            whole.notes["requests that no call completes"] += len(slots.taken)
        writer.end()

    def write_one(self, writer: Any, call: Call, slots: Slots) -> None:
        name = self.name_of(call)
        if name is None:
            self.whole.left_out[call.name] += 1
            return
        fields: dict[str, Any] = {}
        number = self.numbers.get(call.comm) if call.comm is not None else None
        if call.comm is not None and number is None:
            self.whole.notes["calls between groups of ranks, which are left out"] += 1
            return
        if name.startswith(COMPLETIONS):
            fields["requests"] = slots.end(call.done)
            if name.startswith("Test") and not call.done:
                call.polls = call.polls or 1
        elif name in ("Iprobe", "Improbe"):
            call.polls = call.polls or 1
        elif "root" in call.fields:
            fields.update(self.blocks(call, name, number or 0))
        elif call.has_message:
            fields.update(call.fields)
        elif "end" in name.lower() or "recv" in name.lower():
            fields.update({"peer": NOBODY, "receive_peer": NOBODY})
            number = WORLD
            fields.update(call.fields)
            if call.made and "recv" in name.lower():
                fields["peer"] = ANY  # it never came
        if number is not None:
            fields.setdefault("comm", number)
        if call.made:
            fields["requests"] = [slots.begin(request) for request in call.made]
        elif name in ("Isend", "Irecv", "Issend", "Irsend", "Ibsend"):
            fields["requests"] = [slots.passing()]  # to nobody: no event tells of the request
        writer.call(name, call.begin, max(call.begin, call.end), fields, call.polls)

    def name_of(self, call: Call) -> str | None:
        if call.name in PERSISTENT or call.name.endswith("_init") or call.name == "Request_free":
            self.whole.notes["calls of persistent requests, whose starts are calls that do not block"] += 1
            return None
        name = OTHER_NAMES.get(call.name, call.name)
        if call.has_message and call.name.startswith(("Comm_", "Cart_", "Graph_", "Dist_graph_", "Cart")):
            return "Comm_free" if call.name == "Comm_free" else "Comm_make"
        return name if name in self.whole.known and not name.startswith(("File_", "Win_")) else None

    def blocks(self, call: Call, name: str, number: int) -> dict[str, Any]:
        """What of the sums is each block: for each peer, or for all."""
        size, sent, received = self.size(number), call.fields["sent"], call.fields["received"]
        root = call.fields["root"]
        is_root = root == self.rank_in(number)
        base = name[1:].capitalize() if name[0] == "I" and name[1:].capitalize() in self.whole.known else name
        rooted = base in ("Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Reduce")
        found: dict[str, Any] = {"peer": root} if rooted else {}
        if base in ("Comm_make", "Comm_idup"):
            return {"comm": self.new_comm(number)}
        if base == "Bcast":  # who sends to all may count it for each of them
            found.update({"sends": [received or sent]} if is_root else {"receives": [received]})
        elif base in ("Gather", "Gatherv"):
            found["sends"] = [sent]
            if is_root:
                found["receives"] = shares(received, size) if base[-1] == "v" else [received // size]
        elif base in ("Scatter", "Scatterv"):
            found["receives"] = [received]
            if is_root:
                found["sends"] = shares(sent, size) if base[-1] == "v" else [sent // size]
        elif base in ("Allgather", "Allgatherv"):
            own = received // size if base == "Allgather" else min(sent, received)
            found["sends"] = [own]
            found["receives"] = shares(received, size) if base[-1] == "v" else [own]
        elif base in ("Alltoallv", "Alltoallw"):
            found.update({"sends": shares(sent, size), "receives": shares(received, size)})
        elif base == "Alltoall":
            found.update({"sends": [sent // size], "receives": [received // size]})
        elif base == "Reduce":
            found["sends"] = [sent]
            if is_root:
                found["receives"] = [sent]
        elif base in ("Allreduce", "Scan", "Exscan"):
            own = min(sent or received, received or sent)
            found.update({"sends": [own], "receives": [own]})
        elif base == "Reduce_scatter":
            found.update({"sends": shares(sent, size), "receives": [received]})
        elif base == "Reduce_scatter_block":
            found.update({"sends": [sent], "receives": [received]})
        if base in ("Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw", "Reduce_scatter"):
            self.whole.notes[
                "calls with counts for each peer, of which only the sum is told: shared evenly"
            ] += 1
        return found

    def rank_in(self, number: int) -> int:
        if number < 2:
            return self.rank if number == WORLD else 0
        return list(self.comms[number - 2].group.members).index(self.whole.locations[self.rank])

    def new_comm(self, number: int) -> int:
        """Some name the new communicator, others the one that it is made of."""
        if number not in self.made_comms:
            self.made_comms.add(number)
            return number
        for comm in self.comms:
            made = self.numbers[comm]
            if made not in self.made_comms and self.numbers.get(comm.parent) == number:
                self.made_comms.add(made)
                return made
        return number


class Slots:
    """The lowest free one is taken next, as the recorder does."""

    def __init__(self) -> None:
        self.taken: dict[int, int] = {}  # by number of request
        self.used: set[int] = set()

    def passing(self) -> int:
        slot = 0
        while slot in self.used:
            slot += 1
        return slot

    def begin(self, request: int) -> int:
        slot = self.passing()
        self.used.add(slot)
        self.taken[request] = slot
        return slot

    def end(self, requests: list[int]) -> list[int]:
        slots = [self.taken.pop(request) for request in requests if request in self.taken]
        self.used.difference_update(slots)
        return slots


def shares(total: int, peers: int) -> list[int]:
    return [total // peers + (one < total % peers) for one in range(peers)]
