"""Pack a slice of a CuPy array: the ten lines of docs/gpu.md. Needs a GPU and CuPy."""

import cupy

from spinloom import layout

grid = cupy.arange(1000.0).reshape(10, 10, 10)
face = layout.from_array(grid[:, :, -2], base=grid)
packed = face.pack(grid)  # one kernel, on CuPy's current stream; a CuPy array of bytes
face.unpack(packed, grid, offset=8)  # into the ghost layer beside it
assert (grid[:, :, -1] == grid[:, :, -2]).all()
