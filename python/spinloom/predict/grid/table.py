"""The table of a sweep: one row a cell in the order of the plan, its result hash, and the files of --out.

Contract: rows() and result_hash() are functions of cells and results alone: which worker computed a cell,
when, and in which run makes no difference. The hash covers everything that each cell depends on (profile,
images, parameters), its status, all modelled columns, and the digests of destination bytes and event order;
no host time, no path, no sentence.
"""

from __future__ import annotations

import importlib
import io
import json
from pathlib import Path
from typing import Any

from spinloom.common import csv_text, files
from spinloom.common.errors import Trouble
from spinloom.nics import results
from spinloom.nics.strategies import BASELINE, DIRECT
from spinloom.predict.grid import one
from spinloom.predict.grid.cells import Cell

NAME = "sweep"
FILES = ("sweep.parquet", "sweep.csv", "manifest.json")
Results = dict[str, dict[str, Any]]


def failed(cells: list[Cell], outcomes: Results) -> list[Cell]:
    return [cell for cell in cells if outcomes[cell.key]["status"] not in one.GOOD]


def baselines(cells: list[Cell], outcomes: Results) -> dict[str, tuple[str, int]]:
    """(strategy, time) that speed-ups are over, by all but the strategy: DIRECT where it took the data."""
    times = {}
    for name in (BASELINE, DIRECT):
        for cell in cells:
            if cell.inputs.get("strategy") == name and outcomes[cell.key]["status"] == "ok":
                times[key_without_strategy(cell)] = (name, outcomes[cell.key]["columns"]["time_ps"])
    return times


def key_without_strategy(cell: Cell) -> str:
    return results.digest({**cell.inputs, "strategy": ""})


def rows(cells: list[Cell], outcomes: Results) -> list[dict[str, Any]]:
    times = baselines(cells, outcomes)
    return [row(cell, outcomes[cell.key], times) for cell in cells]


def row(cell: Cell, result: dict[str, Any], times: dict[str, tuple[str, int]]) -> dict[str, Any]:
    row_columns = {**cell.columns, "status": result["status"], **result["columns"]}
    if cell.kind == "ddt":
        baseline, baseline_ps = times.get(key_without_strategy(cell), (None, None))
        time_ps = row_columns.get("time_ps")
        row_columns["speedup"] = round(baseline_ps / time_ps, 4) if baseline_ps and time_ps else None
        row_columns["baseline"] = baseline
        row_columns["checked"] = (
            None if result["status"] not in ("ok", "mismatch") else result["status"] == "ok"
        )
    return {**row_columns, "message": result["message"], "cell": cell.key}


def columns(table_rows: list[dict[str, Any]]) -> list[str]:
    """Returns the names of all columns in the order of first appearance; "message" and "cell" come last."""
    names = dict.fromkeys(name for each in table_rows for name in each)
    last = ("message", "cell")
    return [*(name for name in names if name not in last), *last]


def result_hash(cells: list[Cell], outcomes: Results) -> str:
    return results.digest(
        {
            "cells": [
                {
                    "inputs": results.digest(one.document(cell.inputs)),
                    **{name: outcomes[cell.key][name] for name in ("status", "columns", "sha256")},
                }
                for cell in cells
            ]
        }
    )


# ---- files ----


def polars() -> Any:
    try:
        return importlib.import_module("polars")
    except ImportError:
        raise Trouble(
            "environment", "polars, which writes Parquet, is not installed (pip install polars)"
        ) from None


def parquet(table_rows: list[dict[str, Any]]) -> bytes:
    pl = polars()
    out = io.BytesIO()
    series = [
        pl.Series(name, *typed([row.get(name) for row in table_rows], pl)) for name in columns(table_rows)
    ]
    pl.DataFrame(series).write_parquet(out)
    return out.getvalue()


def typed(values: list[Any], pl: Any) -> tuple[list[Any], Any]:
    """The values of a column and the type that holds them exactly."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return values, pl.Boolean
    if kinds <= {int}:
        return values, pl.UInt64 if max(value or 0 for value in values) >= 2**63 else pl.Int64
    if kinds <= {int, float}:
        return [None if value is None else float(value) for value in values], pl.Float64
    return [None if value is None else str(value) for value in values], pl.String


def write(folder: Path, table_rows: list[dict[str, Any]], about: dict[str, Any], csv: bool) -> None:
    files.write(folder / "sweep.parquet", parquet(table_rows))
    if csv:
        files.write(folder / "sweep.csv", csv_text.as_csv(table_rows, columns(table_rows)))
    else:
        (folder / "sweep.csv").unlink(missing_ok=True)  # it would be that of another sweep
    files.write(folder / "manifest.json", json.dumps(about, indent=1) + "\n")
