"""The costs of messages between two processes of this host: measured, fitted to the planner's model, kept.

Contract: measure() times vectors of many shapes by each way of the MPI layer, several passes apart in time,
and keeps the fastest tenth of the fastest pass of each: what else runs here only ever adds. The prices of
src/mpi/messages/prices.hpp are those that leave the least relative errors in the mean. The model itself is
the engine's (peer_costs): nothing of it is written down here. save() and load() use
$XDG_CACHE_HOME/spinloom/peers.json; without one, or on another processor, the prices are those that the layer
came with. as_setting() is the value of SPINLOOM_MPI_PRICES.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.accelerate import calibration, copy_model, peer_pair
from spinloom.common import core, documents, files
from spinloom.common.errors import Trouble

FORMAT = 2
CORES = 2
WAYS = ("staged", "mapped", "joint", "cma")
PASSES, SAMPLES = 3, 31
BLOCKS = (8, 24, 64, 128, 256, 1024, 4096, 16384)
SPREADS = (2, 8)  # bytes from block to block, over those of a block
TOTALS = tuple(kib << 10 for kib in (4, 8, 16, 32, 48, 64, 96, 128, 384, 1024, 2048))
SPAN_MAX = 4 << 20
CMA_BLOCKS_MAX = 1024  # a message of more blocks takes milliseconds and adds no information


@dataclass(frozen=True)
class PeerPrices:
    ns: dict[str, float]
    measured: str = ""  # the time of measurement; empty: the layer's own prices
    error: float = 0.0  # the factor by which the model misses its measurements, in the geometric mean
    remark: str = ""

    def as_setting(self) -> str:
        return ",".join(f"{name}={price:.4g}" for name, price in self.ns.items())


@dataclass(frozen=True)
class Sample:
    text: str
    way: str
    work: tuple[float, float, float, float]
    time_ns: float


def texts() -> list[str]:
    """Vectors of every block size, close together and far apart."""
    return [
        f"hvector({total // block}, {block}, {block * spread}B, byte)"
        for total in TOTALS
        for block in BLOCKS
        for spread in SPREADS
        if total >= 2 * block and total * spread <= SPAN_MAX
    ]


def step_count(passes: int) -> int:
    """Returns how often measure() calls `advance`."""
    return passes * len(texts()) * len(WAYS)


def measure(passes: int = PASSES, advance: Callable[[], None] = lambda: None) -> list[Sample]:
    """The samples; a way that the machine forbids has none."""
    engine = core.load()
    fastest: dict[tuple[str, str], float] = {}
    forbidden: set[str] = set()
    with peer_pair.pair() as timed:
        for _ in range(passes):
            for text in texts():
                for way in WAYS:
                    advance()
                    if way in forbidden or (way == "cma" and engine.peer_work(text, 1)[1] > CMA_BLOCKS_MAX):
                        continue
                    try:
                        times = timed(text, 1, way, way != "cma", SAMPLES)
                    except Trouble as trouble:
                        if way != "cma" or trouble.code != "environment":
                            raise
                        forbidden.add(way)
                        continue
                    key = (text, way)
                    fastest[key] = min(fastest.get(key, math.inf), statistics.quantiles(times, n=10)[0])
    return [Sample(text, way, engine.peer_work(text, 1), time_ns) for (text, way), time_ns in fastest.items()]


def setting_of(names: list[str], values: list[float]) -> str:
    return ",".join(f"{name}={value:.6g}" for name, value in zip(names, values, strict=True))


def fit(samples: list[Sample]) -> PeerPrices:
    engine = core.load()
    defaults = engine.peer_prices()
    names, values = list(defaults), [float(value) for value in defaults.values()]

    def errors() -> list[float]:
        prices = setting_of(names, values)
        return [
            math.log(engine.peer_costs(prices, sample.work)[sample.way] / sample.time_ns)
            for sample in samples
        ]

    # Absolute errors, so that a few disturbed samples weigh little.
    copy_model.descend(values, lambda: sum(abs(error) for error in errors()))
    mean_error = math.exp(statistics.fmean(abs(error) for error in errors()))
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return PeerPrices(dict(zip(names, values, strict=True)), now, mean_error)


# ---- the file ----


def path() -> Path:
    return calibration.path().with_name("peers.json")


def save(prices: PeerPrices, where: Path) -> None:
    document = {
        "format": FORMAT,
        "identity": calibration.identity(),
        "measured": prices.measured,
        "error": prices.error,
        "prices_ns": prices.ns,
    }
    where.parent.mkdir(parents=True, exist_ok=True)
    files.write(where, json.dumps(document, indent=1) + "\n")


def load() -> PeerPrices:
    """This host's prices; `remark` says why they are those that the layer came with."""
    how = "'spinloom calibrate peers' measures this machine in half a minute"
    defaults: dict[str, Any] = core.load().peer_prices()
    own = path()
    if not os.path.exists(own):  # False as well where it may not be looked at
        return PeerPrices(
            defaults, remark=f"prices of messages between processes are not this machine's: {how}"
        )
    try:
        document = documents.json(own)
        ns = {name: float(document["prices_ns"][name]) for name in defaults}
        if document["format"] != FORMAT or not all(0 <= price <= 1e9 for price in ns.values()):
            raise ValueError("another format")
        if document["identity"] != calibration.identity():
            return PeerPrices(defaults, remark=f"{own} is of another machine: {how}")
        return PeerPrices(ns, str(document["measured"]), float(document["error"]))
    except (Trouble, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        return PeerPrices(defaults, remark=f"{own} is no list of prices ({error}): {how}")
