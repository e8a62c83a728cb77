"""Cells that receive a datatype: datatype x own axes x count x machine x strategy.

Contract: as cells.py says. A datatype takes only those of the sweep's own axes that it names in braces; the
columns of the others are empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from spinloom.common import data
from spinloom.common.errors import Trouble, nearest
from spinloom.nics import machines, strategies, workloads
from spinloom.nics.machines import NIC, Machine
from spinloom.nics.simulation import grid, rows_of
from spinloom.nics.workloads import Row
from spinloom.predict.grid import axes, template
from spinloom.predict.grid.axes import Axes
from spinloom.predict.grid.cells import Cell, cell

MACHINE = ("nic", "host", "hpus", "mtu", "order", "seed")


def cells(ddt_axes: Axes) -> Iterator[Cell]:
    if not ddt_axes:
        return
    if "datatype" not in ddt_axes:
        raise Trouble(
            "invalid", f"ddt has {', '.join(ddt_axes)}, but no datatype; give one, such as datatype=MILC"
        )
    own = own_axes(ddt_axes)
    machine_points = list(machines_of(ddt_axes))
    names = strategies_of(ddt_axes.get("strategy", list(strategies.DEFAULT)))
    for row, labels in datatypes(ddt_axes["datatype"], own, ddt_axes.get("count", [1])):
        message = {"kind": "ddt", "type": row.type, "count": row.count}
        for settings, machine_columns in machine_points:
            for name in names:
                yield cell(
                    {**labels, **machine_columns, "strategy": name}, {**message, **settings, "strategy": name}
                )


def settings_of(machine: Machine) -> dict[str, Any]:
    return {
        "profile": machine.profile.native(),
        "hpus": machine.hpus,
        "mtu": machine.mtu,
        "order": machine.order,
        "seed": machine.seed,
    }


def own_axes(ddt_axes: Axes) -> Axes:
    own = {name: values for name, values in ddt_axes.items() if name not in axes.DDT and "." not in name}
    used = {name for text in ddt_axes["datatype"] for name in template.names(text)}
    for name in own:
        if name not in used:
            raise Trouble(
                "invalid",
                f"ddt has no axis '{name}', and no datatype has {{{name}}}{nearest(name, axes.DDT)}",
            )
    for name in used:
        if name not in own:
            raise Trouble("invalid", f"a datatype has {{{name}}}: give it values, such as {name}=1,2")
    return own


def strategies_of(names: list[str]) -> list[str]:
    """The strategies that are named, checked; 'all' is all of them. No baseline is added."""
    if "all" in names:
        return list(strategies.STRATEGIES)
    for name in names:
        strategies.parse(name)
    return names


def machines_of(ddt_axes: Axes) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each machine as the engine gets it, and what the table says of it."""
    if not data.handler_images():
        raise Trouble("environment", "there are no handler images; 'make setup' in the checkout builds them")
    usual = {
        "nic": os.environ.get("SPINLOOM_NIC") or NIC,
        "host": os.environ.get("SPINLOOM_HOST") or None,
        "hpus": None,
        "mtu": None,
        "order": "in",
        "seed": int(os.environ.get("SPINLOOM_SEED") or 1),
    }
    fields = {name: values for name, values in ddt_axes.items() if "." in name}
    for point in grid({name: ddt_axes.get(name, usual[name]) for name in MACHINE} | fields):
        changes = [(field, point.pop(field)) for field in fields]
        machine = machines.machine(changes=changes, **point)
        yield (
            settings_of(machine),
            {
                "nic": machine.profile.name,
                "host": machine.profile.host,
                **dict(changes),
                "hpus": machine.hpus,
                "mtu": machine.mtu,
                "order": machines.order_text(machine.order),
                "seed": machine.seed,
            },
        )


def datatypes(texts: list[str], own: Axes, counts: list[int]) -> Iterator[tuple[Row, dict[str, Any]]]:
    for text in texts:
        for values in grid({name: own[name] for name in template.names(text)}):
            for count in counts:
                for row in rows(text, template.filled(text, values), count):
                    labels = {"application": row.application, "datatype": row.datatype}
                    yield row, {**labels, **dict.fromkeys(own), **values, "count": count}


def rows(text: str, filled: str, count: int) -> list[Row]:
    """A datatype that is no workload's is named as it was given."""
    lists = {
        "demo": workloads.demo,
        "paper": workloads.paper,
        "all": lambda: [row for application in workloads.applications() for row in application.rows],
    }
    if text in lists:
        return [replace(row, count=row.count * count) for row in lists[text]()]
    known_names = {application.name for application in workloads.applications()}
    return [
        row if row.application in known_names else replace(row, application="custom", datatype=text)
        for row in rows_of(filled, count)
    ]
