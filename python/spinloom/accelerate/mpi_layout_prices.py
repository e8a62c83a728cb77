"""The times that an MPI library of this machine takes to pack and unpack the layouts of a recorded program.

Contract: measure() times MPI_Pack and MPI_Unpack of each layout in a process of the MPI whose compiler
wrapper it is given, after its bytes were compared with the oracle's, and memcpy of as many bytes. It raises
Trouble if that is not the MPI that was named. Host times: medians of single calls. Before each call
`swept_bytes` of other memory are written, because programs compute before they send. swept_for() is the
memory that the messages of a rank lie in: at least twice the first two caches, at most SWEPT_BYTES_MAX.
Layouts beyond MEASURED_BYTES_MAX are left out.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.accelerate import calibration
from spinloom.bench import peers
from spinloom.bench.rows import Row as BenchRow
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics import results
from spinloom.nics.layout_prices import ResultStore, Use
from spinloom.traces import recorded

REPETITIONS = 21
MEASURED_BYTES_MAX = 256 << 20
SWEPT_BYTES_MAX = 64 << 20


@dataclass(frozen=True)
class LayoutTimes:
    """The times of one layout, in ns."""

    pack_ns: float
    unpack_ns: float
    memcpy_ns: float


def swept_for(folder: Path) -> int:
    least = 2 * sum(size for size, _ in calibration.caches()[:2])
    return min(SWEPT_BYTES_MAX, max(least, *(memory_of(trace) for trace in recorded.read(folder))))


def memory_of(trace: Any) -> int:
    """Bytes in which a rank's messages lie, gaps of layouts included."""
    types = trace.types()
    spans = set()
    for signature in trace.signatures():
        for address, count, number in signature["sends"] + signature["receives"]:
            if number < len(types) and count > 0:
                spans.add((address, address + count * abs(types[number]["extent_bytes"])))
    total = end = 0
    for begin, after in sorted(spans):
        total += max(0, after - max(begin, end))
        end = max(end, after)
    return total


def key_of(mpi: str, host: str, swept_bytes: int, use: Use) -> str:
    return results.digest(
        {"swept": swept_bytes, "mpi": mpi, "host": host, "type": use.type, "count": use.count}
    )


def measure(
    uses: Iterable[Use],
    mpi: str,
    host: str,
    compiler: Path,
    swept_bytes: int,
    store: ResultStore,
    advance: Callable[[], None] = lambda: None,
) -> dict[Use, LayoutTimes]:
    """`mpi` is its name, such as "MPICH 4.0.2", `compiler` the wrapper that compiles for it."""
    uses = list(uses)
    by_key = {key_of(mpi, host, swept_bytes, use): use for use in uses if 0 < use.bytes <= MEASURED_BYTES_MAX}
    missing = {key: use for key, use in by_key.items() if key not in store.results}
    if missing:
        with tempfile.TemporaryDirectory(prefix="spinloom-predict-") as name:
            measure_missing(missing, mpi, compiler, swept_bytes, store, Path(name), advance)
        store.save()
    times = {}
    for use in uses:
        stored = store.results.get(key_of(mpi, host, swept_bytes, use))
        if stored is not None:
            times[use] = LayoutTimes(stored["pack_ns"], stored["unpack_ns"], stored["memcpy_ns"])
    return times


def measure_missing(
    missing: dict[str, Use],
    mpi: str,
    compiler: Path,
    swept_bytes: int,
    store: ResultStore,
    folder: Path,
    advance: Callable[[], None],
) -> None:
    rows = {}
    for number, (key, use) in enumerate(missing.items()):
        text = use.type if use.count == 1 else f"contig({use.count}, {use.type})"
        rows[key] = BenchRow(f"layout {number}", "", text, text, 0, use.bytes, None)
    hand = peers.hand_library(folder, list(rows.values()))
    try:
        running = peers.start(compiler, folder / "mpi_pack")
    except Trouble as trouble:
        raise Trouble(trouble.code, f"{compiler}, which the parameters name: {trouble.message}") from None
    try:
        if running.name != mpi:
            raise Trouble(
                "invalid",
                f"the parameters are of {mpi}, but {compiler} is that of {running.name} now: "
                f"'spinloom calibrate mpi {compiler}' measures it",
            )
        for key, row in rows.items():
            store.results[key] = times_of(row, hand, running, swept_bytes, folder)
            advance()
    except core.load().SpinloomError as error:
        raise Trouble(error.code, error.message) from None
    finally:
        running.close()


def times_of(row: BenchRow, hand: Path, mpi: peers.Mpi, swept_bytes: int, folder: Path) -> dict[str, float]:
    program = folder / "layout.bin"
    bench = core.load().LayoutBench(row.type, row.to, str(hand), "")
    bench.write_program(str(program))
    mpi.load(program)
    for operation in ("pack", "unpack"):
        if mpi.hash(operation) != bench.hash(operation):
            raise Trouble("mismatch", f"{mpi.name}, {operation} of {row.type}: other bytes than the oracle's")
    return {
        f"{operation}_ns": statistics.median(mpi.time_swept(operation, REPETITIONS, swept_bytes))
        for operation in ("pack", "unpack", "memcpy")
    }
