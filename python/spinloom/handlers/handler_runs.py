"""Runs of a handler in the simulator: inputs, results, and the comparison with the author's expectation.

Contract: run() gives the engine's dictionary (bindings_handler.cpp) as a HandlerRun; compare() lists the
differences from NAME_expect.py's expect(message, count). Same arguments, same result: random_message() is a
function of size and seed.
"""

from __future__ import annotations

import importlib.util
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.handlers.handler_build import Image
from spinloom.handlers.handler_setup import HandlerSetup, content_bytes, filled, order_of

Expect = Callable[[bytes, int], dict[str, Any]]

MEMORIES = {
    "entry": "the entry's memory",
    "state": "the state",
    "reply": "the sender's memory",
    "handler_memory": "the handler's host memory",
}


@dataclass(frozen=True)
class HandlerRun:
    setup: HandlerSetup
    message: bytes
    before: dict[str, bytes]  # the contents of each memory
    result: dict[str, Any]
    partial: bool = False  # it was interrupted

    @property
    def failures(self) -> list[str]:
        """The failures in the hosts' events, each kind once."""
        return list(dict.fromkeys(event["fail"] for event in self.result["events"] if not event["ok"]))

    @property
    def ended_well(self) -> bool:
        return self.result["time_ps"] >= 0 and not self.failures


def random_message(size_bytes: int, seed: int) -> bytes:
    return random.Random(f"handler message {seed} {size_bytes}").randbytes(size_bytes)


def run(
    image: Image | None,
    setup: HandlerSetup,
    message: bytes,
    *,
    seed: int = 1,
    trace: bool = False,
    profile_instructions: bool = False,
) -> HandlerRun:
    """Runs the messages; with `image` None, without handlers. Ctrl-C ends it: the KeyboardInterrupt carries
    the run, as far as it came, as `.ran`."""
    engine = core.load()
    profile = setup.nic
    packet_bytes = setup.packet_of(profile)
    entry, state, handler_memory = (
        content_bytes(content, packet_bytes, len(message))
        for content in (setup.entry_from, setup.state_from, setup.handler_from)
    )
    before = {
        "entry": filled("entry", setup.entry_bytes, entry, len(message)),
        "state": filled("state", setup.state_bytes, state),
        "reply": bytes(max(setup.reply_bytes, len(message)) if setup.reply_bytes else 0),
        "handler_memory": filled("handler", setup.handler_bytes, handler_memory),
    }
    config = {
        "profile": profile.native(),
        "images": {image.name: image.elf} if image else {},
        "image": image.name if image else "",
        "hpus": setup.hpus_of(profile),
        "mtu": packet_bytes,
        "order": order_of(setup.order),
        "seed": seed,
        "inject": "none",
        "message": message,
        "messages": setup.count,
        "hdr_data": setup.hdr_data,
        "user_header_bytes": setup.user_header_bytes,
        "ack": setup.ack,
        "budget_cycles": setup.budget_cycles,
        "constants": setup.constant_bytes(packet_bytes, len(message)),
        **before,
        "trace": trace,
        "profile_instructions": profile_instructions,
    }
    try:
        return HandlerRun(setup, message, before, engine.run_handler(config))
    except KeyboardInterrupt as stopped:
        if (result := getattr(stopped, "result", None)) is not None:
            stopped.ran = HandlerRun(setup, message, before, result, partial=True)  # type: ignore[attr-defined]
        raise
    except engine.SpinloomError as error:
        raise Trouble(error.code, error.message) from None


def expectation(path: Path) -> Expect | None:
    """expect() of NAME_expect.py, or None if there is no such file."""
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Trouble("invalid", f"{place_of(error, str(path))}: {type(error).__name__}: {error}") from None
    if not callable(getattr(module, "expect", None)):
        raise Trouble("invalid", f"{path} defines no function expect(message, count)")
    return module.expect


def place_of(error: BaseException, filename: str) -> str:
    """FILE:LINE of the last line of that file that was running when the error arose."""
    path = Path(filename).resolve()
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).resolve() == path:
        return f"{filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path]
    return f"{filename}:{lines[-1]}" if lines else filename


def compare(ran: HandlerRun, expect: Expect) -> list[str]:
    """The differences from the expectation, in words; empty if there are none."""
    try:
        expected = dict(expect(ran.message, ran.setup.count))
    except Exception as error:
        filename = getattr(getattr(expect, "__code__", None), "co_filename", "expect()")
        case = f"expect() of a message of {len(ran.message)} B, count {ran.setup.count}"
        raise Trouble(
            "invalid", f"{place_of(error, filename)}: {case}: {type(error).__name__}: {error}"
        ) from None
    record_bytes = expected.pop("records", 0)
    if not isinstance(record_bytes, int) or record_bytes < 0:
        raise Trouble(
            "invalid", f"expect() returned {record_bytes!r} as 'records'; it is a record's size in bytes"
        )
    wrong = []
    for name, value in expected.items():
        if name == "counter":
            success, failure = ran.result["counter"]
            if (success, failure) != (value, 0):
                wrong.append(f"the entry's counter is {success} (failures: {failure}), not {value}")
        elif name not in MEMORIES:
            known = ", ".join([*MEMORIES, "counter", "records"])
            raise Trouble("invalid", f"expect() returned '{name}'; it may return {known}")
        elif not isinstance(value, bytes | bytearray | memoryview):
            raise Trouble(
                "invalid", f"expect() returned {type(value).__name__} as '{name}'; it must be bytes"
            )
        else:
            before = None if name == "state" else ran.before[name]
            wrong += differing(
                MEMORIES[name], ran.result[name], value, before, record_bytes if name == "entry" else 0
            )
    return wrong


def not_compared(ran: HandlerRun, expect: Expect) -> list[str]:
    """The memories of which expect() says nothing."""
    expected = expect(ran.message, ran.setup.count)
    return [
        description for name, description in MEMORIES.items() if ran.result[name] and name not in expected
    ]


def differing(
    memory: str, actual: bytes, expected: bytes, before: bytes | None, record_bytes: int
) -> list[str]:
    """Behind the expectation the memory must be as it was `before` the run; None: handlers work there."""
    if len(expected) > len(actual):
        return [f"{memory} has {len(actual)} B, the expectation {len(expected)} B"]
    head, rest = actual[: len(expected)], actual[len(expected) :]
    if record_bytes:
        head, expected = in_order(head, record_bytes), in_order(expected, record_bytes)
    for at, (byte, expected_byte) in enumerate(zip(head, expected, strict=True)):
        if byte != expected_byte:
            unit = "record" if record_bytes else "byte"
            where = at // record_bytes if record_bytes else at
            return [f"{memory}: {unit} {where:,} differs: 0x{byte:02x}, not 0x{expected_byte:02x}"]
    if before is None or rest == before[len(expected) :]:
        return []
    at = next(at for at in range(len(expected), len(actual)) if actual[at] != before[at])
    return [f"{memory}: byte {at:,}, behind what is expected, was changed to 0x{actual[at]:02x}"]


def in_order(content: bytes, record_bytes: int) -> bytes:
    starts = range(0, len(content), record_bytes)
    return b"".join(sorted(content[at : at + record_bytes] for at in starts))
