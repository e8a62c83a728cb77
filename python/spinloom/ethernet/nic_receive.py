"""A message of SLMP that a live Ethernet NIC receives: its handlers check, place and acknowledge packets.

Contract: receive() gives the message, whole in the memory that this process shares with the NIC, to `land`,
and lets the NIC answer repeats of its packets until none has come for a while. The layout of constants and
state is that of include/spinloom/slmp_file.h.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spinloom.common import core, data
from spinloom.common.errors import Trouble

HOST_HPUS, PAGE, NOTICES, COUNTERS = 32, 4096, 256, 16
FILE_OFFSET = (HOST_HPUS * PAGE + NOTICES * 16 + PAGE - 1) // PAGE * PAGE
STATE = (
    2 * 8 * HOST_HPUS + 8 * COUNTERS + 8
)  # struct spl_host_data; what follows is spl_slmp_file_state's own
SEEN = STATE + 4 * 4 + 2 * 8 + 4 * 4
SEGMENT_MIN = 1024  # a message of shorter packets may find no room
SILENCE_S = 5.0  # a message of which nothing comes for so long makes room for another
PATIENCE_S = 0.2  # a wait, after which an interrupt is seen


@dataclass(frozen=True)
class ReceivedMessage:
    content: bytes
    message_id: int
    segment: int  # bytes of each packet but the last
    repeated: int  # packets that had come before
    wrong: int  # malformed packets
    refused: int  # packets that do not belong to the message, or do not fit it


def state_bytes(segments: int) -> int:
    return SEEN + (segments + 31) // 32 * 4


def open_program(engine: Any, nic: str, handlers: str, sizes: tuple[int, int, int]) -> Any:
    """A program in the first context of the NIC that is free.

    `handlers`: a file's name; a shipped one is found. `sizes`: bytes of host memory, state and constants.
    """
    return engine.NicProgram(nic, str(data.folder("handlers") / handlers), *sizes)


def receive(
    nic: str,
    place: tuple[int, int],
    limit: int,
    wait_s: float | None,
    linger_s: float,
    land: Callable[[ReceivedMessage], None],
    ready: Callable[[], None] = lambda: None,
) -> bool:
    """One message of at most `limit` bytes; False if none has come in time.

    `place`: an IPv4 address, 0 for any, and a port. `ready` is called when the NIC takes its packets.
    """
    address, port = place
    engine = core.load()
    segments = limit // SEGMENT_MIN + 1
    sizes = (FILE_OFFSET + limit, state_bytes(segments), 24)
    program = open_program(engine, nic, "slmp_file.so", sizes)
    try:
        program.write_constants(
            0, bytes(8) + struct.pack(">I", address) + struct.pack("<QI", limit, segments)
        )
        program.write_state(STATE, struct.pack("<I", 1))
        program.activate(port, False)
        ready()
        waited, stalled, seen = 0.0, 0.0, b""
        while (notice := program.next_notice(PATIENCE_S)) is None:
            waited += PATIENCE_S
            if wait_s is not None and waited >= wait_s and receive_state(program) < 2:
                return False
            program.check()  # a NIC that has gone is a Trouble
            now = program.state(STATE, SEEN - STATE)
            stalled = stalled + PATIENCE_S if now == seen and receive_state(program) == 2 else 0.0
            seen = now
            if stalled >= SILENCE_S:  # its sender has gone: the next message may begin
                program.write_state(STATE, bytes(state_bytes(segments) - STATE))
                program.write_state(STATE, struct.pack("<I", 1))
                stalled = 0.0
        too_long, length = notice
        if too_long:
            raise Trouble(
                "overflow",
                f"the message has more than {length - 1:,} bytes or too many packets: give a larger --limit",
            )
        _, message, segment, _ = struct.unpack("<4I", program.state(STATE, 16))
        _, refused, wrong, repeated = struct.unpack("<4I", program.state(STATE + 32, 16))
        message_id = struct.unpack(">I", struct.pack("<I", message))[0]
        content = program.host_memory(FILE_OFFSET, length)
        land(ReceivedMessage(content, message_id, segment, repeated, wrong, refused))
        linger(program, linger_s)
        return True
    finally:
        program.close()


def linger(program: Any, seconds: float) -> None:
    """Until no packet has been repeated for so long: the last acknowledgements may have been lost."""
    seen, since = program.state(STATE + 44, 4), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(min(PATIENCE_S, seconds))
        now = program.state(STATE + 44, 4)
        if now != seen:
            seen, since = now, time.monotonic()


def receive_state(program: Any) -> int:
    return struct.unpack("<I", program.state(STATE, 4))[0]
