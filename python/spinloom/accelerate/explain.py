"""The content of `spinloom explain` for one datatype: facts, CPU times with their bounds, modelled NIC times.

Contract: facts() of a datatype are exact; host_ways() are predictions of host time by copy_model; nic_ways()
are modelled times of checked simulations. A way that has a time has a bound: the part that takes longest. On
a NIC it is latency, or the refills of a list, if no part is busy for BUSY of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spinloom.accelerate import copy_model
from spinloom.accelerate.calibration import Calibration
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics import strategies, sweep
from spinloom.nics.machines import Machine
from spinloom.nics.profiles import Profile
from spinloom.nics.strategies import DIRECT
from spinloom.nics.sweep import Cell
from spinloom.nics.workloads import Row

SIMULATED_BYTES_MAX, SIMULATED_BLOCKS_MAX = 64 << 20, 1 << 20
PREDICTED_BYTES_MAX, PREDICTED_BLOCKS_MAX = 128 << 20, 1 << 22  # followed through modelled caches in seconds
NO_RECEIVE = "cannot be received into"
BUSY = 0.4  # a resource that is busy for a smaller part of the time does not bound it


@dataclass(frozen=True)
class Way:
    """One way to move the message: a time and what bounds it, or the reason why there is none."""

    path: str
    kind: str  # "host", "modelled" or, of explain_gpu.py, "gpu"
    time_ps: int | None
    bound: str
    about: str


# ---- facts of a datatype ----


def facts(row: Row) -> dict[str, Any]:
    engine = core.load()
    try:
        details = dict(engine.explain(row.type, row.count))
    except engine.SpinloomError as error:
        raise Trouble(error.code, error.message) from None
    span = details["true_extent_bytes"] + (row.count - 1) * abs(details["extent_bytes"]) if row.count else 0
    details["message_bytes"] = details["size_bytes"] * row.count
    details["density"] = round(details["message_bytes"] / span, 6) if span > 0 else None
    details["no_receive"] = why_no_receive(row)
    return details


def why_no_receive(row: Row) -> str | None:
    """Returns why no message may be received into the type (a byte is written twice); None if one may."""
    engine = core.load()
    try:
        engine.Layout.from_text(row.type).check_receive(row.count)
    except engine.SpinloomError as error:
        return error.message
    return None


def host_ways(row: Row, facts: dict[str, Any], calibration: Calibration, profile: Profile) -> list[Way]:
    """Pack, unpack, a single copy, and pack + send + unpack over the profile's link."""
    if facts["message_bytes"] == 0:
        return []
    names = {"pack": "pack", "unpack": "unpack", "copy": "single copy"}
    if facts["message_bytes"] > PREDICTED_BYTES_MAX or facts["blocks"] > PREDICTED_BLOCKS_MAX:
        reason = f"not predicted: beyond {PREDICTED_BYTES_MAX >> 20} MiB or {PREDICTED_BLOCKS_MAX:,} blocks"
        return [Way(name, "host", None, "", reason) for name in (*names.values(), "pack + send")]
    times = {}
    ways = []
    about = {
        "pack": "into a contiguous buffer, by the loop or kernel that fits",
        "unpack": "from a contiguous buffer",
        "copy": "layout to layout in one copy, as between two processes that map each other's memory",
    }
    for movement, words in about.items():
        if facts["no_receive"] and movement != "pack":
            ways.append(Way(names[movement], "host", None, "", NO_RECEIVE))
            continue
        counts = copy_model.count(row.type, row.count, movement, calibration.caches, facts)
        prediction = copy_model.predict(calibration.prices[movement], counts)
        times[movement] = prediction.time_ns
        share = prediction.parts_ns[prediction.bound] / prediction.time_ns
        time_ps = round(prediction.time_ns * 1000)
        ways.append(Way(names[movement], "host", time_ps, f"{prediction.bound} ({share:.0%})", words))
    if facts["no_receive"]:
        return [*ways, Way("pack + send", "host", None, "", NO_RECEIVE)]
    wire_ns = facts["message_bytes"] * float(profile["link.byte_time"]) / 1000
    parts = {"pack": times["pack"], "wire": wire_ns, "unpack": times["unpack"]}
    longest = max(parts, key=lambda name: parts[name])
    total_ns = sum(parts.values())
    ways.append(
        Way(
            "pack + send",
            "host",
            round(total_ns * 1000),
            f"{longest} ({parts[longest] / total_ns:.0%})",
            f"pack, {profile.name}'s link, unpack: one after the other",
        )
    )
    return ways


def nic_ways(row: Row, facts: dict[str, Any], machine: Machine, names: list[str]) -> list[Way]:
    """Each strategy's modelled time; every byte of the simulated destination was compared."""
    if facts["blocks"] != 1:
        names = [name for name in names if name != DIRECT]
    if facts["no_receive"]:
        return [Way(name, "modelled", None, "", NO_RECEIVE) for name in names]
    if facts["message_bytes"] > SIMULATED_BYTES_MAX or facts["blocks"] > SIMULATED_BLOCKS_MAX:
        reason = f"not simulated: beyond {SIMULATED_BYTES_MAX >> 20} MiB or {SIMULATED_BLOCKS_MAX:,} blocks"
        return [Way(name, "modelled", None, "", f"{reason}; 'spinloom simulate' does") for name in names]
    setup = machine.setup()
    engine = core.load()
    outcomes = (sweep.run_cell(engine, Cell(row, name), setup) for name in names)
    return [nic_way(outcome, machine.profile, machine.hpus) for outcome in outcomes]


def nic_way(outcome: sweep.Outcome, profile: Profile, hpus: int) -> Way:
    name = outcome.cell.strategy
    if outcome.code != "ok":
        if outcome.code not in ("unsupported", "exhausted"):
            raise Trouble(outcome.code, f"{outcome.cell}: {outcome.message}")
        return Way(name, "modelled", None, "", outcome.message)
    columns = outcome.columns
    busy = columns["handler_cycles_per_packet"] * columns["packets"] / hpus
    parts = {
        "wire": columns["line_time_ps"],
        "handlers": round(busy * 1e12 / profile["hpu.clock"]),
        "host unpack": columns["time_ps"] - columns["data_time_ps"] if name.startswith("host") else 0,
    }
    longest = max(parts, key=lambda part: parts[part])
    share = parts[longest] / columns["time_ps"]
    bound = f"{longest} ({share:.0%})"
    if share < BUSY:
        refills = columns["iovec_refills"]
        bound = f"{refills:,} refills of the list" if refills else f"latency ({1 - share:.0%})"
    return Way(name, "modelled", columns["time_ps"], bound, strategies.STRATEGIES[name])
