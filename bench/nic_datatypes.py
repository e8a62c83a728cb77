"""MPI datatypes over SLMP to a live NIC, whose handlers unpack them into a program's memory, beside a process
that receives by sockets and unpacks by itself; and what is left of that program's core (host time).

    python bench/nic_datatypes.py [ROUNDS [ELEMENTS [MESSAGES]]] [original]

A veth pair joins two namespaces. Sender and NIC run on the first core, the receiving program on the last. It
multiplies matrices in steps of about a millisecond and looks between them which messages have come; a process
that receives by itself does so in a second thread. `overlap` is the time of the steps alone over their time
while messages come, looks included. The ways take turns; each number is the median of the rounds in which
others left the program its core, and stands there only if every byte of the buffers, gaps included, was what
it must be. `again`: packets that were sent again. `original`: FPsPIN's sender, that looks every 100 us. Needs
two cores, and root or user namespaces; as root all of it runs ahead of other programs.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import slmp_source

from spinloom import layout, slmp
from spinloom.common import output
from spinloom.ethernet import namespaces, nic_types
from spinloom.papers.observe_frames import TYPES

GIBI = 1 << 30
FILL = 0xA5
SIDE = 256  # the matrices' sides
ALONE_STEPS = 100
PATIENCE_S = 60.0
SHARE_MIN = 0.95  # the share of its core, which others take in spite of all on a busy machine
WAYS = [  # handlers, or none; packets under way of each message
    ("frame_ddt_seek.so", 1),
    ("frame_ddt_seek.so", 8),
    ("frame_ddt_seek.elf", 1),
    ("frame_ddt_seek.elf", 8),
    ("frame_ddt_segment.so", 1),
    ("frame_ddt_segment.elf", 1),
    ("", 1),
    ("", 8),
]
# Complex lands on itself, and so layout.unpack takes it in parts that do not, in packed order.
PARTS = {
    "simple": (TYPES["simple"], [0]),
    "complex": (
        "vector(32, 6, 8, contig(18, float))",
        [a + b + c for a in (0, 18432) for b in (0, 12288) for c in (0, 6144)],
    ),
}


def places(type_name: str, elements: int) -> np.ndarray:
    """Returns the position in the layout of each packed byte."""
    elements_layout = layout.from_text(f"contig({elements}, {TYPES[type_name]})")
    return np.concatenate(
        [np.arange(at, at + length) for at, length in elements_layout.blocks(limit=elements_layout.size)]
    )


def write_messages(folder: Path, type_name: str, elements: int, messages: int) -> None:
    """Packed from random memory: a byte that lands twice is the same both times, in whatever order."""
    random = np.random.default_rng(1)
    where = places(type_name, elements)
    for number in range(messages):
        memory = random.integers(0, 256, int(where.max()) + 1, dtype=np.uint8)
        (folder / str(nic_types.wire_id(number))).write_bytes(memory[where].tobytes())


# ---- the receiving program ----


class ByHandlers:
    def __init__(self, nic: str, handlers: str, type_name: str, elements: int, messages: int) -> None:
        self.messages = messages
        self.unpacked = nic_types.Unpacked(nic, handlers, TYPES[type_name], elements, messages)
        self.memory = [np.frombuffer(self.unpacked.memory(each), np.uint8) for each in range(messages)]
        self.close = self.unpacked.close

    def begin(self) -> None:
        self.arrived: set[int] = set()
        while self.unpacked.next(0) is not None:
            pass  # told again after the last transfer

    def all_arrived(self, seconds: float) -> bool:
        """Waits for notices; True once all messages have arrived, False if none comes within `seconds`."""
        while (number := self.unpacked.next(seconds)) is not None:
            self.arrived.add(number)
            if len(self.arrived) == self.messages:
                return True
        return False


class BySockets:
    def __init__(self, type_name: str, elements: int, messages: int) -> None:
        self.messages = messages
        text, offsets = PARTS[type_name]
        self.part = layout.from_text(text)
        element = layout.from_text(TYPES[type_name])
        self.offsets = [each * element.extent + at for each in range(elements) for at in offsets]
        span = int(places(type_name, elements).max()) + 1
        self.memory = [np.empty(span, np.uint8) for _ in range(messages)]
        self.receiver = slmp.Receiver(("0.0.0.0", slmp.PORT), GIBI)

    def begin(self) -> None:
        self.thread = threading.Thread(target=self.receive_all)
        self.thread.start()

    def receive_all(self) -> None:
        for _ in range(self.messages):
            received = self.receiver.receive(PATIENCE_S)
            packed = memoryview(received.content)
            memory = self.memory[nic_types.wire_id(received.message_id)]
            for number, offset in enumerate(self.offsets):
                part = packed[number * self.part.size : (number + 1) * self.part.size]
                self.part.unpack(part, memory, offset=offset)

    def all_arrived(self, seconds: float) -> bool:
        self.thread.join(seconds)
        return not self.thread.is_alive()

    def close(self) -> None:
        self.receiver.__exit__()


def seconds_of(count: int, step: Callable[[], Any]) -> float:
    began = time.monotonic()
    for _ in range(count):
        step()
    return time.monotonic() - began


def receive(nic: str, handlers: str, type_name: str, elements: str, messages: str, folder: str) -> None:
    sizes = int(elements), int(messages)
    way = ByHandlers(nic, handlers, type_name, *sizes) if handlers else BySockets(type_name, *sizes)
    where = places(type_name, sizes[0])
    a, b, product = (np.ones((SIDE, SIDE)) for _ in range(3))

    def step() -> None:
        np.matmul(a, b, out=product)

    step()
    print(json.dumps({"side": SIDE}), flush=True)
    for line in sys.stdin:
        computes = json.loads(line)["computes"]
        for memory in way.memory:
            memory[:] = FILL
        alone = seconds_of(ALONE_STEPS, step)
        way.begin()
        print(json.dumps({"ready": True}), flush=True)
        began, used, steps = time.monotonic(), time.process_time(), 0
        while not way.all_arrived(0 if computes else 0.01) and time.monotonic() - began < PATIENCE_S:
            if computes:
                step()
                steps += 1
        ended, used = time.monotonic(), time.process_time() - used
        alone += seconds_of(ALONE_STEPS, step)
        for number, memory in enumerate(way.memory):
            expected = np.full_like(memory, FILL)
            packed = np.fromfile(Path(folder) / str(nic_types.wire_id(number)), np.uint8)
            expected[where] = packed
            if not np.array_equal(memory, expected):
                sys.exit(f"{type_name}, {handlers or 'sockets'}: message {number} differs from what was sent")
        result = {
            "bytes": sizes[1] * len(where),
            "ended": ended,
            "share": used / (ended - began),
            "overlap": steps * alone / (2 * ALONE_STEPS) / (ended - began),
        }
        print(json.dumps(result), flush=True)
    way.close()


# ---- the bench ----


Reading = dict[str, float]


def measure(
    cable: namespaces.Cable,
    source: slmp_source.Source,
    words: list[str],
    window: int,
    options: dict[str, int],
) -> Reading:
    receiver = slmp_source.started(cable.nic, slmp_source.HOST, [__file__, "receive", *words])
    slmp_source.line_of(receiver)
    reading: Reading = {}
    for computes in (False, True):
        slmp_source.ask(receiver, computes=computes)
        slmp_source.line_of(receiver)
        source.begin("10.7.0.2", window, 4, 1, **options)
        sent, received = source.end(), slmp_source.line_of(receiver)
        rate = received["bytes"] * 8 / (received["ended"] - sent["began"]) / 1e9
        reading["computing" if computes else "waiting"] = rate
        reading["again"] = reading.get("again", 0) + sent["retransmitted"]
        reading["share"] = received["share"]  # the core's share, when it computes
        reading["overlap"] = received["overlap"]
    receiver.communicate()
    return reading


def summary(readings: list[Reading]) -> list[str]:
    """Medians of the rounds in which the receiving program had its core."""
    undisturbed = [each for each in readings if each["share"] >= SHARE_MIN]

    def middle(key: str, digits: int = 2) -> str:
        return f"{statistics.median(each[key] for each in undisturbed):.{digits}f}" if undisturbed else "-"

    return [*map(middle, ("waiting", "computing", "overlap")), middle("again", 0), str(len(undisturbed))]


def main() -> None:
    numbers = [int(text) for text in sys.argv[1:] if text != "original"]
    rounds, elements, messages = (numbers + [5, 10, 16][len(numbers) :])[:3]
    options = {"as_original": 1} if "original" in sys.argv[1:] else {}
    if len(slmp_source.CORES) < 2:
        sys.exit("this bench needs two cores")
    readings_by_way: dict[tuple[str, str, int], list[Reading]] = {}
    with contextlib.ExitStack() as stack:
        served, plain = (stack.enter_context(namespaces.cable()) for _ in range(2))
        plain.nic.ip("address add 10.7.0.2/24 dev nic0")
        nic = stack.enter_context(slmp_source.nic_on(served, slmp_source.AWAY))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sources = {}
        for type_name in TYPES:
            (scratch / type_name).mkdir()
            write_messages(scratch / type_name, type_name, elements, messages)
            for cable in (served, plain):
                sender = slmp_source.Source(cable.client, scratch / type_name)
                sources[type_name, id(cable)] = stack.enter_context(sender)
        for _ in range(rounds):
            for type_name in TYPES:
                for handlers, window in WAYS:
                    cable = served if handlers else plain
                    words = [nic, handlers, type_name, str(elements), str(messages), str(scratch / type_name)]
                    source = sources[type_name, id(cable)]
                    reading = measure(cable, source, words, window, options)
                    readings_by_way.setdefault((type_name, handlers, window), []).append(reading)
                    print(type_name, handlers or "sockets", window, reading, file=sys.stderr)
    columns = ["type", "unpacks", "window", "Gbit/s, waits", "Gbit/s, computes", "overlap", "again", "rounds"]
    rows = [
        [name, handlers or "the process", str(window), *summary(readings)]
        for (name, handlers, window), readings in readings_by_way.items()
    ]
    title = f"{messages} messages of {elements} elements, {rounds} rounds, host time"
    output.show(output.table(columns, rows, numeric=set(columns[2:]), title=title))


if __name__ == "__main__":
    if sys.argv[1:2] == ["receive"]:
        receive(*sys.argv[2:])
    else:
        main()
