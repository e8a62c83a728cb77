"""Generated storage traces: requests mixed by the numbers of spc_mixes.toml.

Contract: requests(mix, count, seed) are the same on every machine. Each request is drawn by itself: its place
has nothing to do with that of the one before, and times only count up.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from spinloom.common.errors import Trouble, nearest
from spinloom.papers.spc import Request

GAP_US_MAX = 16_000  # the time between two requests; nothing depends on it


@dataclass(frozen=True)
class Mix:
    name: str
    about: str
    requests: int
    writes: int
    asus: int
    mean_bytes: int
    mean_source: str
    read_sizes: tuple[tuple[int, int], ...]
    write_sizes: tuple[tuple[int, int], ...]
    align_blocks: int
    blocks: int

    def sizes(self, is_write: bool) -> tuple[tuple[int, int], ...]:
        return self.write_sizes if is_write else self.read_sizes


@cache
def tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("spc_mixes.toml").read_text(encoding="utf-8"))


@cache
def mixes() -> dict[str, Mix]:
    all_mixes = [
        Mix(**{key: pairs(value) if isinstance(value, list) else value for key, value in table.items()})
        for table in tables()["mix"]
    ]
    return {mix.name: mix for mix in all_mixes}


def pairs(value: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((size, share) for size, share in value)


def mix_named(name: str) -> Mix:
    if name not in mixes():
        raise Trouble("invalid", f"there is no mix '{name}'{nearest(name, mixes())}")
    return mixes()[name]


def requests(mix: Mix, count: int, seed: int) -> Iterator[Request]:
    source = random.Random(f"spinloom.spc.{mix.name}.{seed}")

    def below(limit: int) -> int:
        return int(source.random() * limit)

    time_us = 0
    for _ in range(count):
        is_write = below(mix.requests) < mix.writes
        size_bytes = drawn_size(mix.sizes(is_write), below(100))
        lba = below(mix.blocks // mix.align_blocks) * mix.align_blocks
        asu = below(mix.asus)
        time_us += below(GAP_US_MAX)
        yield Request(asu, lba, size_bytes, is_write, f"{time_us // 10**6}.{time_us % 10**6:06}")


def drawn_size(sizes: tuple[tuple[int, int], ...], percent: int) -> int:
    """The size in whose share of 100 the number lies."""
    ends = accumulate(share for _, share in sizes)
    return next(size for (size, _), end in zip(sizes, ends, strict=True) if percent < end)
