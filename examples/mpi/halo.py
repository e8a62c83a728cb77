"""The halo exchange of halo.c in Python: axes are z, y, x, and cells along x lie side by side.

halo.py [side [steps [z y x]]]    side of each rank's cube, 128 unless given; ranks along each axis, 0: any
"""

import sys

import numpy as np
from mpi4py import MPI

side, steps, *dims = [*map(int, sys.argv[1:]), *[128, 51, 0, 0, 0][len(sys.argv) - 1 :]]
dims = MPI.Compute_dims(MPI.COMM_WORLD.size, dims)
comm = MPI.COMM_WORLD.Create_cart(dims)
sizes = [side + 2] * 3
neighbours = [comm.Shift(axis, 1) for axis in range(3)]


def plane(axis: int, at: int) -> tuple[list[slice], MPI.Datatype]:
    """The plane `at` along an axis, without the edges of the grid: where it is, and its type."""
    part, first = [side] * 3, [1] * 3
    part[axis], first[axis] = 1, at
    where = [slice(a, a + n) for a, n in zip(first, part, strict=True)]
    return where, MPI.DOUBLE.Create_subarray(sizes, part, first).Commit()


# For each face: the peer, what goes there, where what comes from there lands, tags of both ways.
faces = []
for axis, (below, above) in enumerate(neighbours):
    faces.append((below, plane(axis, 1), plane(axis, 0), 2 * axis, 2 * axis + 1))
    faces.append((above, plane(axis, side), plane(axis, side + 1), 2 * axis + 1, 2 * axis))

# Neighbours agree on the value of a cell, because it follows from the cell's place in the whole grid.
z, y, x = (np.arange(side + 2) + place * side for place in comm.coords)
place_value = 1e6 * z[:, None, None] + 1e3 * y[None, :, None] + x[None, None, :]
inside = (slice(1, side + 1),) * 3
grid, expected = np.empty(sizes), np.empty(sizes)
wrong, times = 0, []
for step in range(steps):
    for array in (grid, expected):
        array[...] = -1
        array[inside] = (place_value + step)[inside]
    for peer, _, (halo, _), _, _ in faces:
        if peer != MPI.PROC_NULL:
            expected[tuple(halo)] = (place_value + step)[tuple(halo)]

    comm.Barrier()
    begin = MPI.Wtime()
    requests = [comm.Irecv([grid, 1, halo], peer, tag) for peer, _, (_, halo), tag, _ in faces]
    requests += [comm.Isend([grid, 1, inner], peer, tag) for peer, (_, inner), _, _, tag in faces]
    MPI.Request.Waitall(requests)
    times.append(MPI.Wtime() - begin)

    wrong += np.count_nonzero(grid != expected)

all_wrong, total = comm.reduce(wrong), comm.reduce(grid.sum())
slowest = comm.reduce(np.median(times), MPI.MAX)
if comm.rank == 0:
    cut = " x ".join(map(str, dims))
    print(f"{cut} ranks, {side}^3 doubles each: {all_wrong} wrong, sum {total:.0f}")
    print(f"{slowest * 1e6:.1f} us an exchange (median of {steps})")
sys.exit(int(wrong != 0))
