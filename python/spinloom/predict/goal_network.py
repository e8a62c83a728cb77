"""Networks of `spinloom goal` as text: `fat-tree:radix=16,levels=3,routing=adaptive`, `torus:8x8x8`.

Contract: parse() gives the fields that the engine takes (src/simulated/network/topology.hpp), or None for the
crossbar, or raises Trouble with one sentence. What does not fit the number of ranks, the engine says.
"""

from __future__ import annotations

import difflib
from typing import Any

from spinloom.common import units
from spinloom.common.errors import Trouble

FORMS = {
    "crossbar": (),
    "fat-tree": ("radix", "levels", "oversubscription"),
    "dragonfly": ("hosts", "routers", "globals", "groups"),
    "torus": ("hosts",),
}
U32_MAX = 2**32 - 1


def number(text: str) -> int:
    value = units.parse_count(text)
    if value > U32_MAX:
        raise ValueError(f"it is at most {U32_MAX}")
    return value


ROUTINGS = ("fixed", "adaptive", "valiant", "ugal")


def routing(text: str) -> str:
    if text not in ROUTINGS:
        raise ValueError(f"accepted forms: {', '.join(ROUTINGS)}")
    return text


def hop(text: str) -> int:
    return units.parse_time(text if units.split(text)[1] else f"{text} ns")


# How each key is read, and the engine's name of it.
COMMON = {
    "routing": (routing, "routing"),
    "seed": (units.parse_count, "detour_seed"),
    "hop": (hop, "hop_ps"),
    "packet": (units.parse_bytes, "packet_bytes"),
    "shuffle": (units.parse_count, "shuffle_seed"),
}


def sizes(text: str, otherwise: str) -> list[int]:
    """The numbers of '8x8x8'; `otherwise` is the sentence of the Trouble for other texts."""
    try:
        return [number(size) for size in text.split("x")]
    except ValueError:
        raise Trouble("invalid", otherwise) from None


def field(form: str, part: str) -> tuple[str, Any]:
    """One 'radix=16'."""
    key, sign, text = part.partition("=")
    keys = (*FORMS[form], *COMMON)
    if not sign or key not in keys:
        near = difflib.get_close_matches(key, keys, 1)
        hint = f"; did you mean {near[0]}=?" if near else ""
        raise Trouble(
            "invalid", f"--network {form}: '{part}' is none of {', '.join(f'{one}=' for one in keys)}{hint}"
        )
    read, name = COMMON.get(key, (number, key))
    try:
        value = read(text)
        if isinstance(value, int) and value > 2**64 - 1:
            raise ValueError("it does not fit in 64 bits")
    except ValueError as error:
        raise Trouble("invalid", f"--network {form}: {part}: {error}") from None
    return name, value


def parse(text: str) -> dict[str, Any] | None:
    form, _, rest = text.partition(":")
    parts = rest.split(",") if rest else []
    if form not in FORMS:
        near = difflib.get_close_matches(form, FORMS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise Trouble("invalid", f"--network {text}: networks are {', '.join(FORMS)}{hint}")
    if form == "crossbar":
        if parts:
            raise Trouble("invalid", f"--network {text}: a crossbar has no numbers")
        return None
    network: dict[str, Any] = {"form": form}
    if form == "torus":
        first = parts.pop(0) if parts else ""
        network["sizes"] = sizes(first, f"--network torus:{first}: its sizes come first, such as torus:8x8x8")
    for part in parts:
        name, value = field(form, part)
        if name in network:
            raise Trouble("invalid", f"--network {text}: '{part.partition('=')[0]}' is given twice")
        network[name] = value
    return network
