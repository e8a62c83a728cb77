"""The places of the package's data: NIC profiles, workloads, handler images.

In an installed package the folders lie beside this file. In a checkout, nics/, workloads/ and bench/ lie at
its root, and handler images exist only after they have been built and installed. An installed package is also
a prefix for other programs, with include/, lib/ and share/man/ (cmake/python_package.cmake).
"""

from __future__ import annotations

from pathlib import Path

from spinloom.errors import Trouble

PACKAGE = Path(__file__).resolve().parent
# The folders that lie elsewhere in the package. spinloom/bench is Python's own.
INSTALLED = {"handlers": "lib/spinloom/handlers", "bench": "programs"}


def folder(name: str) -> Path:
    """The folder `name` ("nics", "workloads", "handlers", "bench"); it may not exist."""
    installed = PACKAGE / INSTALLED.get(name, name)
    checkout = PACKAGE.parent.parent / name
    return installed if installed.is_dir() or not checkout.is_dir() else checkout


def prefix() -> Path:
    """Where compilers, pkg-config, CMake and man find what this installation has for them."""
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
    """What `spinloom run` puts into LD_PRELOAD: the layer, and the malloc whose blocks peers can map."""
    layer = mpi_layer()
    heap = layer.with_name("libspinloom-heap.so")
    return f"{layer}:{heap}" if heap.is_file() else str(layer)


def handler_images() -> dict[str, bytes]:
    """Every shipped handler image by file name without .elf, sorted; empty if none was built."""
    return {path.stem: path.read_bytes() for path in sorted(folder("handlers").glob("*.elf"))}
