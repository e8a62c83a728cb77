"""Whole programs as skeletons, predicted under the ways to move their messages.

Contract: program() is what all ranks do, step by step. Bench.outcomes() gives for each way the modelled time
of a run and the share of it that is not computation. Computation is not measured: it is as long as makes
communication the share that the paper states, under the host's MPI and on the ranks that it states it for;
with other ranks it is divided as the work is. Input is generated, and whoever prints these numbers says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

from spinloom.common import core
from spinloom.common.errors import Trouble, nearest
from spinloom.nics import deliveries, layout_prices
from spinloom.nics.layout_prices import Cells, ResultStore
from spinloom.nics.machines import Machine
from spinloom.predict import predict, predict_ways

BASELINE = predict_ways.BASELINE
# Non-blocking collective operations: carried on by CPUs, executed by NICs.
COLLECTIVE_WAYS = (predict_ways.MATCHING, predict_ways.COLLECTIVES)
FFT2D = "FFT2D"
FFT2D_SIDE = 20480  # SC'19 paper, section 5.4
FFT2D_RANKS = 64  # the paper states the shares for these:
FFT2D_SHARE = Fraction(40, 100)  # communication's share
GUESSES = 4


@dataclass(frozen=True)
class Application:
    """A halo exchange on a grid, then all-reduces, step after step."""

    name: str
    about: str
    source: str
    grid: tuple[int, ...]
    faces: tuple[str, ...]
    beside: float  # the share of the computation that runs while messages are under way
    allreduces: int
    steps: int
    point_to_point_percent: float
    paper_gain_percent: float

    @property
    def ranks(self) -> int:
        product = 1
        for extent in self.grid:
            product *= extent
        return product

    @property
    def share(self) -> Fraction:
        return Fraction(str(self.point_to_point_percent)) / 100

    def step(self, compute_ns: int) -> list[dict[str, Any]]:
        beside = round(compute_ns * self.beside)
        halo = {
            "kind": "halo",
            "grid": list(self.grid),
            "types": [(face, face) for face in self.faces],
            "compute_ns": beside,
        }
        return [{"kind": "compute", "compute_ns": compute_ns - beside}, halo]

    def step_with_reduces(self, compute_ns: int) -> list[dict[str, Any]]:
        return [*self.step(compute_ns), *[{"kind": "allreduce", "bytes": 8}] * self.allreduces]


@cache
def all_applications() -> dict[str, Application]:
    path = Path(__file__).with_name("applications.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["application"]
    listed = [
        Application(
            **{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
        )
        for table in tables
    ]
    return {application.name: application for application in listed}


def fft2d_step(ranks: int, compute_ns: int) -> list[dict[str, Any]]:
    """Rows are transformed, transposed, transformed, transposed back: each transposition is an all-to-all
    whose types do it (SC'19 paper, section 5.4). A rank has side / ranks rows of complex numbers of 16 B."""
    if ranks < 1 or FFT2D_SIDE % ranks:
        raise Trouble("invalid", f"{FFT2D} on {ranks} ranks: {FFT2D_SIDE} rows are not divided by it")
    rows = FFT2D_SIDE // ranks
    sent = f"vector({rows}, {rows}, {FFT2D_SIDE}, contig(2, double))"
    received = f"contig({rows}, resized(0B, 16B, vector({rows}, 1, {FFT2D_SIDE}, contig(2, double))))"
    transposed = {"kind": "alltoall", "types": [(sent, received)]}
    half = {"kind": "compute", "compute_ns": compute_ns // 2}
    return [half, transposed, half, transposed]


@dataclass(frozen=True)
class Program:
    """The steps of every rank, as functions of a step's computation in ns: with all-reduces and without."""

    ranks: int
    steps: int
    step: Callable[[int], list[dict[str, Any]]]
    messages_only: Callable[[int], list[dict[str, Any]]]


def program(name: str, ranks: int | None = None) -> Program:
    """ranks: of FFT2D only; the others have those of the paper. Raises Trouble('invalid')."""
    if name == FFT2D:
        count = ranks or FFT2D_RANKS
        step = partial(fft2d_step, count)
        return Program(count, 1, step, step)
    if name not in all_applications():
        raise Trouble(
            "invalid", f"there is no application '{name}'{nearest(name, [FFT2D, *all_applications()])}"
        )
    application = all_applications()[name]
    if ranks not in (None, application.ranks):
        raise Trouble("invalid", f"{name} has {application.ranks} ranks here, not {ranks}")
    return Program(application.ranks, application.steps, application.step_with_reduces, application.step)


def ways(strategy: str = "") -> tuple[str, ...]:
    """The ways under which a program is predicted, the host's MPI first."""
    basic = (BASELINE, predict_ways.RDMA, predict_ways.MATCHING)
    return (*basic, predict_ways.OFFLOAD + strategy) if strategy else basic


@dataclass(frozen=True)
class Outcome:
    way: str
    time_ps: int
    communication_share: float


class Bench:
    """Predictions of skeletons on one machine; layouts are simulated once."""

    def __init__(self, machine: Machine, strategies: tuple[str, ...] = (), threads: int = 0) -> None:
        self.machine = machine
        self.strategies = list(strategies)
        self.threads = threads
        self.store = ResultStore(None)

    def run(
        self, ranks: int, step: list[dict[str, Any]], steps: int, wanted: tuple[str, ...]
    ) -> list[Outcome]:
        engine = core.load()
        try:
            recording = engine.skeleton_recording(ranks, step, steps, [])
        except engine.SpinloomError as error:
            raise Trouble(error.code, error.message) from None
        rows = self.rows(recording, wanted)
        return [Outcome(row["way"], row["time_ps"], row["communication_share"]) for row in rows]

    def rows(self, recording: Any, wanted: tuple[str, ...]) -> list[dict[str, Any]]:
        """The rows of these ways, as predict.predict() gives them."""
        cells = Cells(self.machine, self.store)
        predict_ways.want_network(cells)
        uses = predict.uses_of(recording)
        prices = layout_prices.price(uses, cells, self.strategies, len(uses), self.threads, lambda: None)
        network = predict_ways.network_of(self.machine, cells)
        asking = deliveries.asking_prices(
            self.machine, self.store, predict_ways.eager_bytes_of(network) + 1, network.call_ps
        )
        ways = predict_ways.ways(network, prices, self.strategies, asking=asking, collectives=True)
        by_name = {way.name: way for way in ways}
        return [
            predict.row_of(recording, way, network.G, predict.replayed(recording, way))
            for way in map(by_name.__getitem__, wanted)
        ]

    def compute_ns(self, skeleton: Program, share: Fraction) -> int:
        """The computation of a step with which messages have this share of the time under the host's MPI. It
        is looked for: what is computed beside messages changes what they take."""
        host = (BASELINE,)
        compute = 0
        for _ in range(GUESSES):
            (outcome,) = self.run(skeleton.ranks, skeleton.messages_only(compute), skeleton.steps, host)
            messages_ns = Fraction(outcome.time_ps, 1000 * skeleton.steps) - compute
            others_ns = Fraction(self.reduces_ps(skeleton, compute, outcome), 1000 * skeleton.steps)
            compute = max(0, round(messages_ns * (1 - share) / share - others_ns))
        return compute

    def reduces_ps(self, skeleton: Program, compute_ns: int, messages_only: Outcome) -> int:
        """Returns what all-reduces add to a run of the messages alone, under the host's MPI."""
        step = skeleton.step(compute_ns)
        if step == skeleton.messages_only(compute_ns):
            return 0
        (with_reduces,) = self.run(skeleton.ranks, step, skeleton.steps, (BASELINE,))
        return with_reduces.time_ps - messages_only.time_ps

    def outcomes(self, name: str, ranks: int | None, ways: tuple[str, ...]) -> list[Outcome]:
        skeleton = program(name, ranks)
        if name == FFT2D:
            stated = program(name, FFT2D_RANKS)
            compute = self.compute_ns(stated, FFT2D_SHARE) * FFT2D_RANKS // skeleton.ranks
        else:
            compute = self.compute_ns(skeleton, all_applications()[name].share)
        results = self.run(skeleton.ranks, skeleton.messages_only(compute), skeleton.steps, ways)
        host = next(outcome for outcome in results if outcome.way == BASELINE)
        # All-reduces stay with the host, as in the SC'17 paper, whatever moves the messages: every way takes
        # the time for them that the host's MPI takes.
        others_ps = self.reduces_ps(skeleton, compute, host)
        computed_ps = compute * 1000 * skeleton.steps
        times = [(outcome.way, outcome.time_ps + others_ps) for outcome in results]
        return [Outcome(way, time_ps, round(1 - computed_ps / time_ps, 4)) for way, time_ps in times]
