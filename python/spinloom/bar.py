"""Bar: what long work tells about how far it is. This one shows nothing; that of verbs/progress.py does."""

from __future__ import annotations


class Bar:
    """Called once for each cell that ends; expect() says that so many more will come."""

    def __call__(self) -> None:
        pass

    def expect(self, cells: int) -> None:
        pass
