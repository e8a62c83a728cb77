"""Offloaded collectives on the live NIC beside the MPIs' non-blocking ones, in turns.

    .venv/bin/python bench/overlap_live.py [ROUNDS] [SAMPLES] [COMPUTE_NS]

Host time, two ranks, python/spinloom/bench/overlap.c: medians over rounds of each program's medians over
samples. `in calls` is the processor time of a rank's thread inside the calls. COMPUTE_NS: how long a rank
computes between start and wait; without it as long as the operation takes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from spinloom.nics import jobs
from spinloom.papers import overlap

MPICH = ("mpiexec.mpich", "-bind-to", "core")
OPENMPI = ("mpiexec.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "core")
CARRIERS = {
    "offloaded": ("cc", (*jobs.compile_options(), *jobs.link_options()), MPICH),
    "MPICH": ("mpicc.mpich", ("-DOVER_MPI",), MPICH),
    "Open MPI": ("mpicc.openmpi", ("-DOVER_MPI",), OPENMPI),
}
SHOWN = {"latency_ns": "latency", "start_ns": "start", "rest_ns": "rest", "in_calls_ns": "in calls"}
SIZES_BYTES = (50, 4096)
LIMIT_S = 120


def compiled(folder: Path, name: str) -> Path:
    compiler, options, _ = CARRIERS[name]
    program = folder / name.replace(" ", "-")
    # Libraries come after the source.
    command = [compiler, "-std=gnu11", "-O2", str(overlap.PROGRAM), "-o", str(program), *options]
    subprocess.run(command, check=True)
    return program


def numbers(program: Path, launcher: tuple[str, ...], arguments: list[str]) -> dict[str, float] | None:
    try:
        ran = subprocess.run(
            [*launcher, "-n", "2", str(program), *arguments], capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        print(f"{program.name} {' '.join(arguments)}: no end within {LIMIT_S} s", file=sys.stderr)
        return None
    if ran.returncode != 0:
        print(f"{program.name}: {ran.stdout}{ran.stderr}", file=sys.stderr)
        return None
    return {name: float(value) for name, value in (line.split() for line in ran.stdout.splitlines())}


def main() -> None:
    counts = [int(text) for text in sys.argv[1:]]
    rounds, samples = (counts + [5, 300][len(counts) :])[:2]
    more = [f"compute={counts[2]}"] if len(counts) > 2 else []
    usable = {name: row for name, row in CARRIERS.items() if shutil.which(row[0]) and shutil.which(row[2][0])}
    with tempfile.TemporaryDirectory() as folder:
        programs = {name: compiled(Path(folder), name) for name in usable}
        for operation in overlap.ALGORITHMS:
            for size in SIZES_BYTES:
                rows_by_program: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
                for _ in range(rounds):
                    for name, program in programs.items():
                        arguments = [operation, "-", str(size), f"samples={samples}", *more]
                        row = numbers(program, CARRIERS[name][2], arguments)
                        if row is not None:
                            rows_by_program[name].append(row)
                for name, rows in rows_by_program.items():
                    if rows:
                        columns = [
                            f"{label} {median(r[key] for r in rows):.0f}" for key, label in SHOWN.items()
                        ]
                        least = min(r["in_calls_ns"] for r in rows)
                        print(
                            f"{operation} {size} B, {name}: {', '.join(columns)} ns (least {least:.0f})",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
