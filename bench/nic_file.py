"""A message over SLMP that a live NIC's handlers receive, by window and threads of its sender, and a process
that receives it by sockets in turns with it (host time).

    python bench/nic_file.py [ROUNDS [BYTES]]

A veth pair joins two namespaces. The sender runs on the first core, who receives on the last: the NIC, or the
process. A number is the median of its rounds, from the first packet until all are acknowledged, and stands
there only if every byte was what was sent. Behind it: packets sent again, of a thousand; the NIC's own count
of frames, beside what was sent in all, says how many were lost. Needs two cores, and root or user namespaces;
as root all of it runs ahead of other programs.
"""

from __future__ import annotations

import contextlib
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import slmp_source

from spinloom import slmp
from spinloom.common import output
from spinloom.ethernet import namespaces, nic_receive

LIMIT = 1 << 28
WAIT_S = 60.0
LINGER_S = 0.05
WINDOWS = (1, 4, 16, 64, 256, 1024)
THREADS = (1, 2)
MESSAGE = 7


def say(**what: bool) -> None:
    print(json.dumps(what), flush=True)


def by_handlers(nic: str, land: Callable[[bytes], None]) -> None:
    nic_receive.receive(
        nic,
        (0, slmp.PORT),
        LIMIT,
        WAIT_S,
        LINGER_S,
        lambda message: land(message.content),
        lambda: say(ready=True),
    )


def by_sockets(land: Callable[[bytes], None]) -> None:
    with slmp.Receiver(("0.0.0.0", slmp.PORT), LIMIT) as receiver:
        say(ready=True)
        land(receiver.receive(WAIT_S).content)
        receiver.answer(LINGER_S)


def receive(nic: str, path: str) -> None:
    """A message for each line; says whether it was that of the file."""
    content = Path(path).read_bytes()
    for _ in sys.stdin:
        landed: list[bytes] = []
        by_handlers(nic, landed.append) if nic else by_sockets(landed.append)
        say(same=landed == [content])


def main() -> None:
    numbers = [int(text) for text in sys.argv[1:]]
    rounds, size = (numbers + [7, 13_000_000][len(numbers) :])[:2]
    samples: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
    frames: dict[str, int] = {}
    with contextlib.ExitStack() as stack:
        served, plain = (stack.enter_context(namespaces.cable()) for _ in range(2))
        plain.nic.ip("address add 10.7.0.2/24 dev nic0")
        nic = stack.enter_context(slmp_source.nic_on(served, slmp_source.HOST))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path = scratch / str(MESSAGE)
        path.write_bytes(random.Random(1).randbytes(size))
        ways = []
        for way, name, cable in (("handlers", nic, served), ("a process", "", plain)):
            source = stack.enter_context(slmp_source.Source(cable.client, scratch))
            words = [__file__, "receive", name, str(path)]
            receiver = slmp_source.started(cable.nic, slmp_source.HOST, words)
            stack.callback(receiver.communicate)
            ways.append((way, source, receiver))
        for _ in range(rounds):
            for window in WINDOWS:
                for threads in THREADS:
                    for way, source, receiver in ways if threads <= window else ():
                        slmp_source.ask(receiver)
                        slmp_source.line_of(receiver)
                        source.begin("10.7.0.2", window, 64, threads)
                        sent = source.end()
                        if not slmp_source.line_of(receiver)["same"]:
                            sys.exit(f"{way}, window {window}, threads {threads}: other bytes came")
                        rate = size * 8 / (sent["ended"] - sent["began"]) / 1e9
                        frames[way] = frames.get(way, 0) + sent["packets"] + sent["retransmitted"]
                        again = 1000 * sent["retransmitted"] / sent["packets"]
                        samples.setdefault((way, window, threads), []).append((rate, again))
    columns = [
        "window",
        *(f"{way}, {threads} thr." for way in ("handlers", "a process") for threads in THREADS),
    ]

    def shown(way: str, window: int, threads: int) -> str:
        if threads > window:
            return "-"
        rates, again = zip(*samples[way, window, threads], strict=True)
        return f"{statistics.median(rates):.2f} / {statistics.median(again):.1f}"

    rows = [
        [str(window), *(shown(way, window, each) for way in ("handlers", "a process") for each in THREADS)]
        for window in WINDOWS
    ]
    print(f"frames sent in all: {frames}", file=sys.stderr)
    title = f"{size} B, {rounds} rounds: Gbit/s of host time / packets sent again, of a thousand"
    output.show(output.table(columns, rows, numeric=set(columns), title=title))


if __name__ == "__main__":
    if sys.argv[1:2] == ["receive"]:
        receive(*sys.argv[2:])
    else:
        main()
