"""NumPy as a way to move a message: copyto over a strided view, or take and assignment over an index list.

Contract: NumpyPeer(text) finds the arrays that a NumPy user would write for the blocks of one element of a
type: a strided view where the blocks form a grid of up to three loops, a list of items elsewhere. It raises
Trouble('unsupported') for what NumPy users do not do: more than ITEMS_MAX blocks. check() compares bytes with
the layout's own. Times are host times in ns, of one call from Python: NumPy's, and our bound plan's over the
same arrays. numpy_ways() gives the peers of a type after check(); none if NumPy is missing or if its users
would not do it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spinloom.common.errors import Trouble
from spinloom.layout import Layout

if TYPE_CHECKING:
    import numpy as np

ITEMS_MAX = 1 << 20
LOOPS_MAX = 3
ITEM_BYTES = (8, 4, 2, 1)


def loops_of(places: np.ndarray[Any, Any]) -> list[tuple[int, int]] | None:
    """(count, stride) of nested loops, the outer one first, that visit the places in their order."""
    loops: list[tuple[int, int]] = []
    while len(places) > 1:
        if len(loops) == LOOPS_MAX:
            return None
        steps = places[1:] - places[:-1]
        changes = (steps != steps[0]).nonzero()[0]
        inner = int(changes[0]) + 1 if len(changes) else len(places)
        if len(places) % inner:
            return None
        rows = places.reshape(-1, inner)
        if ((rows - rows[:, :1]) != rows[0] - rows[0, 0]).any():
            return None
        loops.insert(0, (inner, int(steps[0])))
        places = rows[:, 0]
    return loops


class NumpyPeer:
    def __init__(self, text: str) -> None:
        import numpy as np

        self.np, self.layout = np, Layout(text)
        blocks = self.layout.blocks(ITEMS_MAX + 1)
        if not blocks or len(blocks) > ITEMS_MAX:
            raise Trouble("unsupported", f"NumPy is measured for 1 to {ITEMS_MAX:,} blocks")
        places, lengths = np.array(blocks, dtype=np.int64).T
        origin = int(places.min())
        places = places - origin
        self.item = next(
            size for size in ITEM_BYTES if not (places % size).any() and not (lengths % size).any()
        )
        bytes_ = int((places + lengths).max())
        self.memory = np.random.default_rng(1).integers(0, 256, bytes_, dtype="u1").view(f"u{self.item}")
        self.offset = -origin
        self.packed = np.zeros(self.layout.size // self.item, self.memory.dtype)
        equal = bool((lengths == lengths[0]).all())
        loops = loops_of(places) if equal else None
        self.call: dict[str, Callable[[], object]]
        if loops is not None:
            self.name = "NumPy copyto"
            shape = (*(count for count, _ in loops), int(lengths[0]) // self.item)
            strides = (*(stride for _, stride in loops), self.item)
            first = self.memory[int(places[0]) // self.item :]
            view = np.lib.stride_tricks.as_strided(first, shape, strides)
            packed = self.packed.reshape(shape)
            self.call = {
                "pack": lambda: np.copyto(packed, view),
                "unpack": lambda: np.copyto(view, packed),
            }
        else:
            self.name = "NumPy take"
            counts = lengths // self.item
            starts = np.repeat(places // self.item - (np.cumsum(counts) - counts), counts)
            items = starts + np.arange(len(self.packed))
            memory, packed = self.memory, self.packed
            self.call = {
                "pack": lambda: np.take(memory, items, out=packed, mode="clip"),
                "unpack": lambda: memory.__setitem__(items, packed),
            }

        plan = self.layout.bind(self.memory, self.packed, offset=self.offset)
        self.plan_calls: dict[str, Callable[[], object]] = {"pack": plan.pack, "unpack": plan.unpack}

    def check(self, operation: str) -> None:
        """Raises Trouble('mismatch') unless one call moves the bytes that the layout moves."""
        if operation == "pack":
            self.call["pack"]()
            is_equal = self.packed.tobytes() == self.layout.pack(self.memory, offset=self.offset)
        else:
            expected = self.memory.copy()
            self.packed.view("u1")[:] = self.np.arange(self.packed.nbytes) % 251
            self.layout.unpack(self.packed, expected, offset=self.offset)
            self.call["unpack"]()
            is_equal = bool((self.memory == expected).all())
        if not is_equal:
            raise Trouble("mismatch", f"{self.name} {operation}s other bytes than the layout")

    def time(self, operation: str, repetitions: int, calls: int) -> list[float]:
        return times_of(self.call[operation], repetitions, calls)

    def time_ours(self, operation: str, repetitions: int, calls: int) -> list[float]:
        return times_of(self.plan_calls[operation], repetitions, calls)


def times_of(call: Callable[[], object], repetitions: int, calls: int) -> list[float]:
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            call()
        times.append((time.perf_counter_ns() - begin) / calls)
    return times


def numpy_ways(text: str, operations: list[str]) -> list[NumpyPeer]:
    try:
        peer = NumpyPeer(text)
        for operation in peer.call:
            if operation in operations:
                peer.check(operation)
    except ImportError:
        return []
    except Trouble as trouble:
        if trouble.code != "unsupported":
            raise
        return []
    return [peer]
