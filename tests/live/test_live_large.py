"""Long messages of collective operations by offloaded schedules, live and simulated: all words compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import needs_engine
from test_live import HERE, build, pytestmark, run

__all__ = ["build", "pytestmark"]

PROGRAM = "live_large_collective.c"
MIB = 1 << 20
# At most 65,536 triggered operations wait for a counter of a NIC: longer sums need segments.
WAYS = {"bcast": ("binomial", 0), "allreduce": ("chain", 16 * MIB)}


def memory_or_skip(needed: int) -> None:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) << 10
    if free < needed:
        pytest.skip(f"needs {needed >> 20} MiB of memory, {free >> 20} MiB are free")


def live(build, operation: str, ranks: int, size: int) -> None:
    """A rank has its data, and of an all-reduce what lands beside them: 2 S."""
    memory_or_skip(ranks * size * (1 if operation == "bcast" else 2) + (512 << 20))
    output = run("mpich", ranks, build(PROGRAM), operation, *WAYS[operation], size)
    assert sorted(output.split("\n")[:-1]) == [f"rank {rank}: {size} B are right" for rank in range(ranks)]


def simulated(spinloom, operation: str, ranks: int, size: int) -> None:
    """All ranks in one process, which has what is on the way, too: 4 S a rank at most."""
    memory_or_skip(4 * ranks * size)
    words = (operation, *map(str, WAYS[operation]), str(size))
    ran = spinloom("sim", "-n", str(ranks), "-q", str(HERE / PROGRAM), *words)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("operation", ["bcast", "allreduce"])
def test_a_message_of_many_packets_live(build, operation, ranks):
    live(build, operation, ranks, 4 * MIB)


@needs_engine
@pytest.mark.parametrize("operation", ["bcast", "allreduce"])
def test_a_message_of_many_packets_simulated(spinloom, operation):
    simulated(spinloom, operation, 3, MIB)


@pytest.mark.slow
def test_a_sum_that_no_counter_of_the_nic_takes_is_an_error(build):
    memory_or_skip(4 * 1024 * MIB)
    with pytest.raises(AssertionError, match="65536 commands waiting, the limit"):
        run("mpich", 2, build(PROGRAM), "allreduce", "recursive-doubling", 0, 1024 * MIB)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "ranks"),
    [
        ("bcast", 2),
        ("bcast", 4),  # 4 GiB of a job
        ("allreduce", 2),
    ],
)
def test_a_message_of_1_gib_live(build, operation, ranks):
    live(build, operation, ranks, 1024 * MIB)


@needs_engine
@pytest.mark.slow
@pytest.mark.parametrize(("operation", "size"), [("bcast", 1024 * MIB), ("allreduce", 256 * MIB)])
def test_a_message_of_1_gib_simulated(spinloom, operation, size):
    simulated(spinloom, operation, 2, size)
