"""Redistributions of mpi4py-fft between pencils, forth and back: pencils.py TIMES SHAPE..., as in 64x96.

Each rank's numbers are written anew before each. Rank 0 says for each shape whether all numbers came back, a
hash of what rank 0 had in between, and the median time of the way forth.
"""

import hashlib
import statistics
import sys
import time

import numpy as np
from mpi4py import MPI
from mpi4py_fft.pencil import Pencil, Subcomm

comm = MPI.COMM_WORLD


def redistribute(shape, times):
    first = Pencil(Subcomm(comm, [0] + [1] * (len(shape) - 1)), shape, axis=1)
    second = first.pencil(0)
    transfer = first.transfer(second, np.complex128)
    source, target = np.zeros(first.subshape, np.complex128), np.zeros(second.subshape, np.complex128)
    source[...] = np.arange(source.size).reshape(source.shape) + comm.rank * 1e7
    took = []
    for _ in range(times):
        source += 1
        comm.Barrier()
        begin = time.perf_counter()
        transfer.forward(source, target)
        comm.Barrier()
        took.append(time.perf_counter() - begin)
    back = np.zeros_like(source)
    transfer.backward(target, back)
    is_equal = comm.allreduce(np.array_equal(source, back), op=MPI.LAND)
    return is_equal, hashlib.sha256(target.tobytes()).hexdigest()[:16], statistics.median(took) * 1e6


for word in sys.argv[2:]:
    whole, digest, us = redistribute([int(side) for side in word.split("x")], int(sys.argv[1]))
    if comm.rank == 0:
        print(word, "whole" if whole else "broken", digest)
        print(f"{word}: {us:.0f} us", file=sys.stderr)
