"""Layouts over arrays of a GPU, without one: what is taken, refused and ordered; kernels run on the host."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from conftest import needs_engine
from device_arrays import CupyArray, CupyStream, OnDevice, cupy_package
from spinloom import layout
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.layout import cuda, device

pytestmark = needs_engine

VIEWS = [
    np.s_[:, :, 3],
    np.s_[::2, ::-1, 1:],
    np.s_[1:4, 2, ::3],
    np.s_[::-1],
    np.s_[:, 1:3, :],
    np.s_[2:3, 3, 4],
    np.s_[0:0],
]


@pytest.fixture
def shim(monkeypatch):
    monkeypatch.setenv("SPINLOOM_GPU", "shim")


@pytest.fixture
def cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cupy_package())


@pytest.fixture
def waits(monkeypatch):
    """(stream, other): that stream waits for the other."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(cuda, "wait", lambda stream, other: found.append((stream, other)))
    return found


def grid(kind="f8"):
    return np.arange(5 * 6 * 7).reshape(5, 6, 7).astype(kind)


# ---- layouts of views ----


@pytest.mark.parametrize("kind", ["f8", "f4", "i2", "c16", "?", ">f8", "V6"])
@pytest.mark.parametrize("where", VIEWS)
def test_a_view_on_a_gpu_is_the_layout_of_the_same_view_on_the_host(kind, where):
    base = grid("f8").view("V8") if kind == "V6" else grid(kind)
    assert layout.from_array(OnDevice(base)[where]).text == layout.from_array(base[where]).text
    told = layout.from_array(OnDevice(base)[where], base=OnDevice(base)).text
    assert told == layout.from_array(base[where], base=base).text


def test_tensors_on_the_host_are_views_too():
    class Tensor:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    base = grid()
    for view in (base[:, :, 3], base.T, base[::2, 1:3]):
        made = layout.from_array(Tensor(view), base=Tensor(base))
        assert made.text == layout.from_array(view, base=base).text
        assert made.pack(Tensor(base)) == view.tobytes()


def test_what_from_array_refuses():
    base = grid()
    with pytest.raises(TypeError, match="arrays of a GPU and tensors with DLPack, not list"):
        layout.from_array([1.0])
    with pytest.raises(Trouble, match="different memories"):
        layout.from_array(OnDevice(base)[1], base=base)
    with pytest.raises(Trouble, match="does not lie in base"):
        layout.from_array(OnDevice(base), base=OnDevice(base)[1:])


def test_a_library_s_refusal_is_told():
    class Tensor:
        def __dlpack_device__(self):
            return (2, 0)

        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("use var.detach()")

    with pytest.raises(Trouble, match=r"Tensor does not give its memory: use var.detach\(\)"):
        layout.from_array(Tensor())


# ---- bytes, by kernels on the host ----


@pytest.mark.parametrize("where", VIEWS)
def test_pack_and_unpack_move_what_the_host_moves(shim, where):
    base = grid()
    made = layout.from_array(base[where], base=base)
    packed = np.zeros(made.size + 8, "u1")
    out = OnDevice(packed)
    assert made.pack(OnDevice(base), out) is out
    assert packed[: made.size].tobytes() == base[where].tobytes()
    assert not packed[made.size :].any()
    target = np.zeros_like(base)
    made.unpack(OnDevice(packed), OnDevice(target))
    expected = np.zeros_like(base)
    expected[where] = base[where]
    assert (target == expected).all()


def test_copies_between_layouts(shim, cupy):
    base, target = grid(), np.zeros((7, 5, 6))
    column = layout.from_array(base[:, :, 2], base=base)
    plane = layout.from_array(target[3], base=target)
    column.copy(OnDevice(base), plane, OnDevice(target))
    assert (target[3] == base[:, :, 2]).all()
    # In one array everything is read before anything is written: the rows move by one.
    rows = np.arange(20.0).reshape(5, 4)
    expected = rows[:-1].copy()
    upper = layout.from_array(rows[:-1], base=rows)
    lower = layout.from_array(rows[1:], base=rows)
    upper.copy(CupyArray(rows), lower, CupyArray(rows))
    assert (rows[1:] == expected).all()
    plan = lower.bind_copy(CupyArray(rows), upper, CupyArray(rows))
    plan.copy()
    assert (rows[:-1] == expected).all()


def test_plans_and_sets_are_bound_once(shim):
    base = grid()
    made = layout.from_array(base[:, 2], base=base)
    packed = np.zeros(made.size, "u1")
    plan = made.bind(OnDevice(base), OnDevice(packed), stream=7)
    assert plan.stream == 7
    for add in (0, 1):
        base += add
        plan.pack()
        assert packed.tobytes() == base[:, 2].tobytes()
    packed[:] = 0
    plan.unpack()
    assert not base[:, 2].any()

    faces = [np.s_[1, 1:-1, 1:-1], np.s_[1:-1, 1, 1:-1], np.s_[1:-1, 1:-1, 1], np.s_[1, 1, 1:-1]]
    base = grid()
    buffers = [np.zeros(base[face].nbytes, "u1") for face in faces]
    exchange = layout.bind_set(
        [
            (layout.from_array(base[face], base=base), OnDevice(base), OnDevice(buffer))
            for face, buffer in zip(faces, buffers, strict=True)
        ]
    )
    assert exchange.launches == 1
    exchange.pack()
    assert [buffer.tobytes() for buffer in buffers] == [base[face].tobytes() for face in faces]
    for buffer in buffers:
        buffer[:] = 0
    exchange.unpack()
    assert not any(base[face].any() for face in faces)


@pytest.mark.parametrize("place", [OnDevice, lambda array: array])
def test_many_copies_are_one_plan(shim, place):
    west, east = grid("f8")[0].copy(), -grid("f8")[1]
    columns = [(west, -2, east, 0), (east, 1, west, -1)]
    messages = [
        (
            layout.from_array(source[:, column], base=source),
            place(source),
            layout.from_array(to[:, target], base=to),
            place(to),
        )
        for source, column, to, target in columns
    ]
    expected = [source[:, column].copy() for source, column, _, _ in columns]
    layout.bind_copies(messages).copy()
    assert (east[:, 0] == expected[0]).all()
    assert (west[:, -1] == expected[1]).all()
    with pytest.raises(TypeError, match="message 0 must be a tuple"):
        layout.bind_copies([west])


def test_copies_that_meet_are_refused_or_take_a_detour(shim, cupy):
    rows = np.arange(20.0).reshape(5, 4)
    there = CupyArray(rows)
    column, next_one = (layout.from_array(rows[:, k], base=rows) for k in (1, 2))
    with pytest.raises(Trouble, match="writes bytes that it reads or writes elsewhere"):
        layout.bind_copies([(column, there, next_one, there), (next_one, there, column, there)])
    apart = column.bind_copy(there, next_one, there)  # spans meet, bytes do not
    assert not isinstance(apart.copy.__self__, device.Detour)
    apart.copy()
    assert (rows[:, 2] == rows[:, 1]).all()


def test_a_set_on_the_host_is_its_plans():
    base = grid()
    faces = [base[0], base[:, 0]]
    buffers = [bytearray(face.nbytes) for face in faces]
    layout.bind_set(
        [(layout.from_array(f, base=base), base, b) for f, b in zip(faces, buffers, strict=True)]
    ).pack()
    assert [bytes(buffer) for buffer in buffers] == [face.tobytes() for face in faces]
    with pytest.raises(TypeError, match="message 0 of the set must be a tuple"):
        layout.bind_set([base])


def test_the_array_s_library_makes_the_buffer(shim, cupy):
    base = grid()
    made = layout.from_array(base[:, :, 1], base=base)
    packed = made.pack(CupyArray(base))
    assert type(packed) is CupyArray
    assert packed.array.tobytes() == base[:, :, 1].tobytes()
    typed = made.pack_array(CupyArray(base))
    assert typed.array.dtype == np.float64
    assert (typed.array == base[:, :, 1].ravel()).all()
    plan = made.bind(CupyArray(base))
    plan.pack()
    assert plan.packed.array.tobytes() == base[:, :, 1].tobytes()
    with pytest.raises(Trouble, match=r"OnDevice is of device_arrays.*pass out="):
        made.pack(OnDevice(base))


@pytest.mark.parametrize("version", [13, 14])
def test_cupy_makes_the_buffer_in_the_order_of_the_stream(shim, waits, monkeypatch, version):
    cupy = cupy_package(version)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    base = grid()
    made = layout.from_array(base)
    made.pack(CupyArray(base))
    made.pack(CupyArray(base, 21))
    made.pack(CupyArray(base, 21), stream=31)
    assert cupy.made_on == [0, 21, 31]
    assert CupyStream.current is CupyStream.null


# ---- streams ----


class TorchStream:
    cuda_stream = 11


class NumbaStream:
    handle = types.SimpleNamespace(value=12)


class Protocol:
    def __cuda_stream__(self):
        return (0, 13)


def test_streams_of_every_library_have_a_handle():
    given = (0, 1, 2, np.int64(9), CupyStream(10), TorchStream(), NumbaStream(), Protocol())
    assert [device.handle_of(stream) for stream in given] == [0, 0, 2, 9, 10, 11, 12, 13]
    with pytest.raises(TypeError, match=r"stream must be a stream of CuPy, PyTorch or Numba.*not str"):
        device.handle_of("s")
    with pytest.raises(Trouble, match="stream = -1"):
        device.handle_of(-1)


def test_without_a_stream_a_call_is_in_order_with_both_libraries(shim, waits):
    base, packed = grid(), np.zeros(5 * 6 * 7 * 8, "u1")
    made = layout.from_array(base)
    made.pack(OnDevice(base, 21), OnDevice(packed, 22))
    assert waits == [(22, 21), (21, 22)]  # it comes after what both have begun, before what they begin later
    waits.clear()
    made.pack(OnDevice(base, 22), OnDevice(packed, 22))
    made.pack(OnDevice(base, 1), OnDevice(packed))  # two names of the default stream
    assert waits == []


def test_a_given_stream_waits_for_the_arrays_libraries(shim, waits):
    base, packed = grid(), np.zeros(5 * 6 * 7 * 8, "u1")
    layout.from_array(base).pack(OnDevice(base, 21), OnDevice(packed, 22), stream=CupyStream(30))
    assert waits == [(30, 21), (30, 22)]


# ---- refusals ----


def test_without_a_gpu_a_sentence_says_so():
    if core.load().gpu_devices():
        pytest.skip("there is a GPU here")
    item = layout.from_text("double")
    memory = OnDevice(np.zeros(1))
    with pytest.raises(
        Trouble, match="the source lies in the memory of a GPU, which cannot be used here"
    ) as told:
        item.pack(memory, OnDevice(np.zeros(8, "u1")))
    assert told.value.code == "environment"
    with pytest.raises(
        Trouble, match="the destination lies in the memory of a GPU, which cannot be used here"
    ):
        item.unpack(bytes(8), memory)


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda m, a, b: m.pack(a, b, first=8), "GPU moves whole messages"),
        (lambda m, a, b: m.pack(a, b[:8]), "packed buffer holds 8 bytes, but 32"),
        (lambda m, a, b: m.pack(a[1:], b), "source holds 24 bytes"),
        (lambda m, a, b: m.pack(a, b[::2]), "packed buffer is not contiguous"),
        (lambda m, a, b: m.pack(a, a), "share memory"),
        (lambda m, a, b: m.pack(a.array, b.array, stream=0), "both arrays lie in the memory of the host"),
        (lambda m, a, b: layout.from_text("contig(2, double)").pack(a[::2], b), "view with gaps"),
        (lambda m, a, b: m.copy(a, layout.from_text("contig(3, double)"), b), "no whole number of 24 bytes"),
    ],
)
def test_what_is_refused_before_a_launch(shim, use, sentence):
    made = layout.from_text("contig(4, double)")
    with pytest.raises(Trouble, match=sentence):
        use(made, OnDevice(np.zeros(4)), OnDevice(np.zeros(32, "u1")))


def test_read_only_arrays_are_not_written(shim):
    fixed = np.zeros(4)
    fixed.flags.writeable = False
    made = layout.from_text("contig(4, double)")
    with pytest.raises(Trouble, match="destination is read-only"):
        made.unpack(OnDevice(np.zeros(32, "u1")), OnDevice(fixed))
    plan = made.bind(OnDevice(fixed), OnDevice(np.zeros(32, "u1")))
    plan.pack()
    with pytest.raises(Trouble, match="array is read-only"):
        plan.unpack()


def test_what_writes_a_byte_twice_is_not_unpacked(shim):
    twice = layout.from_text("hvector(2, 1, 4B, double)")
    with pytest.raises(Trouble, match="overlaps itself"):
        twice.unpack(OnDevice(np.zeros(16, "u1")), OnDevice(np.zeros(4)))
