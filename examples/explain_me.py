"""Datatypes for `spinloom explain examples/explain_me.py:NAME`: arrays and dtypes as a program has them."""

import numpy as np

grid = np.zeros((66, 66, 66))
face = grid[1:-1, 1:-1, 1]  # the plane that goes to the left neighbour: one value a row
particle = np.dtype([("position", "3f8"), ("kind", "i1"), ("charge", "f4")], align=True)


def every_other_row() -> np.ndarray:
    """A function is called."""
    return grid[::2]
