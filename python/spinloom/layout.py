"""Layouts: datatypes that move data between Python's buffers.

    from spinloom import layout
    halo = layout.from_array(grid[1:-1, -2], base=grid)
    packed = halo.pack(grid)                     # a bytearray of halo.size bytes
    halo.unpack(packed, grid)
    plan = halo.bind(grid)                       # checked once: plan.pack() and plan.unpack() only copy

Contract: a Layout is immutable. Its displacements count from the first item of the buffer that it is used
with, plus `offset` bytes. Any object with the buffer protocol will do (NumPy arrays, views with strides,
memoryview, bytes for reading), and tensors on the host that speak DLPack; nothing is copied on the way, and
no byte is touched before the whole message is known to lie in the buffer. A view with gaps is refused where
the layout would plainly take what lies in the gaps; as_memory=True says that those bytes are meant. The
interpreter lock is released while bytes move. Trouble (errors.py) has a code and a sentence.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from spinloom import core, numpy_types
from spinloom.errors import Trouble

if TYPE_CHECKING:
    import numpy as np
    from mpi4py import MPI
    from numpy.typing import ArrayLike, DTypeLike, NDArray
    from typing_extensions import Buffer

    class Tensor(Protocol):
        """What speaks DLPack."""

        def __dlpack__(self, *, stream: Any = ...) -> Any: ...
        def __dlpack_device__(self) -> tuple[Any, Any]: ...

    Memory = Buffer | NDArray[Any] | Tensor  # NumPy's own types call an array a Buffer from Python 3.12 on

__all__ = [
    "CopyPlan",
    "Layout",
    "PackPlan",
    "from_array",
    "from_dtype",
    "from_indices",
    "from_mpi",
    "from_text",
]

P = ParamSpec("P")
T = TypeVar("T")
Out = TypeVar("Out")


def mistaken(name: str, annotation: str, value: object) -> Exception | None:
    """What is wrong with an argument that the engine does not take."""
    if annotation == "str" and not isinstance(value, str):
        return TypeError(f"{name} must be a str, not {type(value).__name__}")
    if annotation in ("int", "int | None") and not (value is None and "None" in annotation):
        try:
            number = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            return TypeError(f"{name} must be an integer, not {type(value).__name__} ({value!r:.40})")
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
                if wrong := mistaken(name, str(signature.parameters[name].annotation), value):
                    raise wrong from None
            raise

    return call


class PackPlan:
    """A layout bound to an array and a packed buffer: Layout.bind() makes it.

    pack() and unpack() move the whole message. They raise Trouble where the buffer that they would write is
    read-only; unpack() also where the layout writes a byte twice. NumPy refuses to resize
    the array meanwhile; resize(refcheck=False) would take the memory away under the plan.
    """

    __slots__ = ("__weakref__", "pack", "packed", "unpack")

    def __init__(self, engine: Any, packed: Any) -> None:
        self.packed = packed
        self.pack: Callable[[], None] = engine.pack  # the engine's own: no Python runs in a call
        self.unpack: Callable[[], None] = engine.unpack


class CopyPlan:
    """A layout in one array bound to a layout in another: Layout.bind_copy() makes it. copy() does it."""

    __slots__ = ("__weakref__", "copy")

    def __init__(self, engine: Any) -> None:
        self.copy: Callable[[], None] = engine.copy


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
        """The same as Layout(text)."""
        return cls(text)

    @classmethod
    def from_array(cls, view: np.ndarray[Any, Any], base: np.ndarray[Any, Any] | None = None) -> Layout:
        """The items of a strided view in its own order: packed, they are np.ascontiguousarray(view).

        Displacements count from the view's first item, or from that of `base`, an array that the view looks
        into: then the layout is used with base.
        """
        for array in (view, view if base is None else base):
            if not hasattr(array, "__array_interface__"):
                raise TypeError(f"from_array takes NumPy arrays, not {type(array).__name__}")
            numpy_types.refuse_mask(array, "the array")
        text = numpy_types.view_text(view)
        if base is None or view.size == 0:
            return cls(text)
        first, last = numpy_types.span(base)
        begin, end = numpy_types.span(view)
        if begin < first or end > last:
            raise Trouble(
                "invalid", f"the view does not lie in base: {end - begin} bytes, {last - first} in base"
            )
        origin = base.__array_interface__["data"][0]
        return cls(f"hindexed([{view.__array_interface__['data'][0] - origin}Bx1], {text})")

    @classmethod
    def from_dtype(cls, dtype: DTypeLike) -> Layout:
        """One item of a dtype, or of what np.dtype() takes for one, with its itemsize as extent.

        The padding of a structured dtype is left out.
        """
        import numpy as np

        return cls(numpy_types.dtype_text(np.dtype(dtype)))

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
            if wrong := mistaken("block", "int", block):
                raise wrong
            length = operator.index(block)  # type: ignore[arg-type]
        child = (
            type if isinstance(type, Layout) else cls(type) if isinstance(type, str) else cls.from_dtype(type)
        )
        made = object.__new__(cls)
        engine = core.load().Layout.listed(child.engine, len(places), places, length, lengths, in_bytes)
        object.__setattr__(made, "engine", engine)
        return made

    @classmethod
    def from_mpi(cls, datatype: MPI.Datatype) -> Layout:
        """A datatype of mpi4py, whatever it was made of; it need not be committed."""
        from spinloom import mpi_types

        return cls(mpi_types.from_mpi(datatype))

    def to_mpi(self) -> MPI.Datatype:
        """A new datatype of mpi4py, committed; the caller frees it."""
        from spinloom import mpi_types

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
        """The name of the one primitive that it is made of; "" if there are several."""
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
    ) -> Any:
        """The packed bytes [first, last) of `count` elements in `source`: all of them unless told otherwise.

        They go to the beginning of `out`, a contiguous buffer, or of a new bytearray; either is returned.
        """
        packed = self.engine.pack(source, out, count, first, last, offset, as_memory)
        return packed if out is None else out

    @in_words
    def pack_array(
        self, source: Memory, *, count: int = 1, offset: int = 0, as_memory: bool = False
    ) -> NDArray[Any]:
        """The same as a NumPy array: of the layout's primitive, or of bytes where it has several."""
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
    ) -> None:
        """Puts the packed bytes [first, last) of a message of `count` elements where they belong.

        Nothing else is written. A layout that writes a byte twice is refused.
        """
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
    ) -> None:
        """From this layout in `source` into the layout `to` in `destination`, which hold equally many bytes.

        to_count follows from count unless given. Both may lie in one array: then everything is read first.
        """
        to_count = self._count_of(to, count, to_count)
        self.engine.copy(source, count, offset, to.engine, destination, to_count, to_offset, as_memory)

    def _count_of(self, to: Layout, count: int, to_count: int | None) -> int:
        """How many elements of `to` hold `count` of these."""
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
    ) -> PackPlan:
        """A plan whose pack() and unpack() move `count` elements between `array` and `packed`.

        Everything is checked here, once. Without `packed` the plan has a bytearray of its own, plan.packed.
        """
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
    ) -> CopyPlan:
        """A plan whose copy() does what the copy() of a layout does with these arguments."""
        to_count = self._count_of(to, count, to_count)
        return CopyPlan(
            core.load().CopyPlan(
                self.engine, source, count, offset, to.engine, destination, to_count, to_offset, as_memory
            )
        )

    def _repr_svg_(self) -> str:
        """The picture that notebooks show: picture.py."""
        from spinloom import picture

        return picture.draw(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Layout({self.beginning(200)!r})"

    def __reduce__(self) -> tuple[type[Layout], tuple[str]]:
        return Layout, (self.text,)


from_array = Layout.from_array
from_dtype = Layout.from_dtype
from_indices = Layout.from_indices
from_mpi = Layout.from_mpi
from_text = Layout.from_text
