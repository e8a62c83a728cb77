"""The parameters of `spinloom goal`, read exactly.

Contract: parse() takes the options as text and returns the arguments of Schedule.run (our own model), and
parse_loggopsim() those of Schedule.run_loggopsim, or they raise Trouble. A number without a unit means
nanoseconds, nanoseconds for each byte, or bytes.
"""

from __future__ import annotations

from typing import Any

from spinloom.common import units
from spinloom.common.errors import Trouble

# Name, default, what it is.
PARAMETERS = {
    "L": (2500, "latency"),
    "o": (1500, "what a message costs a CPU"),
    "g": (1000, "gap of a NIC between two messages"),
    "G": (6, "time of a NIC for each byte"),
    "O": (0, "time of a CPU for each byte"),
    "S": (65535, "bytes above which a message waits for its receive"),
}
# The options of the command line; -o is --out everywhere.
OPTIONS = {
    "L": ("-L", "--latency"),
    "o": ("--overhead",),
    "g": ("-g", "--gap"),
    "G": ("-G", "--gap-per-byte"),
    "O": ("-O", "--overhead-per-byte"),
    "S": ("-S", "--eager"),
}
TIME_PS_MAX = 2**62
U64_MAX = 2**64 - 1
TAG_MAX = 2**32 - 2


def time_ps(text: str) -> int:
    """Picoseconds of '2.5us' or of '2500', which is nanoseconds."""
    unit = units.split(text)[1]
    return units.parse_time(text if unit else f"{text} ns")


def ps_per_byte(text: str) -> tuple[int, int]:
    """Numerator and denominator of '20 ps/B', of '50 GB/s' or of '0.02', which is ns for each byte."""
    value, unit = units.split(text)
    if value == 0 and unit in ("", *(f"{time}/B" for time in units.TIME_PS)):
        return 0, 1
    rate = units.parse_rate(text if unit else f"{text} ns/B")
    if max(rate.numerator, rate.denominator) >= 2**63:
        raise ValueError("its fraction does not fit in 64 bits")
    return rate.numerator, rate.denominator


def read(name: str, text: str, parse: Any, most: int | None = None) -> Any:
    try:
        value = parse(text)
    except ValueError as error:
        raise Trouble("invalid", f"{name} {text}: {error}") from None
    if most is not None and value > most:
        raise Trouble("invalid", f"{name} {text}: it is at most {most}")
    return value


def parse(options: dict[str, str], unit: str) -> dict[str, Any]:
    """The arguments of Schedule.run."""
    times = {f"{name}_ps": read(OPTIONS[name][0], options[name], time_ps, TIME_PS_MAX) for name in "Log"}
    rates = {name: read(OPTIONS[name][0], options[name], ps_per_byte) for name in "GO"}
    return {
        **times,
        **rates,
        "S_bytes": read("-S", options["S"], units.parse_bytes, U64_MAX),
        "unit_ps": read("--unit", unit, time_ps, TIME_PS_MAX),
    }


def parse_layout(text: str) -> tuple[int, int]:
    return read("--layout", text, ps_per_byte)


def parse_noise(text: str) -> tuple[int, int, int, bool]:
    """Period and length in ps, seed, whether together: of '10us/1ms,seed=3' or '10us/1ms,together'."""
    times, *more = text.split(",")
    length, slash, period = times.partition("/")
    if not slash:
        raise Trouble("invalid", f"--noise {text}: accepted form: 10us/1ms, for 10 us in each 1 ms")
    values = [read("--noise", part, time_ps, TIME_PS_MAX) for part in (period, length)]
    if values[0] <= values[1]:
        raise Trouble("invalid", f"--noise {text}: {length} in each {period} leaves a CPU no time")
    seed, together = 1, False
    for part in more:
        if part == "together":
            together = True
        elif part.startswith("seed="):
            seed = read("--noise", part.removeprefix("seed="), units.parse_count, U64_MAX)
        else:
            raise Trouble("invalid", f"--noise {text}: '{part}' is neither seed=N nor together")
    return values[0], values[1], seed, together


def parse_tags(text: str) -> tuple[int, int]:
    """The first and the last of '1000000-', '1000-1999' or '7'."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or not (last.isdecimal() or not last):
        raise Trouble(
            "invalid", f"--collective-tags {text}: accepted forms: 1000000-, and 1000-1999, and 1000"
        )
    tags = int(first), int(last or (TAG_MAX if dash else first))
    if not tags[0] <= tags[1] <= TAG_MAX:
        raise Trouble("invalid", f"--collective-tags {text}: from the first to the last, {TAG_MAX} at most")
    return tags


def parse_between(text: str) -> tuple[int, int, int]:
    """Least, most and seed of computations in ns, which files count them in: of '10us..20us,seed=3'."""
    times, *more = text.split(",")
    least, dots, most = times.partition("..")
    if not dots:
        raise Trouble("invalid", f"--compute {text}: accepted form: 10us..20us, from the least to the most")
    limits_ps = [read("--compute", part, time_ps, TIME_PS_MAX) for part in (least, most)]
    if any(ps % 1000 for ps in limits_ps):
        raise Trouble("invalid", f"--compute {text}: whole nanoseconds")
    seed = 1
    for part in more:
        if not part.startswith("seed="):
            raise Trouble("invalid", f"--compute {text}: '{part}' is not seed=N")
        seed = read("--compute", part.removeprefix("seed="), units.parse_count, U64_MAX)
    return limits_ps[0] // 1000, limits_ps[1] // 1000, seed


def parse_loggopsim(options: dict[str, str]) -> dict[str, int]:
    """The arguments of Schedule.run_loggopsim."""

    def whole_number(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise ValueError("the rules of LogGOPSim take whole numbers without units; ours take both")
        return int(text)

    return {name: read(OPTIONS[name][0], options[name], whole_number, U64_MAX) for name in PARAMETERS}


def share(part: int, total: int) -> str:
    return f"{100 * part / total:.1f} %" if total else "0 %"
