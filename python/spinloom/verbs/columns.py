"""What the columns of results mean, by the command that writes them.

`spinloom info columns` and the documentation show it.
"""

from __future__ import annotations

from spinloom.nics import mixes, results, sending, sharing
from spinloom.predict import predict

TABLES = {
    "simulate": results.COLUMNS,
    "simulate --send": sending.COLUMNS,
    "simulate --together": sharing.COLUMNS,
    "simulate --together --early": mixes.COLUMNS,
    "predict": predict.COLUMNS,
}


def rows() -> list[dict[str, str]]:
    """The columns command, column and meaning."""
    return [
        {"command": command, "column": column, "meaning": meaning}
        for command, columns in TABLES.items()
        for column, meaning in columns.items()
    ]
