"""What an MPI library of this machine takes to pack and unpack the layouts of a recorded program.

Contract: measure() times MPI_Pack and MPI_Unpack of each layout in a process of that MPI, after its bytes
were compared with the oracle's, and memcpy of as many bytes. Host times: medians of single calls, before each
of which other memory of twice the size of the first two caches was written, because programs compute before
they send. Layouts beyond MEASURED_BYTES_MAX are left out.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from spinloom import calibration, core, results
from spinloom.bench import peers
from spinloom.bench.rows import Row as BenchRow
from spinloom.errors import Trouble
from spinloom.layout_prices import Memory, Use

REPETITIONS = 21
MEASURED_BYTES_MAX = 256 << 20


@dataclass(frozen=True)
class Moved:
    """Of one layout, ns."""

    pack_ns: float
    unpack_ns: float
    memcpy_ns: float


def key_of(mpi: str, host: str, use: Use) -> str:
    return results.digest({"way": "swept", "mpi": mpi, "host": host, "type": use.type, "count": use.count})


def measure(
    uses: Iterable[Use], mpi: str, host: str, memory: Memory, advance: Callable[[], None] = lambda: None
) -> dict[Use, Moved] | None:
    """None: that MPI does not run here."""
    uses = list(uses)
    alike = {key_of(mpi, host, use): use for use in uses if 0 < use.bytes <= MEASURED_BYTES_MAX}
    missing = {key: use for key, use in alike.items() if key not in memory.known}
    if missing:
        with tempfile.TemporaryDirectory(prefix="spinloom-predict-") as name:
            if not measure_missing(missing, mpi, memory, Path(name), advance):
                return None
        memory.save()
    found = {}
    for use in uses:
        known = memory.known.get(key_of(mpi, host, use))
        if known is not None:
            found[use] = Moved(known["pack_ns"], known["unpack_ns"], known["memcpy_ns"])
    return found


def measure_missing(
    missing: dict[str, Use], mpi: str, memory: Memory, folder: Path, advance: Callable[[], None]
) -> bool:
    rows = {}
    for number, (key, use) in enumerate(missing.items()):
        text = use.type if use.count == 1 else f"contig({use.count}, {use.type})"
        rows[key] = BenchRow(f"layout {number}", "", text, text, 0, use.bytes, None)
    running = peers.mpis(folder)
    try:
        chosen = [one for one in running if one.name == mpi]
        if not chosen:
            return False
        hand = peers.hand_library(folder, list(rows.values()))
        for key, row in rows.items():
            memory.known[key] = times_of(row, hand, chosen[0], folder / "layout.bin")
            advance()
    except core.load().SpinloomError as error:
        raise Trouble(error.code, error.message) from None
    finally:
        for one in running:
            one.close()
    return True


def times_of(row: BenchRow, hand: Path, mpi: peers.Mpi, program: Path) -> dict[str, float]:
    bench = core.load().LayoutBench(row.type, row.to, str(hand), "")
    bench.write_program(str(program))
    mpi.load(program)
    for operation in ("pack", "unpack"):
        if mpi.hash(operation) != bench.hash(operation):
            raise Trouble("mismatch", f"{mpi.name}, {operation} of {row.type}: other bytes than the oracle's")
    swept = 2 * sum(size for size, _ in calibration.caches()[:2])
    return {
        f"{operation}_ns": statistics.median(mpi.time_swept(operation, REPETITIONS, swept))
        for operation in ("pack", "unpack", "memcpy")
    }
