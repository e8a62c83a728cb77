"""Messages of several datatypes as an MPI library receives them: `spinloom simulate --together --early`.

Contract: run() brings messages of each type, in an order that the seed chooses, to one simulated NIC; a part
of them comes before its receive is posted. Those are unpacked by the host, all others by the NIC or, where it
has no room, by the host (SC'19 datatypes paper, section 3.2.6). Several receives are under way at a time. All
destinations were compared with the oracle before a number is given. Times are modelled, in ps.
"""

from __future__ import annotations

import hashlib
import statistics
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics import results, sharing, sweep
from spinloom.nics.sharing import SharedType
from spinloom.nics.sweep import Cell, Setup
from spinloom.nics.workloads import Row

UNPACKED_BY = ("nic", "host", "unexpected")
COLUMNS = {
    "expected": "messages that the NIC unpacked, or that landed in place",
    "on_host": "messages whose receive was there and that the host unpacked: no room, or the type says so",
    "unexpected": "messages that came before their receive; the host unpacked them",
    "strategy": "what the commit of the type chose",
    "nic_memory_bytes": "the most that one receive of the type held",
    "expected_ps": "median, from the put until the program has it; other messages are under way, too",
    "on_host_ps": "the same for messages whose receive was there and that the host unpacked",
    "landing_ps": "median, from the put until an unexpected message has landed",
    "unexpected_ps": "median, from the post of its receive until the program has it",
    "host_ps": "one message alone without offloading",
}


@dataclass(frozen=True)
class Mix:
    types: list[SharedType]
    setup: Setup
    rows: list[dict[str, Any]]
    fallbacks: list[str]  # reasons, each once
    evictions: int
    nic_memory_peak_bytes: int
    messages: int
    result_hash: str


def run(
    types: list[SharedType], setup: Setup, strategy: str | None, rounds: int, at_once: int, early: Fraction
) -> Mix:
    """Raises Trouble; 'mismatch' if some byte is wrong."""
    engine = core.load()
    config = {
        **sweep.config(Cell(types[0].row, strategy or sharing.BASELINE), setup),
        "types": [shared.native() for shared in types],
        "strategy": strategy,
        "rounds": rounds,
        "at_once": at_once,
        "early": [early.numerator, early.denominator],
    }
    try:
        result = engine.mix(config)
    except engine.SpinloomError as error:
        raise Trouble(error.code, error.message) from None
    destinations = hashlib.sha256(result.pop("destinations")).hexdigest()
    host_ps = sharing.baselines(types, setup)
    digest = results.digest(
        {
            "profile": setup.profile,
            "images": results.image_hashes(setup.images),
            "types": config["types"],
            "mix": {name: config[name] for name in ("strategy", "rounds", "at_once", "early")},
            "found": result,
            "destinations": destinations,
        }
    )
    reasons = dict.fromkeys(message["fallback"] for message in result["messages"] if message["fallback"])
    return Mix(
        types,
        setup,
        [row_of(result, number, shared, host_ps) for number, shared in enumerate(types)],
        list(reasons),
        result["evictions"],
        result["nic_memory_peak_bytes"],
        len(result["messages"]),
        digest,
    )


def row_of(
    result: dict[str, Any], number: int, shared: SharedType, host_ps: dict[Row, int]
) -> dict[str, Any]:
    of_type = [message for message in result["messages"] if message["type"] == number]
    by_unpacker = {name: [message for message in of_type if message["by"] == name] for name in UNPACKED_BY}
    offloaded = [message["strategy"] for message in of_type if not message["fallback"]]
    return {
        "application": shared.row.application,
        "datatype": shared.row.datatype,
        "strategy": offloaded[0] if offloaded else None,
        "expected": len(by_unpacker["nic"]),
        "on_host": len(by_unpacker["host"]),
        "unexpected": len(by_unpacker["unexpected"]),
        "nic_memory_bytes": result["nic_bytes"][number],
        "size_bytes": of_type[0]["bytes"],
        "expected_ps": median(by_unpacker["nic"], "time_ps"),
        "on_host_ps": median(by_unpacker["host"], "time_ps"),
        "landing_ps": median(by_unpacker["unexpected"], "landing_ps"),
        "unexpected_ps": median(by_unpacker["unexpected"], "time_ps"),
        "host_ps": host_ps[shared.row],
        "checked": True,
    }


def median(messages: list[dict[str, Any]], column: str) -> int | None:
    return round(statistics.median_low([message[column] for message in messages])) if messages else None
