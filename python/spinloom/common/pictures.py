"""What all plots share: a style that reads in black and white, and files: the same data, the same bytes.

Contract: a plot is drawn within canvas(width, height), in inches, on the figure of matplotlib that it gives;
encoded(figure) is its file. matplotlib is optional: available() says whether it can be imported, and
require() raises Trouble ('environment') if not.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spinloom.common.errors import Trouble

STYLE = {"svg.hashsalt": "spinloom", "svg.fonttype": "none", "hatch.linewidth": 0.6, "axes.titlesize": 9.5}
ENDINGS = (".svg", ".png")


def available() -> bool:
    """True if matplotlib is installed and can be imported."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        return False
    return True


def require(what: str) -> None:
    if not available():
        raise Trouble("environment", f"{what} needs matplotlib (pip install matplotlib)")


def ending_of(path: Path) -> str:
    """One of ENDINGS; empty for a file of another name, such as a device."""
    return path.suffix if path.suffix in ENDINGS else ""


@contextmanager
def canvas(width: float, height: float, *, font_size: float = 9, **more: Any) -> Iterator[Any]:
    """A figure of matplotlib, while STYLE holds."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**STYLE, "font.size": font_size}):
        yield Figure(figsize=(width, height), **{"layout": "constrained", **more})


def encoded(figure: Any, ending: str = ".svg", **more: Any) -> bytes:
    """The file, within canvas(). Without an ending, as for a device, it is an SVG."""
    out = io.BytesIO()
    form = ending.removeprefix(".") or "svg"
    metadata = {"Date": None, "Creator": "spinloom"} if form == "svg" else None
    figure.savefig(out, format=form, metadata=metadata, **more)
    return out.getvalue()


def foot(figure: Any, text: str, size: float = 6.5) -> None:
    figure.supxlabel(text, fontsize=size, x=0.01, ha="left", color="0.25")


def hide_spines(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def mark_level(axes: Any, at: float = 1) -> None:
    """A dashed line, such as that of the baseline."""
    axes.axhline(at, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
