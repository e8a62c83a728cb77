"""The manifest, which lies beside the table: the data needed to repeat and compare a sweep.

Contract: manifest_of() returns what a JSON document holds. The command, the number of cells computed in this
run, the workers, the machine and the host time are of the run; all else is the same for the same cells.
"""

from __future__ import annotations

import os
import platform
from typing import Any

from spinloom import __version__
from spinloom.predict.grid import one, table
from spinloom.predict.grid.cells import Cell
from spinloom.predict.grid.table import Results


def manifest_of(
    cells: list[Cell], results: Results, command: list[str], ran: int, place: str, host_time_s: float
) -> dict[str, Any]:
    profiles = {}
    for cell in cells:
        if cell.kind == "ddt":
            profile_columns = {
                name: value for name, value in cell.columns.items() if name in ("nic", "host") or "." in name
            }
            profiles[tuple(profile_columns.items())] = {**profile_columns, "values": cell.inputs["profile"]}
    return {
        "spinloom": __version__,
        "command": command,
        "result_hash": table.result_hash(cells, results),
        "cells": len(cells),
        "computed_in_this_run": ran,
        "failed": len(table.failed(cells, results)),
        "seeds": sorted({cell.inputs["seed"] for cell in cells if "seed" in cell.inputs}),
        "profiles": list(profiles.values()),
        "images_sha256": one.image_hashes() if profiles else {},
        "workers": place,
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "host_time_s": round(host_time_s, 3),
    }
