"""LogGOPS parameters from measured times, and times from LogGOPS parameters: algebra only.

The times (Hoefler, Lichei, Rehm: Low-Overhead LogGP Parameter Assessment for Modern Interconnection Networks,
2007). PRTT(n, d, s): n messages of s bytes with d of work between two, then an answer of s bytes:

    PRTT(1, 0, s) = 2 (L + o_send + o_receive + (s - 1) G)
    PRTT(n, 0, s) = PRTT(1, 0, s) + (n - 1) (g + (s - 1) G)
    PRTT(n, d, s) = PRTT(1, 0, s) + (n - 1) (o_send(s) + d)        where d >= g + (s - 1) G

and two that are timed alone: a send, o_send + (s - 1) O_send; a receive of what has come before, o_receive +
(s - 1) O_receive. From the least size s0 (1 byte, so that (s - 1) is 0) and slopes above it:

    g = (PRTT(n, 0, s0) - PRTT(1, 0, s0)) / (n - 1)                G = slope of that over s
    o = (o_send + o_receive) / 2                                   O = (O_send + O_receive) / 2
    L = PRTT(1, 0, s0) / 2 - 2 o                                   where that is below 0, L = 0 and o is less

A slope is the one for which the squares of relative errors are least, on the line through the value at s0: so
small messages have exactly their times, large ones nearly, and what lies between shows whether one G is
enough. A regime's lines have both values free.

The model (LogGOPSim's rules, HPDC'10): a message takes T(s) = o + L + o + (s - 1) max(O, G); ranks send and
receive one each I(s) = max(o + (s - 1) max(O, G), g + (s - 1) G). Under our own rules (docs/goal.md) bytes
cost the sender, the wire and the receiver one after the other: T(s) = o + L + o + (s - 1) (2 O + G), I(s) =
max(o + (s - 1) O, g + (s - 1) G). with_own_rates() returns the O and G that
both slopes give then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from spinloom.bench.mpi_parameters import MpiParameters, Regime, Size


@dataclass(frozen=True)
class Timings:
    """Medians by size, ns; those of send and receive without the clock's own time."""

    round_trip: dict[int, float]  # PRTT(1, 0, s)
    many: dict[int, tuple[int, float]]  # n and PRTT(n, 0, s)
    send: dict[int, float]
    receive: dict[int, float]
    spread: dict[int, float]  # the width of the middle half of the round trips, over their median
    eager_bytes: int  # S
    polled_bytes: int  # S where the receiver is in calls of MPI


def fit(timings: Timings) -> MpiParameters:
    table = tuple(
        Size(
            size_bytes=size,
            one_way_ns=round_trip / 2,
            interval_ns=interval(*timings.many[size], round_trip),
            send_ns=timings.send[size],
            receive_ns=timings.receive[size],
            spread=timings.spread[size],
        )
        for size, round_trip in sorted(timings.round_trip.items())
    )
    least = table[0]
    sends = through_first([(row.size_bytes, row.send_ns) for row in table])
    receives = through_first([(row.size_bytes, row.receive_ns) for row in table])
    return MpiParameters(
        L_ns=max(0.0, least.one_way_ns - least.send_ns - least.receive_ns),
        o_ns=min(least.send_ns + least.receive_ns, least.one_way_ns) / 2,
        o_send_ns=least.send_ns,
        o_receive_ns=least.receive_ns,
        g_ns=least.interval_ns,
        G_ns_per_byte=through_first([(row.size_bytes, row.interval_ns) for row in table]),
        O_ns_per_byte=(sends + receives) / 2,
        S_bytes=timings.eager_bytes,
        S_polled_bytes=timings.polled_bytes,
        table=table,
        regimes=regimes(table, timings.polled_bytes),
    )


def with_own_rates(p: MpiParameters) -> MpiParameters:
    """The parameters with the O and G of our own rules."""
    one_way = through_first([(row.size_bytes, row.one_way_ns) for row in p.table])
    stream = through_first([(row.size_bytes, row.interval_ns) for row in p.table])
    cpu, nic = own_rates(one_way, stream)
    return replace(p, O_ns_per_byte=cpu, G_ns_per_byte=nic)


def own_rates(one_way: float, stream: float) -> tuple[float, float]:
    """O and G with 2 O + G = one_way and max(O, G) = stream, all a byte, where stream <= one_way <= 3 stream.
    Where a message is quicker than its share of a stream O = 0, and G is the stream's; where it is slower
    than any stream allows O = G, which makes the stream's time longest."""
    cpu = min(max(0.0, one_way - stream) / 2, one_way / 3)
    return cpu, max(stream, one_way - 2 * cpu)


def interval(messages: int, prtt: float, round_trip: float) -> float:
    """g + (s - 1) G of PRTT(n, 0, s)"""
    return max(0.0, prtt - round_trip) / (messages - 1)


def regimes(table: tuple[Size, ...], eager_bytes: int) -> tuple[Regime, ...]:
    """One for messages up to the eager limit, one for those above; a regime needs two sizes."""
    parts = {
        "eager": [row for row in table if row.size_bytes <= eager_bytes],
        "rendezvous": [row for row in table if row.size_bytes > eager_bytes],
    }
    fitted = []
    for name, rows in parts.items():
        if len(rows) < 2:
            continue
        base, slope = line([(row.size_bytes, row.one_way_ns) for row in rows])
        gap, gap_slope = line([(row.size_bytes, row.interval_ns) for row in rows])
        fitted.append(Regime(name, rows[0].size_bytes, rows[-1].size_bytes, base, slope, gap, gap_slope))
    return tuple(fitted)


def through_first(points: list[tuple[int, float]]) -> float:
    """b of t0 + (s - s0) b, not below 0: the least sum of squares of (t0 + (s - s0) b - t) / t."""
    first_size, first = points[0]
    above = [(size - first_size, t) for size, t in points[1:] if t > 0]
    weight = sum((distance / t) ** 2 for distance, t in above)
    return max(0.0, sum(distance * (t - first) / t**2 for distance, t in above) / weight) if weight else 0.0


def line(points: list[tuple[int, float]]) -> tuple[float, float]:
    """a and b of a + (s - 1) b, neither below 0: the least sum of squares of (a + (s - 1) b - t) / t."""
    used = [((size - 1) / t, 1 / t) for size, t in points if t > 0]
    xx, xw, ww = (
        sum(a * b for a, b in pairs)
        for pairs in ([(x, x) for x, _ in used], [(x, w) for x, w in used], [(w, w) for _, w in used])
    )
    x, w = sum(x for x, _ in used), sum(w for _, w in used)
    determinant = xx * ww - xw * xw
    if determinant <= 1e-12 * xx * ww:
        return (w / ww if ww else 0.0), 0.0
    a, b = (w * xx - x * xw) / determinant, (x * ww - w * xw) / determinant
    if a < 0:
        return 0.0, x / xx
    if b < 0:
        return w / ww, 0.0
    return a, b


def overhead_by_delay(prtt: float, round_trip: float, messages: int, delay: float) -> float:
    """o_send of PRTT(n, d, s); the delay must be longer than g + (s - 1) G."""
    return (prtt - round_trip) / (messages - 1) - delay


def eager_limit(waits: Callable[[int], bool], most: int) -> int:
    """The largest size up to `most` of which a sender does not wait; 0 if it waits for each. By bisection:
    one limit is assumed."""
    if not waits(most):
        return most
    passes, fails = 0, most
    while fails - passes > 1:
        middle = (passes + fails) // 2
        if waits(middle):
            fails = middle
        else:
            passes = middle
    return passes


# ---- times ----


class Model:
    """T(s) and I(s) from the parameters alone."""

    def __init__(self, p: MpiParameters) -> None:
        self.p = p
        self.per_byte = max(p.O_ns_per_byte, p.G_ns_per_byte)

    def one_way_ns(self, size: int) -> float:
        return 2 * self.p.o_ns + self.p.L_ns + max(0, size - 1) * self.per_byte

    def interval_ns(self, size: int) -> float:
        more = max(0, size - 1)
        return max(self.p.o_ns + more * self.per_byte, self.p.g_ns + more * self.p.G_ns_per_byte)


class OwnRulesModel(Model):
    """T(s) and I(s) under our own rules; of parameters that with_own_rates() made."""

    def one_way_ns(self, size: int) -> float:
        p = self.p
        return 2 * p.o_ns + p.L_ns + max(0, size - 1) * (2 * p.O_ns_per_byte + p.G_ns_per_byte)

    def interval_ns(self, size: int) -> float:
        more = max(0, size - 1)
        return max(self.p.o_ns + more * self.p.O_ns_per_byte, self.p.g_ns + more * self.p.G_ns_per_byte)


class TableModel(Model):
    """T(s) and I(s) as they were measured, on lines between the sizes."""

    def one_way_ns(self, size: int) -> float:
        return self.p.at("one_way_ns", size)

    def interval_ns(self, size: int) -> float:
        return self.p.at("interval_ns", size)


def flood_ns(model: Model, messages: int, size: int) -> float:
    """n messages and an answer of one byte: T(s) + (n - 1) I(s) + T(1)."""
    return model.one_way_ns(size) + (messages - 1) * model.interval_ns(size) + model.one_way_ns(1)


def barrier_ns(model: Model, ranks: int) -> float:
    """Dissemination: ceil(log2 P) rounds of T(1)."""
    return rounds(ranks) * model.one_way_ns(1)


def broadcast_ns(model: Model, ranks: int, size: int) -> float:
    """Binomial tree, until the last rank has the bytes: ceil(log2 P) T(s)."""
    return rounds(ranks) * model.one_way_ns(size)


def allreduce_ns(model: Model, ranks: int, size: int) -> float:
    """Recursive doubling: log2 P rounds of T(s); where P is no power of two, a round before and one after."""
    full_rounds = ranks.bit_length() - 1
    return (full_rounds if ranks == 1 << full_rounds else full_rounds + 2) * model.one_way_ns(size)


def rounds(ranks: int) -> int:
    return (ranks - 1).bit_length()


def error(model: float, measured: float) -> float:
    return model / measured - 1 if measured > 0 else math.nan
