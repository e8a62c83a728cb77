"""Bar: receives the progress of long work. This class shows nothing; that of verbs/progress.py shows a
bar."""

from __future__ import annotations


class Bar:
    """Called once for each cell that ends; expect() announces further cells."""

    def __call__(self) -> None:
        pass

    def expect(self, cells: int) -> None:
        pass
