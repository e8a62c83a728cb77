"""The LogGOPS parameters of an MPI library on a host: what they are, their file.

Contract: MpiParameters is what 'spinloom calibrate mpi' measures and other verbs read. All times are host
time in ns, for contiguous bytes between two ranks of one machine. write() and read() are its file
(docs/calibrate-mpi.md has the form); path() is where it lies unless somebody says otherwise. What is read is
complete and plausible, or Trouble('invalid') says what is wrong. Sizes of `table` ascend.
"""

from __future__ import annotations

import bisect
import json
import math
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spinloom.common import documents, files, private
from spinloom.common.errors import Trouble

FORMAT = 1
PS_PER_NS = 1000
DECIMALS = 6


@dataclass(frozen=True)
class Size:
    """The times of messages of one size: medians, ns."""

    size_bytes: int
    one_way_ns: float  # half a round trip
    interval_ns: float  # the time from one message of a saturated stream to the next
    send_ns: float  # the time in MPI_Isend
    receive_ns: float  # the time in MPI_Recv, where the message came before
    spread: float  # the middle half of the round trips, over their median


@dataclass(frozen=True)
class Regime:
    """Lines through the sizes of one protocol: one way base + (s - 1) G_one_way, interval g + (s - 1) G."""

    name: str
    from_bytes: int
    to_bytes: int
    base_ns: float
    G_one_way_ns_per_byte: float
    g_ns: float
    G_ns_per_byte: float


@dataclass(frozen=True)
class MpiParameters:
    L_ns: float
    o_ns: float  # the mean of the next two; less if they are longer than half a round trip
    o_send_ns: float
    o_receive_ns: float
    g_ns: float
    G_ns_per_byte: float
    O_ns_per_byte: float
    S_bytes: int  # a longer message's sender waits for a receiver that computes
    S_polled_bytes: int  # a longer message's sender waits for a receive even if the receiver is in MPI
    table: tuple[Size, ...]
    regimes: tuple[Regime, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)  # mpi, host, measured, command, ...

    def as_goal(self) -> dict[str, int]:
        """Whole numbers for the engines of schedules: ps, ps a byte, bytes."""
        ns_by_name = {
            "L": self.L_ns,
            "o": self.o_ns,
            "g": self.g_ns,
            "G": self.G_ns_per_byte,
            "O": self.O_ns_per_byte,
        }
        return {name: round(ns * PS_PER_NS) for name, ns in ns_by_name.items()} | {"S": self.S_bytes}

    def at(self, column: str, size_bytes: int) -> float:
        """A column of the table at any size: on straight lines between the sizes, and beyond the last two."""
        sizes = [row.size_bytes for row in self.table]
        values = [float(getattr(row, column)) for row in self.table]
        if len(sizes) == 1 or size_bytes <= sizes[0]:
            return values[0]
        after = min(bisect.bisect_left(sizes, size_bytes), len(sizes) - 1)
        before = after - 1
        slope = (values[after] - values[before]) / (sizes[after] - sizes[before])
        return max(0.0, values[before] + slope * (size_bytes - sizes[before]))


SCALARS = (
    "L_ns",
    "o_ns",
    "o_send_ns",
    "o_receive_ns",
    "g_ns",
    "G_ns_per_byte",
    "O_ns_per_byte",
    "S_bytes",
    "S_polled_bytes",
)


def path(mpi: str) -> Path:
    """'Open MPI 4.1.4' has mpi-open-mpi-4.1.4.json, beside the other calibrations."""
    name = re.sub(r"[^a-z0-9.]+", "-", mpi.lower()).strip("-")
    return private.cache_home() / f"mpi-{name}.json"


def write(parameters: MpiParameters, where: Path) -> None:
    document = {
        "format": FORMAT,
        **parameters.about,
        "parameters": {name: getattr(parameters, name) for name in SCALARS},
        "regimes": [asdict(regime) for regime in parameters.regimes],
        "table": [asdict(row) for row in parameters.table],
    }
    document = rounded(document)
    files.write(where, json.dumps(document, indent=1) + "\n")


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return round(value, DECIMALS) if isinstance(value, float) else value


def read(where: Path) -> MpiParameters:
    hint = "'spinloom calibrate mpi MPICC --out FILE' makes one"
    try:
        document = documents.json(where)
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}, not {FORMAT}")
        scalars: dict[str, Any] = {name: plausible(name, document["parameters"][name]) for name in SCALARS}
        table = tuple(Size(**row) for row in document["table"])
        regimes = tuple(Regime(**regime) for regime in document["regimes"])
        for row in table:
            for name, value in asdict(row).items():
                plausible(name, value)
        sizes = [row.size_bytes for row in table]
        if not sizes or sizes != sorted(set(sizes)):
            raise ValueError("the sizes of its table do not ascend")
        own_keys = {"format", "parameters", "regimes", "table"}
        about = {name: value for name, value in document.items() if name not in own_keys}
        return MpiParameters(**scalars, table=table, regimes=regimes, about=about)
    except Trouble as trouble:
        raise Trouble(trouble.code, f"{trouble.message}; {hint}") from None
    except KeyError as error:
        raise Trouble(
            "invalid", f"{where} is no file of MPI parameters: {error} is missing; {hint}"
        ) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise Trouble("invalid", f"{where} is no file of MPI parameters: {error}; {hint}") from None


def plausible(name: str, value: Any) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is {value!r}, not a number from 0 on")
    if name.endswith("_bytes"):
        if not isinstance(value, int):
            raise ValueError(f"{name} is {value!r}, not whole bytes")
        return value
    return float(value)
