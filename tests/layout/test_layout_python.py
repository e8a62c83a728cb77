"""What spinloom.layout takes from Python and refuses: indices, views, tensors, plans, types, words."""

from __future__ import annotations

import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import needs_engine
from patience import seconds
from spinloom import layout
from spinloom.common.errors import Trouble
from spinloom.layout import numpy_types, picture

pytestmark = needs_engine

PLACES = st.lists(st.integers(0, 60), max_size=30)
KINDS = st.sampled_from(["<i8", "<i4", "<u2", ">i8", "<u8"])


# ---- lists of indices ----


@given(PLACES, KINDS, st.integers(0, 3))
def test_indices_take_what_numpy_takes(places, kind, block):
    data = np.arange(64.0)
    made = layout.from_indices(np.array(places, kind), block, "double")
    expected = [data[place : place + block] for place in places]
    assert made.pack(data) == b"".join(part.tobytes() for part in expected)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3)), max_size=20))
def test_every_index_may_have_a_block_of_its_own(pairs):
    # Rules: LAY-8.
    data = np.arange(64, dtype="i4")
    places, lengths = [p for p, _ in pairs], [n for _, n in pairs]
    made = layout.from_indices(places, lengths, np.int32)
    assert made.pack(data) == b"".join(data[p : p + n].tobytes() for p, n in pairs)


def test_indices_make_the_types_of_mpi():
    assert layout.from_indices([3, 1], 2, "int").text == "idxblock(2, [3, 1], int)"
    assert layout.from_indices([3, 1], [2, 5], "int").text == "indexed([3 x 2, 1 x 5], int)"
    assert layout.from_indices([24, 8], in_bytes=True).text == "hidxblock(1, [24B, 8B], double)"
    assert (
        layout.from_indices([24, 8], [1, 2], "int", in_bytes=True).text == "hindexed([24B x 1, 8B x 2], int)"
    )
    face = layout.from_array(np.zeros((4, 4))[:, 0])
    assert layout.from_indices([0, 1], 1, face).size == 64


def test_a_million_indices_are_no_text():
    places = np.random.default_rng(1).permutation(1_000_000)
    made = layout.from_indices(places)
    data = np.arange(1e6)
    assert (made.pack_array(data) == data[places]).all()
    assert len(repr(made)) < 250
    assert "20,000 or more blocks" in picture.draw(made)


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda: layout.from_indices([1.5]), TypeError, "holds float64, not integers"),
        (lambda: layout.from_indices([True, False]), TypeError, "flatnonzero"),
        (lambda: layout.from_indices([[1, 2]]), Trouble, "has 2 dimensions"),
        (lambda: layout.from_indices(np.array([1 << 63], "u8")), Trouble, "64 bits"),
        (lambda: layout.from_indices([1], 1.5), TypeError, "block must be an integer, not float"),
        (lambda: layout.from_indices([1], 1 << 64), Trouble, "block = 18446744073709551616"),
        (lambda: layout.from_indices([1, 2], [1]), Trouble, "2 indices, but 1 blocks"),
        (lambda: layout.from_indices([1], -1), Trouble, "negative"),
        (lambda: layout.from_indices([1 << 62]), Trouble, "64 bits|overflow"),
        (lambda: layout.from_indices([1], 1, "flot"), Trouble, "did you mean 'float'"),
        (lambda: layout.from_indices(np.ma.array([1, 2])), Trouble, "masked array"),
    ],
)
def test_what_is_no_list_of_indices(make, kind, sentence):
    with pytest.raises(kind, match=sentence):
        make()


# ---- views with gaps ----


def test_a_contiguous_layout_does_not_take_what_lies_in_the_gaps_of_a_view():
    data = np.arange(20.0)
    item = layout.from_dtype("f8")
    with pytest.raises(Trouble, match=r"source is a view with gaps \(8 bytes .* then 8 .*from_array\(view\)"):
        item.pack(data[::2], count=5)
    with pytest.raises(Trouble, match="destination is a view with gaps"):
        item.unpack(bytes(40), data[::-2], count=5, offset=-64)
    with pytest.raises(Trouble, match="destination is a view with gaps"):
        item.copy(bytes(40), item, data[::2], count=5)
    with pytest.raises(Trouble, match="array is a view with gaps"):
        item.bind(data[::2], count=5)
    assert (data == np.arange(20.0)).all()
    taken = np.frombuffer(item.pack(data[::2], count=5, as_memory=True))
    assert (taken == data[:5]).all()
    assert item.pack(data[::2]) == data[:1].tobytes()  # one item has no gaps
    assert item.pack(data[::2], offset=32) == data[4:5].tobytes()


def test_elements_that_miss_the_rows_of_a_view_are_refused():
    grid = np.arange(100.0).reshape(10, 10)
    part = grid[2:8, 3:7]
    row, column = layout.from_array(part[0]), layout.from_text("resized(0B, 8B, vector(6, 1, 10, double))")
    with pytest.raises(Trouble, match="view with gaps"):
        row.pack(part, count=6)
    assert row.pack(part) == part[0].tobytes()
    assert column.pack(part, count=4) == part.T.tobytes()
    rows = layout.from_text("resized(0B, 80B, contig(4, double))")
    assert rows.pack(part, count=6) == part.tobytes()
    records = np.zeros(10, np.dtype([("a", "i4"), ("b", "f8")], align=True))
    records["b"] = np.arange(10)
    record = layout.from_dtype(records.dtype)
    with pytest.raises(Trouble, match="elements of the layout follow each other every 16 bytes"):
        record.pack(records[::2], count=5)
    field = layout.from_text("resized(0B, 16B, double)")
    assert field.pack(records["b"], count=10) == records["b"].tobytes()


def test_a_layout_from_a_view_fits_the_view():
    grid = np.arange(120.0).reshape(4, 5, 6)
    for view in (grid[::2, ::-2, 1:], grid.T, grid[:, 1, :], grid[1:3, ::3, 2], grid[::-1]):
        assert layout.from_array(view).pack(view) == view.tobytes()
        inner = view[1]
        assert layout.from_array(inner, base=view).pack(view) == inner.tobytes()


# ---- what has no plain memory ----


class HostTensor:
    """An array that speaks DLPack only, as tensors do."""

    def __init__(self, array) -> None:
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_masked_arrays_are_refused():
    masked = np.ma.array([1.0, 2.0], mask=[True, False])

    class Own(np.ma.MaskedArray):
        pass

    for array in (masked, masked.view(Own)):
        with pytest.raises(Trouble, match=r"source is a masked array.*filled\(value\)"):
            layout.from_text("double").pack(array)
        with pytest.raises(Trouble, match="masked array"):
            layout.from_array(array)


def test_tensors_on_the_host_are_taken_by_dlpack():
    grid = np.arange(24.0).reshape(4, 6)
    for view in (grid, grid[::2, ::-1], grid.T, grid[:, 1:4]):
        assert layout.from_array(view).pack(HostTensor(view)) == view.tobytes()
    column = layout.from_array(grid[:, 2], base=grid)
    column.unpack(HostTensor(np.full(4, 7.0)), HostTensor(grid))
    assert (grid[:, 2] == 7).all()
    with pytest.raises(Trouble, match="view with gaps"):
        layout.from_text("contig(4, double)").pack(HostTensor(grid[:, ::2]))
    with pytest.raises(Trouble, match="packed buffer is not contiguous"):
        column.unpack(HostTensor(np.zeros(8)[::2]), grid)
    with pytest.raises(Trouble, match="source holds 192 bytes"):
        column.pack(HostTensor(grid), count=2)
    fixed = np.zeros(4)
    fixed.flags.writeable = False
    with pytest.raises(Trouble, match="packed buffer is read-only"):
        column.pack(grid, HostTensor(fixed))


# ---- results with a type ----


@pytest.mark.parametrize(
    ("text", "primitive", "dtype"),
    [
        ("vector(3, 1, 2, int)", "int", "i4"),
        ("c_double_complex", "c_double_complex", "c16"),
        ("struct([(0B, float), (8B, 2, float)])", "float", "f4"),
        ("struct([(0B, float), (8B, double)])", "", "u1"),
        ("contig(3, byte)", "byte", "u1"),
        ("struct([])", "", "u1"),
    ],
)
def test_packed_arrays_have_the_primitive_s_dtype(text, primitive, dtype):
    made = layout.from_text(text)
    packed = made.pack_array(np.arange(64, dtype="u1"))
    assert (made.primitive, packed.dtype) == (primitive, np.dtype(dtype))
    assert packed.tobytes() == made.pack(np.arange(64, dtype="u1"))


def test_every_primitive_has_a_dtype_of_its_size():
    for name in numpy_types.DTYPES:
        assert layout.from_text(name).size == np.dtype(numpy_types.dtype_of(name)).itemsize, name


USES = """
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinloom import layout

grid: NDArray[np.float64] = np.zeros((10, 10))
face: layout.Layout = layout.from_array(grid[:, 0], base=grid)
packed: bytearray = face.pack(grid)
into: NDArray[np.uint8] = face.pack(grid, np.zeros(face.size, "u1"))
values: NDArray[np.generic] = face.pack_array(grid)
face.unpack(packed, grid)
face.unpack(memoryview(packed), bytearray(800))
face.copy(grid, face, grid)
plan: layout.PackPlan = face.bind(grid, packed)
plan.pack()
face.bind_copy(grid, face, grid).copy()
listed: layout.Layout = layout.from_indices(np.array([1, 2]), 2, np.float64)
listed = layout.from_indices([1, 2], [1, 2], listed)
blocks: list[tuple[int, int]] = listed.blocks(3, count=2)
"""


def test_uses_are_clean_under_a_strict_type_checker(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "uses.py").write_text(USES)
    (tmp_path / "wrong.py").write_text(USES + "wrong: int = face.pack(grid)\nface.pack([1])\n")
    check = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", "--cache-dir", "cache"]
    clean = subprocess.run([*check, "uses.py"], cwd=tmp_path, capture_output=True, text=True)
    assert clean.returncode == 0, clean.stdout
    wrong = subprocess.run([*check, "wrong.py"], cwd=tmp_path, capture_output=True, text=True)
    assert wrong.stdout.count("error:") == 2, wrong.stdout


# ---- plans ----


def test_a_plan_packs_and_unpacks_again_and_again():
    grid = np.arange(60.0).reshape(6, 10)
    face = layout.from_array(grid[:, 3], base=grid)
    plan = face.bind(grid)
    for value in (5.0, 6.0):
        grid[:, 3] = value
        plan.pack()
        assert plan.packed == np.full(6, value).tobytes()
    plan.packed[:] = np.arange(6.0).tobytes()
    plan.unpack()
    assert (grid[:, 3] == np.arange(6)).all()
    assert weakref.ref(plan)() is plan


def test_a_large_plan_moves_what_the_calls_move():
    grid = np.arange(4_000_000.0).reshape(2000, 2000)
    made = layout.from_array(grid[:, ::2], base=grid)
    plan = made.bind(grid, np.empty(2_000_000))
    plan.pack()
    assert (plan.packed.reshape(2000, 1000) == grid[:, ::2]).all()
    plan.packed[:] = 0
    plan.unpack()
    assert not grid[:, ::2].any()
    assert grid[:, 1::2].all()


def test_a_plan_copies_between_layouts():
    grid = np.arange(60.0).reshape(6, 10)
    face = layout.from_array(grid[:, 3], base=grid)
    halo = layout.from_array(grid[:, 9], base=grid)
    plan = face.bind_copy(grid, halo, grid)
    for value in (1.0, 2.0):
        grid[:, 3] = value
        plan.copy()
        assert (grid[:, 9] == value).all()


def test_a_plan_keeps_its_array():
    packed = bytearray(8)
    plan = layout.from_text("double").bind(bytearray(8), packed)
    with pytest.raises(BufferError):
        packed.extend(b"more")
    del plan
    packed.extend(b"more")


@pytest.mark.parametrize(
    ("bind", "sentence"),
    [
        (lambda item: item.bind(bytes(7)), "array holds 7 bytes"),
        (lambda item: item.bind(bytes(8), bytearray(7)), "packed buffer holds 7 bytes"),
        (lambda item: item.bind(bytes(8), count=-1), "count is -1"),
        (lambda item: item.bind(bytes(8)).unpack(), "array is read-only"),
        (lambda item: item.bind(bytearray(8), bytes(8)).pack(), "packed buffer is read-only"),
        (lambda item: item.bind_copy(bytes(8), item, bytes(8)), "destination is read-only"),
        (lambda item: item.bind_copy(bytes(8), item, bytearray(8), to_count=2), "destination holds 8 bytes"),
        (lambda item: item.bind_copy(bytes(8), layout.from_text("int"), bytearray(8), to_count=1), "equal"),
    ],
)
def test_what_a_plan_refuses(bind, sentence):
    with pytest.raises(Trouble, match=sentence):
        bind(layout.from_text("double"))


def test_a_plan_does_not_unpack_what_overlaps_itself():
    twice = layout.from_text("hvector(2, 8, 4B, byte)")
    array = bytearray(12)
    plan = twice.bind(array)
    plan.pack()
    with pytest.raises(Trouble, match="both land at offset 4"):
        plan.unpack()
    with pytest.raises(Trouble, match="overlaps itself"):
        twice.bind_copy(bytes(12), twice, array)
    shared = bytearray(16)
    with pytest.raises(Trouble, match="share memory"):
        layout.from_text("double").bind(shared, memoryview(shared)[4:])


# ---- words instead of the binding's errors ----


@pytest.mark.parametrize(
    ("use", "kind", "sentence"),
    [
        (
            lambda item: item.pack(bytes(8), count=1.0),
            TypeError,
            r"^count must be an integer, not float \(1.0\)",
        ),
        (
            lambda item: item.pack(bytes(8), count=1 << 64),
            Trouble,
            "^count = 18446744073709551616 does not fit",
        ),
        (lambda item: item.pack(bytes(8), count=None), TypeError, "^count must be an integer, not NoneType"),
        (lambda item: item.pack(bytes(8), first="1"), TypeError, "^first must be an integer, not str"),
        (lambda item: item.pack(bytes(8), last=-(1 << 64)), Trouble, "^last = -18446744073709551616"),
        (lambda item: item.pack(None), TypeError, "^the source is of type NoneType, which shows no memory"),
        (lambda item: item.pack([1.0]), TypeError, "^the source is of type list"),
        (lambda item: item.unpack(None, bytearray(8)), TypeError, "^the packed buffer is of type NoneType"),
        (lambda item: item.unpack(bytes(8), None), TypeError, "^the destination is of type NoneType"),
        (
            lambda item: item.copy(bytes(8), "double", bytearray(8)),
            TypeError,
            "^to must be a Layout, not str",
        ),
        (lambda item: item.copy(bytes(8), item, None), TypeError, "^the destination is of type NoneType"),
        (lambda item: item.bind(None), TypeError, "^the array is of type NoneType"),
        (lambda item: item.bind(bytearray(8), count=1.0), TypeError, "^count must be an integer"),
        (lambda item: item.blocks(None), TypeError, "^limit must be an integer"),
        (lambda item: item.packed_bytes(1 << 64), Trouble, "^count = 18446744073709551616"),
        (lambda item: layout.Layout(None), TypeError, "^text must be a str, not NoneType"),
        (lambda item: layout.from_text(7), TypeError, "^text must be a str, not int"),
        (lambda item: layout.Layout("doubel"), Trouble, "did you mean 'double'"),
        (lambda item: layout.Layout("contig(3, float64)"), Trouble, "did you mean 'double'"),
        (lambda item: layout.Layout("MPI_DOUBLE"), Trouble, "did you mean 'double'"),
    ],
)
def test_wrong_arguments_are_told_in_words(use, kind, sentence):
    with pytest.raises(kind, match=sentence):
        use(layout.from_text("double"))


def test_numpy_s_integers_are_integers():
    assert layout.from_text("int").pack(bytes(8), count=np.int64(2)) == bytes(8)


# ---- objects ----


def test_layouts_do_not_change_and_can_be_weakly_referenced():
    made = layout.from_text("double")
    for name in ("engine", "text", "other"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(made, name, 1)
        with pytest.raises(AttributeError, match="immutable"):
            delattr(made, name)
    alive = weakref.WeakValueDictionary(made=made)
    assert alive["made"] == made
    del made
    assert "made" not in alive


INTERRUPTED = """
import resource, signal
from spinloom import layout

resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))  # a list of all of them would not fit
made = layout.from_text({text!r})
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    made.blocks(1 << 40, count={count})
except KeyboardInterrupt:
    print("ended")
"""


@pytest.mark.parametrize(
    ("text", "count"),
    [("vector(1000000000000, 1, 2, double)", 1), ("contig(3, int)", 10**15)],
    ids=["many blocks", "one block of many pieces"],
)
def test_a_list_of_blocks_can_be_interrupted(text, count):
    script = INTERRUPTED.format(text=text, count=count)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=seconds(60))
    assert done.stdout == "ended\n", done.stderr


def test_docs_say_what_there_is():
    text = (Path(__file__).resolve().parents[2] / "docs/layouts.md").read_text()
    for name in ("from_indices", "bind(", "bind_copy", "pack_array", "as_memory", "DLPack"):
        assert name in text
