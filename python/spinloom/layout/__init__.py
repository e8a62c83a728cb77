"""Layouts: datatypes that move data between Python's buffers.

    from spinloom import layout
    halo = layout.from_array(grid[1:-1, -2], base=grid)
    packed = halo.pack(grid)                     # a bytearray of halo.size bytes
    halo.unpack(packed, grid)
    plan = halo.bind(grid)                       # checked once: plan.pack() and plan.unpack() only copy

Contract: a Layout is immutable. Its displacements count from the first item of the buffer that it is used
with, plus `offset` bytes. Any object with the buffer protocol will do (NumPy arrays, views with strides,
memoryview, bytes for reading), tensors on the host that speak DLPack, and arrays of a GPU (CuPy, PyTorch:
device.py), whose bytes its kernels move in the order of a stream; nothing is copied on the way, and
no byte is touched before the whole message is known to lie in the buffer. A view with gaps is refused where
the layout would plainly take what lies in the gaps; as_memory=True says that those bytes are meant. The
interpreter lock is released while bytes move. Trouble (errors.py) has a code and a sentence.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.layout import device, numpy_types
from spinloom.layout.plans import CopiesOneByOne, CopyPlan, OneByOne, PackPlan, SetPlan
from spinloom.layout.strided import strided, view_text

if TYPE_CHECKING:
    from mpi4py import MPI
    from numpy.typing import ArrayLike, DTypeLike, NDArray
    from typing_extensions import Buffer

    class Tensor(Protocol):
        """An array that speaks DLPack."""

        def __dlpack__(self, *, stream: Any = ...) -> Any: ...
        def __dlpack_device__(self) -> tuple[Any, Any]: ...

    class OnGpu(Protocol):
        """An array that speaks the CUDA Array Interface."""

        @property
        def __cuda_array_interface__(self) -> Any: ...

    Memory = (
        Buffer | NDArray[Any] | Tensor | OnGpu
    )  # NumPy's own types call an array a Buffer from Python 3.12 on

__all__ = [
    "CopyPlan",
    "Layout",
    "PackPlan",
    "SetPlan",
    "bind_copies",
    "bind_set",
    "from_array",
    "from_dtype",
    "from_indices",
    "from_mpi",
    "from_text",
]


def __dir__() -> list[str]:
    return sorted(__all__)


P = ParamSpec("P")
T = TypeVar("T")
Out = TypeVar("Out")


def argument_error(name: str, annotation: str, value: object) -> Exception | None:
    """Returns what is wrong with an argument that the engine does not take."""
    if annotation == "str" and not isinstance(value, str):
        return TypeError(f"{name} must be a str, not {type(value).__name__}{numpy_types.indices_hint(value)}")
    if annotation in ("int", "int | None") and not (value is None and "None" in annotation):
        try:
            number = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            hint = numpy_types.indices_hint(value)
            return TypeError(f"{name} must be an integer, not {type(value).__name__} ({value!r:.40}){hint}")
        if not -(1 << 63) <= number < 1 << 63:
            return Trouble("overflow", f"{name} = {number} does not fit in 64 bits")
    return None


def in_words(function: Callable[P, T]) -> Callable[P, T]:
    """Says which argument is wrong where the engine only says that one is."""

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except TypeError as error:
            if "incompatible function arguments" not in str(error):
                raise
            signature = inspect.signature(function)
            for name, value in signature.bind(*arguments, **named).arguments.items():
                if wrong := argument_error(name, str(signature.parameters[name].annotation), value):
                    raise wrong from None
            raise

    return call


class Layout:
    """A committed datatype. Sizes, bounds and offsets are in bytes."""

    __slots__ = ("__weakref__", "engine")

    engine: Any

    @in_words
    def __init__(self, text: str) -> None:
        """A datatype in text form (docs/formats/layout.md). Trouble says line and column."""
        object.__setattr__(self, "engine", core.load().Layout.from_text(text))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("layouts are immutable; make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("layouts are immutable; make another one")

    # ---- where layouts come from ----

    @classmethod
    def from_text(cls, text: str) -> Layout:
        """Makes Layout(text)."""
        return cls(text)

    @classmethod
    def from_array(cls, view: Any, base: Any = None) -> Layout:
        """The items of a strided view in its own order: packed, they are np.ascontiguousarray(view).

        Displacements count from the view's first item, or from that of `base`, an array that the view looks
        into: then the layout is used with base. Both are NumPy arrays, arrays of a GPU, or tensors.
        """
        view_shape = strided(view)
        base_shape = view_shape if base is None else strided(base)
        for array, described in ((view, view_shape), (base, base_shape)):
            if described is None:
                raise TypeError(
                    "from_array takes NumPy arrays, arrays of a GPU and tensors with DLPack, "
                    f"not {type(array).__name__}{numpy_types.indices_hint(array)}"
                )
        assert view_shape is not None
        assert base_shape is not None
        text = view_text(view_shape)
        if base is None or view_shape.items == 0:
            return cls(text)
        if view_shape.on_device != base_shape.on_device:
            raise Trouble("invalid", "the view and base lie in different memories, a GPU's and the host's")
        first, last = base_shape.span()
        begin, end = view_shape.span()
        if begin < first or end > last:
            raise Trouble(
                "invalid",
                f"the view does not lie in base: {end - begin} bytes, {last - first} in base; "
                f"what NumPy picks by indices or a mask is a copy: {numpy_types.FROM_INDICES}",
            )
        return cls(f"hindexed([{view_shape.address - base_shape.address}Bx1], {text})")

    @classmethod
    def from_dtype(cls, dtype: DTypeLike) -> Layout:
        """One item of a dtype, or of what np.dtype() takes for one, with its itemsize as extent.

        The padding of a structured dtype is left out.
        """
        import numpy as np

        try:
            item = np.dtype(dtype)
        except TypeError as error:
            raise TypeError(f"{error}{numpy_types.indices_hint(dtype)}") from None
        return cls(numpy_types.dtype_text(item))

    @classmethod
    def from_indices(
        cls,
        indices: ArrayLike,
        block: int | ArrayLike = 1,
        type: Layout | str | DTypeLike = "double",
        *,
        in_bytes: bool = False,
    ) -> Layout:
        """Blocks of `block` elements of `type` at each index, in the order of the indices.

        An index counts elements, or bytes if in_bytes. `block` may be a list as long as that of the indices.
        `type` is a layout, a text or a dtype.
        """
        places = numpy_types.index_list(indices, "the list of indices")
        length, lengths = 1, None
        if hasattr(block, "__len__") and getattr(block, "ndim", 1) > 0:
            lengths = numpy_types.index_list(block, "the list of blocks")
            if len(lengths) != len(places):
                raise Trouble("invalid", f"there are {len(places)} indices, but {len(lengths)} blocks")
        else:
            if wrong := argument_error("block", "int", block):
                raise wrong
            length = operator.index(block)  # type: ignore[arg-type]
        child = (
            type if isinstance(type, Layout) else cls(type) if isinstance(type, str) else cls.from_dtype(type)
        )
        result = object.__new__(cls)
        engine = core.load().Layout.listed(child.engine, len(places), places, length, lengths, in_bytes)
        object.__setattr__(result, "engine", engine)
        return result

    @classmethod
    def from_mpi(cls, datatype: MPI.Datatype) -> Layout:
        """A datatype of mpi4py, whatever it was made of; it need not be committed."""
        from spinloom.layout import mpi_types

        if not hasattr(datatype, "Get_envelope"):
            hint = numpy_types.indices_hint(datatype)
            raise TypeError(f"from_mpi takes a datatype of mpi4py, not {type(datatype).__name__}{hint}")
        return cls(mpi_types.from_mpi(datatype))

    def to_mpi(self) -> MPI.Datatype:
        """A new datatype of mpi4py, committed; the caller frees it."""
        from spinloom.layout import mpi_types

        return mpi_types.to_mpi(self.text)

    # ---- what they are ----

    @property
    def text(self) -> str:
        """The text form in one line; Layout(text) is this layout again."""
        return self.engine.text

    def beginning(self, length: int) -> str:
        """The text form, cut at `length` characters with three points."""
        text = self.engine.text_beginning(length + 1)
        return text if len(text) <= length else text[: length - 3] + "..."

    @property
    def primitive(self) -> str:
        """The name of the one primitive that it is made of; "" if there are several or none."""
        return self.engine.primitive

    @property
    def size(self) -> int:
        """Bytes of data of one element."""
        return self.engine.size

    @property
    def extent(self) -> int:
        """From one element to the next: ub - lb."""
        return self.engine.extent

    @property
    def lb(self) -> int:
        """Lower bound."""
        return self.engine.lb

    @property
    def ub(self) -> int:
        """Upper bound."""
        return self.engine.ub

    @property
    def true_lb(self) -> int:
        """The first byte that holds data."""
        return self.engine.true_lb

    @property
    def true_extent(self) -> int:
        """From there to one past the last byte that holds data."""
        return self.engine.true_extent

    @in_words
    def packed_bytes(self, count: int = 1) -> int:
        """Bytes of data of `count` elements."""
        return self.engine.packed_bytes(count)

    @in_words
    def blocks(self, limit: int = 1000, *, count: int = 1) -> list[tuple[int, int]]:
        """The first `limit` contiguous blocks in packed order, as (offset, bytes)."""
        return self.engine.blocks(count, limit)

    # ---- what they do ----

    @overload
    def pack(
        self,
        source: Memory,
        out: None = None,
        *,
        count: int = 1,
        first: int = 0,
        last: int | None = None,
        offset: int = 0,
        as_memory: bool = False,
        stream: Any = None,
    ) -> bytearray: ...

    @overload
    def pack(
        self,
        source: Memory,
        out: Out,
        *,
        count: int = 1,
        first: int = 0,
        last: int | None = None,
        offset: int = 0,
        as_memory: bool = False,
        stream: Any = None,
    ) -> Out: ...

    @in_words
    def pack(
        self,
        source: Memory,
        out: Any = None,
        *,
        count: int = 1,
        first: int = 0,
        last: int | None = None,
        offset: int = 0,
        as_memory: bool = False,
        stream: Any = None,
    ) -> Any:
        """The packed bytes [first, last) of `count` elements in `source`: all of them unless told otherwise.

        They go to the beginning of `out`, a contiguous buffer, or of a new bytearray; either is returned.
        From a GPU they go to a new array of bytes of the source's library, on `stream` (docs/gpu.md).
        """
        if stream is not None or device.holds(source, out):
            return device.pack(self.engine, source, out, count, first, last, offset, as_memory, stream)
        packed = self.engine.pack(source, out, count, first, last, offset, as_memory)
        return packed if out is None else out

    @in_words
    def pack_array(
        self,
        source: Memory,
        *,
        count: int = 1,
        offset: int = 0,
        as_memory: bool = False,
        stream: Any = None,
    ) -> NDArray[Any]:
        """The same as a NumPy array: of the layout's primitive, or of bytes where it has several.

        From a GPU it is an array of the source's library.
        """
        if stream is not None or device.holds(source):
            packed = device.pack(self.engine, source, None, count, 0, None, offset, as_memory, stream)
            return device.typed(packed, numpy_types.dtype_of(self.primitive))
        import numpy as np

        dtype = np.dtype(numpy_types.dtype_of(self.primitive))
        out = np.empty(self.engine.packed_bytes(count) // dtype.itemsize, dtype)
        self.engine.pack(source, out, count, 0, None, offset, as_memory)
        return out

    @in_words
    def unpack(
        self,
        packed: Memory,
        destination: Memory,
        *,
        count: int = 1,
        first: int = 0,
        last: int | None = None,
        offset: int = 0,
        as_memory: bool = False,
        stream: Any = None,
    ) -> None:
        """Puts the packed bytes [first, last) of a message of `count` elements where they belong.

        Nothing else is written. A layout that writes a byte twice is refused.
        """
        if stream is not None or device.holds(packed, destination):
            device.unpack(self.engine, packed, destination, count, first, last, offset, as_memory, stream)
            return
        self.engine.unpack(packed, destination, count, first, last, offset, as_memory)

    @in_words
    def copy(
        self,
        source: Memory,
        to: Layout,
        destination: Memory,
        *,
        count: int = 1,
        to_count: int | None = None,
        offset: int = 0,
        to_offset: int = 0,
        as_memory: bool = False,
        stream: Any = None,
    ) -> None:
        """From this layout in `source` into the layout `to` in `destination`, which hold equally many bytes.

        to_count follows from count unless given. Both may lie in one array: then everything is read first.
        """
        to_count = self._count_of(to, count, to_count)
        if stream is not None or device.holds(source, destination):
            device.copy(
                self.engine, source, count, offset, to.engine, destination, to_count, to_offset, as_memory,
                stream,
            )  # fmt: skip
            return
        self.engine.copy(source, count, offset, to.engine, destination, to_count, to_offset, as_memory)

    def _count_of(self, to: Layout, count: int, to_count: int | None) -> int:
        """Returns how many elements of `to` hold `count` of these."""
        if not isinstance(to, Layout):
            raise TypeError(f"to must be a Layout, not {type(to).__name__}")
        if to_count is not None:
            return to_count
        to_count, rest = divmod(self.engine.packed_bytes(count), to.size or 1)
        if rest:
            raise Trouble(
                "invalid", f"{count} elements of {self.size} bytes are no whole number of {to.size} bytes"
            )
        return to_count

    # ---- the same again and again ----

    @in_words
    def bind(
        self,
        array: Memory,
        packed: Memory | None = None,
        *,
        count: int = 1,
        offset: int = 0,
        as_memory: bool = False,
        stream: Any = None,
    ) -> PackPlan:
        """A plan whose pack() and unpack() move `count` elements between `array` and `packed`.

        Everything is checked here, once. Without `packed` the plan has a bytearray of its own, plan.packed;
        on a GPU an array of bytes of the array's library. A plan on a GPU keeps its stream.
        """
        if stream is not None or device.holds(array, packed):
            return PackPlan(*device.bind(self.engine, array, packed, count, offset, as_memory, stream))
        if packed is None:
            packed = bytearray(self.engine.packed_bytes(count))
        return PackPlan(core.load().PackPlan(self.engine, array, packed, count, offset, as_memory), packed)

    @in_words
    def bind_copy(
        self,
        source: Memory,
        to: Layout,
        destination: Memory,
        *,
        count: int = 1,
        to_count: int | None = None,
        offset: int = 0,
        to_offset: int = 0,
        as_memory: bool = False,
        stream: Any = None,
    ) -> CopyPlan:
        """A plan whose copy() does what the copy() of a layout does with these arguments."""
        to_count = self._count_of(to, count, to_count)
        if stream is not None or device.holds(source, destination):
            bound = device.bind_copy(
                self.engine, source, count, offset, to.engine, destination, to_count, to_offset, as_memory,
                stream,
            )  # fmt: skip
            return CopyPlan(*bound)
        return CopyPlan(
            core.load().CopyPlan(
                self.engine, source, count, offset, to.engine, destination, to_count, to_offset, as_memory
            )
        )

    def _repr_svg_(self) -> str:
        """The picture that notebooks show: picture.py."""
        from spinloom.layout import picture

        return picture.draw(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Layout({self.beginning(200)!r})"

    def __reduce__(self) -> tuple[type[Layout], tuple[str]]:
        return Layout, (self.text,)


@in_words
def bind_set(messages: Iterable[tuple[Layout, Any, Any]], *, stream: Any = None) -> SetPlan:
    """A plan for many messages, each (layout, array, packed): pack() and unpack() move them all.

    On a GPU that is one launch, whatever their number and their types.
    """
    listed = list(messages)
    for number, message in enumerate(listed):
        if not isinstance(message, tuple) or len(message) != 3 or not isinstance(message[0], Layout):
            raise TypeError(f"message {number} of the set must be a tuple (layout, array, packed)")
    if stream is not None or any(device.holds(array, packed) for _, array, packed in listed):
        engines = [(each.engine, array, packed) for each, array, packed in listed]
        return SetPlan(*device.bind_set(engines, stream))
    return SetPlan(OneByOne([each.bind(array, packed) for each, array, packed in listed]))


@in_words
def bind_copies(messages: Iterable[tuple[Layout, Any, Layout, Any]], *, stream: Any = None) -> CopyPlan:
    """A plan whose copy() does many copies, each (layout, source, layout, destination).

    On a GPU that is one launch; a set that writes what it reads or writes elsewhere is refused there.
    """
    listed = list(messages)
    for number, message in enumerate(listed):
        if (
            not isinstance(message, tuple)
            or len(message) != 4
            or not all(isinstance(message[side], Layout) for side in (0, 2))
        ):
            raise TypeError(f"message {number} must be a tuple (layout, source, layout, destination)")
    if stream is not None or any(device.holds(source, to) for _, source, _, to in listed):
        engines = [(each.engine, source, to.engine, target) for each, source, to, target in listed]
        return CopyPlan(*device.bind_copies(engines, stream))
    plans = [each.bind_copy(source, to, target) for each, source, to, target in listed]
    return CopyPlan(CopiesOneByOne(plans))


from_array = Layout.from_array
from_dtype = Layout.from_dtype
from_indices = Layout.from_indices
from_mpi = Layout.from_mpi
from_text = Layout.from_text
