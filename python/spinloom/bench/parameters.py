"""LogGOPS parameters of one MPI, measured: what is asked of mpi_parameters.c, in which order, how often.

Contract: measure() starts `ranks` ranks under the MPI, looks for the eager limits, then times everything
(every size, every kind) in each of `passes` passes, so that a disturbed moment meets all of them. A pass
keeps the least of SAMPLES samples, because what else runs here only adds; the slower half of the passes is
left out, because machines change their speed. It ends after TIME_S with the passes that it has. No child
outlives it, and each has a limit on its time. Times are host time.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from spinloom.bench import jobs, mpi_fit
from spinloom.bench.parameters_found import (
    FLOOD_MESSAGES,
    LARGE_BYTES,
    LARGE_STREAM_MESSAGES,
    STREAM_MESSAGES,
    MeasuredTimes,
    Question,
)
from spinloom.common.bar import Bar
from spinloom.common.errors import Trouble

SOURCE = "mpi_parameters.c"
SIZES = (1, 8, 64, 256, *(1 << exponent for exponent in range(10, 23)))
FLOOD_SIZES = (8, 1 << 10, 16 << 10, 256 << 10)
COLLECTIVES = (("barrier", 0), ("allreduce", 8), ("bcast", 8), ("bcast", 64 << 10))
PASSES = 12
SAMPLES = 5  # the samples of each pass
SAMPLE_NS = 100_000  # a sample lasts at least this long: short, so that few are disturbed
LATE_NS = 200_000  # a late receiver comes after so long, and four round trips
LATE_TRIES = 5  # the tries have SAMPLES each
LIMITS_MAX = 6  # searches for a limit, unless two find the same before
LOOKS_MAX = 10  # looks at round trips before anything is timed, unless two agree before
AGREED = 1.1  # the ratio of two looks below which they agree
TIME_S = 40.0
ANSWER_S = 30.0

Timer = Callable[[Question, int, int], list[float]]  # it takes a question, samples, calls of a sample


def cores() -> int:
    return len(os.sched_getaffinity(0))


def measure(
    mpi: jobs.Mpi, ranks: int, passes: int, bar: Bar | None = None, sizes: tuple[int, ...] = SIZES
) -> MeasuredTimes:
    with tempfile.TemporaryDirectory(prefix="spinloom-parameters-") as name:
        folder = Path(name)
        program = folder / "program"
        jobs.compile_program(mpi, SOURCE, program)
        job = jobs.Job(mpi, program, folder / "job", {}, size=ranks, answer_s=ANSWER_S)
        try:

            def timer(question: Question, samples: int, calls: int) -> list[float]:
                answers = job.ask(f"time {question} {samples} {calls}")
                return [float(value) for answer in answers for value in answer.split()]

            return Questioner(timer, ranks, sizes).run(job.name, passes, bar or Bar())
        finally:
            job.close()


class Questioner:
    """The questions and their order, whoever answers them."""

    def __init__(self, timer: Timer, ranks: int, sizes: tuple[int, ...]) -> None:
        self.timer, self.ranks, self.sizes = timer, ranks, sizes
        self.begun = time.monotonic()

    def run(self, mpi: str, passes: int, bar: Bar) -> MeasuredTimes:
        trips = self.shortest_trips(dict.fromkeys(self.sizes, math.inf))
        eager = self.limit("late", trips)
        trips = self.shortest_trips(trips)
        polled = self.limit("polled", trips)
        for _ in range(LOOKS_MAX):
            before, trips = trips, self.shortest_trips(trips)
            if statistics.median(before[size] / trips[size] for size in trips) < AGREED:
                break
        asked = self.questions(trips | self.sizes_at_limits(trips, eager, polled))
        calls = {
            question: max(1, math.ceil(SAMPLE_NS / self.length_ns(question, trips))) for question in asked
        }
        answers = MeasuredTimes(mpi, self.ranks, cores(), eager, polled, wanted=passes)
        bar.expect(passes * len(asked))
        for number in range(passes):
            shift = number * len(asked) // passes
            for question in asked[shift:] + asked[:shift]:
                if number > 0 and self.is_late():
                    return answers.fastest_half()
                answers.times.setdefault(question, []).append(min(self.ask(question, calls[question])))
                bar()
            answers.passes = number + 1
        return answers.fastest_half()

    def is_late(self) -> bool:
        return time.monotonic() - self.begun > TIME_S

    def ask(self, question: Question, calls: int, samples: int = SAMPLES) -> list[float]:
        if self.is_late():
            raise Trouble(
                "environment",
                f"{self.ranks} ranks on {cores()} cores are too slow here: they were not measured once "
                f"within {TIME_S:g} s; try again when less runs beside them",
            )
        return self.timer(question, samples, calls)

    def shortest_trips(self, previous: dict[int, float]) -> dict[int, float]:
        """The shortest round trips: what else runs here only adds, and a smaller message takes no longer.
        The largest comes first, so that the ranks allocate their buffers once."""
        shortest: dict[int, float] = {}
        least = math.inf
        for size in sorted(self.sizes)[::-1]:
            least = min(least, previous[size], *self.ask(Question("prtt", 1, 0, size), 1))
            shortest[size] = max(1.0, least)
        return dict(sorted(shortest.items()))

    def limit(self, kind: str, trips: dict[int, float]) -> int:
        """The longest message whose sender does not wait for a receiver that is late.

        It is the first limit that two searches find; else the least one.
        """

        def waits(size: int) -> bool:
            late = int(LATE_NS + 4 * trip_of_larger(trips, size))
            question = Question(kind, 1, late, size)
            # A send that waits for its receive never returns early. One that does not wait may return late,
            # when its rank has no core, but not in every try.
            return all(min(self.ask(question, 1)) > late / 2 for _ in range(LATE_TRIES))

        limits: list[int] = []
        while len(limits) < LIMITS_MAX and len(limits) == len(set(limits)):
            limits.append(mpi_fit.eager_limit(waits, max(self.sizes)))
        return max(limits, key=lambda limit: (limits.count(limit), -limit))

    def sizes_at_limits(self, trips: dict[int, float], *limits: int) -> dict[int, float]:
        """The sizes on both sides of each limit."""
        sides = {size for limit in limits for size in (limit, limit + 1)}
        return {size: trip_of_larger(trips, size) for size in sides if 1 <= size <= max(self.sizes)}

    def length_ns(self, question: Question, trips: dict[int, float]) -> float:
        """Returns how long a call lasts, whatever part of it is timed."""
        if question.kind in ("send", "receive"):
            return max(1.0, trip_of_larger(trips, question.size) + question.work_ns)
        return max(1.0, min(self.ask(question, 1)))

    def questions(self, trips: dict[int, float]) -> list[Question]:
        asked = [Question("clock")]
        for size, round_trip in sorted(trips.items()):
            away = int(2 * round_trip + 2000)  # the message has come by then
            asked += [
                Question("prtt", 1, 0, size),
                Question("prtt", STREAM_MESSAGES if size < LARGE_BYTES else LARGE_STREAM_MESSAGES, 0, size),
                Question("send", 1, 0, size),
                Question("receive", 1, away, size),
            ]
        least = min(trips)
        pause = int(trips[least] + 1000)
        asked += [Question("prtt", STREAM_MESSAGES, pause, least), Question("work", 1, pause, least)]
        asked += [Question("flood", FLOOD_MESSAGES, 0, size) for size in FLOOD_SIZES if size <= max(trips)]
        return asked + [Question(kind, 1, 0, size) for kind, size in COLLECTIVES]


def trip_of_larger(trips: dict[int, float], size: int) -> float:
    """The round trip of the next larger size."""
    return trips[min(measured for measured in trips if measured >= size)]
