"""The report of `spinloom run` as one HTML page that needs nothing beside it.

Contract: page() takes what mpi_report.merge() makes, and returns a page in the frame of common/pages, without
a script. The bar shows shares of the bytes that ranks counted. The pictures are those of `spinloom explain
--plot`. What a message takes by each way is what the planner of the layer computes from `prices`.
"""

from __future__ import annotations

from typing import Any

from spinloom import layout
from spinloom.accelerate import mpi_report
from spinloom.accelerate.peer_prices import PeerPrices
from spinloom.common import core, units
from spinloom.common.errors import Trouble
from spinloom.common.pages import frame
from spinloom.common.printable import html
from spinloom.layout import picture

WAYS = {
    "mapped": ("#2f5d8c", "for the receiver to copy once"),
    "joint": ("#1d3f63", "for both ends to copy once"),
    "cma": ("#4f7fb0", "for the receiver to copy once, by system calls"),
    "within": ("#5b9a8b", "for the rank itself, copied once"),
    "device": ("#2c7a64", "for the receiver's GPU to copy once"),
    "staged": ("#7ba3cc", "packed into shared memory, and unpacked from there"),
    "packed": ("#9fb8a8", "packed before the MPI carried it to other machines"),
    "pass": ("#c9c9c9", "carried by the MPI"),
}
PICTURES_MAX = 5
COLUMN_CLASSES = {"messages": "n", "bytes": "n", "to": "w", "way": "w"}
STYLE = """
body { font-size: 14px; max-width: 1180px; margin: 0 auto; }
h2 { font-size: 16px; font-weight: 600; margin: 22px 0 6px; display: block; } h3 { font-size: 14px; }
code, pre { font-family: "DejaVu Sans Mono", monospace; font-size: 12px; overflow-wrap: anywhere; }
pre { background: var(--lane); padding: 8px 10px; white-space: pre-wrap; margin: 4px 0 12px; }
table { width: 100%; } th, td { text-align: left; vertical-align: top; padding: 4px 8px 4px 0; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.w { white-space: nowrap; }
.bytes { display: flex; height: 22px; border: 1px solid var(--edge); }
.bytes span { display: block; height: 100%; }
.key { border: 1px solid var(--edge); }
.warn { border-left: 4px solid var(--done); padding-left: 10px; }
svg { max-width: 100%; height: auto; border: 1px solid var(--line); background: #ffffff; }
"""


def page(document: dict[str, Any], command: str, where: str = "", prices: PeerPrices | None = None) -> str:
    """`command`: what was run. `where`: a file that holds the document as JSON, if there is one."""
    body = [
        *(f"<p>{html_sentence(each)}</p>" for each in mpi_report.facts(document)),
        *(f'<p class="warn">{html_sentence(each)}</p>' for each in mpi_report.warnings(document)),
    ]
    if document["types"]:
        body += [
            *shares_section(document),
            *types_section(document),
            *gainers_section(document, where, prices),
        ]
    head = f"<pre>{html(command)}</pre>\n"
    return frame.still("Datatypes of an MPI job", head, "\n".join(body) + "\n", STYLE)


def html_sentence(words: str) -> str:
    return html(words[0].upper() + words[1:]) + "."


def shares_section(document: dict[str, Any]) -> list[str]:
    """Returns how the bytes of messages that are not contiguous went."""
    sizes = dict.fromkeys(WAYS, 0)
    for row in document["types"]:
        if row["kind"] != "contiguous":
            sizes[row["way"]] += row["bytes"]
    total = sum(sizes.values())
    if total == 0:
        return ["<p>All messages were contiguous.</p>"]
    spans = "".join(
        f'<span style="width:{100 * size / total:.2f}%;background:{WAYS[way][0]}" title="{way}"></span>'
        for way, size in sizes.items()
        if size
    )
    items = "".join(
        f'<span class="item"><span class="swatch key" style="background:{colour}"></span> {way}: '
        f"{sizes[way]:,} B, {words}</span><br>"
        for way, (colour, words) in WAYS.items()
        if sizes[way]
    )
    return [
        "<h2>Bytes that are not contiguous, by the way that they went</h2>",
        f'<div class="bytes">{spans}</div><p class="legend">{items}</p>',
    ]


def types_section(document: dict[str, Any]) -> list[str]:
    head = "".join(f'<th class="{COLUMN_CLASSES.get(name, "")}">{name}</th>' for name in mpi_report.COLUMNS)
    rows = []
    for texts in mpi_report.cells(document):
        named_texts = list(zip(mpi_report.COLUMNS, texts, strict=True))
        cells = [f"<td><code>{html(named_texts[0][1])}</code></td>"]
        cells += [
            f'<td class="{COLUMN_CLASSES.get(name, "")}">{html(text)}</td>' for name, text in named_texts[1:]
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return [
        "<h2>Messages by type</h2>",
        "<p>Each rank counted what it sent. <em>to</em>: how far away the receivers are, in ranks of "
        "MPI_COMM_WORLD. Basic types stand for others of the same size.</p>",
        f"<table><tr>{head}</tr>{''.join(rows)}</table>",
    ]


def gainers_section(document: dict[str, Any], where: str, prices: PeerPrices | None) -> list[str]:
    gainers = document["gainers"]
    body = ["<h2>What would gain most</h2>"]
    if not gainers:
        return [*body, *(f"<p>{html(each)}</p>" for each in mpi_report.advice(document))]
    body.append("<p>By the cache lines that their messages touch; this is no measurement of time.</p>")
    for place, gainer in enumerate(gainers, 1):
        name = mpi_report.title({**gainer, "kind": "derived"})
        command = gainer["explain"] or mpi_report.too_long(gainer, where)
        body.append(
            f"<h3>{place}. <code>{html(name)}</code></h3><p>{gainer['messages']:,} messages with "
            f"{gainer['bytes']:,} B: {html(gainer['how'])}.</p><pre>{html(command)}</pre>"
        )
        if place <= PICTURES_MAX and gainer["explain"]:
            body += [costs_or_empty(gainer, prices), picture_or_empty(gainer["text"])]
    return body


def costs_or_empty(gainer: dict[str, Any], prices: PeerPrices | None) -> str:
    """What one message takes by each way between two ranks of this machine; nothing where nobody knows."""
    if prices is None or gainer["count"] is None or not core.available():
        return ""
    engine = core.load()
    costs = engine.peer_costs(prices.as_setting(), engine.peer_work(gainer["text"], gainer["count"]))
    cells = "".join(
        f"<tr><td>{html(way)}</td><td>{html(WAYS[way][1])}</td>"
        f'<td class="n">{units.format_time(round(cost * 1000))}</td></tr>'
        for way, cost in sorted(costs.items(), key=lambda each: each[1])
        if way in WAYS
    )
    of_whom = f"measured {prices.measured}" if prices.measured else "those that the layer came with"
    return (
        f'<table><tr><th>way</th><th>who copies</th><th class="n">a message takes</th></tr>{cells}</table>'
        f"<p>Computed by the layer's planner from prices of this machine ({html(of_whom)}).</p>"
    )


def picture_or_empty(text: str) -> str:
    """The first elements in memory; nothing where the engine is not built."""
    if not core.available():
        return ""
    try:
        return picture.draw(layout.from_text(text))
    except Trouble:
        return ""
