"""Text output: results to stdout as a table, JSON or CSV; diagnostics to stderr.

Output is plain text: square brackets and colons of a datatype are no markup. rich leaves colours out
when NO_COLOR is set or the stream is not a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from spinloom import results

WIDTH_OF_A_PIPE = 160
FOLDABLE = frozenset(
    {
        "about",
        "source",
        "claim",
        "paper",
        "ours",
        "remark",
        "brings",
        "what it would bring",
        "help",
        "meaning",
    }
)


class Output(Console):
    """A console whose reader may go away: the caller notices that, instead of an exit with code 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Standard output; not folded to 80 columns when it is not a terminal."""
    width = None if sys.stdout.isatty() else WIDTH_OF_A_PIPE
    return Output(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def show(made: Table) -> None:
    """Prints a table; if it cannot be folded to the terminal's width, it runs over the edge, complete."""
    target = console()
    padding = 2 * len(made.columns)
    needed = Measurement.get(target, target.options.update(max_width=10_000), made).minimum + padding
    target.width = max(target.width, needed)
    target.print(made)


def error_console() -> Console:
    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False)


def say(message: str) -> None:
    """One line of diagnostics."""
    click.echo(f"spinloom: {message}", err=True)


def table(
    columns: list[str],
    rows: list[list[str]],
    *,
    numeric: set[str] = frozenset(),
    foldable: set[str] = FOLDABLE,
    title: str = "",
) -> Table:
    """A plain table; columns in `numeric` are right-aligned, only those in `foldable` (prose) are folded."""
    made = Table(
        box=box.SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False
    )
    for number, column in enumerate(columns):
        whole = column in numeric or column not in foldable
        cells = [column, *(row[number] for row in rows)]
        made.add_column(
            column,
            justify="right" if column in numeric else "left",
            no_wrap=whole,
            min_width=max(cell_len(cell) for cell in cells) if whole else None,
        )
    for row in rows:
        made.add_row(*row)
    return made


def emit(rows: list[dict[str, Any]], form: str, shown: Callable[[], Table]) -> None:
    """Prints rows as 'json' (an array), 'csv', or as the table that `shown` makes."""
    if form == "json":
        click.echo(json.dumps(rows, indent=1))
    elif form == "csv":
        columns = list(dict.fromkeys(name for row in rows for name in row))
        click.echo(results.as_csv(rows, columns), nl=False)
    else:
        show(shown())
