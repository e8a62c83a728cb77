"""The cells of a sweep: the cross product of its axes, without those that it excludes.

Contract: cells(spec) is in the order of axes.DDT and axes.GOAL, the last axis fastest; the same spec gives
the same list. A cell's columns say in the table what was varied, its inputs what the engine gets, its key
(one.key_of) whether it is another cell: two cells of one key are computed once. What is wrong with any cell
is found here, before one runs, as far as no simulation is needed. Raises Trouble.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import Any

from spinloom.common.errors import Trouble, nearest
from spinloom.predict.grid import one
from spinloom.predict.grid.axes import Spec

# The column of an axis, where that is not its name: quantities have their unit.
COLUMN = {
    "mtu": "mtu_bytes",
    "bytes": "message_bytes",
    "L": "L_ns",
    "o": "o_ns",
    "g": "g_ns",
    "G": "G_ns_per_byte",
    "O": "O_ns_per_byte",
    "S": "S_bytes",
}
COMPARED = re.compile(r"(<=|>=|!=|<|>)\s*(\d+)")
COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne}


@dataclass(frozen=True)
class Cell:
    columns: dict[str, Any]
    inputs: dict[str, Any]
    key: str

    @property
    def kind(self) -> str:
        return self.inputs["kind"]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.columns.items() if value not in (None, ""))


def cell(columns: dict[str, Any], inputs: dict[str, Any]) -> Cell:
    named = {COLUMN.get(name, name): value for name, value in columns.items()}
    return Cell({"kind": inputs["kind"], **named}, inputs, one.key_of(inputs))


def cells(spec: Spec) -> list[Cell]:
    from spinloom.predict.grid import ddt_cells, goal_cells

    all_cells = [*ddt_cells.cells(spec.ddt), *goal_cells.cells(spec.goal)]
    if not all_cells:
        raise Trouble(
            "invalid",
            "nothing to do: name a file with axes, or give some, such as datatype=MILC hpus=4,16 or "
            "pattern=dissemination ranks=16,64",
        )
    names = list(dict.fromkeys(name for each in all_cells for name in each.columns))
    for rule in spec.exclude:
        for name in rule:
            if COLUMN.get(name, name) not in names:
                raise Trouble("invalid", f"[[exclude]] names {name}, which no cell has{nearest(name, names)}")
    remaining = [each for each in all_cells if not any(fits(each, rule) for rule in spec.exclude)]
    if not remaining:
        raise Trouble("invalid", f"[[exclude]] leaves none of {len(all_cells)} cells")
    return remaining


def fits(cell: Cell, rule: dict[str, Any]) -> bool:
    """True if each named column has the value, one of the values, or compares as the text says: '> 64'."""
    return bool(rule) and all(
        any(agrees(cell.columns.get(COLUMN.get(name, name)), each) for each in as_list(wanted))
        for name, wanted in rule.items()
    )


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def agrees(value: Any, wanted: Any) -> bool:
    compared = COMPARED.fullmatch(wanted.strip()) if isinstance(wanted, str) else None
    if compared and isinstance(value, int):
        return COMPARISONS[compared[1]](value, int(compared[2]))
    return value is not None and str(value) == str(wanted)
