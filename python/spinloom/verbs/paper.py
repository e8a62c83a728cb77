"""`spinloom paper`: what the papers measured, again, from simulations that run now."""

from __future__ import annotations

import click

from spinloom.verbs.groups import Group


@click.group(
    cls=Group,
    places={
        "figure": "paper_figure:figure",
        "study": "paper_study:study",
        "validate": "paper_validate:validate",
    },
    epilog="Examples: spinloom paper validate --only DDT-2,DDT-7; spinloom paper figure 8 --out out/figures; "
    "spinloom paper study pingpong",
)
def paper() -> None:
    """Measure again what the papers measured.

    'figure' draws their figures, 'study' runs their small experiments, 'validate' tests their claims, all
    from simulations that run now.
    """
