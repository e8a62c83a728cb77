"""The prices of copy_model on the host at hand: measured, kept in a file, found again.

Contract: measure() times small datatypes of every shape and size in every level of the caches, several passes
apart in time, and keeps the fastest of each: what else runs on the machine only ever adds. It ends after
PASSES passes, or behind the second or a later one when CPU_SECONDS of processor time are spent. Passes are
kept in the file `partial`, if the caller gives one, until save() removes it, and a later call goes on behind
them. Where the two fastest passes do not agree, the machine was too noisy, and there is no calibration:
Trouble. path() is the file that load() reads: $XDG_CACHE_HOME/spinloom/calibration.json (~/.cache without
it). A file of another processor or version of the format is not used: load() then gives the prices that come
with Spinloom and says why.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.accelerate import copy_model
from spinloom.accelerate.copy_model import Caches, Prices, Sample
from spinloom.common import core, documents, files, private
from spinloom.common.errors import Trouble

SHIPPED = Path(__file__).with_name("calibration.json")  # the prices of a machine that was calibrated
FORMAT = 2
DEFAULT_CACHES: Caches = ((32 << 10, 8), (1 << 20, 8), (32 << 20, 16))
BLOCKS = (4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096)
PASSES, SAMPLES = 5, 15
CPU_SECONDS = 60.0  # processor time of this process; looked at between passes
NOISE_MAX = 0.10  # the median difference of a message's two fastest passes that is accepted
SPAN_MAX = 128 << 20  # bytes of memory that one datatype may span


@dataclass(frozen=True)
class Calibration:
    """Prices by movement, and the machine that they belong to."""

    identity: dict[str, Any]
    caches: Caches
    prices: dict[str, Prices]
    measured: str  # the time at which it was measured
    origin: str = ""  # the file that it was read from

    def as_document(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "identity": self.identity,
            "measured": self.measured,
            "caches": [list(level) for level in self.caches],
            "prices_ns": {name: prices.as_document() for name, prices in self.prices.items()},
        }


# ---- the machine ----


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> Caches:
    """Bytes and ways of the data caches; a common processor's where the system does not say."""
    by_level: dict[int, tuple[int, int]] = {}
    for index in files.names_if_readable(folder):
        try:
            kind, level, size, ways = (
                (folder / index / name).read_text(encoding="utf-8").strip()
                for name in ("type", "level", "size", "ways_of_associativity")
            )
            if kind != "Instruction":
                by_level[int(level)] = (int(size.removesuffix("K")) << 10, max(1, int(ways)))
        except (OSError, ValueError):
            continue
    return tuple(by_level.get(level, DEFAULT_CACHES[level - 1]) for level in (1, 2, 3))


def identity() -> dict[str, Any]:
    return {"processor": processor(), "machine": platform.machine(), "caches": [list(c) for c in caches()]}


# ---- what is measured ----


@dataclass(frozen=True)
class Bench:
    """A datatype to be timed. `price`: (shape, bytes of a block) if its time gives that block's price."""

    text: str
    price: tuple[str, int] | None = None


def far_stride(block: int) -> int:
    """A stride that puts blocks on lines of their own, with gaps that no kernel reads over."""
    return block + max(block, 64) + 64


def irregular_list(block: int, blocks: int) -> str:
    """Equal blocks with irregular gaps."""
    at, places = 0, []
    for i in range(blocks):
        places.append(f"{at}B")
        at += block * (2 + i * 7919 % 3) + (4 if block < 8 else 0)
    return f"hidxblock(1, [{', '.join(places)}], contig({block}, byte))"


def runs(block: int, blocks: int, every: int) -> str:
    """Runs of `block` bytes, every `every`-th twice as long, as where neighbours met."""
    at, pairs = 0, []
    for i in range(blocks):
        length = block if (i + 1) % every else 2 * block
        pairs.append(f"{at}Bx{length}")
        at += length + block + i * 31 % 3 * 8
    return f"hindexed([{', '.join(pairs)}], byte)"


def scattered_struct(fields: int) -> str:
    """Fields of 4 and 12 bytes, so far apart that none shares a window with another."""
    fields_text = ", ".join(f"{152 * i}Bx{4 + i % 2 * 8}" for i in range(fields))
    return f"resized(0B, {160 * fields}B, hindexed([{fields_text}], byte))"


# Structs by the bytes of windows that move one: 6 where one window moves five, 512 for sixteen windows.
STRUCTS = {
    6: "resized(0B, 12B, hindexed([0Bx3, 8Bx4], byte))",
    16: "resized(0B, 32B, hindexed([0Bx4, 8Bx24], byte))",
    32: "resized(0B, 80B, hindexed([0Bx4, 8Bx24], byte))",
    64: "resized(0B, 96B, hindexed([0Bx4, 40Bx24], byte))",
    96: "resized(0B, 200B, hindexed([0Bx4, 64Bx8, 128Bx4], byte))",
    **{32 * n: scattered_struct(n) for n in (4, 8, 16)},
}


def benches(levels: Caches) -> Iterator[Bench]:
    """The datatypes: sets of two thirds of L1 for prices of blocks, larger ones for lines and pages."""
    small = levels[0][0] * 2 // 3
    for block in BLOCKS:
        stride = far_stride(block)
        yield Bench(
            f"hvector({max(2, small // (stride + block))}, {block}, {stride}B, byte)", ("vector", block)
        )
        yield Bench(f"hvector({max(2, small // (3 * block))}, {block}, {2 * block}B, byte)", ("dense", block))
        yield Bench(irregular_list(block, max(4, small // (4 * block))), ("list", block))
    for block in (4, 8, 16, 32):
        side = max(32, int((small / (3 * block)) ** 0.5) // 16 * 16)  # kernels go by tiles: whole ones
        yield Bench(transpose(block, side), ("across", block))
        for larger in (4 * side, 13 * side, 40 * side):
            yield Bench(transpose(block, larger))
    in_l2, in_l3, in_memory = levels[1][0] * 2 // 5, levels[2][0] // 4, levels[2][0] * 2
    for total in (in_l2, in_l3, in_memory):
        for block in (8, 64, 256, 1024, 4096) if total != in_memory else (8, 256, 4096):
            stride = far_stride(block)
            yield Bench(f"hvector({total // (stride + block)}, {block}, {stride}B, byte)")
    for stride in (336, 1232, 2064, 4160, 16448):
        for block in (8, 48):
            for blocks in (96, in_l2 // 512, in_l2 // 128, min(in_l3 // 128, SPAN_MAX // stride)):
                yield Bench(f"hvector({blocks}, {block}, {stride}B, byte)")
    for total in (in_l2, in_l3):
        for block in (4, 12, 64):
            yield Bench(irregular_list(block, total // (4 * block) if block > 4 else total // 40))
            places = total // (2 * 64)
            yield Bench(f"idxblock(1, rand(1, {3 * places}, {places}), contig({block}, byte))")
    for block in (8, 24, 48, 96, 256, 1024):
        blocks = max(8, small // (3 * block))
        yield Bench(runs(block, blocks, 50), ("runs", block))
        yield Bench(runs(block, blocks, 3))
    for windows, text in STRUCTS.items():
        yield Bench(f"contig({max(16, small // (6 * windows))}, {text})", ("structs", windows))
    for total in (in_l2, in_l3):
        yield Bench(f"contig({total // 100}, {STRUCTS[32]})")
    for windows in (16, 64):
        yield Bench(f"contig(4, {STRUCTS[windows]})")
        yield Bench(f"hvector(20, 1, 1000B, contig(5, {STRUCTS[windows]}))")
    for block, side in ((8, 256), (8, 512), (8, 1024), (16, 128), (16, 256), (16, 512)):
        yield Bench(transpose(block, side, gap=False))
    yield Bench("hvector(500, 1, 8B, hvector(520, 8, 4096B, byte))")
    for blocks in (2, 4, 16):
        inner = f"hvector({blocks}, 8, 144B, byte)"
        yield Bench(f"hvector({160 // blocks}, 1, {blocks * 144 + 64}B, {inner})")
        members = (
            f"({i * 4000}B, hvector({blocks}, {8 + 4 * (i % 2)}, {128 + 8 * (i % 3)}B, byte))"
            for i in range(60)
        )
        yield Bench(f"struct([{', '.join(members)}])")


def transpose(block: int, side: int, gap: bool = True) -> str:
    """A matrix of `block` bytes, packed by columns. A gap keeps its rows out of each other's cache sets."""
    return f"hvector({side}, 1, {block}B, hvector({side}, {block}, {(side + gap) * block}B, byte))"


Message = tuple[str, int]  # text, elements


class Passes:
    """The fastest sample of each message in each pass, by movement; kept in a file while they come in."""

    def __init__(
        self, movements: Sequence[str], messages: Sequence[Message], where: Path | None = None
    ) -> None:
        self.messages = list(messages)
        self.times_ns: dict[str, list[list[float]]] = {movement: [] for movement in movements}
        self.where = where
        document = json.dumps([FORMAT, identity(), self.messages])
        self.key = hashlib.sha256(document.encode()).hexdigest()
        if where is not None:
            self.times_ns |= self.stored_passes(where)

    def stored_passes(self, where: Path) -> dict[str, list[list[float]]]:
        """The passes that an earlier call measured of the same messages here; {} if there are none."""
        try:
            document = documents.json(where)
            stored = {name: document["times_ns"][name] for name in self.times_ns}
            is_complete = all(
                len(times) == len(self.messages) for passes in stored.values() for times in passes
            )
            return stored if is_complete and document["key"] == self.key else {}
        except (Trouble, KeyError, TypeError, ValueError):
            return {}

    @property
    def done(self) -> int:
        """The number of passes that all movements have."""
        return min(len(passes) for passes in self.times_ns.values())

    def run(self, passes: int, cpu_seconds: float | None, advance: Callable[[], None]) -> None:
        """Measures until there are `passes` passes, or until there are two and the time is spent."""
        begin = time.process_time()
        while self.done < passes:
            if cpu_seconds is not None and self.done >= 2 and time.process_time() - begin > cpu_seconds:
                return
            for movement, measured in self.times_ns.items():
                if len(measured) == self.done:
                    measured.append(self.measure(movement, not measured, advance))
                    self.store()

    def measure(self, movement: str, checked: bool, advance: Callable[[], None]) -> list[float]:
        probe = core.load().probe_copy
        times = []
        for text, elements in self.messages:
            times.append(min(probe(text, elements, movement, SAMPLES, checked)))
            advance()
        return times

    def store(self) -> None:
        if self.where is None:
            return
        with contextlib.suppress(OSError, Trouble):  # the calibration then goes on without keeping
            self.where.parent.mkdir(parents=True, exist_ok=True)
            files.write(self.where, json.dumps({"key": self.key, "times_ns": self.times_ns}))

    def fastest(self, movement: str) -> list[float]:
        return [min(times) for times in zip(*self.times_ns[movement], strict=True)]

    def noise(self) -> float:
        """The median over all messages of (second fastest pass / fastest pass) - 1; 0 before two passes."""
        if self.done < 2:
            return 0.0
        spreads = []
        for passes in self.times_ns.values():
            for times in zip(*passes, strict=True):
                first, second = sorted(times)[:2]
                spreads.append(second / first - 1)
        return statistics.median(spreads)


def messages_of(chosen: Sequence[Bench]) -> list[Message]:
    """An empty call, and the benches."""
    return [("byte", 1), *((bench.text, 1) for bench in chosen)]


def prices_of(movement: str, levels: Caches, chosen: Sequence[Bench], times_ns: Sequence[float]) -> Prices:
    """The prices that follow from the times of messages_of(chosen)."""
    call_ns, *times = times_ns
    block_ns: dict[str, list[tuple[int, float]]] = {shape: [] for shape in copy_model.SHAPES}
    samples = []
    for bench, time_ns in zip(chosen, times, strict=True):
        counts = copy_model.count(bench.text, 1, movement, levels)
        samples.append(Sample(counts, time_ns))
        if bench.price is not None:
            blocks = sum(leaf[2] for leaf in counts.leaves)
            block_ns[bench.price[0]].append((bench.price[1], max(0.01, (time_ns - call_ns) / blocks)))
    return copy_model.fit_terms(call_ns, block_ns, samples)


class Comparison:
    """Prices of a movement, and the times of other messages measured in the same passes.

    run() may be interrupted: result() is of the passes that are done, which are kept in `where`, and another
    Comparison of the same messages goes on behind them. forget() removes them.
    """

    def __init__(
        self, movement: str, levels: Caches, beside: Sequence[Message], where: Path | None = None
    ) -> None:
        self.movement, self.levels = movement, levels
        self.chosen = list(benches(levels))
        self.beside = len(beside)
        self.passes = Passes([movement], [*messages_of(self.chosen), *beside], where)

    @property
    def done(self) -> int:
        return self.passes.done

    def run(self, passes: int, advance: Callable[[], None] = lambda: None) -> None:
        self.passes.run(passes, None, advance)

    def result(self) -> tuple[Prices, list[float]]:
        """The prices, and the times of `beside`; an error before the first pass is done."""
        times = self.passes.fastest(self.movement)
        own = len(times) - self.beside
        return prices_of(self.movement, self.levels, self.chosen, times[:own]), times[own:]

    def forget(self) -> None:
        if self.passes.where is not None:
            with contextlib.suppress(OSError):
                self.passes.where.unlink(missing_ok=True)


def step_count(passes: int) -> int:
    """Returns how often Passes.run() calls `advance` for one movement, if nothing was kept."""
    return passes * (1 + sum(1 for _ in benches(caches())))


def kept_passes(partial: Path) -> int:
    """Returns how many passes an earlier call of measure() left there."""
    return Passes(copy_model.MOVEMENTS, messages_of(list(benches(caches()))), partial).done


def measure(
    passes: int = PASSES, advance: Callable[[], None] = lambda: None, partial: Path | None = None
) -> Calibration:
    """Measures this host; if kept passes were too noisy, `passes` more. Trouble('exhausted') if all are."""
    levels = caches()
    chosen = list(benches(levels))
    measured = Passes(copy_model.MOVEMENTS, messages_of(chosen), partial)
    measured.run(measured.done + passes if measured.noise() > NOISE_MAX else passes, CPU_SECONDS, advance)
    if (noise := measured.noise()) > NOISE_MAX:
        raise Trouble(
            "exhausted",
            f"the machine was too noisy to be calibrated: the two fastest of {measured.done} passes differ "
            f"by {noise:.0%} in the median, and by {NOISE_MAX:.0%} at most they may; nothing was stored. "
            "When less runs here, call it again: it adds passes to these",
        )
    prices = {name: prices_of(name, levels, chosen, measured.fastest(name)) for name in copy_model.MOVEMENTS}
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Calibration(identity(), levels, prices, now)


# ---- the file ----


def path() -> Path:
    return private.cache_home() / "calibration.json"


def partial_path(where: Path, purpose: str = "") -> Path:
    """The file for passes of a calibration that is not done yet; `purpose` is empty for `where` itself."""
    return where.with_name(f"{where.name}{purpose}.partial")


def save(calibration: Calibration, where: Path) -> None:
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Trouble(
            "environment", f"the calibration cannot be written to {where}: {error.strerror}"
        ) from None
    files.write(where, json.dumps(calibration.as_document(), indent=1) + "\n")
    with contextlib.suppress(OSError):
        partial_path(where).unlink(missing_ok=True)


def read(where: Path) -> Calibration:
    """Raises Trouble('invalid') for a file that is no calibration."""
    document = documents.json(where)
    try:
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}, not {FORMAT}")
        prices = {name: Prices.from_document(document["prices_ns"][name]) for name in copy_model.MOVEMENTS}
        levels = tuple((int(size), int(ways)) for size, ways in document["caches"])
        return Calibration(document["identity"], levels, prices, document["measured"], str(where))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Trouble("invalid", f"{where} is no calibration: {error}") from None


def load() -> tuple[Calibration, str]:
    """This host's calibration, or the one that comes with Spinloom and a sentence that says so."""
    how = "'spinloom calibrate' measures this one in some minutes"
    own = path()
    if not os.path.exists(own):  # False as well where it may not be looked at
        shipped = read(SHIPPED)
        return (
            shipped,
            f"host times are those of the {shipped.identity['processor']} that Spinloom came with: {how}",
        )
    try:
        stored = read(own)
    except Trouble as trouble:
        return read(SHIPPED), f"{trouble.message}; {how}"
    if stored.identity != identity():
        return read(SHIPPED), f"{own} is of another machine: {how}"
    return stored, ""
