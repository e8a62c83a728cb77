"""One cell: from its inputs to its result, on whatever machine that is.

Contract: key_of(inputs) names a cell by everything that its result depends on: Spinloom's version, the
numbers of the profile, the handler images, the parameters; no name, no path. computed(inputs, key) runs the
cell on this machine; its result can be a JSON document, as compute() hands it over:

    status      ok; unsupported or exhausted: nothing was received; else the error's code
    message     one sentence, empty if ok
    columns     modelled numbers
    sha256      of what is too long to keep: destination and event_log, or the time of each rank

A cell's trouble is its result and never raised; what nobody foresaw has the status 'failed'. A machine on
which the key is another has another Spinloom: its answer is 'environment'. Neither may be kept, nor may
'died' (workers.py): is_lasting() is False for them.
"""

from __future__ import annotations

import hashlib
import json
import socket
import time
from functools import cache
from typing import Any

from spinloom import __version__
from spinloom.common import core, data
from spinloom.common.errors import Trouble
from spinloom.nics import results, sweep
from spinloom.nics.sweep import Cell, Setup
from spinloom.nics.workloads import Row

NOT_A_RESULT = (
    "environment",
    "died",
    "failed",
)  # troubles of the machine, not of the inputs: the next run tries again
BATCH_S = 0.5  # host time: what a stopped sweep may lose of each worker, apart from a long cell
GOOD = ("ok", *sweep.NOT_RUN)


def is_lasting(result: dict[str, Any]) -> bool:
    return result["status"] not in NOT_A_RESULT


@cache
def images() -> dict[str, bytes]:
    return data.handler_images()


@cache
def image_hashes() -> dict[str, str]:
    return results.image_hashes(images())


def document(inputs: dict[str, Any]) -> dict[str, Any]:
    """Returns what the result depends on, the version apart."""
    if inputs["kind"] == "goal":
        return inputs
    return {**inputs, "images": image_hashes()}


def key_of(inputs: dict[str, Any]) -> str:
    return results.digest({"spinloom": __version__, "inputs": document(inputs)})


def trouble(code: str, message: str) -> dict[str, Any]:
    return {"status": code, "message": message, "columns": {}, "sha256": {}}


def compute(batch: list[tuple[dict[str, Any], str]]) -> str:
    """The results of cells (inputs, key) as a JSON array: as many as BATCH_S allows, at least one."""
    end = time.monotonic() + BATCH_S
    done: list[dict[str, Any]] = []
    for cell in batch:
        if done and time.monotonic() >= end:
            break
        done.append(computed(*cell))
    return json.dumps(done, separators=(",", ":"))


def computed(inputs: dict[str, Any], key: str) -> dict[str, Any]:
    if key_of(inputs) != key:
        return trouble(
            "environment",
            f"the worker on {socket.gethostname()} has another Spinloom ({__version__}) or other handler "
            "images: install the same on every worker",
        )
    try:
        return {"ddt": received_datatype, "goal": run_schedule}[inputs["kind"]](inputs)
    except (Trouble, core.load().SpinloomError) as error:
        return trouble(error.code, error.message)
    except Exception as error:  # the others of the batch have their results
        return trouble("failed", f"{type(error).__name__}: {error}")


def received_datatype(inputs: dict[str, Any]) -> dict[str, Any]:
    """A message received under a strategy, its bytes compared with the oracle."""
    settings = {name: inputs[name] for name in ("profile", "hpus", "mtu", "order", "seed")}
    cell = Cell(Row("", "", inputs["type"], inputs["count"]), inputs["strategy"])
    engine = core.load()
    try:
        outcome = sweep.run_cell(engine, cell, Setup(images=images(), **settings))
    except Trouble as error:
        return trouble(error.code, error.message.removeprefix(f"{cell}: "))
    sums = {"destination": outcome.destination_sha256, "event_log": outcome.events_sha256}
    return {
        "status": outcome.code,
        "message": outcome.message,
        "columns": outcome.columns,
        "sha256": sums if outcome.code == "ok" else {},
    }


def run_schedule(inputs: dict[str, Any]) -> dict[str, Any]:
    """A pattern's schedule, checked, then run by the rules of LogGOPSim; nanoseconds."""
    schedule = core.load().goal_pattern(inputs["pattern"], inputs["ranks"], inputs["bytes"])
    schedule.check()
    outcome = schedule.run_loggopsim(**inputs["parameters"])
    counted = schedule.count()
    times = outcome["host_times"]
    return {
        "status": "ok",
        "message": "",
        "columns": {
            "last_rank_ends_ns": outcome["makespan"],
            "first_rank_ends_ns": min(times),
            "events": outcome["events"],
            **{name: counted[name] for name in ("operations", "sends", "sent_bytes")},
        },
        "sha256": {"rank_times": hashlib.sha256(json.dumps(times).encode()).hexdigest()},
    }
