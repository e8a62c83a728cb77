"""A process of test_gpu_pair.py: `python pair_process.py CASE` starts the other one itself, or is a rank."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import pytest

from spinloom import gpu, layout
from spinloom.common.errors import Trouble

SHAPE = (33, 34, 35)
VIEWS = [
    np.s_[:, :, 3],
    np.s_[::2, ::-1, 1:],
    np.s_[1:4, 2, ::3],
    np.s_[:, 1:3, :],
    np.s_[2:3, 3, 4],
    np.s_[0:0],
]


def grid(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random(SHAPE)


def views(pair: gpu.Pair, rank: int) -> None:
    """Views become other views: the one's items, the other's places."""
    for number, view in enumerate(VIEWS):
        base, target = grid(number), np.zeros(SHAPE)
        items = base[view].size
        there = cupy.asarray(base if rank == 0 else target)
        ours = layout.from_array(there[view], base=there)
        if rank == 0:
            pair.send(ours, there)
            pair.receive(layout.from_text(f"contig({items}, double)"), there)
            expected = base.copy()
            expected.reshape(-1)[:items] = base[view].reshape(-1) if items else []
            assert (there.get() == expected).all(), number
        else:
            pair.receive(ours, there)
            target[view] = base[view]
            assert (there.get() == target).all(), number
            pair.send(ours, there)


def both_ways(pair: gpu.Pair, rank: int) -> None:
    there, target = cupy.asarray(grid(rank)), cupy.zeros(SHAPE, "f8")
    made = layout.from_array(there[:, :, 1], base=there)
    sent, received = pair.begin_send(made, there), pair.begin_receive(made, target)
    moves = [sent, received]
    under_way = [sent, received]
    while under_way:
        under_way = [move for move in under_way if not move.test()]
    assert (target.get()[:, :, 1] == grid(1 - rank)[:, :, 1]).all()
    assert {move.way for move in moves} == {pair.way}


def refused(call: Callable[[], None], words: str) -> None:
    with pytest.raises(Trouble, match=words):
        call()


def errors(pair: gpu.Pair, rank: int) -> None:
    there = cupy.asarray(grid(rank))
    short, long = layout.from_text("contig(3, int)"), layout.from_text("contig(4, int)")
    host = np.zeros(SHAPE)
    refused(lambda: pair.send(short, host), "must lie in a GPU's memory; the ndarray does not")
    words = "12 packed bytes, the receiver's layout holds 16"
    refused(lambda: pair.send(short, there) if rank == 0 else pair.receive(long, there), words)
    twice = layout.from_text("hvector(2, 1, 0B, double)")
    refused(lambda: pair.receive(twice, there), "overlaps itself")
    both_ways(pair, rank)


def talks(pair: gpu.Pair, rank: int) -> None:
    """The connection may be used between moves."""
    for round_ in range(3):
        both_ways(pair, rank)
        pair.connection.send(("round", round_, rank))
        assert pair.connection.recv() == ("round", round_, 1 - rank)


def killed(pair: gpu.Pair, rank: int) -> None:
    if rank == 1:
        pair.connection.poll(60)
        os.kill(os.getpid(), signal.SIGKILL)
    there = cupy.asarray(grid(0))
    made = layout.from_array(there)
    refused(lambda: pair.send(made, there), "the other process of the pair has")
    refused(lambda: pair.send(made, there), "the other process of the pair has")


CASES = [views, both_ways, errors, talks, killed]


def run(connection: Any, name: str, rank: int, peer: int | None = None) -> None:
    pair = gpu.Pair(connection, peer)
    assert pair.way == os.environ["SPINLOOM_GPU_PEER"], pair.reason
    assert pair.reason
    next(case for case in CASES if case.__name__ == name)(pair, rank)
    print(f"process {rank} of {name}: {pair.way}")


def main(name: str) -> None:
    if "PMI_SIZE" in os.environ:  # two ranks of an MPI
        from mpi4py import MPI

        run(MPI.COMM_WORLD, name, MPI.COMM_WORLD.rank, 1 - MPI.COMM_WORLD.rank)
        return
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe()
    other = processes.Process(target=run, args=(theirs, name, 1))
    other.start()
    run(ours, name, 0)  # `theirs` stays open here: a process that ends is found all the same
    other.join()
    assert other.exitcode == (-signal.SIGKILL if name == "killed" else 0), other.exitcode


if __name__ == "__main__":
    main(sys.argv[1])
