"""Layouts bound to arrays, for the same move again and again: what layout.bind() and its like make.

Contract: `engine` is what the engine has bound and checked; a plan's calls are the engine's own, so that no
Python runs in them. OneByOne, CopiesOneByOne and device.Detour stand for an engine, in Python. `stream` is
that of a plan on a GPU, None on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Done:
    """A move that a plan has begun: begin_pack() and its like make it. It keeps the plan and its arrays."""

    __slots__ = ("engine",)

    def __init__(self, engine: Any = None) -> None:
        self.engine = engine  # None: over when it began

    def test(self) -> bool:
        """True if the bytes are there. Between host and GPU the host moves a piece in this call."""
        return self.engine is None or self.engine.test()

    def wait(self) -> None:
        """Returns when the bytes are there."""
        if self.engine is not None:
            self.engine.wait()

    def hold(self, stream: Any) -> None:
        """Makes what `stream` begins from now on come after the bytes; the host does not wait."""
        from spinloom.layout import device

        handle = device.handle_of(stream)
        if self.engine is not None:
            self.engine.hold(handle)


def begun(engine: Any, call: str) -> Done:
    begin = getattr(engine, f"begin_{call}", None)
    if begin is not None:
        return Done(begin())
    getattr(engine, call)()  # the host does it
    return Done()


class PackPlan:
    """A layout bound to an array and a packed buffer: Layout.bind() makes it.

    pack() and unpack() move the whole message. They raise Trouble where the buffer that they would write is
    read-only; unpack() also where the layout writes a byte twice. NumPy refuses to resize
    the array meanwhile; resize(refcheck=False) would take the memory away under the plan. On a GPU a plan
    launches one kernel a call, on its stream.
    """

    __slots__ = ("__weakref__", "engine", "pack", "packed", "stream", "unpack")

    def __init__(self, engine: Any, packed: Any, stream: int | None = None) -> None:
        self.engine, self.packed, self.stream = engine, packed, stream
        self.pack: Callable[[], None] = engine.pack  # the engine's own: no Python runs in a call
        self.unpack: Callable[[], None] = engine.unpack

    def begin_pack(self) -> Done:
        """pack() without waiting, also where one end is the host's; on the host it is over at once."""
        return begun(self.engine, "pack")

    def begin_unpack(self) -> Done:
        return begun(self.engine, "unpack")


class CopyPlan:
    """A layout in one array bound to a layout in another: Layout.bind_copy() makes it. copy() does it."""

    __slots__ = ("__weakref__", "copy", "engine", "stream")

    def __init__(self, engine: Any, stream: int | None = None) -> None:
        self.engine, self.stream = engine, stream
        self.copy: Callable[[], None] = engine.copy

    def begin_copy(self) -> Done:
        """copy() without waiting, also where one end is the host's; on the host it is over at once."""
        return begun(self.engine, "copy")


class SetPlan:
    """Many messages bound together: bind_set() makes it. pack() and unpack() move all of them.

    On a GPU by one launch; `launches` says how many there are, none on the host.
    """

    __slots__ = ("__weakref__", "engine", "pack", "stream", "unpack")

    def __init__(self, engine: Any, stream: int | None = None) -> None:
        self.engine, self.stream = engine, stream
        self.pack: Callable[[], None] = engine.pack
        self.unpack: Callable[[], None] = engine.unpack

    def begin_pack(self) -> Done:
        """pack() without waiting; on the host it is over at once."""
        return begun(self.engine, "pack")

    def begin_unpack(self) -> Done:
        return begun(self.engine, "unpack")

    @property
    def launches(self) -> int:
        return self.engine.launches

    @property
    def kernel(self) -> str:
        """The GPU's kernel; "" on the host."""
        return self.engine.kernel


class OneByOne:
    """A set on the host."""

    launches, kernel = 0, ""

    def __init__(self, plans: list[PackPlan]) -> None:
        self.plans = plans

    def pack(self) -> None:
        for plan in self.plans:
            plan.pack()

    def unpack(self) -> None:
        for plan in self.plans:
            plan.unpack()


class CopiesOneByOne:
    """Copies on the host."""

    def __init__(self, plans: list[CopyPlan]) -> None:
        self.plans = plans

    def copy(self) -> None:
        for plan in self.plans:
            plan.copy()
