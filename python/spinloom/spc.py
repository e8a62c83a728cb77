"""Traces in the format of the Storage Performance Council (SPC Trace File Format Specification, 1.0.1).

Contract: a line is one request: ASU, LBA, size in bytes, R or W, seconds since the start; more fields may
follow, spaces may follow a comma. read() gives the requests of a file in order and holds one line at a time;
names that end in .gz, .bz2 or .xz are decompressed on the way. A bad line raises Trouble('invalid') that
names file, line and field. write() makes lines of the same format.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from spinloom.errors import Trouble

BLOCK_BYTES = 512  # of an LBA, in the traces of the UMass Trace Repository
SIZE_BYTES_MAX = 1 << 28
LINE_BYTES_MAX = 1 << 16
FIELDS = ("ASU", "LBA", "size", "opcode", "time")
OPCODES = {"R": False, "r": False, "W": True, "w": True}
OPENERS: dict[str, Callable[..., IO[bytes]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SECONDS = re.compile(r"(\d+)\.(\d+)")


class Request(NamedTuple):
    asu: int
    lba: int
    size_bytes: int
    write: bool
    time: str  # seconds, as in the file

    @property
    def address(self) -> int:
        """In bytes, from the beginning of its ASU."""
        return self.lba * BLOCK_BYTES


def read(path: Path) -> Iterator[Request]:
    """Raises Trouble('invalid') for a bad line or a file that cannot be read."""
    opener = OPENERS.get(path.suffix, open)
    number = 0
    try:
        with opener(path, "rb") as file:
            while line := file.readline(LINE_BYTES_MAX):
                number += 1
                yield parsed(line, path, number)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        where = f" after line {number:,}" if number else ""
        raise Trouble("invalid", f"{path} cannot be read{where}: {reason}") from None


def parsed(line: bytes, path: Path, number: int) -> Request:
    if len(line) == LINE_BYTES_MAX:
        raise bad(path, number, f"it is longer than {LINE_BYTES_MAX} B: this is no SPC trace")
    try:
        text = line.decode("ascii")
    except UnicodeDecodeError:
        raise bad(path, number, "it is not ASCII text: this is no SPC trace") from None
    fields = [field.strip() for field in text.split(",", len(FIELDS))[: len(FIELDS)]]
    if len(fields) < len(FIELDS):
        raise bad(path, number, f"it has {len(fields)} fields: at least {len(FIELDS)} ({', '.join(FIELDS)})")
    for name, field in zip(FIELDS[:3], fields, strict=False):
        if not (field.isascii() and field.isdigit()):
            raise bad(path, number, f"{name} '{field}' is not a whole number from 0 on")
    if fields[3] not in OPCODES:
        raise bad(path, number, f"opcode '{fields[3]}' is neither R nor W")
    if SECONDS.fullmatch(fields[4]) is None:
        raise bad(path, number, f"time '{fields[4]}' is not seconds such as 0.551706")
    size_bytes = int(fields[2])
    if size_bytes > SIZE_BYTES_MAX:
        raise bad(path, number, f"size {size_bytes:,} B: at most {SIZE_BYTES_MAX:,} B a request")
    return Request(int(fields[0]), int(fields[1]), size_bytes, OPCODES[fields[3]], fields[4])


def bad(path: Path, number: int, what: str) -> Trouble:
    return Trouble("invalid", f"{path}, line {number:,}: {what}")


def write(requests: Iterable[Request]) -> str:
    return "".join(
        f"{asu},{lba},{size_bytes},{'W' if writes else 'R'},{time}\n"
        for asu, lba, size_bytes, writes, time in requests
    )
