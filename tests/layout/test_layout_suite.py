"""The layouts that every back end moves (tests/conformance/layouts.txt), by spinloom.layout and NumPy."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest

import type_map
from spinloom.common.errors import Trouble
from spinloom.layout import Layout

LISTED = Path(__file__).parents[1] / "conformance/layouts.txt"
GUARD = 64
UNTOUCHED = 0xA5


def rows() -> list[tuple[str, int, str]]:
    found = []
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, message = line.split(" | ")
            count, _, text = message.partition(" x ")
            found.append((name, int(count), text))
    return found


def expanded(text: str) -> str:
    """The text with each list of random numbers written out, as the package draws it."""
    return re.sub(r"rand\([^)]*\)", lambda found: str(drawn(found[0])), text)


def drawn(numbers: str) -> list[int]:
    found = Layout(f"idxblock(1, {numbers}, byte)").blocks(100_000)
    return [begin + i for begin, length in found for i in range(length)]


class Message:
    """`count` elements in memory of random bytes, and where the plain type map has each of them."""

    def __init__(self, count: int, text: str) -> None:
        self.layout, self.count = Layout(text), count
        self.plain = type_map.read(expanded(self.layout.text))
        places = self.plain.of(count)
        first, last = (int(places.min()), int(places.max())) if len(places) > 0 else (0, 0)
        self.offset = GUARD - first
        self.places = places + self.offset
        length = last + self.offset + 1 + GUARD
        self.memory = np.random.default_rng(7).integers(0, 255, length, np.uint8)
        self.packed = self.memory[self.places]
        self.is_written_twice = len(np.unique(places)) < len(places)

    def cuts(self) -> list[tuple[int, int]]:
        end = len(self.packed)
        return [(0, end), (0, end // 3), (end // 3, end - end // 5), (end - 1, end)] if end > 0 else [(0, 0)]

    def unpacked(self, first: int, last: int) -> np.ndarray:
        """What memory without this message's bytes is when those of a cut have come."""
        expected = np.full_like(self.memory, UNTOUCHED)
        expected[self.places[first:last]] = self.packed[first:last]
        return expected


message_of = functools.cache(Message)


@pytest.fixture(params=rows(), ids=[name for name, _, _ in rows()])
def message(request) -> Message:
    _, count, text = request.param
    return message_of(count, text)


def test_sizes_and_bounds_are_those_of_the_type_map(message):
    plain = message.plain
    assert (message.layout.size, message.layout.extent) == (len(plain.places), plain.extent)
    assert (message.layout.lb, message.layout.ub) == (plain.lb, plain.ub)


def test_each_cut_is_packed_and_unpacked(message):
    layout, where = message.layout, {"count": message.count, "offset": message.offset}
    assert layout.pack_array(message.memory, **where).tobytes() == message.packed.tobytes()
    for first, last in message.cuts():
        out = np.full(last - first, UNTOUCHED, np.uint8)
        layout.pack(message.memory, out, first=first, last=last, **where)
        assert np.array_equal(out, message.packed[first:last])
        to = np.full_like(message.memory, UNTOUCHED)
        if message.is_written_twice:
            with pytest.raises(Trouble):
                layout.unpack(out, to, first=first, last=last, **where)
            assert np.all(to == UNTOUCHED)
            continue
        layout.unpack(out, to, first=first, last=last, **where)
        assert np.array_equal(to, message.unpacked(first, last))


def test_plans_move_the_same_bytes(message):
    if message.is_written_twice:
        pytest.skip("it writes a byte twice")
    plan = message.layout.bind(message.memory, count=message.count, offset=message.offset)
    plan.pack()
    assert bytes(plan.packed) == message.packed.tobytes()
    to = np.full_like(message.memory, UNTOUCHED)
    message.layout.bind(to, bytearray(message.packed), count=message.count, offset=message.offset).unpack()
    assert np.array_equal(to, message.unpacked(0, len(message.packed)))


def test_copies_go_from_layout_to_layout(message):
    if message.is_written_twice:
        pytest.skip("it writes a byte twice")
    end = len(message.packed)
    bytes_of = Layout(f"contig({end}, byte)")
    to = np.full_like(message.memory, UNTOUCHED)
    bytes_of.copy(message.packed, message.layout, to, to_count=message.count, to_offset=message.offset)
    assert np.array_equal(to, message.unpacked(0, end))
    every_second = Layout(f"hvector({end}, 1, 2B, byte)")
    apart = np.full(2 * end + 1, UNTOUCHED, np.uint8)
    message.layout.copy(
        message.memory, every_second, apart, count=message.count, offset=message.offset, to_count=1
    )
    assert np.array_equal(apart[0 : 2 * end : 2], message.packed)
    assert np.all(apart[1::2] == UNTOUCHED)
