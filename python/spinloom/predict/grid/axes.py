"""The parameters that a sweep varies: axes, lists of values, from a TOML file and from NAME=VALUE,VALUE.

Contract: read() takes a file's tables, with_arguments() adds what a command says; a Spec has only axes that
exist, each with at least one value, as the person wrote them. Which values are possible cells.py says.
All raise Trouble('invalid') with the axis and the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spinloom.common import documents
from spinloom.common.errors import Trouble, nearest
from spinloom.nics import profiles

DDT = {
    "datatype": "text, also with {names} of your own axes; APPLICATION[:DATATYPE], FILE.py:OBJECT, demo, all",
    "count": "elements of the datatype",
    "nic": "NIC profile, by name or path",
    "host": "host profile, by name or path",
    "hpus": "handler processors",
    "mtu": "payload of a packet",
    "order": "how packets come: in, window:N, all:N",
    "seed": "of every random choice",
    "strategy": "how the datatype is received",
}
GOAL = {
    "pattern": "a collective operation",
    "ranks": "how many",
    "bytes": "of each message",
    "L": "LogGOPS, nanoseconds: latency",
    "o": "LogGOPS, nanoseconds: of a CPU for each message",
    "g": "LogGOPS, nanoseconds: between two messages of a NIC",
    "G": "LogGOPS, nanoseconds: of a NIC for each byte",
    "O": "LogGOPS, nanoseconds: of a CPU for each byte",
    "S": "LogGOPS: bytes above which a message waits for its receive",
}
NUMBERS = ("count", "hpus", "seed", *list(GOAL)[1:])
TABLES = ("ddt", "goal", "exclude", "slurm")
OWN = re.compile(r"[A-Za-z_]\w*")
SPAN = re.compile(r"(\d+)\.\.(\d+)(?:([+*])(\d+))?")

Axes = dict[str, list[Any]]


@dataclass(frozen=True)
class Spec:
    """axis -> values for each kind of cell; which cells are left out; options of Slurm jobs."""

    ddt: Axes = field(default_factory=dict)
    goal: Axes = field(default_factory=dict)
    exclude: list[dict[str, Any]] = field(default_factory=list)
    slurm: dict[str, Any] = field(default_factory=dict)


def read(path: Path) -> Spec:
    tables = documents.toml(path)
    for name, table in tables.items():
        if name not in TABLES:
            raise Trouble("invalid", f"{path}: unknown table [{name}]{nearest(name, TABLES)}")
        if not isinstance(table, list if name == "exclude" else dict):
            form = "[[exclude]]" if name == "exclude" else f"[{name}]"
            raise Trouble("invalid", f"{path}: {name} must be a table: {form}")
    if not all(isinstance(each, dict) for each in tables.get("exclude", [])):
        raise Trouble("invalid", f"{path}: exclude must be a list of tables: [[exclude]]")
    kinds = {
        kind: {name: values(name, value) for name, value in flat(tables.get(kind, {}))}
        for kind in ("ddt", "goal")
    }
    exclude = [dict(flat(each)) for each in tables.get("exclude", [])]
    return checked(Spec(**kinds, exclude=exclude, slurm=tables.get("slurm", {})))


def flat(table: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """hpu.clock = ... is the axis 'hpu.clock', whether TOML makes a table of it or not."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def with_arguments(spec: Spec, texts: Iterable[str]) -> Spec:
    """The axes of a command take the places of the file's."""
    kinds: dict[str, Axes] = {"ddt": dict(spec.ddt), "goal": dict(spec.goal)}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not name or not value:
            raise Trouble("invalid", f"'{text}': accepted form: NAME=VALUE,VALUE, such as hpus=4,16")
        kinds["goal" if name in GOAL else "ddt"][name] = values(name, split(value))
    return checked(Spec(**kinds, exclude=spec.exclude, slurm=spec.slurm))


def split(text: str) -> list[str]:
    """At the commas that stand outside of brackets: those of a datatype are its own."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def values(name: str, value: Any) -> list[Any]:
    """Numbers as int, spans written out, everything else as text."""
    entries = value if isinstance(value, list) else [value]
    number = name in NUMBERS or (name not in DDT and name not in GOAL and "." not in name)
    parsed = [item for each in entries for item in (numbers(name, each) if number else [text_of(name, each)])]
    if not parsed:
        raise Trouble("invalid", f"{name}: the list is empty")
    return list(dict.fromkeys(parsed))


def text_of(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise Trouble("invalid", f'{name} = {value!r}: accepted form: a text, such as "{example(name)}"')
    return str(value)


def example(name: str) -> str:
    return {"datatype": "vector(512, 16, 32, double)", "mtu": "2KiB", "order": "window:8"}.get(name, "...")


def numbers(name: str, value: Any) -> list[int]:
    """8, '8', '1..4' (1 2 3 4), '0..64+16' (steps), '8..4096*2' (factors)."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return [value]
    if isinstance(value, str) and value.isdecimal():
        return [int(value)]
    matched = SPAN.fullmatch(value) if isinstance(value, str) else None
    if matched is None:
        hint = "" if name in NUMBERS else nearest(name, (*DDT, *GOAL))
        raise Trouble("invalid", f"{name} = {value!r}: accepted forms: 8, 1..4, 0..64+16, 8..4096*2{hint}")
    first, last, sign, step = int(matched[1]), int(matched[2]), matched[3] or "+", int(matched[4] or 1)
    if first > last or step < (2 if sign == "*" else 1) or (sign == "*" and first == 0):
        raise Trouble("invalid", f"{name} = {value!r} never comes from {first} to {last}")
    series = [first]
    while (following := series[-1] * step if sign == "*" else series[-1] + step) <= last:
        series.append(following)
        if len(series) > 100_000:
            raise Trouble("invalid", f"{name} = {value!r}: more than 100,000 values")
    return series


def checked(spec: Spec) -> Spec:
    for name in spec.goal:
        if name not in GOAL:
            raise Trouble("invalid", f"goal has no axis '{name}'{nearest(name, GOAL)}")
    for name in spec.ddt:
        if name in DDT or name in profiles.FIELDS:
            continue
        if "." in name:
            raise Trouble("invalid", f"profiles have no {name}{nearest(name, profiles.FIELDS)}")
        if name in GOAL or not OWN.fullmatch(name):
            raise Trouble("invalid", f"ddt has no axis '{name}'{nearest(name, DDT)}")
    return spec
