"""The MPI layer under a job: what its ranks find in their environment, and what killed ones leave behind.

Contract: environment() is what a launcher hands to its ranks. forget_boards() removes what the ranks of a job
have left in shared memory.
"""

from __future__ import annotations

import os
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")


def environment(
    libraries: str, job: str, path: str | None, report: Path | None, prices: str = ""
) -> dict[str, str]:
    """Other preloaded libraries stay behind ours. prices: of this host, where they were measured."""
    others = os.environ.get("LD_PRELOAD", "")
    settings = {"LD_PRELOAD": f"{libraries}:{others}" if others else libraries, "SPINLOOM_MPI_JOB": job}
    if path:
        settings["SPINLOOM_MPI_PATH"] = path
    if report:
        settings["SPINLOOM_MPI_REPORT"] = str(report)
    if prices and "SPINLOOM_MPI_PRICES" not in os.environ:
        settings["SPINLOOM_MPI_PRICES"] = prices
    return {**os.environ, **settings}


def forget_boards(job: str) -> None:
    for board in SHARED_MEMORY.glob(f"spinloom-mpi-{os.getuid()}-{short(job)}-*"):
        board.unlink(missing_ok=True)


def short(name: str) -> str:
    """The name as src/mpi/world.cpp writes it into that of a board (FNV-1a, 64 bits)."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"
