"""The array that a subarray is taken from, as a box in SVG, with the plane or block that is taken filled in.

Contract: grid_of(layout) finds the subarray of a layout, under resized and dup, with two or three dimensions
longer than one; draw(grid, x, y) gives its SVG elements with the upper left corner at (x, y), HEIGHT high.
The fastest dimension runs to the right, the next one down, the slowest away from the reader. Edges keep their
order of length, not their ratio: none is so short that it cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spinloom.common import core
from spinloom.layout import Layout

HEIGHT = 190
EDGE_MIN, EDGE_MAX, DEEP = 30.0, 110.0, 0.5  # pixels; DEEP: of an edge that runs away, to the right and up
THICK_MIN = 3.0  # pixels of a plane
SEEN = 400  # characters of the text form in which a subarray is looked for
FONT = 'font-family="DejaVu Sans, Helvetica, sans-serif"'
FRONT, TOP, SIDE = "#2f5d8c", "#7fa3c7", "#557fa9"

Point = tuple[float, float, float]


@dataclass(frozen=True)
class Grid:
    """Dimensions longer than one from the fastest to the slowest, and the caption with all of them."""

    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    subsizes: tuple[int, ...]
    caption: str

    def edges(self) -> list[float]:
        most = max(self.sizes)
        return [EDGE_MIN + (EDGE_MAX - EDGE_MIN) * size / most for size in self.sizes]


def grid_of(layout: Layout) -> Grid | None:
    if "subarray(" not in layout.beginning(SEEN):
        return None
    tree = core.load().type_tree(layout.text)
    while tree["constructor"] in ("resized", "dup"):
        tree = tree["children"][0]
    if tree["constructor"] != "subarray":
        return None
    dimensions = list(zip(tree["sizes"], tree["starts"], tree["subsizes"], strict=True))
    selection = ", ".join(f"{start}:{start + sub}" for _, start, sub in dimensions)
    size = " x ".join(f"{size:,}" for size, _, _ in dimensions)
    if tree["order"] == "C":
        dimensions.reverse()
    longer = [each for each in dimensions if each[0] > 1]
    if not 2 <= len(longer) <= 3:
        return None
    sizes, starts, subsizes = zip(*longer, strict=True)
    return Grid(sizes, starts, subsizes, f"[{selection}] of an array of {size}, order {tree['order']}")


def draw(grid: Grid, x: float, y: float) -> Iterator[str]:
    edges = [*grid.edges(), 0.0][:3]
    low, high = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    for d, edge in enumerate(edges[: len(grid.sizes)]):
        low[d] = edge * grid.starts[d] / grid.sizes[d]
        high[d] = min(
            edge, max(edge * (grid.starts[d] + grid.subsizes[d]) / grid.sizes[d], low[d] + THICK_MIN)
        )
        low[d] = min(low[d], high[d] - THICK_MIN)
    corner_y = y + 24 + DEEP * edges[2]

    def at(point: Point) -> str:
        across, down, away = point
        return f"{x + across + DEEP * away:.1f},{corner_y + down - DEEP * away:.1f}"

    yield f'<text x="{x}" y="{y + 12}" {FONT} font-size="11">taken: {grid.caption}</text>'
    box = ((0.0, 0.0, 0.0), (edges[0], edges[1], edges[2]))
    for hidden in (True, False):
        for corners in outline(*box, hidden=hidden):
            dashes = ' stroke-dasharray="2 3"' if hidden else ""
            yield f'<path d="M{" L".join(map(at, corners))}" fill="none" stroke="#777"{dashes}/>'
        if hidden:  # boxes that are taken lie in front of the hidden edges, behind the others
            for fill, corners in faces((low[0], low[1], low[2]), (high[0], high[1], high[2])):
                yield f'<polygon points="{" ".join(map(at, corners))}" fill="{fill}" stroke="#000"/>'


def outline(low: Point, high: Point, *, hidden: bool) -> Iterator[list[Point]]:
    """The edges of a box that one sees, or those behind it."""
    (x, y, z), (right, bottom, back) = low, high
    if hidden:
        if back > z:
            for end in ((x, y, back), (right, bottom, back), (x, bottom, z)):
                yield [(x, bottom, back), end]
        return
    yield [(x, y, z), (right, y, z), (right, bottom, z), (x, bottom, z), (x, y, z)]
    if back > z:
        yield [(x, y, z), (x, y, back), (right, y, back), (right, bottom, back), (right, bottom, z)]
        yield [(right, y, z), (right, y, back)]


def faces(low: Point, high: Point) -> Iterator[tuple[str, list[Point]]]:
    """The faces of a box that one sees: top, side, front."""
    (x, y, z), (right, bottom, back) = low, high
    if back > z:
        yield TOP, [(x, y, z), (right, y, z), (right, y, back), (x, y, back)]
        yield SIDE, [(right, y, z), (right, bottom, z), (right, bottom, back), (right, y, back)]
    yield FRONT, [(x, y, z), (right, y, z), (right, bottom, z), (x, bottom, z)]
