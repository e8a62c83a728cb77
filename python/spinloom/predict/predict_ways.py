"""The ways under a recorded program: which CPU does what for a message, and on which network.

Contract: ways() gives the costs of each way as the engine takes them: the prices of message ends and layouts
of core.Recording.schedule(), and the parameters of Schedule.run(). A way differs from the one before it by
one thing:
    recorded-host    the recorded host's own MPI by its measured parameters: no network (needs them)
    host-mpi         the host's MPI over the NIC: CPUs copy eager messages, answer long ones, pack and unpack
    rdma-unpack      eager messages land in place; CPUs still answer long ones, pack and unpack
    offload-matching the NIC matches: long messages go while the CPUs compute (SC'17 paper, section 5.1), in
                     the time that a simulated one took (deliveries.py)
    offload-collectives the NIC also executes non-blocking collective operations: the CPU makes the schedule
                     of each, a call for each operation, and sees that it has ended
    cached-collectives  a schedule that was there before is begun: a call for what waits for nothing
    offload-NAME     (as offload-matching) the NIC also gathers and scatters layouts, by strategy NAME
Where messages land in place, a receive that is posted after its message has the CPU copy or unpack it.
Times are modelled, in ps; recorded-host is modelled from measured host times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from spinloom.accelerate import copy_model
from spinloom.accelerate.calibration import Calibration
from spinloom.accelerate.mpi_layout_prices import LayoutTimes
from spinloom.accelerate.mpi_pair_prices import Exchange, LayoutUse, Pair
from spinloom.common.errors import Trouble
from spinloom.nics.deliveries import AskingPrices
from spinloom.nics.layout_prices import CONTIGUOUS_SEND, Cells, Prices, Use, block
from spinloom.nics.machines import Machine
from spinloom.nics.strategies import DIRECT

MEASURED, RECORDED_HOST, BASELINE = "measured", "recorded-host", "host-mpi"
RDMA, MATCHING, OFFLOAD = "rdma-unpack", "offload-matching", "offload-"
COLLECTIVES, CACHED = "offload-collectives", "cached-collectives"
EAGER_BYTES = 16 << 10  # proposed: where MPI libraries on networks stop sending without asking
MODELLED = "recorded-host has modelled times of our own copies for its layouts"
UNREACHED_BYTES = 1 << 50  # bytes: no message is longer

ABOUT = {
    MEASURED: "as it was recorded",
    RECORDED_HOST: "the recorded host's MPI by its measured parameters",
    BASELINE: "host's MPI over the NIC: CPUs copy, answer, pack and unpack",
    RDMA: "messages land in place; CPUs answer, pack and unpack",
    MATCHING: "the NIC matches and answers; CPUs pack and unpack",
    COLLECTIVES: "the NIC also executes non-blocking collective operations, whose schedules the CPU makes",
    CACHED: "the NIC keeps these schedules, and the CPU begins them",
}


@dataclass(frozen=True)
class Way:
    name: str
    about: str
    costs: dict[str, Any]
    model: dict[str, Any]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Network:
    """The network of a profile, from checked messages of one byte; times in ps."""

    L_ps: int
    g_ps: int
    G: Fraction
    call_ps: int  # the CPU's time for a call that posts or completes
    copy: Fraction  # ps for a byte that a CPU copies
    offloaded: dict[str, Any] = field(
        default_factory=dict
    )  # the costs of NICs and CPUs for a collective operation

    def model(self, eager_bytes: int, latency_ps: int | None = None) -> dict[str, Any]:
        return {
            "L_ps": self.L_ps if latency_ps is None else latency_ps,
            "o_ps": 0,  # CPU time of message ends is in the schedule
            "g_ps": self.g_ps,
            "G": ratio(self.G),
            "S_bytes": eager_bytes,
            "unit_ps": 1,
        }


def ratio(value: Fraction) -> tuple[int, int]:
    return value.numerator, value.denominator


def want_network(cells: Cells) -> None:
    cells.want(block(1), CONTIGUOUS_SEND, "send")
    cells.want(block(1), DIRECT, "receive")


def network_of(machine: Machine, cells: Cells) -> Network:
    sent, received = (
        cells.times_of(block(1), CONTIGUOUS_SEND, "send"),
        cells.times_of(block(1), DIRECT, "receive"),
    )
    if sent is None or received is None:
        raise Trouble("unsupported", f"{machine.profile.name} takes no message of one byte")
    profile = machine.profile
    # From the end of the sender's call until the receiver's program can read its event.
    latency = sent["send_time_ps"] - sent["host_busy_ps"] + received["time_ps"] - received["data_time_ps"]
    return Network(
        L_ps=latency,
        g_ps=int(profile["link.gap"]),
        G=Fraction(profile["link.byte_time"]),
        call_ps=int(profile["host.call"]),
        copy=2 * Fraction(profile["host.memory_byte_time"]),  # read and written
        offloaded={
            "create_ps": int(profile["host.call"]),
            "match_ps": int(profile["match.header"]),
            "own": ratio(Fraction(profile["link.byte_time"])),
            # An atomic operation reads over PCIe what it adds to, and writes what it has made.
            "combine_ps": 2 * int(profile["pcie.latency"]),
            "combine": ratio(2 * Fraction(profile["pcie.byte_time"])),
            "test_ps": int(profile["host.call"]),
        },
    )


@dataclass(frozen=True)
class HostMpi:
    """The work of the modelled machine's CPUs for MPI: as measured of an MPI, or the profile's call."""

    send_ps: int
    receive_ps: int
    copy: Fraction
    eager_bytes: int


def host_mpi(network: Network, parameters: Any, eager_bytes: int | None) -> HostMpi:
    if parameters is None:
        return HostMpi(network.call_ps, network.call_ps, network.copy, eager_bytes or EAGER_BYTES)
    return HostMpi(
        round(parameters.o_send_ns * 1000),
        round(parameters.o_receive_ns * 1000),
        Fraction(round(parameters.O_ns_per_byte * 1_000_000), 1000),
        eager_bytes or parameters.S_polled_bytes,
    )


def eager_bytes_of(network: Network, parameters: Any = None, eager_bytes: int | None = None) -> int:
    """The size of the largest message that does not ask first."""
    return host_mpi(network, parameters, eager_bytes).eager_bytes


def message_table(
    send_ps: int, receive_ps: int, copy: Fraction, eager_bytes: int, short_ps: int = 0, long_ps: int = 0
) -> list[tuple[int, int, int, int]]:
    """(bytes, CPU to send, CPU to receive, on the way): short messages are copied by the receiver."""
    return [
        (0, send_ps, receive_ps, short_ps),
        (eager_bytes, send_ps, receive_ps + round(copy * eager_bytes), short_ps),
        (eager_bytes + 1, send_ps, receive_ps, long_ps),
        (UNREACHED_BYTES, send_ps, receive_ps, long_ps),
    ]


def use_key(use: Use) -> tuple[int, int, str]:
    return use.layout, use.count, use.side


def ways(
    network: Network,
    prices: Prices,
    strategies: list[str],
    parameters: Any = None,
    eager_bytes: int | None = None,
    scale: Fraction = Fraction(1),
    *,
    asking: AskingPrices,
    collectives: bool = False,
) -> Iterator[Way]:
    """All but recorded-host; those of non-blocking collective operations if there are some. `asking` has the
    prices of a message just beyond eager_bytes_of()."""
    mpi = host_mpi(network, parameters, eager_bytes)
    host = [(*use_key(use), cpu) for use, cpu in prices.host_ps.items()]
    common = {
        "host_layouts": host,
        "copy": ratio(network.copy),
        "combine": ratio(network.copy),
        "scale": ratio(scale),
    }
    # Whoever unpacks a short message from where it landed does not copy it as well.
    unpacked = [
        (
            *use_key(use),
            max(0, cpu - round(mpi.copy * use.bytes))
            if use.side == "receive" and use.bytes <= mpi.eager_bytes
            else cpu,
            0,
            0,
        )
        for use, cpu in prices.host_ps.items()
    ]
    in_place = [(*use_key(use), cpu, 0, 0) for use, cpu in prices.host_ps.items()]
    no_copy = message_table(mpi.send_ps, mpi.receive_ps, Fraction(0), mpi.eager_bytes)
    handshake = {"handshake_bytes": mpi.eager_bytes}
    yield Way(
        BASELINE,
        ABOUT[BASELINE],
        {
            **common,
            **handshake,
            "messages": message_table(mpi.send_ps, mpi.receive_ps, mpi.copy, mpi.eager_bytes),
            "layouts": unpacked,
        },
        network.model(UNREACHED_BYTES),
    )
    yield Way(
        RDMA,
        ABOUT[RDMA],
        {**common, **handshake, "messages": no_copy, "layouts": in_place, "late": (asking.find_ps, 0)},
        network.model(UNREACHED_BYTES),
    )
    # The network's L is of one way between NICs, as requests and answers take it; what a message takes longer
    # until its program has it is on its way.
    hop_ps = min(asking.hop_ps, network.L_ps)
    rest_ps = network.L_ps - hop_ps
    nic_calls = message_table(
        network.call_ps,
        network.call_ps,
        Fraction(0),
        mpi.eager_bytes,
        rest_ps,
        rest_ps + 2 * (asking.hop_ps - hop_ps),
    )
    matching = {
        **common,
        "messages": nic_calls,
        "handshake_bytes": mpi.eager_bytes,
        "nic_answers": True,
        "late": (asking.find_ps, asking.answer_ps),
    }
    nics = network.model(UNREACHED_BYTES, hop_ps)
    yield Way(MATCHING, ABOUT[MATCHING], {**matching, "layouts": in_place}, nics)
    for name, cached in ((COLLECTIVES, False), (CACHED, True)) if collectives else ():
        offloaded = {**network.offloaded, "cached": cached}
        yield Way(name, ABOUT[name], {**matching, "layouts": in_place, "offloaded": offloaded}, nics)
    for name in strategies:
        strategy_prices = prices.nic[name]
        layouts = [
            (*use_key(use), price.cpu_ps, price.nic_ps, price.nic_busy_ps)
            for use, price in strategy_prices.items()
        ]
        fell_back = sum(price.fell_back for price in strategy_prices.values())
        remark = f"{fell_back} of {len(strategy_prices)} layouts are not for {name}: the host moves them"
        yield Way(
            OFFLOAD + name,
            f"the NIC also gathers and scatters layouts: {name}",
            {**matching, "layouts": layouts},
            nics,
            (remark,) if fell_back else (),
        )


def recorded_host(
    parameters: Any,
    uses: list[Use],
    measured: dict[Use, LayoutTimes] | None,
    exchanged: dict[Pair, Exchange],
    calibration: Calibration,
    scale: Fraction = Fraction(1),
) -> Way:
    """The MPI whose parameters were measured, on its host: each size takes what the table says. A message of
    layouts takes more by what an exchange of both layouts took more than one of blocks; where that was not
    measured, by what that MPI took to pack and unpack them, and where that was not measured either, by the
    byte. Without measurements of layouts (None) the copy model predicts them."""
    latency_ps = round(parameters.L_ns * 1000)
    messages = []
    for row in parameters.table:
        send, receive = round(row.send_ns * 1000), round(row.receive_ns * 1000)
        on_way_ps = max(0, round(row.one_way_ns * 1000) - send - receive - latency_ps)
        messages.append((row.size_bytes, send, receive, on_way_ps))
    if measured is None:
        times = {use: predicted(use, calibration) for use in uses}
    else:
        times = {use: measured.get(use) or by_rate(use, measured) for use in uses}
    last = parameters.table[-1]
    copy = Fraction(round(last.receive_ns * 1_000_000 / last.size_bytes), 1000)
    remark: tuple[str, ...] = ()
    if measured is None and uses:
        remark = (f"{parameters.about.get('mpi')} was not asked for its layouts: {MODELLED}",)
    elif measured is not None and (rest := sum(use.bytes > 0 and use not in measured for use in uses)):
        remark = (f"{RECORDED_HOST}: {rest:,} of {len(uses):,} layouts cost by the byte, as the others",)
    return Way(
        RECORDED_HOST,
        ABOUT[RECORDED_HOST],
        {
            "messages": messages,
            "layouts": [(*use_key(use), end_ps(use, times[use], parameters), 0, 0) for use in uses],
            "pairs": [pair_ps(pair, took, times) for pair, took in exchanged.items()],
            "host_layouts": [(*use_key(use), own_ps(use, times[use])) for use in uses],
            "copy": ratio(copy),
            "combine": ratio(copy),
            "handshake_bytes": parameters.S_polled_bytes,
            "fetches": True,
            "scale": ratio(scale),
        },
        {"L_ps": latency_ps, "o_ps": 0, "g_ps": 0, "G": (0, 1), "S_bytes": UNREACHED_BYTES, "unit_ps": 1},
        remark,
    )


def pair_ps(
    pair: Pair, exchange: Exchange, times_of_uses: dict[Use, LayoutTimes]
) -> tuple[int, LayoutUse, LayoutUse, int, int, int]:
    """As core.Recording.schedule() takes it. A rank does both ends of an exchange, one after the other: each
    end has its part of what that takes more, as packing has of packing and unpacking."""
    by_end = {use_key(use): end_times for use, end_times in times_of_uses.items()}
    sent = by_end.get((*pair.sent, "send")) if pair.sent is not None else None
    received = by_end.get((*pair.received, "receive")) if pair.received is not None else None
    either = sent or received
    share = 0.5
    if either is not None:
        pack_ns = sent.pack_ns if sent is not None else either.memcpy_ns
        unpack_ns = received.unpack_ns if received is not None else either.memcpy_ns
        share = pack_ns / max(1e-9, pack_ns + unpack_ns)
    send_ps = round(1000 * exchange.more_ns * share)
    receive_ps = max(0, round(1000 * exchange.more_ns) - send_ps)
    return pair.bytes, pair.sent, pair.received, send_ps, receive_ps, round(1000 * exchange.own_ns)


def own_ps(use: Use, times: LayoutTimes) -> int:
    return round(1000 * (times.pack_ns if use.side == "send" else times.unpack_ns))


def end_ps(use: Use, times: LayoutTimes, parameters: Any) -> int:
    """Returns the layout's time beyond that of one block. A short message is packed in place of being
    copied. A long one is not fetched: it goes in pieces, each packed as a short message is."""
    movement_ns = times.pack_ns if use.side == "send" else times.unpack_ns
    more_ns = max(0.0, movement_ns - times.memcpy_ns)
    if use.bytes > parameters.S_polled_bytes:
        column = "send_ns" if use.side == "send" else "receive_ns"
        piece_ns = parameters.at(column, parameters.S_polled_bytes)
        more_ns += use.bytes / parameters.S_polled_bytes * piece_ns - parameters.at(column, use.bytes)
    return round(1000 * max(0.0, more_ns))


def by_rate(use: Use, measured: dict[Use, LayoutTimes]) -> LayoutTimes:
    """The price of a layout that was not measured: by the byte, as those that were."""
    if use.bytes == 0:
        return LayoutTimes(0, 0, 0)
    size = sum(other.bytes for other in measured)
    if size == 0:
        raise Trouble("unsupported", f"no layout was measured: that of {use.bytes:,} B is too long")
    names = ("pack_ns", "unpack_ns", "memcpy_ns")
    sums = [sum(getattr(times, name) for times in measured.values()) for name in names]
    return LayoutTimes(*(total * use.bytes / size for total in sums))


def predicted(use: Use, calibration: Calibration) -> LayoutTimes:
    def time_ns(movement: str, text: str, count: int) -> float:
        counts = copy_model.count(text, count, movement, calibration.caches)
        return copy_model.predict(calibration.prices[movement], counts).time_ns

    plain = f"contig({use.bytes}, byte)"
    return LayoutTimes(
        time_ns("pack", use.type, use.count),
        time_ns("unpack", use.type, use.count),
        time_ns("pack", plain, 1),
    )
