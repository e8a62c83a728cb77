"""The places of the package's data: NIC profiles, workloads, handler images.

In an installed package all lie in the package's folder: data/NAME, handler images in lib/spinloom/handlers,
bench/ as programs/. In a checkout, nics/, workloads/ and others lie in data/, bench/ lies at its root, and
handler images exist only after they have been built and installed. An installed package is also a prefix for
other programs, with include/, lib/ and share/man/ (cmake/python_package.cmake).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType

from spinloom.common.errors import Trouble

PACKAGE = Path(__file__).resolve().parents[1]
DATA = ("nics", "hosts", "workloads", "scenarios", "recorded")  # folders of data/ in package and checkout
# The folders that lie elsewhere in a package. spinloom/bench and spinloom/handlers are Python's own.
INSTALLED = {"handlers": "lib/spinloom/handlers", "bench": "programs"}


def folder(name: str) -> Path:
    """The folder `name` ("nics", "handlers", "bench", "include"); it may not exist."""
    beside = f"data/{name}" if name in DATA else name
    installed = PACKAGE / INSTALLED.get(name, beside)
    checkout = PACKAGE.parent.parent / beside
    return installed if installed.is_dir() or not checkout.is_dir() else checkout


def prefix() -> Path:
    """Returns the folder whose include, lib and share compilers, pkg-config, CMake and man search."""
    if not (PACKAGE / "lib/pkgconfig").is_dir():
        raise Trouble(
            "environment", f"{PACKAGE} has no C libraries; 'make setup' in the checkout brings them"
        )
    return PACKAGE


def mpi_layer() -> Path:
    """The library that `spinloom run` preloads."""
    library = PACKAGE / "lib/libspinloom_mpi.so"
    if not library.is_file():
        raise Trouble("environment", f"{library} is missing; 'make setup' in the checkout brings it")
    return library


def mpi_preloads() -> str:
    """Returns LD_PRELOAD for `spinloom run`: the layer, and the malloc whose blocks peers can map."""
    layer = mpi_layer()
    heap = layer.with_name("libspinloom-heap.so")
    return f"{layer}:{heap}" if heap.is_file() else str(layer)


def fingerprint(engine: ModuleType) -> str:
    """The SHA-256 over paths and contents of what decides results.

    These are the package, the engine, profiles, datatypes, recorded programs, benches and images.
    """
    places = [PACKAGE, *map(folder, ("nics", "hosts", "workloads", "recorded", "bench", "handlers"))]
    paths = {path for place in places for path in place.rglob("*")}
    paths |= {Path(engine.__file__)} if getattr(engine, "__file__", None) else set()
    digest = hashlib.sha256()
    for path in sorted(paths):
        if path.suffix != ".pyc" and path.is_file():
            digest.update(f"{path}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def handler_images() -> dict[str, bytes]:
    """Every shipped handler image by file name without .elf, sorted; empty if none was built."""
    return {path.stem: path.read_bytes() for path in sorted(folder("handlers").glob("*.elf"))}
