"""Cells that run a made schedule under LogGOPS: pattern x ranks x bytes x parameters, in nanoseconds.

Contract: as cells.py says.
"""

from __future__ import annotations

from collections.abc import Iterator

from spinloom.common import core
from spinloom.common.errors import Trouble, nearest
from spinloom.nics.simulation import grid
from spinloom.predict.goal_model import PARAMETERS
from spinloom.predict.grid.axes import GOAL, Axes
from spinloom.predict.grid.cells import Cell, cell

LARGEST = {"ranks": 2**31 - 1}


def cells(goal_axes: Axes) -> Iterator[Cell]:
    if not goal_axes:
        return
    patterns = core.load().goal_patterns()
    for name, hint in (("pattern", ", ".join(patterns)), ("ranks", "ranks=16,64")):
        if name not in goal_axes:
            raise Trouble("invalid", f"goal has {', '.join(goal_axes)}, but no {name}: {hint}")
    for name in goal_axes["pattern"]:
        if name not in patterns:
            raise Trouble("invalid", f"there is no pattern '{name}'{nearest(name, patterns)}")
    for name, values in goal_axes.items():
        largest = LARGEST.get(name, 2**64 - 1)
        if name != "pattern" and max(values) > largest:
            raise Trouble("invalid", f"{name} = {max(values)}: at most {largest:,}")
    if min(goal_axes["ranks"]) < 1:
        raise Trouble("invalid", "ranks = 0: a schedule has at least one")
    usual = {"bytes": 8, **{name: default for name, (default, _) in PARAMETERS.items()}}
    for point in grid({name: goal_axes.get(name, usual.get(name)) for name in GOAL}):
        parameters = {name: point[name] for name in PARAMETERS}
        inputs = {
            "kind": "goal",
            "pattern": point["pattern"],
            "ranks": point["ranks"],
            "bytes": point["bytes"],
            "parameters": parameters,
        }
        yield cell(point, inputs)
