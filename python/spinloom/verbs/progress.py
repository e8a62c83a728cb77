"""The progress bar that long verbs share: on stderr, with the time left, only where somebody looks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spinloom import output


@contextlib.contextmanager
def progress(cells: int, quiet: bool, doing: str = "simulating") -> Iterator[Callable[[], None]]:
    """Yields the function that moves the bar on by one cell."""
    console = output.error_console()
    if quiet or not console.is_terminal:
        yield lambda: None
        return
    columns = (
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("cells", total=cells)
        yield lambda: bar.advance(task)
