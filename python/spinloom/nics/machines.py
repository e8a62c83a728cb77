"""The machine that a simulation stands on: NIC, host and the settings of a run.

Contract: machine() reads what a person names (a profile, fields with other values, sizes with units) and
refuses what cannot be. A Machine is whole: setup() is what sweep.py gives to the engine.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.common import core, data, units
from spinloom.common.errors import Trouble
from spinloom.nics import profiles
from spinloom.nics.profiles import Profile
from spinloom.nics.sweep import Setup

NIC = "sc19-slingshot"


@dataclass(frozen=True)
class Machine:
    profile: Profile
    hpus: int
    mtu: int
    order: str | int  # "in", the window within which packets are shuffled, or "all:N"
    seed: int

    def setup(self, **more: Any) -> Setup:
        """The setup of this machine's cells. Raises Trouble('environment') without handler images."""
        images = data.handler_images()
        if not images:
            raise Trouble(
                "environment", "there are no handler images; 'make setup' in the checkout builds them"
            )
        return Setup(self.profile.native(), images, self.hpus, self.mtu, self.order, self.seed, **more)


def machine(
    nic: str | Path | Profile = NIC,
    host: str | Path | None = None,
    changes: Iterable[tuple[str, str]] = (),
    hpus: int | None = None,
    mtu: str | int | None = None,
    order: str = "in",
    seed: int = 1,
) -> Machine:
    """hpus and mtu: as the profile says where they are None. Raises Trouble('invalid')."""
    changes = list(changes)
    for name, value, field in (("hpus", hpus, "hpu.count"), ("mtu", mtu, "link.payload")):
        if value is not None and field in dict(changes):
            raise Trouble("invalid", f"{name} and {field} say the same thing: give one of them")
    profile = nic if isinstance(nic, Profile) else profiles.load(nic)
    if host:
        profile = profiles.on_host(profile, host)
    profile = profiles.changed(profile, changes)
    return Machine(
        profile,
        parse_hpus(hpus) if hpus is not None else profile["hpu.count"],
        parse_mtu(str(mtu)) if mtu is not None else profile["link.payload"],
        parse_order(str(order)),
        parse_seed(seed),
    )


def parse_seed(seed: int) -> int:
    seed = whole_number("seed", seed)
    if not 0 <= seed < 1 << 64:
        raise Trouble("invalid", f"seed {seed}: it is a number from 0 to 2^64 - 1")
    return seed


def whole_number(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise Trouble("invalid", f"{name} is {value!r}, not a whole number") from None


def parse_hpus(hpus: int) -> int:
    hpus = whole_number("hpus", hpus)
    largest = core.limit("hpu_count_max")
    if not 1 <= hpus <= largest:
        raise Trouble("invalid", f"{hpus} HPUs: a NIC has 1 to {largest:,}")
    return hpus


def parse_mtu(text: str) -> int:
    try:
        mtu = units.parse_bytes(text)
    except ValueError as error:
        raise Trouble("invalid", f"--mtu '{text}': {error}") from None
    largest = core.limit("payload_bytes_max")
    if not 1 <= mtu <= largest:
        raise Trouble("invalid", f"--mtu '{text}': a packet carries 1 B to {largest // 1024} KiB")
    return mtu


def parse_order(text: str) -> str | int:
    if text == "in":
        return text
    word, colon, window = text.partition(":")
    if word in ("window", "all") and colon and window.isdecimal() and 0 < int(window) < 1 << 32:
        return int(window) if word == "window" else f"all:{int(window)}"
    raise Trouble("invalid", f"--order '{text}': accepted forms: 'in', 'window:N', 'all:N' with N at least 1")


def order_text(order: str | int) -> str:
    """The text of an order, as --order takes it."""
    return f"window:{order}" if isinstance(order, int) else order
