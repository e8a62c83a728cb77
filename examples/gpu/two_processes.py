"""Two processes on one GPU, each with a grid: an own column of each becomes the other's ghost column.

Nothing is packed where CUDA IPC works between the two: the receiver's kernel reads the column in the other's
grid. Needs CuPy.

    python examples/gpu/two_processes.py
    SPINLOOM_GPU_PEER=staged python examples/gpu/two_processes.py
"""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.connection import Connection

SIDE = 1024


def start_of(rank: int):
    import numpy as np

    return np.arange(float(SIDE * SIDE)).reshape(SIDE, SIDE) + rank * SIDE * SIDE


def neighbour(connection: Connection, rank: int) -> None:
    import cupy

    from spinloom import gpu, layout

    grid = cupy.asarray(start_of(rank))
    own, ghost = (-2, -1) if rank == 0 else (1, 0)  # west and east
    pair = gpu.Pair(connection)
    print(f"process {rank}: {pair.way}: {pair.reason}")

    sent = pair.begin_send(layout.from_array(grid[:, own], base=grid), grid)
    pair.receive(layout.from_array(grid[:, ghost], base=grid), grid)
    sent.wait()

    expected = start_of(rank)
    expected[:, ghost] = start_of(1 - rank)[:, 1 if rank == 0 else -2]
    assert (grid.get() == expected).all()
    print(f"process {rank}: the ghost column holds the neighbour's column")


def main() -> int:
    processes = multiprocessing.get_context("spawn")  # a process that forks keeps no GPU
    ours, theirs = processes.Pipe()
    east = processes.Process(target=neighbour, args=(theirs, 1))
    east.start()
    theirs.close()
    neighbour(ours, 0)
    east.join()
    return east.exitcode or 0


if __name__ == "__main__":
    sys.exit(main())
