"""A run of `spinloom goal` by our own model as a Perfetto timeline, and what its critical path is made of.

Contract: build() makes a track for each CPU of each rank, with what it did; an arrow goes from a send to its
receive. A nanosecond of the trace is a picosecond of modelled time. shares() adds up the steps of the
critical path by what they are.
"""

from __future__ import annotations

from typing import Any

from spinloom.common.perfetto_file import TraceFile

Step = tuple[int, int, str, int, int]  # begin_ps, end_ps, what, rank, operation

PARTS = {
    "computation": "computations",
    "send": "CPUs that send",
    "receive": "CPUs that receive",
    "latency": "latency",
    "bytes": "bytes on the way",
    "queue": "queues and hops",
}


def shares(path: list[Step]) -> list[dict[str, Any]]:
    """One row for each kind of step that occurs."""
    rows = []
    for what, about in PARTS.items():
        times = [end - begin for begin, end, kind, _, _ in path if kind == what]
        if times:
            rows.append({"what": about, "steps": len(times), "time_ps": sum(times)})
    return rows


def steps(path: list[Step]) -> list[dict[str, Any]]:
    """One row for each step, in the order of time."""
    return [
        {"begin_ps": begin, "end_ps": end, "what": what, "rank": rank, "operation": operation}
        for begin, end, what, rank, operation in path
    ]


def build(spans: list[tuple], title: str) -> bytes:
    """The trace as bytes. Raises Trouble if the perfetto package is missing."""
    trace = TraceFile("--timeline")
    root = trace.track(f"{title} (1 ns here is 1 ps of modelled time)")
    tracks: dict[tuple[int, int], int] = {}
    flows: dict[tuple[int, int], int] = {}
    for rank, cpu in sorted({(span[0], span[1]) for span in spans}):
        tracks[rank, cpu] = trace.track(f"rank {rank}" + (f" CPU {cpu}" if cpu else ""), root)
    for rank, cpu, what, begin, end, sender, send, _ in sorted(spans, key=lambda span: (span[3], span[4])):
        flow = 0 if sender < 0 else flows.setdefault((sender, send), len(flows) + 1)
        trace.slice(tracks[rank, cpu], begin, end, what, flow)
    return trace.content()
