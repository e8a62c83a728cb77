"""From a recorded MPI program to its time under other ways to move its messages.

Contract: predict() reads the traces in a folder, prices what they move, and gives a Table: one row for what
was measured and one for each way of predict_ways.py. Measured times are host times of the recording, all
others are modelled. A rank's time is computation (between its calls, scaled if asked), overhead (CPUs at ends
of messages, and for reductions), layouts (CPUs pack and unpack), NIC, wire (bytes at link rate, as far as
nothing else hides them) and waiting (latency and other ranks); the row has their means over the ranks, and
the largest is what limits.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from spinloom.accelerate import calibration, mpi_layout_prices, mpi_pair_prices
from spinloom.accelerate.mpi_layout_prices import LayoutTimes
from spinloom.accelerate.mpi_pair_prices import Exchange, LayoutUse, Pair
from spinloom.bench import jobs
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.layout import Layout
from spinloom.nics import deliveries, layout_prices, results
from spinloom.nics.layout_prices import Cells, Prices, ResultStore, Use
from spinloom.nics.machines import Machine
from spinloom.predict import goal_page, predict_ways
from spinloom.predict.predict_ways import BASELINE, MEASURED, RECORDED_HOST, Way
from spinloom.traces import not_recorded, recorded
from spinloom.traces.pages.runs import Run

LATE_REPLAYS = 4
WEAK = "each rank keeps its data and its times between calls"
STRONG = "the problem stays as it is: what ranks have, and compute, shrinks"
PARTS = ("compute", "overhead", "layouts", "nic", "wire", "waiting")
COLUMNS = {
    "way": "who does what for a message",
    "times": "host or CPU (spinloom record --cpu-time): measured; modelled",
    "ranks": "the ranks of the program",
    "time_ps": "until the last rank ends, from the end of its MPI_Init",
    "of_measured": "over the measured time; empty where computation is scaled or ranks are more",
    "communication_share": "of the ranks' time, what is not computation",
    "speedup": f"time_ps of {BASELINE} over this row's",
    "limit": "the part that takes longest: " + ", ".join(PARTS),
    "limit_share": "the limit's share of the ranks' time",
    **{f"{part}_ps": f"mean over the ranks: {part}" for part in PARTS},
    "communication_ps": "mean over the ranks: their time without computation",
    "collective_wait_ps": "mean over the ranks: in waits for non-blocking collective operations",
    "collectives": "non-blocking collective operations of a rank",
    "messages": "messages that are sent, those of collective operations too",
    "bytes": "the bytes of the messages",
    "late_receives": "posted after their message or its request had come; only where that costs more",
    "operations": "the operations of the schedule",
}


@dataclass(frozen=True)
class Request:
    """The recorded program to predict, and the options of the prediction."""

    folder: Path
    strategies: list[str]
    algorithms: tuple[str, ...] = ()
    scale: Fraction = Fraction(1)
    parameters: Any = None  # MpiParameters of the recorded host
    eager_bytes: int | None = None
    layouts_max: int = 64
    threads: int = 0
    ranks: int = 0  # more than were recorded; 0: as many
    strong: bool = False  # more ranks share what there was
    polls: str = "rule"  # the meaning of the time between polls in vain: wait, work, by rule
    network: dict[str, Any] | None = None  # the form that goal_network.parse() gives; None: a crossbar
    runs: bool = False  # Table.runs is wanted
    modelled_layouts: bool = False  # the recorded host's costs are not its MPI's, but those of our copy model


@dataclass
class Table:
    rows: list[dict[str, Any]]
    facts: dict[str, Any]
    prices: Prices
    remarks: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)  # one for each way, if Request.runs

    @property
    def result_hash(self) -> str:
        """The hash of what is modelled."""
        return results.digest({"rows": [row for row in self.rows if row["times"] == "modelled"]})


def load(
    folder: Path, algorithms: Iterable[str] = (), ranks: int = 0, polls: str = "rule", strong: bool = False
) -> Any:
    """The core.Recording in a folder. Raises Trouble."""
    engine = core.load()
    if not recorded.is_recorded(folder):
        not_recorded.refuse(folder)
    try:
        return engine.read_recording(folder, list(algorithms), ranks, polls, strong)
    except engine.SpinloomError as error:
        raise Trouble(error.code, f"{folder}: {error.message}") from None


def uses_of(recording: Any) -> list[Use]:
    names = ("layout", "count", "side", "type", "bytes", "messages", "copies")
    return [Use(**{name: entry[name] for name in names}) for entry in recording.layouts()]


def pairs_of(recording: Any, uses: list[Use]) -> list[Pair]:
    """The pairs of all messages, but for those that end within an element of their receiver's type."""
    types = {use.layout: use.type for use in uses}

    def text(layout_use: LayoutUse, size: int) -> str:
        if layout_use is None:
            return f"contig({size}, byte)"
        layout, count = layout_use
        return types[layout] if count == 1 else f"contig({count}, {types[layout]})"

    pairs = [
        Pair(
            **entry,
            sent_type=text(entry["sent"], entry["bytes"]),
            received_type=text(entry["received"], entry["bytes"]),
        )
        for entry in recording.pairs()
    ]
    return [pair for pair in pairs if Layout(pair.received_type).size == pair.bytes]


def predict(
    request: Request, machine: Machine, store: ResultStore, advance: Callable[[], None] = lambda: None
) -> Table:
    recording = load(request.folder, request.algorithms, request.ranks, request.polls, request.strong)
    facts = recording.facts()
    if not any(rank["total_ns"] for rank in facts["recorded"]):
        why = recorded.warnings(recorded.read(request.folder))
        raise Trouble("invalid", "; ".join([f"{request.folder} has no call to replay", *why]))
    uses = uses_of(recording)
    cells = Cells(machine, store)
    predict_ways.want_network(cells)
    prices = layout_prices.price(
        uses, cells, request.strategies, request.layouts_max, request.threads, advance
    )
    network = predict_ways.network_of(machine, cells)
    eager_bytes = predict_ways.eager_bytes_of(network, request.parameters, request.eager_bytes)
    asking = deliveries.asking_prices(machine, store, eager_bytes + 1, network.call_ps)
    chosen_ways = list(
        predict_ways.ways(
            network,
            prices,
            request.strategies,
            request.parameters,
            request.eager_bytes,
            request.scale,
            asking=asking,
            collectives=facts["offloadable"] > 0,
        )
    )
    chosen_ways = [replace(way, model={**way.model, "network": request.network}) for way in chosen_ways]
    if request.parameters is not None:
        chosen_ways.insert(0, recorded_host(request, uses, pairs_of(recording, uses), store, advance))
    replays = [replayed(recording, way, request.runs) for way in chosen_ways]
    rows = [
        row_of(recording, way, network.G, replay) for way, replay in zip(chosen_ways, replays, strict=True)
    ]
    by_name = {row["way"]: row for row in rows}
    grown = bool(facts["how"])
    measured = measured_row(
        load(request.folder, request.algorithms, 0, request.polls).facts() if grown else facts
    )
    for row in [measured, *rows]:
        if row["way"] not in (MEASURED, RECORDED_HOST):
            row["speedup"] = round(by_name[BASELINE]["time_ps"] / max(1, row["time_ps"]), 4)
        if request.scale == 1 and not grown and not facts["is_cpu_time"]:
            row["of_measured"] = round(row["time_ps"] / max(1, measured["time_ps"]), 4)
    remarks = [remark for way in chosen_ways for remark in way.remarks]
    ordered = [{name: row.get(name) for name in COLUMNS} for row in [measured, *rows]]
    runs = [
        goal_page.run_of(replay.outcome, way.name, "modelled", is_program=True)
        for way, replay in zip(chosen_ways, replays, strict=True)
        if request.runs
    ]
    return Table(ordered, facts, prices, [*remarks_of(facts, prices, request.strong), *remarks], runs)


def recorded_host(
    request: Request, uses: list[Use], pairs: list[Pair], store: ResultStore, advance: Callable[[], None]
) -> Way:
    heaviest = sorted(uses, key=lambda use: -use.weight)[: request.layouts_max]
    measured: dict[Use, LayoutTimes] | None = None if request.modelled_layouts else {}
    exchanged: dict[Pair, Exchange] = {}
    if heaviest and not request.modelled_layouts:
        measured_mpi = measured_mpi_of(request.parameters.about, mpi_layout_prices.swept_for(request.folder))
        measured = mpi_layout_prices.measure(
            heaviest,
            measured_mpi.name,
            measured_mpi.host,
            measured_mpi.mpi.compiler,
            measured_mpi.swept_bytes,
            store,
            advance,
        )
        longest = sorted(pairs, key=lambda pair: -pair.weight)[: request.layouts_max]
        exchanged = mpi_pair_prices.measure(longest, measured_mpi, store, advance)
    host_calibration, _ = calibration.load()
    return predict_ways.recorded_host(
        request.parameters, uses, measured, exchanged, host_calibration, request.scale
    )


def measured_mpi_of(about: dict[str, Any], swept_bytes: int) -> mpi_pair_prices.MeasuredMpi:
    """The MPI that the parameters are of: it says what layouts cost. Raises Trouble where it is not here."""
    mpi, host = str(about.get("mpi")), str(about.get("host"))
    layouts = f"the program has layouts, and only {mpi} on {host} can be asked what they cost it"
    modelled = "--layout-prices modelled takes those of our own copies"
    if host != platform.node():
        raise Trouble(
            "environment", f"{layouts}; this is {platform.node()}: predict there, or {modelled} instead"
        )
    tools = [Path(str(about.get(tool))) for tool in ("compiler", "launcher")]
    for tool in tools:
        if not os.path.exists(tool):
            raise Trouble(
                "environment",
                f"{layouts}, but {tool} is not here: 'spinloom calibrate mpi MPICC' measures another MPI, "
                f"or {modelled} instead",
            )
    return mpi_pair_prices.MeasuredMpi(mpi, host, jobs.Mpi(*tools), swept_bytes)


def measured_row(facts: dict[str, Any]) -> dict[str, Any]:
    measured = facts["recorded"]
    total = sum(rank["total_ns"] for rank in measured)
    computed = sum(rank["compute_ns"] + rank["fixed_ns"] for rank in measured)
    ranks = len(measured)
    return {
        "way": MEASURED,
        "times": "CPU" if facts["is_cpu_time"] else "host",
        "ranks": ranks,
        "time_ps": max(rank["total_ns"] for rank in measured) * 1000,
        "communication_share": round(1 - computed / total, 4) if total else 0.0,
        "compute_ps": computed * 1000 // ranks,
        "communication_ps": (total - computed) * 1000 // ranks,
    }


class Replay(NamedTuple):
    schedule: Any
    bills: Any
    outcome: Any  # the result of Schedule.run()
    late: int  # receives
    waited: list[int] | None  # the time that each rank waited for collective operations


def replayed(recording: Any, way: Way, record: bool = False) -> Replay:
    """Which receives are late is what a replay finds, and their costs make another replay: until no others
    are late, or LATE_REPLAYS times."""
    late: list[list[bool]] = []
    waits_too = recording.facts()["offloadable"] > 0
    for _ in range(LATE_REPLAYS if "late" in way.costs else 1):
        schedule, bills, receives, waits = recording.schedule_with_receives(way.costs, late)
        outcome = schedule.run(**way.model, late="late" in way.costs, keep=waits_too, record=record)
        if "late" not in way.costs:
            break
        late_now = receives.late(outcome["late"])
        if late_now == late:
            break
        late = late_now
    waited = waits.times(schedule, outcome["kept"]) if waits_too else None
    return Replay(schedule, bills, outcome, sum(map(sum, late)), waited)


def row_of(recording: Any, way: Way, byte_time: Fraction, replay: Replay) -> dict[str, Any]:
    schedule, bills, outcome, late, waited = replay
    ranks = len(bills)
    sums = dict.fromkeys(PARTS, 0)
    for bill, finish in zip(bills, outcome["finish_ps"], strict=True):
        busy = {
            "compute": bill["compute_ps"],
            "overhead": bill["messages_ps"] + bill["combine_ps"],
            "layouts": bill["layouts_ps"],
        }
        left_ps = max(0, finish - sum(busy.values()))
        wire = min(left_ps, int(byte_time * max(bill["sent_bytes"], bill["received_bytes"])))
        nic = min(left_ps - wire, bill["nic_ps"])
        for part, value in {**busy, "wire": wire, "nic": nic, "waiting": left_ps - wire - nic}.items():
            sums[part] += value
    total = sum(sums.values())
    limit = max(PARTS, key=lambda part: sums[part])
    return {
        "way": way.name,
        "times": "modelled",
        "ranks": ranks,
        "time_ps": outcome["makespan_ps"],
        "communication_share": round(1 - sums["compute"] / total, 4) if total else 0.0,
        "limit": limit if total else None,
        "limit_share": round(sums[limit] / total, 4) if total else None,
        **{f"{part}_ps": sums[part] // ranks for part in PARTS},
        "communication_ps": (total - sums["compute"]) // ranks,
        "collective_wait_ps": None if waited is None else sum(waited) // ranks,
        "collectives": recording.facts()["offloadable"] // ranks,
        "messages": sum(bill["sent_messages"] for bill in bills),
        "bytes": sum(bill["sent_bytes"] for bill in bills),
        "late_receives": late,
        "operations": schedule.count()["operations"],
    }


def remarks_of(facts: dict[str, Any], prices: Prices, strong: bool = False) -> list[str]:
    """Returns what the numbers leave out or assume."""
    remarks = [
        f"{count:,} {description}" + (f" ({time_ns / 1e6:,.1f} ms)" if time_ns else "")
        for description, (count, time_ns) in facts["left_out"].items()
    ]
    remarks += facts["warnings"]
    cut = sum(rank["is_cut"] for rank in facts["recorded"])
    if facts["how"]:
        remarks.append(f"{facts['how']}; {STRONG if strong else WEAK}")
    if not facts["ended"]:
        remarks.append(
            "the trace ends before MPI_Finalize"
            + (f": {cut} ranks are cut where they need what is missing" if cut else "")
        )
    between = sum(rank["between_ns"] for rank in facts["recorded"])
    if between:
        remarks.append(f"{between / 1e6:,.1f} ms between polls in vain are taken as computation (--polls)")
    polled = sum(rank["polled_ns"] for rank in facts["recorded"])
    total = sum(rank["total_ns"] for rank in facts["recorded"])
    if total and polled > total / 100:
        remarks.append(
            f"{polled / total:.0%} of the time was polls in vain (MPI_Test, MPI_Iprobe): taken as waiting"
        )
    if prices.by_rate:
        remarks.append(
            f"{len(prices.by_rate):,} lighter layouts are priced by the byte, as the heaviest ones on average"
        )
    return remarks


def schedule_for_goal(
    folder: Path,
    algorithms: Iterable[str],
    scale: Fraction,
    ranks: int = 0,
    polls: str = "rule",
    strong: bool = False,
) -> Any:
    """The plain schedule: messages, and computation in ns, of one CPU; what message ends cost is the
    reader's."""
    costs = {
        "messages": [],
        "layouts": [],
        "host_layouts": [],
        "scale": predict_ways.ratio(scale),
        "unit_ps": 1000,
        "one_cpu": True,
    }
    return load(folder, algorithms, ranks, polls, strong).schedule(costs)[0]
