"""The answers of the ranks of mpi_parameters.c, and their results: parameters, comparisons, warnings.

Contract: MeasuredTimes holds the times of each question, one of each pass. A question's time is their
median; its spread is the width of their middle half over the median. fastest_half() leaves out the passes of
a slow moment, and raises Trouble where the rest do not agree. Nothing here measures: the same answers give
the same result.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spinloom.bench import mpi_fit
from spinloom.bench.mpi_parameters import MpiParameters
from spinloom.common.errors import Trouble

# g and G are fitted to streams of STREAM_MESSAGES, or LARGE_STREAM_MESSAGES of LARGE_BYTES and more.
STREAM_MESSAGES, LARGE_STREAM_MESSAGES, LARGE_BYTES = 16, 4, 512 << 10
FLOOD_MESSAGES = 64  # The stream that checks g and G has this many messages.
SPREAD_MAX = 0.25  # A time with a larger spread gives a warning.
PASSES_MIN = 4  # Fewer complete passes give no result, unless the user wanted fewer.
NOISE_MAX = 0.5  # A larger median of all spreads gives no result.


class Question(NamedTuple):
    """A line that the ranks of mpi_parameters.c answer with one time."""

    kind: str
    messages: int = 1
    work_ns: int = 0
    size: int = 1

    def __str__(self) -> str:
        return f"{self.kind}:{self.messages}:{self.work_ns}:{self.size}"


BARRIER = Question("barrier", 1, 0, 0)
# The questions that are compared with a model, by kind: the name in the table, the number of ranks (None: all
# of the job), and the function that returns the modelled time.
PREDICTED: dict[str, tuple[str, int | None, Callable[[mpi_fit.Model, int, Question], float]]] = {
    "flood": (
        f"stream of {FLOOD_MESSAGES}",
        2,
        lambda m, _, one: mpi_fit.flood_ns(m, one.messages, one.size),
    ),
    "barrier": ("MPI_Barrier", None, lambda m, ranks, _: mpi_fit.barrier_ns(m, ranks)),
    "allreduce": ("MPI_Allreduce", None, lambda m, ranks, one: mpi_fit.allreduce_ns(m, ranks, one.size)),
    "bcast": ("MPI_Bcast", None, lambda m, ranks, one: mpi_fit.broadcast_ns(m, ranks, one.size)),
}


@dataclass(frozen=True)
class Comparison:
    """A measured time beside predictions."""

    what: str
    size_bytes: int
    ranks: int
    measured_ns: float
    model_ns: float  # the time that the parameters alone give
    table_ns: float  # the time that the table by size gives
    spread: float


@dataclass
class MeasuredTimes:
    mpi: str
    ranks: int
    cores: int
    eager_bytes: int  # the size of the largest message that is sent eagerly while the receiver computes
    polled_bytes: int  # the size of the largest one that is sent eagerly while the receiver is in MPI calls
    wanted: int  # passes that were asked for
    passes: int = 0  # passes that are complete
    times: dict[Question, list[float]] = field(default_factory=dict)

    def fastest_half(self) -> MeasuredTimes:
        """Returns the times of the faster half of the complete passes, those of one speed of the machine.

        The slowness of a pass is the median of its times, each over that question's median.
        """
        if self.passes < min(self.wanted, PASSES_MIN):
            raise Trouble(
                "exhausted",
                f"the machine was too busy: {self.passes} of {self.wanted} passes were done before time was "
                f"up, and {PASSES_MIN} are needed; nothing was stored. Call it again when less runs here",
            )
        complete = {question: times[: self.passes] for question, times in self.times.items()}
        medians = {question: max(statistics.median(times), 1e-9) for question, times in complete.items()}
        slowness = [
            statistics.median(times[number] / medians[question] for question, times in complete.items())
            for number in range(self.passes)
        ]
        fastest_passes = sorted(range(self.passes), key=slowness.__getitem__)[: (self.passes + 1) // 2]
        fastest = replace(
            self, times={question: [times[i] for i in fastest_passes] for question, times in complete.items()}
        )
        noise = statistics.median(fastest.spread(question) for question in fastest.times)
        if noise > NOISE_MAX:
            raise Trouble(
                "exhausted",
                f"the machine was too noisy: the middle half of a time spreads over {noise:.0%} of its "
                f"median, and {NOISE_MAX:.0%} is allowed; nothing was stored. "
                "Call it again when less runs here",
            )
        return fastest

    def ns(self, question: Question) -> float:
        return statistics.median(self.times[question])

    def spread(self, question: Question) -> float:
        times = self.times[question]
        if len(times) < 2:
            return 0.0
        low, middle, high = statistics.quantiles(times, n=4)
        return (high - low) / middle if middle > 0 else 0.0

    def by_size(self, kind: str) -> dict[int, float]:
        return {
            question.size: self.ns(question)
            for question in self.times
            if question.kind == kind and question.messages == 1
        }

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
                question.size: (question.messages, self.ns(question))
                for question in self.times
                if question.kind == "prtt" and question.messages > 1 and question.work_ns == 0
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
        paused = next(question for question in self.times if question.kind == "prtt" and question.work_ns > 0)
        delay = self.ns(Question("work", 1, paused.work_ns, paused.size))
        round_trip = self.ns(Question("prtt", 1, 0, paused.size))
        return mpi_fit.overhead_by_delay(self.ns(paused), round_trip, paused.messages, delay)

    def comparisons(self, fitted: MpiParameters) -> list[Comparison]:
        """A broadcast's time is that with a barrier behind it, less the barrier's."""
        models = (mpi_fit.Model(fitted), mpi_fit.TableModel(fitted))
        comparisons = []
        for question in self.times:
            if question.kind not in PREDICTED:
                continue
            title, ranks, predict = PREDICTED[question.kind]
            measured = max(0.0, self.ns(question) - (self.ns(BARRIER) if question.kind == "bcast" else 0.0))
            by_model, by_table = (predict(model, self.ranks, question) for model in models)
            spread = self.spread(question)
            comparisons.append(
                Comparison(title, question.size, ranks or self.ranks, measured, by_model, by_table, spread)
            )
        names = [title for title, _, _ in PREDICTED.values()]
        return sorted(comparisons, key=lambda each: (names.index(each.what), each.size_bytes))

    def warnings(self, fitted: MpiParameters) -> list[str]:
        lines = []
        if self.cores < 2:
            lines.append("two ranks share one core: every time here is that of waiting for it")
        elif self.ranks > self.cores:
            lines.append(
                f"{self.ranks} ranks share {self.cores} cores: collective calls wait for cores, which the "
                "model does not know"
            )
        wide = [question for question in self.times if self.spread(question) > SPREAD_MAX]
        if wide:
            lines.append(
                f"the middle half of {len(wide)} of {len(self.times)} times spreads over more than "
                f"{SPREAD_MAX:.0%} of the median: something else ran here; measure again on a quiet machine"
            )
        if fitted.L_ns == 0:
            lines.append(
                "a send and a receive alone took half a round trip or more: L is set to 0, o to a quarter"
            )
        if fitted.S_bytes >= fitted.table[-1].size_bytes:
            lines.append(f"no sender waited for its receiver up to {fitted.S_bytes:,} B: S is at least that")
        if self.passes < self.wanted:
            lines.append(f"time was up after {self.passes} of {self.wanted} passes")
        return lines
