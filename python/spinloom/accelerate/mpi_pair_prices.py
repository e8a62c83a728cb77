"""The times of an MPI library of this machine for a recorded program's messages that are not one block.

Contract: measure() has two ranks of that MPI exchange a message of each pair of layouts, both at once, and as
much in one block, and move a block of their own from one layout to the other by MPI_Alltoallw, after the
bytes that each received were compared with the oracle's. Host times: medians of
single exchanges, before each of which both ranks went over `swept_bytes` of other memory, because programs
compute before they send. An MPI may take quite another way for a layout than for a block, so that the time
is not that of MPI_Pack and MPI_Unpack. Pairs beyond MEASURED_BYTES_MAX are left out.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from spinloom.bench import jobs, peers
from spinloom.bench.rows import Row as BenchRow
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics import results
from spinloom.nics.layout_prices import ResultStore

SOURCE = "mpi_pairs.c"
REPETITIONS = 21
MEASURED_BYTES_MAX = 256 << 20

LayoutUse = tuple[int, int] | None  # (index of a layout of the recording, elements); None: one block


@dataclass(frozen=True)
class Pair:
    """Messages whose layouts at both ends are known."""

    bytes: int
    sent: LayoutUse
    received: LayoutUse
    sent_type: str
    received_type: str
    messages: int
    copies: int  # copies of a rank's own blocks

    @property
    def weight(self) -> int:
        return self.bytes * (self.messages + self.copies)


@dataclass(frozen=True)
class Exchange:
    """ns until both ranks have sent and received; until both have moved a block of their own."""

    layouts_ns: float
    blocks_ns: float
    own_ns: float

    @property
    def more_ns(self) -> float:
        return max(0.0, self.layouts_ns - self.blocks_ns)


@dataclass(frozen=True)
class MeasuredMpi:
    """An MPI of this host, and how much memory its ranks go over between two messages."""

    name: str  # "MPICH 4.0.2"
    host: str
    mpi: jobs.Mpi
    swept_bytes: int

    def key_of(self, pair: Pair) -> str:
        about = {"swept": self.swept_bytes, "mpi": self.name, "host": self.host}
        return results.digest({**about, "sent": pair.sent_type, "received": pair.received_type})


def measure(
    pairs: Iterable[Pair], place: MeasuredMpi, store: ResultStore, advance: Callable[[], None] = lambda: None
) -> dict[Pair, Exchange]:
    """Raises Trouble where the MPI does not run, or gives other bytes than the oracle."""
    wanted = {place.key_of(pair): pair for pair in pairs if 0 < pair.bytes <= MEASURED_BYTES_MAX}
    missing = {key: pair for key, pair in wanted.items() if key not in store.results}
    if missing:
        with tempfile.TemporaryDirectory(prefix="spinloom-predict-") as name:
            measure_missing(missing, place, store, Path(name), advance)
        store.save()
    return {pair: Exchange(**store.results[key]) for key, pair in wanted.items()}


def measure_missing(
    missing: dict[str, Pair],
    place: MeasuredMpi,
    store: ResultStore,
    folder: Path,
    advance: Callable[[], None],
) -> None:
    rows = {
        key: BenchRow(f"pair {number}", "", pair.sent_type, pair.received_type, 0, pair.bytes, None)
        for number, (key, pair) in enumerate(missing.items())
    }
    hand = peers.hand_library(folder, list(rows.values()))
    program = folder / "pairs"
    jobs.compile_program(place.mpi, SOURCE, program)
    job = jobs.Job(place.mpi, program, folder / "job", {})
    try:
        for key, row in rows.items():
            store.results[key] = times_of(row, hand, job, place.swept_bytes, folder)
            advance()
    finally:
        job.close()


def times_of(row: BenchRow, hand: Path, job: jobs.Job, swept_bytes: int, folder: Path) -> dict[str, float]:
    program = folder / "pair.bin"
    try:
        bench = core.load().LayoutBench(row.type, row.to, str(hand), "")
    except core.load().SpinloomError as error:
        raise Trouble(error.code, error.message) from None
    bench.write_program(str(program))
    job.load(program)
    if any(rank_hash != bench.hash("copy") for kind in ("layouts", "own") for rank_hash in job.hashes(kind)):
        raise Trouble("mismatch", f"{job.name}, {row.type} to {row.to}: other bytes than the oracle's")
    return {f"{kind}_ns": exchange_ns(job, kind, swept_bytes) for kind in ("layouts", "blocks", "own")}


def exchange_ns(job: jobs.Job, kind: str, swept_bytes: int) -> float:
    ranks = [
        [float(value) for value in answer.split()]
        for answer in job.ask(f"time {kind}:{swept_bytes} {REPETITIONS} 1")
    ]
    return statistics.median(max(times) for times in zip(*ranks, strict=True))
