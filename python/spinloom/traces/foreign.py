"""Files of other tools that a user may take for what Spinloom reads: what they are, in words.

Contract: refuse() raises Trouble("invalid") with a sentence that names the format of a file, or of a file in
a folder, if it is one of foreign_traces.toml's; else it returns. It reads the beginnings of files; of a
folder, of FILES_MAX at most and of eight in each folder among them.
"""

from __future__ import annotations

import bz2
import itertools
import lzma
import re
import tomllib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from spinloom.common.errors import Trouble

HEAD_BYTES = 4096
FILES_MAX = 1000
TRACES = (
    "what 'spinloom record' writes; 'spinloom trace NAME --import DIR' makes that of OTF2 archives "
    "(NAME.otf2) and of text traces of LogGOPSim's PMPI wrapper"
)
SCHEDULES = "GOAL text (.goal), LogGOPSim's binary form of it (.bin), or schedules in our own form (.spl)"
UNPACKERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "lzma": lzma.LZMADecompressor,
}


@dataclass(frozen=True)
class Format:
    place: int  # the place in the table
    description: str  # "a Paraver trace"
    begins: re.Pattern[str] | None
    name: re.Pattern[str] | None
    packed: str  # the way of packing; empty: it is not packed
    is_plain: bool  # no trace
    is_schedule: bool  # one of ours
    cure: str

    def fits(self, path: Path, head: str) -> bool:
        begins = self.begins is not None and self.begins.match(head) is not None
        return begins or (self.name is not None and self.name.search(path.name) is not None)


@cache
def formats() -> tuple[Format, ...]:
    table = tomllib.loads(Path(__file__).with_name("foreign_traces.toml").read_text(encoding="utf-8"))
    flags = re.DOTALL | re.MULTILINE | re.ASCII
    return tuple(
        Format(
            place=place,
            description=entry["is"],
            begins=re.compile(entry["begins"], flags) if "begins" in entry else None,
            name=re.compile(entry["name"]) if "name" in entry else None,
            packed=entry.get("packed", ""),
            is_plain=entry.get("plain", False),
            is_schedule=entry.get("schedule", False),
            cure=entry.get("cure", ""),
        )
        for place, entry in enumerate(table["format"])
    )


def head_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def recognise(path: Path, head: bytes) -> Format | None:
    text = head.decode("latin-1")
    return next((known_format for known_format in formats() if known_format.fits(path, text)), None)


def unpacked_head(packed: str, head: bytes) -> bytes:
    try:
        return UNPACKERS[packed]().decompress(head, HEAD_BYTES)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return b""


def candidates(path: Path) -> list[Path]:
    """The file itself; of a folder its files, and those of the folders in it."""
    if not path.is_dir():
        return [path] if path.is_file() else []
    try:
        direct = sorted(itertools.islice(path.iterdir(), FILES_MAX))
        below = [
            entry for folder in direct if folder.is_dir() for entry in itertools.islice(folder.iterdir(), 8)
        ]
    except OSError:
        return []
    return [entry for entry in direct + sorted(below) if entry.is_file()]


def format_of(file: Path) -> Format | None:
    outer = recognise(file, head_of(file))
    if outer is None or not outer.packed:
        return outer
    content = recognise(file.with_suffix(""), unpacked_head(outer.packed, head_of(file)))
    if content is None:
        return outer
    words = f"{outer.description}, and in it {content.description}"
    return replace(outer, description=words, is_plain=content.is_plain)


def refuse(path: Path, reads: str = TRACES) -> None:
    """`reads`: what the verb takes instead. A schedule is nothing foreign to who takes schedules."""
    recognised = [
        (file_format, file) for file in candidates(path) if (file_format := format_of(file)) is not None
    ]
    telling = [candidate for candidate in recognised if candidate[1] == path or not candidate[0].is_plain]
    if not telling:
        return
    file_format, file = min(telling, key=lambda candidate: candidate[0].place)
    if file_format.is_schedule and reads == SCHEDULES:
        return
    cure = file_format.cure.format(file=file, folder=file.parent)
    advice = cure or f"this verb takes {reads}"
    raise Trouble("invalid", f"{file} is {file_format.description}; {advice}")
