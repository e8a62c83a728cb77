"""The rows of a run: columns, speed-ups, result hash, and the files of --out.

Contract: a Table is built from outcomes in cell order, whatever order they ended in, so that the same
input and seed give the same result hash on every machine. The hash covers profile, image hashes, all
modelled columns in row order, destination bytes and event order; no host time and no path.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom import __version__
from spinloom.common import csv_text, files
from spinloom.common.errors import Trouble
from spinloom.nics.profiles import Profile
from spinloom.nics.strategies import BASELINE, DIRECT
from spinloom.nics.sweep import Cell, Outcome, Setup
from spinloom.nics.workloads import Row

COLUMNS = {
    "application": "the application, or 'custom' for a type given by hand",
    "datatype": "the row of the application",
    "strategy": "how the datatype is processed",
    "size_bytes": "bytes of one message",
    "blocks_per_packet": "average number of contiguous blocks in a packet",
    "time_ps": "modelled time: first byte at the NIC until the host can read the completion event",
    "speedup": "time_ps of the baseline over this row's time_ps",
    "baseline": f"the strategy that the speed-up is over: {BASELINE}, for contiguous data {DIRECT}",
    "handler_cycles_per_packet": "modelled HPU cycles of one payload handler, on average",
    "nic_memory_bytes": "NIC memory that the strategy holds for this datatype",
    "checked": "every byte of the destination and of its surroundings compared with the oracle",
    "status": "ok, unsupported (not run), exhausted (no room on the NIC), or the error's code",
    "message": "why a row has no time",
    "blocks": "contiguous blocks of the message, neighbours in its order merged",
    "packets": "packets of the message",
    "pieces": "pieces that are written, counted again where a packet cuts one: at least the blocks",
    "data_time_ps": "modelled time until the last byte that the NIC writes is in host memory",
    "line_time_ps": "modelled time of the message's bytes at line rate: no strategy is faster",
    "handler_cycles_max": "modelled HPU cycles of the slowest payload handler",
    "handler_first_call_cycles_per_packet": "modelled HPU cycles of a payload handler until its first call",
    "handler_first_call_cycles_min": "the least of them",
    "handler_instructions_per_packet": "RV32 instructions of one payload handler, on average",
    "dma_writes": "writes to host memory that handlers asked for",
    "dma_bytes": "bytes of those writes",
    "dma_queue_peak": "most writes waiting for PCIe at a time",
    "writes_under_way_peak": "most writes in flight at a time: from request to last byte in host memory",
    "writes_under_way_mean": "writes in flight on average over data_time_ps",
    "packet_buffer_peak_bytes": "most packet bytes on the NIC at a time",
    "host_line_fetches": "cache lines that the host read from its memory",
    "host_line_writebacks": "cache lines that the host wrote to its memory",
    "prepared_blocks": "blocks that the host walks before the first message, for checkpoints or lists",
    "nic_bytes_moved": "bytes moved to the NIC for the datatype: NIC memory, or the whole scatter list",
    "iovec_refills": "iovec: reads of the next iovec.entries list entries from host memory",
    "checkpoints": "ro-cp, rw-cp: checkpoints of this message",
    "checkpoint_bytes": "ro-cp, rw-cp: bytes of one checkpoint; rw-cp holds two copies",
    "paper_checkpoint_bytes": "ro-cp, rw-cp: bytes of one checkpoint in the SC'19 paper's configuration",
    "interval_packets": "ro-cp, rw-cp: packets between two checkpoints",
    "interval_exceeds_epsilon": "ro-cp, rw-cp: no interval meets the profile's checkpoint.epsilon",
    "interval_memory_decided": "ro-cp, rw-cp: NIC memory allowed no smaller interval",
}


@dataclass(frozen=True)
class Table:
    rows: list[dict[str, Any]]
    result_hash: str
    partial: bool
    baseline: str = BASELINE

    def columns(self) -> list[str]:
        """Every column of any row, in the order of first appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def get(self, application: str, datatype: str, strategy: str) -> dict[str, Any] | None:
        for row in self.rows:
            if (row["application"], row["datatype"], row["strategy"]) == (application, datatype, strategy):
                return row
        return None


def build(
    cells: list[Cell],
    outcomes: Iterable[Outcome],
    setup: Setup,
    baseline: str = BASELINE,
    time: str = "time_ps",
) -> Table:
    """Rows in cell order; cells without an outcome are left out and make the table partial.

    A speed-up is the baseline's column `time` over the row's. The baseline is DIRECT where that took the
    data; where it did not, it has no row.
    """
    by_cell = {outcome.cell: outcome for outcome in outcomes}
    reached = [by_cell[cell] for cell in cells if cell in by_cell]
    done = [
        outcome for outcome in reached if outcome.cell.strategy != DIRECT or outcome.code != "unsupported"
    ]
    baselines: dict[Row, Outcome] = {}
    for name in (baseline, DIRECT):
        for outcome in done:
            if outcome.cell.strategy == name and outcome.code == "ok":
                baselines[outcome.cell.row] = outcome
    rows = [as_row(outcome, baselines.get(outcome.cell.row), time) for outcome in done]
    return Table(rows, result_hash(setup, done), partial=len(reached) < len(cells), baseline=baseline)


def as_row(outcome: Outcome, baseline: Outcome | None, time: str = "time_ps") -> dict[str, Any]:
    row, columns = outcome.cell.row, outcome.columns
    baseline_ps = baseline.columns[time] if baseline else None
    time_ps = columns.get(time)
    leading = {
        "application": row.application,
        "datatype": row.datatype,
        "strategy": outcome.cell.strategy,
        "size_bytes": columns.get("size_bytes", row.size_bytes),
        "blocks_per_packet": columns.get("blocks_per_packet", row.blocks_per_packet),
        time: time_ps,
        "speedup": round(baseline_ps / time_ps, 4) if baseline_ps and time_ps else None,
        "baseline": baseline.cell.strategy if baseline else None,
        "handler_cycles_per_packet": columns.get("handler_cycles_per_packet"),
        "nic_memory_bytes": columns.get("nic_memory_bytes"),
        "checked": outcome.checked,
        "status": outcome.code,
        "message": outcome.message,
    }
    return {**leading, **{name: value for name, value in columns.items() if name not in leading}}


def image_hashes(images: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(image).hexdigest() for name, image in sorted(images.items())}


def result_hash(setup: Setup, outcomes: list[Outcome]) -> str:
    document = {
        "profile": setup.profile,
        "images": image_hashes(setup.images),
        "rows": [
            {
                "application": outcome.cell.row.application,
                "datatype": outcome.cell.row.datatype,
                "strategy": outcome.cell.strategy,
                "status": outcome.code,
                "columns": outcome.columns,
                "destination": outcome.destination_sha256,
                "events": outcome.events_sha256,
            }
            for outcome in outcomes
        ],
    }
    return digest(document)


def digest(document: dict[str, Any]) -> str:
    """SHA-256, as hexadecimal text, over one canonical JSON document."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def manifest(
    table: Table, setup: Setup, profile: Profile, command: list[str], host_time_s: float
) -> dict[str, Any]:
    """The data needed to repeat and compare this run; its times are host times, not modelled times."""
    return {
        "spinloom": __version__,
        "command": command,
        "partial": table.partial,
        "result_hash": table.result_hash,
        "seed": setup.seed,
        "profile": profile.name,
        "host": profile.host,
        "profile_changes": dict(profile.changes),
        "profile_values": setup.profile,
        "hpus": setup.hpus,
        "mtu_bytes": setup.mtu,
        "order": setup.order,
        "images_sha256": image_hashes(setup.images),
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "host_time_s": round(host_time_s, 3),
    }


def as_document(table: Table) -> dict[str, Any]:
    return {"rows": table.rows, "result_hash": table.result_hash, "partial": table.partial}


FILES = ("simulate.csv", "simulate.json", "manifest.json", "speedup.csv", "speedup.svg")


def result_files(folder: Path) -> list[str]:
    """The result files in the folder."""
    return [name for name in FILES if (folder / name).exists()]


def refuse_to_overwrite(folder: Path, force: bool) -> None:
    """Raises Trouble if the folder already holds results and --force was not given."""
    if folder.exists() and not folder.is_dir():
        raise Trouble("invalid", f"--out {folder} is not a folder")
    if (existing := result_files(folder)) and not force:
        raise Trouble("invalid", f"{folder} holds {', '.join(existing)} already; --force overwrites")


def check_writable(folder: Path) -> None:
    """Makes the folder and writes to it, before anything is computed. Raises Trouble('environment')."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Trouble("environment", f"the folder {folder} cannot be written: {error.strerror}") from None


def write(folder: Path, table: Table, about: dict[str, Any]) -> None:
    """simulate.csv, simulate.json, speedup.csv and manifest.json; the plot is plot.py's."""
    check_writable(folder)
    files.write(folder / "simulate.csv", csv_text.as_csv(table.rows, table.columns()))
    files.write(folder / "simulate.json", json.dumps(as_document(table), indent=1) + "\n")
    columns = ["application", "datatype", "strategy", "speedup", "baseline"]
    files.write(folder / "speedup.csv", csv_text.as_csv(speedups(table), columns))
    files.write(folder / "manifest.json", json.dumps(about, indent=1) + "\n")


def speedups(table: Table) -> list[dict[str, Any]]:
    """The rows of the plot: those that have a speed-up, without the baseline."""
    return [row for row in table.rows if row["speedup"] is not None and row["strategy"] != row["baseline"]]
