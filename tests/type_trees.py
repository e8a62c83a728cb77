"""Seeded random datatypes in text form, for comparisons with somebody else's datatype engine.

random_text(Random, depth) gives a type of every constructor with small counts (zero included), negative
strides and changed bounds; most stay within a few KiB.
"""

from __future__ import annotations

from random import Random

PRIMITIVES = ("byte", "short", "int", "float", "double", "c_double_complex")


def random_text(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.1:
        return random.choice(PRIMITIVES)
    child = random_text(random, depth - 1)
    make = random.choice(MAKERS)
    return make(random, child, depth)


def _count(random: Random, most: int) -> int:
    return 0 if random.random() < 0.05 else random.randint(1, most)


def _pairs(random: Random, unit: str, step: int) -> str:
    entries = [
        f"{random.randint(-3 * step, 9 * step)}{unit} x {random.randint(0, 3)}"
        for _ in range(random.randint(1, 4))
    ]
    return f"[{', '.join(entries)}]"


def _list(random: Random, unit: str, step: int) -> str:
    entries = [f"{random.randint(-3 * step, 9 * step)}{unit}" for _ in range(random.randint(1, 4))]
    return f"[{', '.join(entries)}]"


def _contig(random: Random, child: str, _depth: int) -> str:
    return f"contig({_count(random, 4)}, {child})"


def _vector(random: Random, child: str, _depth: int) -> str:
    return f"vector({_count(random, 4)}, {_count(random, 3)}, {random.randint(-4, 6)}, {child})"


def _hvector(random: Random, child: str, _depth: int) -> str:
    return f"hvector({_count(random, 4)}, {_count(random, 3)}, {random.randint(-90, 200)}B, {child})"


def _indexed(random: Random, child: str, _depth: int) -> str:
    return f"indexed({_pairs(random, '', 1)}, {child})"


def _hindexed(random: Random, child: str, _depth: int) -> str:
    return f"hindexed({_pairs(random, 'B', 20)}, {child})"


def _idxblock(random: Random, child: str, _depth: int) -> str:
    return f"idxblock({_count(random, 3)}, {_list(random, '', 1)}, {child})"


def _hidxblock(random: Random, child: str, _depth: int) -> str:
    return f"hidxblock({_count(random, 3)}, {_list(random, 'B', 20)}, {child})"


def _struct(random: Random, child: str, depth: int) -> str:
    members = []
    for _ in range(random.randint(1, 3)):
        member = child if random.random() < 0.5 else random_text(random, depth - 1)
        members.append(f"({random.randint(-100, 200)}B, {random.randint(0, 2)}, {member})")
    return f"struct([{', '.join(members)}])"


def _resized(random: Random, child: str, _depth: int) -> str:
    return f"resized({random.randint(-30, 30)}B, {random.randint(-60, 200)}B, {child})"


def _dup(_random: Random, child: str, _depth: int) -> str:
    return f"dup({child})"


def _subarray(random: Random, child: str, _depth: int) -> str:
    sizes = [random.randint(1, 4) for _ in range(random.randint(1, 3))]
    subsizes = [random.randint(1, size) for size in sizes]
    starts = [random.randint(0, size - part) for size, part in zip(sizes, subsizes, strict=True)]
    return f"subarray({sizes}, {subsizes}, {starts}, {random.choice('CF')}, {child})"


def _darray(random: Random, child: str, _depth: int) -> str:
    sizes, distributions, arguments, grid = [], [], [], []
    for _ in range(random.randint(1, 3)):
        size = random.randint(1, 6)
        distribution = random.choice(("none", "block", "cyclic"))
        across = 1 if distribution == "none" else random.randint(1, 3)
        least = -(-size // across) if distribution == "block" else 1
        sizes.append(size)
        distributions.append(distribution)
        grid.append(across)
        arguments.append("default" if random.random() < 0.3 else str(least + random.randint(0, 2)))
    processes = 1
    for across in grid:
        processes *= across
    return (
        f"darray({processes}, {random.randrange(processes)}, {sizes}, [{', '.join(distributions)}], "
        f"[{', '.join(arguments)}], {grid}, {random.choice('CF')}, {child})"
    )


MAKERS = (
    _contig,
    _vector,
    _hvector,
    _indexed,
    _hindexed,
    _idxblock,
    _hidxblock,
    _struct,
    _resized,
    _dup,
    _subarray,
    _darray,
)
