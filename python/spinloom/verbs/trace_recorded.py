"""The views of `spinloom trace DIR`: what a recorded MPI program did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spinloom.common import files, output
from spinloom.common.errors import EXIT_NEGATIVE, EXIT_OK
from spinloom.traces import otf2_export, recorded
from spinloom.traces.pages import recorded_run

TEXT_SHOWN = 60
WRONG = ("truncated", "types differ", "not received", "not sent")
DOUBTS = {
    "short trace": "perhaps: a trace is shorter than its rank's life",
    "untold": "perhaps: the trace does not tell what all receives got, or what came of a cancel",
}


def show(
    directory: Path, view: str, timeline: Path | None, page: Path | None, archive: Path | None, form: str
) -> int:
    traces = recorded.read(directory)
    for sentence in recorded.warnings(traces):
        output.say(sentence)
    if timeline is not None:
        files.write(timeline, recorded.timeline(traces, directory.name))
        output.say(f"{timeline}: a timeline for ui.perfetto.dev")
    if page is not None:
        output.say(recorded_run.save(page, directory, traces))
    if archive is not None:
        for sentence in otf2_export.export(traces, archive, directory.name):
            output.say(sentence)
        output.say(f"{archive}: an OTF2 archive, {archive / directory.name}.otf2")
    if timeline is not None or page is not None or archive is not None:
        return EXIT_OK
    rows_of, table_of = VIEWS[view]
    rows = rows_of(traces)
    if rows or form != "table":
        output.emit(rows, form, lambda: table_of(rows))
    else:
        output.say(EMPTY_SENTENCES[view](traces))
    wrong = view == "check" and any(row["finding"] in WRONG and row["sure"] for row in rows)
    return EXIT_NEGATIVE if wrong else EXIT_OK


def seconds(value: float) -> str:
    return f"{value:.6f}"


def calls_table(rows: list[dict[str, Any]]):
    columns = ["call", "count", "polls", "bytes sent", "bytes received", "time s", "share %"]
    columns += ["least s", "on rank", "most s", "on rank "]
    cells = [
        [
            row["call"],
            str(row["count"]),
            str(row["polls"] or ""),
            str(row["sent_bytes"] or ""),
            str(row["received_bytes"] or ""),
            seconds(row["time_s"]),
            f"{100 * row['share']:.2f}",
            seconds(row["min_time_s"]),
            str(row["min_rank"]),
            seconds(row["max_time_s"]),
            str(row["max_rank"]),
        ]
        for row in rows
    ]
    return output.table(columns, cells, numeric=set(columns[1:]))


def matrix_table(rows: list[dict[str, Any]]):
    columns = ["from", "to", "messages", "bytes"]
    return output.table(columns, [[str(row[name]) for name in columns] for row in rows], numeric=set(columns))


def types_table(rows: list[dict[str, Any]]):
    columns = [
        "type",
        "size",
        "extent",
        "blocks",
        "contiguous",
        "sends",
        "receives",
        "elements each",
        "bytes",
    ]

    def name_of(row: dict[str, Any]) -> str:
        name = " ".join(word for word in (row["name"], row["text"]) if word) or "(not known)"
        return name if len(name) <= TEXT_SHOWN else name[: TEXT_SHOWN - 3] + "..."

    def each(row: dict[str, Any]) -> str:
        least, most = row["count_min"], row["count_max"]
        return str(least) if least == most else f"{least} to {most}"

    cells = [
        [
            name_of(row),
            str(row["size_bytes"]),
            str(row["extent_bytes"]),
            str(row["blocks"] or "?"),
            "yes" if row["contiguous"] else "no",
            str(row["sends"] or ""),
            str(row["receives"] or ""),
            each(row),
            str(row["bytes"]),
        ]
        for row in rows
    ]
    return output.table(columns, cells, numeric={*columns[1:4], *columns[5:]})


def check_table(rows: list[dict[str, Any]]):
    columns = ["finding", "from", "to", "tag", "times", "bytes sent", "room", "bytes", "first at s", "remark"]
    remarks = {
        "truncated": "the message is longer than its receive",
        "types differ": "its basic types are not those of its receive",
        "not received": "",
        "not sent": "",
        "sent twice": "bytes of memory, in one exchange",
        "room left": "legal: the receive has room for more",
    }

    def rank(value: int | None) -> str:
        return "any" if value is None else str(value)

    cells = [
        [
            row["finding"],
            rank(row["from"]),
            rank(row["to"]),
            "any" if row["tag"] == recorded.ANY else str(row["tag"]),
            str(row["times"]),
            str(row["sent_bytes"] or ""),
            str(row["room_bytes"] or ""),
            str(row["bytes"]),
            seconds(row["first_ns"] / recorded.NS_PER_S),
            DOUBTS[row["doubt"]] if row["doubt"] else remarks[row["finding"]],
        ]
        for row in rows
    ]
    return output.table(columns, cells, numeric=set(columns[1:9]))


VIEWS = {
    "calls": (recorded.call_rows, calls_table),
    "matrix": (recorded.matrix_rows, matrix_table),
    "types": (recorded.type_rows, types_table),
    "check": (recorded.finding_rows, check_table),
}
EMPTY_SENTENCES = {
    "calls": lambda _: "no rank called anything",
    "matrix": lambda _: "no rank sent another anything",
    "types": lambda _: "no call had a buffer",
    "check": recorded.no_findings,
}
