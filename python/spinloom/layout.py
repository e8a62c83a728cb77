"""Layouts: datatypes that move data between Python's buffers.

    from spinloom import layout
    halo = layout.from_array(grid[1:-1, -2], base=grid)
    packed = halo.pack(grid)                     # a bytearray of halo.size bytes
    halo.unpack(packed, grid)

Contract: a Layout is immutable. Its displacements count from the first item of the buffer that it is used
with, plus `offset` bytes. Any object with the buffer protocol will do (NumPy arrays, views with strides,
memoryview, bytes for reading); nothing is copied on the way, and no byte is touched before the whole message
is known to lie in the buffer. The interpreter lock is released while bytes move. Trouble (errors.py) has a
code and a sentence.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from spinloom import core, numpy_types
from spinloom.errors import Trouble

if TYPE_CHECKING:
    import numpy as np
    from mpi4py import MPI
    from numpy.typing import DTypeLike
    from typing_extensions import Buffer

__all__ = ["Layout", "from_array", "from_dtype", "from_mpi", "from_text"]

P = ParamSpec("P")
T = TypeVar("T")


def troubled(function: Callable[P, T]) -> Callable[P, T]:
    """The engine's errors as Trouble."""

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except core.load().SpinloomError as error:
            raise Trouble(error.code, error.message) from None

    return call


def memory(buffer: Buffer) -> Any:
    """The buffer itself, or a view of it as bytes where NumPy does not export its dtype (dates)."""
    try:
        memoryview(buffer).release()
    except ValueError:
        dtype = getattr(buffer, "dtype", None)
        if dtype is None or dtype.hasobject:
            raise
        return buffer.view(f"V{dtype.itemsize}")  # type: ignore[attr-defined]
    return buffer


class Layout:
    """A committed datatype. Sizes, bounds and offsets are in bytes."""

    __slots__ = ("engine",)

    @troubled
    def __init__(self, text: str) -> None:
        """A datatype in text form (docs/formats/layout.md). Trouble says line and column."""
        self.engine = core.load().Layout.from_text(text)

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

    @troubled
    def packed_bytes(self, count: int = 1) -> int:
        """Bytes of data of `count` elements."""
        return self.engine.packed_bytes(count)

    @troubled
    def blocks(self, limit: int = 1000, *, count: int = 1) -> list[tuple[int, int]]:
        """The first `limit` contiguous blocks in packed order, as (offset, bytes)."""
        return self.engine.blocks(count, limit)

    # ---- what they do ----

    @troubled
    def pack(
        self,
        source: Buffer,
        out: Buffer | None = None,
        *,
        count: int = 1,
        first: int = 0,
        last: int | None = None,
        offset: int = 0,
    ) -> Any:
        """The packed bytes [first, last) of `count` elements in `source`: all of them unless told otherwise.

        They go to the beginning of `out`, a contiguous buffer, or of a new bytearray; either is returned.
        """
        target = None if out is None else memory(out)
        packed = self.engine.pack(memory(source), target, count, first, last, offset)
        return packed if out is None else out

    @troubled
    def unpack(
        self,
        packed: Buffer,
        destination: Buffer,
        *,
        count: int = 1,
        first: int = 0,
        last: int | None = None,
        offset: int = 0,
    ) -> None:
        """Puts the packed bytes [first, last) of a message of `count` elements where they belong.

        Nothing else is written. A layout that writes a byte twice is refused.
        """
        self.engine.unpack(memory(packed), memory(destination), count, first, last, offset)

    @troubled
    def copy(
        self,
        source: Buffer,
        to: Layout,
        destination: Buffer,
        *,
        count: int = 1,
        to_count: int | None = None,
        offset: int = 0,
        to_offset: int = 0,
    ) -> None:
        """From this layout in `source` into the layout `to` in `destination`, which hold equally many bytes.

        to_count follows from count unless given. Both may lie in one array: then everything is read first.
        """
        if to_count is None:
            to_count, rest = divmod(self.engine.packed_bytes(count), to.size or 1)
            if rest:
                raise Trouble(
                    "invalid", f"{count} elements of {self.size} bytes are no whole number of {to.size} bytes"
                )
        self.engine.copy(memory(source), count, offset, to.engine, memory(destination), to_count, to_offset)

    def _repr_svg_(self) -> str:
        """The picture that notebooks show: picture.py."""
        from spinloom import picture

        return picture.draw(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        text = self.text
        return f"Layout({text if len(text) <= 200 else text[:197] + '...'!r})"

    def __reduce__(self) -> tuple[type[Layout], tuple[str]]:
        return Layout, (self.text,)


from_array = Layout.from_array
from_dtype = Layout.from_dtype
from_mpi = Layout.from_mpi
from_text = Layout.from_text
