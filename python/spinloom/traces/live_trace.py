"""The messages between a live job's ranks, and what each does, from the files that SPINLOOM_TRACE=NAME wrote.

Contract: read() returns the messages of a job, in nanoseconds since the epoch. A message lasts from the line
of its first packet at the sender to that of its last packet at the receiver, or of the copy out of the
sender's memory that the last packet announced. All packets of a message have its operation and number; an
answer has the number that its request gave. Clocks of different machines are not corrected. Messages are in
NAME.RANK. states() reads NAME.RANK.state (src/live/node/state_file.hpp): what each rank did when it last
told.
"""

from __future__ import annotations

import csv
import fcntl
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from spinloom.common import files
from spinloom.common.errors import Trouble
from spinloom.common.perfetto_file import Lanes, TraceFile

COLUMNS = (
    "time_ns",
    "event",
    "peer",
    "operation",
    "message",
    "portal",
    "match_bits",
    "offset",
    "bytes",
    "message_bytes",
)


COPIES = ("copied", "failed")  # ends of copies out of the sender's memory


@dataclass
class Message:
    source: int
    target: int
    operation: str
    number: int
    bytes: int
    portal: int
    match_bits: int
    sent_ns: int | None = None  # time of its first packet; None: not in the sender's file
    first_ns: int | None = None  # arrival of its first packet
    last_ns: int | None = None  # arrival of its last packet, or the end of its copy
    arrived_bytes: int = 0
    begun: bool = field(default=False, compare=False)  # its first bytes have been seen

    @property
    def complete(self) -> bool:
        return self.last_ns is not None and self.arrived_bytes >= self.bytes

    @property
    def took_ns(self) -> int | None:
        """From the sender's first packet to the receiver's last."""
        return self.last_ns - self.sent_ns if self.complete and self.sent_ns is not None else None


@dataclass(frozen=True)
class State:
    rank: int
    state: str  # starts, runs, left; dead: its process has ended otherwise; unknown: nothing readable
    since_ns: int | None
    says: str  # completes "rank 0 ..."


def files_of(name: str, ending: str = "") -> list[tuple[int, Path]]:
    """(rank, file) pairs by rank, of the files NAME.RANK with this ending."""
    path = Path(name)
    ranked_files = []
    for file in files.paths_in(path.parent) if path.parent.is_dir() else ():
        match = re.fullmatch(re.escape(f"{path.name}.") + r"([0-9]{1,9})" + re.escape(ending), file.name)
        if match and file.is_file():
            ranked_files.append((int(match[1]), file))
    return sorted(ranked_files)


def files_of_messages(name: str) -> list[tuple[int, Path]]:
    """The files of messages; none where no rank has got beyond PtlInit. Raises Trouble without a trace."""
    ranked_files = files_of(name)
    if not ranked_files and not files_of(name, ".state"):
        raise Trouble(
            "invalid", f"there is no {name}.0: run the job with SPINLOOM_TRACE={name} in its environment"
        )
    return ranked_files


def states(name: str) -> list[State]:
    """The states by rank; empty for a trace of an older library, which does not tell."""
    by_rank = {rank: state_of(rank, file) for rank, file in files_of(name, ".state")}
    missing = range(max(by_rank, default=-1) + 1)
    return [by_rank.get(rank, State(rank, "unknown", None, "has left no file")) for rank in missing]


def state_of(rank: int, file: Path) -> State:
    try:
        with file.open("rb") as content:
            alive = is_locked(content.fileno())
            line = content.read(1 << 16).decode(errors="replace")
    except OSError as trouble:
        raise Trouble("environment", f"{file}: {trouble.strerror}") from trouble
    match = re.fullmatch(r"([0-9]+) (starts|runs|left) (.*?) *\n", line)
    if match is None:
        return State(rank, "unknown" if alive else "dead", None, "has told nothing")
    state, says = match[2], printable(match[3])
    return State(rank, state if alive or state == "left" else "dead", int(match[1]), says)


def printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def is_locked(descriptor: int) -> bool:
    """True if the process that writes the file is there. Where files cannot be locked, it counts as there."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def lines_of(file: Path) -> Iterator[dict[str, str]]:
    """The lines of a file, without a last line that the rank did not finish."""
    try:
        with file.open(newline="") as text:
            lines = csv.DictReader(line for line in text if line.endswith("\n"))
            if tuple(lines.fieldnames or ()) != COLUMNS:
                raise Trouble(
                    "invalid", f"{file} is no trace: its first line is not what SPINLOOM_TRACE writes"
                )
            for line in lines:
                if None not in line.values() and None not in line:
                    yield line
    except (OSError, UnicodeDecodeError, csv.Error) as trouble:
        raise Trouble("invalid", f"{file} cannot be read: {trouble}") from trouble


def number(file: Path, line: dict[str, str], column: str) -> int:
    if re.fullmatch(r"[0-9]{1,20}", line[column]):
        return int(line[column])
    raise Trouble("invalid", f"{file}: {line[column][:40]!r} is no {column}")


def read(name: str) -> list[Message]:
    """The messages of the job, in the order of their first lines."""
    sends: dict[tuple[int, int, str, int], deque[Message]] = {}
    arrivals: dict[tuple[int, int, str, int], deque[Message]] = {}
    for rank, file in files_of_messages(name):
        for line in lines_of(file):
            event = line["event"]
            if event not in ("send", "arrive", *COPIES):
                continue
            peer = number(file, line, "peer")
            source, target = (rank, peer) if event == "send" else (peer, rank)
            key = (source, target, line["operation"], number(file, line, "message"))
            add(sends if event == "send" else arrivals, key, file, line, event)
    messages = [message for queue in joined(sends, arrivals) for message in queue]
    return sorted(
        messages,
        key=lambda message: message.sent_ns if message.sent_ns is not None else message.first_ns or 0,
    )


def add(
    messages_by_key: dict, key: tuple[int, int, str, int], file: Path, line: dict[str, str], event: str
) -> None:
    time_ns, offset = number(file, line, "time_ns"), number(file, line, "offset")
    queue = messages_by_key.setdefault(key, deque())
    # A repeated number belongs to another message; answers may come in any order.
    again = bool(queue) and event not in COPIES and (queue[-1].complete or (offset == 0 and queue[-1].begun))
    if not queue or again:
        queue.append(
            Message(
                *key,
                bytes=number(file, line, "message_bytes"),
                portal=number(file, line, "portal"),
                match_bits=number(file, line, "match_bits"),
            )
        )
    message = queue[-1]
    message.begun = message.begun or offset == 0
    if event in COPIES:
        message.last_ns = time_ns
        message.arrived_bytes -= number(file, line, "bytes") if event == "failed" else 0
        return
    if event == "send":
        message.sent_ns = time_ns if message.sent_ns is None else message.sent_ns
        return
    message.first_ns = time_ns if message.first_ns is None else message.first_ns
    message.last_ns = time_ns
    message.arrived_bytes += number(file, line, "bytes")


def joined(sends: dict, arrivals: dict) -> Iterable[deque[Message]]:
    """The messages sent, with their arrivals; then messages from ranks whose files are missing."""
    for key, queue in sends.items():
        came = arrivals.pop(key, deque())
        for message in queue:
            if came:
                other = came.popleft()
                message.first_ns, message.last_ns = other.first_ns, other.last_ns
                message.arrived_bytes = other.arrived_bytes
        yield queue
        yield came
    yield from arrivals.values()


def timeline(messages: list[Message], title: str) -> bytes:
    """A Perfetto trace: one track for each rank and direction, one arrow for each message."""
    trace = TraceFile("--out")
    times = [time for message in messages for time in (message.sent_ns, message.first_ns) if time is not None]
    start = min(times, default=0)
    root = trace.track(title)
    ranks = {rank: trace.track(f"rank {rank}", root) for rank in ranks_of(messages)}
    places: dict[tuple[int, str, int], int] = {}
    free: dict[tuple[int, str], Lanes] = {}

    def put(rank: int, way: str, begin: int, end: int, name: str, flow: int) -> None:
        lane = free.setdefault((rank, way), Lanes()).lane(begin, end)
        key = (rank, way, lane)
        if key not in places:
            places[key] = trace.track(f"{way} {lane}" if lane else way, ranks[rank])
        trace.slice(places[key], begin - start, end - start, name, flow)

    for flow, message in enumerate(messages, 1):
        if message.sent_ns is not None:
            end = message.last_ns if message.took_ns is not None and message.took_ns >= 0 else message.sent_ns
            put(
                message.source,
                "out",
                message.sent_ns,
                end,
                f"{message.operation} {message.bytes} B to {message.target}",
                flow,
            )
    for flow, message in sorted(enumerate(messages, 1), key=lambda item: item[1].first_ns or 0):
        if message.first_ns is not None:
            end = message.last_ns if message.last_ns is not None else message.first_ns
            put(
                message.target,
                "in",
                message.first_ns,
                end,
                f"{message.operation} {message.bytes} B of {message.source}",
                flow,
            )
    return trace.content()


def ranks_of(messages: list[Message]) -> list[int]:
    return sorted({rank for message in messages for rank in (message.source, message.target)})
