"""Does a handler keep up with the line, and with how many HPUs?

By Little's law: packets a second times the mean time of a payload handler. By simulation: the smallest number
of HPUs that process a long message within 5 % of its time on the line. The time counts from its first byte
until its last handler has ended, without one payload and one completion handler: these begin when the last
packet is there, and no number of HPUs makes them shorter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from spinloom.common import core, units
from spinloom.handlers import handler_runs
from spinloom.handlers.handler_build import Image
from spinloom.handlers.handler_runs import HandlerRun
from spinloom.handlers.handler_setup import HandlerSetup
from spinloom.nics.profiles import Profile

PACKETS = 512  # the least number in the long message
ROUNDS = 4  # rounds of packets for each HPU, at least
SLACK = Fraction(5, 100)


def hpus_max() -> int:
    """The most HPUs that the engine accepts."""
    return core.limit("hpu_count_max")


@dataclass(frozen=True)
class Budget:
    packet_ps: Fraction  # a packet's time on the line
    handler_ps: Fraction  # mean of a payload handler
    hpus_by_law: int
    hpus_by_simulation: int | None  # None: not even hpus_max() keep up
    message_bytes: int
    line_ps: int
    fastest_ps: int  # the time with the HPUs by simulation, or with hpus_max()


def processing_ps(ran: HandlerRun, cycle_ps: Fraction) -> int:
    handlers = ran.result["handlers"]
    last = (handlers["payload"]["cycles_max"] + handlers["completion"]["cycles_max"]) * cycle_ps
    return math.ceil(ran.result["last_handler_ps"] - ran.result["first_byte_ps"] - last)


def budget_of(image: Image, setup: HandlerSetup, profile: Profile, seed: int) -> Budget:
    packet_bytes = setup.packet_of(profile)
    packet_ps = Fraction(profile["link.byte_time"]) * packet_bytes
    cycle_ps = Fraction(units.PS_PER_SECOND, profile["hpu.clock"])

    def run(hpus: int, packets: int) -> HandlerRun:
        message = handler_runs.random_message(packets * packet_bytes, seed)
        return handler_runs.run(image, setup.with_overrides(hpus=hpus, count=1), message, seed=seed)

    payload = run(setup.hpus_of(profile), PACKETS).result["handlers"]["payload"]
    handler_ps = Fraction(payload["cycles"], max(payload["handlers"], 1)) * cycle_ps
    by_law = max(1, math.ceil(handler_ps / packet_ps))

    packets = max(PACKETS, ROUNDS * min(by_law, hpus_max()))
    line_ps = math.ceil(packets * packet_ps)
    times: dict[int, int] = {}

    def keeps_up(hpus: int) -> bool:
        times[hpus] = processing_ps(run(hpus, packets), cycle_ps)
        return times[hpus] <= line_ps * (1 + SLACK)

    hpus = smallest(keeps_up, by_law)
    fastest_ps = times[hpus or hpus_max()]
    return Budget(packet_ps, handler_ps, by_law, hpus, packets * packet_bytes, line_ps, fastest_ps)


def smallest(keeps_up: Callable[[int], bool], guess: int) -> int | None:
    """The smallest number of HPUs that keeps up: searches in steps of an eighth from the guess, then by
    halving."""
    good = min(guess, hpus_max())
    while not keeps_up(good):
        if good == hpus_max():
            return None
        good = min(good + max(1, good // 8), hpus_max())
    bad = 0
    while good > 1:
        fewer = good - max(1, good // 8)
        if not keeps_up(fewer):
            bad = fewer
            break
        good = fewer
    while good - bad > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if keeps_up(middle) else (good, middle)
    return good
