"""The counts of all ranks of `spinloom run --report`, put together (docs/formats/mpi-report.md).

Contract: read() collects what the ranks have written; merge() is pure and makes the document: every number
in it was counted by a rank, and what a rank did not live to say is missing. sentences(), cells() and advice()
are for people; mpi_report_page.py makes a page of them. nics/targets.py finds a type in it for
`spinloom explain FILE.json:NUMBER`.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

from spinloom.nics.targets import REPORT_FORMAT as FORMAT

VARIOUS = -1  # a mark in place of a count, or of a receiver's rank
GAINERS_MAX = 5
ONE_COPY = ("mapped", "joint", "cma", "within")
GPUS = ("gpu_moves", "gpu_bytes", "gpu_within", "gpu_as_they_are", "gpu_taken", "gpu_taken_bytes")
WITHIN = ("within", "within_bytes")
REST = ("refused", "offered", "withdrawn", "helped", "packs", "window_copies", *WITHIN, *GPUS)
LINE_BYTES = 64
DISTANCES_SHOWN = 6
TEXT_SHOWN = 72
COMMAND_MAX = 500  # characters that anybody would copy
UNMAPPED = "the receiver has not mapped this rank's memory"
FIRST_MESSAGES = 4  # a pair's first messages may leave before the receiver has mapped anything
MAY_GAIN = {
    # By why a message went as it did: how much of its work can be spared, and how.
    "the buffer cannot be mapped": (
        0.5,
        "large blocks of malloc can be copied once; stacks and static memory cannot",
    ),
    "the heap that ranks map is not preloaded": (0.5, "preload libspinloom-heap.so beside the layer"),
    "receivers did not come in time for earlier ones": (
        0.5,
        "receives that are posted early let a message be copied once",
    ),
    "the call changes the buffer that it sends": (
        0.5,
        "calls with two buffers (MPI_Sendrecv, no MPI_IN_PLACE) let a message be copied once",
    ),
    "there was no room in shared memory": (1.0, "more room: SPINLOOM_MPI_STAGING_BYTES"),
    "short": (
        1.0,
        "longer messages: several of them in one, or SPINLOOM_MPI_MIN_BYTES if they are worth it here",
    ),
    "the target's memory cannot be mapped, and this is too little for system calls, or in short blocks": (
        0.5,
        "windows of MPI_Win_allocate, or in large blocks of malloc, can be mapped",
    ),
    "asked for": (1.0, "SPINLOOM_MPI_PATH=auto lets the layer choose"),
    "MPI_Isendrecv is left to the MPI": (1.0, "MPI_Isend and MPI_Irecv instead of MPI_Isendrecv"),
    UNMAPPED: (1.0, "ranks of one machine that both have the layer can use shared memory"),
}


def read(report: Path) -> list[dict[str, Any]]:
    """The lines of the ranks that have ended, and what is left of the others."""
    parts = sorted(report.parent.glob(f"{report.name}.*.part"))
    texts = [
        file.read_text(encoding="utf-8", errors="backslashreplace")
        for file in (report, *parts)
        if file.exists()
    ]
    reports = []
    for line in "\n".join(texts).splitlines():
        try:
            reports.append(json.loads(line))
        except ValueError:  # a disk that is full
            continue
    return reports


# ---- putting together ----


def merge(lines: list[dict[str, Any]]) -> dict[str, Any]:
    types = merged_types([line for line in lines if line["on"]])
    return {
        "format": FORMAT,
        "jobs": [job_of(name, lines) for name in dict.fromkeys(line["job"] for line in lines)],
        "totals": {
            name: sum(line[name] for line in lines)
            for name in ("sent", "sent_bytes", "landed", "landed_bytes", *REST)
        },
        "gpu_why": sorted({line["gpu_why"] for line in lines if line["gpu_why"]}),
        "types": types,
        "gainers": top_gainers(types),
        **merged_collectives(lines),
        **merged_windows(lines),
    }


def merged_collectives(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Says what became of collective calls if the job asked for the NIC: a row for each call and reason."""
    ranks = [line["collectives"] for line in lines if line.get("collectives", {}).get("asked")]
    if not ranks:
        return {}
    rows: dict[tuple[str, str], list[int]] = {}
    for rank in ranks:
        for call, why, calls, size in rank["calls"]:
            row = rows.setdefault((call, why), [0, 0])
            row[0] += calls
            row[1] += size
    return {
        "collectives": {
            "on": sum(rank["on"] for rank in ranks),
            "why_off": sorted({rank["why_off"] for rank in ranks if not rank["on"]}),
            "calls": [
                {"call": call, "on_nic": not why, "why": why or None, "calls": calls, "bytes": size}
                for (call, why), (calls, size) in sorted(rows.items())
            ],
        }
    }


ACCESSES = ("puts", "gets", "accumulates", "fetches")


def merged_windows(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns what became of windows, where the job asked for the NIC's one-sided memory."""
    ranks = [line["rma"] for line in lines if line.get("rma", {}).get("asked")]
    if not ranks:
        return {}
    reasons = sorted({why for rank in ranks for why in rank["why_left"]})
    sums = ("windows", "mapped", "left", *ACCESSES, "updates", "bytes")
    return {
        "rma": {
            "on": sum(rank["on"] for rank in ranks),
            "why_off": sorted({rank["why_off"] for rank in ranks if not rank["on"]}),
            **{name: sum(rank[name] for rank in ranks) for name in sums},
            "why_left": {why: sum(rank["why_left"].get(why, 0) for rank in ranks) for why in reasons},
        }
    }


def job_of(name: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The ranks of one MPI_COMM_WORLD."""
    job_lines = [line for line in lines if line["job"] == name]
    size = max(line["ranks"] for line in job_lines)
    present = {line["rank"] for line in job_lines}
    missing = [rank for rank in range(size) if rank not in present] if name else []
    return {
        "job": name,
        "ranks": size,
        "machines": sorted({line["machine"] for line in job_lines}),
        "with_layer": sum(line["on"] for line in job_lines),
        "seconds": max((line["seconds"] for line in job_lines if line["on"]), default=0),
        "in_calls_seconds": sorted(line["in_calls_seconds"] for line in job_lines if line["on"]),
        "why_off": sorted({line["why_off"] for line in job_lines if not line["on"] and line["why_off"]}),
        "killed": sorted(line["rank"] for line in job_lines if not line["ended"]),
        "silent": missing,
    }


def merged_types(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each type, count, way and reason, the most bytes first; contiguous messages are one type."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in lines:
        for entry in line["types"]:
            for count, receiver, way, why, messages, size, withdrawn, call in entry["sent"]:
                kind = "contiguous" if why == "contiguous" else entry["kind"]
                text = entry.get("text", "") if kind == "derived" else ""
                key = (kind, text, entry.get("size") if text else 0, count, way, why, call)
                if key not in rows:
                    rows[key] = row_of(kind, entry, count, way, why, call)
                row = rows[key]
                row["messages"] += messages
                row["bytes"] += size
                row["withdrawn"] += withdrawn
                row["pairs"].add((line["job"], line["rank"], receiver))
    ordered = sorted(
        rows.values(), key=lambda row: (-row["bytes"], row["text"] or "", row["why"], row["call"] or "")
    )
    for number, row in enumerate(ordered):
        row["number"] = number
        row["peers"] = pattern(row["pairs"])
        row["pairs"] = len(row["pairs"])
        if row["kind"] == "derived":
            row["explain"] = command_for(row)
    return ordered


def row_of(kind: str, entry: dict[str, Any], count: int, way: str, why: str, call: str) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": kind, "text": None}
    if kind == "derived":
        row |= {name: entry[name] for name in ("text", "whole", "size", "extent", "spread", "block_bytes")}
    row |= {"count": None if count == VARIOUS else count, "way": way, "why": why, "call": call or None}
    return row | {"messages": 0, "bytes": 0, "withdrawn": 0, "pairs": set()}


def pattern(pairs: set[tuple[str, int, int]]) -> str:
    """Returns how far away the receivers are, in ranks of MPI_COMM_WORLD: '+1 -1'."""
    distances = Counter(to - rank for _, rank, to in pairs if to != VARIOUS)
    several = any(to == VARIOUS for _, _, to in pairs)
    often = sorted(distances, key=lambda distance: (-distances[distance], abs(distance), -distance))
    shown = [f"{distance:+}" if distance else "itself" for distance in often[:DISTANCES_SHOWN]]
    hidden = len(distances) - len(shown)
    return " ".join(shown + ([f"and {hidden} more"] if hidden else []) + (["others"] if several else []))


def command_for(row: dict[str, Any]) -> str | None:
    """None where the text is not known whole, or too long for a command."""
    command = f"spinloom explain {shlex.quote(row['text'])} --count {row['count'] or 1}"
    return command if row["whole"] and len(command) <= COMMAND_MAX else None


def top_gainers(types: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The types whose messages touch the most cache lines more than need be: counted, not timed."""
    by_type: dict[tuple[str, Any], dict[str, Any]] = {}
    for row in types:
        first_of_pairs = row["why"] == UNMAPPED and row["messages"] <= FIRST_MESSAGES * row["pairs"]
        if row["kind"] != "derived" or first_of_pairs:
            continue
        share, how = (0.0, "") if row["way"] in ONE_COPY else MAY_GAIN.get(row["why"], (0.0, ""))
        lines = share * row["bytes"] * row["spread"] / LINE_BYTES
        if lines <= 0:
            continue
        gainer = by_type.setdefault(
            (row["text"], row["count"]),
            {"number": row["number"], "text": row["text"], "count": row["count"], "messages": 0, "bytes": 0}
            | {"lines": 0.0, "how": {}, "explain": row["explain"]},
        )
        gainer["messages"] += row["messages"]
        gainer["bytes"] += row["bytes"]
        gainer["lines"] += lines
        gainer["how"][how] = gainer["how"].get(how, 0.0) + lines
    best = sorted(by_type.values(), key=lambda gainer: -gainer["lines"])[:GAINERS_MAX]
    return [
        {**gainer, "lines": round(gainer["lines"]), "how": max(gainer["how"], key=gainer["how"].get)}
        for gainer in best
    ]


# ---- for people ----


def sentences(document: dict[str, Any]) -> list[str]:
    return facts(document) + warnings(document)


def facts(document: dict[str, Any]) -> list[str]:
    """The totals, or why there are none."""
    jobs, totals = document["jobs"], document["totals"]
    if not any(job["with_layer"] for job in jobs):
        reasons = sorted({why for job in jobs for why in job["why_off"]})
        why = "; ".join(reasons or ["no rank has called MPI_Finalize with the layer"])
        others = [
            *([packed(totals)] if totals["packs"] else []),
            *on_gpus(document),
        ]
        if others:
            return [f"the layer carried no messages: {why}", *others]
        return [f"the layer was off: {why}"]
    ranks = f"{sum(job['with_layer'] for job in jobs)} of {sum(job['ranks'] for job in jobs)} ranks"
    between = totals["sent"] - totals["within"]
    between_bytes = totals["sent_bytes"] - totals["within_bytes"]
    went = f"{between:,} messages with {between_bytes:,} B went through shared memory"
    lines = [
        f"{went} between {ranks}"
        + (f"; {totals['refused']:,} found no room there" if totals["refused"] else "")
    ]
    if totals["within"]:
        within = f"{totals['within']:,} messages with {totals['within_bytes']:,} B"
        lines.append(f"{within} of ranks to themselves were copied from layout to layout")
    if totals["packs"]:
        lines.append(packed(totals))
    if totals["window_copies"]:
        lines.append(f"{totals['window_copies']:,} puts and gets were one copy by their origins")
    lines += on_gpus(document)
    for job in jobs:
        if job["in_calls_seconds"]:
            spent = f"{span(job['in_calls_seconds'])} of {in_seconds(job['seconds'])}"
            lines.append(
                f"the ranks spent {spent} in calls that move data, probe or wait (measured); "
                "'spinloom run --path=pass --report' measures the MPI's own"
            )
    return lines


def on_gpus(document: dict[str, Any]) -> list[str]:
    totals, lines = document["totals"], []
    if totals["gpu_taken"]:
        direct = f"{totals['gpu_taken']:,} messages with {totals['gpu_taken_bytes']:,} B"
        lines.append(
            f"{direct} went from GPU memory to their receivers by one kernel or copy, without the MPI"
        )
    if totals["gpu_moves"]:
        packed_there = f"{totals['gpu_moves']:,} buffers with {totals['gpu_bytes']:,} B"
        within = totals["gpu_within"]
        where = f"; {within:,} of them stayed in that memory, the others went by the host" if within else ""
        lines.append(f"{packed_there} in the memory of GPUs were packed or unpacked there{where}")
    if totals["gpu_as_they_are"]:
        lines.append(
            f"{totals['gpu_as_they_are']:,} buffers without gaps in the memory of GPUs were given as they "
            "are to the MPI, which knows of GPUs"
        )
    if lines and document["gpu_why"]:
        lines.append(f"ranks could not map each other's GPU memory: {document['gpu_why'][0]}")
    return lines


def packed(totals: dict[str, Any]) -> str:
    return f"{totals['packs']:,} calls of MPI_Pack and MPI_Unpack were made by our kernels"


def warnings(document: dict[str, Any]) -> list[str]:
    """Returns what the numbers do not hold."""
    if not any(job["with_layer"] for job in document["jobs"]):
        return []
    lines = []
    for job in document["jobs"]:
        if job["killed"]:
            lines.append(
                f"{named(job['killed'])} did not come to MPI_Finalize: what was sent in the last second may "
                "be missing here"
            )
        if job["silent"]:
            lines.append(
                f"{named(job['silent'])} of {job['ranks']} left no report: killed before a message was sent, "
                "without the layer, or on a machine that does not share this one's files"
            )
        lines += [f"the layer was off in some ranks: {why}" for why in job["why_off"]]
    return lines


def in_seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"


def span(seconds: list[float]) -> str:
    """The text of the range of a sorted list."""
    least, most = in_seconds(seconds[0]), in_seconds(seconds[-1])
    return least if least == most else f"{least} to {most}"


def named(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = ", ".join(map(str, ranks[:8]))
    return f"ranks {shown}{f' and {len(ranks) - 8} more' if len(ranks) > 8 else ''}"


def shortened(text: str, longest: int = TEXT_SHOWN) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def title(row: dict[str, Any]) -> str:
    """The type of a row, with the count of a message."""
    names = {
        "contiguous": "contiguous bytes",
        "unknown": "types that the layer does not know",
        "other": "further types",
    }
    call = f", {row['call']}" if row.get("call") else ""
    if row["kind"] != "derived":
        return names[row["kind"]] + call
    return f"{'various' if row['count'] is None else row['count']} x {shortened(row['text'])}{call}"


def why_of(row: dict[str, Any]) -> str:
    if not row["withdrawn"]:
        return row["why"]
    return f"{row['why']}; packed after all, for late receivers: {row['withdrawn']:,}"


def cells(document: dict[str, Any]) -> list[list[str]]:
    """type, to, messages, bytes, way, why"""
    return [
        [title(row), row["peers"], f"{row['messages']:,}", f"{row['bytes']:,}", row["way"], why_of(row)]
        for row in document["types"]
    ]


def collective_facts(document: dict[str, Any]) -> list[str]:
    collectives = document.get("collectives")
    if collectives is None:
        return []
    if not collectives["on"]:
        return [f"collective calls stayed with the MPI: {'; '.join(collectives['why_off'])}"]
    went = sum(row["calls"] for row in collectives["calls"] if row["on_nic"])
    stayed = sum(row["calls"] for row in collectives["calls"] if not row["on_nic"])
    return [f"{went:,} non-blocking and persistent collective calls were the NIC's, {stayed:,} the MPI's"]


def window_facts(document: dict[str, Any]) -> list[str]:
    windows = document.get("rma")
    if windows is None:
        return []
    if not windows["on"]:
        return [f"windows stayed with the MPI: {'; '.join(windows['why_off'])}"]
    counted = ", ".join(f"{windows[name]:,} {name}" for name in ACCESSES)
    by_hand = f", {windows['updates']:,} of them by their origin's processor" if windows["updates"] else ""
    reasons = ", ".join(f"{count:,}: {why}" for why, count in windows["why_left"].items())
    left = f"; {windows['left']:,} were left to the MPI ({reasons})" if windows["left"] else ""
    mapped = windows["mapped"]
    return [
        f"{windows['windows'] - mapped:,} windows of ranks were on the NIC, {mapped:,} on memory that all of "
        f"their ranks have mapped{left}: {counted}{by_hand}, {windows['bytes']:,} B"
    ]


def collective_cells(document: dict[str, Any]) -> list[list[str]]:
    """call, calls, bytes, way, why"""
    return [
        [
            row["call"],
            f"{row['calls']:,}",
            f"{row['bytes']:,}",
            "NIC" if row["on_nic"] else "MPI",
            row["why"] or "",
        ]
        for row in document["collectives"]["calls"]
    ]


COLLECTIVE_COLUMNS = ["call", "calls", "bytes", "way", "why"]
COLUMNS = ["type", "to", "messages", "bytes", "way", "why"]


def advice(document: dict[str, Any], where: str = "") -> list[str]:
    """The types that would gain most, two lines each. `where`: the file that the document was written to."""
    if not document["types"]:
        return []
    if not document["gainers"]:
        return ["no type would gain: every message that is not contiguous went the way with the least work"]
    lines = ["these types would gain most (by the cache lines that their messages touch, not timed):"]
    for place, gainer in enumerate(document["gainers"], 1):
        lines.append(
            f"{place}. {title({**gainer, 'kind': 'derived'})}: {gainer['messages']:,} messages; "
            f"{gainer['how']}"
        )
        lines.append(f"   {gainer['explain'] or too_long(gainer, where)}")
    return lines


def too_long(gainer: dict[str, Any], where: str) -> str:
    file = where or "FILE.json"
    return f"spinloom explain {file}:{gainer['number']}" + ("" if where else ", after --report=FILE.json")
