"""Files that verbs write: readers see a whole file or the old one, and an error becomes a sentence.

A file is written as NAME.part, which then takes the place of NAME. A process that is killed while it writes
may leave NAME.part; the next write of NAME deletes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from spinloom.common.errors import Trouble


def names_if_readable(folder: Path | str) -> list[str]:
    """The names in a folder, sorted; none if there is no such folder or this user may not read it."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def write(path: Path, content: str | bytes) -> None:
    """Writes a file at once: readers see the old or the new content, and an error leaves the old one.

    Raises Trouble('environment').
    """
    with replacement(path) as file:
        file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


@contextlib.contextmanager
def replacement(path: Path) -> Iterator[BinaryIO]:
    """Opens a file to be written part by part, which replaces the old one when it is whole."""
    # /dev/stdout or a pipe has no content to replace.
    is_special = os.path.exists(path) and not os.path.isfile(path)
    part = path if is_special else path.with_name(path.name + ".part")
    try:
        try:
            with part.open("wb") if is_special else open_new(part) as file:
                yield file
                file.flush()
                if not is_special:
                    os.fsync(file.fileno())  # some systems find out only now that the disk is full
            if not is_special:
                part.replace(path)
        except BaseException:
            if not is_special:
                with contextlib.suppress(OSError):
                    part.unlink()
            raise
    except OSError as error:
        raise not_written(path, error) from None


def open_new(path: Path) -> BinaryIO:
    """Opens a new file; deletes a file or link of that name first."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def not_written(path: Path, error: OSError) -> Trouble:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Trouble(
            "environment", f"{path} is not written: the disk is full; free some space and run it again"
        )
    return Trouble("environment", f"{path} cannot be written: {error.strerror or error}")


def paths_in(folder: Path) -> list[Path]:
    """Returns the paths of all entries of a folder, by name. Raises Trouble('environment')."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise Trouble("environment", f"{folder} cannot be read: {error.strerror or error}") from None
