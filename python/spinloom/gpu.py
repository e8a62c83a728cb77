"""Two processes that move messages between their GPUs' memories, with a layout at either end.

    ours, theirs = multiprocessing.Pipe()        # a socket will do as well; both processes:
    pair = gpu.Pair(ours)
    pair.send(face, grid)                        # one process
    pair.receive(ghost, grid)                    # the other
    gpu.Pair(MPI.COMM_WORLD, peer=1)             # the same over mpi4py

Contract: both processes make a Pair over their end of the same connection, at the same time. It finds the
best way that works between these two (`way`, and `reason`, a sentence): ipc, one kernel of the receiver
from layout to layout; staged, through pinned memory of the host that both have mapped; packed, packed bytes
through the connection. Packed sizes must be equal, layouts need not be. The connection stays the caller's;
both may use it between moves, not while one is under way. begin_send() and begin_receive() return at once;
one move in each direction may be under way, and both go on while their process calls test() or wait() of
either. Streams are those of device.py: a send comes after what the array's library has begun, a receive is
over when the bytes are there. What is wrong with a message is Trouble at both processes, and the pair goes
on. A process that ends is Trouble at the other, at once.
"""

from __future__ import annotations

import operator
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.layout import device
from spinloom.layout.gpu_channel import MpiChannel

if TYPE_CHECKING:
    from spinloom.layout import Layout

__all__ = ["Move", "Pair", "with_itself"]


class Move:
    """A message under way. It keeps its array; dropped before it is over, it ends the pair."""

    __slots__ = ("channel", "engine")

    def __init__(self, engine: Any, channel: Any = None) -> None:
        self.engine, self.channel = engine, channel

    def test(self) -> bool:
        """Takes the next steps that need no waiting. True: the move is over."""
        return self.engine.test()

    def wait(self) -> None:
        """Returns when the move is over: bytes have come, or memory may be written again."""
        self.engine.wait()
        if self.channel is not None:
            self.channel.settle()

    @property
    def way(self) -> str:
        """This message's way: packed where memory cannot be mapped, although the pair's way is ipc."""
        return self.engine.way


class Pair:
    """This process and another one.

    `connection` is an end of a duplex multiprocessing.Pipe(), a stream socket, or a communicator of mpi4py,
    in which `peer` is the other process's rank.
    """

    __slots__ = ("__weakref__", "channel", "connection", "engine")

    def __init__(
        self,
        connection: Any,
        peer: int | None = None,
        *,
        device: int = 0,
        way: str | None = None,
        patience_s: float = 60.0,
    ) -> None:
        """Finds the way. `way` forces one, as SPINLOOM_GPU_PEER does; auto chooses."""
        channel: Any = MpiChannel(connection, peer) if hasattr(connection, "Iprobe") else None
        if channel is None:
            if peer is not None:
                raise Trouble("invalid", "peer= is the rank of the other process in an mpi4py communicator")
            fileno = getattr(connection, "fileno", None)
            try:
                channel = fileno() if fileno is not None else operator.index(connection)
            except TypeError:
                raise TypeError(
                    "connection must be a multiprocessing Connection, a socket or a communicator of mpi4py, "
                    f"not {type(connection).__name__}"
                ) from None
        if not 0 < patience_s < 1e6:
            raise Trouble("invalid", f"patience_s is {patience_s}; it must be a number of seconds above 0")
        self.connection = connection
        self.channel = channel if isinstance(channel, MpiChannel) else None
        self.engine = core.load().GpuPair(channel, device, way or "", max(1, int(patience_s * 1000)))

    @property
    def way(self) -> str:
        """ipc, staged or packed."""
        return self.engine.way

    @property
    def reason(self) -> str:
        """The sentence that says why this way was chosen."""
        return self.engine.reason

    def send(
        self, layout: Layout, source: Any, *, count: int = 1, offset: int = 0, as_memory: bool = False,
        stream: Any = None,
    ) -> None:  # fmt: skip
        """Sends `count` elements of a layout in an array of the GPU; returns when it may be written again."""
        self.begin_send(layout, source, count=count, offset=offset, as_memory=as_memory, stream=stream).wait()

    def receive(
        self, layout: Layout, destination: Any, *, count: int = 1, offset: int = 0, as_memory: bool = False,
        stream: Any = None,
    ) -> None:  # fmt: skip
        """Receives into `count` elements of a layout in an array of the GPU; returns when they are there."""
        self.begin_receive(
            layout, destination, count=count, offset=offset, as_memory=as_memory, stream=stream
        ).wait()

    def begin_send(
        self, layout: Layout, source: Any, *, count: int = 1, offset: int = 0, as_memory: bool = False,
        stream: Any = None,
    ) -> Move:  # fmt: skip
        """Begins a send() and does not wait. The source must not be written before the move is over."""
        return self._begin(True, layout, source, count, offset, as_memory, stream)

    def begin_receive(
        self, layout: Layout, destination: Any, *, count: int = 1, offset: int = 0, as_memory: bool = False,
        stream: Any = None,
    ) -> Move:  # fmt: skip
        """Begins a receive() and does not wait. Leave the destination alone until the move is over."""
        return self._begin(False, layout, destination, count, offset, as_memory, stream)

    def _begin(
        self, sends: bool, layout: Layout, array: Any, count: int, offset: int, as_memory: bool, stream: Any
    ) -> Move:
        from spinloom.layout import Layout

        if not isinstance(layout, Layout):
            raise TypeError(f"layout must be a Layout, not {type(layout).__name__}")
        if not device.holds(array):
            raise Trouble(
                "invalid", f"the array must lie in a GPU's memory; the {type(array).__name__} does not"
            )
        view = device.view_of(array)
        with device.Order(stream, [view]) as handle:
            return Move(
                self.engine.begin(
                    sends, layout.engine, device.memory(array, view), count, offset, as_memory, handle
                ),
                self.channel,
            )


OTHER = "import sys; from spinloom import gpu; gpu.Pair(int(sys.argv[1]), patience_s=20)"


def with_itself() -> Pair | None:
    """A pair with a second process that does nothing else and has ended, to know what works on this machine.

    None where the second process, or the pair, does not come about.
    """
    own_end, peer_end = socket.socketpair()
    with own_end, peer_end:
        process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(peer_end.fileno())],
            pass_fds=[peer_end.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        peer_end.close()
        try:
            return Pair(own_end, patience_s=20)
        except Trouble:
            return None
        finally:
            own_end.close()  # the other one ends, too
            process.wait()
