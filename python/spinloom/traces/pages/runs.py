"""What ranks did over time, whom they waited for, and what decided when the last one ended.

Contract: a Run is plain data, whatever it comes from: a recorded program (recorded_run.py), or a schedule
(predict/goal_page.py). Marks of one track do not overlap, and are in order of time; tracks are in order of
rank and lane. merged() gives a Run of at most about `limit` marks: neighbours of a track become one, which
says how many it stands for and how long they were busy. Times are in `unit_ps` picoseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

KINDS = {
    "compute": "computation",
    "send": "send",
    "receive": "receive",
    "complete": "wait or test",
    "collective": "collective call",
    "onesided": "one-sided access",
    "other": "other call",
}


class Track(NamedTuple):
    """A CPU, or a thread, of a rank."""

    rank: int
    lane: int


class Mark(NamedTuple):
    """What a track did between two times; `count`: the marks that it stands for, `busy`: their time."""

    track: int
    start: int
    end: int
    kind: str
    label: str
    count: int = 1
    busy: int = -1  # -1: all of it

    @property
    def time(self) -> int:
        return self.end - self.start if self.busy < 0 else self.busy


class Message(NamedTuple):
    """From the mark that sent it to the mark that received it, as numbers of marks."""

    source: int
    target: int
    sent: int
    there: int
    size: int


class Wait(NamedTuple):
    """A track waited for another rank. `why` may have {rank} and {time}: those of the cause."""

    track: int
    start: int
    end: int
    rank: int
    why: str
    cause_rank: int
    cause: int  # its time


class Step(NamedTuple):
    """A part of the chain that ends last."""

    start: int
    end: int
    what: str
    rank: int


@dataclass
class Run:
    name: str
    about: str
    end: int
    tracks: list[Track]
    marks: list[Mark]
    messages: list[Message] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    path: list[Step] = field(default_factory=list)
    unit_ps: int = 1
    lanes: dict[int, str] = field(default_factory=dict)  # names of lanes; by number else
    between: str = ""  # the kind of what a track does between its marks
    left_out: int = 0  # messages
    waits_left_out: int = 0


class Pair(NamedTuple):
    """A rank waited for another one: how long in all, how often, mostly why, and its longest wait."""

    waiter: int
    other: int
    time: int
    waits: int
    longest: Wait


def pairs(run: Run, most: int) -> list[Pair]:
    """Who waited for whom, the longest first."""
    found: dict[tuple[int, int], list[Any]] = {}
    for wait in run.waits:
        row = found.setdefault((run.tracks[wait.track].rank, wait.rank), [0, 0, wait])
        row[0] += wait.end - wait.start
        row[1] += 1
        if wait.end - wait.start > row[2].end - row[2].start:
            row[2] = wait
    rows = [Pair(*key, *row) for key, row in found.items()]
    return sorted(rows, key=lambda row: (-row.time, row.waiter, row.other))[:most]


def shares(path: Iterable[Step]) -> list[tuple[str, int, int]]:
    """What the chain consists of: a word, the number of steps, their time; the longest first."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for step in path:
        sums[step.what][0] += 1
        sums[step.what][1] += step.end - step.start
    return sorted(((what, *each) for what, each in sums.items()), key=lambda row: -row[2])


def waited(run: Run) -> list[int]:
    """The time that each track waited."""
    times = [0] * len(run.tracks)
    for wait in run.waits:
        times[wait.track] += wait.end - wait.start
    return times


def merged(run: Run, limit: int) -> Run:
    marks, place = merged_marks(run.marks, limit)
    messages = [
        message._replace(source=place[message.source], target=place[message.target])
        for message in run.messages
    ]
    messages = spread([each for each in messages if each.source != each.target], limit)
    waits = run.waits
    if len(waits) > limit:
        longest = sorted(range(len(waits)), key=lambda at: waits[at].start - waits[at].end)[:limit]
        waits = [waits[at] for at in sorted(longest)]
    return replace(
        run,
        marks=marks,
        messages=messages,
        waits=waits,
        path=joined(run.path, limit),
        left_out=len(run.messages) - len(messages),
        waits_left_out=len(run.waits) - len(waits),
    )


def merged_marks(marks: Sequence[Mark], limit: int) -> tuple[list[Mark], list[int]]:
    """The marks, and the number of the one that each of the old ones has become."""
    if len(marks) <= limit:
        return list(marks), list(range(len(marks)))
    together = -(-len(marks) // limit)
    found: list[Mark] = []
    place: list[int] = []
    group: list[Mark] = []

    def close() -> None:
        if group:
            found.append(one_of(group))
            group.clear()

    for mark in marks:
        if group and (len(group) == together or mark.track != group[0].track):
            close()
        group.append(mark)
        place.append(len(found))
    close()
    return found, place


def one_of(group: Sequence[Mark]) -> Mark:
    if len(group) == 1:
        return group[0]
    times: dict[str, int] = defaultdict(int)
    for mark in group:
        times[mark.kind] += mark.time
    kind = max(times, key=lambda each: times[each])
    count = sum(mark.count for mark in group)
    return Mark(
        group[0].track,
        group[0].start,
        max(mark.end for mark in group),
        kind,
        f"{count:,} in a row, most of it {KINDS[kind]}",
        count,
        sum(mark.time for mark in group),
    )


def spread(messages: list[Message], limit: int) -> list[Message]:
    """At most `limit` of them, evenly chosen."""
    if len(messages) <= limit:
        return messages
    return [messages[at * len(messages) // limit] for at in range(limit)]


def joined(path: Sequence[Step], limit: int) -> list[Step]:
    """Neighbouring steps of one rank as one, where there are too many; it has the name of the longest."""
    if len(path) <= limit:
        return list(path)
    together = -(-len(path) // limit)
    found = []
    for at in range(0, len(path), together):
        group = path[at : at + together]
        longest = max(group, key=lambda step: step.end - step.start)
        found.append(longest._replace(start=group[0].start, end=group[-1].end))
    return found
