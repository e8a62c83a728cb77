"""Perfetto traces: tracks with slices, as the protobuf that ui.perfetto.dev opens.

Contract: TraceFile.track() makes a track under another one, slice() puts a span of time on it, content() is
the file. Slices of one track may touch but not overlap: Lanes finds the first free one of several tracks.
Slices that share a flow are joined by an arrow. Times are in the trace's nanoseconds.
"""

from __future__ import annotations

import heapq
import importlib.util

from spinloom.common.errors import Trouble

SEQUENCE = 1

Edge = tuple[int, int, int, str, tuple[int, ...]]  # time, begins, track, name, flows


def available() -> bool:
    return importlib.util.find_spec("perfetto") is not None


class Lanes:
    """Gives each span the lowest free number; spans come in the order of their starts."""

    def __init__(self) -> None:
        self._busy: list[tuple[int, int]] = []  # (until, lane)

    def lane(self, start: int, end: int) -> int:
        busy = self._busy
        lane = heapq.heappop(busy)[1] if busy and busy[0][0] <= start else len(busy)
        heapq.heappush(busy, (end, lane))
        return lane


class TraceFile:
    def __init__(self, needed_by: str) -> None:
        """Raises Trouble if the perfetto package is missing."""
        if not available():
            raise Trouble(
                "environment",
                f"{needed_by} needs the package 'perfetto' (pip install perfetto), which is not here",
            )
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

        self._proto = proto
        self._trace = proto.Trace()
        self._tracks = 0
        self._edges: list[Edge] = []

    def _packet(self):
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = SEQUENCE
        if len(self._trace.packet) == 1:
            packet.sequence_flags = self._proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        return packet

    def track(self, name: str, parent: int = 0) -> int:
        """A track's number; tracks of one parent are shown in the order made."""
        self._tracks += 1
        descriptor = self._packet().track_descriptor
        descriptor.uuid = self._tracks
        descriptor.name = name
        descriptor.child_ordering = self._proto.TrackDescriptor.EXPLICIT
        if parent:
            descriptor.parent_uuid = parent
        descriptor.sibling_order_rank = self._tracks
        return self._tracks

    def slice(self, track: int, start: int, end: int, name: str, *flows: int) -> None:
        self._edges.append((start, 1, track, name, tuple(flow for flow in flows if flow)))
        self._edges.append((max(end, start), 0, track, "", ()))

    def content(self) -> bytes:
        event = self._proto.TrackEvent
        for time, begins, track, name, flows in order_edges(self._edges):
            packet = self._packet()
            packet.timestamp = time
            packet.track_event.track_uuid = track
            packet.track_event.type = event.TYPE_SLICE_BEGIN if begins else event.TYPE_SLICE_END
            if begins:
                packet.track_event.name = name
            packet.track_event.flow_ids.extend(flows)
        return self._trace.SerializeToString()


def order_edges(edges: list[Edge]) -> list[Edge]:
    """Sorts edges by time; at one time, ends come before beginnings, except for a span without duration."""
    pairs = [(edges[index], edges[index + 1]) for index in range(0, len(edges), 2)]
    keyed = []
    for number, (begin, end) in enumerate(pairs):
        empty = begin[0] == end[0]
        keyed.append(((begin[0], 1, number, 0), begin))
        keyed.append(((end[0], 1 if empty else 0, number, 1), end))
    return [edge for _, edge in sorted(keyed, key=lambda item: item[0])]
