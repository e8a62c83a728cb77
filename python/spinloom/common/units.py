"""Quantities with units, read exactly: no floating point on the way into modelled time.

Contract: each parse_ function takes text as a person writes it ("33.4 ns", "50 GiB/s") and returns an
exact value, or raises ValueError with one sentence that lists the accepted forms. format_ functions make
text for people. k, M, G, T are powers of 1000; Ki, Mi, Gi, Ti of 1024.
"""

from __future__ import annotations

import re
from fractions import Fraction

PS_PER_SECOND = 10**12
TIME_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": PS_PER_SECOND}
SCALE = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
NUMBER = re.compile(r"(?P<number>\d+(?:\.\d+)?(?:/\d+)?)\s*(?P<unit>.*)")


def split(text: str) -> tuple[Fraction, str]:
    """'33.4 ns' as (167/5, 'ns'); a fraction 'a/b' may stand for the number."""
    matched = NUMBER.fullmatch(text.strip())
    if matched is None:
        raise ValueError("it must begin with a number, such as 5, 33.4 or 8125/512")
    number, _, denominator = matched["number"].partition("/")
    if denominator and int(denominator) == 0:
        raise ValueError("its denominator is zero")
    return Fraction(number) / int(denominator or 1), matched["unit"].strip()


def whole_number(value: Fraction, unit: str) -> int:
    if value.denominator != 1:
        raise ValueError(f"it is not a whole number of {unit}")
    return int(value)


def scale_of(unit: str, base: str) -> int | None:
    """The factor of 'GiB' over 'B'; None if the unit is not built on the base."""
    if not unit.endswith(base):
        return None
    return SCALE.get(unit.removesuffix(base))


def parse_time(text: str) -> int:
    """Whole picoseconds."""
    value, unit = split(text)
    if unit not in TIME_PS:
        raise ValueError("accepted forms: '250 ps', '33.4 ns', '7 us', '1 ms', '2 s'")
    return whole_number(value * TIME_PS[unit], "picoseconds")


def parse_rate(text: str) -> Fraction:
    """Picoseconds per byte, from a time per byte or from a bandwidth."""
    value, unit = split(text)
    time, slash, per = unit.partition("/")
    if slash and per == "B" and time in TIME_PS:
        rate = value * TIME_PS[time]
    else:
        per_second = unit.removesuffix("/s")
        scale, bits = scale_of(per_second, "B"), 1
        if scale is None:
            scale, bits = scale_of(per_second, "bit"), 8
        if scale is None or per_second == unit:
            raise ValueError(
                "accepted forms: '37.25 ps/B', '50 GiB/s', '15 GB/s', '200 Gbit/s', '200 Gibit/s'"
            )
        if value == 0:
            raise ValueError("a bandwidth of zero has no time per byte")
        rate = Fraction(PS_PER_SECOND * bits) / (value * scale)
    if rate == 0:
        raise ValueError("a rate must be positive")
    return rate


def parse_frequency(text: str) -> int:
    """Hertz."""
    value, unit = split(text)
    scale = scale_of(unit, "Hz")
    if scale is None or unit.startswith(("Ki", "Mi", "Gi")):
        raise ValueError("accepted forms: '800 MHz', '3.4 GHz'")
    return whole_number(value * scale, "hertz")


def parse_bytes(text: str) -> int:
    """Bytes; a bare number also means bytes."""
    value, unit = split(text)
    scale = 1 if unit == "" else scale_of(unit, "B")
    if scale is None:
        raise ValueError("accepted forms: '2048 B', '64 KiB', '4 MiB', '15 kB'")
    return whole_number(value * scale, "bytes")


def parse_cycles(text: str) -> int:
    value, unit = split(text)
    if unit not in ("", "cycle", "cycles"):
        raise ValueError("accepted forms: '16 cycles', '1 cycle', '16'")
    return whole_number(value, "cycles")


def parse_count(text: str) -> int:
    value, unit = split(text)
    if unit:
        raise ValueError("accepted forms: a whole number without a unit, such as '32'")
    return whole_number(value, "things")


def parse_rational(text: str) -> Fraction:
    value, unit = split(text)
    if unit:
        raise ValueError("accepted forms: '0.2', '3', '1/5'")
    return value


def format_bytes(count: int) -> str:
    """98304 as '96 KiB'; three digits if the number is not whole."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} B" if unit == "B" else f"{value:.4g} {unit}"


def format_time(ps: int) -> str:
    """1500000 ps as '1.5 us', with four digits."""
    for unit in ("s", "ms", "us", "ns"):
        if ps >= TIME_PS[unit]:
            return f"{ps / TIME_PS[unit]:.4g} {unit}"
    return f"{ps} ps"
