"""A message's life: which bytes of a message each unit of the NIC works on, and when.

Contract: follow() turns the engine's spans (see timeline.py) into Works, each with the part of the message
that it is about, as a range of packed bytes. The spans carry no such range, but it follows from them:
(1) the parser takes one packet at a time, so what is copied to NIC memory is the packet that it took last;
(2) a handler's execution request (HER) keeps its number from that copy until the handler ends;
(3) a DMA write begins when the handler's call does, and a handler writes its packet's bytes in order.
The last one is checked: the writes of each packet must have exactly its bytes. If one has not, `exact` is
false, and its writes are only said to be about the packet. A recording that was full before the message
ended has writes of handlers whose end it does not have: they are left out, and `exact` is false. Times
are modelled, in picoseconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spinloom.nics.timeline import Span, lanes

UNITS = {
    "wire": "wire",
    "parser": "match",
    "packet buffer": "buffer",
    "scheduler": "scheduler",
    "header handler": "hpu",
    "payload handler": "hpu",
    "completion handler": "hpu",
    "DMA": "dma",
    "PCIe": "pcie",
    "event": "event",
    "host work": "cpu",
}


class Work(NamedTuple):
    """What one lane of a unit does between two times for the bytes [first, last) of the message."""

    lane: int
    start: int
    end: int
    first: int
    last: int
    spans: int = 1  # the number of spans that it stands for


@dataclass
class Life:
    """Works by unit, each in order of time; `staged`: the CPU puts the bytes where they belong."""

    size: int
    works: dict[str, list[Work]] = field(default_factory=lambda: {unit: [] for unit in UNITS.values()})
    exact: bool = True

    @property
    def staged(self) -> bool:
        return bool(self.works["cpu"])


@dataclass
class Write:
    """A DMA write and its time on the link; `at`: its place in the message once that is known."""

    dma: Span
    link: Span
    lane: int | None  # the HPU that asked for it
    at: tuple[int, int] | None = None


def follow(spans: Sequence[Span], mtu: int, size: int) -> Life:
    life = Life(size)
    whole = (0, size)
    handlers, writes, unbuffered = read(life, spans, mtu)
    place(life, handlers, writes, unbuffered)
    for track in ("event", "host work"):
        for _, _, _, start, end in (span for span in spans if span[0] == track):
            life.works[UNITS[track]].append(Work(0, start, end, *whole))
    life.works["dma"] = [Work(0, *write.dma[3:], *write.at) for write in writes if write.at]
    life.works["pcie"] = [Work(0, *write.link[3:], *write.at) for write in writes if write.at]
    for unit, works in life.works.items():
        if unit != "hpu":
            life.works[unit] = in_lanes(works)
        life.works[unit].sort(key=lambda work: (work.start, work.end, work.first))
    return life


def in_lanes(works: Iterable[Work]) -> list[Work]:
    """Works of one unit with a lane each, so that none of a lane overlap."""
    works = list(works)
    spans = [("wire", 0, place, work.start, work.end) for place, work in enumerate(works)]
    return [Work(lane, *works[span[2]][1:]) for _, lane, span in lanes(spans)]


Handler = tuple[int, int, tuple[int, int]]  # start, end, packet


def read(
    life: Life, spans: Sequence[Span], mtu: int
) -> tuple[dict[int, list[Handler]], list[Write], deque[tuple[int, int]]]:
    """Fills in the works of packets and handlers. Returns the handlers of each HPU, the DMA writes, and the
    packets that no handler takes."""

    def packet_at(offset: int) -> tuple[int, int]:
        return offset, min(offset + mtu, life.size)

    calls: dict[int, deque[int]] = defaultdict(deque)
    for track, lane, _, start, _ in spans:
        if track == "call":
            calls[start].append(lane)
    handlers: dict[int, list[Handler]] = defaultdict(list)
    writes: list[Write] = []
    packet_of: dict[int, tuple[int, int]] = {}
    unbuffered: list[tuple[int, int]] = []
    for place, span in enumerate(spans):
        track, lane, number, start, end = span
        if track == "wire":
            life.works["wire"].append(Work(0, start, end, *packet_at(number)))
        elif track == "parser":
            unbuffered.append(packet_at(number))
            life.works["match"].append(Work(0, start, end, *unbuffered[-1]))
        elif track == "packet buffer":
            packet_of[number] = unbuffered.pop()
            life.works["buffer"].append(Work(0, start, end, *packet_of[number]))
        elif track == "scheduler":
            life.works["scheduler"].append(Work(0, start, end, *packet_of[number]))
        elif track.endswith("handler"):
            of = packet_of.get(number, (0, life.size)) if track == "payload handler" else (0, life.size)
            life.works["hpu"].append(Work(lane, start, end, *of))
            if track == "payload handler":
                handlers[lane].append((start, end, of))
        elif track == "DMA" and place + 1 < len(spans) and spans[place + 1][0] == "PCIe":
            asked = calls[start].popleft() if calls.get(start) else None
            writes.append(Write(span, spans[place + 1], asked))
    return handlers, writes, deque(unbuffered)


def place(
    life: Life, handlers: dict[int, list[Handler]], writes: list[Write], packets: deque[tuple[int, int]]
) -> None:
    """Finds which bytes of the message each write carries."""
    for each in handlers.values():
        each.sort()
    starts = {lane: [handler[0] for handler in each] for lane, each in handlers.items()}
    of_handler: dict[Handler, list[Write]] = defaultdict(list)
    done = 0  # bytes of packets[0] that are written
    for write in writes:
        length = write.dma[2]
        if write.lane is None:
            if packets and done + length <= packets[0][1] - packets[0][0]:
                begin = packets[0][0] + done
                write.at, done = (begin, begin + length), done + length
                if write.at[1] == packets[0][1]:
                    packets.popleft()
                    done = 0
            else:
                life.exact = False
            continue
        index = bisect_right(starts.get(write.lane, []), write.dma[3]) - 1
        if index >= 0 and handlers[write.lane][index][1] >= write.dma[3]:
            of_handler[handlers[write.lane][index]].append(write)
    for (_, _, (first, last)), each in of_handler.items():
        at = first
        fits = sum(write.dma[2] for write in each) == last - first
        life.exact = life.exact and fits
        for write in each:
            write.at = (at, at + write.dma[2]) if fits else (first, last)
            at += write.dma[2]
    life.exact = life.exact and not packets and all(write.at for write in writes)


def merged(works: Sequence[Work], limit: int, mtu: int) -> list[Work]:
    """At most about `limit` works: neighbours in the message become one, which covers all of them.

    Those of two packets stay apart as long as there are no more packets than `limit`. A merged work is in the
    lane of its first.
    """
    if len(works) <= limit:
        return list(works)
    together = -(-len(works) // limit)
    apart = len({work.first // mtu for work in works}) <= limit
    groups: list[list[Work]] = []
    for work in sorted(works, key=lambda work: (work.first, work.last, work.start)):
        last = groups[-1][-1] if groups else None
        if (
            last is None
            or len(groups[-1]) == together
            or max(work.last - work.first, last.last - last.first) > mtu
            or (apart and work.first // mtu != last.first // mtu)
        ):
            groups.append([])
        groups[-1].append(work)
    found = [
        Work(
            group[0].lane,
            min(work.start for work in group),
            max(work.end for work in group),
            group[0].first,
            max(work.last for work in group),
            sum(work.spans for work in group),
        )
        for group in groups
    ]
    return sorted(found, key=lambda work: (work.start, work.end, work.first))
