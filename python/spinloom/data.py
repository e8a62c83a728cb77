"""Where the package's data lies: NIC profiles, workloads, handler images.

In an installed package the folders lie beside this file. In a checkout, nics/ and workloads/ lie at its
root, and handler images only exist once they were built and installed.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder `name` ("nics", "workloads", "handlers"); it may not exist."""
    installed = PACKAGE / name
    checkout = PACKAGE.parent.parent / name
    return installed if installed.is_dir() or not checkout.is_dir() else checkout


def handler_images() -> dict[str, bytes]:
    """Every shipped handler image by file name without .elf, sorted; empty when none was built."""
    return {path.stem: path.read_bytes() for path in sorted(folder("handlers").glob("*.elf"))}
