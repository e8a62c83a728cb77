"""The MPI calls of one rank of an OTF2 archive.

Contract: take() takes its events in their order; `ended` has its calls of MPI then, as they ended. A call is
the region MPI_... around events; what its request came to is found by the request's number.
Times: in ns since the archive's first event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PERSISTENT = ("Start", "Startall")


@dataclass
class Call:
    name: str
    begin: int
    end: int = 0
    fields: dict[str, Any] = field(default_factory=dict)
    begun_requests: list[int] = field(default_factory=list)  # their numbers
    ended_requests: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)  # the ended requests that were cancelled
    started_calls: list[Call] = field(default_factory=list)  # Start and Startall: a call for each start
    comm: Any = None
    has_message: bool = False
    polls: int = 0


class Calls:
    def __init__(self, events: Any, ns: Callable[[int], int], notes: Counter[str]) -> None:
        self.events = events  # OTF2's classes
        self.ns = ns  # the ns of a time of the archive
        self.notes = notes
        self.ended: list[Call] = []
        self.depth: dict[Any, list[str]] = {}  # the regions that each location is in
        self.current: dict[Any, Call] = {}
        self.open: dict[int, Call] = {}  # the call that began each request, by number
        self.last = 0  # the time when something happened last

    def unfinished(self) -> list[Call]:
        """Those that the archive ends within, the first one first: they last until its rank's last event."""
        calls = sorted(self.current.values(), key=lambda call: call.begin)
        for call in calls:
            call.end = self.last
        return calls

    def take(self, location: Any, event: Any) -> None:
        self.last = max(self.last, self.ns(event.time))
        if isinstance(event, self.events.Enter):
            regions = self.depth.setdefault(location, [])
            regions.append(event.region.name)
            if event.region.name.startswith("MPI_") and location not in self.current:
                call = Call(event.region.name.removeprefix("MPI_"), self.ns(event.time))
                for attribute, value in (event.attributes or {}).items():
                    if attribute.name == "polls":
                        call.polls = value
                self.current[location] = call
                regions[-1] = ""  # this one ends it
        elif isinstance(event, self.events.Leave):
            regions = self.depth.setdefault(location, [])
            if regions and regions.pop() == "":
                call = self.current.pop(location)
                call.end = self.ns(event.time)
                self.ended.append(call)
        elif type(event).__name__.startswith(("Mpi", "NonBlocking")):
            call = self.current.get(location)
            if call is None:
                self.notes["messages outside of regions MPI_..., which are left out"] += 1
            else:
                self.add_event(call, event)

    def add_event(self, call: Call, event: Any) -> None:
        name = type(event).__name__
        if name in ("MpiSend", "MpiIsend"):
            target = self.started(call, "Isend")
            self.end_of(target, event.communicator, event.receiver, event.msg_tag, "sends", event.msg_length)
            if name == "MpiIsend":
                self.begin_request(target, event.request_id)
        elif name == "MpiRecv":
            self.received(call, event)
        elif name == "MpiIrecvRequest":
            target = self.started(call, "Irecv")
            target.fields.setdefault("receives", [0])
            self.begin_request(target, event.request_id)
        elif name == "NonBlockingCollectiveRequest":
            self.begin_request(call, event.request_id)
        elif name == "MpiIrecv":
            self.received(self.end_request(call, event.request_id), event)
        elif name in ("MpiIsendComplete", "MpiRequestCancelled"):
            self.end_request(call, event.request_id)
            if name == "MpiRequestCancelled":
                call.cancelled.append(event.request_id)
        elif name == "NonBlockingCollectiveComplete":
            self.collective(self.end_request(call, event.request_id), event)
        elif name == "MpiCollectiveEnd":
            self.collective(call, event)

    def started(self, call: Call, name: str) -> Call:
        """Persistent requests are not told before they start: each start is a call that does not block."""
        if call.name not in PERSISTENT:
            return call
        call.started_calls.append(Call(name, call.begin))
        return call.started_calls[-1]

    def begin_request(self, call: Call, request: int) -> None:
        call.begun_requests.append(request)
        self.open[request] = call

    def end_request(self, call: Call, request: int) -> Call | None:
        call.ended_requests.append(request)
        return self.open.pop(request, None)

    def end_of(self, call: Call, comm: Any, peer: int, tag: int, which: str, size: int) -> None:
        prefix = (
            "receive_" if which == "receives" and call.name.lower().lstrip("i").startswith("sendrecv") else ""
        )
        call.comm = comm
        call.has_message = True
        call.fields.update({f"{prefix}peer": signed(peer), f"{prefix}tag": signed(tag), which: [size]})

    def received(self, call: Call | None, event: Any) -> None:
        if call is not None:
            self.end_of(call, event.communicator, event.sender, event.msg_tag, "receives", event.msg_length)

    def collective(self, call: Call | None, event: Any) -> None:
        if call is None:
            return
        call.comm = event.communicator
        call.has_message = True
        sent, received = event.size_sent, event.size_received
        call.fields.update({"root": signed(event.root), "sent": sent, "received": received})


def signed(number: int) -> int:
    """MPI's special values are OTF2's largest ones."""
    return number if number < 2**31 else number - 2**32
