"""The helpers of the tests of sweeps: small studies, and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VECTOR = "datatype=vector({n}, 1, 2, double)"
FOUR = (VECTOR, "n=8,16", "strategy=host-mpitypes,seek")
GOALS = ("pattern=dissemination", "ranks=4..32*2")


def manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def kept(folder: Path) -> list[str]:
    """The keys of the cells that the folder has, in the order in which they ended."""
    path = folder / "cells.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line)["key"] for line in lines]
