"""The rows of the bench of collectives: collectives.toml as what each rank sends and receives.

Contract: rows() gives every row in a fixed order; names are unique. A part is what goes to one rank or comes
from it: a datatype in text form, and the loops that a program would write in its place. Files.write() makes
the files of mpi_collectives.c; Files.hashes() are the oracle's, by the type map of the datatypes alone: the
loops have no say in them.
"""

from __future__ import annotations

import array
import math
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from spinloom.bench.jobs import RANKS
from spinloom.bench.rows import BYTES
from spinloom.common import core, units
from spinloom.common.errors import Trouble

MARGIN_BYTES = 64  # bytes before and behind a rank's memory, as in mpi_collectives.c
NAME_BYTES = 32  # the length of a call's name in a file
NUMBER, COMPLEX = "double", "double_complex"
AXES = "xyz"


@dataclass(frozen=True)
class Loop:
    count: int
    memory: int  # steps in bytes
    packed: int


@dataclass(frozen=True)
class Part:
    """`count` elements of `type` from byte `at` of the rank's memory on. `peer` -1: no such neighbour."""

    type: str
    count: int
    at: int
    start: int  # the first byte of the loops, from the memory's first byte on
    block: int  # bytes in one piece
    loops: tuple[Loop, ...] = ()
    peer: int = -1
    pair: int = 0  # the number of the sender's part, for a part that is received

    @property
    def bytes(self) -> int:
        return self.block * math.prod(loop.count for loop in self.loops) if self.count else 0


NO_PART = Part(NUMBER, 0, 0, 0, 0)


@dataclass(frozen=True)
class Side:
    """The parts that one rank sends, or those that it receives, and the bytes of memory that they lie in."""

    parts: tuple[Part, ...]
    memory: int

    @property
    def all_bytes(self) -> int:
        """The memory with its margins."""
        return -(-self.memory // MARGIN_BYTES) * MARGIN_BYTES + 2 * MARGIN_BYTES


@dataclass(frozen=True)
class Row:
    name: str
    family: str
    call: str
    sends: tuple[Side, ...]  # one for each rank
    receives: tuple[Side, ...]
    grid: tuple[tuple[int, bool], ...] = ()  # sides of the ranks' grid, and whether they are periodic
    root: int = 0
    by_hand: bool = True  # false: the call has no datatypes that a loop could stand for

    @property
    def bytes(self) -> int:
        """The most that a rank receives from others."""
        return max(
            sum(part.bytes for part in side.parts if part.peer not in (-1, rank))
            for rank, side in enumerate(self.receives)
        )

    @property
    def in_list_order(self) -> Row | None:
        """The row with parts paired as older MPIs do it for ranks that are neighbours twice: n-th with n-th.

        None if no side of the grid is periodic.
        """
        if not any(periodic for _, periodic in self.grid):
            return None
        turned = tuple(
            replace(side, parts=tuple(replace(part, pair=number) for number, part in enumerate(side.parts)))
            for side in self.receives
        )
        return replace(self, receives=turned)


# Parts.


def run(at: int, size: int, *, number: str = NUMBER) -> Part:
    """Neighbouring numbers."""
    return Part(number, size // BYTES[number], at, at, size)


def packed_loops(counts: list[int], steps: list[int], block: int) -> tuple[Loop, ...]:
    """Loops from the outermost to the innermost, in the order of the packed bytes."""
    loops: list[Loop] = []
    packed = block
    for count, step in zip(reversed(counts), reversed(steps), strict=True):
        loops.insert(0, Loop(count, step, packed))
        packed *= count
    return tuple(loops)


def box(sizes: list[int], part: list[int], starts: list[int], number: str) -> Part:
    """A part of an array, by a subarray; a program's loop copies what lies in one piece at once."""
    each = BYTES[number]
    steps = [each * math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    text = f"subarray({sizes}, {part}, {starts}, C, {number})"
    start = sum(at * step for at, step in zip(starts, steps, strict=True))
    inner = len(sizes) - 1
    while inner > 0 and part[inner] == sizes[inner]:
        inner -= 1
    block = each * math.prod(part[inner:])
    outer = [axis for axis in range(inner) if part[axis] > 1]
    loops = packed_loops([part[axis] for axis in outer], [steps[axis] for axis in outer], block)
    return Part(text, 1, 0, start, block, loops)


def columns(at: int, rows: int, count: int, total_columns: int, number: str = NUMBER) -> Part:
    """`count` columns of a matrix with `of` columns, one after the other; the loops go by its rows."""
    each = BYTES[number]
    text = f"resized(0B, {each}B, vector({rows}, 1, {total_columns}, {number}))"
    loops = (Loop(rows, total_columns * each, each), Loop(count, each, rows * each))
    return Part(text, count, at, at, each, loops)


def block_of(at: int, rows: int, count: int, total_columns: int, number: str = NUMBER) -> Part:
    """The same columns row by row, by one vector whose extent is their width."""
    each = BYTES[number]
    text = f"resized(0B, {count * each}B, vector({rows}, {count}, {total_columns}, {number}))"
    return Part(text, 1, at, at, count * each, packed_loops([rows], [total_columns * each], count * each))


def addressed(peer: int, part: Part, pair: int = 0) -> Part:
    return replace(part, peer=peer, pair=pair)


def numbered(parts: Sequence[Part], rank: int) -> tuple[Part, ...]:
    """Returns what `rank` receives where each rank's parts are sent in the order of the ranks."""
    return tuple(replace(part, pair=rank) for part in parts)


NO_SIDE = Side((), 0)


# Families. Each maker yields the rows of one call of one group of collectives.toml.

Rows = Iterator[Row]


def named_row(call: str, family: str, title: str, **more: Any) -> Row:
    return Row(name=f"{call} {title}", family=family, call=call, **more)


def transposes(table: dict[str, Any], call: str) -> Rows:
    each = BYTES[COMPLEX]
    for n in table["n"]:
        rows = n // RANKS
        lines = packed_loops([rows], [n * each], rows * each)
        sent_type = f"vector({rows}, {rows}, {n}, {COMPLEX})"
        received_type = f"hvector({rows}, 1, {each}B, vector({rows}, 1, {n}, {COMPLEX}))"
        sent, received = [], []
        for peer in range(RANKS):
            at = peer * rows * each
            sent.append(Part(sent_type, 1, at, at, rows * each, lines, peer))
            received.append(
                addressed(peer, replace(columns(at, rows, rows, n, COMPLEX), type=received_type, count=1))
            )
        memory = rows * n * each
        receives = tuple(Side(numbered(received, rank), memory) for rank in range(RANKS))
        sends = (Side(tuple(sent), memory),) * RANKS
        yield named_row(call, "transpose", f"transpose {n:,}", sends=sends, receives=receives)


def pencils(table: dict[str, Any], call: str) -> Rows:
    for axes in table["axes"]:
        split_before, split_after = (AXES.index(axis) for axis in axes)
        for shape in table["shapes"]:
            before, after, part = list(shape), list(shape), list(shape)
            before[split_before] //= RANKS
            after[split_after] //= RANKS
            part[split_before] //= RANKS
            part[split_after] //= RANKS
            memory = math.prod(before) * BYTES[COMPLEX]
            sends = (Side(tuple(cuts(before, part, split_after)), memory),) * RANKS
            received = list(cuts(after, part, split_before))
            receives = tuple(Side(numbered(received, rank), memory) for rank in range(RANKS))
            title = f"pencil {axes} {'x'.join(map(str, shape))}"
            yield named_row(call, "pencil", title, sends=sends, receives=receives)


def cuts(sizes: list[int], part: list[int], axis: int) -> Iterator[Part]:
    """The parts of an array along an axis, one for each rank."""
    for peer in range(RANKS):
        starts = [peer * part[a] if a == axis else 0 for a in range(len(sizes))]
        yield addressed(peer, box(sizes, part, starts, COMPLEX))


def halos(table: dict[str, Any], call: str) -> Rows:
    for side in table["sides"]:
        for axis, letter in enumerate(table["axes"]):
            for periodic in table["periodic"]:
                grid = tuple((RANKS if a == axis else 1, periodic and a == axis) for a in range(3))
                title = f"halo {side} {letter}{' periodic' if periodic else ''}"
                sends, receives = (
                    tuple(faces(side, axis, rank, periodic=periodic, ghost=ghost) for rank in range(RANKS))
                    for ghost in (False, True)
                )
                yield named_row(call, "halo", title, sends=sends, receives=receives, grid=grid)


def faces(side: int, split: int, rank: int, *, periodic: bool, ghost: bool) -> Side:
    """The faces to both neighbours along each axis, in the order of the neighbours of a Cartesian grid."""
    sizes = [side + 2] * 3
    parts = []
    for axis in range(3):
        for up in (0, 1):
            there = axis == split and (periodic or 0 <= rank + (1 if up else -1) < RANKS)
            if not there:
                parts.append(NO_PART)
                continue
            part = [1 if a == axis else side for a in range(3)]
            place = (side + 1 if up else 0) if ghost else (side if up else 1)
            face = box(sizes, part, [place if a == axis else 1 for a in range(3)], NUMBER)
            # What went up comes from below.
            parts.append(addressed((rank + (1 if up else -1)) % RANKS, face, 2 * axis + (1 - up)))
    return Side(tuple(parts), math.prod(sizes) * BYTES[NUMBER])


def column_rows(table: dict[str, Any], call: str) -> Rows:
    """Matrices on the root's side of gather and scatter, and on each rank's receiving side of allgather."""
    each = BYTES[NUMBER]
    for size in table["sizes"]:
        rows, width = size["rows"], size["columns"]
        fewer = table["fewer"] if call.endswith("v") else 0
        counts = [width] * RANKS
        counts[0], counts[-1] = width - fewer, width + fewer
        total_columns = sum(counts)
        firsts = [sum(counts[:rank]) for rank in range(RANKS)]
        parts = [columns(firsts[peer] * each, rows, counts[peer], total_columns) for peer in range(RANKS)]
        matrix = Side(
            tuple(addressed(peer, parts[peer]) for peer in range(RANKS)), rows * total_columns * each
        )
        lines = [rows * counts[rank] * each for rank in range(RANKS)]
        own_sides = tuple(Side((addressed(0, run(0, lines[rank])),), lines[rank]) for rank in range(RANKS))
        at_root = (matrix, *([NO_SIDE] * (RANKS - 1)))
        title = f"columns {units.format_bytes(rows * width * each)}"
        if call.startswith("scatter"):
            receives = tuple(
                replace(side, parts=numbered(side.parts, rank)) for rank, side in enumerate(own_sides)
            )
            yield named_row(call, "columns", title, sends=at_root, receives=receives)
        else:
            receives = at_root if call.startswith("gather") else (matrix,) * RANKS
            yield named_row(call, "columns", title, sends=own_sides, receives=receives)


def blocks(table: dict[str, Any], call: str) -> Rows:
    each = BYTES[NUMBER]
    for size in table["sizes"]:
        rows, width = size["rows"], size["columns"]
        line = rows * width * each
        sent = tuple(
            addressed(peer, block_of(peer * width * each, rows, width, RANKS * width))
            for peer in range(RANKS)
        )
        sends = (Side(sent, RANKS * line),) * RANKS
        received = [addressed(peer, run(peer * line, line)) for peer in range(RANKS)]
        receives = tuple(Side(numbered(received, rank), RANKS * line) for rank in range(RANKS))
        title = f"blocks {units.format_bytes(line)}"
        yield named_row(call, "blocks", title, sends=sends, receives=receives)


def panels(table: dict[str, Any], call: str) -> Rows:
    each = BYTES[NUMBER]
    for size in table["sizes"]:
        rows, width, total_columns = size["rows"], size["columns"], size["of"]
        part = box([rows, total_columns], [rows, width], [0, width], NUMBER)
        title = f"panel {units.format_bytes(rows * width * each)}"
        yield from_root(call, "panel", title, Side((part,), rows * total_columns * each))


def from_root(call: str, family: str, title: str, side: Side, **more: Any) -> Row:
    """The root's part goes to all others, at the same place."""
    sent = replace(side, parts=tuple(addressed(1, part) for part in side.parts))
    received = replace(side, parts=tuple(addressed(0, part) for part in side.parts))
    sends, receives = (sent, *([NO_SIDE] * (RANKS - 1))), (NO_SIDE, *([received] * (RANKS - 1)))
    return named_row(call, family, title, sends=sends, receives=receives, **more)


def short(table: dict[str, Any], call: str) -> Rows:
    for size in table["bytes"]:
        title = f"{'vector ' if table['vector'] else ''}{units.format_bytes(size)}"
        more: dict[str, Any] = {"by_hand": table["vector"]}
        apart = 2 * size if table["vector"] else size
        pieces = [addressed(peer, piece(peer * apart, size, spread=table["vector"])) for peer in range(RANKS)]
        memory = RANKS * apart
        if call == "bcast":
            yield from_root(call, "short", title, Side((replace(pieces[0], peer=-1),), apart), **more)
            continue
        if call == "neighbor_alltoall":  # a ring of two, in which each is the other's neighbour twice
            more["grid"] = ((RANKS, True),)
            sends = tuple(
                Side(tuple(addressed(1 - rank, part, 1 - place) for place, part in enumerate(pieces)), memory)
                for rank in range(RANKS)
            )
            receives = sends
        elif call in ("gather", "allgather"):
            sends = (Side((pieces[0],), apart),) * RANKS
            full_side = Side(tuple(pieces), memory)
            receives = (full_side, *([NO_SIDE if call == "gather" else full_side] * (RANKS - 1)))
        else:
            sends = (Side(tuple(pieces), memory),) * RANKS
            receives = tuple(Side(numbered(pieces, rank), memory) for rank in range(RANKS))
        yield named_row(call, "short", title, sends=sends, receives=receives, **more)


def piece(at: int, size: int, *, spread: bool) -> Part:
    """Numbers that are neighbours, or at twice their distance."""
    each = BYTES[NUMBER]
    if not spread:
        return run(at, size)
    text = f"vector({size // each}, 1, 2, {NUMBER})"
    return Part(text, 1, at, at, each, packed_loops([size // each], [2 * each], each))


FAMILIES: dict[str, Callable[[dict[str, Any], str], Rows]] = {
    "transposes": transposes,
    "pencils": pencils,
    "halos": halos,
    "columns": column_rows,
    "blocks": blocks,
    "panels": panels,
    "short": short,
}


def read() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "collectives.toml").read_text(encoding="utf-8"))


def rows(*, quick: bool = False) -> list[Row]:
    table = read()
    all_rows = [
        row
        for name, make in FAMILIES.items()
        for group in table[name]
        for call in group["calls"]
        for row in make(group, call)
    ]
    if not quick:
        return all_rows
    by_name = {row.name: row for row in all_rows}
    if missing := [name for name in table["quick"]["rows"] if name not in by_name]:
        raise Trouble("invalid", f"collectives.toml: quick names {missing[0]!r}, which is no row")
    return [by_name[name] for name in table["quick"]["rows"]]


class Files:
    """A row for mpi_collectives.c, and what the oracle says of it. `hand` is a library of hand_library()."""

    def __init__(self, row: Row, hand: str, folder: Path) -> None:
        self.row, self.hand, self.folder = row, hand, folder
        sizes = [side.all_bytes for side in row.sends]
        self.bases = [sum(sizes[:rank]) for rank in range(len(sizes))]
        self.all_bytes = sum(sizes)

    @cached_property
    def hashes(self) -> list[int]:
        """The hash of each rank's receive memory."""
        return self.hashes_of(self.row)

    @cached_property
    def in_list_order(self) -> list[int] | None:
        row = self.row.in_list_order
        return self.hashes_of(row) if row else None

    def hashes_of(self, row: Row) -> list[int]:
        """All send memories, one behind the other, are the source of each rank's copy."""
        hashes = []
        for side in row.receives:
            sent, received = [], []
            for part in side.parts:
                if part.peer >= 0:
                    source = row.sends[part.peer].parts[part.pair]
                    sent.append(member(self.bases[part.peer] + MARGIN_BYTES, source))
                    received.append(member(MARGIN_BYTES, part))
            texts = (enclosing_struct(sent, self.all_bytes), enclosing_struct(received, side.all_bytes))
            hashes.append(core.load().LayoutBench(*texts, self.hand, "").hash("copy"))
        return hashes

    def write(self, path: Path) -> None:
        """A file for each rank, `path` with its number behind."""
        for rank, sides in enumerate(zip(self.row.sends, self.row.receives, strict=True)):
            words = [self.row.root, len(self.row.grid)]
            for size, periodic in self.row.grid:
                words += [size, int(periodic)]
            words += [self.bases[rank] // 8, self.all_bytes // 8]
            for received, side in enumerate(sides):
                words += [side.all_bytes, len(side.parts)]
                for number, part in enumerate(side.parts):
                    words += [part.peer, part.pair if received else number, part.count, part.at]
                    program = self.program(part.type)
                    words += [len(program), *program, part.start, part.block, len(part.loops)]
                    for loop in part.loops:
                        words += [loop.count, loop.memory, loop.packed]
            name = self.row.call.encode().ljust(NAME_BYTES, b"\0")
            Path(f"{path}.{rank}").write_bytes(name + array.array("q", words).tobytes())

    def program(self, text: str) -> list[int]:
        """The constructor calls of a type, see src/app/measure/mpi_program.hpp."""
        if text not in self.programs:
            path = self.folder / "type.bin"
            core.load().LayoutBench(text, text, self.hand, "").write_program(str(path))
            words = array.array("q", path.read_bytes())
            self.programs[text] = list(words[4 : 4 + words[3]])
        return self.programs[text]

    @cached_property
    def programs(self) -> dict[str, list[int]]:
        return {}


def member(base: int, part: Part) -> str:
    return f"({base + part.at}B, contig({part.count}, {part.type}))"


def enclosing_struct(members: list[str], size: int) -> str:
    """The first and the last word stand for the margins, so that nothing between them goes unseen."""
    return f"struct([{', '.join([f'(0B, {NUMBER})', *members, f'({size - 8}B, {NUMBER})'])}])"
