"""Single cells by description, run once and remembered, for figures and claims.

Contract: a Probe says what to simulate. Lab.run() simulates new probes, several at a time; then Lab[probe] is
a Reading: the engine's columns, or the reason why there are none ("not available"). No reading exists for a
cell whose bytes were not compared. A wrong byte or a stall is not a reason: it is raised as Trouble, except
by copies_bytes, whose every error is a reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from spinloom.common import core, data
from spinloom.common.bar import Bar
from spinloom.common.errors import Trouble
from spinloom.common.futures import as_they_end
from spinloom.handlers import busy
from spinloom.nics import profiles, sweep
from spinloom.nics.machines import Machine
from spinloom.nics.profiles import Profile
from spinloom.nics.sweep import Cell, Setup
from spinloom.nics.workloads import Row
from spinloom.papers import overlap, rank_benches, stations, table1
from spinloom.predict import goal_network

NIC = "sc19-slingshot"
SEED = 1
APPLICATION = "application"
RECORDED = "recorded"
OVERLAP = "overlap"
TABLE1 = "table1"
PING, SLMP, WINDOW = "ping", "slmp", "window"  # stations.py
RAILS, ONE_SIDED = "rails", "one-sided"  # rank_benches.py


@dataclass(frozen=True)
class Probe:
    """One message of a datatype under a strategy, or a study. `changes`: numbers of the profile as text."""

    type: str
    strategy: str
    count: int = 1
    nic: str = NIC
    hpus: int | None = None  # None: as the profile says
    changes: tuple[tuple[str, str], ...] = ()
    record: tuple[str, ...] = ()  # "sample_dma_queue", "trace", "preloaded"
    # There is no message, but the cores copy such blocks from NIC memory to the host, unless 0.
    copies_bytes: int = 0
    # An experiment of src/app/studies/study.hpp, by way `strategy`; or APPLICATION: a program of
    # applications.py, named by `type`, whose layouts `strategy` moves; or RECORDED: a program named by
    # `type`, on `ranks`; or OVERLAP: the collective operation `type` of overlap.py, by way `strategy`; or
    # TABLE1: the counts of table1.py; or PING: `size_bytes` of protocol `type`, answered by way `strategy`;
    # or SLMP: `ranks` messages to the handlers `strategy`; or WINDOW: their first lost packet; or RAILS:
    # `window` messages of `size_bytes` over `count` NICs of a rank; or ONE_SIDED: the latencies of
    # rank_benches.py.
    study: str = ""
    size_bytes: int = 0  # bytes of the experiment's message
    pieces: tuple[tuple[int, int], ...] = ()  # raid, raid-read: offset and bytes at each data node
    ranks: int = 2
    network: str = ""  # multicast, reduce, allreduce: as goal_network.py reads it
    polls: int = 0  # overlap: tests during the computation; slmp: the host computes
    window: int = 1  # slmp: packets without acknowledgement; rails: messages in flight
    once: bool = False  # overlap: schedules are made at each start
    # handlers/busy.py: how long a packet of size_bytes holds an HPU; hpus None asks how many HPUs that needs.
    # window: how long a packet takes its sender.
    service_ps: int = 0


@dataclass(frozen=True)
class Reading:
    columns: dict[str, Any] = field(default_factory=dict)
    reason: str = ""  # the reason why there are no columns

    @property
    def available(self) -> bool:
        return not self.reason

    def __getitem__(self, name: str) -> Any:
        if name not in self.columns:
            raise Trouble("unsupported", self.reason or f"the engine gives no {name}")
        return self.columns[name]


@cache
def profile_of(nic: str, changes: tuple[tuple[str, str], ...] = ()) -> Profile:
    """A shipped profile, with some of its numbers replaced."""
    return profiles.changed(profiles.load(nic), changes)


def vector(block_bytes: int, message_bytes: int) -> str:
    """The vector of the SC'19 paper's microbenchmarks (section 3.2.5): the stride is two blocks."""
    if message_bytes % block_bytes:
        raise ValueError(f"{message_bytes} B are no whole number of blocks of {block_bytes} B")
    return f"hvector({message_bytes // block_bytes}, {block_bytes}, {2 * block_bytes}B, byte)"


def row_probe(row: Row, strategy: str, **more: Any) -> Probe:
    return Probe(row.type, strategy, count=row.count, **more)


class Lab:
    """Readings by probe."""

    def __init__(self, threads: int, images: dict[str, bytes] | None = None) -> None:
        self.threads = threads
        self.images = data.handler_images() if images is None else images
        if not self.images:
            raise Trouble(
                "environment", "there are no handler images; 'make setup' in the checkout builds them"
            )
        self.engine = core.load()
        self.readings: dict[Probe, Reading] = {}
        self.begun: dict[Probe, Future[Reading]] = {}  # nobody has asked for them yet

    def __getitem__(self, probe: Probe) -> Reading:
        if probe not in self.readings:
            self.readings[probe] = self.read(probe)
        return self.readings[probe]

    def has(self, probes: Iterable[Probe]) -> bool:
        return all(probe in self.readings for probe in probes)

    def run(self, probes: Iterable[Probe], bar: Bar | None = None, meanwhile: Iterable[Probe] = ()) -> None:
        """Simulates the new probes, several at a time. Threads that find none left begin those of
        `meanwhile`, which are asked for later."""
        bar = bar or Bar()
        fresh = [probe for probe in dict.fromkeys(probes) if probe not in self.readings]
        bar.expect(len(fresh))
        if not fresh:
            return
        busy_threads = sum(not future.done() for future in self.begun.values())
        pool = ThreadPoolExecutor(max(1, self.threads - busy_threads), thread_name_prefix="spinloom")
        futures = {self.begun.pop(probe, None) or pool.submit(self.read, probe): probe for probe in fresh}
        for probe in dict.fromkeys(meanwhile) if self.threads > 1 else ():
            if probe not in self.readings and probe not in self.begun and probe not in futures.values():
                self.begun[probe] = pool.submit(self.read, probe)
        try:
            for future in as_they_end(futures):
                self.readings[futures[future]] = future.result()
                bar()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self.begun = {probe: each for probe, each in self.begun.items() if not each.cancelled()}

    def read(self, probe: Probe) -> Reading:
        if probe.copies_bytes:
            return self.read_bandwidth(probe)
        if probe.study == APPLICATION:
            return self.read_application(probe)
        if probe.study == RECORDED:
            return self.read_recorded(probe)
        if probe.study == OVERLAP:
            return self.read_overlap(probe)
        if probe.study in (PING, SLMP, WINDOW):
            return self.read_station(probe)
        if probe.study in (RAILS, ONE_SIDED):
            return self.read_bench(probe)
        if probe.study == TABLE1:
            return Reading({"rows": table1.counted(probe.ranks)})
        if probe.study:
            return self.read_study(probe)
        if probe.service_ps:
            return self.read_busy(probe)
        try:
            setup = self.setup(probe)
        except Trouble as trouble:
            return Reading(reason=trouble.message)
        row = Row("lab", probe.type[:40], probe.type, probe.count)
        try:
            outcome = sweep.run_cell(self.engine, Cell(row, probe.strategy), setup)
        except Trouble as trouble:  # this engine does not know the profile's core, the strategy, ...
            return Reading(reason=trouble.message)
        if outcome.code in ("unsupported", "exhausted"):
            return Reading(reason=outcome.message)
        if outcome.code != "ok":
            raise Trouble(outcome.code, f"{outcome.cell}: {outcome.message}")
        return Reading(outcome.columns)

    def read_bandwidth(self, probe: Probe) -> Reading:
        profile = profile_of(probe.nic, probe.changes)
        try:
            columns = self.engine.nic_bandwidth(profile.native(), probe.copies_bytes)
        except self.engine.SpinloomError as error:
            if error.code == "mismatch":
                raise Trouble(error.code, f"copies by {probe.nic}: {error.message}") from None
            return Reading(reason=error.message)
        return Reading(columns)

    def read_busy(self, probe: Probe) -> Reading:
        profile = profile_of(probe.nic, probe.changes)
        try:
            bench = busy.Bench(self.engine, profile, self.images["busy"], probe.size_bytes, probe.service_ps)
            if probe.hpus is None:
                return Reading(busy.hpus_needed(bench, probe.service_ps))
            return Reading(bench.line_part(probe.hpus, probe.service_ps))
        except Trouble as trouble:
            if trouble.code == "unsupported":
                return Reading(reason=trouble.message)
            raise

    def read_study(self, probe: Probe) -> Reading:
        setup = self.setup(probe)
        config = {
            "profile": setup.profile,
            "images": dict(self.images),
            "hpus": setup.hpus,
            "mtu": setup.mtu,
            "order": setup.order,
            "seed": setup.seed,
            "inject": "none",
            "experiment": probe.study,
            "way": probe.strategy,
            "bytes": probe.size_bytes,
            "ranks": probe.ranks,
        }
        if probe.pieces:
            config["pieces"] = list(probe.pieces)
        if probe.network:
            config["network"] = goal_network.parse(probe.network)
        try:
            return Reading(self.engine.run_study(config))
        except self.engine.SpinloomError as error:
            if error.code == "unsupported":
                return Reading(reason=error.message)
            raise Trouble(error.code, f"{probe.study} by {probe.strategy}: {error.message}") from None

    def read_station(self, probe: Probe) -> Reading:
        bench = stations.Bench(self.engine, profile_of(probe.nic, probe.changes), self.images)
        if probe.study == PING:
            return Reading(bench.ping(probe.type, probe.strategy, probe.size_bytes))
        if probe.study == WINDOW:
            return Reading(bench.window(probe.strategy, probe.service_ps))
        run = bench.overlapped if probe.polls else bench.slmp
        return Reading(run(probe.type, probe.count, probe.ranks, probe.strategy, window=probe.window))

    def read_application(self, probe: Probe) -> Reading:
        """Columns: way -> Outcome."""
        from spinloom.predict import applications

        profile = profile_of(probe.nic, probe.changes)
        machine = Machine(profile, profile["hpu.count"], profile["link.payload"], "in", SEED)
        bench = applications.Bench(machine, tuple(filter(None, [probe.strategy])))
        try:
            outcomes = bench.outcomes(probe.type, probe.ranks, applications.ways(probe.strategy))
        except Trouble as trouble:
            if trouble.code == "unsupported":
                return Reading(reason=trouble.message)
            raise
        return Reading({outcome.way: outcome for outcome in outcomes})

    def read_recorded(self, probe: Probe) -> Reading:
        """Columns: way -> row of a prediction."""
        from spinloom.predict import applications, predict

        profile = profile_of(probe.nic, probe.changes)
        machine = Machine(profile, profile["hpu.count"], profile["link.payload"], "in", SEED)
        try:
            recording = predict.load(data.folder("recorded") / probe.type, ranks=probe.ranks)
            rows = applications.Bench(machine).rows(recording, applications.COLLECTIVE_WAYS)
        except Trouble as trouble:
            if trouble.code == "unsupported":
                return Reading(reason=trouble.message)
            raise
        return Reading({row["way"]: row for row in rows})

    def read_overlap(self, probe: Probe) -> Reading:
        profile = profile_of(probe.nic, probe.changes)
        try:
            columns = overlap.measured(
                profile, probe.type, probe.strategy, probe.size_bytes, probe.ranks, probe.polls, probe.once
            )
        except Trouble as trouble:
            if trouble.code == "environment":  # there is no compiler
                return Reading(reason=trouble.message)
            raise
        return Reading(columns)

    def read_bench(self, probe: Probe) -> Reading:
        profile = profile_of(probe.nic, probe.changes)
        try:
            if probe.study == ONE_SIDED:
                return Reading(rank_benches.one_sided(profile))
            return Reading(rank_benches.rails(profile, probe.count, probe.window, probe.size_bytes))
        except Trouble as trouble:
            if trouble.code == "environment":  # there is no compiler
                return Reading(reason=trouble.message)
            raise

    def setup(self, probe: Probe) -> Setup:
        profile = profile_of(probe.nic, probe.changes)
        return Setup(
            profile=profile.native(),
            images=self.images,
            hpus=probe.hpus or profile["hpu.count"],
            mtu=profile["link.payload"],
            order="in",
            seed=SEED,
            record=probe.record,
        )
