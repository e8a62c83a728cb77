"""The ways of others to move a message in a GPU's memory: CuPy, PyTorch, and a kernel written by hand.

Contract: each way packs and unpacks one GpuRow between raw device memory, on a given stream, without
allocating: `calls` maps an operation to a function that only launches. Ways are made for what a user of that
library would write: a strided view where the blocks form a grid of up to three loops, take and assignment
over a list of indices elsewhere. What has more than ITEMS_MAX blocks and no grid has no such way. The kernel
by hand is what a programmer writes for one grid or one list: a thread an item, sizes as arguments.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from spinloom.bench.gpu_rows import GpuRow, Grid
from spinloom.bench.numpy_peer import ITEMS_MAX, loops_of
from spinloom.layout import Layout
from spinloom.layout.device import cupy_stream

ITEM_BYTES = (8, 4, 2, 1)
THREADS = 256
Calls = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class IndexList:
    """Blocks of equal length at listed places, or single items: what an index list says."""

    item_bytes: int
    places: Any  # the blocks' places, in items
    width: int  # items of a block
    items: Any  # the places of all items


Shape = Grid | IndexList


def shape_of(row: GpuRow, number: int) -> Shape | None:
    """Returns how a user of an array library describes one message of a row."""
    import numpy as np

    if (grid := row.grids[number]) is not None:
        return grid
    blocks = Layout(row.types[number]).blocks(ITEMS_MAX + 1)
    if not blocks or len(blocks) > ITEMS_MAX:
        return None
    places, lengths = np.array(blocks, dtype=np.int64).T
    places = places + row.origin_bytes
    item = next(size for size in ITEM_BYTES if not (places % size).any() and not (lengths % size).any())
    equal = bool((lengths == lengths[0]).all())
    loops = loops_of(places) if equal else None
    if loops is not None:
        shape = (*(count for count, _ in loops), int(lengths[0]) // item)
        strides = (*(stride // item for _, stride in loops), 1)
        if all(stride >= 0 for stride in strides):
            return Grid(item, int(places[0]) // item, shape, strides)
    counts = lengths // item
    starts = np.repeat(places // item - (np.cumsum(counts) - counts), counts)
    items = starts + np.arange(int(counts.sum()))
    width = int(counts[0])
    if equal and not (places % (width * item)).any():
        return IndexList(item, places // item, width, items)
    return IndexList(item, items, 1, items)


@dataclass(frozen=True)
class Raw:
    """Device memory: an address, bytes, and the interface by which libraries take it."""

    address: int
    bytes: int

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self.bytes,), "typestr": "|u1", "data": (self.address, False), "version": 3,
            "strides": None, "stream": None,
        }  # fmt: skip


@dataclass
class Way:
    name: str
    calls: Calls


def packed_places(row: GpuRow) -> list[tuple[int, int]]:
    """Returns (offset, bytes) of the packed bytes of each message of a row."""
    places, at = [], 0
    for text in row.types:
        size = Layout(text).size
        places.append((at, size))
        at += size
    return places


class Cupy:
    """CuPy's ways; raises ImportError where there is none."""

    def __init__(self, stream: int) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        self.stream = cupy_stream(self.cupy, stream)
        self.stream.use()

    def array(self, raw: Raw, item: int, first: int = 0) -> Any:
        memory = self.cupy.cuda.UnownedMemory(raw.address, raw.bytes, raw)
        pointer = self.cupy.cuda.MemoryPointer(memory, first)
        return self.cupy.ndarray(((raw.bytes - first) // item,), f"u{item}", pointer)

    def strided(self, raw: Raw, grid: Grid) -> Any:
        memory = self.cupy.cuda.UnownedMemory(raw.address, raw.bytes, raw)
        pointer = self.cupy.cuda.MemoryPointer(memory, grid.first * grid.item_bytes)
        strides = tuple(step * grid.item_bytes for step in grid.strides)
        return self.cupy.ndarray(grid.shape, f"u{grid.item_bytes}", pointer, strides)

    def ways(self, row: GpuRow, shapes: list[Shape], memory: Raw, packed: Raw) -> list[Way]:
        found = [self.library(row, shapes, memory, packed)]
        if len(shapes) == 1:
            found.append(self.by_hand(shapes[0], memory, packed))
        return found

    def library(self, row: GpuRow, shapes: list[Shape], memory: Raw, packed: Raw) -> Way:
        packs: list[Callable[[], object]] = []
        unpacks: list[Callable[[], object]] = []
        for shape, (offset, size) in zip(shapes, packed_places(row), strict=True):
            flat = self.array(Raw(packed.address, offset + size), shape.item_bytes, offset)
            if isinstance(shape, Grid):
                view, wide = self.strided(memory, shape), flat.reshape(shape.shape)
                packs.append(partial(wide.__setitem__, ..., view))
                unpacks.append(partial(view.__setitem__, ..., wide))
            else:
                array, items = self.array(memory, shape.item_bytes), self.cupy.asarray(shape.items)
                packs.append(partial(self.cupy.take, array, items, out=flat))
                unpacks.append(partial(array.__setitem__, items, flat))
        return Way("cupy", {"pack": in_sequence(packs), "unpack": in_sequence(unpacks)})

    def by_hand(self, shape: Shape, memory: Raw, packed: Raw) -> Way:
        text = kernel_text(shape)
        calls: Calls = {}
        items = self.cupy.asarray(shape.places.astype("i4")) if isinstance(shape, IndexList) else None
        for operation in ("pack", "unpack"):
            kernel = self.cupy.RawKernel(text, f"{operation}_by_hand")
            kernel.compile()
            arguments, count = kernel_arguments(shape, memory.address, packed.address, items)
            blocks = min((count + THREADS - 1) // THREADS, 1 << 20)
            calls[operation] = partial(kernel, (blocks,), (THREADS,), arguments)
        return Way("hand", calls)


def kernel_text(shape: Shape) -> str:
    """CUDA C of a strided copy, or of a gather, as a programmer writes it for this one case."""
    kind = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}[
        shape.item_bytes
    ]
    if isinstance(shape, Grid):
        loops = len(shape.shape)
        names = ", ".join(f"unsigned n{d}, long long s{d}" for d in range(loops))
        place = "unsigned rest = i; long long at = 0;"
        for d in reversed(range(1, loops)):
            place += f" at += (rest % n{d}) * s{d}; rest /= n{d};"
        place += " at += rest * s0;"
    else:
        names = "const int* places, unsigned width"
        place = "long long at = places[i / width] + i % width;"
    text = ""
    for operation, move in (("pack", "packed[i] = memory[at]"), ("unpack", "memory[at] = packed[i]")):
        text += f"""
extern "C" __global__ void {operation}_by_hand({kind}* memory, {kind}* packed, unsigned count, {names}) {{
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {{
    {place}
    {move};
  }}
}}
"""
    return text


def kernel_arguments(shape: Shape, memory: int, packed: int, items: Any) -> tuple[tuple[Any, ...], int]:
    import numpy as np

    if isinstance(shape, Grid):
        count = 1
        loops: list[Any] = []
        for length, stride in zip(shape.shape, shape.strides, strict=True):
            count *= length
            loops += [np.uint32(length), np.int64(stride)]
        address = np.uint64(memory + shape.first * shape.item_bytes)
        return (address, np.uint64(packed), np.uint32(count), *loops), count
    count = len(shape.items)
    address = np.uint64(memory)
    return (address, np.uint64(packed), np.uint32(count), items, np.uint32(shape.width)), count


class Torch:
    """PyTorch's ways; raises ImportError where there is none, or none for GPUs."""

    def __init__(self, stream: int) -> None:
        self.torch: Any = importlib.import_module("torch")
        if not self.torch.cuda.is_available():
            raise ImportError("this PyTorch has no GPU")
        self.torch.cuda.set_stream(self.torch.cuda.ExternalStream(stream))
        names = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
        self.kinds = {size: getattr(self.torch, name) for size, name in names.items()}

    def array(self, raw: Raw, item: int) -> Any:
        whole = self.torch.as_tensor(Raw(raw.address, raw.bytes - raw.bytes % item), device="cuda")
        return whole.view(self.kinds[item])

    def ways(self, row: GpuRow, shapes: list[Shape], memory: Raw, packed: Raw) -> list[Way]:
        packs: list[Callable[[], object]] = []
        unpacks: list[Callable[[], object]] = []
        for shape, (offset, size) in zip(shapes, packed_places(row), strict=True):
            item = shape.item_bytes
            array, flat = self.array(memory, item), self.array(Raw(packed.address + offset, size), item)
            if isinstance(shape, Grid):
                view = self.torch.as_strided(array, shape.shape, shape.strides, shape.first)
                wide = flat.reshape(shape.shape)
                packs.append(partial(wide.copy_, view))
                unpacks.append(partial(view.copy_, wide))
            else:
                items = self.torch.as_tensor(shape.items, device="cuda")
                packs.append(partial(self.torch.index_select, array, 0, items, out=flat))
                unpacks.append(partial(array.index_copy_, 0, items, flat))
        return [Way("torch", {"pack": in_sequence(packs), "unpack": in_sequence(unpacks)})]


def in_sequence(calls: list[Callable[[], object]]) -> Callable[[], object]:
    if len(calls) == 1:
        return calls[0]

    def all_of_them() -> None:
        for call in calls:
            call()

    return all_of_them


def libraries(stream: int) -> list[Cupy | Torch]:
    """The libraries that are installed and have a GPU."""
    usable: list[Cupy | Torch] = []
    for kind in (Cupy, Torch):
        try:
            usable.append(kind(stream))
        except ImportError:
            continue
    return usable
