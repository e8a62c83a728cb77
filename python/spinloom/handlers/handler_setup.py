"""The setup of a handler's runs: NAME.toml beside NAME.c, and options of the command line that replace it.

Contract: load(path) reads a file, or returns the defaults if there is none; Trouble names file, key and
value. A HandlerSetup is plain data: sizes and contents in bytes; files that it names have been read.
docs/formats/handler.md lists the keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from spinloom.common import documents, units
from spinloom.common.errors import Trouble, nearest
from spinloom.nics import profiles
from spinloom.nics.profiles import Profile

U32_MAX = 2**32 - 1
SYMBOLIC = ("packet", "message")  # constants that a run knows


Content = bytes | tuple[int | str, ...]  # a memory's contents at first: a file's bytes, or 32-bit numbers


@dataclass(frozen=True)
class HandlerSetup:
    profile: str = "sc19-slingshot"
    host: str = ""  # the profile's
    changes: tuple[tuple[str, str], ...] = ()  # other numbers of the profile
    hpus: int | None = None  # None: the profile's
    packet_bytes: int | None = None
    order: str = "in"
    message_bytes: int = 64 << 10
    count: int = 1
    user_header_bytes: int = 0
    hdr_data: int = 0
    ack: bool = False
    entry_bytes: int = 0  # a run has the message's bytes or more
    state_bytes: int = 0
    reply_bytes: int = 0
    handler_bytes: int = 0
    constants: tuple[int | str, ...] = ()
    entry_from: Content = ()
    state_from: Content = ()
    handler_from: Content = ()
    budget_cycles: int = 1_000_000
    confluent: bool = False

    @cached_property
    def nic(self) -> Profile:
        return profiles.changed(profiles.load(self.profile, self.host or None), self.changes)

    def packet_of(self, profile: Profile) -> int:
        return self.packet_bytes or profile["link.payload"]

    def hpus_of(self, profile: Profile) -> int:
        return self.hpus or profile["hpu.count"]

    def constant_bytes(self, packet_bytes: int, message_bytes: int) -> bytes:
        return content_bytes(self.constants, packet_bytes, message_bytes)

    def with_overrides(self, **overrides: Any) -> HandlerSetup:
        """A copy in which values that are not None replace those of this setup."""
        return replace(self, **{name: value for name, value in overrides.items() if value is not None})


def content_bytes(content: Content, packet_bytes: int, message_bytes: int) -> bytes:
    if isinstance(content, bytes):
        return content
    known = {"packet": packet_bytes, "message": message_bytes}
    return b"".join(known.get(value, value).to_bytes(4, "little") for value in content)


def filled(name: str, size_bytes: int, initial: bytes, least_bytes: int = 0) -> bytes:
    """A memory that begins with the bytes given and goes on with zeros.

    It has `size_bytes`, or as many bytes as were given where that is 0, and never fewer than `least_bytes`.
    Raises Trouble when more bytes are given than a size that is not 0.
    """
    if size_bytes and len(initial) > size_bytes:
        raise Trouble(
            "invalid",
            f"memory.{name}_from has {len(initial):,} B, more than memory.{name}, which is {size_bytes:,} B",
        )
    return initial.ljust(max(size_bytes, least_bytes), b"\0")


def whole_number(least: int, most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"accepted: a whole number from {least:,} to {most:,}")
        return value

    return parse


SIZE_MAX = 1 << 30


def size(value: Any) -> int:
    return whole_number(0, SIZE_MAX)(value if isinstance(value, int) else units.parse_bytes(text(value)))


def cycles(value: Any) -> int:
    return whole_number(1, 10**10)(value) if isinstance(value, int) else units.parse_cycles(text(value))


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("accepted: text in quotes")
    return value


def order(value: Any) -> str:
    order_of(text(value))
    return value


def order_of(value: str) -> str | int:
    """The order in the form that the engine takes."""
    kind, _, window = value.partition(":")
    if value == "in":
        return value
    if kind not in ("window", "all") or not window.isdecimal() or not 0 < int(window) < 1 << 32:
        raise ValueError("accepted: 'in', 'window:N', 'all:N' with N from 1 to 2^32 - 1")
    return int(window) if kind == "window" else value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("accepted: true or false")
    return value


def pairs(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise ValueError("accepted: a table of texts, such as { 'hpu.clock' = '1 GHz' }")
    return tuple(value.items())


def words(value: Any) -> tuple[int | str, ...]:
    if not isinstance(value, list):
        raise ValueError("accepted: a list of 32-bit numbers")
    return tuple(word if word in SYMBOLIC else whole_number(0, U32_MAX)(word) for word in value)


def content(value: Any) -> Content | Path:
    """A Path is of a file that load() reads."""
    if isinstance(value, str):
        return Path(value)
    try:
        return words(value)
    except ValueError:
        raise ValueError("accepted: a file's name, or a list of 32-bit numbers") from None


# table.key of the file: field of the setup, function that reads its value
KEYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "nic.profile": ("profile", text),
    "nic.host": ("host", text),
    "nic.set": ("changes", pairs),
    "nic.hpus": ("hpus", whole_number(1, 256)),
    "nic.packet": ("packet_bytes", size),
    "nic.order": ("order", order),
    "message.bytes": ("message_bytes", size),
    "message.count": ("count", whole_number(1, 100_000)),
    "message.user_header": ("user_header_bytes", size),
    "message.hdr_data": ("hdr_data", whole_number(0, 2**63 - 1)),
    "message.ack": ("ack", flag),
    "memory.entry": ("entry_bytes", size),
    "memory.state": ("state_bytes", size),
    "memory.reply": ("reply_bytes", size),
    "memory.handler": ("handler_bytes", size),
    "memory.constants": ("constants", words),
    "memory.entry_from": ("entry_from", content),
    "memory.state_from": ("state_from", content),
    "memory.handler_from": ("handler_from", content),
    "handler.budget": ("budget_cycles", cycles),
    "test.confluent": ("confluent", flag),
}
assert {field for field, _ in KEYS.values()} == {field.name for field in fields(HandlerSetup)}


def load(path: Path) -> HandlerSetup:
    if not os.path.exists(path):  # False for a name that is too long, too
        return HandlerSetup()
    tables = documents.toml(path)
    values: dict[str, Any] = {}
    for table, entries in tables.items():
        if not isinstance(entries, dict):
            raise Trouble(
                "invalid", f"{path}: '{table}' stands outside of the tables {', '.join(tables_known())}"
            )
        for key, value in entries.items():
            name = f"{table}.{key}"
            if name not in KEYS:
                raise Trouble("invalid", f"{path}: there is no '{name}'{nearest(name, KEYS)}")
            field, parse = KEYS[name]
            try:
                values[field] = parse(value)
                if isinstance(values[field], Path):
                    values[field] = (path.parent / values[field]).read_bytes()
            except ValueError as error:
                raise Trouble("invalid", f"{path}: {name} is {value!r}; {error}") from None
            except OSError as error:
                raise Trouble(
                    "invalid", f"{path}: {name}: {value} cannot be read: {error.strerror}"
                ) from None
    return HandlerSetup(**values)


def tables_known() -> list[str]:
    return [f"[{name}]" for name in dict.fromkeys(key.partition(".")[0] for key in KEYS)]
