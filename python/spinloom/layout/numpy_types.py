"""NumPy's dtypes as datatypes in text form.

Contract: dtype_text(dtype) has the dtype's itemsize as extent and leaves out its padding; item_text() is an
item by NumPy's letter and its bytes. NumPy itself is not imported: the dtype suffices. Raises
Trouble('unsupported') for Python objects. dtype_of(primitive) is the reverse, for one primitive. Views of
arrays are in strided.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from spinloom.common.errors import Trouble

FROM_INDICES = "from_indices(indices, block, type) makes a layout of a list of indices"

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

PRIMITIVES = {
    ("b", 1): "c_bool",
    **{("i", size): f"int{8 * size}_t" for size in (1, 2, 4, 8)},
    **{("u", size): f"uint{8 * size}_t" for size in (1, 2, 4, 8)},
    **{("M", 8): "int64_t", ("m", 8): "int64_t"},  # datetime64, timedelta64
    **{("f", 4): "float", ("f", 8): "double", ("f", 16): "long_double"},
    **{("c", 8): "c_float_complex", ("c", 16): "c_double_complex", ("c", 32): "c_long_double_complex"},
}
# Types without an entry above, by NumPy's code.
OTHER_NAMES = {
    "u1": ("byte", "packed", "unsigned_char"),
    "i1": ("char", "signed_char", "character", "integer1"),
    "i2": ("short", "integer2"),
    "u2": ("unsigned_short",),
    "i4": ("int", "wchar", "logical", "integer", "integer4"),
    "u4": ("unsigned",),
    "i8": ("long", "long_long", "long_long_int", "aint", "offset", "count", "integer8"),
    "u8": ("unsigned_long", "unsigned_long_long"),
    "f4": ("real", "real4"),
    "f8": ("double_precision", "real8"),
    "c8": ("float_complex", "c_complex", "complex", "complex8"),
    "c16": ("double_complex", "complex16"),
}
DTYPES = {name: code for code, names in OTHER_NAMES.items() for name in names}
DTYPES |= {
    name: "?" if kind == "b" else f"{kind}{size}"
    for (kind, size), name in PRIMITIVES.items()
    if kind not in "Mm"
}
CHARACTERS = {"S": ("char", 1), "U": ("uint32_t", 4)}


def dtype_of(primitive: str) -> str:
    """NumPy's code for a primitive; plain bytes for "", which means none or several primitives."""
    return DTYPES.get(primitive, "u1")


def refuse_mask(array: object, description: str) -> None:
    if hasattr(array, "mask") and hasattr(array, "filled"):
        raise Trouble(
            "invalid",
            f"{description} is a masked array, and a layout does not know its mask; "
            "pass array.data or array.filled(value)",
        )


def indices_hint(value: object) -> str:
    """The end of an error's sentence where a list of indices stands in place of something else, or ''."""
    shape = getattr(value, "shape", None)
    if shape is not None:  # an array's or a tensor's
        is_list = len(shape) == 1 and getattr(getattr(value, "dtype", None), "kind", "i") in "iub"
    else:
        is_list = isinstance(value, list | tuple | range) and len(value) > 0 and all(map(is_index, value))
    return f"; {FROM_INDICES}" if is_list else ""


def is_index(value: object) -> bool:
    return hasattr(type(value), "__index__") and not getattr(value, "shape", ())


def index_list(indices: ArrayLike, description: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A list of integers as an array of int64, contiguous; TypeError or Trouble says what it is instead."""
    import numpy as np

    refuse_mask(indices, description)
    array = np.asarray(indices)
    if array.dtype.kind == "b":
        raise TypeError(
            f"{description} is a list of booleans; numpy.flatnonzero(mask) gives the indices of a mask"
        )
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{description} holds {array.dtype}, not integers")
    if array.ndim != 1:
        raise Trouble("invalid", f"{description} has {array.ndim} dimensions, not one; ravel() gives one")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise Trouble(
            "overflow", f"{description} holds {array.max()}, which does not fit in 64 bits with a sign"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def dtype_text(dtype: np.dtype[Any]) -> str:
    """One item. A structured dtype gives its fields in the order of their names; a byte order that is not
    this machine's is carried as bytes."""
    if dtype.hasobject:
        raise Trouble("unsupported", f"dtype {dtype} holds references to Python objects, which are not data")
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return f"contig({math.prod(shape)}, {dtype_text(base)})"
    if dtype.names is not None:
        members = []
        for name in dtype.names:
            field, offset = dtype.fields[name][:2]
            members.append(f"({offset}B, {dtype_text(field)})")
        return f"resized(0B, {dtype.itemsize}B, struct([{', '.join(members)}]))"
    return item_text(dtype.kind, dtype.itemsize, native=dtype.isnative)


def item_text(kind: str, item_bytes: int, *, native: bool) -> str:
    """An item of NumPy's kind `kind`, a letter; bytes for what has no primitive."""
    if native:
        if name := PRIMITIVES.get((kind, item_bytes)):
            return name
        if kind in CHARACTERS:
            name, size = CHARACTERS[kind]
            return f"contig({item_bytes // size}, {name})"
    return f"contig({item_bytes}, byte)"
