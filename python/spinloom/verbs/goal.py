"""`spinloom goal`: schedules of many ranks, and algorithms of collective operations."""

from __future__ import annotations

import click

from spinloom.verbs.groups import Group


@click.group(
    cls=Group,
    places={
        "run": "goal_run:run",
        "check": "goal_schedules:check",
        "make": "goal_schedules:make",
        "convert": "goal_schedules:convert",
        "compare": "goal_run:compare",
        "collective": "goal_collective:collective",
        "scale": "goal_collective:scale",
        "fit": "goal_collective:fit",
    },
    default="run",
    epilog="Examples: spinloom goal app.goal -L 900ns --overhead 400ns; "
    "spinloom goal make dissemination --ranks 1024; "
    "spinloom goal collective allreduce --ranks 1024 --size 64KiB",
)
def goal() -> None:
    """Run a schedule of many ranks in modelled time.

    A schedule says who sends, receives and computes what after what. FILE is GOAL text, as LogGOPSim reads
    it, the binary form that its converter makes, or our own form (.spl), which also holds what GOAL has no
    word for. `spinloom goal FILE` is `spinloom goal run FILE`.

    'collective', 'scale' and 'fit' are about collective operations that NICs carry on without the CPU, by
    triggered operations: docs/collectives-model.md.
    """
