"""NumPy's array views and dtypes as datatypes in text form.

Contract: dtype_text(dtype) has the dtype's itemsize as extent and leaves out its padding; view_text(view)
gives the items of a strided view in its own (row-major) order, with displacements from its first item. NumPy
itself is not imported: what is read is shape, strides and dtype. Raises Trouble('unsupported') for Python
objects.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from spinloom.errors import Trouble

if TYPE_CHECKING:
    import numpy as np

PRIMITIVES = {
    ("b", 1): "c_bool",
    **{("i", size): f"int{8 * size}_t" for size in (1, 2, 4, 8)},
    **{("u", size): f"uint{8 * size}_t" for size in (1, 2, 4, 8)},
    **{("M", 8): "int64_t", ("m", 8): "int64_t"},  # datetime64, timedelta64
    **{("f", 4): "float", ("f", 8): "double", ("f", 16): "long_double"},
    **{("c", 8): "c_float_complex", ("c", 16): "c_double_complex", ("c", 32): "c_long_double_complex"},
}
CHARACTERS = {"S": ("char", 1), "U": ("uint32_t", 4)}


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
    if dtype.isnative:
        if name := PRIMITIVES.get((dtype.kind, dtype.itemsize)):
            return name
        if dtype.kind in CHARACTERS:
            name, size = CHARACTERS[dtype.kind]
            return f"contig({dtype.itemsize // size}, {name})"
    return f"contig({dtype.itemsize}, byte)"


def view_text(view: np.ndarray[Any, Any]) -> str:
    """Every item of a view, displacements from its first item."""
    text, extent = dtype_text(view.dtype), view.dtype.itemsize
    contiguous = True
    for length, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if length == 1:
            continue
        contiguous = contiguous and stride == extent
        if contiguous or length == 0:
            text, extent = f"contig({length}, {text})", length * extent
        else:
            text = f"hvector({length}, 1, {stride}B, {text})"
    return text


def span(view: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The addresses between which a view's items lie: first byte, one past the last."""
    first = last = view.__array_interface__["data"][0]
    if view.size == 0:
        return first, last
    for length, stride in zip(view.shape, view.strides, strict=True):
        way = (length - 1) * stride
        first, last = first + min(0, way), last + max(0, way)
    return first, last + view.dtype.itemsize
