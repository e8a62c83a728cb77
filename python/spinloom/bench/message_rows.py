"""The rows of the message bench: messages.toml as datatypes in text form.

Contract: message_rows() gives every row in a fixed order; a row's name is unique. `type` is sent, `to` is
received; both are one element (count 1) of the same number of bytes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spinloom.bench.rows import Row, places, vector_of
from spinloom.common import units
from spinloom.common.errors import Trouble
from spinloom.nics import workloads

SPREAD = 2.0  # the ratio of the vectors' strides to their blocks


def message_rows(*, quick: bool = False) -> list[Row]:
    table = tomllib.loads((Path(__file__).parent / "messages.toml").read_text(encoding="utf-8"))
    all_rows = [*applications(table), *listed_rows(table), *vectors(table), *lists(table)]
    if not quick:
        return all_rows
    by_name = {row.name: row for row in all_rows}
    missing = [name for name in table["quick"]["rows"] if name not in by_name]
    if missing:
        raise Trouble("invalid", f"bench rows: quick names {missing[0]!r}, which no family makes")
    return [by_name[name] for name in table["quick"]["rows"]]


def applications(table: dict[str, Any]) -> Iterator[Row]:
    for entry in table["workloads"]:
        for datatype in entry["datatypes"]:
            row = workloads.row(entry["application"], datatype)
            text = row.type if row.count == 1 else f"contig({row.count}, {row.type})"
            name = f"{entry['application']} {datatype}"
            yield Row(name, "application", text, text, 0, row.count * (row.size_bytes or 0))


def listed_rows(table: dict[str, Any]) -> Iterator[Row]:
    for row in table["rows"]:
        yield Row(row["name"], row["family"], row["type"], row.get("to", row["type"]), 0, 0)


def vectors(table: dict[str, Any]) -> Iterator[Row]:
    for total in table["vectors"]["total_bytes"]:
        for block in table["vectors"]["block_bytes"]:
            if total >= 4 * block:
                text = vector_of(total // block * block, block, SPREAD)
                yield Row(
                    f"vector {block} B, {units.format_bytes(total)}", "vector", text, text, block, total
                )


def lists(table: dict[str, Any]) -> Iterator[Row]:
    for total in table["lists"]["total_bytes"]:
        for block in table["lists"]["block_bytes"]:
            text, to = (
                f"idxblock(1, {places('shuffled', seed, total // block)}, contig({block // 8}, double))"
                for seed in (1, 2)
            )
            yield Row(f"list {block} B, {units.format_bytes(total)}", "list", text, to, block, total)
