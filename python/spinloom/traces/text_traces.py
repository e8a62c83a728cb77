"""Text traces of a PMPI wrapper (liballprof, of LogGOPSim's tool chain): docs/formats/text-trace.md.

Contract: files_of() finds the files of all ranks by their numbers. convert() makes a recorded program of
them and says in sentences what is missing in it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from spinloom.common import core, files
from spinloom.common.errors import Trouble
from spinloom.traces import foreign

NUMBER = re.compile(r"^(.*?)(\d+)(\.[^.\d]*)?$")
HEAD_BYTES = 4096
REASONS = {
    "local": "calls that move nothing between ranks, whose time is taken as computation",
    "not known": "calls that cannot be imported, whose time is taken as computation",
    "no members": "calls on communicators whose members no line tells",
    "no counts": "calls whose line has no counts",
}


def is_text_trace(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    return any(line.startswith(b"MPI_") and line.count(b":") > 1 for line in head.splitlines())


def is_folder_of_them(path: Path) -> bool:
    return path.is_dir() and any(
        NUMBER.match(one.name) and is_text_trace(one) for one in files.paths_in(path)
    )


def files_of(source: Path) -> list[Path]:
    """The files of a folder or beside one rank's file whose names differ in their last number, from 0 on."""
    folder = source if source.is_dir() else source.parent
    if not source.exists():
        raise Trouble("invalid", f"there is no {source}")
    series: dict[tuple[str, str], dict[int, Path]] = {}
    for path in files.paths_in(folder):
        match = NUMBER.match(path.name)
        if match and is_text_trace(path):
            begin, number, end = match.groups()
            ranks = series.setdefault((begin, end or ""), {})
            if int(number) in ranks:
                raise Trouble(
                    "invalid", f"{ranks[int(number)]} and {path.name} are both of rank {int(number)}"
                )
            ranks[int(number)] = path
    if source.is_file():
        series = {key: ranks for key, ranks in series.items() if source in ranks.values()}
    if not series:
        foreign.refuse(source)
        raise Trouble(
            "invalid",
            f"{source} holds no text traces of LogGOPSim's PMPI wrapper, such as pmpi-trace-rank-0.txt, "
            "one for each rank; of an OTF2 archive name its .otf2 file",
        )
    if len(series) > 1:
        names = ", ".join(f"{begin}N{end}" for begin, end in series)
        raise Trouble("invalid", f"{source} holds traces of several programs: {names}; name a file of one")
    (ranks,) = series.values()
    for rank in range(len(ranks)):
        if rank not in ranks:
            raise Trouble("invalid", f"{folder}: {len(ranks)} files, and none is of rank {rank}")
    return [ranks[rank] for rank in range(len(ranks))]


def convert(texts: list[Path], directory: Path) -> list[str]:
    report = core.load().import_text(texts, directory)
    return remarks(report)


def remarks(report: dict[str, Any]) -> list[str]:
    sentences = []
    for reason, sentence in REASONS.items():
        rows = [(name, times) for why, name, times in report["left_out"] if why == reason]
        if rows:
            calls_text = ", ".join(f"{times} {name}" for name, times in rows)
            sentences.append(f"left out: {sum(times for _, times in rows)} {sentence}: {calls_text}")
    if report["any_source"]:
        sentences.append(
            f"{report['any_source']} receives of any source: no line tells whose message they got"
        )
    if report["guessed_comms"]:
        sentences.append(
            f"{report['guessed_comms']} times a communicator may be one of several that were made before: "
            "lower handles are taken as older ones"
        )
    if report["never_ended"]:
        sentences.append(f"{report['never_ended']} requests that no call completes")
    if report["times_back"]:
        sentences.append(
            f"{report['times_back']} calls end before the one in the line before: taken as ending with it"
        )
    if report["cut_lines"]:
        sentences.append(f"{report['cut_lines']} files end within a line, which is left out")
    sentences.append(
        "a text trace has no layouts: its datatypes are contiguous bytes of their sizes and extents"
    )
    return sentences
