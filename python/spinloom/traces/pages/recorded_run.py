"""A recorded MPI program as a Run of the page of ranks over time.

Contract: run_of() takes the traces of recorded.read(). A track is a rank's calls; calls that overlap, of
threads or within calls, have tracks of their own. A wait is the part of a call in which it could not go on,
because

- the sender of a message that it received had not called MPI yet to send it,
- the receiver of a message had not posted its receive, and the sender's call lasted beyond that,
- in a collective call, the last rank whose data everybody needs (the root of a broadcast or scatter; for a
  gather or reduction the root waits) had not come.

The critical path goes back from the rank that ended last: along its calls and computations to the end of its
latest wait, and from there on the rank that it waited for. Times are host time in ns; clocks of several
machines may differ, which makes waits between them wrong by as much.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spinloom.common import core, files
from spinloom.common.errors import Trouble
from spinloom.common.perfetto_file import Lanes
from spinloom.traces import recorded
from spinloom.traces.pages import page
from spinloom.traces.pages.runs import KINDS, Mark, Message, Run, Step, Track, Wait

TO_ALL = (
    "Barrier",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Allreduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Win_fence",
)
FROM_ROOT = ("Bcast", "Scatter", "Scatterv")
TO_ROOT = ("Gather", "Gatherv", "Reduce")
OF_KIND = {
    "send": ("Send", "Ssend", "Rsend", "Bsend", "Start", "Startall", "Sendrecv", "Sendrecv_replace"),
    "receive": ("Recv", "Mrecv", "Probe", "Iprobe", "Mprobe", "Improbe"),
    "complete": (
        *("Wait", "Waitall", "Waitany", "Waitsome", "Test", "Testall", "Testany", "Testsome"),
        *("Request_free", "Cancel"),
    ),
    "onesided": (
        *("Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"),
        *("Win_start", "Win_complete", "Win_post", "Win_wait", "Win_lock", "Win_unlock", "Win_lock_all"),
        *("Win_unlock_all", "Win_flush"),
    ),
    "collective": (
        *TO_ALL,
        *FROM_ROOT,
        *TO_ROOT,
        *("Scan", "Exscan", "Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall"),
        *("Neighbor_alltoallv", "Neighbor_alltoallw", "Comm_make", "Comm_free", "Win_make", "Win_free"),
    ),
}
KIND_OF = {call: kind for kind, calls in OF_KIND.items() for call in calls}
BLOCKING = 0  # a value of the column `form`
NOT_SENT = "rank {rank} had not sent"
NOT_RECEIVED = "rank {rank} had not posted its receive"
NOTE = (
    "Times are host time, from the first rank's MPI_Init. A hatched wait is the part of a call in which it "
    "could not go on, because the rank that it waited for had not come to its call. Elsewhere in a call data "
    "move, or the MPI works. The critical path follows these waits back from the rank that ended last."
)


def call_names() -> list[str]:
    """The names of calls, by their numbers."""
    return [call.removeprefix("MPI_") for call in core.load().trace_calls()[::2]]


class Calls:
    """The calls of a rank: times on the clock of all ranks, and the mark of each event."""

    def __init__(self, trace: Any, offset: int) -> None:
        self.trace = trace
        columns = recorded.events(trace)
        self.begin = [offset + begin for begin in columns["begin_ns"]]
        self.end = [offset + end for end in columns["end_ns"]]
        self.call, self.form = list(columns["call"]), list(columns["form"])
        self.comm, self.root = list(columns["comm"]), list(columns["peer"])
        self.mark = [0] * len(self.begin)
        self.lane = [0] * len(self.begin)


def run_of(traces: list[Any], name: str) -> Run:
    start = min((trace.begun_unix_ns for trace in traces), default=0)
    ranks = [Calls(trace, trace.begun_unix_ns - start) for trace in traces]
    tracks, marks = marks_of(ranks)
    messages, waits = [], []
    for sender, sent, gone, receiver, posted, got, size in core.load().trace_messages(traces):
        of, to = ranks[sender], ranks[receiver]
        messages.append(Message(of.mark[sent], to.mark[got], of.begin[sent], to.end[got], size))
        waits += [
            (receiver, got, of.begin[sent], sender, NOT_SENT),
            (sender, gone, to.begin[posted], receiver, NOT_RECEIVED),
        ]
    if not any(trace.is_cpu_time for trace in traces):
        waits += collective_waits(ranks, core.load().trace_communicators(traces))
    else:
        waits = []
    found = waits_of(ranks, waits, marks)
    end = max((mark.end for mark in marks), default=0)
    return Run(
        name,
        about_of(traces),
        end,
        tracks,
        marks,
        messages,
        found,
        path_of(ranks, tracks, found) if found else [],
        unit_ps=1000,
        between="compute",
    )


def about_of(traces: list[Any]) -> str:
    hosts = sorted({trace.host for trace in traces})
    where = hosts[0] if len(hosts) == 1 else f"{len(hosts)} machines"
    return f"{len(traces):,} ranks on {where}, {traces[0].mpi}" if traces else ""


def marks_of(ranks: list[Calls]) -> tuple[list[Track], list[Mark]]:
    names = call_names()
    tracks: list[Track] = []
    marks: list[Mark] = []
    for calls in ranks:
        lanes = Lanes()
        by_lane: dict[int, list[int]] = defaultdict(list)
        for event in sorted(
            range(len(calls.begin)), key=lambda event: (calls.begin[event], calls.end[event])
        ):
            calls.lane[event] = lanes.lane(calls.begin[event], calls.end[event])
            by_lane[calls.lane[event]].append(event)
        labels = [recorded.described(calls.trace, row) for row in calls.trace.signatures()]
        signature = recorded.events(calls.trace)["signature"]
        for lane in sorted(by_lane):
            tracks.append(Track(calls.trace.rank, lane))
            for event in by_lane[lane]:
                kind = KIND_OF.get(names[calls.call[event]], "other")
                calls.mark[event] = len(marks)
                label = labels[signature[event]]
                marks.append(Mark(len(tracks) - 1, calls.begin[event], calls.end[event], kind, label))
    return tracks, marks


Asked = tuple[int, int, int, int, str]  # rank, its event, when the other came, the other, why


def collective_waits(ranks: list[Calls], communicators: list[list[int]]) -> Iterator[Asked]:
    names = call_names()
    together: dict[tuple[int, bool, int], list[tuple[int, int]]] = defaultdict(list)
    for index, calls in enumerate(ranks):
        times: dict[tuple[int, bool], int] = defaultdict(int)
        for event in sorted(range(len(calls.begin)), key=lambda event: calls.begin[event]):
            name = names[calls.call[event]]
            if name not in COLLECTIVE or calls.comm[event] >= len(communicators[index]):
                continue
            place = (communicators[index][calls.comm[event]], name == "Win_fence")
            together[(*place, times[place])].append((index, event))
            times[place] += 1
    for each in together.values():
        yield from waits_within(ranks, names, each)


COLLECTIVE = frozenset(
    call for call in OF_KIND["collective"] if not call.startswith(("Comm_", "Win_m", "Win_fr"))
)


def waits_within(ranks: list[Calls], names: list[str], each: list[tuple[int, int]]) -> Iterator[Asked]:
    """The waits of the ranks' calls, which are one collective operation."""
    called = {names[ranks[index].call[event]] for index, event in each}
    if len(each) < 2 or len(called) > 1:
        return
    name = called.pop()
    why = f"rank {{rank}} had not come to MPI_{name}"
    last, last_event = max(each, key=lambda member: ranks[member[0]].begin[member[1]])
    root = root_of(ranks, each) if name in (*FROM_ROOT, *TO_ROOT) else None
    for index, event in each:
        if name in TO_ALL or (name in TO_ROOT and index == root):
            if index != last:
                yield index, event, ranks[last].begin[last_event], last, why
        elif name in FROM_ROOT and root is not None and index != root:
            came = next(ranks[at].begin[its] for at, its in each if at == root)
            yield index, event, came, root, why


def root_of(ranks: list[Calls], each: list[tuple[int, int]]) -> int | None:
    """The index of the root; None if no rank's communicator tells it."""
    index, event = each[0]
    comms = ranks[index].trace.comms()
    members = comms[ranks[index].comm[event]]["world_ranks"]
    root = ranks[index].root[event]
    if not 0 <= root < len(members):
        return None
    return next((at for at, _ in each if ranks[at].trace.rank == members[root]), None)


def waits_of(ranks: list[Calls], asked: list[Asked], marks: list[Mark]) -> list[Wait]:
    """One wait a call: for the rank that came last of those that it needed."""
    latest: dict[tuple[int, int], Asked] = {}
    for each in asked:
        index, event, came, _, why = each
        calls = ranks[index]
        blocks = calls.form[event] == BLOCKING and calls.begin[event] < came
        lasted = why != NOT_RECEIVED or came <= calls.end[event]
        if blocks and lasted and ((index, event) not in latest or came > latest[index, event][2]):
            latest[index, event] = each
    found = []
    for (index, event), (_, _, came, other, why) in latest.items():
        calls = ranks[index]
        end = min(came, calls.end[event])
        rank = ranks[other].trace.rank
        found.append(
            Wait(
                marks[calls.mark[event]].track,
                calls.begin[event],
                end,
                rank,
                why,
                rank,
                end - calls.begin[event],
            )
        )
    return sorted(found)


def path_of(ranks: list[Calls], tracks: list[Track], waits: list[Wait]) -> list[Step]:
    by_rank: dict[int, list[Wait]] = defaultdict(list)
    for wait in waits:
        by_rank[tracks[wait.track].rank].append(wait)
    for each in by_rank.values():
        each.sort(key=lambda wait: (wait.end, wait.start))
    ends = {rank: [wait.end for wait in each] for rank, each in by_rank.items()}
    calls_of = {calls.trace.rank: MainCalls(calls) for calls in ranks if calls.begin}
    rank = max(calls_of, key=lambda each: calls_of[each].end[-1])
    now = max(calls_of[rank].end)
    steps: list[Step] = []
    seen: set[tuple[int, int]] = set()
    while (rank, now) not in seen:
        seen.add((rank, now))
        place = bisect_right(ends.get(rank, []), now) - 1
        since = by_rank[rank][place].end if place >= 0 else calls_of[rank].begin[0]
        steps += calls_of[rank].steps(min(since, now), now)
        if place < 0:
            break
        rank, now = by_rank[rank][place].rank, since
    return sorted(steps)


class MainCalls:
    """The calls of a rank's first track, in order of time."""

    def __init__(self, calls: Calls) -> None:
        self.rank = calls.trace.rank
        events = [event for event in range(len(calls.begin)) if calls.lane[event] == 0]
        events.sort(key=lambda event: calls.begin[event])
        self.begin = [calls.begin[event] for event in events]
        self.end = [calls.end[event] for event in events]
        names = call_names()
        self.kind = [KINDS[KIND_OF.get(names[calls.call[event]], "other")] for event in events]

    def steps(self, since: int, until: int) -> list[Step]:
        """What the rank did between two times."""
        found, now = [], since
        for at in range(bisect_right(self.end, since), bisect_left(self.begin, until)):
            if self.begin[at] > now:
                found.append(Step(now, self.begin[at], KINDS["compute"], self.rank))
                now = self.begin[at]
            end = min(self.end[at], until)
            if end > now:
                found.append(Step(now, end, self.kind[at], self.rank))
                now = end
        if until > now:
            found.append(Step(now, until, KINDS["compute"], self.rank))
        return found


def save(path: Path, directory: Path, traces: list[Any]) -> str:
    """Writes the page of a recorded program. Returns a sentence on it. Raises Trouble."""
    run = run_of(traces, directory.name)
    if not run.marks:
        raise Trouble("invalid", f"no page of {directory}: no rank called anything")
    program = traces[0].program or directory.name
    facts = f"{run.about}: {len(run.marks):,} calls, {len(run.messages):,} messages. Program: {program}"
    notes = [NOTE, *recorded.warnings(traces)]
    if any(trace.is_cpu_time for trace in traces):
        notes[0] = "Times are CPU time of each rank, in which it does not wait: they have no common axis."
    files.write(path, page.build(f"{directory.name}: ranks over time", facts, notes, [run]))
    return f"{path}: {len(run.marks):,} calls of {len(traces):,} ranks; open it in a browser"
