"""A 9-point stencil in double precision whose east and west halos are columns, on one GPU.

The 2D stencil of FALCON-X (section 7.3: 1048 x 1048, halos by MPI vector types), with the ranks' domains side
by side in one GPU's memory: the exchange is what a rank does with its own memory, without a network. Ways to
move columns: ours, CuPy slices, and one copy of the driver a block; the first two also by way of packed
buffers, as between processes. A step ends with a synchronisation, as an exchange between processes does. All
ways' grids are compared after some steps, bit by bit, before times are printed. Needs CuPy.

    python examples/gpu/stencil.py --size 1048 --ranks 4 --steps 200 --csv stencil.csv
"""

from __future__ import annotations

import argparse
import csv
import itertools
import statistics
import sys
from collections.abc import Callable
from typing import Any

FLOPS = 17  # of a point: nine products, eight sums

KERNEL = r"""
extern "C" __global__ void step(const double* in, double* out, int rows, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (x > columns || y > rows) return;
  int w = columns + 2;
  const double* c = in + (long long)y * w + x;
  out[(long long)y * w + x] = 0.25 * c[0] + 0.125 * c[-1] + 0.125 * c[1] + 0.125 * c[-w] + 0.125 * c[w]
                            + 0.0625 * c[-w - 1] + 0.0625 * c[-w + 1] + 0.0625 * c[w - 1] + 0.0625 * c[w + 1];
}
"""


class Domain:
    """size x size points, cut into `ranks` slices from west to east, each with a ghost frame; twice."""

    def __init__(self, cupy: Any, size: int, ranks: int) -> None:
        self.cupy, self.rows, self.columns = cupy, size, size // ranks
        start = cupy.random.default_rng(1).random((size + 2, ranks * self.columns + 2))
        cut = [slice(rank * self.columns, (rank + 1) * self.columns + 2) for rank in range(ranks)]
        self.now = [cupy.ascontiguousarray(start[:, part]) for part in cut]
        self.next = [part.copy() for part in self.now]
        self.kernel = cupy.RawKernel(KERNEL, "step")
        self.points = self.rows * self.columns * ranks

    def compute(self) -> None:
        blocks = ((self.columns + 31) // 32, (self.rows + 7) // 8)
        for before, after in zip(self.now, self.next, strict=True):
            self.kernel(blocks, (32, 8), (before, after, self.rows, self.columns))

    def swap(self) -> None:
        self.now, self.next = self.next, self.now


Pair = tuple[Any, int, Any, int]  # a column of a grid becomes a column of another


def pairs(grids: list[Any]) -> list[Pair]:
    """The columns of an exchange: each neighbour's outermost own column into the ghost column."""
    found = []
    for west, east in itertools.pairwise(grids):
        found += [(west, -2, east, 0), (east, 1, west, -1)]
    return found


def by_slices(grids: list[Any]) -> Callable[[], object]:
    views = [(to[1:-1, target], source[1:-1, column]) for source, column, to, target in pairs(grids)]

    def exchange() -> None:
        for to, source in views:
            to[...] = source

    return exchange


def packed_slices(grids: list[Any]) -> Callable[[], object]:
    """As a program with MPI does it: into a buffer, out of a buffer."""
    cupy = sys.modules["cupy"]
    views = [
        (to[1:-1, target], source[1:-1, column], cupy.empty(source.shape[0] - 2))
        for source, column, to, target in pairs(grids)
    ]

    def exchange() -> None:
        for _, source, buffer in views:
            buffer[...] = source
        for to, _, buffer in views:
            to[...] = buffer

    return exchange


def by_copies(grids: list[Any]) -> Callable[[], object]:
    """Every column into its ghost column by one launch, from layout to layout."""
    from spinloom import layout

    return layout.bind_copies(
        [
            (
                layout.from_array(source[1:-1, column], base=source),
                source,
                layout.from_array(to[1:-1, target], base=to),
                to,
            )
            for source, column, to, target in pairs(grids)
        ]
    ).copy


def by_layouts(grids: list[Any]) -> Callable[[], object]:
    """All columns packed by one launch, and unpacked by another."""
    from spinloom import layout

    cupy = sys.modules["cupy"]
    sent, received = [], []
    for source, column, to, target in pairs(grids):
        buffer = cupy.empty(source.shape[0] - 2)
        sent.append((layout.from_array(source[1:-1, column], base=source), source, buffer))
        received.append((layout.from_array(to[1:-1, target], base=to), to, buffer))
    out, into = layout.bind_set(sent), layout.bind_set(received)

    def exchange() -> None:
        out.pack()
        into.unpack()

    return exchange


def by_blocks(grids: list[Any]) -> Callable[[], object]:
    """One copy of the driver for each block of each column."""
    runtime = sys.modules["cupy"].cuda.runtime
    stream = sys.modules["cupy"].cuda.get_current_stream().ptr
    places = []
    for source, column, to, target in pairs(grids):
        for row in range(1, source.shape[0] - 1):
            places.append((to[row, target].data.ptr, source[row, column].data.ptr))
    inside = runtime.memcpyDeviceToDevice

    def exchange() -> None:
        for to, source in places:
            runtime.memcpyAsync(to, source, 8, inside, stream)

    return exchange


WAYS = {
    "spinloom": by_copies,
    "CuPy slices": by_slices,
    "spinloom, packed": by_layouts,
    "CuPy slices, packed": packed_slices,
    "a copy a block": by_blocks,
}


def run(cupy: Any, name: str, size: int, ranks: int, steps: int) -> tuple[dict[str, Any], Any]:
    domain = Domain(cupy, size, ranks)
    exchanges = [WAYS[name](domain.now), WAYS[name](domain.next)]
    halo = [cupy.cuda.Event() for _ in range(2)]
    halo_us, step_us = [], []
    for number in range(steps + 10):  # ten to warm up
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        halo[0].record()
        exchanges[number % 2]()
        halo[1].record()
        domain.compute()
        end.record()
        end.synchronize()
        domain.swap()
        if number >= 10:
            halo_us.append(1e3 * cupy.cuda.get_elapsed_time(*halo))
            step_us.append(1e3 * cupy.cuda.get_elapsed_time(begin, end))
    step = statistics.median(step_us)
    row = {
        "way": name,
        "size": size,
        "ranks": ranks,
        "halo_us": round(statistics.median(halo_us), 2),
        "step_us": round(step, 2),
        "gflop_s": round(FLOPS * domain.points / step / 1e3, 1),
    }
    return row, cupy.concatenate([part[1:-1, 1:-1] for part in domain.now], axis=1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, nargs="+", default=[1048])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--csv", help="file for the table")
    asked = parser.parse_args()
    try:
        import cupy
    except ImportError as error:
        print(f"this example needs CuPy and a GPU: {error}", file=sys.stderr)
        return 3
    rows = []
    for size in asked.size:
        for ranks in asked.ranks:
            right = None
            for name in WAYS:
                steps = 10 if name == "a copy a block" else asked.steps
                grid = run(cupy, name, size, ranks, 7)[1]
                if right is None:
                    right = grid
                if not bool((grid == right).all()):
                    print(f"{name}, {size} x {size} on {ranks} ranks: other numbers", file=sys.stderr)
                    return 1
                rows.append(run(cupy, name, size, ranks, steps)[0])
                print(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
    if asked.csv:
        with open(asked.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
