"""LogGP with m of a NIC profile, fitted to simulated messages.

Contract: fit() gives the parameters of src/portals/collective/model.hpp for a machine: L is the way between
two NICs (switch and wire), g the link's gap; m and G are what each further NIC of a chain adds, o half of
what is left of one message, a and A what a combination adds, z what a round of a barrier does, h what each
more of many senders to one adds. pingpongs() gives half of a ping-pong for each size. Triggered operations at
fidelity nic; times are modelled, in ps.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from spinloom.common import core, lines
from spinloom.common.errors import Trouble
from spinloom.nics.machines import Machine
from spinloom.papers import observe_programs
from spinloom.papers.lab import Lab
from spinloom.papers.trial import Trial

SIZES = (8, 4096, 65536)  # bytes: what is fitted to
CROWD = 34  # ranks of which all others send to one
ELEMENT = 8  # bytes: of combinations
RATE = 1000  # rates are whole thousandths of a picosecond for a byte


def fit(machine: Machine) -> dict[str, Any]:
    """The model, as collective_candidates() of the engine takes it."""
    one_hop, two_hops, reduced = (
        [(size, offloaded_ps(machine, operation, "chain", ranks, size)) for size in SIZES]
        for operation, ranks in (("bcast", 2), ("bcast", 3), ("reduce", 2))
    )
    hops = [(size, more - less) for (size, less), (_, more) in zip(one_hop, two_hops, strict=True)]
    locals_ = [(size, more - less) for (size, less), (_, more) in zip(one_hop, reduced, strict=True)]
    hop, local = lines.fitted(hops), lines.fitted(locals_)
    empty = [offloaded_ps(machine, "barrier", "dissemination", ranks, 0) for ranks in (2, 4)]
    few, many = (offloaded_ps(machine, "gather", "linear", ranks, SIZES[0]) for ranks in (2, CROWD))
    profile = machine.profile
    latency = int(profile["link.switch"] + profile["link.wire"])
    begin = [time - hop for (_, time), (_, hop) in zip(one_hop, hops, strict=True)]
    return {
        "o_ps": min(begin) // 2,
        "L_ps": latency,
        "g_ps": int(profile["link.gap"]),
        "h_ps": (many - few) // (CROWD - 2),
        "m_ps": max(0, round(hop.constant_ps) - latency),
        "z_ps": max(0, empty[1] - empty[0] - latency),
        "a_ps": max(0, round(local.constant_ps)),
        "G": rate_of(hop.rate),
        "A": rate_of(local.rate),
    }


def rate_of(rate: Fraction) -> tuple[int, int]:
    rounded = Fraction(max(0, round(rate * RATE)), RATE)
    return rounded.numerator, rounded.denominator


def offloaded_ps(machine: Machine, operation: str, algorithm: str, ranks: int, size: int) -> int:
    offloaded = core.load().collective_offloaded(operation, algorithm, ranks, size, ELEMENT)
    return simulated_ps(machine, offloaded, "nic")


def simulated_ps(machine: Machine, offloaded: Any, fidelity: str) -> int:
    """Until the last host knows. Raises Trouble."""
    return simulated_of(machine, offloaded.schedule(), fidelity)


def simulated_of(machine: Machine, schedule: Any, fidelity: str) -> int:
    engine = core.load()
    try:
        return engine.run_goal_on(schedule, fidelity, machine.profile.native(), o_ps=0)["makespan_ps"]
    except engine.SpinloomError as error:
        raise Trouble(error.code, error.message) from None


def pingpongs(nic: str) -> list[dict[str, Any]]:
    """A row for each size: half of a ping-pong, and what the line says that is fitted to SIZES."""
    trial = Trial(nic)
    probes = observe_programs.pingpong_cells(trial, list(SIZES))
    laboratory = Lab(1)
    laboratory.run(probes, None)
    points = [(probe.size_bytes, laboratory[probe]["time_ps"]) for probe in probes]
    line = lines.fitted([point for point in points if point[0] in SIZES])
    return [
        {
            "size_bytes": size,
            "time_ps": time,
            "line_ps": round(line.at(size)),
            "residual_percent": round(float(100 * (line.at(size) / time - 1)), 4),
            "fitted": size in SIZES,
        }
        for size, time in points
    ]
