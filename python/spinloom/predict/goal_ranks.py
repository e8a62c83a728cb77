"""The times of each rank of a run of `spinloom goal`: as columns, as rows, and in a file of their own.

Contract: columns() gives the columns of our own model or of LogGOPSim's rules, one value for each rank;
rows() the same as rows. write() makes FILE.csv, or FILE.parquet, for which it needs polars, and check_name()
raises Trouble for other names.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from spinloom.common import files
from spinloom.common.errors import Trouble
from spinloom.predict.grid import table

Columns = dict[str, list[int]]


def columns(outcome: dict[str, Any], cpus: int) -> Columns:
    """The columns of the table. `waiting_ps` is the time of a rank's CPUs less computation and overhead."""
    if "host_times" in outcome:
        times = outcome["host_times"]
        return {"rank": list(range(len(times))), "time": times}
    finish, compute, overhead = (outcome[name] for name in ("finish_ps", "compute_ps", "overhead_ps"))
    return {
        "rank": list(range(len(finish))),
        "finish_ps": finish,
        "compute_ps": compute,
        "overhead_ps": overhead,
        "waiting_ps": [
            cpus * end - computed - spent
            for end, computed, spent in zip(finish, compute, overhead, strict=True)
        ],
    }


def rows(by_name: Columns) -> list[dict[str, int]]:
    return [dict(zip(by_name, values, strict=True)) for values in zip(*by_name.values(), strict=True)]


def check_name(path: Path) -> None:
    if path.suffix not in (".csv", ".parquet"):
        raise Trouble("invalid", f"--per-rank {path}: end the name in .csv or in .parquet")
    if path.suffix == ".parquet":
        table.polars()  # polars is asked for before the run


def write(path: Path, by_name: Columns) -> None:
    files.write(path, as_csv(by_name) if path.suffix == ".csv" else as_parquet(by_name))


def as_csv(by_name: Columns) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(by_name)
    writer.writerows(zip(*by_name.values(), strict=True))
    return out.getvalue()


def as_parquet(by_name: Columns) -> bytes:
    pl = table.polars()
    out = io.BytesIO()
    pl.DataFrame(
        [pl.Series(name, *table.typed(values, pl)) for name, values in by_name.items()]
    ).write_parquet(out)
    return out.getvalue()
