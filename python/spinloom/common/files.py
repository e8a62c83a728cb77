"""Files that verbs write: all of one or nothing, and a sentence for what stood in the way."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from spinloom.errors import Trouble


def write(path: Path, content: str | bytes) -> None:
    """A reader never sees half a file, and none is left behind. Raises Trouble('environment')."""
    with whole(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """The same for what is written part by part."""
    device = path.exists() and not path.is_file()  # /dev/stdout, a pipe: there is nothing to replace
    half = path if device else path.with_name(path.name + ".part")
    try:
        try:
            with half.open("wb") as file:
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


def not_written(path: Path, error: OSError) -> Trouble:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Trouble(
            "environment", f"{path} is not written: the disk is full; free some space and run it again"
        )
    return Trouble("environment", f"{path} cannot be written: {error.strerror or error}")
