"""Does a handler keep up with the line, and with how many HPUs?

By Little's law: packets a second times the mean time of a payload handler. By simulation: the smallest number
of HPUs that take a long message within 5 % of its time on the line, from its first byte until its last
handler has ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from spinloom import handler_runs, units
from spinloom.handler_build import Image
from spinloom.handler_runs import HandlerRun
from spinloom.handler_setup import HandlerSetup
from spinloom.profiles import Profile

PACKETS = 512  # of the long message
SLACK = Fraction(5, 100)
HPUS_MAX = 256


@dataclass(frozen=True)
class Budget:
    packet_ps: Fraction  # a packet's time on the line
    handler_ps: Fraction  # mean of a payload handler
    hpus_by_law: int
    hpus_by_simulation: int | None  # None: no number up to HPUS_MAX keeps up
    message_bytes: int
    line_ps: int
    fastest_ps: int  # with as many HPUs as simulation says, or HPUS_MAX


def line_time(profile: Profile, size_bytes: int) -> Fraction:
    return Fraction(profile["link.byte_time"]) * size_bytes


def message_for(setup: HandlerSetup, profile: Profile, seed: int) -> bytes:
    return handler_runs.random_message(PACKETS * setup.packet_of(profile), seed)


def processing_ps(ran: HandlerRun) -> int:
    return ran.result["last_handler_ps"] - ran.result["first_byte_ps"]


def of(image: Image, setup: HandlerSetup, profile: Profile, seed: int) -> Budget:
    message = message_for(setup, profile, seed)
    setup = setup.with_given(count=1)
    line_ps = math.ceil(line_time(profile, len(message)))
    times: dict[int, int] = {}

    def run(hpus: int) -> HandlerRun:
        return handler_runs.run(image, setup.with_given(hpus=hpus), message, seed=seed)

    def keeps_up(hpus: int) -> bool:
        times[hpus] = processing_ps(run(hpus))
        return times[hpus] <= line_ps * (1 + SLACK)

    payload = run(setup.hpus_of(profile)).result["handlers"]["payload"]
    cycle_ps = Fraction(units.PS_PER_SECOND, profile["hpu.clock"])
    handler_ps = Fraction(payload["cycles"], max(payload["handlers"], 1)) * cycle_ps
    packet_ps = line_time(profile, setup.packet_of(profile))
    hpus = smallest(keeps_up)
    return Budget(
        packet_ps,
        handler_ps,
        max(1, math.ceil(handler_ps / packet_ps)),
        hpus,
        len(message),
        line_ps,
        times[hpus or HPUS_MAX],
    )


def smallest(keeps_up: Callable[[int], bool]) -> int | None:
    """The smallest number of HPUs that does, by doubling and halving."""
    good = 1
    while not keeps_up(good):
        if good == HPUS_MAX:
            return None
        good = min(2 * good, HPUS_MAX)
    bad = good // 2
    while good - bad > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if keeps_up(middle) else (good, middle)
    return good
