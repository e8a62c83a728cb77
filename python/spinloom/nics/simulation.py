"""Simulations from Python: a table of modelled times over datatypes, strategies and machines.

    import spinloom
    table = spinloom.simulate("vector(512, 16, 32, double)", ["rw-cp", "seek"], hpus=[16, 32])
    for row in table: print(row["strategy"], row["hpus"], row["time_ps"], row["speedup"])

Contract: simulate() runs every strategy for every datatype on every machine of the grid: nic, host, hpus,
mtu, order, seed, count and each value of `set` may be a list, and all combinations are simulated, several at
a time. A row has the columns of its machine (MACHINE and the fields of `set`) and those of results.COLUMNS.
No row has a time unless its bytes were compared with the oracle; a strategy that cannot take a datatype, or
finds no room on the NIC, has a row with its status and a sentence. Ctrl-C ends the run: the KeyboardInterrupt
carries the rows that were done as `.table`.
"""

from __future__ import annotations

import itertools
import operator
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from spinloom.common.bar import Bar
from spinloom.common.errors import Trouble
from spinloom.nics import machines, results, strategies, sweep, targets, workloads
from spinloom.nics.frame import Frame
from spinloom.nics.machines import NIC, Machine
from spinloom.nics.strategies import DEFAULT
from spinloom.nics.sweep import Cell, Outcome, Setup
from spinloom.nics.workloads import Row

if TYPE_CHECKING:
    from pathlib import Path

    from mpi4py import MPI
    from numpy import dtype
    from numpy.typing import NDArray

    from spinloom.layout import Layout
    from spinloom.nics.profiles import Profile

    Datatype = str | Layout | NDArray[Any] | dtype[Any] | MPI.Datatype | Row
    Datatypes = Datatype | Sequence[Datatype]
    T = TypeVar("T")
    Axis: TypeAlias = T | Sequence[T] | NDArray[Any]  # one value, or a list of values

MACHINE = {
    "nic": "the NIC profile",
    "host": "the host profile; empty: the NIC profile's own numbers",
    "hpus": "handler processors",
    "mtu_bytes": "payload of a packet",
    "order": "how packets come: 'in' order, or shuffled within a window",
    "seed": "of every random choice",
    "count": "elements of the datatype",
}


@dataclass(frozen=True)
class MachineCells:
    """The cells of one machine."""

    machine: Machine
    setup: Setup
    cells: list[Cell]
    count: int
    changes: dict[str, Any]  # the caller's

    def columns(self) -> dict[str, Any]:
        profile = self.machine.profile
        identity = (profile.name, profile.host, self.machine.hpus, self.machine.mtu)
        order = machines.order_text(self.machine.order)
        settings = (*identity, order, self.machine.seed, self.count)
        return {**dict(zip(MACHINE, settings, strict=True)), **self.changes}


def rows_of(type: Any, count: int = 1) -> list[Row]:  # users of simulate() name datatypes so
    """Datatypes as rows: text forms, 'APPLICATION[:DATATYPE]', 'FILE.py:OBJECT', layouts, NumPy arrays and
    dtypes, datatypes of mpi4py, rows of workloads; a list of them, or {name: one of them}. Raises Trouble."""
    if isinstance(type, Mapping):
        named = [(str(name), rows_of(each, count)) for name, each in type.items()]
        return [
            replace(row, application="", datatype=name if len(rows) == 1 else f"{name} {row.datatype}")
            for name, rows in named
            for row in rows
        ]
    if isinstance(type, Sequence) and not isinstance(type, str):
        return list(dict.fromkeys(row for each in type for row in rows_of(each, count)))
    if isinstance(type, Row):
        return [replace(type, count=type.count * count) if count != 1 else type]
    if not isinstance(type, str):
        row = targets.of_object(type, "the datatype", count)
        return [replace(row, application="custom", datatype=shortened(row.type))]
    if type.casefold() in {application.name.casefold() for application in workloads.applications()}:
        rows = workloads.application(type).rows
        return [replace(row, count=row.count * count) if count != 1 else row for row in rows]
    return [targets.resolve(type, count)]


def with_unique_names(rows: list[Row]) -> list[Row]:
    """The rows with a number behind the name of each that has the name of an earlier one."""
    seen: dict[tuple[str, str], int] = {}
    named = []
    for row in rows:
        number = seen[(row.application, row.datatype)] = seen.get((row.application, row.datatype), 0) + 1
        named.append(row if number == 1 else replace(row, datatype=f"{row.datatype} ({number})"))
    return named


def shortened(text: str) -> str:
    return text if len(text) <= 32 else text[:29] + "..."


def axis_values(value: Any) -> list[Any]:
    """The values of an axis: those of a list, tuple, range or NumPy array, else the one value."""
    if getattr(value, "ndim", 0):
        value = value.tolist()
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def element_count(value: Any) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise Trouble("invalid", f"count is {value!r}, not a whole number") from None
    if count < 0:
        raise Trouble("invalid", f"count is {count}, it must not be negative")
    return count


def grid(axes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every combination, the last axis fastest."""
    lists = [axis_values(value) for value in axes.values()]
    for empty, values in zip(axes, lists, strict=True):
        if not values:
            raise Trouble("invalid", f"{empty}: the list is empty")
    for combination in itertools.product(*lists):
        yield dict(zip(axes, combination, strict=True))


def simulate(
    type: Datatypes | Mapping[str, Datatypes],
    strategies: str | Sequence[str] = DEFAULT,
    *,
    count: Axis[int] = 1,
    nic: Axis[str | Path | Profile] = NIC,
    host: Axis[str | Path | None] = None,
    set: Mapping[str, Axis[str | int | float]] | None = None,
    hpus: Axis[int | None] = None,
    mtu: Axis[int | str | None] = None,
    order: Axis[str] = "in",
    seed: Axis[int] = 1,
    unexpected: bool = False,
    threads: int = 0,
    progress: bool | None = None,
) -> Frame:
    """Receives a message of each datatype by each strategy on each machine, in modelled time.

    type: a datatype, a list of them, or {name: datatype}. A datatype is a text form, 'FILE.py:OBJECT',
        'APPLICATION[:DATATYPE]', a layout, an array or dtype of NumPy, or a datatype of mpi4py; an array
        gives its shape and strides, none of its values.
    strategies: 'rw-cp,seek' or a list of names; those that speed-ups are over are added.

    Each of these is one value or a list (also a range, or an array of one dimension), and every combination
    is simulated:
    count: elements of the datatype in the message, from 0.
    nic, host: profiles, by name or path; host None is the one that the NIC profile names.
    set: {field of the NIC profile: value with its unit}, such as {'hpu.clock': ['800 MHz', '1 GHz']}.
    hpus: handler processors; None is what the profile has.
    mtu: payload of a packet in bytes, or '2 KiB'; None is what the profile has.
    order: 'in' order; 'window:N' or 'all:N' shuffles the packets.
    seed: of every random choice, from 0 to 2^64 - 1.

    unexpected: the message comes before its receive is posted.
    threads: cells at a time; 0 is one a core. The result is the same for every number.
    progress: None shows a bar where stderr is a terminal.

    Returns a Frame with a row for each datatype, strategy and machine. Columns that end with _ps are in
    picoseconds from the first byte at the NIC, those with _bytes in bytes, those with _cycles in cycles of
    an HPU, and speedup is a ratio; COLUMNS of spinloom.nics.results explains each. A row has a time only if
    every byte was compared. A strategy that cannot take the datatype, or finds no room on the NIC, has a row
    with its status.

    Raises Trouble: a Refusal, which is a ValueError, for an argument that cannot be; code 'environment'
    where handler images are missing; 'mismatch', 'fault' or 'stalled' where a strategy leaves a wrong byte or
    does not end. At Ctrl-C the KeyboardInterrupt has the rows that were done as `.table`.

    The model is that of "Network-Accelerated Non-Contiguous Memory Transfers" (Di Girolamo et al., SC'19),
    over "sPIN: High-performance streaming Processing In the Network" (Hoefler et al., SC'17).
    """
    parts = plan(
        type,
        strategies,
        count=count,
        unexpected=unexpected,
        set=set,
        axes={"nic": nic, "host": host, "hpus": hpus, "mtu": mtu, "order": order, "seed": seed},
    )
    outcomes: list[list[Outcome]] = [[] for _ in parts]
    total = sum(len(part.cells) for part in parts)
    with progress_bar(total, progress) as advance:
        try:
            for index, outcome in run(parts, threads):
                outcomes[index].append(outcome)
                advance()
        except KeyboardInterrupt as stopped:
            stopped.table = frame(parts, outcomes)  # type: ignore[attr-defined]
            raise
    return frame(parts, outcomes)


def plan(
    type: Any,
    names: str | Sequence[str],
    *,
    count: Any,
    unexpected: bool,
    set: Mapping[str, Any] | None,
    axes: Mapping[str, Any],
) -> list[MachineCells]:
    """One part for each machine and count of the grid."""
    strategy_names = strategies.parse(names) if isinstance(names, str) else strategies.with_baselines(names)
    if set is not None and not isinstance(set, Mapping):
        raise Trouble("invalid", f"set is {set!r}; give a dictionary, such as {{'hpu.clock': '1 GHz'}}")
    parts = []
    fields = dict(set or {})
    for number in map(element_count, axis_values(count)):
        cells = [
            Cell(row, name) for row in with_unique_names(rows_of(type, number)) for name in strategy_names
        ]
        for values in grid(fields):
            changes = [(str(field), str(value)) for field, value in values.items()]
            for point in grid(axes):
                machine = machines.machine(changes=changes, **point)
                parts.append(
                    MachineCells(machine, machine.setup(unexpected=unexpected), cells, number, values)
                )
    return parts


def run(parts: list[MachineCells], threads: int = 0) -> Iterator[tuple[int, Outcome]]:
    """(place of the part, outcome) as cells end."""
    jobs = [((index, cell), part.setup) for index, part in enumerate(parts) for cell in part.cells]
    if threads < 0:
        raise Trouble("invalid", f"threads is {threads}; 0 is one a core")
    finished = sweep.run_all([(cell, setup) for (_, cell), setup in jobs], threads or os.cpu_count() or 1)
    for place, outcome in finished:
        yield jobs[place][0][0], outcome


def frame(parts: list[MachineCells], outcomes: list[list[Outcome]]) -> Frame:
    rows: list[dict[str, Any]] = []
    partial = False
    hashes = []
    for part, done in zip(parts, outcomes, strict=True):
        table = results.build(part.cells, done, part.setup)
        rows += [{**part.columns(), **row} for row in table.rows]
        partial = partial or table.partial
        hashes.append(table.result_hash)
        bad = [outcome for outcome in done if outcome.code not in ("ok", "unsupported", "exhausted")]
        if bad:
            raise Trouble(bad[0].code, f"{bad[0].cell}: {bad[0].message}")
    return Frame(rows, partial=partial, result_hash=results.digest({"parts": hashes}))


def progress_bar(total: int, wanted: bool | None) -> AbstractContextManager[Bar]:
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        return nullcontext(Bar())
    from spinloom.common.progress import progress

    return progress(total, quiet=False)
