"""Rows as CSV, as every verb prints and writes them."""

from __future__ import annotations

import csv
import io
from typing import Any


def as_csv(rows: list[dict[str, Any]], columns: list[str]) -> str:
    """Long format, one line for each row; empty fields mean no value, booleans are true and false."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = (row.get(column) for column in columns)
        writer.writerow(str(value).lower() if isinstance(value, bool) else value for value in values)
    return out.getvalue()
