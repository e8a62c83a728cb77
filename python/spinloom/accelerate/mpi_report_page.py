"""The report of `spinloom run` as one HTML page that needs nothing beside it.

Contract: page() takes what mpi_report.merge() makes. The bar shows shares of the bytes that ranks counted.
The pictures are those of `spinloom explain --plot`. The page has no script and loads nothing.
"""

from __future__ import annotations

from typing import Any

from spinloom import layout
from spinloom.accelerate import mpi_report
from spinloom.common import core
from spinloom.common.errors import Trouble
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
body { font: 15px/1.45 "DejaVu Sans", Helvetica, sans-serif; color: #111; max-width: 1080px; margin: 2em auto;
  padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
code { font-family: "DejaVu Sans Mono", monospace; font-size: .85em; overflow-wrap: anywhere; }
pre { background: #f3f5f8; padding: .6em .8em; white-space: pre-wrap; overflow-wrap: anywhere;
  margin: .3em 0 1em; }
table { border-collapse: collapse; width: 100%; font-size: .9em; }
th { text-align: left; border-bottom: 2px solid #111; padding: .3em .6em .3em 0; }
td { border-bottom: 1px solid #ddd; padding: .35em .6em .35em 0; vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.w { white-space: nowrap; }
.bar { display: flex; height: 1.4em; border: 1px solid #111; } .bar span { display: block; height: 100%; }
.key { display: inline-block; width: .9em; height: .9em; border: 1px solid #111; vertical-align: -.1em; }
.legend span.item { margin-right: 1.6em; white-space: nowrap; }
.warn { border-left: 4px solid #c23b22; padding-left: .7em; }
svg { max-width: 100%; height: auto; border: 1px solid #ddd; }
"""


def page(document: dict[str, Any], command: str, where: str = "") -> str:
    """`command`: what was run. `where`: a file that holds the document as JSON, if there is one."""
    body = [
        "<h1>Datatypes of an MPI job</h1>",
        f"<pre>{html(command)}</pre>",
        *(f"<p>{html_sentence(each)}</p>" for each in mpi_report.facts(document)),
        *(f'<p class="warn">{html_sentence(each)}</p>' for each in mpi_report.warnings(document)),
    ]
    if document["types"]:
        body += [*shares_section(document), *types_section(document), *gainers_section(document, where)]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>spinloom run: report</title>'
        f"<style>{STYLE}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


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
        f'<span class="item"><span class="key" style="background:{colour}"></span> {way}: {sizes[way]:,} B, '
        f"{words}</span><br>"
        for way, (colour, words) in WAYS.items()
    )
    return [
        "<h2>Bytes that are not contiguous, by the way that they went</h2>",
        f'<div class="bar">{spans}</div><p class="legend">{items}</p>',
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


def gainers_section(document: dict[str, Any], where: str) -> list[str]:
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
            body.append(picture_or_empty(gainer["text"]))
    return body


def picture_or_empty(text: str) -> str:
    """The first elements in memory; nothing where the engine is not built."""
    if not core.available():
        return ""
    try:
        return picture.draw(layout.from_text(text))
    except Trouble:
        return ""
