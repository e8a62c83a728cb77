"""Recorded programs: the directories that `spinloom record` writes (docs/formats/trace.md).

Contract: is_recorded() says whether a directory holds one. read() gives its ranks' traces, with their
warnings. call_rows(), matrix_rows(), type_rows() and finding_rows() are tables over all ranks, timeline() a
file for ui.perfetto.dev. Times are host time, from a call's beginning to its end. events()
gives a rank's events as columns, which numpy.asarray() and polars take as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spinloom.common import core
from spinloom.common.perfetto_file import Lanes, TraceFile

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
ANY = -1  # any rank or tag


def is_recorded(directory: Path) -> bool:
    return directory.is_dir() and any(directory.glob("rank-*.trace"))


def ranks(directory: Path) -> list[int]:
    """Raises Trouble where there are none."""
    return core.load().trace_ranks(directory)


def read_rank(directory: Path, rank: int) -> Any:
    """Raises Trouble where its beginning cannot be read."""
    return core.load().read_trace(directory, rank)


def read(directory: Path) -> list[Any]:
    return [read_rank(directory, rank) for rank in ranks(directory)]


def events(trace: Any) -> dict[str, memoryview]:
    return {name: memoryview(raw).cast(FORMATS[name]) for name, raw in trace.columns().items()}


def warnings(traces: Iterable[Any]) -> list[str]:
    """Returns what a user should know before believing the numbers."""
    sentences = []
    traces = list(traces)
    for trace in traces:
        if trace.warning:
            sentences.append(f"rank {trace.rank}: {trace.warning}")
        elif not trace.ended:
            sentences.append(f"rank {trace.rank} did not come to MPI_Finalize: {last_call(trace)}")
    expected = max((trace.ranks for trace in traces), default=0)
    missing = sorted(set(range(expected)) - {trace.rank for trace in traces})
    if missing:
        sentences.append(f"of {expected} ranks, {len(missing)} have no trace: {shortened(missing)}")
    return sentences


def last_call(trace: Any) -> str:
    if trace.under_way is None:
        return "it was between two calls" if trace.tells_under_way else "the trace does not tell where it was"
    call, since_ns = trace.under_way
    return f"it was in MPI_{call}, entered {since_ns / NS_PER_S:.6f} s after its beginning"


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
            totals_of_call = sums.setdefault(
                row["call"],
                dict.fromkeys(("count", "polls", "errors", "sent_bytes", "received_bytes", "ns"), 0),
            )
            for name in totals_of_call:
                totals_of_call[name] += row[name]
            by_rank.setdefault(row["call"], {})[trace.rank] = row["ns"]
    rows = []
    for call, totals in sums.items():
        times = {trace.rank: by_rank[call].get(trace.rank, 0) for trace in traces}
        least, most = min(times, key=lambda rank: times[rank]), max(times, key=lambda rank: times[rank])
        rows.append(
            {
                "call": call,
                "count": totals["count"],
                "polls": totals["polls"],
                "errors": totals["errors"],
                "sent_bytes": totals["sent_bytes"],
                "received_bytes": totals["received_bytes"],
                "time_s": totals["ns"] / NS_PER_S,
                "share": totals["ns"] / run_ns if run_ns else 0.0,
                "min_time_s": times[least] / NS_PER_S,
                "min_rank": least,
                "max_time_s": times[most] / NS_PER_S,
                "max_rank": most,
            }
        )
    return sorted(rows, key=lambda row: (-row["time_s"], row["call"]))


def matrix_rows(traces: list[Any]) -> list[dict[str, Any]]:
    """Returns who sent whom how much, by sender and receiver."""
    return core.load().trace_matrix(traces)


def type_rows(traces: list[Any]) -> list[dict[str, Any]]:
    """The datatypes of the calls' buffers, the most bytes first."""
    return core.load().trace_types(traces)


def finding_rows(traces: list[Any]) -> list[dict[str, Any]]:
    """Returns what is wrong with the messages, or wasted (src/predict/trace/check.hpp)."""
    return core.load().trace_findings(traces)


def no_findings(traces: list[Any]) -> str:
    """Returns what the check says where it has found nothing: no more than these traces tell."""
    everything = len(traces) == max((trace.ranks for trace in traces), default=0)
    if not (everything and all(trace.ended and not trace.warning for trace in traces)):
        nothing_found = "nothing was found in what these traces hold"
        return f"{nothing_found}; what their ranks did besides is not known"
    if all(trace.tells_buffers for trace in traces):
        return "every message met a receive of its type and length, and no exchange sent bytes twice"
    return (
        "every message met a receive; the traces do not tell what receives had room for, of which types "
        "messages were, and where in memory they lay"
    )


def timeline(traces: list[Any], title: str) -> bytes:
    """A Perfetto trace: a track for each rank, a slice for each event, an arrow for each message."""
    file = TraceFile("--timeline")
    root = file.track(title)
    start = min((trace.begun_unix_ns for trace in traces), default=0)
    flows: dict[tuple[int, int], list[int]] = {}
    for number, (sender, sent, _, receiver, _, got, _) in enumerate(core.load().trace_messages(traces), 1):
        flows.setdefault((sender, sent), []).append(number)
        flows.setdefault((receiver, got), []).append(number)
    for index, trace in enumerate(traces):
        rank = file.track(f"rank {trace.rank}", root)
        offset = trace.begun_unix_ns - start
        tracks: list[int] = []
        lanes = Lanes()
        names = [described(trace, row) for row in trace.signatures()]
        columns = events(trace)
        # Threads and calls within calls overlap: they get tracks of their own.
        for event in sorted(range(trace.events), key=lambda event: columns["begin_ns"][event]):
            begin, end = columns["begin_ns"][event], columns["end_ns"][event]
            lane = lanes.lane(begin, end)
            if lane == len(tracks):
                tracks.append(file.track(f"calls {lane}" if lane else "calls", rank))
            polls = columns["polls"][event]
            name = names[columns["signature"][event]] + (f", {polls} times in vain" if polls else "")
            file.slice(tracks[lane], offset + begin, offset + end, name, *flows.get((index, event), ()))
    return file.content()


def described(trace: Any, row: dict[str, Any]) -> str:
    """A call in a few words."""
    words = [row["call"]]
    sent, received = row["sent_bytes"], row["received_bytes"]
    if sent:
        words.append(
            f"{sent} B" + (f" to {row['peer']}" if row["peer"] >= 0 and row["point_to_point"] else "")
        )
    if received:
        source = row["receive_peer"] if sent else row["peer"]
        words.append(f"{received} B" + (f" of {source}" if source >= 0 and row["point_to_point"] else " in"))
    return " ".join(words)
