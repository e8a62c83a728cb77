"""Two processes on two cores that time messages between them by each way of the MPI layer, without an MPI.

Contract: `with pair() as timed:` starts them; timed(text, count, way, in_heap, samples) gives host times of
one direction in ns (half a round trip), after the bytes were compared with the type map. What is sent is
written anew each time. Trouble('environment') where the machine forbids a way. Run as a module it is one of
the two processes: it answers lines of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from typing import IO, Any

from spinloom import core
from spinloom.errors import Trouble

MAILBOX_BYTES = 4096
Timed = Callable[[str, int, str, bool, int], list[float]]


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
            answers = [stream(rank.stdout).readline() for rank in ranks]
            if not all(answers):
                raise Trouble("environment", "a process that times messages ended before its time")
            found = [json.loads(answer) for answer in answers]
            for answer in found:
                if "message" in answer:
                    raise Trouble(answer["code"], answer["message"])
            return found[0]["times_ns"]

        yield timed


def stream(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


@contextlib.contextmanager
def started(arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    rank = subprocess.Popen(
        [sys.executable, "-m", "spinloom.peer_pair", *arguments],
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
