"""The rows of the GPU bench: gpu_rows.toml as datatypes in text form, and every workload.

Contract: rows() gives every row in a fixed order; a row's name is unique. A row is one message of one
element, or the set of the 26 messages of a halo, packed one behind the other. `grids` are what a user of an
array library would write: a first item, lengths and strides in items; None where gpu_ways.py looks for one.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.bench.rows import BYTES, places, vector_of
from spinloom.common import core, units
from spinloom.common.errors import Trouble
from spinloom.nics import workloads

LARGE_BYTES = 1 << 30


@dataclass(frozen=True)
class Grid:
    item_bytes: int
    first: int  # a number of items
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # numbers of items


@dataclass(frozen=True)
class GpuRow:
    name: str
    family: str  # vector, transpose, list, halo or workload
    types: tuple[str, ...]
    block_bytes: int  # 0: blocks of several sizes
    total_bytes: int
    span_bytes: int  # the array that the types look into, from its first byte
    grids: tuple[Grid | None, ...]
    origin_bytes: int = 0  # the place of displacement 0 in that array


def rows(*, quick: bool = False) -> list[GpuRow]:
    table = tomllib.loads((Path(__file__).parent / "gpu_rows.toml").read_text(encoding="utf-8"))
    all_rows = [*vectors(table), *halos(table), *applications(), *transposes(table), *lists(table)]
    all_rows.sort(key=lambda row: row.total_bytes >= LARGE_BYTES)  # comparing these takes seconds
    if not quick:
        return all_rows
    by_name = {row.name: row for row in all_rows}
    missing = [name for name in table["quick"]["rows"] if name not in by_name]
    if missing:
        raise Trouble("invalid", f"gpu_rows.toml: quick names {missing[0]!r}, which no family makes")
    return [by_name[name] for name in table["quick"]["rows"]]


def vectors(table: dict[str, Any]) -> Iterator[GpuRow]:
    for family in table["vectors"]:
        stride = family["stride"]
        for total, block in itertools.product(family["total_bytes"], family["block_bytes"]):
            item = min(block, 8)
            count, width = total // block, block // item
            grid = Grid(item, 0, (count, width), (width * stride, 1))
            text = vector_of(total, block, float(stride))
            name = f"vector {block} B, {units.format_bytes(total)}"
            yield GpuRow(name, "vector", (text,), block, total, count * block * stride, (grid,))


def transposes(table: dict[str, Any]) -> Iterator[GpuRow]:
    for family in table["transposes"]:
        element = family["element"]
        size = BYTES[element]
        item = min(size, 8)
        parts = size // item
        for height, width in family["shapes"]:
            column = f"resized(0B, {size}B, vector({height}, 1, {width}, {element}))"
            grid = Grid(item, 0, (width, height, parts), (parts, parts * width, 1))
            total = height * width * size
            name = f"transpose {element} {height} x {width}"
            yield GpuRow(name, "transpose", (f"contig({width}, {column})",), size, total, total, (grid,))


def lists(table: dict[str, Any]) -> Iterator[GpuRow]:
    for family in table["lists"]:
        element, order = family["element"], family["order"]
        for total, block in itertools.product(family["total_bytes"], family["block"]):
            size = block * BYTES[element]
            item = element if block == 1 else f"contig({block}, {element})"
            entries = total // size
            text = f"idxblock(1, {places(order, 1, entries)}, {item})"
            name = f"list {order} {element} x{block}, {units.format_bytes(total)}"
            yield GpuRow(name, "list", (text,), size, entries * size, 3 * entries * size, (None,))


def halos(table: dict[str, Any]) -> Iterator[GpuRow]:
    """Returns what a cube of side^3 doubles sends to its 26 neighbours: planes, lines, points."""
    for side in table["halo"]["sides"]:
        padded = side + 2
        types, grids, total = [], [], 0
        for direction in itertools.product((-1, 0, 1), repeat=3):
            if direction == (0, 0, 0):
                continue
            sizes = tuple(side if step == 0 else 1 for step in direction)
            starts = tuple(side if step > 0 else 1 for step in direction)
            strides = (padded * padded, padded, 1)
            first = sum(start * stride for start, stride in zip(starts, strides, strict=True))
            types.append(
                f"subarray([{padded}, {padded}, {padded}], {list(sizes)}, {list(starts)}, C, double)"
            )
            grids.append(Grid(8, first, sizes, strides))
            total += 8 * sizes[0] * sizes[1] * sizes[2]
        yield GpuRow(
            f"halo of 26, {side}^3", "halo", tuple(types), 0, total, 8 * padded**3, tuple(grids)
        )  # fmt: skip


def applications() -> Iterator[GpuRow]:
    engine = core.load()
    for application in workloads.applications():
        for row in application.rows:
            text = row.type if row.count == 1 else f"contig({row.count}, {row.type})"
            facts = engine.describe(text)
            first = facts["true_lb_bytes"]
            origin = -min(0, first)
            origin += -origin % 64  # displacements keep their alignment
            span = origin + first + facts["true_extent_bytes"]
            least, most = facts["block_bytes_min"], facts["block_bytes_max"]
            yield GpuRow(
                f"{row.application} {row.datatype}",
                "workload",
                (text,),
                least if least == most else 0,
                facts["size_bytes"],
                span,
                (None,),
                origin,
            )
