"""Layouts over arrays of CuPy and PyTorch on a real GPU. Skipped where there is none."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from conftest import needs_engine
from spinloom import layout
from spinloom.common import core
from spinloom.common.errors import Trouble


def has_gpu() -> bool:
    return core.available() and bool(core.load().gpu_devices())


pytestmark = [needs_engine, pytest.mark.skipif(not has_gpu(), reason="there is no GPU here")]

VIEWS = [
    np.s_[:, :, 3],
    np.s_[::2, :, 1:],
    np.s_[1:4, 2, ::3],
    np.s_[:, 1:3, :],
    np.s_[2, 3, 4],
]
SHAPE = (33, 34, 35)


class Library:
    """One of the array libraries: arrays there and back."""

    def __init__(self, name: str) -> None:
        self.name, self.package = name, pytest.importorskip(name)
        if name == "torch" and not self.package.cuda.is_available():
            pytest.skip("this PyTorch has no GPU")

    def put(self, array):
        return self.package.asarray(array) if self.name == "cupy" else self.package.from_numpy(array).cuda()

    def get(self, array):
        return array.get() if self.name == "cupy" else array.cpu().numpy()

    def empty(self, size):
        if self.name == "cupy":
            return self.package.zeros(size, "u1")
        return self.package.zeros(size, dtype=self.package.uint8, device="cuda")


@pytest.fixture(params=["cupy", "torch"])
def library(request):
    return Library(request.param)


def grid(kind="f8"):
    return np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(kind)


@pytest.mark.parametrize("kind", ["f8", "f4", "i2", "u1", "c16"])
@pytest.mark.parametrize("where", VIEWS)
def test_pack_and_unpack_move_the_slice(library, where, kind):
    base = grid(kind)
    there = library.put(base)
    made = layout.from_array(there[where], base=there)
    packed = made.pack(there)
    assert library.get(packed).tobytes() == base[where].tobytes()
    target = library.put(np.zeros_like(base))
    made.unpack(packed, target)
    expected = np.zeros_like(base)
    expected[where] = base[where]
    assert (library.get(target) == expected).all()
    typed = library.get(made.pack_array(there))
    assert (typed.view(base.dtype) == base[where].ravel()).all()


def test_transposed_views_are_layouts(library):
    base = grid("f4")[:, :, 0].copy()
    there = library.put(base)
    made = layout.from_array(there.T)
    assert library.get(made.pack(there)).tobytes() == np.ascontiguousarray(base.T).tobytes()


def test_copies_between_layouts_and_within_an_array(library):
    base = grid()
    there, target = library.put(base), library.put(np.zeros(SHAPE))
    source = layout.from_array(there[:, :, 2], base=there)
    source.copy(there, layout.from_array(target[:, :, 5], base=target), target)
    assert (library.get(target)[:, :, 5] == base[:, :, 2]).all()
    source.copy(there, layout.from_array(there[:, :, 7], base=there), there)
    assert (library.get(there)[:, :, 7] == base[:, :, 2]).all()


def test_host_and_device_are_joined(library):
    base = grid()
    there = library.put(base)
    made = layout.from_array(there[:, 3], base=there)
    packed = bytearray(made.size)
    made.pack(there, packed)
    assert bytes(packed) == base[:, 3].tobytes()
    target = library.put(np.zeros(SHAPE))
    made.unpack(packed, target)
    assert (library.get(target)[:, 3] == base[:, 3]).all()


def test_a_set_is_one_launch(library):
    base = grid()
    there = library.put(base)
    faces = [
        np.s_[1, 1:-1, 1:-1],
        np.s_[1:-1, 1, 1:-1],
        np.s_[1:-1, 1:-1, 1],
        np.s_[1, 1, 1:-1],
        np.s_[1, 1, 1],
    ]
    buffers = [library.empty(base[face].nbytes) for face in faces]
    exchange = layout.bind_set(
        [
            (layout.from_array(there[face], base=there), there, buffer)
            for face, buffer in zip(faces, buffers, strict=True)
        ]
    )
    before = core.load().gpu_launches()
    exchange.pack()
    assert core.load().gpu_launches() == before + 1
    for face, buffer in zip(faces, buffers, strict=True):
        assert library.get(buffer).tobytes() == base[face].tobytes()


def test_calls_are_in_the_order_of_streams():
    cupy = pytest.importorskip("cupy")
    base = cupy.zeros((4096, 4096))
    made = layout.from_array(base[:, 7], base=base)
    stream = cupy.cuda.Stream(non_blocking=True)
    for round_ in range(1, 20):
        with stream:
            base += 1  # some 0.1 ms
            packed = made.pack_array(base)  # this goes on CuPy's current stream
        stream.synchronize()
        assert (packed.get() == round_).all()
    base += 1
    out = made.pack(base, stream=stream)  # waits for what CuPy has begun on its own stream
    stream.synchronize()
    assert (out.get().view("f8") == 20).all()


def test_a_plan_is_captured_in_a_graph():
    cupy = pytest.importorskip("cupy")
    base = cupy.arange(10000.0).reshape(100, 100)
    made = layout.from_array(base[:, 3], base=base)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        out = cupy.zeros(made.size, "u1")
        plan = made.bind(base, out, stream=stream)
        plan.pack()
        stream.synchronize()
        stream.begin_capture()
        plan.pack()
        graph = stream.end_capture()
        base += 1
        graph.launch(stream)
    stream.synchronize()
    assert (out.get().view("f8") == base[:, 3].get()).all()


def test_memory_that_is_no_gpu_s_is_refused():
    host = np.zeros(4)

    class Lies:
        def __init__(self) -> None:
            self.__cuda_array_interface__ = {
                "shape": (4,),
                "typestr": "<f8",
                "data": (host.ctypes.data, False),
                "version": 3,
            }

    cupy = pytest.importorskip("cupy")
    with pytest.raises(Trouble, match="no GPU knows its address"):
        layout.from_text("contig(4, double)").pack(Lies(), cupy.zeros(32, "u1"))


@pytest.mark.parametrize("kernel", ["word", "warp", "tile", "pieces", "walk"])
def test_every_kernel_moves_the_same_bytes(monkeypatch, kernel):
    cupy = pytest.importorskip("cupy")
    monkeypatch.setenv("SPINLOOM_GPU_KERNEL", kernel)
    rng = np.random.default_rng(1)
    types = [
        "vector(1000, 3, 7, double)",
        "vector(100, 100, 301, double)",
        "contig(200, resized(0B, 4B, vector(300, 1, 200, float)))",
        "idxblock(1, rand(1, 5000, 1500), contig(3, float))",
        "contig(50, resized(0B, 80B, struct([(0B, int), (8B, 2, double), (40B, char)])))",
    ]
    for number, text in enumerate(types):
        made = layout.from_text(text)
        memory = rng.integers(0, 256, made.true_extent + 64, "u1")
        packed = made.pack(cupy.asarray(memory))
        assert packed.get().tobytes() == bytes(made.pack(memory)), (number, kernel)
        target = cupy.zeros(len(memory), "u1")
        made.unpack(packed, target)
        expected = np.zeros(len(memory), "u1")
        made.unpack(made.pack(memory), expected)
        assert (target.get() == expected).all(), (number, kernel)


def test_libraries_are_imported_by_their_arrays_only():
    code = (
        "import sys; from spinloom import layout; "
        "print([name for name in ('cupy', 'torch', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
