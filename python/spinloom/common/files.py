"""Files that verbs write: all of one or nothing, and a sentence for what stood in the way."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from spinloom.common.errors import Trouble


def names_in(folder: Path | str) -> list[str]:
    """The names in a folder, sorted; none if there is no such folder or this user may not read it."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def write(path: Path, content: str | bytes) -> None:
    """Writes a file at once: readers see the old or the new content, and an error leaves no half file.

    Raises Trouble('environment').
    """
    with whole(path) as file:
        file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """Opens a file to be written part by part, which replaces the old one when it is whole."""
    device = os.path.exists(path) and not os.path.isfile(
        path
    )  # /dev/stdout, a pipe: there is nothing to replace
    half = path if device else path.with_name(path.name + ".part")
    try:
        try:
            with half.open("wb") if device else open_new(half) as file:
                yield file
                file.flush()
                if not device:
                    os.fsync(file.fileno())  # some systems find out only now that the disk is full
            if not device:
                half.replace(path)
        except BaseException:
            if not device:
                with contextlib.suppress(OSError):
                    half.unlink()
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


def entries(folder: Path) -> list[Path]:
    """Returns what lies in a folder, by name. Raises Trouble('environment')."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise Trouble("environment", f"{folder} cannot be read: {error.strerror or error}") from None
