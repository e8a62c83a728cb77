"""Recorded programs: the directories that `spinloom record` writes (docs/formats/trace.md).

Contract: is_recorded() says whether a directory holds one. read() gives its ranks' traces, with their
warnings. call_rows() adds up their calls. Times are host time, from a call's beginning to its end. events()
gives a rank's events as columns, which numpy.asarray() and polars take as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spinloom import core

FORMATS = {
    "signature": "I",
    "polls": "I",
    "begin_ns": "Q",
    "end_ns": "Q",
    "call": "B",
    "form": "B",
    "peer": "i",
    "tag": "i",
    "comm": "I",
    "sent_bytes": "q",
    "received_bytes": "q",
}
NS_PER_S = 1e9


def is_recorded(directory: Path) -> bool:
    return directory.is_dir() and any(directory.glob("rank-*.trace"))


def ranks(directory: Path) -> list[int]:
    """Raises Trouble where there are none."""
    return core.load().trace_ranks(str(directory))


def read_rank(directory: Path, rank: int) -> Any:
    """Raises Trouble where its beginning cannot be read."""
    return core.load().read_trace(str(directory), rank)


def read(directory: Path) -> list[Any]:
    return [read_rank(directory, rank) for rank in ranks(directory)]


def events(trace: Any) -> dict[str, memoryview]:
    return {name: memoryview(raw).cast(FORMATS[name]) for name, raw in trace.columns().items()}


def warnings(traces: Iterable[Any]) -> list[str]:
    """What a user should know before believing the numbers."""
    found = []
    traces = list(traces)
    for trace in traces:
        if trace.warning:
            found.append(f"rank {trace.rank}: {trace.warning}")
        elif not trace.ended:
            found.append(f"rank {trace.rank} did not come to MPI_Finalize: its trace ends with its last call")
    expected = max((trace.ranks for trace in traces), default=0)
    missing = sorted(set(range(expected)) - {trace.rank for trace in traces})
    if missing:
        found.append(f"of {expected} ranks, {len(missing)} have no trace: {shortened(missing)}")
    return found


def shortened(numbers: list[int], shown: int = 8) -> str:
    text = ", ".join(map(str, numbers[:shown]))
    return f"{text}, ..." if len(numbers) > shown else text


def call_rows(traces: list[Any]) -> list[dict[str, Any]]:
    """By call, the longest first: how often, how many bytes, how long, and on which ranks."""
    sums: dict[str, dict[str, Any]] = {}
    by_rank: dict[str, dict[int, int]] = {}
    run_ns = sum(trace.run_ns for trace in traces)
    for trace in traces:
        for row in trace.calls():
            into = sums.setdefault(
                row["call"],
                dict.fromkeys(("count", "polls", "errors", "sent_bytes", "received_bytes", "ns"), 0),
            )
            for name in into:
                into[name] += row[name]
            by_rank.setdefault(row["call"], {})[trace.rank] = row["ns"]
    rows = []
    for call, found in sums.items():
        times = {trace.rank: by_rank[call].get(trace.rank, 0) for trace in traces}
        least, most = min(times, key=lambda rank: times[rank]), max(times, key=lambda rank: times[rank])
        rows.append(
            {
                "call": call,
                "count": found["count"],
                "polls": found["polls"],
                "errors": found["errors"],
                "sent_bytes": found["sent_bytes"],
                "received_bytes": found["received_bytes"],
                "time_s": found["ns"] / NS_PER_S,
                "share": found["ns"] / run_ns if run_ns else 0.0,
                "min_time_s": times[least] / NS_PER_S,
                "min_rank": least,
                "max_time_s": times[most] / NS_PER_S,
                "max_rank": most,
            }
        )
    return sorted(rows, key=lambda row: (-row["time_s"], row["call"]))
