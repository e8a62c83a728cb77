"""A schedule as a picture: ranks are columns, operations boxes, what waits for what and messages arrows.

Contract: draw() writes an SVG or a PNG by the name's ending; the same schedule gives the same SVG. An
operation lies below all that it waits for, messages included. Messages meet receives of their source and tag
in the order of the file, and then those of any. Raises Trouble above MOST operations. Legible in black and
white.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict, deque
from pathlib import Path
from typing import Any, NamedTuple

from spinloom.common import pictures
from spinloom.common.errors import Trouble
from spinloom.common.files import write as write_file

MOST = 300
ANY_TAG = 2**32 - 1
COLUMN, ROW = 1.7, 0.9  # inches from a box to the next one
BOX_WIDTH, BOX_HEIGHT = 0.68, 0.52  # shares of a column and a row
SHADES = {"calc": "0.85", "recv": "0.95", "arrived": "0.95"}
Place = tuple[int, int]  # rank, operation


class Arrow(NamedTuple):
    before: Place
    after: Place
    line: str  # a style of matplotlib
    is_message: bool
    is_first: bool  # one of several


def draw(schedule: Any, path: Path, title: str) -> None:
    operations = schedule.count()["operations"]
    if operations > MOST:
        raise Trouble(
            "invalid",
            f"--plot {path}: the schedule has {operations:,} operations, and a drawing of more than {MOST} "
            "cannot be read; take fewer ranks",
        )
    pictures.require("--plot")
    graph = schedule.graph()
    arrows = waits(graph) + messages(graph)
    places = lay_out(graph, arrows)
    width = 1 + max((x for x, _ in places.values()), default=0)
    height = 1 + max((y for _, y in places.values()), default=0)
    size = (COLUMN * width + 0.4, ROW * (height + 1.2))
    with pictures.canvas(*size, font_size=8, layout="none") as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(-0.6, width - 0.4)
        axes.set_ylim(height - 0.4, -1.6)
        axes.text(-0.5, -1.45, title, fontsize=9, va="top")
        for rank, x in columns(graph, places).items():
            axes.text(x, -0.75, f"rank {rank}", ha="center", va="center", weight="bold")
        boxes = {place: draw_box(axes, at, graph[place[0]][place[1]]) for place, at in places.items()}
        for arrow in arrows:
            draw_arrow(axes, places, boxes, arrow)
        write_file(path, pictures.encoded(figure, pictures.ending_of(path), dpi=120))


def draw_box(axes: Any, place: tuple[float, float], operation: tuple) -> Any:
    from matplotlib.patches import FancyBboxPatch

    (x, y), (label, kind, *_) = place, operation
    style = "round,pad=0,rounding_size=0.06"
    corner = (x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2)
    box = FancyBboxPatch(corner, BOX_WIDTH, BOX_HEIGHT, boxstyle=style, facecolor=SHADES.get(kind, "1.0"))
    box.set(edgecolor="0.2", linewidth=0.8, zorder=3)
    axes.add_patch(box)
    axes.text(x, y, "\n".join(textwrap.wrap(label, 16)), ha="center", va="center", zorder=4)
    return box


def draw_arrow(axes: Any, places: dict[Place, tuple[float, float]], boxes: dict, arrow: Arrow) -> None:
    (x, y), (to_x, to_y) = places[arrow.before], places[arrow.after]
    bend = 0.0
    if x == to_x and abs(to_y - y) > 1:  # it goes beside the boxes between: so far to the left, in inches
        bend = 2 * (BOX_WIDTH / 2 + 0.09) * COLUMN / (abs(to_y - y) * ROW)
    look = {
        "arrowstyle": "-|>" if arrow.is_message else "->",
        "linestyle": arrow.line,
        "color": "0.0" if arrow.is_message else "0.45",
        "linewidth": 1.6 if arrow.is_message else 0.9,
        "connectionstyle": f"arc3,rad={bend:.4f}",
        "patchA": boxes[arrow.before],
        "patchB": boxes[arrow.after],
        "shrinkA": 0,
        "shrinkB": 1,
    }
    axes.annotate("", xy=(to_x, to_y), xytext=(x, y), arrowprops=look, zorder=2)
    if arrow.is_first:
        place = ((x + to_x) / 2 - (BOX_WIDTH / 2 + 0.09 if bend else 0), (y + to_y) / 2)
        mark = {"boxstyle": "circle,pad=0.1", "facecolor": "1.0", "edgecolor": "0.45", "linewidth": 0.6}
        axes.text(*place, "or", fontsize=7, ha="center", va="center", bbox=mark, zorder=5)


def waits(graph: list) -> list[Arrow]:
    """The arrows of edges; a dashed one waits for a begin."""
    return [
        Arrow((rank, number), (rank, after), "-" if until == "end" else "--", False, is_first)
        for rank, operations in enumerate(graph)
        for number, (*_, edges) in enumerate(operations)
        for after, until, is_first in edges
    ]


def messages(graph: list) -> list[Arrow]:
    """From sends to receives, and from one-sided operations to what awaits them; a get's data come back."""
    arrows = []
    sends: list[tuple[Place, int, int]] = []  # each send, its target, and the tag
    awaited: dict[tuple[int, int], list[Place]] = defaultdict(list)
    for rank, operations in enumerate(graph):
        for number, (_, kind, peer, tag, _) in enumerate(operations):
            if kind == "send":
                sends.append(((rank, number), peer, tag))
            if kind == "arrived":
                awaited[rank, tag].append((rank, number))
    for sure in (True, False):  # receives of any take what is left
        for rank, operations in enumerate(graph):
            for number, (_, kind, peer, tag, _) in enumerate(operations):
                if kind != "recv" or sure != (peer is not None and tag != ANY_TAG):
                    continue
                for send in sends:
                    (source, _), to, its = send
                    fits = to == rank and peer in (None, source) and (its == tag or ANY_TAG in (its, tag))
                    if fits:
                        arrows.append(Arrow(send[0], (rank, number), "-", True, False))
                        sends.remove(send)
                        break
    for rank, operations in enumerate(graph):
        for number, (_, kind, peer, tag, _) in enumerate(operations):
            if kind in ("put", "get", "atomic", "fetch"):
                arrows += [Arrow((rank, number), waiting, "-", True, False) for waiting in awaited[peer, tag]]
    return arrows


def levels(graph: list, arrows: list[Arrow]) -> dict[Place, int]:
    """Returns how many arrows lead to it, the longest way; what waits in a circle lies below all others."""
    places = [(rank, number) for rank, operations in enumerate(graph) for number in range(len(operations))]
    level = dict.fromkeys(places, 0)
    waits_left = dict.fromkeys(places, 0)
    after: dict[Place, list[Place]] = defaultdict(list)
    for arrow in arrows:
        after[arrow.before].append(arrow.after)
        waits_left[arrow.after] += 1
    free = deque(place for place in places if waits_left[place] == 0)
    done = 0
    while free:
        place = free.popleft()
        done += 1
        for later in after[place]:
            level[later] = max(level[later], level[place] + 1)
            waits_left[later] -= 1
            if waits_left[later] == 0:
                free.append(later)
    if done < len(places):
        last = max((level[place] for place in places if waits_left[place] == 0), default=-1)
        for number, place in enumerate(place for place in places if waits_left[place] > 0):
            level[place] = last + 1 + number
    return level


def lay_out(graph: list, arrows: list[Arrow]) -> dict[Place, tuple[float, float]]:
    level = levels(graph, arrows)
    beside: dict[tuple[int, int], list[Place]] = defaultdict(list)
    for place in sorted(level):
        beside[place[0], level[place]].append(place)
    places = {}
    x = 0.0
    for rank in range(len(graph)):
        rows = {row: row_places for (place_rank, row), row_places in beside.items() if place_rank == rank}
        width = max((len(row_places) for row_places in rows.values()), default=1)
        for row, row_places in rows.items():
            for number, place in enumerate(row_places):
                places[place] = (x + (width - len(row_places)) / 2 + number, float(row))
        x += width
    return places


def columns(graph: list, places: dict[Place, tuple[float, float]]) -> dict[int, float]:
    """The middle of each rank that does something."""
    middles = {}
    for rank in range(len(graph)):
        xs = [x for (place_rank, _), (x, _) in places.items() if place_rank == rank]
        if xs:
            middles[rank] = (min(xs) + max(xs)) / 2
    return middles
