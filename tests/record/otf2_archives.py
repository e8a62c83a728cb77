"""Small OTF2 archives of two ranks for tests, call by call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ["Init", "Send", "Recv", "Sendrecv", "Isend", "Irecv", "Iallgather", "Ibarrier", "Barrier", "Wait"]
NAMES += ["Waitall", "Cancel", "Comm_split", "File_open", "Win_fence", "Finalize"]


class Rank:
    """Writes a rank's calls; each begins 100 ns after the one before and lasts 50."""

    def __init__(self, writer: Any, regions: dict[str, Any]) -> None:
        self.writer = writer
        self.regions = regions
        self.now = 1000

    def enter(self, name: str, *events: Callable[[Any, int], None]) -> None:
        self.now += 100
        self.writer.enter(self.now, self.regions[name])
        for number, event in enumerate(events, 1):
            event(self.writer, self.now + number)

    def call(self, name: str, *events: Callable[[Any, int], None]) -> None:
        self.enter(name, *events)
        self.writer.leave(self.now + 50, self.regions[name])


@contextmanager
def archive(folder: Path) -> Iterator[tuple[Rank, Rank, Any]]:
    """Both ranks, behind their MPI_Init, and MPI_COMM_WORLD. The anchor is traces.otf2 in the folder."""
    import otf2

    mpi, roles, kinds = otf2.Paradigm.MPI, otf2.RegionRole, otf2.GroupType
    with otf2.writer.open(str(folder), timer_resolution=10**9) as writer:
        make = writer.definitions
        node = make.system_tree_node("node")
        groups = [make.location_group(f"MPI Rank {rank}", system_tree_parent=node) for rank in range(2)]
        places = [make.location("Master thread", group=group) for group in groups]
        make.group("", group_type=kinds.COMM_LOCATIONS, paradigm=mpi, members=places)
        both = make.group("", group_type=kinds.COMM_GROUP, paradigm=mpi, members=places)
        world = make.comm("MPI_COMM_WORLD", group=both)
        role = roles.FUNCTION
        regions = {name: make.region(f"MPI_{name}", region_role=role, paradigm=mpi) for name in NAMES}
        ranks = [Rank(writer.event_writer_from_location(place), regions) for place in places]
        for rank in ranks:
            rank.call("Init")
        yield ranks[0], ranks[1], world


def send(peer: int, comm: Any, tag: int, size: int) -> Callable[[Any, int], None]:
    return lambda writer, time: writer.mpi_send(time, peer, comm, tag, size)


def receive(peer: int, comm: Any, tag: int, size: int) -> Callable[[Any, int], None]:
    return lambda writer, time: writer.mpi_recv(time, peer, comm, tag, size)


def isend(peer: int, comm: Any, tag: int, size: int, request: int) -> Callable[[Any, int], None]:
    return lambda writer, time: writer.mpi_isend(time, peer, comm, tag, size, request)


def sent(request: int) -> Callable[[Any, int], None]:
    return lambda writer, time: writer.mpi_isend_complete(time, request)


def irecv(request: int) -> Callable[[Any, int], None]:
    return lambda writer, time: writer.mpi_irecv_request(time, request)


def received(peer: int, comm: Any, tag: int, size: int, request: int) -> Callable[[Any, int], None]:
    return lambda writer, time: writer.mpi_irecv(time, peer, comm, tag, size, request)


def cancelled(request: int) -> Callable[[Any, int], None]:
    return lambda writer, time: writer.mpi_request_cancelled(time, request)
