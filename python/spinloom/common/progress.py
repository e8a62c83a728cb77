"""The progress bar that long verbs share: on stderr, with the time left, only if stderr is a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spinloom.common import output
from spinloom.common.bar import Bar


class ShownBar(Bar):
    def __init__(self, display: Progress, cells: int) -> None:
        self.display = display
        self.task = display.add_task("cells", total=cells)
        self.cells = cells

    def __call__(self) -> None:
        self.display.advance(self.task)

    def reach(self, cells: int) -> None:
        self.display.update(self.task, completed=cells)

    def expect(self, cells: int) -> None:
        self.cells += cells
        self.display.update(self.task, total=self.cells)


@contextlib.contextmanager
def progress(cells: int, quiet: bool, doing: str = "simulating") -> Iterator[Bar]:
    """Yields the bar; `cells` may be 0 if expect() announces cells later."""
    console = output.error_console()
    if quiet or not console.is_terminal:
        yield Bar()
        return
    columns = (
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as shown:
        yield ShownBar(shown, cells)
