"""Workers as jobs of Slurm, by dask-jobqueue.

Contract: client(options, logs) has a scheduler in this process and `jobs` jobs that sbatch has accepted;
they end with the block. `options` are those of OPTIONS. Without them there is one job of one core and 2 GB a
core; all else is as in Dask's jobqueue.yaml. What jobs print goes to the folder `logs`. Raises Trouble for an
unknown option, without sbatch, and with sbatch's own words where it refuses a job.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spinloom.common.errors import Trouble, nearest
from spinloom.predict.grid import workers

OPTIONS = (
    "jobs",
    "cores",
    "memory",
    "queue",
    "account",
    "walltime",
    "interface",
    "job_extra_directives",
    "job_directives_skip",
    "job_script_prologue",
)
SBATCH_S = 120  # the limit for one job to be accepted
# Dask's own folder has the same name for every user of a node.
SCRATCH = (
    "DASK_TEMPORARY_DIRECTORY=$(mktemp -d) && export DASK_TEMPORARY_DIRECTORY && "
    """trap 'rm -rf "$DASK_TEMPORARY_DIRECTORY"' EXIT"""
)


@contextlib.contextmanager
def client(options: dict[str, Any], logs: Path) -> Iterator[Any]:
    jobqueue = workers.load("dask_jobqueue")
    distributed = workers.load("distributed")
    dask = workers.load("dask")
    for name in options:
        if name not in OPTIONS:
            raise Trouble("invalid", f"[slurm] has no '{name}'{nearest(name, OPTIONS)}")
    if shutil.which("sbatch") is None:
        raise Trouble("environment", "--slurm needs Slurm's sbatch, which is not found on this machine")
    workers.silence_dask()
    submitted: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    jobs = options.get("jobs", 1)
    with (
        tempfile.TemporaryDirectory(prefix="spinloom-sweep-") as scratch,
        dask.config.set({**workers.SETTINGS, "temporary-directory": scratch}),
        cluster(jobqueue, options, logs, submitted) as slurm_cluster,
        distributed.Client(slurm_cluster, set_as_default=False) as dask_client,
    ):
        slurm_cluster.scale(jobs=jobs)
        for _ in range(jobs):
            accepted(submitted)
        yield dask_client


def cluster(
    jobqueue: Any, options: dict[str, Any], logs: Path, submitted: queue.SimpleQueue[Exception | None]
) -> Any:
    class Job(jobqueue.slurm.SLURMJob):  # type: ignore[misc, name-defined]
        """Says what became of its submission."""

        async def start(self) -> None:
            try:
                await super().start()
            except Exception as error:
                self.status = workers.load("distributed").Status.failed
                submitted.put(error)
                raise
            submitted.put(None)

    cores = options.get("cores", 1)
    job_options = {name: value for name, value in options.items() if name not in ("jobs", "cores", "memory")}
    configured = workers.load("dask").config.get("jobqueue.slurm.job-script-prologue", None)
    job_options["job_script_prologue"] = [
        *(job_options.get("job_script_prologue") or configured or []),
        SCRATCH,
    ]
    try:
        return jobqueue.SLURMCluster(
            cores=cores,
            processes=cores,
            memory=options.get("memory", f"{2 * cores}GB"),
            job_cls=Job,
            log_directory=str(logs),
            scheduler_options={"dashboard_address": ":0", "dashboard": False},
            **job_options,
        )
    except (ValueError, TypeError, OSError) as error:
        raise Trouble("invalid", f"[slurm] describes no job: {error}") from None


def accepted(submitted: queue.SimpleQueue[Exception | None]) -> None:
    try:
        error = submitted.get(timeout=SBATCH_S)
    except queue.Empty:
        raise Trouble("environment", f"sbatch has not answered for {SBATCH_S} s") from None
    if error is not None:
        lines = [line for line in str(error).splitlines() if line.strip()] or [repr(error)]
        raise Trouble("environment", f"Slurm refuses the job: {lines[-1]}")
