"""Pings and SLMP messages to a station with an Ethernet NIC: what the engine is asked, with the numbers of
stations.toml.

Contract: station(name) is a number of the file, in ps, bytes or as a count. ping(), slmp() and window() run
the engine and return its columns; times are modelled, and stand there only for bytes that were compared. They
raise Trouble.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spinloom.common import units
from spinloom.common.errors import Trouble

PARSERS = {
    **dict.fromkeys(("pings", "polls", "nic", "both"), units.parse_count),
    "packet": units.parse_bytes,
    "cost": units.parse_cycles,
}
SEED = 1
LARGE_SLOTS = 256  # slots of 1536 B; FPsPIN's packet allocator


@dataclass(frozen=True)
class Number:
    value: int
    text: str
    label: str
    source: str


@cache
def numbers() -> dict[str, Number]:
    """The numbers of stations.toml by "section.key"."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {
        f"{section}.{key}": Number(
            PARSERS.get(key, units.parse_time)(entry["value"]),
            entry["value"],
            entry["label"],
            entry["source"],
        )
        for section, keys in table.items()
        for key, entry in keys.items()
    }


def station(name: str) -> int:
    return numbers()[name].value


@dataclass(frozen=True)
class Bench:
    engine: Any
    profile: Any  # profiles.Profile
    images: dict[str, bytes]

    def config(self, **more: Any) -> dict[str, Any]:
        return {
            "profile": self.profile.native(),
            "images": dict(self.images),
            "hpus": self.profile["hpu.count"],
            "mtu": self.profile["link.payload"],
            "order": "in",
            "seed": SEED,
            "inject": "none",
            **more,
        }

    def ask(self, run: str, **config: Any) -> dict[str, Any]:
        try:
            return getattr(self.engine, run)(self.config(**config))
        except self.engine.SpinloomError as error:
            raise Trouble(error.code, f"{run}: {error.message}") from None

    def ping(self, protocol: str, way: str, size_bytes: int, image: str = "") -> dict[str, Any]:
        """Columns of the engine, and `round_trip_ps`, the median."""
        half_ps = station(f"ping.{protocol}") // 2
        columns = self.ask(
            "run_ping",
            way=way,
            udp=protocol == "udp",
            image=image,
            bytes=size_bytes,
            pings=station("ping.pings"),
            far_stack=half_ps // 2,
            host_answer=half_ps,
            poll=station("host.poll"),
            word=station("host.word"),
            call=station("host.call"),
        )
        ordered = sorted(columns["round_trips_ps"])
        return {
            **columns,
            "round_trip_ps": (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2,
        }

    def slmp(self, type_text: str, count: int, messages: int, image: str, **more: Any) -> dict[str, Any]:
        defaults = {
            "type": type_text,
            "count": count,
            "messages": messages,
            "image": image,
            "window": 1,
            "packet_bytes": station("sender.packet"),
            "send": station("sender.send"),
            "far_stack": station("sender.stack"),
            "sleep": station("sender.sleep"),
            "ready": station("host.ready"),
            "compute": 0,
            "poll": station("host.poll"),
            "call": station("host.call"),
        }
        return self.ask("run_slmp", **{**defaults, **more})

    def overlapped(
        self, type_text: str, count: int, messages: int, image: str, **more: Any
    ) -> dict[str, Any]:
        """The host computes in steps, as many as cover the transfer that it only waits for."""
        alone = self.slmp(type_text, count, messages, image, **more)["time_ps"]
        step = alone // station("host.polls")
        return {**self.slmp(type_text, count, messages, image, compute=step, **more), "alone_ps": alone}

    def window(self, image: str, send_ps: int) -> dict[str, Any]:
        """The smallest window, in packets, at which a burst of one window loses packets, and formula (3) of
        D4.7 for the rates that the same sender and receiver have here."""
        packet = station("sender.packet")
        cable = int((packet + 52 + 24) * self.profile["link.byte_time"])

        def run(packets: int, window: int, **more: Any) -> dict[str, Any]:
            text = f"contig({packets * packet}, byte)"
            return self.slmp(text, 1, 1, image, window=window, send=send_ps, **more)

        def first_loss(packets_of: Callable[[int], int]) -> int:
            least, most = LARGE_SLOTS, 4 * LARGE_SLOTS  # loses nothing, loses
            if not run(packets_of(most), most)["lost"]:
                raise Trouble(
                    "unsupported", f"a window of {most} packets loses nothing at {send_ps} ps a packet"
                )
            while most - least > 1:
                middle = (least + most) // 2
                lost = run(packets_of(middle), middle)["lost"]
                least, most = (least, middle) if lost else (middle, most)
            return most

        # A sender that looks for acknowledgements all the time keeps the receiver busy.
        busy = run(2000, 200, sleep=units.parse_time("1 us"))
        receive = (busy["ack_last_ps"] - busy["ack_second_ps"]) / (busy["acks"] - 2)
        between = max(send_ps, cable)
        return {
            "send_ps": between,
            "receive_ps": receive,
            "slots": LARGE_SLOTS,
            "formula": LARGE_SLOTS * receive / (receive - between),
            # The first packet is acknowledged alone, then one window is sent at once.
            "first_loss": first_loss(lambda window: window + 1),
            "first_loss_long": first_loss(lambda window: 8 * window),
            "handler_cycles": busy["handler_cycles"] / busy["handlers"],
        }
