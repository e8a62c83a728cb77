"""The rows of the layout bench: rows.toml as datatypes in text form.

Contract: rows() gives every row of rows.toml in a fixed order; a row's name is unique. `type` is packed,
unpacked and copied from; `to` is the type that it is copied to. Both are one element (count 1).
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.common import units
from spinloom.common.errors import Trouble
from spinloom.nics import workloads

PRIMITIVES = {2: "short", 4: "float", 8: "double", 16: "double_complex"}
BYTES = {name: size for size, name in PRIMITIVES.items()}
LIST_SPREAD = 3  # places for each entry of a list
STRUCT_SPREAD_BYTES = 16  # added behind each struct of a copy's target


@dataclass(frozen=True)
class Structs:
    """An array of structs, from which its hand loop is compiled. Fields are (offset, bytes), in bytes."""

    fields: tuple[tuple[int, int], ...]
    extent_bytes: int
    count: int
    spread_bytes: int = STRUCT_SPREAD_BYTES  # the bytes by which they lie further apart in a copy's target

    @property
    def size_bytes(self) -> int:
        return sum(size for _, size in self.fields)

    def type(self, *, more_bytes: int = 0) -> str:
        fields = ", ".join(f"({offset}B, contig({size}, byte))" for offset, size in self.fields)
        return f"contig({self.count}, resized(0B, {self.extent_bytes + more_bytes}B, struct([{fields}])))"


@dataclass(frozen=True)
class Row:
    name: str
    family: str  # small, vector, reblock, transpose, struct, list, runs or workload
    type: str
    to: str
    block_bytes: int  # 0: blocks of several sizes
    total_bytes: int  # packed bytes
    structs: Structs | None = None


def rows(*, everything: bool = False, quick: bool = False) -> list[Row]:
    """The default rows, the rows with every workload of the paper, or the quick selection."""
    table = tomllib.loads((Path(__file__).parent / "rows.toml").read_text(encoding="utf-8"))
    all_rows = [*small(table), *vectors(table), *reblocks(table), *transposes(table), *structs(table)]
    all_rows += [*lists(table), *runs(table)]
    all_rows += applications(table["workloads"]["all" if everything else "default"])
    if not quick:
        return all_rows
    by_name = {row.name: row for row in all_rows}
    missing = [name for name in table["quick"]["rows"] if name not in by_name]
    if missing:
        raise Trouble("invalid", f"bench rows: quick names {missing[0]!r}, which no family makes")
    return [by_name[name] for name in table["quick"]["rows"]]


def operations() -> list[str]:
    text = (Path(__file__).parent / "rows.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["operations"]


def vector_of(total: int, block: int, stride: float) -> str:
    """A vector whose blocks consist of the largest primitive, up to a double, that divides block and
    stride."""
    step = int(block * stride)
    size = max(size for size in (2, 4, 8) if block % size == 0 and step % size == 0)
    return f"vector({total // block}, {block // size}, {step // size}, {PRIMITIVES[size]})"


def vectors(table: dict[str, Any]) -> Iterator[Row]:
    for family in table["vectors"]:
        strides = family["strides"]
        for total in family["total_bytes"]:
            for block in family["block_bytes"]:
                for number, stride in enumerate(strides):
                    yield Row(
                        f"vector {block} B x{stride}, {units.format_bytes(total)}",
                        "vector",
                        vector_of(total, block, stride),
                        vector_of(total, block, strides[number - 1]),
                        block,
                        total,
                    )


def small(table: dict[str, Any]) -> Iterator[Row]:
    for total in table["small"]["total_bytes"]:
        yield Row(
            f"contiguous {units.format_bytes(total)}",
            "small",
            f"contig({total // 8}, double)",
            f"contig({total // 4}, float)",
            total,
            total,
        )
        for block in table["small"]["block_bytes"]:
            if total > block:
                text = vector_of(total, block, 2.0)
                name = f"small vector {block} B, {units.format_bytes(total)}"
                yield Row(name, "small", text, vector_of(total, block, 1.5), block, total)


def structs(table: dict[str, Any]) -> Iterator[Row]:
    for family in table["structs"]:
        for count in family["structs"]:
            fields = tuple((offset, size) for offset, size in family["fields"])
            array = Structs(fields, family["extent_bytes"], count)
            yield Row(
                f"structs {family['name']} x{count}",
                "struct",
                array.type(),
                array.type(more_bytes=STRUCT_SPREAD_BYTES),
                0 if len(fields) > 1 else fields[0][1],
                count * array.size_bytes,
                array,
            )


def reblocks(table: dict[str, Any]) -> Iterator[Row]:
    for family in table["reblock"]:
        for total in family["total_bytes"]:
            for block, to in zip(family["from_bytes"], family["to_bytes"], strict=True):
                yield Row(
                    f"reblock {block} B to {to} B, {units.format_bytes(total)}",
                    "reblock",
                    vector_of(total, block, 2.0),
                    vector_of(total, to, 2.0),
                    block,
                    total,
                )


def transposes(table: dict[str, Any]) -> Iterator[Row]:
    for family in table["transposes"]:
        element = family["element"]
        size = BYTES[element]
        for height, width in family["shapes"]:
            column = f"resized(0B, {size}B, vector({height}, 1, {width}, {element}))"
            yield Row(
                f"transpose {element} {height} x {width}",
                "transpose",
                f"contig({width}, {column})",
                f"vector({width}, {height}, {height + 16}, {element})",
                size,
                height * width * size,
            )


def lists(table: dict[str, Any]) -> Iterator[Row]:
    for family in table["lists"]:
        element, order = family["element"], family["order"]
        for total in family["total_bytes"]:
            for block in family["block"]:
                entries = total // (block * BYTES[element])
                item = element if block == 1 else f"contig({block}, {element})"
                yield Row(
                    f"list {order} {element} x{block}, {units.format_bytes(total)}",
                    "list",
                    f"idxblock(1, {places(order, 1, entries)}, {item})",
                    f"idxblock(1, {places(order, 2, entries)}, {item})",
                    block * BYTES[element],
                    total,
                )


def places(order: str, seed: int, entries: int) -> str:
    if order == "regular":
        return f"range(0, {LIST_SPREAD}, {entries})"
    return f"rand({seed}, {LIST_SPREAD * entries}, {entries})"


def runs(table: dict[str, Any]) -> Iterator[Row]:
    for family in table["runs"]:
        element = family["element"]
        for total in family["total_bytes"]:
            for most in family["most"]:
                yield Row(
                    f"runs {element} 1 to {most}, {units.format_bytes(total)}",
                    "runs",
                    indexed(1, total // BYTES[element], most, element),
                    indexed(2, total // BYTES[element], most, element),
                    0,
                    total,
                )


def indexed(seed: int, elements: int, most: int, element: str) -> str:
    """Runs of 1 to `most` elements with gaps of the same lengths."""
    source = random.Random(seed)
    entries = []
    at = 0
    while elements > 0:
        length = min(elements, source.randint(1, most))
        entries.append(f"{at}x{length}")
        at += length + source.randint(1, most)
        elements -= length
    return f"indexed([{', '.join(entries)}], {element})"


def applications(selection: str) -> Iterator[Row]:
    for row in {"demo": workloads.demo, "paper": workloads.paper}[selection]():
        text = row.type if row.count == 1 else f"contig({row.count}, {row.type})"
        yield Row(
            f"{row.application} {row.datatype}", "workload", text, text, 0, row.count * (row.size_bytes or 0)
        )
