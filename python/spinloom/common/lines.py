"""A straight line through times of messages.

Contract: fitted() gives constant + bytes * rate with the least squares of relative differences, in exact
fractions; worst() the largest relative difference of other points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Line:
    constant_ps: Fraction
    rate: Fraction  # ps for a byte

    def at(self, size: int) -> Fraction:
        return self.constant_ps + self.rate * size


def fitted(points: Sequence[tuple[int, int]]) -> Line:
    """The line through points of (bytes, ps)."""
    rows = [(Fraction(1, time), Fraction(size, time)) for size, time in points]
    ones, mixed, squares = (
        sum(weight * weight for weight, _ in rows),
        sum(weight * scaled for weight, scaled in rows),
        sum(scaled * scaled for _, scaled in rows),
    )
    first, second = sum(weight for weight, _ in rows), sum(scaled for _, scaled in rows)
    determinant = ones * squares - mixed * mixed
    return Line(
        Fraction(first * squares - second * mixed, determinant),
        Fraction(ones * second - mixed * first, determinant),
    )


def worst(line: Line, points: Sequence[tuple[int, int]]) -> float:
    """The largest relative difference."""
    return float(max(abs(line.at(size) - time) / time for size, time in points))
