"""Messages of SLMP that a live Ethernet NIC's handlers unpack into memory of this process, by a datatype.

Contract: Unpacked takes a context of the NIC for `messages` messages, numbered from 0, each of `count`
elements of the type; message m has the SLMP message ID wire_id(m). From then on the bytes of a packet lie
where they belong when it has been acknowledged. memory(m) is the memory of message m, `span` bytes from the
first byte that the type touches on, and stays for as long as it is held. A message may come again and again.
It is whole if its sender repeats what is lost and sends the last packet when all others have been
acknowledged, as slmp.send does. frame_ddt_segment needs a window of one packet for each message,
frame_ddt_seek takes any; but of bytes that the type writes twice the last in packed order stay only with a
window of one. Raises Trouble. Threads: one. Time: host time.
"""

from __future__ import annotations

import mmap

from spinloom import slmp as protocol
from spinloom.common import core
from spinloom.ethernet import nic_receive


def wire_id(message: int) -> int:
    """The matching unit reads message IDs with the first byte as the lowest."""
    return int.from_bytes(message.to_bytes(4, "little"), "big")


class Unpacked:
    """A context. `handlers`: frame_ddt_seek or frame_ddt_segment, .so (trusted) or .elf (in the sandbox)."""

    def __init__(
        self, nic: str, handlers: str, type_text: str, count: int, messages: int, port: int = protocol.PORT
    ) -> None:
        engine = core.load()
        needs = engine.ddt_context(type_text, count, messages)
        self.span: int = needs["span"]
        self.first, self.stride = needs["first"], needs["stride"]
        host_bytes = self.first + messages * self.stride
        sizes = (host_bytes, needs["state_bytes"], len(needs["constants"]))
        self.program = nic_receive.open_program(engine, nic, handlers, sizes)
        try:
            self.shared = mmap.mmap(self.program.host_descriptor(), host_bytes)
            self.program.write_constants(0, needs["constants"])
            self.program.activate(port, True)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Unpacked:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def memory(self, message: int) -> memoryview:
        begin = self.first + message * self.stride
        return memoryview(self.shared)[begin : begin + self.span]

    def next(self, seconds: float) -> int | None:
        """The number of a message that has come; None if there was none in time. 0 looks once.

        A message is told again if its last packet comes again, as after the loss of its acknowledgement.
        """
        notice = self.program.next_notice(seconds)
        return None if notice is None else notice[1]

    def close(self) -> None:
        self.program.close()
