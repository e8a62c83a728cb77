"""Spinloom: what a packet-processing (sPIN) NIC does for non-contiguous data.

spinloom.simulate() predicts, spinloom.layout packs and copies. Importing never fails for a missing optional
part.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Frame", "exchange", "simulate"]

if TYPE_CHECKING:
    from spinloom.nics.exchanges import exchange as exchange
    from spinloom.nics.frame import Frame as Frame
    from spinloom.nics.simulation import simulate as simulate

LATER = {
    "simulate": "spinloom.nics.simulation",
    "exchange": "spinloom.nics.exchanges",
    "Frame": "spinloom.nics.frame",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "layout":
        return importlib.import_module("spinloom.layout")
    if name not in LATER:
        raise AttributeError(f"module 'spinloom' has no attribute '{name}'")
    try:
        module = importlib.import_module(LATER[name])
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("spinloom."):
            raise
        raise AttributeError(f"spinloom.{name} is in the package spinloom, not in spinloom-layout") from None
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(["__version__", *__all__])
