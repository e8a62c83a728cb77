"""The simulated times of a message that asks first, entirely by NICs, and of a late receive.

    asking_prices(machine, store, 16385, call_ps)

Contract: asking_prices() gives the prices of predict_ways.py, from four checked messages between two
processes on the machine: a block that asks first and one that does not, the first one to a late receive, and
a byte to a late receive. Results are kept in the store of layout_prices.py. Times are modelled, in ps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics import results, sweep
from spinloom.nics.layout_prices import ResultStore, block
from spinloom.nics.machines import Machine
from spinloom.nics.strategies import DIRECT
from spinloom.nics.sweep import Cell, Setup


@dataclass(frozen=True)
class AskingPrices:
    hop_ps: int  # a request or an answer, from NIC to NIC
    answer_ps: int  # the CPU of a late receive, until its answer has left
    find_ps: int  # the CPU of a late receive, until it has found its short message


def asking_prices(machine: Machine, store: ResultStore, size: int, call_ps: int) -> AskingPrices:
    """`size`: of a message that asks; `call_ps`: of the CPU, for a call. Raises Trouble."""
    setup = machine.setup()

    def time_ps(size: int, *, asks: bool, late: bool) -> int:
        return int(stored_delivery(store, setup, contiguous(size), asks=asks, late=late)["time_ps"])

    plain = time_ps(size, asks=False, late=False)
    hop = (time_ps(size, asks=True, late=False) - plain) // 2
    # T(late) = answer + hop + data, as plain, whose sender needs no call now
    answer = time_ps(size, asks=True, late=True) - hop - (plain - call_ps)
    find = time_ps(1, asks=False, late=True)
    store.save()
    return AskingPrices(max(0, hop), max(0, answer), max(0, find - call_ps))


def contiguous(size: int) -> dict[str, Any]:
    text = block(size).type
    return {
        "sent": text,
        "sent_count": 1,
        "received": text,
        "received_count": 1,
        "send": "pack",
        "strategy": None,
        "any_source": False,
    }


def stored_delivery(
    store: ResultStore, setup: Setup, message: dict[str, Any], *, asks: bool, late: bool
) -> dict[str, Any]:
    config = {**message, "asks": asks, "late": late}
    about = {
        "delivery": config,
        "profile": setup.profile,
        "images": results.image_hashes(setup.images),
        "machine": [setup.hpus, setup.mtu, setup.order, setup.seed],
    }
    key = results.digest(about)
    if key not in store.results:
        store.results[key] = deliver(setup, config)
    return store.results[key]


def deliver(setup: Setup, config: dict[str, Any]) -> dict[str, Any]:
    """One message; `config` as contiguous(), with `asks` and `late`. Raises Trouble."""
    engine = core.load()
    try:
        result = dict(engine.delivery({**sweep.config(Cell(block(1), DIRECT), setup), **config}))
    except engine.SpinloomError as error:
        raise Trouble(error.code, f"{config['received']}: {error.message}") from None
    result.pop("destination")
    return result
