"""mpi4py prefers calls with large counts, which it finds at the layer under MPIs that have none."""

from __future__ import annotations

import pytest

from layer_programs import MPIS, preloads, run
from test_mpi_examples import in_python

PROGRAM = """
import array
from mpi4py import MPI

world, other = MPI.COMM_WORLD, 1 - MPI.COMM_WORLD.rank
column = MPI.DOUBLE.Create_vector(4096, 1, 8).Commit()
grid, halo = array.array("d", range(4096 * 8)), array.array("d", [-1] * 4096 * 8)
packed = bytearray(4096 * 8 + 4)
found = [column.Pack(grid, packed, 4, world), column.Unpack(packed, 4, halo, world)]
found += [halo[::8] == grid[::8], set(halo[1::8])]
halo[:] = array.array("d", [-2] * len(halo))
world.Sendrecv([grid, 1, column], other, 3, [halo, 1, column], other, 3)
found += [halo[::8] == grid[::8], set(halo[1::8])]
request = world.Irecv([halo, 1, MPI.INT], other, 4)
world.Send([grid, 1, MPI.INT], other, 4)
request.Wait()
try:
    world.Isendrecv([grid, 1, MPI.INT], other, 5, [halo, 1, MPI.INT], other, 5).Wait()
except (MPI.Exception, NotImplementedError):  # before MPI 4
    pass
assert found == [32772, 32772, True, {-1.0}, True, {-2.0}], found
"""


@pytest.mark.parametrize("mpi", MPIS[:3], ids=lambda mpi: mpi.name)
def test_calls_with_large_counts(mpi, tmp_path):
    *python, _ = in_python(mpi, tmp_path)
    job = [mpi.launcher, *mpi.options, "-n", "2", *python, "-c", PROGRAM]
    ran = run(job, preloads(tmp_path / "report"))
    assert ran.returncode == 0, ran.stderr
