"""Rank 1 takes tickets at rank 0, and reads a column of a matrix there, whatever rank 0 does meanwhile.

tickets.py [rounds [busy_us]]    rounds: 300 unless given; rank 0 computes so long between two looks at its
                                 MPI, or waits there if busy_us is 0 or not given

Prints the microseconds of a ticket (lock, fetch_and_op, unlock) and of a column (get, flush), and how many
numbers were wrong.
"""

import sys
import time

import numpy as np
from mpi4py import MPI

rounds, busy_us = [*map(int, sys.argv[1:]), *[300, 0][len(sys.argv) - 1 :]]
comm = MPI.COMM_WORLD
if comm.size != 2:
    sys.exit("tickets.py runs on two ranks")
rows, columns = 512, 8
window = MPI.Win.Allocate((1 + rows * columns) * 8, 8, comm=comm)
memory = np.frombuffer(window.tomemory(), dtype="i8")
memory[0], memory[1:] = 0, np.arange(rows * columns)
matrix = 1  # the place of the matrix: behind the counter of tickets
column = MPI.INT64_T.Create_vector(rows, 1, columns).Commit()
one, ticket, into = np.ones(1, "i8"), np.zeros(1, "i8"), np.full(rows * columns, -1, "i8")


def take() -> None:
    window.Lock(0)
    window.Fetch_and_op(one, ticket, 0, 0, MPI.SUM)
    window.Unlock(0)


def read() -> None:
    window.Get([into, 1, column], 0, [matrix, 1, column])
    window.Flush(0)


def mean_us(call) -> float:
    for _ in range(5):
        call()
    start = time.perf_counter()
    for _ in range(rounds):
        call()
    return (time.perf_counter() - start) / rounds * 1e6


def serve() -> None:
    """Rank 0's part: it computes, or waits in the MPI, until rank 1 has ended."""
    if not busy_us:
        return comm.Barrier()
    ended = comm.Ibarrier()
    while not ended.Test():
        until = time.perf_counter() + busy_us / 1e6
        while time.perf_counter() < until:
            pass


comm.Barrier()
if comm.rank == 0:
    serve()
elif comm.rank == 1:
    ticket_us = mean_us(take)
    window.Lock(0)
    column_us = mean_us(read)
    window.Unlock(0)
    comm.Ibarrier().Wait() if busy_us else comm.Barrier()
    expected = np.full((rows, columns), -1)
    expected[:, 0] = np.arange(0, rows * columns, columns)
    wrong = int(ticket[0] != rounds + 4) + int((into != expected.ravel()).sum())
    print(f"ticket {ticket_us:.2f} us, column {column_us:.2f} us, {wrong} wrong")
    sys.stdout.flush()
comm.Barrier()
column.Free()
window.Free()
