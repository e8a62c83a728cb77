"""Application datatypes: the rows of data/workloads/*.toml.

Contract: each file is one application, each row one datatype in text form with its expected size and
average number of contiguous blocks in a 2,048 B packet; tests compare both with the engine. demo.toml
lists the rows of the demo, paper.toml those of the SC'19 paper's application figures.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from spinloom.common import data, documents
from spinloom.common.errors import Trouble, nearest

LISTS = ("demo", "paper")  # files that only name rows of other files
ROW_KEYS = {"datatype", "type", "count", "size_bytes", "blocks_per_packet", "source"}


@dataclass(frozen=True)
class Row:
    """One message of one application. size_bytes and blocks_per_packet follow from its source;
    None for a type that the user gave."""

    application: str
    datatype: str
    type: str
    count: int = 1
    size_bytes: int | None = None
    blocks_per_packet: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Application:
    name: str
    about: str
    source: str
    rows: tuple[Row, ...]


def read(path: Path) -> Application:
    """One application's file. Raises Trouble('invalid') with the file and the row."""
    table = documents.toml(path, "workload ")
    name = table.get("application", path.stem)
    rows = []
    for number, row in enumerate(table.get("row", []), 1):
        if set(row) != ROW_KEYS:
            wrong = sorted(ROW_KEYS.symmetric_difference(row))
            raise Trouble("invalid", f"workload {path}, row {number}: missing or unknown: {', '.join(wrong)}")
        rows.append(Row(application=name, **{**row, "type": " ".join(row["type"].split())}))
    return Application(name, table.get("about", ""), table.get("source", ""), tuple(rows))


@cache
def applications() -> tuple[Application, ...]:
    """Every shipped application, by name."""
    paths = [path for path in data.folder("workloads").glob("*.toml") if path.stem not in LISTS]
    return tuple(sorted((read(path) for path in paths), key=lambda application: application.name))


def application(name: str) -> Application:
    """The application of that name, in upper or lower case."""
    for candidate in applications():
        if candidate.name.casefold() == name.casefold():
            return candidate
    known = [candidate.name for candidate in applications()]
    raise Trouble("invalid", f"there is no application '{name}'{nearest(name, known)}")


def row(application_name: str, datatype: str) -> Row:
    owner = application(application_name)
    for candidate in owner.rows:
        if candidate.datatype == datatype:
            return candidate
    known = [candidate.datatype for candidate in owner.rows]
    raise Trouble("invalid", f"{owner.name} has no datatype '{datatype}'{nearest(datatype, known)}")


def demo() -> list[Row]:
    """The rows of the demo, in the order of demo.toml."""
    table = tomllib.loads((data.folder("workloads") / "demo.toml").read_text(encoding="utf-8"))
    return [row(entry["application"], entry["datatype"]) for entry in table["row"]]


def paper() -> list[Row]:
    """The rows of the SC'19 paper's figures 16 to 18, in the order of paper.toml."""
    table = tomllib.loads((data.folder("workloads") / "paper.toml").read_text(encoding="utf-8"))
    return [row(entry["name"], datatype) for entry in table["application"] for datatype in entry["datatypes"]]
