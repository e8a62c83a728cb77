"""Text output: results to stdout as a table, JSON or CSV; diagnostics to stderr.

Output is plain text: square brackets and colons of a datatype are no markup. rich leaves colours out
when NO_COLOR is set or the stream is not a terminal. What verbs print goes out here, by echo(), say(), show()
and the consoles, and what of it a terminal would obey is written out (printable.py). pass_on() is for what
the user's own program has printed.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from spinloom.common import csv_text
from spinloom.common.printable import printable

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
    """A console that prints printable text. The caller notices that its reader went away; rich would exit."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Standard output; as wide as COLUMNS says, or WIDTH_OF_A_PIPE, when it is not a terminal."""
    columns = os.environ.get("COLUMNS", "")
    width = None if sys.stdout.isatty() else int(columns) if columns.isdigit() else WIDTH_OF_A_PIPE
    return Output(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def show(rich_table: Table, keys: int = 1) -> None:
    """Prints a table; one that is wider than the terminal as several, each with the first `keys` columns.
    What is still wider runs over the edge, complete. A title that is wider than its table stands above it."""
    target = console()
    terminal_width = target.width
    for part in parts(rich_table, target.width, keys):
        padding = 2 * len(part.columns)
        needed = Measurement.get(target, target.options.update(max_width=10_000), part).minimum + padding
        target.width = max(target.width, needed)
        title = str(part.title or "")
        if cell_len(title) > Measurement.get(target, target.options, part).maximum:
            target.print(Text(printable(title), style="bold"), width=terminal_width)
            part.title = None
        target.print(part)


FOLDED_WIDTH = 24  # the least that a column of prose gets
BETWEEN = 3  # characters between two columns


def parts(rich_table: Table, width: int, keys: int) -> list[Table]:
    """The table's columns in as few tables as fit the width."""
    widths = [FOLDED_WIDTH if column.min_width is None else column.min_width for column in rich_table.columns]
    first = sum(widths[:keys]) + BETWEEN * keys
    groups: list[list[int]] = [[]]
    used = first
    for number in range(keys, len(widths)):
        if groups[-1] and used + widths[number] > width:
            groups.append([])
            used = first
        groups[-1].append(number)
        used += widths[number] + BETWEEN
    if len(groups) == 1:
        return [rich_table]
    return [part_of(rich_table, [*range(keys), *group], titled=group is groups[0]) for group in groups]


def part_of(rich_table: Table, columns: list[int], titled: bool) -> Table:
    part = Table(
        box=rich_table.box,
        title=rich_table.title if titled else None,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        show_header=rich_table.show_header,
    )
    for number in columns:
        column = rich_table.columns[number]
        part.add_column(
            column.header, justify=column.justify, no_wrap=column.no_wrap, min_width=column.min_width
        )
    for row in zip(*(list(rich_table.columns[number].cells) for number in columns), strict=True):
        part.add_row(*row)
    return part


def as_text(rich_table: Table) -> str:
    """The table as plain lines, as wide as it needs."""
    target = Output(
        file=io.StringIO(), width=10_000, highlight=False, markup=False, emoji=False, color_system=None
    )
    target.print(rich_table)
    lines = (line.rstrip() for line in target.file.getvalue().splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def error_console() -> Console:
    return Output(file=sys.stderr, highlight=False, markup=False, emoji=False)


def echo(message: str | bytes, *, err: bool = False, nl: bool = True) -> None:
    """Prints a message. Bytes are written unchanged, except to a terminal, which gets printable text."""
    if isinstance(message, bytes) and (sys.stderr if err else sys.stdout).isatty():
        message = message.decode("utf-8", "backslashreplace")
    click.echo(printable(message) if isinstance(message, str) else message, err=err, nl=nl)


def pass_on(printed: str) -> None:
    """Writes what the user's program has printed to stderr, as it is."""
    click.echo(printed, err=True, nl=False)


def say(message: str) -> None:
    """One line of diagnostics."""
    echo(f"spinloom: {message}", err=True)


def table(
    columns: list[str],
    rows: list[list[str]],
    *,
    numeric: set[str] = frozenset(),
    foldable: set[str] = FOLDABLE,
    title: str = "",
) -> Table:
    """A plain table; columns in `numeric` are right-aligned, only those in `foldable` (prose) are folded."""
    rich_table = Table(
        box=box.SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False
    )
    for number, column in enumerate(columns):
        keeps_width = column in numeric or column not in foldable
        cells = [printable(cell) for cell in (column, *(row[number] for row in rows))]
        rich_table.add_column(
            column,
            justify="right" if column in numeric else "left",
            no_wrap=keeps_width,
            min_width=max(cell_len(cell) for cell in cells) if keeps_width else None,
        )
    for row in rows:
        rich_table.add_row(*row)
    return rich_table


def emit(rows: list[dict[str, Any]], form: str, make_table: Callable[[], Table]) -> None:
    """Prints rows as 'json' (an array), 'csv', or as the table that `make_table` makes."""
    if form == "json":
        echo(json.dumps(rows, indent=1))
    elif form == "csv":
        columns = list(dict.fromkeys(name for row in rows for name in row))
        echo(csv_text.as_csv(rows, columns), nl=False)
    else:
        show(make_table())
