"""Many peers at once on one NIC: what `spinloom simulate --together --peers` and spinloom.exchange() run.

    import spinloom
    found = spinloom.exchange("LAMMPS_atomic:2 procs", peers=200)
    print(found.kinds(), found.time_ps)

Contract: exchange() lets `peers` senders put one message each at the same time; their packets interleave on
the receiver's link. In each peer's datatype the seeds of rand() are moved, so that all
lists differ; a datatype without rand() is the same for all. Every byte is compared with the
oracle. A message that finds no room on the NIC is unpacked by the host. The kinds of NIC memory are KINDS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinloom.common import core
from spinloom.common.errors import Trouble, nearest
from spinloom.nics import machines, results, simulation, strategies
from spinloom.nics.machines import Machine
from spinloom.nics.strategies import BASELINE
from spinloom.nics.workloads import Row

if TYPE_CHECKING:
    from spinloom.nics.profiles import Profile
    from spinloom.nics.simulation import Datatype

STRATEGY = "specialised"
BASELINES = (BASELINE, "host-warm")  # strategies of the same exchange without offloading
KINDS = {
    "lists": "what handlers read: index lists, compact programs",
    "checkpoints": "what handlers write: checkpoints and segments",
    "packets": "packets that wait for an HPU, or that one works on",
    "code": "the handlers' machine code, once for all messages",
}
BANKS = {  # the field of the profile that holds a kind
    "lists": "memory.state_bytes",
    "checkpoints": "memory.state_bytes",
    "packets": "memory.packet_buffer_bytes",
}
SEED_STEP = 1000  # the difference of the seeds of two peers
SEEDS = re.compile(r"\brand\(\s*(\d+)")


@dataclass(frozen=True)
class Exchange:
    """The outcome of one exchange. Times are in ps, memory is in bytes."""

    machine: Machine
    row: Row
    strategy: str
    peers: int
    time_ps: int  # first byte at the NIC until every message is in its place
    bytes: int
    fallbacks: list[str]  # a reason for each message that was unpacked by the host
    occupancy: dict[str, int]  # the most of each kind at a time
    packets_over_time: list[tuple[int, int]]  # (ps since the first byte, bytes)
    destinations: list[bytes] = field(repr=False, default_factory=list)

    def kinds(self) -> dict[str, int]:
        return dict(self.occupancy)

    def share_of(self, kind: str) -> float | None:
        """The part of its memory that a kind fills; None for code, which has a memory of its own."""
        bank = BANKS.get(kind)
        return self.occupancy[kind] / self.machine.profile[bank] if bank else None


def peer_types(row: Row, peers: int) -> list[str]:
    """The datatype of each peer."""

    def with_moved_seeds(step: int) -> str:
        return SEEDS.sub(lambda match: f"rand({int(match[1]) + step}", row.type)

    return [with_moved_seeds(peer * SEED_STEP) for peer in range(peers)]


def run(row: Row, peers: int, strategy: str, machine: Machine, inject: str = "none") -> Exchange:
    """Raises Trouble; Trouble('mismatch') for a wrong byte."""
    if not isinstance(strategy, str) or strategy not in strategies.STRATEGIES:
        raise Trouble(
            "invalid", f"there is no strategy '{strategy}'{nearest(strategy, strategies.STRATEGIES)}"
        )
    engine = core.load()
    setup = machine.setup()
    config = {
        "profile": setup.profile,
        "images": setup.images,
        "hpus": setup.hpus,
        "mtu": setup.mtu,
        "order": setup.order,
        "seed": setup.seed,
        "inject": inject,
        "strategy": strategy,
        "peers": [{"type": text, "count": row.count} for text in peer_types(row, peers)],
    }
    try:
        result = dict(engine.exchange(config))
    except engine.SpinloomError as error:
        raise Trouble(error.code, f"{peers} peers, {strategy}: {error.message}") from None
    each = [dict(peer) for peer in result["peers"]]
    return Exchange(
        machine,
        row,
        strategy,
        peers,
        result["time_ps"],
        result["bytes"],
        [peer["fallback"] for peer in each if peer["fallback"]],
        {
            "lists": sum(peer["program_bytes"] for peer in each),
            "checkpoints": sum(peer["state_bytes"] for peer in each),
            "packets": result["packet_buffer_peak_bytes"],
            "code": result["code_bytes"],
        },
        [(int(when), int(depth)) for when, depth in result["packet_buffer"]],
        [peer["destination"] for peer in each],
    )


def exchange(
    type: Datatype,
    peers: int = 200,
    strategy: str = STRATEGY,
    *,
    nic: str | Path | Profile = machines.NIC,
    host: str | Path | None = None,
    set: Mapping[str, str | int | float] | None = None,
    hpus: int | None = None,
    mtu: str | int | None = None,
    order: str = "in",
    seed: int = 1,
    count: int = 1,
) -> Exchange:
    """Runs one exchange of one datatype and strategy; the rest are simulate()'s. Raises Trouble."""
    rows = simulation.rows_of(type, count)
    if len(rows) != 1:
        names = ", ".join(row.datatype for row in rows)
        raise Trouble("invalid", f"an exchange has one datatype, not {len(rows)}: {names}")
    changes = [(str(name), str(value)) for name, value in (set or {}).items()]
    machine = machines.machine(nic, host, changes, hpus, mtu, order, seed)
    return run(rows[0], machines.whole_number("peers", peers), strategy, machine)


def with_half_memory(outcome: Exchange, kind: str) -> Exchange | None:
    """Runs the exchange again with half of what the kinds in a kind's memory have filled together.

    None where that is less than the NIC needs: one packet in the packets' memory.
    """
    bank = BANKS[kind]
    used_bytes = sum(outcome.occupancy[each] for each, place in BANKS.items() if place == bank)
    machine = outcome.machine
    if used_bytes // 2 < (machine.mtu if kind == "packets" else 1):
        return None
    smaller = machines.machine(
        machine.profile,
        changes=[(bank, f"{used_bytes // 2} B")],
        hpus=machine.hpus,
        mtu=machine.mtu,
        order=machines.order_text(machine.order),
        seed=machine.seed,
    )
    return run(outcome.row, outcome.peers, outcome.strategy, smaller)


def rows_of(outcome: Exchange, halved: Mapping[str, Exchange]) -> list[dict[str, Any]]:
    """One row a kind. halved: exchanges of with_half_memory() by kind."""
    return [
        {
            "kind": kind,
            "bytes": outcome.occupancy[kind],
            "share": outcome.share_of(kind),
            "half_time_ps": halved[kind].time_ps if kind in halved else None,
            "half_fallbacks": len(halved[kind].fallbacks) if kind in halved else None,
            "about": about,
        }
        for kind, about in KINDS.items()
    ]


def result_hash(outcome: Exchange) -> str:
    setup = outcome.machine.setup()
    return results.digest(
        {
            "profile": setup.profile,
            "images": results.image_hashes(setup.images),
            "time_ps": outcome.time_ps,
            "occupancy": outcome.occupancy,
            "destinations": results.image_hashes(
                {str(number): each for number, each in enumerate(outcome.destinations)}
            ),
        }
    )
