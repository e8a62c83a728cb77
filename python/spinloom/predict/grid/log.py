"""The results of a folder, kept as they come: one line for each. A sweep's are in cells.jsonl.

Contract: opened() gives a verb's Log in the folder to one process at a time. results has what was kept, by
key; keep() writes a line before it returns, so that what was kept outlives the process, however that ends.
Half a line, the last that a killed process wrote, is taken away; any other line that cannot be read is
ignored, and its cell runs again. Raises Trouble.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from spinloom.common import documents, files
from spinloom.common.errors import Trouble
from spinloom.predict.grid.signals import deferred

NAME = "cells.jsonl"
SYNC_S = 1.0  # the most that a power failure may take


class Log:
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = file
        self.synced = time.monotonic()
        self.results: dict[str, dict[str, Any]] = {}
        content = file.read()
        complete_bytes = content.rfind(b"\n") + 1
        if complete_bytes < len(content):
            file.truncate(complete_bytes)
        for line in content[:complete_bytes].splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                entry = documents.parsed_json(line.decode())
                self.results[entry["key"]] = entry["result"]

    def keep(self, key: str, result: dict[str, Any]) -> None:
        line = json.dumps({"key": key, "result": result}, separators=(",", ":")) + "\n"
        try:
            with deferred(signal.SIGINT, signal.SIGTERM):  # a stopped sweep says how many it has kept
                self.file.write(line.encode())
                self.file.flush()
                self.results[key] = result
            if time.monotonic() - self.synced >= SYNC_S:
                os.fsync(self.file.fileno())
                self.synced = time.monotonic()
        except OSError as error:
            raise files.not_written(self.path, error) from None


@contextlib.contextmanager
def opened(folder: Path, fresh: bool = False, name: str = NAME, verb: str = "sweep") -> Iterator[Log]:
    """fresh: what was kept is thrown away."""
    path = folder / name
    try:
        file = path.open("a+b")
    except OSError as error:
        raise files.not_written(path, error) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Trouble(
                "environment", f"another {verb} is at work in {folder}; wait for it, or give another --out"
            ) from None
        except OSError as error:  # a file system without locks
            raise Trouble(
                "environment", f"{path} cannot be locked: {error.strerror}; give another --out"
            ) from None
        if fresh:
            file.truncate(0)
        file.seek(0)
        yield Log(path, file)
