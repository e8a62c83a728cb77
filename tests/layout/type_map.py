"""The plain type map of a layout: where each of its bytes lies, in packed order. The package is not used.

read(text) understands the notation of docs/layouts.md, without the short forms of lists. A TypeMap is that of
MPI 4.1, chapter 5: a sequence of bytes, and bounds, which an empty map has only where resized() gives them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PRIMITIVES = {
    "byte": 1, "char": 1, "short": 2, "int": 4, "long": 8, "float": 4, "double": 8, "int8_t": 1, "int16_t": 2,
    "int32_t": 4, "int64_t": 8, "uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8,
    "c_float_complex": 8, "c_double_complex": 16,
}  # fmt: skip
Numbers = NDArray[np.int64] | list[int]
TOKEN = re.compile(r"\s*(-?\d+|[A-Za-z_]\w*|[()\[\],])")


@dataclass(frozen=True)
class TypeMap:
    places: NDArray[np.int64]
    lb: int = 0
    ub: int = 0
    has_bounds: bool = False

    @property
    def extent(self) -> int:
        return self.ub - self.lb

    def of(self, count: int) -> NDArray[np.int64]:
        """The places of the bytes of `count` elements that follow each other."""
        return repeated(self, np.arange(count) * self.extent).places


def repeated(old: TypeMap, begins: Numbers) -> TypeMap:
    """A copy of `old` at each displacement."""
    begins = np.asarray(begins, np.int64)
    places = (begins[:, None] + old.places).ravel()
    if len(begins) == 0 or not old.has_bounds:
        return TypeMap(places)
    return TypeMap(places, int(begins.min()) + old.lb, int(begins.max()) + old.ub, True)


def blocks(old: TypeMap, begins: Numbers, lengths: Numbers) -> TypeMap:
    """So many copies of `old` behind each other at each displacement."""
    lengths = np.asarray(lengths, np.int64)
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    number_in_block = np.arange(int(lengths.sum())) - before
    return repeated(old, np.repeat(np.asarray(begins, np.int64), lengths) + number_in_block * old.extent)


def members(parts: list[tuple[int, TypeMap]]) -> TypeMap:
    at = [repeated(part, [begin]) for begin, part in parts]
    bounded = [part for part in at if part.has_bounds]
    places = np.concatenate([part.places for part in at]) if at else np.zeros(0, np.int64)
    if not bounded:
        return TypeMap(places)
    return TypeMap(places, min(part.lb for part in bounded), max(part.ub for part in bounded), True)


def part_of_array(old: TypeMap, sizes: list[int], chosen: list[list[int]], order: str) -> TypeMap:
    """The elements of an array whose index in each dimension is among those chosen for it."""
    axes = range(len(sizes)) if order == "C" else range(len(sizes) - 1, -1, -1)  # the slowest one first
    at = np.zeros(1, np.int64)
    for axis in axes:
        at = (at[:, None] * sizes[axis] + np.array(chosen[axis], np.int64)).ravel()
    places = repeated(old, at * old.extent).places
    return TypeMap(places, 0, math.prod(sizes) * old.extent, True)


def dealt(size: int, processes: int, coordinate: int, how: str, argument: int | str) -> list[int]:
    """The indices of a dimension that a process has."""
    if how == "none":
        return list(range(size))
    if how == "block":
        length = -(-size // processes) if argument == "default" else int(argument)
        return list(range(coordinate * length, min(size, (coordinate + 1) * length)))
    length = 1 if argument == "default" else int(argument)
    return [i for i in range(size) if i // length % processes == coordinate]


def darray(ranks, rank, sizes, hows, arguments, processes, order, old) -> TypeMap:
    assert math.prod(processes) == ranks
    coordinates = []
    for left in range(len(processes)):  # of ranks in row-major order, whatever the array's order
        coordinates.append(rank // math.prod(processes[left + 1 :]) % processes[left])
    chosen = [dealt(*one) for one in zip(sizes, processes, coordinates, hows, arguments, strict=True)]
    return part_of_array(old, sizes, chosen, order)


class Reader:
    def __init__(self, text: str) -> None:
        self.tokens: Iterator[str] = iter(TOKEN.findall(text.replace("B", " ")))
        self.now = next(self.tokens)

    def take(self) -> str:
        taken, self.now = self.now, next(self.tokens, "")
        return taken

    def expect(self, *words: str) -> None:
        for word in words:
            assert self.now == word, (word, self.now)
            self.take()

    def number(self) -> int:
        return int(self.take())

    def list_of(self, item) -> list:
        self.expect("[")
        found = []
        while self.now != "]":
            found.append(item())
            if self.now == ",":
                self.take()
        self.expect("]")
        return found

    def numbers(self) -> list[int]:
        return self.list_of(self.number)

    def words(self) -> list[str]:
        return self.list_of(self.take)

    def pair(self) -> tuple[int, int]:
        begin = self.number()
        self.expect("x")
        return begin, self.number()

    def member(self) -> tuple[int, TypeMap]:
        self.expect("(")
        begin = self.number()
        self.expect(",")
        count = 1
        if self.now.isdigit():
            count = self.number()
            self.expect(",")
        part = blocks(self.type(), [0], [count])
        self.expect(")")
        return begin, part

    def after(self, *kinds) -> list:
        """Arguments, and the old type behind them."""
        found = []
        for kind in kinds:
            found.append(kind())
            self.expect(",")
        return [*found, self.type()]

    def type(self) -> TypeMap:
        name = self.take()
        if name in PRIMITIVES:
            return TypeMap(np.arange(PRIMITIVES[name], dtype=np.int64), 0, PRIMITIVES[name], True)
        self.expect("(")
        made = getattr(self, name)()
        self.expect(")")
        return made

    def contig(self) -> TypeMap:
        count, old = self.after(self.number)
        return blocks(old, [0], [count])

    def vector(self) -> TypeMap:
        count, length, stride, old = self.after(self.number, self.number, self.number)
        return blocks(old, [i * stride * old.extent for i in range(count)], [length] * count)

    def hvector(self) -> TypeMap:
        count, length, stride, old = self.after(self.number, self.number, self.number)
        return blocks(old, [i * stride for i in range(count)], [length] * count)

    def indexed(self) -> TypeMap:
        pairs, old = self.after(lambda: self.list_of(self.pair))
        return blocks(old, [begin * old.extent for begin, _ in pairs], [length for _, length in pairs])

    def hindexed(self) -> TypeMap:
        pairs, old = self.after(lambda: self.list_of(self.pair))
        return blocks(old, [begin for begin, _ in pairs], [length for _, length in pairs])

    def idxblock(self) -> TypeMap:
        length, begins, old = self.after(self.number, self.numbers)
        return blocks(old, [begin * old.extent for begin in begins], [length] * len(begins))

    def hidxblock(self) -> TypeMap:
        length, begins, old = self.after(self.number, self.numbers)
        return blocks(old, begins, [length] * len(begins))

    def struct(self) -> TypeMap:
        return members(self.list_of(self.member))

    def resized(self) -> TypeMap:
        lb, extent, old = self.after(self.number, self.number)
        return TypeMap(old.places, lb, lb + extent, True)

    def dup(self) -> TypeMap:
        return self.type()

    def subarray(self) -> TypeMap:
        sizes, lengths, begins, order, old = self.after(self.numbers, self.numbers, self.numbers, self.take)
        chosen = [list(range(begin, begin + n)) for begin, n in zip(begins, lengths, strict=True)]
        return part_of_array(old, sizes, chosen, order)

    def darray(self) -> TypeMap:
        return darray(
            *self.after(
                self.number, self.number, self.numbers, self.words, self.words, self.numbers, self.take
            )
        )


def read(text: str) -> TypeMap:
    reader = Reader(text)
    made = reader.type()
    assert reader.now == "", reader.now
    return made
