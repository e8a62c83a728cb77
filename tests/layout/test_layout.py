"""spinloom.layout against NumPy, which is the oracle here: pack is ascontiguousarray, unpack assignment."""

from __future__ import annotations

import inspect
import itertools
import pickle
import subprocess
import sys
import threading
import time
import typing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

from conftest import needs_engine
from patience import seconds, until
from spinloom import layout
from spinloom.common.errors import Trouble

pytestmark = needs_engine


def noise(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, count, dtype="u1")


def columns(dtype: np.dtype) -> list[int]:
    """The bytes of an item that are data, in the order of its fields."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        items = range(int(np.prod(shape)))
        return [item * base.itemsize + column for item in items for column in columns(base)]
    if dtype.names is None:
        return list(range(dtype.itemsize))
    fields = [dtype.fields[name][:2] for name in dtype.names]
    return [offset + column for field, offset in fields for column in columns(field)]


class Drawn:
    """A view into an array over some memory, and the bytes of its items as NumPy finds them."""

    def __init__(self, shape, dtype, index, axes) -> None:
        self.memory = noise(int(np.prod(shape)) * dtype.itemsize)
        self.array = np.ndarray(shape, dtype, self.memory)
        self.index, self.axes = index, axes

    def __repr__(self) -> str:
        return f"np.zeros({self.array.shape}, {self.array.dtype})[{self.index}].transpose({self.axes})"

    def of(self, array: np.ndarray) -> np.ndarray:
        view = array[self.index]
        return view.transpose(self.axes) if view.ndim == len(self.axes) else view

    @property
    def view(self) -> np.ndarray:
        return self.of(self.array)

    def places(self) -> np.ndarray:
        """Where in memory each packed byte lies."""
        width = self.array.dtype.itemsize
        items = self.of(np.arange(self.array.size).reshape(self.array.shape)).reshape(-1, 1)
        return (items * width + np.array(columns(self.array.dtype), int)).reshape(-1)


DTYPES = st.one_of(
    numpy_strategies.scalar_dtypes(),
    numpy_strategies.array_dtypes(),
    numpy_strategies.nested_dtypes(),
    st.just(np.dtype([("a", "i1"), ("b", "<f8")], align=True)),
    st.just(np.dtype({"names": ["x", "y"], "formats": ["<i4", "3<i2"], "offsets": [12, 2], "itemsize": 24})),
)


@st.composite
def views(draw):
    """Any slices of any array, in any order of the axes."""
    shape = draw(numpy_strategies.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6))
    dtype = draw(DTYPES)
    dtype = dtype.base if dtype.subdtype else dtype  # arrays take a subarray's shape into their own
    slices = st.tuples(*(st.slices(side) for side in shape))
    index = (..., *draw(slices)) if draw(st.booleans()) else draw(slices)
    return Drawn(shape, dtype, index, draw(st.permutations(range(len(shape)))))


@given(views())
def test_packing_a_view_is_numpy_s_own_copy(drawn):
    made = layout.from_array(drawn.view)
    packed = made.pack(drawn.view)
    assert bytes(packed) == drawn.memory[drawn.places()].tobytes()
    assert made.size == len(packed)


@given(views(), st.data())
def test_a_part_of_the_packed_bytes(drawn, data):
    made = layout.from_array(drawn.view, base=drawn.array)
    first = data.draw(st.integers(0, made.size))
    last = data.draw(st.integers(first, made.size))
    assert made.pack(drawn.array, first=first, last=last) == made.pack(drawn.array)[first:last]


@given(views(), st.data())
def test_unpacking_writes_the_view_and_nothing_else(drawn, data):
    # Rules: LAY-45.
    made = layout.from_array(drawn.view, base=drawn.array)
    cut = data.draw(st.integers(0, made.size))
    packed = noise(made.size, seed=2)
    expected = drawn.memory.copy()
    expected[drawn.places()] = packed
    made.unpack(packed[:cut], drawn.array, last=cut)
    made.unpack(packed[cut:], drawn.array, first=cut)
    assert (drawn.memory == expected).all()


@given(views())
def test_blocks_are_the_places_joined(drawn):
    blocks = layout.from_array(drawn.view, base=drawn.array).blocks(limit=1 << 30)
    assert [place for offset, count in blocks for place in range(offset, offset + count)] == list(
        drawn.places()
    )
    assert all(a + count != b for (a, count), (b, _) in itertools.pairwise(blocks))


@given(views())
def test_a_copy_is_an_assignment(drawn):
    view = drawn.view
    other = np.ndarray(view.shape, view.dtype, bytearray(view.nbytes), order="F")
    layout.from_array(view).copy(view, layout.from_array(other), other)
    packed = layout.from_array(other).pack(other)
    assert bytes(packed) == drawn.memory[drawn.places()].tobytes()


def test_a_copy_within_one_array_reads_first():
    array = np.arange(100.0)
    expected = array.copy()
    expected[1:] = array[:-1]
    layout.from_array(array[:-1], base=array).copy(array, layout.from_array(array[1:], base=array), array)
    assert (array == expected).all()


@st.composite
def two_views(draw):
    """Two views of equally many items into one array; they may overlap."""
    shape = draw(numpy_strategies.array_shapes(min_dims=1, max_dims=3, max_side=7))
    slices = st.tuples(*(st.slices(side) for side in shape))
    one, other = draw(slices), draw(slices)
    places = np.arange(int(np.prod(shape))).reshape(shape)
    if places[one].shape != places[other].shape:
        other = tuple(slice(None, None, -1) for _ in one)
        one = tuple(slice(None) for _ in one)
    return (
        np.arange(1000, 1000 + places.size, dtype=draw(st.sampled_from(["<u2", ">i4", "f8"]))).reshape(shape),
        one,
        other,
    )


@given(two_views())
def test_a_copy_between_overlapping_views_is_numpy_s_assignment(drawn):
    array, one, other = drawn
    expected = array.copy()
    expected[other] = array[one].copy()
    layout.from_array(array[one], base=array).copy(array, layout.from_array(array[other], base=array), array)
    assert (array == expected).all()


def test_many_elements():
    # Rules: LAY-43.
    table = np.zeros(1000, [("key", "u1"), ("value", "f8")])
    table["key"], table["value"] = np.arange(1000) % 251, np.arange(1000) / 7
    row = layout.from_dtype(table.dtype)
    assert (row.size, row.extent) == (9, 9)
    aligned = table.astype(np.dtype(table.dtype.descr, align=True))
    row = layout.from_dtype(aligned.dtype)
    assert (row.size, row.extent) == (9, 16)
    assert bytes(row.pack(aligned, count=1000)) == table.tobytes()
    back = np.zeros_like(aligned)
    row.unpack(table, back, count=1000)
    assert (back == aligned).all()


def test_properties_and_text():
    # Rules: LAY-33.
    made = layout.from_text("resized(-4B, 40B, vector(3, 2, 5, int))")
    assert (made.size, made.lb, made.ub, made.extent) == (24, -4, 36, 40)
    assert (made.true_lb, made.true_extent) == (0, 48)
    assert made.blocks() == [(0, 8), (20, 8), (40, 8)]
    assert made.blocks(limit=2) == [(0, 8), (20, 8)]
    assert made.blocks(count=2)[3] == (40, 8)
    assert made.packed_bytes(7) == 168
    assert layout.from_text(made.text) == made == pickle.loads(pickle.dumps(made))
    assert repr(made) == "Layout('resized(-4B, 40B, vector(3, 2, 5, int))')"
    assert len({made, layout.from_text(made.text)}) == 1


def test_dates_and_halves_have_no_buffer_format_but_are_bytes():
    dates = np.arange("2000-01", "2000-03", dtype="datetime64[D]")
    halves = np.arange(10, dtype="f2")[::-3]
    for view in (dates[::7], halves):
        assert bytes(layout.from_array(view).pack(view)) == view.tobytes()


def test_bytes_and_memoryviews():
    every_other = layout.from_text("hvector(4, 1, 2B, byte)")
    assert every_other.pack(b"abcdefg") == b"aceg"
    target = bytearray(7)
    every_other.unpack(memoryview(b"..wxyz")[2:], memoryview(target))
    assert target == b"w\0x\0y\0z"
    assert every_other.pack(b"?abcdefg", offset=1) == b"aceg"


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda made: made.pack(bytes(6)), "the source holds 6 bytes.*7 bytes"),
        (lambda made: made.pack(bytes(7), offset=1), r"needs 7 bytes \(1 to 8\)"),
        (lambda made: made.pack(bytes(7), offset=-1), r"needs 7 bytes \(-1 to 6\)"),
        (lambda made: made.pack(bytes(7), bytearray(3)), "packed buffer holds 3 bytes, but 4"),
        (lambda made: made.pack(bytes(7), count=-1), "count is -1"),
        (lambda made: made.pack(bytes(7), count=1 << 62), "64 bits|overflow"),
        (lambda made: made.pack(bytes(7), count=1 << 60), "the source holds 7 bytes"),
        (lambda made: made.pack(bytes(7), last=1 << 60), "of a message of 4"),
        (lambda made: made.pack(bytes(7), first=-(1 << 62)), "of a message of 4"),
        (lambda made: made.pack(bytes(7), first=3, last=2), "packed bytes 3 to 2"),
        (lambda made: made.pack(bytes(7), last=5), "0 to 5 of a message of 4"),
        (lambda made: made.pack(bytes(7), offset=(1 << 63) - 1), "64 bits|overflow"),
        (lambda made: made.unpack(bytes(4), bytes(7)), "destination is read-only"),
        (lambda made: made.unpack(bytes(3), bytearray(7)), "packed buffer holds 3 bytes, but 4"),
        (lambda made: made.unpack(bytes(4), bytearray(6)), "destination holds 6 bytes"),
        (lambda made: made.unpack(memoryview(bytes(8))[::2], bytearray(7)), "not contiguous"),
        (
            lambda made: made.copy(bytes(7), layout.from_text("short"), bytearray(7), count=1, to_count=1),
            "equal",
        ),
        (lambda made: made.copy(bytes(7), layout.from_text("contig(3, byte)"), bytearray(7)), "whole number"),
    ],
)
def test_what_does_not_fit_is_refused(use, sentence):
    with pytest.raises(Trouble, match=sentence):
        use(layout.from_text("hvector(4, 1, 2B, byte)"))


def test_refused_calls_leave_the_destination_alone():
    # Rules: LAY-48.
    twice = layout.from_array(np.broadcast_to(np.zeros(1), (4,)))
    target = bytearray(8)
    with pytest.raises(Trouble, match="packed bytes 0 and 8 both land at offset 0"):
        twice.unpack(bytes([1]) * 32, target)
    assert target == bytes(8)
    shared = bytearray(16)
    with pytest.raises(Trouble, match="share memory"):
        layout.from_text("hvector(4, 1, 2B, byte)").pack(shared, memoryview(shared)[3:])


def test_an_array_of_objects_is_refused():
    with pytest.raises(Trouble, match="Python objects"):
        layout.from_array(np.array([None, 1]))
    with pytest.raises(TypeError):
        layout.from_text("byte").pack(object())


def test_memory_that_holds_references_is_neither_read_nor_written():
    item = layout.from_text("contig(8, byte)")
    plain = np.array([("x", 1)], [("O", "S8"), ("n", "i8")])  # a name is no type
    assert bytes(item.pack(plain)) == b"x" + bytes(7)
    for objects in (np.array([None]), np.array([(None, 1)], [("a", "O"), ("b", "i8")])):
        with pytest.raises(Trouble, match="source holds references to Python objects"):
            item.pack(objects)
        with pytest.raises(Trouble, match="destination holds references to Python objects"):
            item.unpack(bytes(8), objects)
        with pytest.raises(Trouble, match="destination holds references to Python objects"):
            item.copy(bytes(8), item, objects)


def test_what_is_no_array_or_dtype():
    with pytest.raises(TypeError, match=r"takes NumPy arrays.*not list"):
        layout.from_array([1, 2])
    with pytest.raises(TypeError, match=r"takes NumPy arrays.*not list"):
        layout.from_array(np.zeros(2), base=[0.0])
    assert layout.from_dtype("f8,i4").size == layout.from_dtype(np.dtype("f8,i4")).size == 12
    with pytest.raises(TypeError):
        layout.from_dtype("nonsense")


def test_a_view_elsewhere_is_refused():
    with pytest.raises(Trouble, match="does not lie in base"):
        layout.from_array(np.zeros(4), base=np.zeros(4))


def test_text_that_is_none_says_where():
    with pytest.raises(Trouble, match="column") as raised:
        layout.from_text("vector(3, 2")
    assert raised.value.code == "invalid"


def test_other_threads_run_while_bytes_move():
    array = np.zeros((4096, 4096), "u2")
    made = layout.from_array(array.T)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    ticker = threading.Thread(target=tick)
    ticker.start()
    out = bytearray(made.size)

    def others_ran() -> bool:
        begin = time.perf_counter()
        made.pack(array, out)
        end = time.perf_counter()
        return sum(begin < when < end for when in ticks) >= 2

    ran = until(others_ran)  # a busy machine may give the other thread no processor meanwhile
    stop.set()
    ticker.join()
    assert ran, "nothing else ran while bytes moved"


MPI_ROUND_TRIP = """
import numpy as np
from mpi4py import MPI
from spinloom import layout

grid = np.arange(600.0).reshape(20, 30)
made = layout.from_array(grid[::2, 1:-1:3])
datatype = made.to_mpi()
packed = bytearray(made.size)
view = grid.reshape(-1)[1 : 1 + made.extent // 8]  # it begins with the first item of the layout
datatype.Pack(view, packed, 0, MPI.COMM_SELF)
assert packed == made.pack(view)
again = layout.from_mpi(datatype)
assert (again.size, again.extent, again.true_lb) == (made.size, made.extent, made.true_lb)
assert again.blocks() == made.blocks()
assert datatype.Get_size() == made.size
column = MPI.DOUBLE.Create_vector(20, 1, 30)
assert bytes(layout.from_mpi(column).pack(grid)) == grid[:, 0].tobytes()
print("good")
"""


def test_datatypes_of_mpi4py_and_back():
    pytest.importorskip("mpi4py")
    done = subprocess.run(
        [sys.executable, "-c", MPI_ROUND_TRIP], capture_output=True, text=True, timeout=seconds(240)
    )
    if "cannot load MPI library" in done.stderr or "libmpi" in done.stderr:
        pytest.skip("there is no MPI library")
    assert done.stdout == "good\n", done.stderr


def test_every_public_name_is_typed():
    for name, function in inspect.getmembers(layout.Layout, inspect.isfunction):
        if name.startswith("_"):
            continue
        parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
        assert all(p.annotation is not p.empty for p in parameters), name
        assert inspect.signature(function).return_annotation is not inspect.Signature.empty, name
    for name, value in vars(layout.Layout).items():
        if isinstance(value, property):
            assert "return" in typing.get_type_hints(value.fget), name
    assert (Path(layout.__file__).parents[1] / "py.typed").exists()
