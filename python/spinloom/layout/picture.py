"""A picture of a datatype in memory as SVG: blocks, gaps, bounds and packed order of its first elements.

Contract: draw(layout) returns one self-contained SVG document. Memory runs from left to right and continues
in the next line. A block carries its number in packed order and its bytes, a gap its bytes; widths grow with
the logarithm of the bytes, so that everything stays legible. Elements are told apart by tint and by edge
(full, dashed), so that the picture is legible in black and white. Long types are cut, and the caption says
where.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from spinloom.layout import Layout, picture_grid

WIDTH, MARGIN = 960, 16
BAR, LINE = 34, 74  # height of a bar, and distance between two lines
BLOCKS_SHOWN, BLOCKS_SEEN = 40, 20_000  # the second number takes a few milliseconds
FILL = ("#2f5d8c", "#bcd3ea")  # elements 0 and 1
INK = ("#ffffff", "#000000")
OVERLAP = "#c23b22"  # a thick edge around white
FONT = 'font-family="DejaVu Sans, Helvetica, sans-serif"'


@dataclass(frozen=True)
class Part:
    """A stretch of memory: of one block, of several blocks that overlap, or a gap."""

    first: int
    last: int
    owners: tuple[tuple[int, int], ...]  # (element, number in packed order)

    @property
    def width(self) -> float:
        return (10 if not self.owners else 16) + 9 * math.log2(1 + self.last - self.first)


@dataclass(frozen=True)
class Box:
    """A part on the page."""

    part: Part
    x: float
    width: float
    line: int


def parts(blocks: list[tuple[int, int, int, int]], marks: Iterable[int]) -> list[Part]:
    """Memory cut at every edge; a block is (first, last, element, number)."""
    edges = sorted({edge for first, last, _, _ in blocks for edge in (first, last)} | set(marks))
    stretches = []
    for first, last in itertools.pairwise(edges):
        owners = tuple((block[2], block[3]) for block in blocks if block[0] < last and first < block[1])
        stretches.append(Part(first, last, owners))
    return stretches


def place(stretches: list[Part]) -> list[Box]:
    """Places parts line by line; a part moves to the next line as a whole."""
    boxes: list[Box] = []
    x, line = float(MARGIN), 0
    for part in stretches:
        if x + part.width > WIDTH - MARGIN and x > MARGIN:
            x, line = float(MARGIN), line + 1
        width = min(part.width, WIDTH - 2 * MARGIN)
        boxes.append(Box(part, x, width, line))
        x += width
    return boxes


def first_blocks(layout: Layout) -> tuple[list[tuple[int, int, int, int]], int]:
    """The blocks of elements 0 and 1 that lie lowest in memory, and how many there are of one element."""
    element_blocks = layout.blocks(BLOCKS_SEEN)
    extent = layout.extent
    blocks = [
        (offset + element * extent, offset + element * extent + length, element, number)
        for element in range(2 if len(element_blocks) <= BLOCKS_SHOWN // 2 else 1)
        for number, (offset, length) in enumerate(element_blocks)
    ]
    return heapq.nsmallest(BLOCKS_SHOWN, blocks), len(element_blocks)


def bounds(layout: Layout, lowest: int, highest: int) -> dict[int, str]:
    """The visible marks: the buffer's address, the bounds, the second element's end."""
    marks = {layout.lb: "lb", layout.ub: "ub", layout.ub + layout.extent: "ub of element 1"}
    marks[0] = "address, lb" if layout.lb == 0 else "address"
    slack = max(64, highest - lowest)
    return {at: name for at, name in marks.items() if lowest - slack <= at <= highest + slack}


def bar(box: Box) -> Iterator[str]:
    part, middle = box.part, box.x + box.width / 2
    y = 76 + box.line * LINE
    length = f"{part.last - part.first:,}"
    shape = f'x="{box.x:.1f}" y="{y}" width="{box.width:.1f}" height="{BAR}"'
    small = f'text-anchor="middle" {FONT} font-size="9"'
    if not part.owners:
        yield f'<rect {shape} fill="none" stroke="#999" stroke-dasharray="2 3"/>'
        yield f'<text x="{middle:.1f}" y="{y + 21}" {small} fill="#555">{length}</text>'
        return
    if len(part.owners) > 1:
        ink, look = OVERLAP, f'fill="#ffffff" stroke="{OVERLAP}" stroke-width="3"'
    else:
        element = part.owners[0][0]
        dashes = ' stroke-dasharray="4 2"' if element == 1 else ""
        ink, look = INK[element], f'fill="{FILL[element]}" stroke="#000"{dashes}'
    yield f"<rect {shape} {look}/>"
    label = "+".join(str(each[1]) for each in part.owners[:3])
    yield (
        f'<text x="{middle:.1f}" y="{y + 16}" text-anchor="middle" {FONT} font-size="12" '
        f'font-weight="bold" fill="{ink}">{label}</text>'
    )
    yield f'<text x="{middle:.1f}" y="{y + 28}" {small} fill="{ink}">{length} B</text>'


def ruler(boxes: list[Box], marks: dict[int, str]) -> Iterator[str]:
    """Draws the offset under the beginning of every line, and a stroke with a name at every mark."""
    for index, box in enumerate(boxes):
        y = 76 + box.line * LINE
        at = box.part.first
        if index == 0 or boxes[index - 1].line != box.line:
            yield f'<text x="{box.x:.1f}" y="{y + BAR + 12}" {FONT} font-size="9" fill="#555">{at:,} B</text>'
        names = [(box.x, at)] if at in marks else []
        if index == len(boxes) - 1 and box.part.last in marks:
            names.append((box.x + box.width, box.part.last))
        for x, mark in names:
            anchor = "end" if x > WIDTH - 120 else "start"
            yield f'<path d="M{x:.1f} {y - 8}V{y + BAR + 4}" stroke="#000" stroke-width="2"/>'
            yield (
                f'<text x="{x:.1f}" y="{y - 11}" text-anchor="{anchor}" {FONT} font-size="10">'
                f"{escape(marks[mark])} = {mark:,}</text>"
            )


def legend(two: bool, overlapping: bool) -> Iterator[str]:
    entries = [("element 0", f'fill="{FILL[0]}" stroke="#000"')]
    if two:
        entries.append(("element 1", f'fill="{FILL[1]}" stroke="#000" stroke-dasharray="4 2"'))
    if overlapping:
        entries.append(("written twice", f'fill="#ffffff" stroke="{OVERLAP}" stroke-width="3"'))
    entries.append(("gap", 'fill="none" stroke="#999" stroke-dasharray="2 3"'))
    x = MARGIN
    for name, look in entries:
        yield f'<rect x="{x}" y="36" width="14" height="12" {look}/>'
        yield f'<text x="{x + 19}" y="46" {FONT} font-size="11">{name}</text>'
        x += 40 + 7 * len(name)
    yield (
        f'<text x="{x}" y="46" {FONT} font-size="11" fill="#555">numbers: place in packed order; '
        "widths: logarithm of bytes</text>"
    )


def caption(layout: Layout, total: int, shown: int) -> str:
    text = layout.beginning(60)
    many = f"{total:,}" if total < BLOCKS_SEEN else f"{total:,} or more"
    cut = f", the {shown:,} lowest shown" if shown < total else ""
    blocks = f"{many} block{'s' if total != 1 else ''}"
    return f"{text}: {layout.size:,} B in {blocks}{cut}, extent {layout.extent:,} B"


def draw(layout: Layout) -> str:
    """The SVG document."""
    blocks, total = first_blocks(layout)
    lowest = min((block[0] for block in blocks), default=0)
    highest = max((block[1] for block in blocks), default=0)
    marks = bounds(layout, lowest, highest)
    complete = not blocks or len(blocks) in (total, 2 * total)
    shown_marks = {at: name for at, name in marks.items() if complete or at <= highest}
    boxes = place(parts(blocks, shown_marks))
    lines = boxes[-1].line + 1 if boxes else 1
    grid = picture_grid.grid_of(layout)
    height = 76 + lines * LINE + (picture_grid.HEIGHT if grid else 0)
    title = escape(caption(layout, total, len(blocks)))
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="24" {FONT} font-size="13">{title}</text>',
        *legend(any(block[2] for block in blocks), any(len(box.part.owners) > 1 for box in boxes)),
        *(line for box in boxes for line in bar(box)),
        *ruler(boxes, shown_marks),
        *(picture_grid.draw(grid, MARGIN, 76 + lines * LINE) if grid else ()),
        "</svg>",
    ]
    return "\n".join(body) + "\n"
