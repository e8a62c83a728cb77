"""The channel of a gpu.Pair over a communicator of mpi4py.

Contract: messages go to one rank and come from it under one tag, in order. send() returns before the message
has arrived; while more than UNDER_WAY_MAX are under way it takes in what comes and waits, so that two that
send to each other both go on. settle() waits until what was sent has been taken. mpi4py is not imported: the
communicator's module is there.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Any

from spinloom.common.errors import Trouble

TAG = 0x5350  # every MPI has tags up to 32767
UNDER_WAY_MAX = 8


class MpiChannel:
    def __init__(self, comm: Any, peer: int | None) -> None:
        if peer is None:
            raise Trouble("invalid", "a pair over a communicator needs peer=, the rank of the other process")
        if not 0 <= peer < comm.size or peer == comm.rank:
            raise Trouble("invalid", f"peer = {peer} is no other rank of the {comm.size} of the communicator")
        self.comm, self.peer = comm, peer
        self.mpi: Any = sys.modules[type(comm).__module__]
        self.sent: deque[tuple[Any, bytes]] = deque()
        self.arrived: deque[bytes] = deque()

    def send(self, message: bytes) -> None:
        self.sent.append((self.comm.Isend([message, self.mpi.BYTE], dest=self.peer, tag=TAG), message))
        self._forget_sent()
        while len(self.sent) > UNDER_WAY_MAX:
            if (message_in := self._take()) is not None:
                self.arrived.append(message_in)
            self._forget_sent()

    def receive(self, patience_ms: int) -> bytes | None:
        self._forget_sent()
        if self.arrived:
            return self.arrived.popleft()
        end = time.monotonic() + patience_ms / 1000
        while (message := self._take()) is None and patience_ms and time.monotonic() < end:
            time.sleep(0)
        return message

    def settle(self) -> None:
        while self.sent:
            self._forget_sent()

    def _take(self) -> bytes | None:
        status = self.mpi.Status()
        message = self.comm.Improbe(source=self.peer, tag=TAG, status=status)
        if message is None:
            return None
        content = bytearray(status.Get_count(self.mpi.BYTE))
        message.Recv([content, self.mpi.BYTE])
        return bytes(content)

    def _forget_sent(self) -> None:
        while self.sent and self.sent[0][0].Test():
            self.sent.popleft()
