"""The bar of long verbs: its total grows with what is still to come; it is silent where nobody looks."""

import io

from rich.console import Console

from spinloom.common import output
from spinloom.common.bar import Bar
from spinloom.common.progress import progress


def test_the_total_grows_with_what_is_expected(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(output, "error_console", lambda: console)
    with progress(0, quiet=False) as bar:
        bar.expect(2)
        bar()
        bar.expect(3)
        (task,) = bar.display.tasks
        assert (task.completed, task.total) == (1, 5)
        for _ in range(4):
            bar()
        assert task.finished
    assert "5/5" in console.file.getvalue()


def test_nothing_is_shown_where_nobody_looks(monkeypatch):
    silent = Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(output, "error_console", lambda: silent)
    for quiet in (False, True):
        with progress(2, quiet) as bar:
            bar()
            bar.expect(1)
        assert type(bar) is Bar
    assert silent.file.getvalue() == ""
