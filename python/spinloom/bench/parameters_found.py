"""What the ranks of mpi_parameters.c answered, and what comes of it: parameters, comparisons, warnings.

Contract: Found holds the times of each question, one of each pass; a question's time is their median, its
spread the middle half of them over the median. quieter() leaves out the passes of a slow moment, and refuses
(Trouble) what the rest does not agree about. Nothing here measures: the same answers give the same result.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spinloom.bench import mpi_fit
from spinloom.bench.mpi_parameters import MpiParameters
from spinloom.common.errors import Trouble

STREAM, STREAM_LARGE, LARGE = 16, 4, 512 << 10  # messages from which g and G come; fewer from LARGE bytes on
FLOOD = 64  # messages of the stream that g and G are checked against
SPREAD_MAX = 0.25  # the spread of one time above which there is a warning
PASSES_MIN = 4  # with fewer complete passes there is no result, unless fewer were wanted
NOISE_MAX = 0.5  # with a higher median spread there is no result


class Question(NamedTuple):
    """What is asked of the ranks, see mpi_parameters.c."""

    kind: str
    messages: int = 1
    work_ns: int = 0
    size: int = 1

    def __str__(self) -> str:
        return f"{self.kind}:{self.messages}:{self.work_ns}:{self.size}"


BARRIER = Question("barrier", 1, 0, 0)
# What is compared with a model, by the kind of a question: the name in the table, how many ranks take part
# (None: all of the job), and the function that gives the modelled time.
PREDICTED: dict[str, tuple[str, int | None, Callable[[mpi_fit.Model, int, Question], float]]] = {
    "flood": (f"stream of {FLOOD}", 2, lambda m, _, one: mpi_fit.flood_ns(m, one.messages, one.size)),
    "barrier": ("MPI_Barrier", None, lambda m, ranks, _: mpi_fit.barrier_ns(m, ranks)),
    "allreduce": ("MPI_Allreduce", None, lambda m, ranks, one: mpi_fit.allreduce_ns(m, ranks, one.size)),
    "bcast": ("MPI_Bcast", None, lambda m, ranks, one: mpi_fit.broadcast_ns(m, ranks, one.size)),
}


@dataclass(frozen=True)
class Compared:
    """A measured time beside predictions."""

    what: str
    size_bytes: int
    ranks: int
    measured_ns: float
    model_ns: float  # from the parameters alone
    table_ns: float  # from the table by size
    spread: float


@dataclass
class Found:
    mpi: str
    ranks: int
    cores: int
    eager_bytes: int  # of the largest eager message, while the receiver computes
    polled_bytes: int  # the same, while the receiver is in calls of MPI
    wanted: int  # passes that were asked for
    passes: int = 0  # passes that are complete
    times: dict[Question, list[float]] = field(default_factory=dict)

    def quieter(self) -> Found:
        """Keeps the faster half of the complete passes, so that all times are of one speed of the machine.

        The slowness of a pass is the median of its times, each over that question's median.
        """
        if self.passes < min(self.wanted, PASSES_MIN):
            raise Trouble(
                "exhausted",
                f"the machine was too busy: {self.passes} of {self.wanted} passes were done before time was "
                f"up, and {PASSES_MIN} are needed; nothing was stored. Call it again when less runs here",
            )
        whole = {one: times[: self.passes] for one, times in self.times.items()}
        medians = {one: max(statistics.median(times), 1e-9) for one, times in whole.items()}
        slowness = [
            statistics.median(times[number] / medians[one] for one, times in whole.items())
            for number in range(self.passes)
        ]
        kept = sorted(range(self.passes), key=slowness.__getitem__)[: (self.passes + 1) // 2]
        quiet = replace(self, times={one: [times[i] for i in kept] for one, times in whole.items()})
        noise = statistics.median(quiet.spread(one) for one in quiet.times)
        if noise > NOISE_MAX:
            raise Trouble(
                "exhausted",
                f"the machine was too noisy: the middle half of a time spreads over {noise:.0%} of its "
                f"median, and {NOISE_MAX:.0%} is allowed; nothing was stored. "
                "Call it again when less runs here",
            )
        return quiet

    def ns(self, question: Question) -> float:
        return statistics.median(self.times[question])

    def spread(self, question: Question) -> float:
        times = self.times[question]
        if len(times) < 2:
            return 0.0
        low, middle, high = statistics.quantiles(times, n=4)
        return (high - low) / middle if middle > 0 else 0.0

    def by_size(self, kind: str) -> dict[int, float]:
        return {one.size: self.ns(one) for one in self.times if one.kind == kind and one.messages == 1}

    def timings(self) -> mpi_fit.Timings:
        clock = self.ns(Question("clock"))
        round_trip = self.by_size("prtt")
        alone = {
            kind: {size: max(0.0, ns - clock) for size, ns in self.by_size(kind).items()}
            for kind in ("send", "receive")
        }
        return mpi_fit.Timings(
            round_trip=round_trip,
            many={
                one.size: (one.messages, self.ns(one))
                for one in self.times
                if one.kind == "prtt" and one.messages > 1 and one.work_ns == 0
            },
            send=alone["send"],
            receive=alone["receive"],
            spread={size: self.spread(Question("prtt", 1, 0, size)) for size in round_trip},
            eager_bytes=self.eager_bytes,
            polled_bytes=self.polled_bytes,
        )

    def parameters(self) -> MpiParameters:
        about = {
            "mpi": self.mpi,
            "ranks": self.ranks,
            "cores": self.cores,
            "passes": self.passes,
            "clock_ns": self.ns(Question("clock")),
            "o_send_by_delay_ns": self.send_by_delay(),
        }
        return replace(mpi_fit.fit(self.timings()), about=about)

    def send_by_delay(self) -> float:
        paused = next(one for one in self.times if one.kind == "prtt" and one.work_ns > 0)
        delay = self.ns(Question("work", 1, paused.work_ns, paused.size))
        round_trip = self.ns(Question("prtt", 1, 0, paused.size))
        return mpi_fit.overhead_by_delay(self.ns(paused), round_trip, paused.messages, delay)

    def compared(self, fitted: MpiParameters) -> list[Compared]:
        """A broadcast's time is that with a barrier behind it, less the barrier's."""
        models = (mpi_fit.Model(fitted), mpi_fit.Table(fitted))
        made = []
        for one in self.times:
            if one.kind not in PREDICTED:
                continue
            what, ranks, predict = PREDICTED[one.kind]
            measured = max(0.0, self.ns(one) - (self.ns(BARRIER) if one.kind == "bcast" else 0.0))
            by_model, by_table = (predict(model, self.ranks, one) for model in models)
            spread = self.spread(one)
            made.append(Compared(what, one.size, ranks or self.ranks, measured, by_model, by_table, spread))
        names = [what for what, _, _ in PREDICTED.values()]
        return sorted(made, key=lambda one: (names.index(one.what), one.size_bytes))

    def warnings(self, fitted: MpiParameters) -> list[str]:
        said = []
        if self.cores < 2:
            said.append("two ranks share one core: every time here is that of waiting for it")
        elif self.ranks > self.cores:
            said.append(
                f"{self.ranks} ranks share {self.cores} cores: collective calls wait for cores, which the "
                "model does not know"
            )
        wide = [one for one in self.times if self.spread(one) > SPREAD_MAX]
        if wide:
            said.append(
                f"the middle half of {len(wide)} of {len(self.times)} times spreads over more than "
                f"{SPREAD_MAX:.0%} of the median: something else ran here; measure again on a quiet machine"
            )
        if fitted.L_ns == 0:
            said.append(
                "a send and a receive alone took half a round trip or more: L is set to 0, o to a quarter"
            )
        if fitted.S_bytes >= fitted.table[-1].size_bytes:
            said.append(f"no sender waited for its receiver up to {fitted.S_bytes:,} B: S is at least that")
        if self.passes < self.wanted:
            said.append(f"time was up after {self.passes} of {self.wanted} passes")
        return said
