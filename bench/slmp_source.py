"""A sender of SLMP messages in a network namespace, and a NIC in another, for benches of receivers.

Contract: nic_on(cable) is the name of a live NIC for 10.7.0.2 that lives as long as its block. Source(place,
folder) starts this file as a program there, on a core. Each file of the folder is a message, its name
the SLMP message ID. begin() lets it send all of them at once, each in a thread of its own, and end() waits
and gives what it says: `began` and `ended` in seconds of the monotonic clock, which all processes of a
machine share, `packets` and `retransmitted` of all messages. A failure ends the bench.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from spinloom import slmp
from spinloom.ethernet import namespaces

CORES = sorted(os.sched_getaffinity(0))
AWAY, HOST = CORES[0], CORES[-1]  # the sender's core; the receiving program's


def pinned(core: int) -> list[str]:
    """Before a command: on one core, ahead of what else runs there, as far as this user may say so.

    Sessions share cores as their groups say (sched(7), autogroup), so the command is one of its own.
    """
    first = 'echo -20 >/proc/self/autogroup; exec nice -n -20 "$@"'
    return ["setsid", "taskset", "-c", str(core), "sh", "-c", first, "sh"]


def started(place: namespaces.Place, core: int, words: list[str]) -> subprocess.Popen:
    """A Python program on one core, with one thread for linear algebra; its lines are read and written."""
    return place.start(
        [*pinned(core), "env", "OPENBLAS_NUM_THREADS=1", sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def line_of(process: subprocess.Popen) -> Any:
    """The next line, which is JSON."""
    line = process.stdout.readline()
    if not line:
        sys.exit(f"{process.args}: no answer")
    return json.loads(line)


def ask(process: subprocess.Popen, **what: Any) -> None:
    process.stdin.write(json.dumps(what) + "\n")
    process.stdin.flush()


@contextlib.contextmanager
def nic_on(cable: namespaces.Cable, core: int) -> Iterator[str]:
    """The name of a NIC that runs on this core."""
    spinloom = str(Path(sys.executable).with_name("spinloom"))
    answers = ["--stages", "--handlers", "arp_answer", "--rules", "arp", "--address", "10.7.0.2"]
    words = [spinloom, "nic", "run", "--wire", "packet:nic0", *answers]
    nic = cable.nic.start(
        [*pinned(core), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    first_line = nic.stdout.readline()
    try:
        match = re.match(r"(spinloom\d+): ", first_line)
        yield match[1] if match else sys.exit(first_line)
    finally:
        nic.send_signal(signal.SIGINT)
        print(nic.communicate()[0], file=sys.stderr)  # this is what it has counted


class Source:
    def __init__(self, place: namespaces.Place, folder: Path) -> None:
        self.process = started(place, AWAY, [__file__, str(folder)])
        line_of(self.process)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()  # it ends at the end of its input

    def begin(self, place: str, window: int, align: int, threads: int, **options: int) -> None:
        ask(self.process, place=place, window=window, align=align, threads=threads, options=options)

    def end(self) -> dict[str, Any]:
        return line_of(self.process)


def main() -> None:
    messages = {int(path.name): path.read_bytes() for path in Path(sys.argv[1]).iterdir()}
    print(json.dumps({"messages": len(messages)}), flush=True)
    with ThreadPoolExecutor(len(messages)) as pool:
        for line in sys.stdin:
            asked = json.loads(line)
            place = slmp.parse_place(asked["place"], "")

            def send(message_id: int, asked: dict = asked, place: tuple = place) -> slmp.Sent:
                return slmp.send(
                    messages[message_id],
                    place,
                    message_id,
                    asked["window"],
                    asked["align"],
                    0,
                    asked["threads"],
                    asked["options"],
                    lambda through: None,
                )

            began = time.monotonic()
            sent = list(pool.map(send, messages))
            result = {
                "began": began,
                "ended": time.monotonic(),
                "packets": sum(each.packets for each in sent),
                "retransmitted": sum(each.retransmitted for each in sent),
            }
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
