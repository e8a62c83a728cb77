"""Two processes on two cores that time messages between them by each way of the MPI layer, without an MPI.

Contract: `with pair() as timed:` starts them; timed(text, count, way, in_heap, samples) gives host times of
one direction in ns (half a round trip), after the bytes were compared with the type map. What is sent is
written anew each time. Trouble('environment') where the machine forbids a way. memory_bytes() is what both
hold at most for a message, free_bytes() what the machine has. Run as a module it is one of the two processes:
it answers lines of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from spinloom.common import core
from spinloom.common.errors import Trouble

MAILBOX_BYTES = 4096
MARGIN = 1.1  # A message counts as this many times its memory, so that no process is ended for want of some.
Timed = Callable[[str, int, str, bool, int], list[float]]
# Where a container says how much memory it may have, and has.
CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"))


class ProcessEnded(Trouble):
    """One of the two processes is no more: the pair times nothing any longer."""

    def __init__(self, how: str) -> None:
        super().__init__("environment", f"a process that times messages ended {how}")


def memory_bytes(text: str, count: int) -> int:
    engine = core.load()
    facts = engine.describe(text)
    span = abs(facts["extent_bytes"]) * max(0, count - 1) + facts["true_extent_bytes"]
    return 2 * round(MARGIN * engine.peer_memory(float(facts["size_bytes"] * count), float(span)))


def free_bytes() -> int | None:
    """The free memory of the machine, or of its container; None if the system does not say it."""
    limits = []
    with contextlib.suppress(OSError):
        match = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
        limits += [int(match[1]) << 10] if match else []
    with contextlib.suppress(OSError, ValueError):
        most, current = (int(path.read_text(encoding="ascii")) for path in CONTAINER)
        limits.append(max(0, most - current))
    return min(limits, default=None)


@contextlib.contextmanager
def pair() -> Iterator[Timed]:
    name = f"spinloom-pair-{uuid.uuid4().hex}"
    with tempfile.NamedTemporaryFile(prefix="spinloom-pair-") as mailbox, contextlib.ExitStack() as stack:
        mailbox.truncate(MAILBOX_BYTES)
        cores = sorted(os.sched_getaffinity(0))
        ranks = [
            stack.enter_context(started([name, mailbox.name, str(rank), str(cores[rank % len(cores)])]))
            for rank in (0, 1)
        ]

        def timed(text: str, count: int, way: str, in_heap: bool, samples: int) -> list[float]:
            question = json.dumps([text, count, way, in_heap, samples]) + "\n"
            for rank in ranks:
                with contextlib.suppress(BrokenPipeError):  # its answer is missing then
                    stream(rank.stdin).write(question)
                    stream(rank.stdin).flush()
            replies = answers(ranks)
            for answer in replies:
                if "message" in answer:
                    raise Trouble(answer["code"], answer["message"])
            return replies[0]["times_ns"]

        yield timed


def answers(ranks: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """A line of each rank. Raises ProcessEnded as soon as one has ended, even if the other still waits."""
    lines: dict[int, str] = {}
    while len(lines) < len(ranks):
        waited = {stream(rank.stdout): n for n, rank in enumerate(ranks) if n not in lines}
        for ready in select.select(list(waited), [], [])[0]:
            number = waited[ready]
            lines[number] = ready.readline()
            if not lines[number]:
                raise ProcessEnded(ending_of(ranks[number]))
    return [json.loads(lines[n]) for n in range(len(ranks))]


def ending_of(rank: subprocess.Popen[str]) -> str:
    code = rank.wait()
    if code != -signal.SIGKILL:
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return "by SIGKILL, which the system sends where memory is short"


def stream(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


@contextlib.contextmanager
def started(arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    rank = subprocess.Popen(
        [sys.executable, "-m", "spinloom.accelerate.peer_pair", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield rank
    finally:
        rank.kill()
        rank.communicate()


def answer(probe: Any, question: list[Any]) -> dict[str, Any]:
    try:
        return {"times_ns": probe.measure(*question)}
    except Trouble as trouble:
        return {"code": trouble.code, "message": trouble.message}


def main(name: str, mailbox: str, rank: str, processor: str) -> None:
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {int(processor)})
    probe = core.load().PeerProbe(name, mailbox, int(rank))
    for line in sys.stdin:
        print(json.dumps(answer(probe, json.loads(line))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
