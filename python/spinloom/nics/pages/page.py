"""A message's life as one HTML page that needs nothing beside it: packets from the wire to the host's memory.

Contract: build() takes the traced outcomes of one datatype under several strategies, and returns the page, in
the frame of common/pages. What is too much to draw is merged by lives.merged() and groups_of(), so that a
page stays below PAGE_BYTES; the page says how many spans and blocks one mark then stands for. Times are
modelled.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spinloom import layout
from spinloom.common import files, units
from spinloom.common.errors import Trouble
from spinloom.common.pages import columns, frame
from spinloom.common.printable import html, printable
from spinloom.nics import results, strategies, sweep
from spinloom.nics.pages import lives
from spinloom.nics.sweep import Cell, Outcome, Setup
from spinloom.nics.workloads import Row

PAGE_BYTES = 5_000_000
SPANS_MAX, BLOCKS_MAX, BLOCKS_SEEN = 120_000, 60_000, 4_000_000
TABLE_ROWS = 64  # packets in the table for browsers without scripts


@dataclass(frozen=True)
class Group:
    """Neighbouring blocks of a layout, in packed order: one block, or several with the gaps between them."""

    offset: int
    length: int
    data: int  # bytes of the blocks


def groups_of(blocks: Sequence[tuple[int, int]], limit: int) -> list[Group]:
    together = max(1, -(-len(blocks) // limit))
    found = []
    for at in range(0, len(blocks), together):
        each = blocks[at : at + together]
        first = min(offset for offset, _ in each)
        last = max(offset + length for offset, length in each)
        found.append(Group(first, last - first, sum(length for _, length in each)))
    return found


def memory_of(type_text: str, count: int, size: int) -> dict[str, Any]:
    """The layout in the host's memory. Raises Trouble('invalid') if it has more blocks than can be drawn."""
    blocks = layout.from_text(type_text).blocks(BLOCKS_SEEN, count=count)
    if sum(length for _, length in blocks) != size:
        raise Trouble("invalid", f"a page shows at most {BLOCKS_SEEN:,} blocks; take a smaller --count")
    groups = groups_of(blocks, BLOCKS_MAX)
    return {
        "blocks": len(blocks),
        "together": max(1, -(-len(blocks) // BLOCKS_MAX)),
        "offset": columns.text_of(group.offset for group in groups),
        "length": columns.text_of(group.length for group in groups),
        "data": columns.text_of(group.data for group in groups),
    }


def rows_of(life: lives.Life, limit: int, mtu: int) -> dict[str, dict[str, Any]]:
    """The works of each unit as columns; a unit without any is left out."""
    total = sum(len(works) for works in life.works.values())
    rows = {}
    for unit, works in life.works.items():
        if not works:
            continue
        drawn = lives.merged(works, max(1000, limit * len(works) // total), mtu)
        rows[unit] = {
            "spans": sum(work.spans for work in drawn),
            "drawn": len(drawn),
            "lane": columns.text_of(work.lane for work in drawn),
            "start": columns.text_of(work.start for work in drawn),
            "time": columns.text_of(work.end - work.start for work in drawn),
            "first": columns.text_of(work.first for work in drawn),
            "bytes": columns.text_of(work.last - work.first for work in drawn),
            "count": columns.text_of(work.spans for work in drawn),
        }
    return rows


def recorded_until(outcome: Outcome) -> int | None:
    """The time at which the recording was full; None if it is whole."""
    if not outcome.columns["trace_dropped"]:
        return None
    spans = reversed(outcome.columns["trace"])
    return next((start for track, _, _, start, _ in spans if track in ("call", "parser")), 0)


def life_of(outcome: Outcome, setup: Setup) -> lives.Life:
    return lives.follow(outcome.columns["trace"], setup.mtu, outcome.columns["size_bytes"])


def document(
    outcomes: Sequence[Outcome], of_each: Sequence[lives.Life], setup: Setup, machine: str, result_hash: str
) -> dict[str, Any]:
    """What the page shows."""
    row = outcomes[0].cell.row
    size = outcomes[0].columns["size_bytes"]
    shown = []
    for outcome, life in zip(outcomes, of_each, strict=True):
        of = outcome.columns
        shown.append(
            {
                "strategy": outcome.cell.strategy,
                "about": strategies.STRATEGIES[outcome.cell.strategy],
                "time_ps": of["time_ps"],
                "data_time_ps": of["data_time_ps"],
                "latency_ps": setup.profile["pcie.latency"],
                "until_ps": recorded_until(outcome),
                "staged": life.staged,
                "exact": life.exact,
                "sha256": outcome.destination_sha256,
                "rows": rows_of(life, SPANS_MAX // len(outcomes), setup.mtu),
            }
        )
    return {
        "name": name_of(row),
        "type": frame.shortened(row.type, 2000),
        "count": row.count,
        "size": size,
        "packets": outcomes[0].columns["packets"],
        "mtu": setup.mtu,
        "hpus": setup.hpus,
        "line_time_ps": outcomes[0].columns["line_time_ps"],
        "machine": printable(machine),
        "result_hash": result_hash,
        "memory": memory_of(row.type, row.count, size),
        "lives": shown,
    }


def name_of(row: Row) -> str:
    name = f"{row.application} {row.datatype}" if row.application != "custom" else row.datatype
    return frame.shortened(name, 80)


def table(content: dict[str, Any], of_each: Sequence[lives.Life]) -> str:
    """For browsers without scripts: each strategy's time, and when the first packets came and landed."""
    head = "".join(f"<th>{html(each['strategy'])}</th>" for each in content["lives"])
    times = "".join(f"<td>{units.format_time(each['time_ps'])}</td>" for each in content["lives"])
    lines = [f"<tr><th>whole message</th><td></td>{times}</tr>"]
    ends: list[dict[int, int]] = []
    wire: dict[int, int] = {}
    for life, each in zip(of_each, content["lives"], strict=True):
        wire = {work.first // content["mtu"]: work.end for work in life.works["wire"]}
        landed: dict[int, int] = {}
        for work in life.works["dma"]:
            packet = work.first // content["mtu"]
            landed[packet] = max(landed.get(packet, 0), work.end + each["latency_ps"])
        ends.append(landed)
    for packet in range(min(TABLE_ROWS, content["packets"])):
        cells = "".join(
            f"<td>{units.format_time(landed[packet]) if packet in landed else ''}</td>" for landed in ends
        )
        lines.append(
            f"<tr><th>packet {packet:,}</th><td>{units.format_time(wire.get(packet, 0))}</td>{cells}</tr>"
        )
    return (
        f"<table><thead><tr><th></th><th>off the wire</th>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
        "</table><p>Modelled times: when a packet's last byte is off the wire, and when it is in the host's "
        f"memory. The first {TABLE_ROWS} packets are listed.</p>"
    )


def build(outcomes: Sequence[Outcome], setup: Setup, machine: str, result_hash: str) -> str:
    """The page. `outcomes`: of one datatype, all checked, with their traces (Setup.record)."""
    of_each = [life_of(outcome, setup) for outcome in outcomes]
    content = document(outcomes, of_each, setup, machine, result_hash)
    return frame.build(
        f"{content['name']}: a message's life",
        table(content, of_each),
        content,
        frame.part("life.html", __package__),
        [frame.part(name, __package__) for name in ("life.js", "view.js")],
    )


def without_trace(outcome: Outcome) -> Outcome:
    kept = {name: value for name, value in outcome.columns.items() if not name.startswith("trace")}
    return replace(outcome, columns=kept)


def save(path: Path, cells: list[Cell], setup: Setup, machine: str) -> str:
    """Simulates the cells of one datatype once more, recording what every unit does, and writes their page.

    Returns a sentence on it. The result hash in the page is that of a run of these cells. Strategies that
    cannot take the datatype are left out. Raises Trouble.
    """
    by_cell = {
        outcome.cell: outcome
        for outcome in sweep.run(cells, replace(setup, record=("trace",)), os.cpu_count() or 1)
    }
    outcomes = [by_cell[cell] for cell in cells]
    for outcome in outcomes:
        if outcome.code not in ("ok", *sweep.NOT_RUN):
            raise Trouble(outcome.code, f"no page of {outcome.cell}: {outcome.message}")
    result_hash = results.build(cells, map(without_trace, outcomes), setup).result_hash
    shown = [outcome for outcome in outcomes if outcome.code == "ok"]
    if not shown or shown[0].columns["size_bytes"] == 0:
        raise Trouble("invalid", f"no page of {cells[0].row.type}: no strategy received any bytes")
    text = build(shown, setup, f"{machine}, {setup.hpus} HPUs", result_hash)
    files.write(path, text)
    return f"{path}: {len(shown)} strategies of {name_of(shown[0].cell.row)}; open it in a browser"
