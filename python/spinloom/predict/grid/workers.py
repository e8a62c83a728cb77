"""Runs cells on Dask: workers on this machine, or those of a scheduler (slurm.py: jobs of Slurm).

Contract: run(cells, client) yields (cell, result) as cells end. Only inputs and keys go to workers, only
results come back, in batches: a worker does as many cells of one as one.compute() allows, the others go back
to the front of the queue. The cells of a batch whose worker died are set aside; when all others are done,
they run one at a time, so that one that kills its worker takes no other along, at most TRIES times; then its
result has the status 'died'. Without a worker for `patience_s` seconds, or when the scheduler is lost, run()
raises Trouble('environment').

Dask is imported here and in slurm.py, when a cell is to be run, and nowhere else.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib
import json
import logging
import queue
import signal
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from typing import Any

from spinloom.common.errors import Trouble
from spinloom.predict.grid import one
from spinloom.predict.grid.cells import Cell
from spinloom.predict.grid.signals import deferred

Compute = Callable[[list[tuple[dict[str, Any], str]]], str]  # one.compute
BATCH = 64  # cells that travel together
TRIES = 2  # tries of a cell by itself, after the one beside others
PER_THREAD = 2  # batches at a worker's thread: one that runs, one that is ready
NO_WORKER_S = 60  # the time without a worker, after which the sweep gives up
CONNECT_S = 20  # the limit for a scheduler to answer
RESULT_S = 10  # the limit for a result to come from where it is
SETTINGS = {  # the settings of a scheduler that is ours
    "distributed.scheduler.allowed-failures": 0,  # run() tries again
    "logging.distributed": "critical",
}
LOOK_S = 1.0  # the time between two looks at how many workers there are


def load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Trouble(
            "environment",
            f"{name}, which runs sweeps, is not installed (pip install {name.replace('_', '-')})",
        ) from None


LOUD = ("distributed", "distributed.client", "distributed.core", "distributed.nanny", "distributed.scheduler")


def silence_dask() -> None:
    """Silences Dask's logs about workers that come and go: this module reports those that matter itself."""
    for name in (*LOUD, "asyncio", "tornado", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module="distributed")


@contextlib.contextmanager
def local(workers: int) -> Iterator[Any]:
    """A client of `workers` processes of this machine, one thread each.

    They speak TLS with a key of their own that lives as long as the sweep: other users of the machine reach
    the ports, and who speaks to Dask can run code.
    """
    distributed = load("distributed")
    dask = load("dask")
    load("cryptography")
    silence_dask()
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="spinloom-sweep-"))
        stack.enter_context(dask.config.set({**SETTINGS, "temporary-directory": scratch}))
        with deaf_children():
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    security=distributed.Security.temporary(),
                    memory_limit=0,  # Dask would pause or kill a worker; the system's limit is enough
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                    silence_logs=logging.CRITICAL,
                )
            )
        yield stack.enter_context(distributed.Client(cluster, set_as_default=False))


@contextlib.contextmanager
def deaf_children() -> Iterator[None]:
    """A terminal's Ctrl-C goes to all its processes, but this one acts on it: the threads that start workers,
    which begin in here, have SIGINT blocked, and so have those workers."""
    sys.warnoptions.append("ignore:resource_tracker")  # warnings of a stopped sweep are not printed
    resource_tracker.ensure_running()  # its start, otherwise that of the first process's, unblocks signals
    sys.warnoptions.pop()
    with deferred(signal.SIGINT):
        yield


@contextlib.contextmanager
def existing(address: str) -> Iterator[Any]:
    """A client of a scheduler: tcp://HOST:PORT, or the file that it wrote (--scheduler-file)."""
    distributed = load("distributed")
    silence_dask()
    where = {"address": address} if "://" in address else {"scheduler_file": address}
    try:
        client = distributed.Client(**where, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise Trouble(
            "environment",
            f"no Dask scheduler answers at {address}; start one with 'dask scheduler' ({error})",
        ) from None
    with client:
        yield client


class RunningBatches:
    """Batches of cells under way on a client."""

    def __init__(self, client: Any, patience_s: float | None, compute: Compute) -> None:
        self.client = client
        self.compute = compute
        self.patience_s = patience_s
        self.ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.running: dict[str, list[Cell]] = {}
        self.threads = 0
        self.counted_at = -LOOK_S
        self.had_worker = time.monotonic()

    def thread_count(self) -> int:
        """The number of threads of all workers. Raises Trouble if there has been no worker for too long."""
        now = time.monotonic()
        if now - self.counted_at >= LOOK_S:
            self.counted_at = now
            try:
                self.threads = sum(self.client.nthreads().values())
            except (OSError, TimeoutError):
                raise connection_lost() from None
            if self.threads:
                self.had_worker = now
            elif self.patience_s is not None and now - self.had_worker > self.patience_s:
                raise Trouble(
                    "environment",
                    f"the scheduler has had no worker for {self.patience_s:.0f} s; start one with "
                    "'dask worker ADDRESS'",
                )
        return self.threads

    def has_room(self) -> bool:
        return len(self.running) < PER_THREAD * self.thread_count()

    def size(self, waiting: int) -> int:
        """Cells of the next batch; at the end a share for every thread."""
        return max(1, min(BATCH, waiting // (PER_THREAD * max(1, self.threads))))

    def begin(self, cells: list[Cell]) -> None:
        batch = [(cell.inputs, cell.key) for cell in cells]
        self.expect(cells, self.client.submit(self.compute, batch, pure=False))

    def expect(self, cells: list[Cell], future: Any) -> None:
        self.running[future.key] = cells
        future.add_done_callback(self.ended.put)

    def next(self) -> tuple[list[Cell], list[dict[str, Any]] | None]:
        """A batch that has ended and the results of its first cells, None if its worker died; an empty batch
        if none has ended for a while."""
        try:
            future = self.ended.get(timeout=LOOK_S)
        except queue.Empty:
            self.thread_count()
            if self.client.status != "running":
                raise connection_lost() from None
            return [], []
        cells = self.running.pop(future.key)
        try:
            results = self.results_of(future)
        except ResultsNotThere:
            self.expect(cells, future)
            return [], []
        return cells, results

    def results_of(self, future: Any) -> list[dict[str, Any]] | None:
        """None if its worker died. Raises ResultsNotThere, and Trouble('environment') without a scheduler."""
        error = None
        try:
            error = future.exception(timeout=RESULT_S)
            if error is None and future.status == "finished":
                return json.loads(future.result(timeout=RESULT_S))
        except (asyncio.CancelledError, concurrent.futures.CancelledError, OSError):  # TimeoutError, too
            pass
        except Exception:
            if future.status not in ("lost", "error"):  # it has ended since it was asked for
                raise
        if error is None:
            if future.status != "cancelled":
                raise ResultsNotThere
            if self.client.status != "running":
                raise connection_lost()
            return None  # somebody restarted the workers
        if isinstance(error, load("distributed").KilledWorker):
            return None
        return [one.trouble("failed", f"{type(error).__name__}: {error}")]


class ResultsNotThere(Exception):
    """A worker died before it handed over a batch's results; Dask runs the batch again."""


def connection_lost() -> Trouble:
    return Trouble("environment", "the connection to the Dask scheduler is lost; is it still running?")


def run(
    cells: list[Cell],
    client: Any,
    patience_s: float | None = NO_WORKER_S,
    compute: Compute = one.compute,
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    batches = RunningBatches(client, patience_s, compute)
    waiting = deque(cells)
    alone: deque[Cell] = deque()
    tries: dict[str, int] = {}
    while waiting or alone or batches.running:
        while waiting and batches.has_room():
            batches.begin([waiting.popleft() for _ in range(batches.size(len(waiting)))])
        if alone and not waiting and not batches.running:
            batches.begin([alone.popleft()])
        ended, results = batches.next()
        if results is not None:
            waiting.extendleft(reversed(ended[len(results) :]))
            yield from zip(ended, results, strict=False)
            continue
        for cell in ended:
            tries[cell.key] = tries.get(cell.key, 0) + 1
            if tries[cell.key] <= TRIES:
                alone.append(cell)
            else:
                yield (
                    cell,
                    one.trouble("died", f"its worker died {TRIES + 1} times: out of memory, or a crash"),
                )
