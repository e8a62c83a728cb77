"""The MPI layer under a job: what its ranks find in their environment, and what killed ones leave behind.

Contract: environment() is what a launcher hands to its ranks. is_rank() says whether this process is a rank
already, rank() which one. forget_boards() removes what the ranks of a job have left in shared memory.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from spinloom.accelerate import mpi_programs
from spinloom.common import files, private

SHARED_MEMORY = Path("/dev/shm")


def environment(
    libraries: str,
    job: str | None,
    path: str | None,
    report: Path | None,
    prices: str = "",
    more: dict[str, str] | None = None,
) -> dict[str, str]:
    """The environment of a job's ranks. Preloaded libraries of others stay behind ours, but for sanitizers.

    job: its name; None: the one that its launcher gives. prices: those measured on this host, or "".
    more: other settings of the layer.
    """
    settings = {"LD_PRELOAD": mpi_programs.preloads(libraries, os.environ.get("LD_PRELOAD", ""))}
    if job:
        settings["SPINLOOM_MPI_JOB"] = job
    if path:
        settings["SPINLOOM_MPI_PATH"] = path
    if report:
        settings["SPINLOOM_MPI_REPORT"] = str(report)
    if prices and "SPINLOOM_MPI_PRICES" not in os.environ:
        settings["SPINLOOM_MPI_PRICES"] = prices
    settings |= more or {}
    if exported := exported_by_slurm(settings):
        settings["SLURM_EXPORT_ENV"] = exported
    return {**os.environ, **settings}


def exported_by_slurm(settings: dict[str, str]) -> str | None:
    """The list of variables that srun is to hand on: its own and ours. None where it hands on all."""
    variables = os.environ.get("SLURM_EXPORT_ENV", "ALL").split(",")
    if "ALL" in variables:
        return None
    theirs = [word for word in variables if word not in ("", "NIL", "NONE")]
    ours = {name for name in os.environ if name.startswith("SPINLOOM_MPI")} | set(settings)
    return ",".join([*theirs, *sorted(ours - set(theirs))])


def is_rank() -> bool:
    """True if a launcher of MPI has started this process as one of several; under PALS, as any rank."""
    if "PALS_RANKID" in os.environ:
        return True
    if not {"PMI_RANK", "PMIX_RANK"} & set(os.environ):
        return False
    sizes = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
    return any(os.environ.get(size, "1") != "1" for size in sizes)


def rank() -> int:
    """The rank of this process; 0 if the launcher does not say it."""
    for name in ("PALS_RANKID", "PMIX_RANK", "PMI_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def forget_boards(job: str) -> None:
    """Removes the boards of a job that belong to this user, also under the number of a user namespace."""
    for name in files.names_if_readable(SHARED_MEMORY):
        if not (name.startswith("spinloom-mpi-") and f"-{board_hash(job)}-" in name):
            continue
        board = SHARED_MEMORY / name
        with contextlib.suppress(OSError):
            if private.is_this_user(board.lstat().st_uid):
                board.unlink()


def board_hash(name: str) -> str:
    """The name as src/mpi/meeting/world.cpp writes it into that of a board (FNV-1a, 64 bits)."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"
