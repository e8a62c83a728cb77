"""Traces in the format of the Storage Performance Council (SPC Trace File Format Specification, 1.0.1).

Contract: a line is one request: ASU, LBA, size in bytes, R or W, seconds since the start; more fields may
follow, spaces may follow a comma. read() gives the requests of a file in order and holds one line at a time;
names that end in .gz, .bz2 or .xz are decompressed on the way. A bad line raises Trouble('invalid') that
names file, line and field. trace_text() makes lines of the same format.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from spinloom.common.errors import Trouble

BLOCK_BYTES = 512  # an LBA's size, in the traces of the UMass Trace Repository
SIZE_BYTES_MAX = 1 << 28
LINE_BYTES_MAX = 1 << 16
CHUNK_BYTES = 1 << 20
DIGITS_MAX = 18
FIELDS = ("ASU", "LBA", "size", "opcode", "time")
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
NUMBER = rb"(\d{1,%d})\s*,\s*" % DIGITS_MAX
LINE = re.compile(NUMBER * 3 + rb"([RrWw])\s*,\s*(\d+\.\d+)\s*(,.*)?", re.DOTALL)


class Request(NamedTuple):
    asu: int
    lba: int
    size_bytes: int
    is_write: bool
    time: str  # seconds, as in the file

    @property
    def address(self) -> int:
        """In bytes, from the beginning of its ASU."""
        return self.lba * BLOCK_BYTES


def read(path: Path) -> Iterator[Request]:
    """Raises Trouble('invalid') for a bad line or a file that cannot be read."""
    number = 0
    try:
        with opened(path) as file:
            while line := file.readline(LINE_BYTES_MAX):
                number += 1
                if (match := LINE.fullmatch(line)) is None:
                    raise bad_line(path, number, complaint(line))
                asu, lba, size, opcode, time, _ = match.groups()
                if (size_bytes := int(size)) > SIZE_BYTES_MAX:
                    raise bad_line(
                        path, number, f"size {size_bytes:,} B: at most {SIZE_BYTES_MAX:,} B a request"
                    )
                yield Request(int(asu), int(lba), size_bytes, opcode in b"Ww", time.decode("ascii"))
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        where = f" after line {number:,}" if number else ""
        raise Trouble("invalid", f"{path} cannot be read{where}: {reason}") from None


def opened(path: Path) -> io.BufferedReader:
    unpack = OPENERS.get(path.suffix)
    return path.open("rb") if unpack is None else io.BufferedReader(unpack(path, "rb"), CHUNK_BYTES)


def complaint(line: bytes) -> str:
    """Returns what is wrong with a line that is no request."""
    if len(line) == LINE_BYTES_MAX:
        return f"it is longer than {LINE_BYTES_MAX} B: this is no SPC trace"
    if not line.isascii():
        return "it is not ASCII text: this is no SPC trace"
    fields = [field.strip() for field in line.decode("ascii").split(",")][: len(FIELDS)]
    if len(fields) < len(FIELDS):
        return f"it has {len(fields)} fields: at least {len(FIELDS)} ({', '.join(FIELDS)})"
    for name, field in zip(FIELDS[:3], fields, strict=False):
        if not field.isdigit() or len(field) > DIGITS_MAX:
            return f"{name} '{field}' is not a whole number from 0 on, of at most {DIGITS_MAX} digits"
    if fields[3] not in ("R", "r", "W", "w"):
        return f"opcode '{fields[3]}' is neither R nor W"
    if re.fullmatch(r"\d+\.\d+", fields[4]) is None:
        return f"time '{fields[4]}' is not seconds such as 0.551706"
    return "it begins with a space"


def bad_line(path: Path, number: int, reason: str) -> Trouble:
    return Trouble("invalid", f"{path}, line {number:,}: {reason}")


def trace_text(requests: Iterable[Request]) -> str:
    return "".join(
        f"{asu},{lba},{size_bytes},{'W' if is_write else 'R'},{time}\n"
        for asu, lba, size_bytes, is_write, time in requests
    )
