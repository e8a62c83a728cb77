"""Two MPI ranks exchange strided parts of a GPU's arrays: by a datatype, and as a careful programmer does it.

    spinloom run -- mpiexec -n 2 python bench/gpu_mpi.py [--seconds S]      needs mpi4py and CuPy

By a datatype: MPI_Send and MPI_Recv are given the array and a subarray's type; `spinloom run` moves it by one
kernel from device to device, or one at each end. By hand: the part is made contiguous on the GPU, copied to
pinned memory of the host, and sent from there as bytes; the receiver takes the same steps in reverse. Every
row's bytes are compared first. The two ways take turns. A time is half a round trip in us, the median over
all turns; `ratio` is the time by hand divided by the time by a datatype. The output is CSV on stdout.
"""

from __future__ import annotations

import argparse
import statistics
import time

import cupy
from mpi4py import MPI

COMM = MPI.COMM_WORLD
ROWS = [
    # name, array's shape, the part of it (items of 4 bytes)
    ("column of 1024 x 1024", (1024, 1024), (slice(None), slice(5, 6))),
    ("column of 4096 x 4096", (4096, 4096), (slice(None), slice(5, 6))),
    ("4 columns of 4096 x 4096", (4096, 4096), (slice(None), slice(4, 8))),
    ("16 columns of 65536 x 64", (65536, 64), (slice(None), slice(16, 32))),
    ("half of 16384 x 2048", (16384, 2048), (slice(None), slice(0, 1024))),
    ("face x of 256^3", (256, 256, 256), (slice(None), slice(None), slice(1, 2))),
    ("face y of 256^3", (256, 256, 256), (slice(None), slice(1, 2), slice(None))),
]


def pinned_bytes(size_bytes: int):
    """Returns a numpy array over page-locked memory, to and from which the GPU copies directly."""
    import numpy

    return numpy.frombuffer(cupy.cuda.alloc_pinned_memory(size_bytes), numpy.uint8, size_bytes)


class Row:
    def __init__(self, shape: tuple[int, ...], part: tuple[slice, ...]) -> None:
        size = 1
        for extent in shape:
            size *= extent
        self.shape, self.part = shape, part
        self.array = cupy.arange(size, dtype=cupy.int32).reshape(shape)
        starts = [part_slice.start or 0 for part_slice in part]
        counts = [
            len(range(*part_slice.indices(extent))) for part_slice, extent in zip(part, shape, strict=True)
        ]
        self.type = MPI.INT32_T.Create_subarray(list(shape), counts, starts).Commit()
        self.size_bytes = self.array[part].nbytes
        self.block_bytes = counts[-1] * 4
        self.host = pinned_bytes(self.size_bytes)

    def send(self, to: int) -> None:
        COMM.Send([self.array, 1, self.type], to)

    def receive(self, source: int) -> None:
        COMM.Recv([self.array, 1, self.type], source)

    def send_by_hand(self, to: int) -> None:
        cupy.ascontiguousarray(self.array[self.part]).ravel().view(cupy.uint8).get(out=self.host)
        COMM.Send(self.host, to)

    def receive_by_hand(self, source: int) -> None:
        COMM.Recv(self.host, source)
        device = cupy.empty(self.size_bytes, cupy.uint8)
        device.set(self.host)
        self.array[self.part] = device.view(cupy.int32).reshape(self.array[self.part].shape)
        cupy.cuda.get_current_stream().synchronize()

    def check(self, send, receive) -> None:
        """Sends rank 0's part to rank 1. Exits if rank 1 has not got it, or if another byte has changed."""
        size = self.array.size
        fresh = cupy.arange(size, dtype=cupy.int32).reshape(self.shape)
        self.array[...] = fresh if COMM.rank == 0 else -fresh - 1
        if COMM.rank == 0:
            send(1)
            return
        receive(0)
        wanted = -fresh - 1
        wanted[self.part] = fresh[self.part]
        if not bool((self.array == wanted).all()):
            raise SystemExit(f"wrong bytes: {self.shape} {self.part}")

    def round_trip_s(self, send, receive, rounds: int) -> float:
        COMM.Barrier()
        begin = time.perf_counter()
        for _ in range(rounds):
            if COMM.rank == 0:
                send(1)
                receive(1)
            else:
                receive(0)
                send(0)
        return (time.perf_counter() - begin) / rounds


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=20, help="for all rows together")
    seconds = arguments.parse_args().seconds
    if COMM.rank == 0:
        print("row,bytes,block,datatype_us,by_hand_us,ratio")
    for name, shape, part in ROWS:
        row = Row(shape, part)
        ways = [(row.send, row.receive), (row.send_by_hand, row.receive_by_hand)]
        for send, receive in ways:
            row.check(send, receive)
        slowest_s = max(row.round_trip_s(send, receive, 3) for send, receive in ways)
        rounds = COMM.bcast(max(1, int(0.01 / slowest_s)))
        turns = COMM.bcast(max(3, int(seconds / len(ROWS) / (2 * rounds * slowest_s))))
        times: list[list[float]] = [[], []]
        for _ in range(turns):
            for way, (send, receive) in enumerate(ways):
                times[way].append(row.round_trip_s(send, receive, rounds))
        datatype_us, by_hand_us = (statistics.median(values) / 2 * 1e6 for values in times)
        if COMM.rank == 0:
            times_text = f"{datatype_us:.1f},{by_hand_us:.1f},{by_hand_us / datatype_us:.2f}"
            print(f"{name},{row.size_bytes},{row.block_bytes},{times_text}", flush=True)


if __name__ == "__main__":
    main()
