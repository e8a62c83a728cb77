"""A schedule's run by our own model as a Run of the page of ranks over time.

Contract: run_of() takes what Schedule.run() gives with `record`. A track is a CPU of a rank. What a CPU waits
for of its own rank (another CPU, its NIC) is no wait here. Times are modelled, in picoseconds.
"""

from __future__ import annotations

from typing import Any

from spinloom.common import units
from spinloom.predict.goal_timeline import PARTS
from spinloom.traces.pages.runs import Mark, Message, Run, Step, Track, Wait

KINDS = {"computation": "compute", "send": "send", "receive": "receive"}  # all others are one-sided
CAUSES = {
    "computation": "rank {rank} computed for {time} of it",
    "send": "rank {rank}'s CPU sent for {time} of it",
    "receive": "rank {rank}'s CPU received for {time} of it",
    "latency": "{time} of it were latency of what rank {rank} sent",
    "bytes": "{time} of it were bytes of what rank {rank} sent, on the way",
    "queue": "{time} of it were queues and hops of what rank {rank} sent",
}
NOTES = (
    "Times are modelled time, from the start of the schedule. A hatched wait is a CPU that has nothing to do "
    "before an operation; its cause is what took longest in the chain that ended it.",
)


# The CPUs of the schedules that are made of recorded programs (src/predict/program/rank_emitter.hpp).
PROGRAM_LANES = {1: "NIC", 2: "messages", **dict.fromkeys(range(3, 64), "delays")}


def run_of(outcome: dict[str, Any], name: str, about: str, is_program: bool = False) -> Run:
    """With `is_program` the schedule is a recorded program's: its CPU 0 alone waits."""
    spans = sorted(outcome["spans"], key=lambda span: (span[0], span[1], span[3], span[4], span[7]))
    tracks = sorted({Track(span[0], span[1]) for span in spans})
    number = {track: place for place, track in enumerate(tracks)}
    marks, place = [], {}
    for rank, cpu, what, begin, end, _, _, operation in spans:
        place[rank, operation] = len(marks)
        kind = KINDS.get(what.split(" ", 1)[0], "onesided")
        label = "computation" if is_program and kind == "compute" else what
        marks.append(Mark(number[Track(rank, cpu)], begin, end, kind, label))
    track_of = {key: marks[at].track for key, at in place.items()}
    return Run(
        name,
        about,
        outcome["makespan_ps"],
        tracks,
        marks,
        [
            Message(place[source, send], place[target, receive], sent, there, size)
            for source, send, target, receive, sent, there, size in outcome["messages"]
        ],
        [
            Wait(track_of[rank, operation], begin, end, other, CAUSES[what], cause_rank, cause)
            for rank, operation, begin, end, other, what, cause_rank, cause in outcome["waits"]
            if other != rank and not (is_program and tracks[track_of[rank, operation]].lane)
        ],
        [Step(begin, end, PARTS[what], rank) for begin, end, what, rank, _ in outcome["path"]],
        lanes=PROGRAM_LANES if is_program else {},
    )


def facts_of(counted: dict[str, Any], arguments: dict[str, Any]) -> str:
    """What the schedule holds, and the parameters of the model."""
    numerator, denominator = arguments["G"]
    return (
        f"{counted['ranks']:,} ranks, {counted['operations']:,} operations, {counted['sends']:,} messages "
        f"of {units.format_bytes(counted['sent_bytes'])} in all; L {units.format_time(arguments['L_ps'])}, "
        f"o {units.format_time(arguments['o_ps'])}, g {units.format_time(arguments['g_ps'])}, "
        f"G {numerator / denominator:g} ps/B, S {units.format_bytes(arguments['S_bytes'])}."
    )
