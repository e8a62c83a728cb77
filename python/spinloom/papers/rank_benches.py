"""The benches of bench/ that the claims need: several NICs of a rank, and one-sided memory.

Contract: rails() and one_sided() compile a program, run it in modelled time and give its numbers as columns,
times in ps. one_sided_live() runs it as two processes and measures. The programs compare all bytes; a wrong
one, and all else that ends them, is raised as Trouble.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from spinloom.bench.jobs import Mpi
from spinloom.common import data
from spinloom.common.errors import Trouble
from spinloom.nics import jobs
from spinloom.nics.profiles import Profile

RAILS, ONE_SIDED = "rails_bandwidth.c", "rma_latency.c"
ROUNDS = 1  # rounds of rails, after one that is not counted; modelled time differs little from round to round
REPEATS = 20  # repeats of one-sided operations, whose emulation depends on where a target's loop is
NATIVE, EMULATED, FALLBACK = "native", "emulated", "fallback"
LIVE_REPEATS = 500
LIVE_S = 120.0
WAYS = (NATIVE, EMULATED, FALLBACK)
PS_PER_US = 10**6


def output_of(settings: jobs.Settings, name: str, *arguments: object) -> str:
    with jobs.built(program(name)) as runnable:
        job = jobs.run(settings, runnable, [str(each) for each in arguments], captured=True)
    if job.trouble is not None:
        raise Trouble(job.trouble.code, f"{name}: {job.trouble.message}")
    return job.output


def program(name: str) -> Path:
    return data.folder("bench") / name


def rails(profile: Profile, count: int, window: int, size_bytes: int) -> dict[str, Any]:
    """`window` messages in flight between two ranks of `count` NICs each, matched by tag."""
    settings = jobs.Settings(profile, more_rails=(profile,) * (count - 1))
    output = output_of(settings, RAILS, count, "tag", window, ROUNDS, size_bytes)
    (row,) = csv.reader(output.splitlines())
    return {"time_ps": round(float(row[4]) * PS_PER_US), "gb_s": float(row[5])}


Latencies = dict[tuple[str, int], dict[str, int]]  # (operation, bytes) -> way -> ps


def one_sided(profile: Profile) -> dict[str, Any]:
    """Column "rows": the Latencies of operations with their flush."""
    return {"rows": latencies(output_of(jobs.Settings(profile), ONE_SIDED, REPEATS))}


def one_sided_live(mpi: Mpi, folder: Path) -> Latencies:
    """One-sided latencies between two processes that this MPI's launcher starts; host time."""
    built = folder / "rma_latency"
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        raise Trouble("environment", f"there is no compiler '{compiler}' for {ONE_SIDED} (CC names one)")
    options = ["-std=gnu11", "-O2", *jobs.compile_options(), str(program(ONE_SIDED)), "-o", str(built)]
    done = subprocess.run([compiler, *options, *jobs.link_options()], capture_output=True, text=True)
    if done.returncode != 0:
        raise Trouble("environment", f"{ONE_SIDED} does not compile:\n{done.stderr.rstrip()}")
    try:
        ran = subprocess.run(
            [*mpi.launch(), "-n", "2", built, str(LIVE_REPEATS)],
            env={**os.environ, **mpi.environment()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIVE_S,
        )
    except subprocess.TimeoutExpired:
        raise Trouble("environment", f"{ONE_SIDED} does not end within {LIVE_S:g} s") from None
    if ran.returncode != 0:
        raise Trouble("environment", f"{ONE_SIDED}: {ran.stderr[-400:].strip()}")
    return latencies(ran.stdout)


def latencies(output: str) -> Latencies:
    rows = {}
    for line in output.splitlines():
        if not line.startswith("#"):
            operation, size_bytes, *times_us = line.split()[:5]
            rows[operation, int(size_bytes)] = {
                way: round(float(us) * PS_PER_US) for way, us in zip(WAYS, times_us, strict=True)
            }
    return rows
