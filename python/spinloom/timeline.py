"""Timelines: what the units of the NIC were busy with during one message, as a Perfetto trace.

Contract: build() turns the engine's spans (track, lane, number, start_ps, end_ps) into a protobuf trace that
ui.perfetto.dev and Perfetto's trace processor open. One track a unit and lane; units whose spans may overlap
(DMA writes wait for each other) get as many lanes as are busy at a time. A handler's calls lie inside it on
its HPU's track, from the call until its answer: what a handler waits for. Times are modelled time; Perfetto
counts nanoseconds, so a nanosecond of the trace is a picosecond of modelled time.
"""

from __future__ import annotations

import heapq
import importlib.util
from collections.abc import Iterable

from spinloom.errors import Trouble
from spinloom.handler_runs import CALLS

Span = tuple[str, int, int, int, int]

# Tracks from the wire to the host, and what a span's number is called.
NUMBERS = {
    "wire": "packet at byte",
    "parser": "packet at byte",
    "packet buffer": "HER",
    "scheduler": "HER",
    "header handler": "HER",
    "payload handler": "HER",
    "completion handler": "HER",
    "call": "",
    "DMA": "bytes",
    "PCIe": "bytes",
    "event": "",
    "host work": "blocks",
}
HANDLERS = ("header handler", "payload handler", "completion handler", "call")
SEQUENCE = 1


def available() -> bool:
    return importlib.util.find_spec("perfetto") is not None


def lanes(spans: Iterable[Span]) -> list[tuple[str, int, Span]]:
    """(unit, lane, span): spans of one lane never overlap. Handlers keep the HPU they ran on."""
    ordered = sorted(spans, key=lambda span: (list(NUMBERS).index(span[0]), span[3], span[4]))
    ends: dict[str, list[tuple[int, int]]] = {}  # unit: (busy until, lane)
    placed = []
    for span in ordered:
        track, lane, _, start, end = span
        if track in HANDLERS:
            placed.append(("HPU", lane, span))
            continue
        busy = ends.setdefault(track, [])
        lane = heapq.heappop(busy)[1] if busy and busy[0][0] <= start else len(busy)
        heapq.heappush(busy, (end, lane))
        placed.append((track, lane, span))
    return placed


def name_of(span: Span) -> str:
    track, _, number, _, _ = span
    if track == "call":
        return CALLS.get(number, f"call {number}")
    what = NUMBERS[track]
    if what == "bytes":
        return f"{number} B"
    return f"{track} {what} {number}".strip() if what else track


def build(spans: list[Span], title: str) -> bytes:
    """The trace as bytes. Raises Trouble when the perfetto package is missing."""
    if not available():
        raise Trouble(
            "environment", "--trace needs the package 'perfetto' (pip install perfetto), which is not here"
        )
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    trace = proto.Trace()
    tracks: dict[tuple[str, int], int] = {}
    placed = lanes(spans)
    root = trace.packet.add()
    root.trusted_packet_sequence_id = SEQUENCE
    root.sequence_flags = proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    root.track_descriptor.uuid = 1
    root.track_descriptor.child_ordering = proto.TrackDescriptor.EXPLICIT
    root.track_descriptor.name = f"{title} (1 ns here is 1 ps of modelled time)"
    units = ["HPU" if track in HANDLERS else track for track in NUMBERS]
    order = list(dict.fromkeys(units))
    for unit, lane in sorted(
        {(unit, lane) for unit, lane, _ in placed}, key=lambda key: (order.index(key[0]), key)
    ):
        packet = trace.packet.add()
        packet.trusted_packet_sequence_id = SEQUENCE
        tracks[unit, lane] = packet.track_descriptor.uuid = 2 + len(tracks)
        packet.track_descriptor.parent_uuid = 1
        packet.track_descriptor.name = f"{unit} {lane}"
        packet.track_descriptor.sibling_order_rank = len(tracks)
    first = min((span[3] for _, _, span in placed), default=0)
    edges = []
    for unit, lane, span in placed:
        edges.append((span[3], 1, tracks[unit, lane], name_of(span)))
        edges.append((max(span[4], span[3]), 0, tracks[unit, lane], ""))
    # At one time, spans end before others begin; one without a duration begins before it ends.
    for time_ps, begins, track, name in order_edges(edges):
        packet = trace.packet.add()
        packet.timestamp = time_ps - min(first, 0)
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.track_event.track_uuid = track
        packet.track_event.type = (
            proto.TrackEvent.TYPE_SLICE_BEGIN if begins else proto.TrackEvent.TYPE_SLICE_END
        )
        if begins:
            packet.track_event.name = name
    return trace.SerializeToString()


def order_edges(edges: list[tuple[int, int, int, str]]) -> list[tuple[int, int, int, str]]:
    """By time; the edges of each span stay in the order begin, end, and lanes are free of overlaps."""
    pairs = [(edges[index], edges[index + 1]) for index in range(0, len(edges), 2)]
    keyed = []
    for number, (begin, end) in enumerate(pairs):
        empty = begin[0] == end[0]
        keyed.append(((begin[0], 1, number, 0), begin))
        keyed.append(((end[0], 1 if empty else 0, number, 1), end))
    return [edge for _, edge in sorted(keyed, key=lambda item: item[0])]
