"""Layouts bound to arrays, for the same move again and again: what bind() and its like of layout.py make.

Contract: `engine` is what the engine has bound and checked; a plan's calls are the engine's own, so that no
Python runs in them. `stream` is that of a plan on a GPU, None on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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


class CopyPlan:
    """A layout in one array bound to a layout in another: Layout.bind_copy() makes it. copy() does it."""

    __slots__ = ("__weakref__", "copy", "stream")

    def __init__(self, engine: Any, stream: int | None = None) -> None:
        self.stream = stream
        self.copy: Callable[[], None] = engine.copy


class SetPlan:
    """Many messages bound together: bind_set() makes it. pack() and unpack() move all of them.

    On a GPU by one launch; `launches` says how many there are, none on the host.
    """

    __slots__ = ("__weakref__", "engine", "pack", "stream", "unpack")

    def __init__(self, engine: Any, stream: int | None = None) -> None:
        self.engine, self.stream = engine, stream
        self.pack: Callable[[], None] = engine.pack
        self.unpack: Callable[[], None] = engine.unpack

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
