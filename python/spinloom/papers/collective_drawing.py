"""The messages of a collective operation, sender to receiver: as text, and as a picture over time.

Contract: text() lists the messages round by round, one line each, of at most RANKS ranks and LINES messages:
a message's round is how many must have come before it can leave. draw() writes an SVG or a PNG by the name's
ending: ranks side by side, time downwards, an arrow from a message's begin to its end; the same messages
give the same SVG. Legible in black and white. Raises Trouble for more than MOST messages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from spinloom.common import pictures, units
from spinloom.common.errors import Trouble
from spinloom.common.files import write as write_file

RANKS, LINES = 16, 80
MOST = 20_000
NAMED = 64  # ranks that have a number below them
ROUNDS = {
    "o_ps": 0,
    "L_ps": 1,
    "g_ps": 0,
    "h_ps": 0,
    "m_ps": 0,
    "z_ps": 0,
    "a_ps": 0,
    "G": (0, 1),
    "A": (0, 1),
}  # a round is a ps
CELL = 4


class Message(NamedTuple):
    source: int
    target: int
    size: int
    left_ps: int
    landed_ps: int


def messages(offloaded: Any, model: dict[str, Any]) -> list[Message]:
    return [Message(*fields) for fields in offloaded.messages(model)]


def text(offloaded: Any, ranks: int) -> str | None:
    """None: too many ranks or messages."""
    rounds = sorted(
        messages(offloaded, ROUNDS), key=lambda message: (message.left_ps, message.source, message.target)
    )
    if ranks > RANKS or len(rounds) > LINES:
        return None
    lines = ["rank     " + "".join(f"{rank:<{CELL}}" for rank in range(ranks))]
    before = None
    for message in rounds:
        name = f"round {message.left_ps + 1}" if message.left_ps != before else ""
        before = message.left_ps
        first, last = sorted((message.source, message.target))
        line = "-" * (CELL * (last - first) - 1)
        arrow = f"o{line}>" if message.source == first else f"<{line}o"
        lines.append(f"{name:9}{' ' * (CELL * first)}{arrow}  {units.format_bytes(message.size)}")
    return "\n".join(line.rstrip() for line in lines)


def draw(offloaded: Any, model: dict[str, Any], ranks: int, path: Path, title: str) -> None:
    sent = messages(offloaded, model)
    if len(sent) > MOST:
        raise Trouble(
            "invalid",
            f"--plot {path}: a picture of {len(sent):,} messages cannot be read; take fewer ranks",
        )
    pictures.require("--plot")
    with pictures.canvas(min(14, max(5, 0.45 * ranks)), 6.5) as figure:
        axes = figure.add_subplot()
        axes.set_title(title, loc="left")
        axes.set_ylabel("modelled time, us")
        axes.set_xlabel("rank")
        axes.set_xlim(-0.5, ranks - 0.5)
        last = max((message.landed_ps for message in sent), default=1) / 1e6
        axes.set_ylim(last * 1.02, 0)
        pictures.hide_spines(axes)
        if ranks <= NAMED:
            axes.set_xticks(range(ranks))
            axes.vlines(range(ranks), 0, last, color="0.85", linewidth=0.8, zorder=1)
        if len(sent) <= 4 * NAMED:
            for message in sent:
                arrow(axes, message)
        else:
            lines(axes, sent)
        write_file(path, pictures.encoded(figure, pictures.ending_of(path), dpi=120))


def arrow(axes: Any, message: Message) -> None:
    look = {"arrowstyle": "-|>", "color": "0.1", "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0}
    axes.annotate(
        "",
        xy=(message.target, message.landed_ps / 1e6),
        xytext=(message.source, message.left_ps / 1e6),
        arrowprops=look,
        zorder=2,
    )


def lines(axes: Any, sent: list[Message]) -> None:
    """Without heads, which would hide each other."""
    from matplotlib.collections import LineCollection

    pairs = [
        [(message.source, message.left_ps / 1e6), (message.target, message.landed_ps / 1e6)]
        for message in sent
    ]
    axes.add_collection(LineCollection(pairs, colors="0.1", linewidths=0.5, alpha=0.6))
