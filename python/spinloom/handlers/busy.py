"""The number of HPUs that a handler of a given time needs: Little's law and simulation (SC'17 paper, 4.4.2).

Contract: a packet holds an HPU for `service_ps`, the time of the handler with the NIC's own start and end,
measured with one HPU, where nothing else limits. The handler is handlers/busy.c; packets come back to back.
hpus_needed() and line_part() give columns; Trouble('unsupported') if the NIC's own part is longer.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from spinloom.common.errors import Trouble
from spinloom.handlers.handler_budget import SLACK, hpus_max, smallest
from spinloom.nics.profiles import Profile

PACKETS = 512
ROUNDS = 4  # rounds of packets for each HPU


def packet_ps(profile: Profile, packet_bytes: int) -> Fraction:
    """Time between two packets at line rate: the longer of gap and bytes."""
    return max(Fraction(profile["link.gap"]), Fraction(profile["link.byte_time"]) * packet_bytes)


class Bench:
    """Runs of one profile, packet size and service time."""

    def __init__(
        self, engine: Any, profile: Profile, image: bytes, packet_bytes: int, service_ps: int
    ) -> None:
        self.engine, self.profile, self.image, self.packet_bytes = engine, profile, image, packet_bytes
        self.packet_ps = packet_ps(profile, packet_bytes)
        self.cycles = self.calibrated(service_ps)

    def calibrated(self, service_ps: int) -> int:
        """The handler's cycles with which one HPU spends service_ps on a packet."""
        few, many = 200, 400
        at_few, at_many = (self.processing_ps(1, PACKETS, cycles) / PACKETS for cycles in (few, many))
        a_cycle = (at_many - at_few) / (many - few)
        cycles = round(few + (service_ps - at_few) / a_cycle)
        if cycles < 1:
            least = round((at_few - few * a_cycle) / 1000)
            raise Trouble("unsupported", f"a handler that does nothing holds its HPU for about {least} ns")
        return cycles

    def processing_ps(self, hpus: int, packets: int, cycles: int | None = None) -> int:
        """Time from a message's first byte at the NIC until its last handler has ended."""
        message = bytes(packets * self.packet_bytes)
        constants = (self.cycles if cycles is None else cycles).to_bytes(4, "little")
        ran = self.engine.run_handler(
            {
                "profile": self.profile.native(),
                "images": {"busy": self.image},
                "image": "busy",
                "hpus": hpus,
                "mtu": self.packet_bytes,
                "order": "in",
                "seed": 1,
                "inject": "none",
                "message": message,
                "messages": 1,
                "hdr_data": 0,
                "user_header_bytes": 0,
                "ack": False,
                "budget_cycles": 1 << 30,
                "constants": constants,
                "state": b"",
                "entry": bytes(len(message)),
                "handler_memory": b"",
                "reply": b"",
                "trace": False,
                "profile_instructions": False,
            }
        )
        bad = [event["fail"] for event in ran["events"] if not event["ok"]]
        if bad or ran["time_ps"] < 0:
            raise Trouble("fault", f"the busy handler failed: {bad or 'no end'}")
        return ran["last_handler_ps"] - ran["first_byte_ps"]

    def line_part(self, hpus: int, service_ps: int) -> dict[str, Any]:
        """Time of the line over time of the NIC, without the last packet's handler, which nothing can
        hide."""
        packets = max(PACKETS, ROUNDS * hpus)
        line = packets * self.packet_ps
        return {"part": float(line / (self.processing_ps(hpus, packets) - service_ps))}


def hpus_needed(bench: Bench, service_ps: int) -> dict[str, Any]:
    """The fewest HPUs that are within 5 % of the line; 0 if not even hpus_max() are."""
    law = Fraction(service_ps) / bench.packet_ps
    fewest = smallest(
        lambda hpus: bench.line_part(hpus, service_ps)["part"] >= 1 / (1 + SLACK), max(1, round(law))
    )
    return {"hpus_by_law": float(law), "hpus": fewest or 0, "hpus_max": hpus_max()}
