"""The cost of a copy on a CPU: counts times prices that `spinloom calibrate` measures, overlapping.

    T = call + (work^p + lines^p + pages^p)^(1/p),  p = 2
    work  = blocks * price of their shape and size
            + nodes, turns, changes of length, loops over structs, crowded blocks * their prices
    lines = cache lines * price of the level and pattern they come from,  pages likewise

Contract: the engine counts (leaves of the normal form; cache lines by level, followed through modelled caches
as repeated use leaves them); Prices are nanoseconds of one host. A processor works on blocks while it waits
for lines and pages: p = 1 would be no overlap, a large p complete overlap. predict() gives the time and its
parts, the largest of which is the bound. Host times throughout: nothing here is modelled time of a NIC.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spinloom.common import core

MOVEMENTS = ("pack", "unpack", "copy")
# Blocks of these shapes have prices by size; src/memory/layout/leaves.hpp says what they are.
SHAPES = ("vector", "dense", "across", "list", "runs", "structs")
PRICED_AS = {"single": "vector"}
PATTERNS = ("next", "strided", "scattered")
LINES = tuple(f"{level} {pattern}" for level in ("L2", "L3", "memory") for pattern in PATTERNS)
PAGES = ("L2 pages", "walked pages")
OVERLAP = 2.0  # p
PROGRAM = ("nodes", "turns", "changes", "struct loops")
TERMS = (*LINES, *PAGES, *PROGRAM, "crowded")  # crowded: blocks across that share sets of the cache
# What the two levels of a current processor's address caches reach: bytes and ways.
PAGE_LEVELS = ((64 * 4096, 64), (3072 * 4096, 12))

Caches = Sequence[tuple[int, int]]  # (bytes, ways) of L1, L2, L3


@dataclass(frozen=True)
class Counts:
    """The counts that the time of one movement of one message depends on."""

    leaves: tuple[tuple[str, int, int], ...]  # (shape, bytes of a block, blocks)
    terms: tuple[float, ...]  # the order is that of TERMS


@dataclass(frozen=True)
class Prices:
    """The prices of one movement on one host, in ns."""

    call_ns: float
    block_ns: dict[str, list[tuple[int, float]]]  # each shape's pairs (bytes of a block, price), ascending
    term_ns: dict[str, float]

    def block(self, shape: str, length: int) -> float:
        """The price of a block, between measured sizes interpolated, beyond the largest by the byte."""
        points = self.block_ns[PRICED_AS.get(shape, shape)]
        if length <= points[0][0]:
            return points[0][1]
        for (left, low), (right, high) in itertools.pairwise(points):
            if length <= right:
                share = math.log(length / left) / math.log(right / left)
                return low * (high / low) ** share
        return points[-1][1] * length / points[-1][0]

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Prices:
        blocks = {name: [(int(a), float(b)) for a, b in at] for name, at in document["block_ns"].items()}
        return cls(float(document["call_ns"]), blocks, dict(document["term_ns"]))


@dataclass(frozen=True)
class Prediction:
    time_ns: float
    parts_ns: dict[str, float]  # call, blocks, lines by level, pages, program, crowded cache; they overlap

    @property
    def bound(self) -> str:
        """The part that takes longest."""
        return max(self.parts_ns, key=lambda name: self.parts_ns[name])


def count(
    text: str, elements: int, movement: str, caches: Caches, facts: dict[str, Any] | None = None
) -> Counts:
    """Counts of `elements` of a datatype. facts: what core.explain said of it, if that is known already."""
    engine = core.load()
    facts = facts or engine.explain(text, elements)
    leaves = facts["leaves"]
    across = sum(leaf["bytes"] for leaf in leaves if leaf["shape"] == "across")
    by_memory = 2 * across > facts["size_bytes"] * elements  # the kernels of such types go by tiles
    walk = engine.line_walk(text, elements, movement, list(caches), list(PAGE_LEVELS), by_memory)
    terms = [float(lines) for level in walk["levels"] for lines in level]
    terms += [float(pages) for pages in walk["pages"]]
    structs = sum(leaf["turns"] for leaf in leaves if leaf["shape"] == "structs")
    nodes, turns, changes, crowded = (
        sum(leaf[name] for leaf in leaves) for name in ("nodes", "turns", "changes", "crowded")
    )
    terms += [float(number) for number in (nodes, turns - structs, changes, structs, crowded)]
    return Counts(
        tuple((leaf["shape"], leaf["block_bytes"], leaf["blocks"]) for leaf in leaves),
        tuple(terms),
    )


def blocks_ns(prices: Prices, counts: Counts) -> float:
    return sum(blocks * prices.block(shape, length) for shape, length, blocks in counts.leaves)


def overlapped(work: float, lines: float, pages: float) -> float:
    return (work**OVERLAP + lines**OVERLAP + pages**OVERLAP) ** (1 / OVERLAP)


def time_ns(call: float, blocks: float, terms: Sequence[float], prices: Sequence[float]) -> float:
    """The formula; terms and prices in the order of TERMS."""
    costs = [number * price for number, price in zip(terms, prices, strict=True)]
    lines, pages = len(LINES), len(LINES) + len(PAGES)
    return call + overlapped(blocks + sum(costs[pages:]), sum(costs[:lines]), sum(costs[lines:pages]))


def predict(prices: Prices, counts: Counts) -> Prediction:
    """The time of one movement in ns, and what it is made of."""
    blocks = blocks_ns(prices, counts)
    by_term = [prices.term_ns[name] for name in TERMS]
    terms = {name: number * price for name, number, price in zip(TERMS, counts.terms, by_term, strict=True)}
    parts = {"call": prices.call_ns, "blocks": blocks}
    for level in ("L2", "L3", "memory"):
        parts[f"lines from {level}"] = sum(terms[f"{level} {pattern}"] for pattern in PATTERNS)
    parts["pages"] = sum(terms[name] for name in PAGES)
    parts["program"] = sum(terms[name] for name in PROGRAM)
    parts["crowded cache"] = terms["crowded"]
    return Prediction(time_ns(prices.call_ns, blocks, counts.terms, by_term), parts)


@dataclass(frozen=True)
class Sample:
    counts: Counts
    time_ns: float


def fit_terms(call_ns: float, block_ns: dict[str, list[tuple[int, float]]], samples: list[Sample]) -> Prices:
    """Prices of TERMS, none negative, with the least sum of squared logarithms of predicted over measured."""
    block_prices = Prices(call_ns, block_ns, dict.fromkeys(TERMS, 0.0))
    blocks = [blocks_ns(block_prices, sample.counts) for sample in samples]
    prices = [1.0] * len(TERMS)

    def misfit() -> float:
        return sum(
            math.log(time_ns(call_ns, block, sample.counts.terms, prices) / sample.time_ns) ** 2
            for block, sample in zip(blocks, samples, strict=True)
        )

    descend(prices, misfit)
    return Prices(call_ns, block_ns, dict(zip(TERMS, prices, strict=True)))


def descend(x: list[float], misfit: Callable[[], float], rounds: int = 30) -> None:
    """Makes misfit() small by scaling one coordinate at a time, in ever smaller steps; x stays positive."""
    best, step = misfit(), 2.0
    for _ in range(rounds):
        before = best
        for i in range(len(x)):
            for factor in (step, 1 / step):
                previous = x[i]
                x[i] = previous * factor
                value = misfit()
                if value < best:
                    best = value
                    break
                x[i] = previous
        if before - best < 0.01 * best:
            step = math.sqrt(step)
