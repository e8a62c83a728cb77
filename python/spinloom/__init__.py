"""Spinloom: what a packet-processing (sPIN) NIC does for non-contiguous data.

Importing never fails for a missing optional part; spinloom.core.load() gives the engine.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from spinloom.exchanges import exchange as exchange
    from spinloom.frame import Frame as Frame
    from spinloom.simulation import simulate as simulate

LATER = {"simulate": "spinloom.simulation", "exchange": "spinloom.exchanges", "Frame": "spinloom.frame"}


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'spinloom' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(LATER[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *LATER])
