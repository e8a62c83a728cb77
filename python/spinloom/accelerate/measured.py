"""The part that `spinloom explain --measure` adds: all ways to move a message, measured; verdict; advice.

Contract: measure() times our copies, loops as a program would have them, memcpy, NumPy and every MPI found
here, in turns, after the bytes of each but memcpy were compared. Host times, of data as repeated use leaves
them in the caches: none is modelled. A way that this machine lacks is left out. verdict() is one sentence
about pack and unpack together; advice() says what would make the type itself cheaper.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.bench import measure as bench
from spinloom.bench import peers
from spinloom.bench.numpy_peer import numpy_ways
from spinloom.bench.rows import Row as BenchRow
from spinloom.bench.rows import Structs
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.layout import Layout
from spinloom.nics.workloads import Row

OURS, BY_HAND, MEMCPY = "spinloom", "loops by hand", "memcpy"
MEASURED_BYTES_MAX = 256 << 20
STRUCT_FIELDS_MAX = 16
NAMES = {"pack": "pack", "unpack": "unpack", "copy": "single copy"}


@dataclass(frozen=True)
class Measured:
    """One way, with its median time by operation. MEMCPY copies as many bytes: it is a bound, and no way."""

    name: str
    times_ns: dict[str, float]

    @property
    def both_ns(self) -> float | None:
        """Pack and unpack, one after the other."""
        if "pack" not in self.times_ns or "unpack" not in self.times_ns:
            return None
        return self.times_ns["pack"] + self.times_ns["unpack"]


def measure(row: Row, facts: dict[str, Any]) -> list[Measured]:
    """Ours first. A type that overlaps itself is only packed."""
    if not 0 < facts["message_bytes"] <= MEASURED_BYTES_MAX:
        raise Trouble("unsupported", f"--measure is for messages of 1 B to {MEASURED_BYTES_MAX >> 20} MiB")
    text = row.type if row.count == 1 else f"contig({row.count}, {row.type})"
    operations = ["pack"] if facts["no_receive"] else list(NAMES)
    wanted = BenchRow("message", "", text, text, 0, facts["message_bytes"], structs_of(row, facts))
    with tempfile.TemporaryDirectory(prefix="spinloom-explain-") as name:
        folder = Path(name)
        hand = peers.hand_library(folder, [wanted])
        mpis = peers.mpis(folder)
        engine = core.load()
        try:
            rows = bench.measure(
                wanted, hand, mpis, bench.QUICK, operations, folder, numpy_ways(text, operations)
            )
        except engine.SpinloomError as error:
            raise Trouble(error.code, error.message) from None
        finally:
            for mpi in mpis:
                mpi.close()
    return ways_of(rows, [mpi.name for mpi in mpis])


def structs_of(row: Row, facts: dict[str, Any]) -> Structs | None:
    """An array of structs, for which a program's loop knows the fields."""
    text, count = facts["text"], row.count
    outer = core.load().type_tree(text)
    if count == 1 and outer["constructor"] == "contig":
        count = outer["count"]
        text = text.removeprefix(f"contig({count}, ").removesuffix(")")
    if count == 1:
        return None
    element = Layout(text)
    fields = element.blocks(STRUCT_FIELDS_MAX + 1)
    if not 1 <= len(fields) <= STRUCT_FIELDS_MAX:
        return None
    return Structs(tuple(fields), element.extent, count, spread_bytes=0)


def ways_of(rows: list[dict[str, Any]], mpis: list[str]) -> list[Measured]:
    """The rows of the bench, one an operation, as ways."""
    columns = {OURS: "ours_ns", BY_HAND: "hand_ns", MEMCPY: "memcpy_ns"}
    columns |= {name.removesuffix(" ns"): name for row in rows for name in row if name.startswith("NumPy")}
    columns |= {name: f"{name} ns" for name in mpis}
    ways = []
    for way, column in columns.items():
        times = {row["operation"]: row[column] for row in rows if row.get(column) is not None}
        if times:
            ways.append(Measured(way, times))
    return ways


# ---- in words ----


def verdict(ways: list[Measured]) -> str:
    """Returns the sentence that names the fastest way to pack and unpack, and its speed-up over others."""
    times = {way.name: way.both_ns or way.times_ns["pack"] for way in ways if way.name != MEMCPY}
    best = min(times, key=lambda name: times[name])
    others = {name: time / times[best] for name, time in times.items() if name != best}
    if not others:
        return f"use {best}: there is nothing else to compare with here"
    rival = BY_HAND if BY_HAND in others else min(others, key=lambda name: others[name])
    words = "packing by hand" if rival == BY_HAND else rival
    sentence = f"use {best}: {speedup_words(others[rival], words)}"
    if best != OURS and rival != OURS:
        sentence += f", {speedup_words(others[OURS], OURS)}"
    return sentence


def speedup_words(ratio: float, than: str) -> str:
    return f"as fast as {than}" if ratio < 1.05 else f"{ratio:.1f} times faster than {than}"


# ---- a type that would be cheaper ----


def advice(text: str, facts: dict[str, Any]) -> list[str]:
    """Rewrites that leave the data alone and make its blocks fewer or easier, in one sentence each."""
    sentences = list(dict.fromkeys(struct_advice(core.load().type_tree(text))))
    if facts["blocks"] > 64 and not facts["no_receive"] and 2 * facts["blocks_forward"] < facts["blocks"]:
        behind = facts["blocks"] - 1 - facts["blocks_forward"]
        sentences.append(
            "list the blocks in the order of memory if the receiver does the same: "
            f"{behind:,} of {facts['blocks']:,} lie before the one before them"
        )
    return sentences


def struct_advice(tree: dict[str, Any]) -> Iterator[str]:
    """Structs whose fields, the widest first, would be one run without a gap."""
    children = tree.get("children", [])
    for child in children:
        yield from struct_advice(child)
    if tree["constructor"] != "struct" or not 2 <= len(children) <= 16:
        return
    fields = [
        (place, child["size"] * length, alignment_of(child), child)
        for place, length, child in zip(tree["displacements"], tree["block_lengths"], children, strict=True)
    ]
    if any(child["size"] != child["extent"] or child["lb"] for _, _, _, child in fields):
        return
    runs = 1 + sum(a[0] + a[1] != b[0] for a, b in itertools.pairwise(fields))
    padded = [(a, b) for a, b in itertools.pairwise(fields) if 0 < b[0] - a[0] - a[1] < b[2]]
    if runs == 1 or len(padded) != runs - 1:
        return  # gaps that are no padding: other data lie there
    names = " and ".join(f"the {type_name(first[3])} at {first[0]} B" for first, _ in padded)
    size = sum(field[1] for field in fields)
    yield f"put {names} last in the struct: its {size:,} B are then one run instead of {runs}"


def alignment_of(tree: dict[str, Any]) -> int:
    """The alignment that a compiler gives the type: that of its widest primitive, at most 16."""
    children = tree.get("children", [])
    return max((alignment_of(child) for child in children), default=min(16, tree["size"]))


def type_name(tree: dict[str, Any]) -> str:
    return tree["name"] if tree["constructor"] == "primitive" else tree["constructor"]
