"""Bar: receives the progress of long work. This class shows nothing; that of progress.py shows a
bar."""

from __future__ import annotations


class Bar:
    """Called once for each cell that ends, or reach() with how many have; expect() announces further ones."""

    def __call__(self) -> None:
        pass

    def reach(self, cells: int) -> None:
        pass

    def expect(self, cells: int) -> None:
        pass
