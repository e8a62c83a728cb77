"""What each constructor of the MPI standard means: small types whose bytes and bounds are found by hand."""

from __future__ import annotations

import ctypes

import pytest

from conftest import needs_engine
from spinloom import layout
from spinloom.common.errors import Trouble

pytestmark = needs_engine

BASE = 100
MEMORY = bytes(range(256))  # a byte says where it lies
C_TYPES = {
    "char": ctypes.c_char,
    "signed_char": ctypes.c_byte,
    "unsigned_char": ctypes.c_ubyte,
    "wchar": ctypes.c_wchar,
    "short": ctypes.c_short,
    "unsigned_short": ctypes.c_ushort,
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "long": ctypes.c_long,
    "unsigned_long": ctypes.c_ulong,
    "long_long": ctypes.c_longlong,
    "unsigned_long_long": ctypes.c_ulonglong,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "long_double": ctypes.c_longdouble,
    "c_bool": ctypes.c_bool,
}
FORTRAN_TYPES = {
    1: ("character", "integer1"),
    2: ("integer2",),
    4: ("integer", "logical", "real", "integer4", "real4"),
    8: ("complex", "double_precision", "integer8", "real8", "complex8"),
    16: ("double_complex", "complex16"),
}


def places(text: str, count: int = 1) -> list[int]:
    """Where each packed byte lies, counted from the buffer's address."""
    return [byte - BASE for byte in layout.from_text(text).pack(MEMORY, offset=BASE, count=count)]


def bounds(text: str) -> tuple[int, int]:
    made = layout.from_text(text)
    return made.lb, made.ub


def true_bounds(text: str) -> tuple[int, int]:
    made = layout.from_text(text)
    return made.true_lb, made.true_lb + made.true_extent


# ---- displacements ----


def test_contig_puts_elements_an_extent_apart():
    # Rules: LAY-1.
    assert places("contig(3, short)") == [0, 1, 2, 3, 4, 5]
    assert places("contig(3, resized(0B, 5B, short))") == [0, 1, 5, 6, 10, 11]


def test_a_stride_of_vector_counts_extents():
    # Rules: LAY-2.
    assert places("vector(3, 1, 2, short)") == [0, 1, 4, 5, 8, 9]
    assert places("vector(2, 1, 3, resized(0B, 5B, short))") == [0, 1, 15, 16]


def test_a_block_of_vector_is_so_many_elements():
    # Rules: LAY-3.
    assert places("vector(2, 2, 3, short)") == [0, 1, 2, 3, 6, 7, 8, 9]
    assert places("vector(2, 2, 3, resized(0B, 4B, byte))") == [0, 4, 12, 16]


def test_a_stride_of_hvector_counts_bytes():
    # Rules: LAY-4.
    assert places("hvector(2, 2, 7B, short)") == [0, 1, 2, 3, 7, 8, 9, 10]


def test_strides_may_be_negative_or_none():
    # Rules: LAY-5, LAY-6.
    assert places("vector(3, 1, -2, short)") == [0, 1, -4, -3, -8, -7]
    assert places("hvector(2, 1, -3B, byte)") == [0, -3]
    assert places("vector(2, 1, 0, byte)") == [0, 0]
    assert bounds("vector(3, 1, -2, short)") == (-8, 2)


def test_places_of_indexed_count_extents_and_blocks_have_lengths():
    # Rules: LAY-7, LAY-8, LAY-11.
    assert places("indexed([3 x 1, 0 x 2], short)") == [6, 7, 0, 1, 2, 3]
    assert places("indexed([2 x 2, -1 x 1], resized(0B, 4B, byte))") == [8, 12, -4]


def test_places_of_hindexed_count_bytes():
    # Rules: LAY-9, LAY-11.
    assert places("hindexed([3B x 1, -5B x 2], short)") == [3, 4, -5, -4, -3, -2]


def test_blocks_of_idxblock_are_equally_long():
    # Rules: LAY-10.
    assert places("idxblock(2, [3, 0], short)") == [6, 7, 8, 9, 0, 1, 2, 3]
    assert places("hidxblock(2, [9B, 0B], byte)") == [9, 10, 0, 1]


def test_members_of_a_struct_have_types_places_and_lengths_of_their_own():
    # Rules: LAY-12, LAY-13.
    text = "struct([(8B, 2, short), (0B, vector(2, 1, 2, byte)), (20B, 0, double)])"
    assert places(text) == [8, 9, 10, 11, 0, 2]


def test_a_subarray_in_c_order_has_its_last_index_fastest():
    """Of 2 x 3 x 4: all planes, rows 1 and 2, columns 1 and 2."""
    # Rules: LAY-16, LAY-17.
    assert places("subarray([2, 3, 4], [2, 2, 2], [0, 1, 1], C, byte)") == [5, 6, 9, 10, 17, 18, 21, 22]


def test_a_subarray_in_fortran_order_has_its_first_index_fastest():
    """Place i + 3 j + 12 k of 3 x 4 x 3, with i from 0 to 1, j from 1 to 3, k from 0 to 1."""
    # Rules: LAY-16, LAY-18.
    expected = [i + 3 * j + 12 * k for k in (0, 1) for j in (1, 2, 3) for i in (0, 1)]
    assert places("subarray([3, 4, 3], [2, 3, 2], [0, 1, 0], F, byte)") == expected


def test_elements_of_a_subarray_are_extents_of_the_old_type_apart():
    # Rules: LAY-19, LAY-20.
    assert places("subarray([4], [2], [1], C, resized(0B, 3B, byte))") == [3, 6]
    assert bounds("subarray([4], [2], [1], C, resized(0B, 3B, byte))") == (0, 12)


def test_a_darray_deals_blocks_of_a_dimension_in_turn():
    """Rank 1 of 2 has places 2, 3, 6, 7 and 10 of 11 in blocks of 2."""
    # Rules: LAY-24.
    assert places("darray(2, 1, [11], [cyclic], [2], [2], C, byte)") == [2, 3, 6, 7, 10]


def test_elements_of_a_darray_are_extents_of_the_old_type_apart():
    # Rules: LAY-29.
    assert places("darray(2, 1, [4], [block], [default], [2], C, resized(0B, 3B, byte))") == [6, 9]
    assert bounds("darray(2, 1, [4], [block], [default], [2], C, resized(0B, 3B, byte))") == (0, 12)


def test_dup_and_resized_move_no_byte():
    # Rules: LAY-15, LAY-34.
    assert places("dup(vector(2, 1, 3, byte))") == [0, 3]
    assert places("resized(-4B, 9B, vector(2, 1, 3, byte))") == [0, 3]


def test_constructors_nest():
    """Two rows, 20 B apart, of two pairs of bytes that are 6 B apart."""
    # Rules: LAY-14.
    assert places("hvector(2, 1, 20B, vector(2, 2, 6, byte))") == [0, 1, 6, 7, 20, 21, 26, 27]


# ---- messages ----


def test_elements_of_a_message_are_extents_apart():
    # Rules: LAY-43.
    assert places("resized(0B, 5B, short)", count=3) == [0, 1, 5, 6, 10, 11]
    assert places("resized(3B, -4B, short)", count=3) == [0, 1, -4, -3, -8, -7]
    assert places("resized(0B, 0B, short)", count=2) == [0, 1, 0, 1]


def test_packed_bytes_are_in_the_order_of_the_type_map_and_have_no_gaps():
    # Rules: LAY-42, LAY-44.
    made = layout.from_text("hindexed([9B x 1, 0B x 2, 4B x 1], byte)")
    assert places(made.text) == [9, 0, 1, 4]
    assert made.size == len(made.pack(MEMORY)) == 4


def test_nothing_is_packed_of_no_elements():
    # Rules: LAY-46.
    assert places("vector(2, 1, 3, int)", count=0) == []
    target = bytearray(8)
    layout.from_text("double").unpack(b"", target, count=0)
    assert target == bytes(8)


@pytest.mark.parametrize(
    "text",
    [
        "contig(0, int)",
        "vector(0, 3, 4, int)",
        "vector(3, 0, 4, int)",
        "hvector(0, 3, 9B, int)",
        "hvector(2, 0, 9B, int)",
        "indexed([], int)",
        "indexed([3 x 0, 9 x 0], int)",
        "hindexed([7B x 0], int)",
        "idxblock(0, [1, 2], int)",
        "idxblock(3, [], int)",
        "hidxblock(0, [1B], int)",
        "struct([])",
        "struct([(8B, 0, int)])",
        "contig(5, contig(0, int))",
    ],
)
def test_counts_and_block_lengths_may_be_zero(text):
    # Rules: LAY-41, LAY-52.
    made = layout.from_text(text)
    assert (made.size, made.extent, true_bounds(text), made.blocks()) == (0, 0, (0, 0), [])
    assert made.pack(MEMORY, count=3) == b""


def test_a_block_without_elements_leaves_the_others_where_they_are():
    # Rules: LAY-53.
    assert places("indexed([1 x 1, 9 x 0, 4 x 2], byte)") == [1, 4, 5]
    assert places("struct([(0B, 1, byte), (9B, 0, double), (3B, 2, byte)])") == [0, 3, 4]


def test_what_overlaps_itself_may_be_packed_and_not_unpacked():
    """The standard allows such a type for sending and forbids it for receiving."""
    # Rules: LAY-42, LAY-47, LAY-48.
    assert places("hvector(2, 4, 2B, byte)") == [0, 1, 2, 3, 2, 3, 4, 5]
    target = bytearray(6)
    with pytest.raises(Trouble, match="both land at offset 2"):
        layout.from_text("hvector(2, 4, 2B, byte)").unpack(bytes(8), target)
    with pytest.raises(Trouble, match="both land at offset 0"):
        layout.from_text("resized(0B, 0B, byte)").unpack(bytes(2), target, count=2)
    assert target == bytes(6)


# ---- bounds ----


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int", (0, 4)),
        ("contig(3, int)", (0, 12)),
        ("vector(2, 1, 3, int)", (0, 16)),
        ("indexed([2 x 1, -1 x 1], int)", (-4, 12)),
        ("hindexed([9B x 1], short)", (9, 11)),
        ("struct([(4B, int), (-2B, short)])", (-2, 8)),
        ("dup(hindexed([9B x 1], short))", (9, 11)),
    ],
)
def test_bounds_are_those_of_the_type_map(text, expected):
    # Rules: LAY-32.
    assert bounds(text) == true_bounds(text) == expected


def test_resized_sets_both_bounds_and_leaves_the_true_ones():
    # Rules: LAY-34, LAY-38.
    assert bounds("resized(-3B, 11B, int)") == (-3, 8)
    assert true_bounds("resized(-3B, 11B, int)") == (0, 4)


def test_a_marker_hides_the_bounds_of_what_has_none():
    # Rules: LAY-36, LAY-38.
    assert bounds("struct([(0B, resized(1B, 2B, byte)), (50B, double)])") == (1, 3)
    assert true_bounds("struct([(0B, resized(1B, 2B, byte)), (50B, double)])") == (0, 58)


def test_markers_move_with_what_has_them():
    # Rules: LAY-37.
    assert bounds("hindexed([10B x 1, 30B x 1], resized(-1B, 3B, byte))") == (9, 32)
    assert bounds("contig(3, resized(1B, 5B, byte))") == (1, 16)


def test_an_outer_resized_replaces_the_inner_one():
    # Rules: LAY-35.
    assert bounds("resized(0B, 7B, resized(-9B, 99B, byte))") == (0, 7)


def test_subarray_and_darray_have_the_bounds_of_the_whole_array():
    # Rules: LAY-20, LAY-30, LAY-38.
    assert bounds("subarray([4, 5], [1, 1], [2, 3], C, short)") == (0, 40)
    assert true_bounds("subarray([4, 5], [1, 1], [2, 3], C, short)") == (26, 28)
    assert bounds("darray(2, 1, [6], [block], [default], [2], C, short)") == (0, 12)
    assert true_bounds("darray(2, 1, [6], [block], [default], [2], C, short)") == (6, 12)


def test_a_struct_has_no_padding_at_its_end():
    # Rules: LAY-40.
    assert bounds("struct([(0B, double), (8B, char)])") == (0, 9)


def test_extents_may_be_negative():
    # Rules: LAY-33, LAY-37.
    made = layout.from_text("resized(0B, -6B, short)")
    assert (made.lb, made.ub, made.extent) == (0, -6, -6)
    assert bounds("contig(2, resized(0B, -6B, short))") == (-6, -6)


# ---- what is refused ----


@pytest.mark.parametrize(
    "text",
    [
        "contig(-1, int)",
        "vector(-1, 1, 1, int)",
        "vector(1, -1, 1, int)",
        "hvector(-1, 1, 4B, int)",
        "hvector(1, -1, 4B, int)",
        "indexed([0 x -1], int)",
        "hindexed([0B x -1], int)",
        "idxblock(-1, [0], int)",
        "hidxblock(-1, [0B], int)",
        "struct([(0B, -1, int)])",
    ],
)
def test_negative_counts_and_block_lengths_are_refused(text):
    # Rules: LAY-54.
    with pytest.raises(Trouble, match="-1"):
        layout.from_text(text)


@pytest.mark.parametrize(
    ("sizes", "subsizes", "starts"),
    [
        ([0], [0], [0]),
        ([4], [0], [0]),
        ([4], [5], [0]),
        ([4], [2], [3]),
        ([4], [2], [-1]),
        ([4, 4], [2], [0]),
        ([4], [2], [0, 0]),
        ([], [], []),
    ],
)
def test_a_subarray_lies_in_its_array(sizes, subsizes, starts):
    # Rules: LAY-21, LAY-55.
    with pytest.raises(Trouble, match="in subarray"):
        layout.from_text(f"subarray({sizes}, {subsizes}, {starts}, C, int)")


# ---- large ----


def test_counts_and_places_have_64_bits():
    # Rules: LAY-56, LAY-57.
    far = 1 << 40
    made = layout.from_text(f"hindexed([{far}B x 3, {-far}B x 1], byte)")
    assert made.blocks() == [(far, 3), (-far, 1)]
    assert layout.from_text(f"vector({1 << 33}, 1, 2, byte)").extent == (1 << 34) - 1
    assert layout.from_text(f"contig({1 << 60}, int)").size == 1 << 62
    with pytest.raises(Trouble) as refused:
        layout.from_text(f"contig({1 << 61}, int)")
    assert refused.value.code == "overflow"


def test_constructors_nest_64_deep_and_no_deeper():
    # Rules: LAY-67.
    deep = "int"
    for _ in range(64):
        deep = f"contig(1, {deep})"
    assert layout.from_text(deep).size == 4
    with pytest.raises(Trouble, match="type_depth_max"):
        layout.from_text(f"contig(1, {deep})")


# ---- the text ----


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *((name, ctypes.sizeof(kind)) for name, kind in C_TYPES.items()),
        *((f"{sign}int{bits}_t", bits // 8) for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *((name, size) for size, names in FORTRAN_TYPES.items() for name in names),
        ("byte", 1),
        ("c_float_complex", 2 * ctypes.sizeof(ctypes.c_float)),
        ("c_double_complex", 2 * ctypes.sizeof(ctypes.c_double)),
        ("c_long_double_complex", 2 * ctypes.sizeof(ctypes.c_longdouble)),
        ("aint", ctypes.sizeof(ctypes.c_void_p)),
    ],
)
def test_primitives_have_the_sizes_of_the_host(name, size):
    # Rules: LAY-64.
    made = layout.from_text(name)
    assert (made.size, made.lb, made.extent) == (size, 0, size)


def test_a_range_counts_up_from_its_first_entry():
    # Rules: LAY-60.
    assert places("idxblock(1, range(1, 3, 4), byte)") == [1, 4, 7, 10]
    assert places("hidxblock(1, range(6B, -2B, 3), byte)") == [6, 4, 2]


def test_a_member_without_a_length_is_one_element():
    # Rules: LAY-62.
    assert places("struct([(4B, short), (0B, 2, byte)])") == [4, 5, 0, 1]
