"""Timelines: the work of the NIC's units during one message, as a Perfetto trace.

Contract: build() turns the engine's spans (track, lane, number, start_ps, end_ps) into a protobuf trace that
ui.perfetto.dev and Perfetto's trace processor open. Each unit and lane has a track; units whose spans may
overlap (DMA writes wait for each other) get as many lanes as are busy at a time. A handler's calls lie inside
the handler on its HPU's track, from the call until its answer, and show what the handler waits for. Times are
modelled time; Perfetto counts nanoseconds, so a nanosecond of the trace is a picosecond of modelled time.
"""

from __future__ import annotations

from collections.abc import Iterable

from spinloom.common.handler_calls import CALLS
from spinloom.common.perfetto_file import Lanes, TraceFile

Span = tuple[str, int, int, int, int]

# Tracks from the wire to the host, and the names of their spans' numbers.
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


def lanes(spans: Iterable[Span]) -> list[tuple[str, int, Span]]:
    """Triples (unit, lane, span): spans of one lane never overlap. Handlers keep their HPU."""
    ordered = sorted(spans, key=lambda span: (list(NUMBERS).index(span[0]), span[3], span[4]))
    free: dict[str, Lanes] = {}
    placed = []
    for span in ordered:
        track, lane, _, start, end = span
        if track in HANDLERS:
            placed.append(("HPU", lane, span))
            continue
        placed.append((track, free.setdefault(track, Lanes()).lane(start, end), span))
    return placed


def name_of(span: Span) -> str:
    track, _, number, _, _ = span
    if track == "call":
        return CALLS.get(number, f"call {number}")
    unit = NUMBERS[track]
    if unit == "bytes":
        return f"{number} B"
    return f"{track} {unit} {number}".strip() if unit else track


def build(spans: list[Span], title: str) -> bytes:
    """The trace as bytes. Raises Trouble if the perfetto package is missing."""
    trace = TraceFile("--timeline")
    placed = lanes(spans)
    root = trace.track(f"{title} (1 ns here is 1 ps of modelled time)")
    units = ["HPU" if track in HANDLERS else track for track in NUMBERS]
    order = list(dict.fromkeys(units))
    used = sorted({(unit, lane) for unit, lane, _ in placed}, key=lambda key: (order.index(key[0]), key))
    tracks = {(unit, lane): trace.track(f"{unit} {lane}", root) for unit, lane in used}
    first = min((span[3] for _, _, span in placed), default=0)
    for unit, lane, span in placed:
        trace.slice(tracks[unit, lane], span[3] - min(first, 0), span[4] - min(first, 0), name_of(span))
    return trace.content()
