"""Three fidelities of a schedule: messages that cost LogGOPS, NICs that match, whole simulated nodes.

Contract: parameters() gives the model's L, g, G and o for a NIC profile: L from a checked message of one
byte, as in predict_ways.py, g and G of the link, o the host's call. run() runs a schedule at one fidelity
with them; table() gives rows for several. Times are modelled; host_s is the time that the run itself took.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics.layout_prices import Cells, ResultStore
from spinloom.nics.machines import Machine
from spinloom.predict import predict_ways

MESSAGE, NIC, FULL = "message", "nic", "full"
FIDELITIES = (MESSAGE, NIC, FULL)
SHARED = (
    "o_ps",
    "O",
    "S_bytes",
    "unit_ps",
    "network",
    "noise",
    "layout",
    "record",
)  # arguments of all fidelities
RANKS_MAX = 1 << 24  # the limit for one range
COLUMNS = {
    "fidelity": "message: LogGOPS; nic: NICs that match, no packets; full: simulated nodes, checked bytes",
    "makespan_ps": "until the last rank ends",
    "difference_ps": "of makespan_ps from message's; empty without message",
    "of_message": "makespan_ps over message's",
    "host_s": "host time of the run",
}


def parse(text: str) -> list[str]:
    """'message,full' as names, each once."""
    names = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in FIDELITIES:
            raise Trouble("invalid", f"--fidelity {text}: '{name}' is none of {', '.join(FIDELITIES)}")
    return names


def parse_ranks(option: str, text: str) -> list[int]:
    """'0,17,64-71' as numbers, each once."""
    ranks: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not dash)):
            raise Trouble("invalid", f"{option} {text}: write ranks as 0,17,64-71")
        begin, end = int(first), int(last) if dash else int(first)
        if end < begin or end - begin > RANKS_MAX or end >= 2**32:
            raise Trouble("invalid", f"{option} {text}: {part.strip()} are no ranks")
        ranks.update(dict.fromkeys(range(begin, end + 1)))
    return list(ranks)


def parameters(machine: Machine) -> dict[str, Any]:
    """L, g, G and o of a profile as arguments of Schedule.run."""
    cells = Cells(machine, ResultStore(None))
    predict_ways.want_network(cells)
    cells.run(1, lambda: None)
    network = predict_ways.network_of(machine, cells)
    return {
        "L_ps": network.L_ps,
        "g_ps": network.g_ps,
        "G": predict_ways.ratio(network.G),
        "o_ps": network.call_ps,
    }


def run(
    schedule: Any,
    fidelity: str,
    machine: Machine | None,
    arguments: dict[str, Any],
    progress: Callable[[int], object] | None = None,
    ranks: list[int] | None = None,
) -> dict[str, Any]:
    """The outcome at one fidelity, by the arguments of Schedule.run; with ranks, the others are at message
    level."""
    if fidelity == MESSAGE:
        return schedule.run(**arguments, progress=progress)
    assert machine is not None, "nic and full have a profile"
    shared = {name: arguments[name] for name in SHARED}
    if ranks is not None:
        shared.update({name: arguments[name] for name in ("L_ps", "g_ps", "G")}, ranks=ranks)
    return core.load().run_goal_on(schedule, fidelity, machine.profile.native(), **shared, progress=progress)


def table(
    schedule: Any, fidelities: list[str], machine: Machine | None, arguments: dict[str, Any]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for fidelity in fidelities:
        begun = time.perf_counter()
        outcome = run(schedule, fidelity, machine, arguments)
        seconds = time.perf_counter() - begun
        rows.append(
            {"fidelity": fidelity, "makespan_ps": outcome["makespan_ps"], "host_s": round(seconds, 6)}
        )
    message = next((row["makespan_ps"] for row in rows if row["fidelity"] == MESSAGE), None)
    for row in rows:
        known = message is not None
        row["difference_ps"] = row["makespan_ps"] - message if known else None
        row["of_message"] = round(row["makespan_ps"] / message, 4) if known and message else None
    return [{name: row[name] for name in COLUMNS} for row in rows]
