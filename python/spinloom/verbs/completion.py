"""The words that a shell completes at TAB: names of profiles, strategies, applications and their datatypes.

eval "$(_SPINLOOM_COMPLETE=bash_source spinloom)" tells bash; zsh_source and fish_source are for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def of(names: Callable[[], Iterable[str]]) -> Completer:
    """The names that begin as the word does."""

    def complete(ctx: click.Context, parameter: click.Parameter, word: str) -> list[str]:
        return [name for name in names() if name.casefold().startswith(word.casefold())]

    return complete


def of_list(names: Callable[[], Iterable[str]]) -> Completer:
    """The completions of the last of several names with commas between them."""

    def complete(ctx: click.Context, parameter: click.Parameter, word: str) -> list[str]:
        before, comma, last = word.rpartition(",")
        return [f"{before}{comma}{name}" for name in names() if name.startswith(last)]

    return complete


def nics() -> list[str]:
    from spinloom.nics import profiles

    return profiles.names()


def collective_operations() -> list[str]:
    from spinloom.common import core

    return core.load().collective_operations()


def hosts() -> list[str]:
    from spinloom.nics import profiles

    return profiles.hosts()


def strategies() -> list[str]:
    from spinloom.nics.strategies import STRATEGIES

    return [*STRATEGIES, "all"]


def fields() -> list[str]:
    """The fields that --set takes, those of every core."""
    from spinloom.nics import profiles

    return [f"{field}=" for field in profiles.FIELDS]


def axes() -> list[str]:
    """The axes of a sweep, of messages or of schedules, and the fields of a profile."""
    from spinloom.predict.grid import axes

    return [f"{axis}=" for axis in (*axes.DDT, *axes.GOAL)] + fields()


def applications() -> list[str]:
    from spinloom.nics import workloads

    return [application.name for application in workloads.applications()]


def datatypes() -> list[str]:
    """Every APPLICATION, and every APPLICATION:DATATYPE."""
    from spinloom.nics import workloads

    rows = [
        f"{application.name}:{row.datatype}"
        for application in workloads.applications()
        for row in application.rows
    ]
    return [*applications(), *rows]
