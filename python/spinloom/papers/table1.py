"""Table I of the FFLIB paper: what an endpoint takes for 13 collective operations, beside what ours takes.

Contract: counted() has the engine count for a number of ranks, each sum and copy one operation of the NIC:
the most of all ranks. rows() are the 13 rows over several numbers of ranks: the formulas of the paper and
ours, both counts where they differ, and the reason. Memory is what a rank's schedule has and the larger of
what its caller sends and receives, in bytes.
"""

from __future__ import annotations

from typing import Any

from spinloom.common import core

MESSAGE_BYTES = 64
RESOURCES = {
    "entries": "MD/ME",
    "triggered": "triggered",
    "counters": "counters",
    "memory_bytes": "memory",
}
Row = dict[str, Any]


def counted(ranks: int) -> list[Row]:
    return core.load().collective_table1(ranks, MESSAGE_BYTES)


def name_of(row: Row) -> str:
    return f"{row['operation']}, {row['algorithm']}"


def differs(row: Row) -> bool:
    return any(row[name]["counted"] != row[name]["paper_count"] for name in RESOURCES)


def has_reason(row: Row, ranks: int) -> bool:
    """True if a row that differs says why, and its counts are by the formula that it gives instead."""
    return bool(row["why"]) and all(
        row[name]["counted"] == row[name]["ours_count"]
        or (ranks < row["from_ranks"] and row[name]["counted"] < row[name]["ours_count"])
        for name in RESOURCES
    )


def differing_rows(tables: dict[int, list[Row]]) -> int:
    """Returns how many of the 13 rows differ at some number of ranks. By ranks: what counted() gave."""
    return len({name_of(row) for rows in tables.values() for row in rows if differs(row)})


def counts_without_reason(tables: dict[int, list[Row]]) -> int:
    """Returns how many counts of rows, each at a number of ranks, differ without a reason."""
    return sum(differs(row) and not has_reason(row, ranks) for ranks, rows in tables.items() for row in rows)


def rows(tables: dict[int, list[Row]]) -> list[dict[str, str]]:
    """The 13 rows: each resource as "2", or, where it differs, as "P: 1,024 (2: 2)": our formula and count at
    most ranks, and the paper's."""
    most = max(tables)
    texts = []
    for number, last in enumerate(tables[most]):
        few = [ranks for ranks, rows in tables.items() if differs(rows[number])]
        texts.append(
            {
                "row": name_of(last),
                **{title: cell(last[name]) for name, title in RESOURCES.items()},
                "equal": "at all" if not few else (f"from {2 * max(few)} ranks" if max(few) < most else "no"),
                "reason": last["why"],
            }
        )
    return texts


def cell(resource: Row) -> str:
    if resource["ours"] == resource["paper"]:
        return str(resource["paper"])
    return f"{resource['ours']}: {resource['counted']:,} ({resource['paper']}: {resource['paper_count']:,})"
